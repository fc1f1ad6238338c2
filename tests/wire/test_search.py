"""A search reaches the service as its fields say, and each page comes back under its own query."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipyperplexity.emulator.corpus import Corpus
from ipyperplexity.emulator.engine import Engine
from ipyperplexity.emulator.search_wire import answer_search
from ipyperplexity.errors import PerplexityError, QuotaError, StreamError
from ipyperplexity.search_query import SEARCH_OPTIONS, SearchQuery
from ipyperplexity.search_results import SearchResults
from ipyperplexity.sources import Source
from ipyperplexity.wire.search import most_usd, read, request

ENGINE = Engine(Corpus.builtin())
ONE = SearchQuery("dunes")
TWO = SearchQuery(["dunes", "sand"])
DUNE = {
    "title": "Dune",
    "url": "https://d.example/dune",
    "snippet": "high",
    "date": "2024-05-01",
    "last_updated": "2025-01-02",
}
SAND = {
    "title": "Sand",
    "url": "https://s.example/sand",
    "snippet": "fine",
    "date": None,
    "last_updated": None,
}


# --- asking --------------------------------------------------------------------------------------

BODIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "max_results": ({"max_results": 7}, {"max_results": 7}),
    "domains": ({"domains": "a.org, -b.com"}, {"search_domain_filter": ["a.org", "-b.com"]}),
    "recency": ({"recency": "week"}, {"search_recency_filter": "week"}),
    "after": ({"after": "2026-03-09"}, {"search_after_date_filter": "03/09/2026"}),
    "before": ({"before": dt.date(987, 6, 5)}, {"search_before_date_filter": "06/05/0987"}),
    "updated_after": ({"updated_after": "2026-03-09"}, {"last_updated_after_filter": "03/09/2026"}),
    "updated_before": ({"updated_before": "2026-03-09"}, {"last_updated_before_filter": "03/09/2026"}),
    "country": ({"country": "be"}, {"country": "BE"}),
    "languages": ({"languages": "NL,fr"}, {"search_language_filter": ["nl", "fr"]}),
    "context": ({"context": "low"}, {"search_context_size": "low"}),
    "max_tokens": ({"max_tokens": 9}, {"max_tokens": 9}),
    "max_tokens_per_page": ({"max_tokens_per_page": 9}, {"max_tokens_per_page": 9}),
    "mode": ({"mode": "academic"}, {"search_mode": "academic"}),
    "search_type": ({"search_type": "fast"}, {"search_type": "fast"}),
    "timeout": ({"timeout": 5}, {}),
    "extra": ({"max_results": 3, "extra": {"max_results": 4, "display_server_time": True}}, {"max_results": 4, "display_server_time": True}),
}  # fmt: skip


@pytest.mark.parametrize(("options", "fields"), BODIES.values(), ids=BODIES)
def test_each_option_is_sent_under_the_service_s_name_and_nothing_else_is(
    options: dict[str, Any], fields: dict[str, Any]
) -> None:
    made = request(SearchQuery.make("dunes", **options))
    assert (made.method, made.path) == ("POST", "/search")
    assert made.body == {"query": "dunes", **fields}
    status, reply = answer_search(json.dumps(made.body).encode(), ENGINE)
    assert status == 200, reply


def test_every_option_is_tried_above() -> None:
    assert {*BODIES} - {"nothing"} == {*SEARCH_OPTIONS}


def test_a_list_is_sent_as_one_request_and_a_list_of_one_as_its_query() -> None:
    assert request(TWO).body == {"query": ["dunes", "sand"]}
    assert request(SearchQuery(["dunes"])).body == {"query": "dunes"}


def test_asking_leaves_the_query_as_it_is() -> None:
    query = SearchQuery("dunes", domains="a.org", extra={"a": 1})  # type: ignore[arg-type]
    body = request(query).body
    assert body is not None
    body["search_domain_filter"].append("b.org")
    body["b"] = 2
    assert query.domains == ("a.org",) and query.extra == {"a": 1}


def test_what_a_search_costs_at_most_is_its_price_for_each_query() -> None:
    assert most_usd(ONE) == 0.005
    assert most_usd(SearchQuery(["a", "b", "c"], search_type="fast")) == pytest.approx(0.003)


# --- one query -----------------------------------------------------------------------------------


def test_the_pages_of_a_query_are_numbered_in_the_service_s_order() -> None:
    reply = {"id": "s-1", "results": [DUNE, SAND], "server_time": None}
    found = read(reply, ONE)["dunes"]
    assert list(found) == [
        Source(1, "Dune", DUNE["url"], "d.example", dt.date(2024, 5, 1), dt.date(2025, 1, 2), snippet="high"),
        Source(2, "Sand", SAND["url"], "s.example", snippet="fine"),
    ]  # fmt: skip
    assert read(reply, ONE).grouped


@pytest.mark.parametrize("results", [[], None, [[]], {}, [None, 3, {}, {"snippet": "no page"}]])
def test_finding_nothing_is_a_table_without_rows(results: Any) -> None:
    found = read({"results": results}, ONE)["dunes"]
    assert len(found) == 0 and not found
    assert read({"results": results}, TWO)["sand"] == found


def test_a_page_that_is_found_twice_with_two_snippets_stays_two_results() -> None:
    found = read({"results": [DUNE, {**DUNE, "snippet": "wide"}]}, ONE)["dunes"]
    assert found["snippet"] == ["high", "wide"]
    assert found["id"] == [1, 2]


def test_what_is_no_page_is_skipped_without_a_gap_in_the_numbers() -> None:
    found = read(
        {"results": [None, {"url": " ", "title": "&#27;\x1b"}, DUNE, "x", {"title": "Untold"}]}, ONE
    )["dunes"]
    assert [(s.id, s.title, s.url) for s in found] == [(1, "Dune", DUNE["url"]), (2, "Untold", "")]


def test_what_no_file_can_hold_is_replaced() -> None:
    (source,) = read(
        {"results": [{"url": "https://a.example", "title": "a\ud800", "snippet": "\udc00b"}]}, ONE
    )["dunes"]
    assert (source.title, source.snippet) == ("a�", "�b")


def test_a_single_query_owns_all_that_came_however_it_is_wrapped() -> None:
    for results in (
        [[DUNE, SAND]],
        {"dunes": [DUNE, SAND]},
        {"other": [DUNE, SAND]},
        [{"query": "Dunes?", "results": [DUNE, SAND]}],
    ):
        for query in (ONE, SearchQuery(["dunes"])):
            assert read({"results": results}, query)["dunes"]["title"] == ["Dune", "Sand"]


# --- several queries -----------------------------------------------------------------------------

GROUPED: dict[str, Any] = {
    "a list each": {"results": [[DUNE], [SAND]]},
    "an object each, in order": {"results": [{"results": [DUNE]}, {"id": "s-2", "results": [SAND]}]},
    "an object each, by name": {"results": [{"query": "sand", "results": [SAND]}, {"query": "dunes", "results": [DUNE]}]},
    "pages that name it": {"results": [{**SAND, "query": "sand"}, {**DUNE, "query": " dunes "}]},
    "an object of lists": {"results": {"sand": [SAND], "dunes": [DUNE]}},
    "an object of replies": {"results": {"dunes": {"results": [DUNE]}, "sand": {"results": [SAND]}}},
    "no wrapping": [{"results": [DUNE]}, {"results": [SAND]}],
}  # fmt: skip


@pytest.mark.parametrize("reply", GROUPED.values(), ids=GROUPED)
def test_each_query_has_its_own_pages_in_whatever_way_the_reply_says_so(reply: Any) -> None:
    results = read(reply, TWO)
    assert results.grouped
    assert results.keys() == ("dunes", "sand")
    assert results["dunes"]["title"] == ["Dune"]
    assert results["sand"]["title"] == ["Sand"]
    assert [source.id for found in results.values() for source in found] == [1, 1]


@pytest.mark.parametrize(
    "results",
    [
        [[DUNE], []],
        {"dunes": [DUNE]},
        {"dunes": [DUNE], "sand": None},
        [{**DUNE, "query": "dunes"}],
    ],
)
def test_a_query_that_found_nothing_is_there_with_no_pages(results: Any) -> None:
    found = read({"results": results}, TWO)
    assert found.grouped and len(found["dunes"]) == 1 and len(found["sand"]) == 0


UNGROUPED: dict[str, Any] = {
    "a flat list": [DUNE, SAND],
    "too few lists": [[DUNE, SAND]],
    "too many lists": [[DUNE], [SAND], []],
    "lists and pages": [[DUNE], SAND],
    "a query that was not asked": {"dunes": [DUNE], "water": [SAND]},
    "some pages name it": [{**DUNE, "query": "dunes"}, SAND],
    "a query that is no text": [{**DUNE, "query": ["dunes"]}, {**SAND, "query": "sand"}],
}


@pytest.mark.parametrize("results", UNGROUPED.values(), ids=UNGROUPED)
def test_no_page_is_given_to_a_query_by_guess(results: Any) -> None:
    found = read({"results": results}, TWO)
    assert not found.grouped
    assert found.keys() == ("dunes", "sand")
    assert found.sources["title"] == ["Dune", "Sand"]
    with pytest.raises(KeyError, match="the service did not say which query found what"):
        found["dunes"]


def test_as_many_flat_pages_as_queries_are_not_taken_for_one_each() -> None:
    assert not read({"results": [DUNE, SAND]}, TWO).grouped


# --- what is no reply ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply", [None, "results", 3, {}, {"id": "s-1"}, {"results": "none"}, {"results": 0}]
)
def test_something_else_than_a_reply_is_an_error_not_an_empty_table(reply: Any) -> None:
    with pytest.raises(StreamError, match="holds no results") as caught:
        read(reply, ONE)
    assert caught.value.hint and "PERPLEXITY_BASE_URL" in caught.value.hint


def test_a_failure_inside_a_good_reply_is_that_failure() -> None:
    with pytest.raises(QuotaError, match="out of credit"):
        read({"error": {"message": "out of credit", "code": "insufficient_quota"}}, ONE)


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(),
        st.sampled_from(["dunes", "sand"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.one_of(
                st.text(max_size=4),
                st.sampled_from(["results", "query", "url", "title", "date", "dunes", "sand"]),
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=30,
)


@given(JSON, st.sampled_from([ONE, TWO]))
def test_whatever_comes_is_read_or_is_one_of_our_errors(reply: Any, query: SearchQuery) -> None:
    for value in (reply, {"results": reply}):
        try:
            found = read(value, query)
        except PerplexityError:
            continue
        assert isinstance(found, SearchResults)
        assert found.queries == query.queries
        assert len(found.to_dicts()) == len(found)
        assert all(source.url or source.title for source in found.sources)


@given(st.lists(st.lists(st.sampled_from([DUNE, SAND]), max_size=4), min_size=2, max_size=5))
def test_lists_in_the_order_of_the_queries_lose_nothing_and_mix_nothing(lists: Any) -> None:
    query = SearchQuery([f"q{n}" for n in range(len(lists))])
    found = read({"results": lists}, query)
    assert [[s.title for s in sources] for sources in found.values()] == [
        [page["title"] for page in pages] for pages in lists
    ]


def test_the_embedded_service_is_understood() -> None:
    query = SearchQuery("What is a lambda?", max_results=2)
    status, reply = answer_search(json.dumps(request(query).body).encode(), ENGINE)
    assert status == 200
    found = read(reply, query)[query.queries[0]]
    assert found["id"] == [1, 2]
    assert found["domain"] == ["docs.python.org"] * 2
    assert all(found["snippet"])
