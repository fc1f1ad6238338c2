"""What several queries found: a table that frame libraries take, and the Sources of each query."""

from __future__ import annotations

import collections.abc
import copy
import datetime as dt
import pickle
from typing import Any

import pandas as pd
import pytest

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.search_results import RESULT_SCHEMA, SearchResults
from ipyperplexity.sources import Source, Sources
from tests.markup.html_reading import Dom

DUNE = Source(1, "Dune", "https://d.example/dune", "d.example", dt.date(2025, 3, 2), snippet="high")
SEA = Source(2, "Sea", "https://s.example/sea", "s.example")
BAY = Source(1, "Bay", "https://s.example/bay", "s.example")
DUNE_AGAIN = Source(2, "Dune", "https://d.example/dune", "d.example", snippet="wide")
RESULTS = SearchResults(
    {"dunes": Sources([DUNE, SEA]), "nothing": Sources(), "bays": Sources([BAY, DUNE_AGAIN])}
)
MIXED = SearchResults(["dunes", "bays"], ungrouped=Sources([DUNE, SEA]))
EMPTY = SearchResults({"nothing": Sources()})
NAMES = ["query", "id", "title", "url", "domain", "published", "updated", "cited", "n_cited", "snippet", "kind"]  # fmt: skip
ALL = pytest.mark.parametrize(
    "results", [RESULTS, MIXED, EMPTY], ids=["grouped", "mixed", "0 rows"]
)


def test_a_query_gives_its_sources_and_keys_go_in_the_order_of_the_list() -> None:
    assert RESULTS["dunes"] == Sources([DUNE, SEA])
    assert RESULTS[" bays\n"][0] is BAY
    assert RESULTS["nothing"] == Sources()
    assert RESULTS.keys() == RESULTS.queries == ("dunes", "nothing", "bays")
    assert [len(found) for found in RESULTS.values()] == [2, 0, 2]
    assert dict(RESULTS) == dict(RESULTS.items())
    assert "bays" in RESULTS and "sea" not in RESULTS and 0 not in RESULTS
    assert len(RESULTS) == 4 and not EMPTY


def test_a_query_that_was_not_searched_for_is_an_error_that_says_which_were() -> None:
    with pytest.raises(KeyError, match="no query 'sea'; there are 'dunes', 'nothing', 'bays'"):
        RESULTS["sea"]
    with pytest.raises(KeyError, match="no query 0"):
        RESULTS[0]  # type: ignore[index]


def test_iterating_gives_rows_whose_query_stands_first() -> None:
    rows = list(RESULTS)
    assert [(row["query"], row["id"], row["title"]) for row in rows] == [
        ("dunes", 1, "Dune"),
        ("dunes", 2, "Sea"),
        ("bays", 1, "Bay"),
        ("bays", 2, "Dune"),
    ]
    assert list(rows[0]) == NAMES == [column.name for column in RESULT_SCHEMA]


def test_all_pages_are_one_table_of_sources_with_each_page_once() -> None:
    assert [(s.id, s.title, s.snippet) for s in RESULTS.sources] == [
        (1, "Dune", "high"),
        (2, "Sea", None),
        (3, "Bay", None),
    ]
    nameless = Sources([Source(1, "A", ""), Source(2, "B", "")])
    assert SearchResults({"a": nameless}).sources["title"] == ["A", "B"]


def test_results_that_cannot_be_told_apart_belong_to_no_query() -> None:
    assert RESULTS.grouped and not MIXED.grouped
    assert [row["query"] for row in MIXED] == [None, None]
    assert MIXED.sources["title"] == ["Dune", "Sea"]
    assert MIXED.keys() == ("dunes", "bays")
    for get in (lambda: MIXED["dunes"], MIXED.values, MIXED.items):
        with pytest.raises(
            KeyError, match=r"did not say which query found what; \.sources has all"
        ):
            get()
    assert "did not say which query found what" in repr(MIXED)
    assert "did not say which query found what" in Dom(MIXED._repr_html_()).text


@ALL
def test_every_frame_library_gets_the_same_types_at_any_number_of_rows(
    results: SearchResults,
) -> None:
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    frame = results.to_pandas()
    assert list(frame.columns) == NAMES
    assert list(frame.dtypes) == list(RESULTS.to_pandas().dtypes)
    assert str(frame["published"].dtype) == "datetime64[us]"
    polars_frame = pl.DataFrame(results)
    assert polars_frame.columns == NAMES
    assert polars_frame.schema["query"] == pl.String and polars_frame.schema["id"] == pl.Int32
    table = pa.table(results)
    assert str(table.schema.field("query").type) == "string"
    found = duckdb.sql("from results")
    assert found.columns == NAMES
    assert (
        len(frame) == polars_frame.height == table.num_rows == len(found.fetchall()) == len(results)
    )
    assert table.to_pylist() == polars_frame.to_dicts() == results.to_dicts()


@pytest.mark.parametrize("results", [RESULTS, MIXED], ids=["grouped", "mixed"])
def test_pandas_takes_the_results_themselves(results: SearchResults) -> None:
    frame = pd.DataFrame(results)
    assert list(frame.columns) == NAMES
    assert frame["title"].tolist() == results.to_pandas()["title"].tolist()
    assert frame["query"].isna().all() == (not results.grouped)
    assert not isinstance(results, collections.abc.Sequence)
    assert not hasattr(results, "__dataframe__")


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
@ALL
def test_copies_are_equal_and_know_the_same(results: SearchResults, copied: Any) -> None:
    twin = copied(results)
    assert twin == results
    assert twin.grouped == results.grouped and twin.sources == results.sources
    assert results != SearchResults({})
    with pytest.raises(TypeError):
        hash(results)


def test_only_sources_are_taken() -> None:
    with pytest.raises(InvalidRequestError, match="type list; allowed: Sources"):
        SearchResults({"dunes": [DUNE]})  # type: ignore[dict-item]


def test_the_display_shows_each_query_with_what_it_found() -> None:
    text = repr(RESULTS)
    assert text.startswith("SearchResults(3 queries, 4 results)\n\ndunes\n[1]")
    assert "nothing\n(nothing found)" in text
    assert text.index("dunes") < text.index("Sea ") < text.index("bays\n") < text.index("Bay")
    assert repr(SearchResults({"a": Sources([DUNE])})).startswith(
        "SearchResults(1 query, 1 result)"
    )
    dom = Dom(RESULTS._repr_html_())
    links = [attributes["href"] for name, attributes in dom.elements if name == "a"]
    assert links == [DUNE.url, SEA.url, BAY.url, DUNE.url]
    assert "nothing found" in dom.text


def test_a_hostile_query_or_page_is_inert_wherever_it_is_shown() -> None:
    hostile = '</p><script>alert(1)</script><img src=x onerror=alert(1)> "\x1b[31m\u202e'
    page = Source(1, hostile, "javascript:alert(1)", hostile, snippet=hostile)
    for results in (
        SearchResults({hostile: Sources([page])}),
        SearchResults([hostile], Sources([page])),
    ):
        html = results._repr_html_()
        assert "<script" not in html and "<img" not in html and "href" not in html
        for shown in (html, repr(results)):
            assert "\x1b" not in shown and "\u202e" not in shown
