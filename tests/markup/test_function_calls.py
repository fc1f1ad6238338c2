"""A reader sees which functions were run for an answer, with what, and what came of it."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.markup import page
from ipyperplexity.markup.calls import call_text, calls_section, result_text
from ipyperplexity.markup.terminal import answer_text, calls_text, display_width
from tests.markup.html_reading import Dom, Page


@dataclass(frozen=True)
class Made:
    """A function call, as the renderer sees it."""

    name: str = "population_of"
    arguments: str = '{"city": "Ghent", "exact": true, "year": null}'
    output: str = "272657"
    error: str | None = None
    elapsed: float = 0.21


FAILED = Made(output="Error: KeyError: 'Gent'", error="KeyError: 'Gent'")
NOT_RUN = Made("plot", "", "", "not run: max_steps=3 was reached", 0.0)


# --- words --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (
            '{"city": "Ghent", "exact": true, "year": null}',
            "f(city='Ghent', exact=True, year=None)",
        ),
        ('{"rows": [1, 2.5, {"a": "b"}]}', "f(rows=[1, 2.5, {'a': 'b'}])"),
        ("", "f()"),
        ("  \n", "f()"),
        ("{}", "f()"),
        ('{"a": ', 'f({"a":)'),
        ("[1]", "f([1])"),
        ('{"not a name": 1}', 'f({"not a name": 1})'),
        ('{"a":\n  1}', "f(a=1)"),
        (f'{{"a": {"9" * 5000}}}', f'f({{"a": {"9" * 190}…)'),
        ("[" * 5000, f"f({'[' * 196}…)"),
        ('{"a": "x\\u202e\\u001b[2J\\ny"}', "f(a='x\\u202e\\x1b[2J\\ny')"),
    ],
    ids=lambda value: value[:30],
)
def test_a_call_reads_as_python_on_one_line_whatever_the_model_wrote(
    arguments: str, shown: str
) -> None:
    assert call_text("f", arguments) == shown


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (Made(), "272657"),
        (Made(output="| a |\n|---|\n| 1 |"), "| a | |---| | 1 |"),
        (Made(output="x" * 301), "x" * 299 + "…"),
        (Made(output="a" + " " * 400 + "b"), "a b"),
        (Made(output=" " * 5000 + "x"), "…"),
        (Made(output=""), "no output"),
        (FAILED, "failed: KeyError: 'Gent'"),
        (NOT_RUN, "not run: max_steps=3 was reached"),
        (Made(error="not finished: KeyboardInterrupt"), "not finished: KeyboardInterrupt"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_came_of_a_call_is_said_in_one_line(call: Made, shown: str) -> None:
    assert result_text(call) == shown


@given(st.text(), st.text(max_size=400), st.text(max_size=400), st.none() | st.text(max_size=400))
@settings(max_examples=300, deadline=None)
def test_any_call_is_short_one_line_and_without_controls(
    name: str, arguments: str, output: str, error: str | None
) -> None:
    call = Made(name, arguments, output, error)
    for shown, most in ((call_text(name, arguments), 200), (result_text(call), 300)):
        assert len(shown) <= most
        assert not set(shown) & set("\n\r\t\x1b\x9b\u202e\u2028")
    text = calls_text([call], 60)
    assert len(text.split("\n")) == 2
    assert all(display_width(line) <= 60 for line in text.split("\n"))
    dom = Dom(calls_section([call]))
    assert {tag for tag, _ in dom.elements} <= set(
        "details summary table thead tbody tr th td code span p br".split()  # noqa: SIM905
    )


# --- the page -----------------------------------------------------------------------------------


def test_calls_are_folded_below_the_sources_in_a_table_with_headers() -> None:
    html = page.answer_page(
        body_html="<p>So.</p>", sources=[Page(1)], searches=["q"], calls=[Made(), FAILED]
    )
    assert html.index("pplx-sources") < html.index("1 search") < html.index("Functions: 2 calls")
    section = html[html.index("<summary>Functions") - len("<details>") :]
    assert section.startswith("<details><summary>Functions: 2 calls, 1 failed</summary>")
    dom = Dom(section)
    assert [th["scope"] for th in dom.all("th")] == ["col", "col", "col", "row", "row"]
    assert "population_of(city='Ghent', exact=True, year=None)\n" not in dom.text
    for part in ("population_of(city='Ghent', exact=True, year=None)", "272657", "0.2"):
        assert part in dom.text
    assert Dom(calls_section([Made()], folded=False)).all("details") == [{"open": ""}]


def test_a_failed_call_is_told_in_words_and_in_the_color_of_errors() -> None:
    dom = Dom(calls_section([Made(), FAILED, NOT_RUN]))
    assert "failed: KeyError: 'Gent'" in dom.text and "not run: max_steps=3" in dom.text
    assert len(dom.with_class("pplx-failed")) == 1, "what was not run has not failed"
    assert "in full, with tracebacks: answer.tool_calls" in dom.text
    styles = Dom(page.wrap("")).styles
    (rule,) = [line for line in styles.splitlines() if ".pplx-failed" in line]
    assert "--jp-error-color1" in rule and "currentColor" in rule


def test_an_answer_without_calls_has_no_such_section() -> None:
    html = page.answer_page(body_html="<p>So.</p>", sources=[Page(1)])
    assert "Functions" not in html and "<details" not in html
    assert calls_section([]) == "" == calls_text([])


def test_the_first_lines_of_a_table_stay_lines() -> None:
    rows = [f"| {n} |" for n in range(20)]
    section = calls_section([Made(output="\n".join(rows))])
    assert "| 0 |<br>\n| 1 |<br>\n" in section and "| 5 |<br>\n…</td>" in section
    assert "| 6 |" not in section and "in full: answer.tool_calls" in section
    assert "in full" not in calls_section([Made(output="\n".join(rows[:6]))])
    assert "in full" in calls_section([Made(arguments=json.dumps({"a": "x" * 300}))])


def test_many_and_long_calls_make_no_long_page() -> None:
    many = [Made("f" * 10_000, json.dumps({"a": "<" * 5000}), "&" * 100_000)] * 500
    section = calls_section(many)
    assert len(section) < 200_000
    assert "500 calls" in section and "... and 450 more: answer.tool_calls" in section
    assert len(Dom(section).all("tr")) == 51


# --- the terminal -------------------------------------------------------------------------------


def test_a_terminal_gets_a_line_for_each_call_between_sources_and_status(
    sources: list[Page],
) -> None:
    text = answer_text("So.", sources[:1], status="2 s", calls=[Made(), FAILED, NOT_RUN], width=100)
    assert text.split("\n\n")[-2:] == [
        "Functions: 3 calls, 1 failed\n"
        "  population_of(city='Ghent', exact=True, year=None) -> 272657\n"
        "  population_of(city='Ghent', exact=True, year=None) failed: KeyError: 'Gent'\n"
        "  plot() not run: max_steps=3 was reached",
        "2 s",
    ]


def test_a_long_call_leaves_room_for_its_result() -> None:
    long = Made("read", json.dumps({"path": "/data" * 50}), "x" * 500)
    line = calls_text([long], 60).split("\n")[1]
    assert len(line) == 60 and "… -> xxxx" in line and line.endswith("x…")


def test_of_many_calls_a_terminal_lists_the_first() -> None:
    lines = calls_text([Made()] * 20, 80).split("\n")
    assert len(lines) == 10 and lines[-1] == "  (12 more: answer.tool_calls)"
