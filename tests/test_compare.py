"""Answers side by side: shared and unique pages, lengths, support, cost, time."""

from __future__ import annotations

import pickle
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.answer import Answer, Usage
from ipyperplexity.batch.answer_table import answers
from ipyperplexity.batch.compare import COMPARISON_SCHEMA, Comparison, compare
from ipyperplexity.batch.page_key import host_of, page_key
from ipyperplexity.citations import count_citations
from ipyperplexity.errors import InvalidRequestError, ServerError
from ipyperplexity.sources import Source, Sources
from tests.markup.html_reading import Dom

NAMES = [column.name for column in COMPARISON_SCHEMA]


def answer(text: str, *urls: str, **more: Any) -> Answer:
    sources = Sources(
        Source(n, f"T{n}", url, url.split("/")[2].removeprefix("www.")) for n, url in enumerate(urls, 1)
    )  # fmt: skip
    return Answer("Which dune?", text, sources=count_citations(text, sources), **more)


LOW = answer(
    "Pilat is it.[1] It moves.",
    "https://www.a.example/dune/",
    "https://b.example/x?utm_source=p",
    "https://a.example/only-low",
    model="low",
    elapsed=1.5,
    usage=Usage(total_tokens=300, cost_usd=0.002),
)
HIGH = answer(
    "Pilat.[1][2]",
    "http://a.example/dune#top",
    "https://b.example/x",
    "https://c.example",
    model="high",
    elapsed=9.0,
    usage=Usage(total_tokens=9000, cost_usd=0.25),
)
FAILED = Answer("Which dune?", "", status="failed", error=ServerError("down"))
BOTH = compare([LOW, HIGH])


def test_two_answers_give_one_row_each() -> None:
    frame = BOTH.to_pandas().set_index("label")
    assert list(frame.index) == ["low", "high"]
    expected = {
        "question": ["Which dune?"] * 2,
        "status": ["completed"] * 2,
        "characters": [25, 12],
        "words": [5, 1],
        "sentences": [2, 1],
        "unsupported_sentences": [1, 0],
        "n_sources": [3, 3],
        "n_cited": [1, 2],
        "n_domains": [2, 3],
        "shared_domains": [2, 2],
        "unique_domains": [0, 1],
        "shared_urls": [2, 2],
        "unique_urls": [1, 1],
        "cost_usd": [0.002, 0.25],
        "elapsed": [1.5, 9.0],
        "total_tokens": [300, 9000],
    }
    assert {name: frame[name].tolist() for name in expected} == expected
    assert list(BOTH.to_dicts()[0]) == NAMES


def test_shared_and_unique_pages_are_listed_as_the_answer_gives_them() -> None:
    assert BOTH.shared_urls == ["https://www.a.example/dune/", "https://b.example/x?utm_source=p"]
    assert BOTH.shared_domains == ["a.example", "b.example"]
    assert BOTH.unique_urls(0) == BOTH.unique_urls("low") == ["https://a.example/only-low"]
    assert BOTH.unique_urls(-1) == BOTH.unique_urls("high") == ["https://c.example"]
    assert BOTH.unique_domains("low") == [] and BOTH.unique_domains(1) == ["c.example"]


def test_of_three_answers_shared_means_all_and_unique_means_no_other() -> None:
    third = answer("So.", "https://c.example/", "https://d.example", model="fast")
    three = compare([LOW, HIGH, third])
    assert three.shared_urls == [] and three.shared_domains == []
    assert three.unique_urls("high") == []
    assert three.unique_urls("low") == ["https://a.example/only-low"]
    assert three.unique_domains("fast") == ["d.example"]


def test_the_same_answer_twice_shares_all_and_has_two_labels() -> None:
    twice = compare([LOW, LOW, LOW])
    assert twice.labels == ("low", "low (2)", "low (3)")
    assert twice["shared_urls"] == [3, 3, 3] and twice["unique_urls"] == [0, 0, 0]


def test_one_answer_shares_nothing_and_none_gives_an_empty_table() -> None:
    one, none = compare([LOW]), compare([])
    assert (one["shared_urls"], one["unique_urls"]) == ([0], [3])
    assert one.shared_domains == none.shared_urls == []
    assert len(none) == 0 and none.to_dicts() == []


def test_failed_answers_are_compared_as_far_as_they_came() -> None:
    table = compare([LOW, FAILED])
    assert table.labels == ("low", "answer 2")
    row = table.to_dicts()[1]
    assert row["status"] == "failed" and row["cost_usd"] is None
    assert (row["characters"], row["sentences"], row["n_sources"]) == (0, 0, 0)
    assert table.shared_urls == []


def test_labels_are_given_or_come_from_the_models() -> None:
    assert compare([LOW, HIGH], labels=["a", "b"]).labels == ("a", "b")
    assert compare(answers([LOW, HIGH])).labels == ("low", "high")
    tricky = [Answer("q", "t", model=m) for m in ("a", "a (2)", "a", "a", None)]
    assert compare(tricky).labels == ("a", "a (2)", "a (3)", "a (4)", "answer 5")
    assert compare(iter([LOW]), labels=iter(["x"]))["label"] == ["x"]


@pytest.mark.parametrize("given", [LOW, "text", None, 3, [LOW, "text"], {"a": LOW}, LOW.sources])
def test_only_answers_are_compared(given: Any) -> None:
    with pytest.raises(InvalidRequestError, match=r"answers: .*allowed: (a list of )?Answers") as e:
        compare(given)
    assert e.value.field == "answers"


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"], "got 1 for 2 answers"),
        (["a", "b", "c"], "got 3 for 2 answers"),
        (["a", "a"], "got 'a' twice"),
        (["a", 2], "item 1 is 2"),
        (["a", " "], "item 1 is ' '"),
        ("ab", "got a value of type str"),
        (HIGH, "got a value of type Answer|item 0 is Source"),
        (3, "got a value of type int"),
    ],
)
def test_labels_that_do_not_fit_are_refused(labels: Any, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"labels: ({message}).*; allowed: ") as e:
        compare([LOW, HIGH], labels)
    assert e.value.field == "labels"


@pytest.mark.parametrize("which", [2, -3, "medium", None, 1.0])
def test_an_answer_that_is_not_there_is_named_with_those_that_are(which: Any) -> None:
    with pytest.raises(InvalidRequestError, match="'low', 'high'") as e:
        BOTH.unique_urls(which)
    assert e.value.field == "which"


# --- what makes two addresses one page ---------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/b?x=1",
        "http://a.example/b?x=1",
        "HTTPS://WWW.A.Example/b?x=1",
        "https://a.example:443/b?x=1",
        "https://a.example./b/?x=1",
        "https://a.example/b/?x=1#part",
        "https://a.example/b?utm_source=p&x=1&UTM_Medium=q",
        " https://user@a.example/b?x=1 ",
    ],
)
def test_spellings_of_one_page_are_one(url: str) -> None:
    assert page_key(url) == "//a.example/b?x=1"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://a.example/b", "https://a.example/c"),
        ("https://a.example/b", "https://a.example/B"),
        ("https://a.example/?id=1", "https://a.example/?id=2"),
        ("https://a.example:8080/", "https://a.example/"),
        ("https://a.example/", "https://m.a.example/"),
        ("ftp://a.example/", "https://a.example/"),
        ("https://[bad", "https://[worse"),
        ("a.example", "b.example"),
    ],
)
def test_other_pages_stay_others(one: str, other: str) -> None:
    assert page_key(one) != page_key(other)


@given(st.text("htps:/w.?&#=aA@[]1\x00 \u2100", max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_text_has_a_key(text: str) -> None:
    for url in (text, f"https://{text}", f"http://a.example{text}"):
        assert isinstance(page_key(url), str) and isinstance(host_of(url), str)
        assert page_key(url) == page_key(f" {url} ")
    path = text.replace("?", "").replace("#", "").strip()
    written = page_key(f"https://a.example/x{path}")
    assert page_key(f"http://www.a.example/x{path}/?utm_source=q#end") == written


URLS = st.sampled_from([f"https://{host}.example/{path}" for host in "abc" for path in "xy"])


@given(st.lists(st.lists(URLS, max_size=5), max_size=4))
@settings(max_examples=100, deadline=None)
def test_shared_and_unique_never_overlap(pages: list[list[str]]) -> None:
    table = compare([answer("So.", *urls) for urls in pages])
    for position, urls in enumerate(pages):
        unique = table.unique_urls(position)
        assert set(unique) == set(urls) - {
            u for i, p in enumerate(pages) if i != position for u in p
        }
        assert not set(unique) & set(table.shared_urls)
        assert table["unique_urls"][position] == len(unique)
    if len(pages) > 1:
        assert set(table.shared_urls) == set.intersection(*map(set, pages))


# --- as a table --------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [BOTH, compare([])], ids=["2 rows", "0 rows"])
def test_every_frame_library_gets_the_same_types_at_any_number_of_rows(table: Comparison) -> None:
    pl, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    frame = table.to_pandas()
    assert list(frame.columns) == NAMES
    assert list(frame.dtypes) == list(BOTH.to_pandas().dtypes)
    assert pl.DataFrame(table).schema["unique_urls"] == pl.Int32
    rows = table
    assert duckdb.sql("from rows").columns == NAMES
    assert len(rows) == len(frame)


def test_pandas_takes_the_comparison_itself_and_it_can_be_pickled() -> None:
    assert pd.DataFrame(BOTH)["label"].tolist() == ["low", "high"]
    assert pickle.loads(pickle.dumps(BOTH)).to_dicts() == BOTH.to_dicts()
    assert BOTH[0] is LOW and BOTH["words"] == [5, 1] and len(BOTH) == 2


def test_the_display_is_a_table_with_named_rows_and_columns() -> None:
    dom = Dom(BOTH._repr_html_())
    assert [head.get("scope") for head in dom.all("th")].count("row") == 2
    assert {head.get("scope") for head in dom.all("th")} == {"row", "col"}
    assert "Which dune?" in dom.text
    lines = repr(BOTH).splitlines()
    assert lines[0] == "Comparison(2 answers; all share 2 domains, 2 URLs)"
    assert lines[1].split()[:3] == ["label", "words", "sentences"]
    assert lines[2].startswith("low    5      2 ")
    assert "9,000" in lines[3] and "9,000" in dom.text
    assert repr(compare([])).startswith("Comparison(0 answers")


def test_the_display_says_the_status_when_an_answer_did_not_end_well() -> None:
    for shown in (repr(compare([LOW, FAILED])), compare([LOW, FAILED])._repr_html_()):
        assert "status" in shown and "failed" in shown and "completed" in shown
    assert "status" not in Dom(BOTH._repr_html_()).text


def test_hostile_labels_and_questions_are_inert_and_long_tables_are_capped() -> None:
    hostile = "<script>alert(1)</script>\x1b[31m\u202e" * 9
    many = compare([Answer(hostile, "t", model=hostile)] * 30)
    html = many._repr_html_()
    assert not Dom(html).all("script")
    assert html.count("<tr>") == 21
    for shown in (html, repr(many)):
        assert "\x1b" not in shown and "\u202e" not in shown
        assert "10 more; to_pandas() has all" in shown
    assert len(repr(many)) < 6000
