"""What an answer claims, sentence by sentence, and which sources support it."""

from __future__ import annotations

import pickle

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.citations import find_citations
from ipyperplexity.claims import CLAIM_SCHEMA, SHOWN_ROWS, Claim, Claims, find_claims
from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.sources import Source, Sources
from ipyperplexity.wire.source_collector import SourceCollector
from tests.markup.html_reading import Dom

SOURCES = Sources(
    [
        Source(1, "Dune", "https://d.example/1", "d.example"),
        Source(2, "Sand", "https://d.example/2", "d.example"),
        Source(3, "Sea", "https://s.example", "s.example"),
    ]
)
NAMES = [column.name for column in CLAIM_SCHEMA]


def claims_of(text: str, sources: Sources = SOURCES) -> Claims:
    return find_claims(text, find_citations(text, sources))


def found(text: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(claim.sentence, claim.source_ids) for claim in claims_of(text)]


# --- what is a claim, and what supports it -----------------------------------------------------


def test_each_sentence_has_the_sources_that_it_names_itself() -> None:
    text = "It is tall.[1] It sings. It is [3] old [1][2]."
    claims = claims_of(text)
    assert [(c.sentence, c.source_ids, c.domains, c.supported) for c in claims] == [
        ("It is tall.", (1,), ("d.example",), True),
        ("It sings.", (), (), False),
        ("It is old.", (3, 1, 2), ("s.example", "d.example"), True),
    ]
    assert [text[c.start : c.end] for c in claims] == [
        "It is tall.[1]",
        "It sings.",
        "It is [3] old [1][2].",
    ]
    assert claims.unsupported["sentence"] == ["It sings."]
    assert [c.n_sources for c in claims.supported] == [1, 3]


def test_a_marker_at_a_paragraphs_end_covers_its_sentence_only() -> None:
    assert found("One is so. Two is so. Three is so. [1][3]") == [
        ("One is so.", ()),
        ("Two is so.", ()),
        ("Three is so.", (1, 3)),
    ]


def test_a_marker_in_a_paragraph_of_its_own_supports_nothing() -> None:
    assert found("It is tall.\n\n[1]") == [("It is tall.", ())]


@pytest.mark.parametrize("marker", ["[1][3]", "[1, 3]", "[1,3]", "[1][3][1]", "[3][1]"])
def test_several_markers_give_each_source_once(marker: str) -> None:
    ((_, ids),) = found(f"It is so {marker}.")
    assert sorted(ids) == [1, 3]


def test_a_range_names_all_in_it_and_unknown_ones_are_counted_apart() -> None:
    (claim,) = claims_of("It is so.[2-5]")
    assert (claim.source_ids, claim.n_unknown, claim.supported) == ((2, 3), 2, True)


def test_a_number_without_a_source_is_no_support() -> None:
    (claim,) = claims_of("It is so.[7]").unsupported
    assert (claim.sentence, claim.source_ids, claim.n_unknown) == ("It is so.", (), 1)


def test_a_position_marker_counts_as_the_fetched_page_that_it_means() -> None:
    collector = SourceCollector()
    collector.add(id=1, url="https://d.example", title="Dune")
    collector.add(url="https://read.example", title="Read", kind="fetch")
    read, beyond = claims_of("It was read.[web:0] It was not.[web:4]", collector.sources())
    assert (read.source_ids, read.domains) == ((2,), ("read.example",))
    assert (beyond.supported, beyond.n_unknown) == (False, 1)


def test_headings_header_rows_and_code_claim_nothing() -> None:
    text = """\
# Dunes [1]

Setext heading
--------------

**A bold heading**

__Another one:__

```python
print("Hello. [1]")
```

    indented. Code.

`only_code()`

$$a^2 = b^2$$

https://d.example/page

| City | People |
|---|---|
| Bonn. Capital | 336,000 [2] |
| Mainz | 220,000? |

---
"""
    assert found(text) == [("Bonn. Capital | 336,000", (2,)), ("Mainz | 220,000?", ())]


def test_list_items_and_quotes_are_read_sentence_by_sentence() -> None:
    text = """\
- **Pilat** is tall.[1] It moves.
- **Bold**
  1. nested [3]
  2. Use `dune --all` for more

> They said so
> long ago.[2]
"""
    assert found(text) == [
        ("**Pilat** is tall.", (1,)),
        ("It moves.", ()),
        ("**Bold**", ()),
        ("nested", (3,)),
        ("Use `dune --all` for more", ()),
        ("They said so long ago.", (2,)),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Why is it so?",
        "**Is it?**",
        "(Who knows?)",
        "The steps are:",
        "**The steps are:**",
        "高吗\uff1f",
        "Sources: [1][2]",
        "**References** [1], [3].",
        "...",
        "",
        "[1][2]",
    ],
)
def test_questions_lead_ins_and_lists_of_sources_claim_nothing(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Who knew that it moves?[1]", "Who knew that it moves?"),
        ("The steps are [1]:", "The steps are:"),
        ("The sources are old.[1]", "The sources are old."),
    ],
)
def test_with_a_marker_a_question_or_a_lead_in_is_a_claim(text: str, sentence: str) -> None:
    assert found(text) == [(sentence, (1,))]


def test_a_bold_sentence_and_a_bold_list_item_are_claims() -> None:
    assert found("**It is tall.** More\n\n- **Bonn**") == [
        ("**It is tall.**", ()),
        ("More", ()),
        ("**Bonn**", ()),
    ]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_places_are_code_points_of_the_text_as_received(newline: str) -> None:
    text = "\U0001f5fc is tall.[1]\n\n- a b\n  c.[3]\n\n> x\n> y\n".replace("\n", newline)
    claims = claims_of(text)
    assert [text[c.start : c.start + 1] for c in claims] == ["\U0001f5fc", "a", "x"]
    assert claims["sentence"] == ["\U0001f5fc is tall.", "a b c.", "x y"]


# --- as a table --------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["It is tall.[1][3] It sings.", ""])
def test_every_frame_library_gets_the_same_types_at_any_number_of_rows(text: str) -> None:
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    claims = claims_of(text)
    frame = claims.to_pandas()
    assert list(frame.columns) == NAMES
    assert str(frame["supported"].dtype) == "bool" and str(frame["start"].dtype) == "int32"
    assert pl.DataFrame(claims).schema["source_ids"] == pl.List(pl.Int32)
    assert pa.table(claims).schema.field("source_ids").type.value_type == pa.int32()
    assert duckdb.sql("from claims").columns == NAMES
    assert len(frame) == len(claims)


def test_pandas_takes_the_claims_themselves() -> None:
    frame = pd.DataFrame(claims_of("It is tall.[1] It sings."))
    assert sorted(frame.columns) == sorted(NAMES)
    assert frame["supported"].tolist() == [True, False]


def test_a_position_gives_a_claim_a_slice_claims_and_a_name_a_column() -> None:
    claims = claims_of("A is. B is.[1] C is.")
    assert claims[1].sentence == "B is." and claims[-1].sentence == "C is."
    assert isinstance(claims[1:], Claims) and claims[1:]["n_sources"] == [1, 0]
    with pytest.raises(KeyError, match="no column 'text'; there are sentence, start"):
        claims["text"]
    assert len(claims) == 3 and not Claims()


def test_claims_compare_by_value_can_be_pickled_and_hold_claims_only() -> None:
    claims = claims_of("A is. B is.[1]")
    assert pickle.loads(pickle.dumps(claims)) == claims
    assert claims != claims.unsupported
    with pytest.raises(InvalidRequestError, match="claims: got a value of type str; allowed"):
        Claims("text")  # type: ignore[arg-type]


def test_displays_say_what_is_unsupported_and_run_nothing() -> None:
    hostile = "<script>alert(1)</script> <img src=x onerror=alert(1)>\x1b[31m\u202e costs $5 to $7."
    claims = claims_of(f"{hostile}\n\nIt is tall.[1]")
    html = claims._repr_html_()
    dom = Dom(html)
    assert not dom.all("script") and not dom.all("img")
    assert all(cell.get("scope") == "col" for cell in dom.all("th"))
    assert dom.with_class("mathjax_ignore")
    assert "none" in dom.text and "d.example" in dom.text
    assert not dom.all("details")
    for shown in (html, repr(claims)):
        assert "2 sentences, 1 without a source" in shown
        assert "\x1b" not in shown and "\u202e" not in shown
    assert repr(claims).splitlines()[2] == "     [1]  It is tall."
    assert repr(Claims()) == "Claims(0 sentences, 0 without a source)"


def test_long_displays_are_folded_and_capped() -> None:
    claims = Claims([Claim("It is so. " * 500, 0, 5000)] * (SHOWN_ROWS + 30))
    html = claims._repr_html_()
    assert html.count("<tr>") == SHOWN_ROWS + 1
    assert "<summary>230 sentences, 230 without a source</summary>" in html
    assert len(html) < 100_000 and len(repr(claims)) < 30_000
    for shown in (html, repr(claims)):
        assert "... and 30 more; to_pandas() has all" in shown


# --- for any text ------------------------------------------------------------------------------

WORDS = st.sampled_from(["dunes", "move", "sand", "tall", "old", "wind", "Bonn", "sea", "3.5"])
SENTENCES = st.lists(WORDS, min_size=1, max_size=5).map(lambda words: f"It has {' '.join(words)}")
IDS = st.lists(st.integers(1, 3), max_size=3, unique=True)
SHAPES = st.sampled_from(["{s}.{m}", "{s}. {m}", "{s}{m}.", "{s} {m}."])


@given(st.lists(st.tuples(SENTENCES, IDS, SHAPES, st.booleans()), max_size=6))
@settings(max_examples=150, deadline=None)
def test_what_was_written_is_what_is_found(
    written: list[tuple[str, list[int], str, bool]],
) -> None:
    text = ""
    for sentence, ids, shape, breaks in written:
        marks = "".join(f"[{id}]" for id in ids)
        marked = shape.format(s=sentence, m=marks) if ids else f"{sentence}."
        text += marked + ("\n\n" if breaks else " ")
    assert found(text) == [(f"{sentence}.", tuple(ids)) for sentence, ids, _, _ in written]


@given(st.lists(st.tuples(SENTENCES, IDS), max_size=5), st.sampled_from(["list", "table"]))
@settings(max_examples=80, deadline=None)
def test_each_list_item_and_each_table_row_is_one_claim(
    written: list[tuple[str, list[int]]], form: str
) -> None:
    marks = ["".join(f"[{id}]" for id in ids) for _, ids in written]
    if form == "list":
        lines = [f"- {s} {m}" for (s, _), m in zip(written, marks, strict=True)]
    else:
        rows = [f"| {s} | {m} |" for (s, _), m in zip(written, marks, strict=True)]
        lines = ["| what | where |", "|---|---|", *rows]
    claims = claims_of("\n".join(lines))
    assert [claim.source_ids for claim in claims] == [tuple(ids) for _, ids in written]
    assert all(s in c.sentence for (s, _), c in zip(written, claims, strict=True))


@given(st.text(st.sampled_from("aB .[]13,-:web`\n\r*!?#>|$é\U0001f5fc"), max_size=80))
@settings(max_examples=300, deadline=None)
def test_claims_come_in_order_and_only_their_own_markers_support_them(text: str) -> None:
    citations = find_citations(text, SOURCES)
    claims = find_claims(text, citations)
    position = 0
    for claim in claims:
        assert position <= claim.start < claim.end <= len(text)
        position = claim.end
        inside = {c.source.id for c in citations if c.source and claim.start <= c.start < claim.end}
        assert set(claim.source_ids) == inside
        assert claim.sentence and "\n" not in claim.sentence
    assert len(claims.supported) + len(claims.unsupported) == len(claims)
    assert len(claims.to_pandas()) == len(claims)


@pytest.mark.parametrize(
    "text",
    [
        "Prices fell in the U.S.[1] in 2020.",
        "Costs rose by approx.[1] 5%.",
        "At 5 p.m.[1] it rained.",
        "He (e.g. [1]) left.",
    ],
)
def test_a_marker_after_an_abbreviation_ends_no_sentence(text: str) -> None:
    sources = Sources([Source(1, "A", "https://a.example")])
    claims = find_claims(text, find_citations(text, sources))
    assert [claim.source_ids for claim in claims] == [(1,)]


def test_a_marker_after_an_abbreviation_may_end_one_too() -> None:
    text = "It rained at 5 p.m.[1] The sun came at six.[2] Acme Inc.[1] Prices fell."
    sources = Sources([Source(1, "A", "https://a.example"), Source(2, "B", "https://b.example")])
    claims = find_claims(text, find_citations(text, sources))
    assert [claim.source_ids for claim in claims] == [(1,), (2,), (1,), ()]
