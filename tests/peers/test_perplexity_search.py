"""The Search API by the official SDK."""

from __future__ import annotations

from typing import Any

import pytest

from ipyperplexity import Client
from ipyperplexity.emulator import EmulatorServer

from .conftest import KEY, OTHER_QUESTION, QUESTION, assert_is_wholly_typed

perplexity = pytest.importorskip("perplexity", reason="the peer perplexityai is not installed")


@pytest.fixture(scope="module")
def sdk(engine: EmulatorServer) -> Any:
    with perplexity.Perplexity(api_key=KEY, base_url=engine.url, max_retries=0) as client:
        yield client


def urls(found: Any) -> list[str]:
    return [result.url for result in found.results]


def test_one_query_finds_what_ours_finds(sdk: Any, ours: Client) -> None:
    found = sdk.search.create(query=QUESTION, max_results=3)
    assert_is_wholly_typed(found)
    same = ours.search(QUESTION, max_results=3)
    assert [(r.url, r.title, r.snippet) for r in found.results] == [
        (source.url, source.title, source.snippet) for source in same
    ]
    assert len(found.results) == 3


def test_several_queries_give_one_list_with_each_page_once(sdk: Any) -> None:
    alone = [
        urls(sdk.search.create(query=one, max_results=3)) for one in (QUESTION, OTHER_QUESTION)
    ]
    found = sdk.search.create(query=[QUESTION, OTHER_QUESTION], max_results=3)
    assert_is_wholly_typed(found)
    assert urls(found) == list(dict.fromkeys([*alone[0], *alone[1]]))


def test_the_filters_and_budgets_that_it_offers_are_taken(sdk: Any) -> None:
    found = sdk.search.create(
        query=QUESTION,
        country="BE",
        display_server_time=True,
        max_results=2,
        max_tokens=50,
        max_tokens_per_page=20,
        search_after_date_filter="01/01/2000",
        search_domain_filter=["docs.python.org"],
        search_language_filter=["en"],
        search_mode="web",
        search_type="fast",
    )
    assert_is_wholly_typed(found)
    assert found.server_time and len(found.results) == 2
    assert all(url.startswith("https://docs.python.org/") for url in urls(found))
    none = sdk.search.create(query=QUESTION, search_domain_filter=["example.edu"])
    assert none.results == []


def test_what_does_not_fit_is_told_by_field(sdk: Any) -> None:
    with pytest.raises(perplexity.UnprocessableEntityError) as caught:
        sdk.search.create(query=QUESTION, max_results=21)
    assert caught.value.body["detail"][0]["loc"] == ["body", "max_results"]
    with pytest.raises(perplexity.UnprocessableEntityError):
        sdk.search.create(query="")
    with pytest.raises(perplexity.UnprocessableEntityError):
        sdk.search.create(query=[QUESTION] * 6)


def test_filters_that_exclude_each_other_are_a_bad_request(sdk: Any) -> None:
    with pytest.raises(perplexity.BadRequestError, match="cannot be combined"):
        sdk.search.create(
            query=QUESTION, search_recency_filter="week", search_after_date_filter="01/01/2026"
        )
