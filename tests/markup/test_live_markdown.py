"""An answer that streams ends as the answer would have looked at once, and looks right meanwhile."""

from __future__ import annotations

import re
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.markup.live import LiveMarkdown
from ipyperplexity.markup.markdown import render
from ipyperplexity.markup.markers import find_markers
from tests.markup.html_reading import Dom, Page, resolver

PAGES = [Page(1), Page(2, url="https://two.example"), Page(11), Page(12, kind="fetch")]

WORDS = r"""
tower tall. **bold** *it* `code` ``a`b`` [1] [1][2] [1, 3] [1-2] [web:0] [2024] x[0] arr[1] wider[1].
[link](https://a.example) [bad](javascript:x) ![im](https://i.example) ~~old~~ $5 to $10 (see [7])
\(x_1\) $$y$$ \[z\] \[ \] \( $$ ** * _ __ ` `` [ ] ( ) < > & | \ \* &amp; 3.5 snake_case **a *b* c**
<https://a.example> <b> ! # 日本 é - + 1. 2) === --- ~~
"""
PREFIXES = r"""- |- |* |+ |1. |2. |3) |10. |# |### |> |> - |  |    |  - |   1. |   | - |- - |```|~~~|````py|- ```|$$|\[|\]"""
WHOLES = r"""
|  |---|===|***|```|~~~|$$|\]|> |>|-|* * *|- - -|```py;x[1] = 2;;y;```|$$;a;+ b;$$|\[;x;\]|- a;- b [1];- c
|- a;;- b;;- c|1. one;2. two;   - deep;3. three|- # h;;- ```;  c;  ```|- a;-;;- b|1. a;;   b;2. c
"""
TABLES = ["|---|---|", "| a | b |\n|:--|--:|\n| 1 | `x\\|y` [2] |", "a | b\n-|-", "- a | b\n-|-\n"]
LONG = ["para one. " * 20 + "**end** [1].", "- " + "long item " * 20]

_LINE = st.lists(st.sampled_from(str.split(WORDS)), min_size=1, max_size=7).map(" ".join)
_PREFIX = st.one_of(st.just(""), st.sampled_from([*str.split(PREFIXES, "|"), "| ", "\t"]))
_WHOLE = st.sampled_from(
    [*str.split(WHOLES.replace("\n", "").replace(";", "\n"), "|"), *TABLES, *LONG]
)
_ROW = st.one_of(st.tuples(_PREFIX, _LINE).map("".join), _WHOLE)
_DOCUMENT = st.builds(
    lambda rows, newline, end: newline.join("\n".join(rows).split("\n")) + end,
    st.lists(_ROW, max_size=14),
    st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"]),
    st.sampled_from(["", "\n", "\n\n", " "]),
)


@settings(max_examples=400, deadline=None)
@given(_DOCUMENT, st.data())
def test_any_cuts_of_any_text_end_as_the_whole(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=25)))
    live = LiveMarkdown(resolver(PAGES))
    for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        live.append(text[begin:end])
        live.html()
    assert live.finish() == render(text, resolver(PAGES))
    assert live.html() == live.finish()


@settings(max_examples=150, deadline=None)
@given(_DOCUMENT)
def test_a_text_that_comes_letter_by_letter_ends_as_the_whole(text: str) -> None:
    live = LiveMarkdown(resolver(PAGES))
    for char in text:
        live.append(char)
        live.html()
    assert live.finish() == render(text, resolver(PAGES))


@settings(max_examples=150, deadline=None)
@given(_DOCUMENT, st.integers(0, 400), st.integers(0, 400))
def test_sources_that_come_late_are_linked_in_what_is_already_shown(
    text: str, first: int, second: int
) -> None:
    live = LiveMarkdown(resolver([]))
    live.append(text[:first])
    live.html()
    live.append(text[first : first + second])
    live.html()
    live.update(resolver(PAGES))
    live.html()
    live.append(text[first + second :])
    assert live.finish() == render(text, resolver(PAGES))


@settings(max_examples=300, deadline=None)
@given(_DOCUMENT)
def test_the_markers_that_are_found_are_the_markers_that_are_shown(text: str) -> None:
    markers = find_markers(text)
    shown = Dom(render(text, resolver([]))).with_class("pplx-cite")
    assert len(shown) == len(markers)
    for marker in markers:
        written = text[marker.start : marker.end]
        assert re.fullmatch(r"\[[\dweb:, \u2013-]+\]", written)
        if marker.web is not None:
            assert written == f"[web:{marker.web}]"
        else:
            assert written.startswith(f"[{marker.ids[0]}")
    spans = [(m.start, m.end) for m in markers]
    assert spans == sorted(spans)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Some **bo", "<p>Some <strong>bo</strong></p>"),
        ("Some **", "<p>Some</p>"),
        ("Some **bold*", "<p>Some <strong>bold</strong></p>"),
        ("Some *it", "<p>Some <em>it</em></p>"),
        ("2 * 3", "<p>2 * 3</p>"),
        ("Use `co", "<p>Use <code>co</code></p>"),
        ("See [the site", "<p>See the site</p>"),
        ("See [the site](http://exa", "<p>See the site</p>"),
        ("It is so.[1", "<p>It is so.</p>"),
        ("It is so.[web:", "<p>It is so.</p>"),
        ("Text\n-", "<p>Text</p>"),
        ("Text\n\n#", "<p>Text</p>"),
        ("Text\n\n1", "<p>Text</p>"),
        ("- a\n- ", "<ul>\n<li>a</li>\n</ul>"),
        ("```py\nx = 1\n``", '<pre><code class="language-py">x = 1</code></pre>'),
        ("```py\nx = **1", '<pre><code class="language-py">x = **1</code></pre>'),
        ("A ~~b", "<p>A <s>b</s></p>"),
    ],
)
def test_a_half_written_piece_looks_like_what_it_will_be(text: str, shown: str) -> None:
    live = LiveMarkdown(resolver([]))
    live.append(text)
    assert live.html().strip() == shown


@pytest.mark.parametrize(
    "text", ["| a | b", "| a | b |\n", "| a | b |\n|-", "| a | b |\n|---|---|\n| 1"]
)
def test_a_table_is_a_table_from_its_first_line_on(text: str) -> None:
    live = LiveMarkdown(resolver([]))
    live.append(text)
    assert [t for t, _ in Dom(live.html()).elements].count("th") == 2


def test_settled_text_is_not_rendered_again() -> None:
    asked: list[int | None] = []

    def resolve(id: int | None, web: int | None = None) -> None:
        asked.append(id)

    live = LiveMarkdown(resolve)
    live.append("First.[1]\n\nSecond.[2]\n\n")
    for _ in range(50):
        live.append("More words. ")
        live.html()
    assert asked.count(1) == asked.count(2) == 1


def test_only_blocks_with_unresolved_markers_are_rendered_again() -> None:
    asked: list[int | None] = []

    def resolve(id: int | None, web: int | None = None) -> Page | None:
        asked.append(id)
        return Page(1) if id == 1 else None

    live = LiveMarkdown(resolve)
    live.append("First.[1]\n\nSecond.[2]\n\nThird")
    live.html()
    asked.clear()
    live.update(resolve)
    assert asked == [2]


@pytest.mark.parametrize(
    "unit",
    [
        "Sentence with **bold** and `code` and so on.[1] " * 6 + "\n\n",
        "- **Item**: something that is worth a line or two of text.[1][2]\n",
        "1. **Item**: something that is worth a line or two of text.[1][2]\n\n",
        "Sentence with **bold** and `code` and so on.[1] ",
    ],
    ids=["paragraphs", "a tight list", "a loose list", "one paragraph"],
)
def test_400_updates_of_a_40_kb_answer_cost_a_few_renderings(unit: str) -> None:
    text = (unit * (40_000 // len(unit) + 1))[:40_000]
    resolve = resolver(PAGES)
    render(text, resolve)
    start = process_time()
    whole = render(text, resolve)
    once = process_time() - start
    live = LiveMarkdown(resolve)
    start = process_time()
    for begin in range(0, len(text), 100):
        live.append(text[begin : begin + 100])
        live.html()
    assert live.finish() == whole
    # About 3 on a quiet machine; rendering all the text each time would cost 200.
    assert process_time() - start < 10 * once + 0.05
