"""The Search API: every filter counts, every field has its limits, several queries make one list."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from ipyperplexity.emulator import Behavior, EmulatorServer

from .http_help import Reply, call

QUERY = "with statement"


def search(server: EmulatorServer, /, **fields: Any) -> Reply:
    return call(server, "POST", "/search", {"query": QUERY, **fields})


def results(server: EmulatorServer, /, **fields: Any) -> list[Any]:
    reply = search(server, **fields)
    assert reply.status == 200, reply.body
    found: list[Any] = reply.json()["results"]
    return found


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, True),
        ({"search_domain_filter": ["python.org"]}, True),
        ({"search_domain_filter": ["-python.org", "-example.com", "-example.net"]}, False),
        ({"search_domain_filter": ["example.edu"]}, False),
        ({"search_language_filter": ["en", "de"]}, True),
        ({"search_language_filter": ["de"]}, False),
        ({"search_recency_filter": "hour"}, False),
        ({"search_after_date_filter": "01/01/2000"}, True),
        ({"search_before_date_filter": "01/01/2000"}, False),
        ({"last_updated_after_filter": "01/01/2000"}, True),
        ({"last_updated_before_filter": "01/01/2000"}, False),
        ({"search_mode": "web"}, True),
        ({"search_mode": "academic"}, False),
        ({"search_mode": "sec"}, False),
        ({"search_type": "fast"}, True),
        ({"search_type": "people"}, False),
        ({"country": "BE"}, True),
    ],
)
def test_a_filter_counts(server: EmulatorServer, fields: dict[str, Any], found: bool) -> None:
    assert bool(results(server, **fields)) is found


def test_notes_pass_a_filter_of_languages_as_theirs_is_not_known(tmp_path: Any) -> None:
    from ipyperplexity.emulator import Corpus

    (tmp_path / "Ghent.md").write_text("# Ghent\n\nThe Leie meets the Scheldt in Ghent.\n")
    with EmulatorServer(Corpus.from_folder(tmp_path), pace=0) as server:
        assert results(server, query="Ghent", search_language_filter=["nl"])


def test_several_queries_make_one_list_without_repeats(server: EmulatorServer) -> None:
    first, second = results(server), results(server, query="lambda")
    both = results(server, query=[QUERY, "lambda"])
    urls = [one["url"] for one in both]
    assert urls == list(dict.fromkeys(one["url"] for one in [*first, *second]))


def test_several_queries_can_make_a_list_each(server: EmulatorServer) -> None:
    first, second = results(server), results(server, query="lambda")
    server.behavior = Behavior(search_groups=True)
    assert results(server, query=[QUERY, "lambda"]) == [first, second]
    assert results(server) == first


def test_the_time_of_the_server_is_told_when_asked_for(server: EmulatorServer) -> None:
    assert search(server).json()["server_time"] is None
    told = search(server, display_server_time=True).json()["server_time"]
    assert datetime.fromisoformat(told).tzinfo is not None


def test_snippets_keep_to_their_budgets(server: EmulatorServer) -> None:
    def lengths(**fields: Any) -> list[int]:
        return [len(one["snippet"]) for one in results(server, **fields)]

    assert max(lengths()) > 300 >= max(lengths(search_context_size="medium")) > 150
    assert max(lengths(search_context_size="low")) == 150
    assert max(lengths(max_tokens_per_page=10)) == 40
    assert sum(lengths(max_tokens=50)) == 200


def test_a_search_for_people_may_give_more_results(server: EmulatorServer) -> None:
    assert search(server, max_results=50, search_type="people").status == 200
    assert search(server, max_results=21).status == 422
    assert search(server, max_results=51, search_type="people").status == 422


@pytest.mark.parametrize(
    "fields",
    [
        {"query": None},
        {"query": ""},
        {"query": []},
        {"query": ["a", " "]},
        {"query": ["a"] * 6},
        {"query": 3},
        {"max_results": 0},
        {"max_results": True},
        {"max_tokens": 1_000_001},
        {"max_tokens_per_page": 0},
        {"search_context_size": "huge"},
        {"country": "Belgium"},
        {"country": "1!"},
        {"search_domain_filter": ["a.org"] * 21},
        {"search_domain_filter": ["https://a.org"]},
        {"search_domain_filter": ["a" * 254]},
        {"search_domain_filter": "a.org"},
        {"search_language_filter": ["german"]},
        {"search_recency_filter": "decade"},
        {"search_after_date_filter": "31/12/2024"},
        {"search_mode": "news"},
        {"search_type": "pro"},
        {"search_type": []},
        {"display_server_time": "yes"},
        {"recency": "day"},
    ],
)
def test_a_field_that_does_not_fit_is_unprocessable(
    server: EmulatorServer, fields: dict[str, Any]
) -> None:
    reply = search(server, **fields)
    assert reply.status == 422
    assert reply.json()["detail"][0]["loc"] == ["body", next(iter(fields))]


@pytest.mark.parametrize(
    "fields",
    [
        {"search_recency_filter": "day", "last_updated_before_filter": "01/01/2020"},
        {"search_context_size": "low", "max_tokens": 9},
        {"search_context_size": "low", "max_tokens_per_page": 9},
    ],
)
def test_fields_that_do_not_go_together_are_a_bad_request(
    server: EmulatorServer, fields: dict[str, Any]
) -> None:
    reply = search(server, **fields)
    assert (reply.status, reply.json()["error"]["code"]) == (400, 400)


def test_the_models_are_listed_with_prices_as_recorded(server: EmulatorServer) -> None:
    data = {one["id"]: one for one in call(server, "GET", "/v1/models").json()["data"]}
    luna = data["openai/gpt-6-luna"]
    assert sorted(luna) == ["created", "id", "object", "owned_by", "pricing"]
    assert sorted(luna["pricing"]) == ["cache_read", "input", "output", "unit"]
    assert "cache_write" in data["anthropic/claude-opus-5-5"]["pricing"]
    assert data["demo/offline-search"]["pricing"]["input"] == 0
