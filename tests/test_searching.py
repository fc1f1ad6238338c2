"""Searching without an answer: one query, several, what reaches the service, and what it costs."""

from __future__ import annotations

import datetime as dt
import json
import os
import pickle
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import ipyperplexity as pplx
from ipyperplexity import Client, errors, searching, spending
from ipyperplexity.emulator import Behavior, EmulatorServer
from ipyperplexity.search_results import SearchResults
from ipyperplexity.sources import Sources
from ipyperplexity.store import ledger as ledger_module
from ipyperplexity.store.ledger import Ledger
from ipyperplexity.stored_settings import save_setting
from tests.auth.signing_in import KEY, shown
from tests.net.asking import eventually
from tests.support.raw_server import (
    HoldOpen,
    RawConnection,
    RawRequest,
    RawServer,
    http_response,
    in_turn,
)

QUERIES = ["lambda expression", "with statement"]


@pytest.fixture(autouse=True)
def afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that has just started, of a user who has never searched."""
    monkeypatch.setattr(ledger_module, "_ledger", Ledger())
    monkeypatch.setattr(spending, "_account", spending._Account())
    monkeypatch.setattr(searching, "_mixing", set())


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    with EmulatorServer(pace=0, api_key=KEY) as server:
        yield server


def client_for(server: Any, **options: Any) -> Client:
    return Client(**{"api_key": KEY, "base_url": server.url, "max_retries": 0, **options})


def page(name: str) -> dict[str, Any]:
    return {"title": name, "url": f"https://x.example/{name}", "snippet": f"about {name}"}


def found(*pages: Any) -> list[Any]:
    return [http_response(200, {}, {"id": "s1", "results": list(pages)})]


def echo(request: RawRequest, connection: RawConnection) -> None:
    """Find one page for each query, in one flat list, as the service does for a list."""
    query = request.json["query"]
    names = query if isinstance(query, list) else [query]
    connection.send(http_response(200, {}, {"results": [page(name) for name in names]}))


def queries_sent(server: RawServer) -> list[Any]:
    return [request.json["query"] for request in server.requests]


# --- one query ------------------------------------------------------------------------------------


def test_a_query_gives_the_pages_as_a_table(server: EmulatorServer) -> None:
    results = client_for(server).search("lambda expression", max_results=3)
    assert isinstance(results, Sources) and len(results) == 3
    assert results["id"] == [1, 2, 3]
    assert all(url.startswith("https://docs.python.org/") for url in results["url"])
    assert all(results["title"]) and all(results["snippet"])
    assert list(results.to_pandas()["url"]) == results["url"]
    (request,) = server.requests
    assert (request.method, request.path, request.authorized) == ("POST", "/search", True)
    assert request.json() == {"query": "lambda expression", "max_results": 3}


def test_the_module_and_the_demo_search_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYPERPLEXITY_BACKEND", "demo")
    results = pplx.search("lambda expression", max_results=2)
    assert isinstance(results, Sources) and len(results) == 2
    several = pplx.search(QUERIES, max_results=2)
    assert isinstance(several, SearchResults) and several.queries == tuple(QUERIES)


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/gateway/v1"])
def test_the_address_may_end_where_it_likes(tail: str) -> None:
    with RawServer(found(page("a"))) as server:
        client_for(server, base_url=server.url + tail).search("dunes")
    assert server.requests[0].path == tail.rstrip("/") + "/search"


def test_nothing_found_is_an_empty_table() -> None:
    with RawServer(found()) as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(client_for(server).search("dunes")) == 0


@pytest.mark.parametrize("backend", ["agent", "chat"])
def test_a_gateway_can_be_searched_as_well(backend: str) -> None:
    with RawServer(found(page("a"))) as server:
        results = client_for(server, backend=backend).search("dunes")
    assert results["url"] == ["https://x.example/a"]
    assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"


# --- several queries ------------------------------------------------------------------------------


def test_a_list_is_one_request_whose_results_are_kept_by_query(server: EmulatorServer) -> None:
    server.behavior = Behavior(search_groups=True)
    client = client_for(server)
    results = client.search(QUERIES, max_results=2)
    assert len(server.requests) == 1 and server.requests[0].json()["query"] == QUERIES
    assert results.queries == tuple(QUERIES)
    for query in QUERIES:
        assert results[query] == client.search(query, max_results=2)
    assert list(results.to_pandas().columns[:3]) == ["query", "id", "title"]


def test_a_list_of_one_is_asked_as_that_query_and_is_kept_by_query(
    server: EmulatorServer,
) -> None:
    results = client_for(server).search(["lambda expression"], max_results=2)
    assert isinstance(results, SearchResults) and len(results["lambda expression"]) == 2
    assert [request.json()["query"] for request in server.requests] == ["lambda expression"]


def test_a_reply_that_mixes_the_queries_is_asked_for_one_by_one() -> None:
    with RawServer(echo) as server, client_for(server) as client, warnings.catch_warnings():
        warnings.simplefilter("error")
        results = client.search(["dunes", "sand"])
        assert queries_sent(server) == [["dunes", "sand"], "dunes", "sand"]
        assert [results[query]["title"] for query in ("dunes", "sand")] == [["dunes"], ["sand"]]
        # What this address does with a list is known by now: it is not paid for again.
        client.search(["sea", "salt"])
        assert queries_sent(server)[3:] == ["sea", "salt"]


def test_an_address_that_mixes_says_nothing_about_another() -> None:
    grouped = [http_response(200, {}, {"results": [[page("dunes")], [page("sand")]]})]
    with RawServer(echo) as mixing, RawServer(grouped) as other:
        client_for(mixing).search(["dunes", "sand"])
        results = client_for(other).search(["dunes", "sand"])
    assert queries_sent(other) == [["dunes", "sand"]]
    assert results["sand"]["title"] == ["sand"]


def test_the_options_go_along_with_each_query() -> None:
    with RawServer(echo) as server:
        client_for(server).search(["dunes", "sand"], recency="week", max_results=4)
    assert len(server.requests) == 3
    for request in server.requests:
        assert (request.json["search_recency_filter"], request.json["max_results"]) == ("week", 4)


def test_what_was_found_before_a_failure_is_kept_with_a_warning() -> None:
    mixed, failing = found(page("a"), page("b")), [http_response(500, {}, {})]
    script = in_turn(mixed, found(page("a")), found(page("b")), found(page("c")), failing)
    with RawServer(script) as server, client_for(server) as client:
        client.search(["x", "y"])  # now its way with lists is known
        with pytest.warns(errors.PerplexityWarning, match="No results for 'sand'") as caught:
            results = client.search(["dunes", "sand"])
    assert caught[0].filename == __file__
    assert results["dunes"]["title"] == ["c"] and len(results["sand"]) == 0


def test_a_mixed_reply_is_kept_when_nothing_better_comes() -> None:
    script = in_turn(found(page("a"), page("b")), [http_response(429, {}, {})])
    with (
        RawServer(script) as server,
        pytest.warns(
            errors.PerplexityWarning, match="which query found what, and asking"
        ) as caught,
    ):
        results = client_for(server).search(["dunes", "sand"])
    assert caught[0].filename == __file__
    assert not results.grouped and results.sources["title"] == ["a", "b"]
    with pytest.raises(KeyError):
        results["dunes"]


def test_when_the_first_of_several_fails_that_is_the_error() -> None:
    script = in_turn(found(page("a"), page("b")), found(page("a")), found(page("b")), [http_response(500, {}, {})])  # fmt: skip
    with RawServer(script) as server, client_for(server) as client:
        client.search(["x", "y"])
        with pytest.raises(errors.ServerError):
            client.search(["dunes", "sand"])
        assert len(server.requests) == 4


# --- options --------------------------------------------------------------------------------------

DAY = dt.date(2026, 3, 9)
FILTERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "sites": ({"domains": ["python.org", "-x.com"]}, {"search_domain_filter": ["python.org", "-x.com"]}),
    "recency": ({"recency": "month"}, {"search_recency_filter": "month"}),
    "published": ({"after": DAY, "before": "2026-04-01"}, {"search_after_date_filter": "03/09/2026", "search_before_date_filter": "04/01/2026"}),
    "changed": ({"updated_after": DAY, "updated_before": DAY}, {"last_updated_after_filter": "03/09/2026", "last_updated_before_filter": "03/09/2026"}),
    "country": ({"country": "be"}, {"country": "BE"}),
    "languages": ({"languages": "nl, fr"}, {"search_language_filter": ["nl", "fr"]}),
    "context": ({"context": "low"}, {"search_context_size": "low"}),
    "text": ({"max_tokens": 900, "max_tokens_per_page": 90}, {"max_tokens": 900, "max_tokens_per_page": 90}),
    "mode": ({"mode": "academic"}, {"search_mode": "academic"}),
    "kind": ({"search_type": "people", "max_results": 50}, {"search_type": "people", "max_results": 50}),
    "a question's names": ({"limit": 3, "language": "nl"}, {"max_results": 3, "search_language_filter": ["nl"]}),
    "raw fields": ({"extra": {"display_server_time": True}}, {"display_server_time": True}),
}  # fmt: skip


@pytest.mark.parametrize(("options", "body"), FILTERS.values(), ids=FILTERS)
def test_a_filter_reaches_the_service_which_takes_it(
    options: dict[str, Any], body: dict[str, Any], server: EmulatorServer
) -> None:
    client_for(server).search("lambda expression", **options)
    assert server.requests[0].json() == {"query": "lambda expression", **body}


@pytest.mark.parametrize(
    ("query", "options", "field"),
    [
        ("dunes", {"recency": "day", "after": DAY}, "recency"),
        ("dunes", {"recency": "day", "before": DAY}, "recency"),
        ("dunes", {"recency": "day", "updated_after": DAY}, "recency"),
        ("dunes", {"recency": "day", "updated_before": "2026-01-01"}, "recency"),
        ("dunes", {"context": "low", "max_tokens": 5}, "context"),
        ("dunes", {"max_results": 21}, "max_results"),
        ("dunes", {"recencyy": "day"}, "recencyy"),
        ("dunes", {"model": "low"}, "model"),
        (" ", {}, "query"),
        ([], {}, "query"),
        (list("abcdef"), {}, "query"),
    ],
)
def test_what_the_service_would_refuse_is_refused_before_anything_is_sent(
    query: Any, options: dict[str, Any], field: str, server: EmulatorServer
) -> None:
    client = client_for(server)
    with pytest.raises(errors.InvalidRequestError) as raised:
        client.search(query, **options)
    assert raised.value.field == field
    assert server.requests == [] and len(client.usage()) == 0


def test_options_that_are_none_are_not_given(server: EmulatorServer) -> None:
    client_for(server).search("lambda", recency=None, domains=None, max_results=None)
    assert server.requests[0].json() == {"query": "lambda"}


def test_stored_defaults_of_questions_hold_for_searches_where_they_can(
    server: EmulatorServer,
) -> None:
    for name, value in {"recency": "week", "limit": 4, "max_tokens": 100, "model": "high", "language": "nl"}.items():  # fmt: skip
        save_setting(name, value)
    client = client_for(server)
    client.search("lambda", limit=None, recency=None)
    client.search("lambda", max_results=2, after=DAY)
    bodies = [request.json() for request in server.requests]
    assert bodies[0] == {"query": "lambda", "search_recency_filter": "week", "max_results": 4, "search_language_filter": ["nl"]}  # fmt: skip
    assert bodies[1] == {"query": "lambda", "max_results": 2, "search_after_date_filter": "03/09/2026", "search_language_filter": ["nl"]}  # fmt: skip


# --- what it costs --------------------------------------------------------------------------------


def test_a_search_is_in_the_ledger_with_its_documented_price() -> None:
    with RawServer(found(page("a"))) as server, client_for(server) as client:
        client.search("dunes\nof Pilat")
        client.search(["dunes"], search_type="fast")
        table = client.usage()
    assert table["kind"] == ["search", "search"]
    assert table["question"] == ["dunes of Pilat", "dunes"]
    assert table["status"] == ["completed", "completed"]
    assert table["cost_usd"] == [0.005, 0.001]
    assert table["searches"] == [1, 1]
    assert spending.spent() == pytest.approx(0.006)


def test_a_failed_search_is_in_the_ledger_and_costs_nothing() -> None:
    with RawServer([http_response(401, {}, {})]) as server, client_for(server) as client:
        with pytest.raises(errors.AuthenticationError):
            client.search("dunes")
        (entry,) = client.usage()
    assert (entry.status, entry.cost_usd) == ("failed", 0.0)
    assert spending.spent() == 0.0


def test_a_search_that_nobody_knows_the_end_of_counts_its_price() -> None:
    with RawServer([HoldOpen()]) as server, client_for(server, budget=1.0) as client:
        with pytest.raises(errors.RequestTimeout):
            client.search(["dunes", "sand"], timeout=0.3)
        (entry,) = client.usage()
    assert (entry.status, entry.cost_usd) == ("failed", None)
    assert spending.spent() == pytest.approx(0.01)


def test_the_demo_costs_nothing() -> None:
    client = Client(backend="demo", budget=0.0)
    client.search("lambda")
    assert client.usage()["cost_usd"] == [0.0]


@pytest.mark.parametrize("by", ["argument", "file"])
def test_a_search_that_would_pass_the_budget_is_not_sent(by: str) -> None:
    if by == "file":
        save_setting("budget", 0.012)
    with RawServer(echo) as server:
        client = client_for(server, **({"budget": 0.012} if by == "argument" else {}))
        client.search("dunes")
        client.search("sand")
        with pytest.raises(errors.BudgetError) as raised:
            client.search("sea")
        assert queries_sent(server) == ["dunes", "sand"]
    assert "search" in raised.value.message and "not sent" in raised.value.message
    assert spending.spent() == pytest.approx(0.01)


def test_a_list_counts_once_for_each_query() -> None:
    with RawServer(echo) as server:
        with pytest.raises(errors.BudgetError):
            client_for(server, budget=0.009).search(["dunes", "sand"])
        assert server.requests == []


def test_a_budget_that_ends_among_several_keeps_what_was_found() -> None:
    with (
        RawServer(echo) as server,
        pytest.warns(errors.PerplexityWarning, match="It was not sent"),
    ):
        # The list, and one of its two queries again.
        results = client_for(server, budget=0.017).search(["dunes", "sand"])
        assert queries_sent(server) == [["dunes", "sand"], "dunes"]
    assert results.sources["title"] == ["dunes", "sand"]


# --- failures -------------------------------------------------------------------------------------

REPLIES: dict[str, tuple[int, Any, type[errors.PerplexityError], str]] = {
    "401": (401, {"error": {"message": "bad key", "type": "invalid_api_key"}}, errors.AuthenticationError, "bad key"),
    "402": (402, {"error": {"message": "no credits"}}, errors.QuotaError, "no credits"),
    "422": (422, {"detail": [{"loc": ["body", "country"], "msg": "bad", "type": "x"}]}, errors.InvalidRequestError, "country: bad"),
    "429": (429, {"error": "slow"}, errors.RateLimitError, "slow"),
    "500": (500, "", errors.ServerError, "HTTP 500"),
    "a page": (200, "<html><title>Welcome</title></html>", errors.StreamError, "instead"),
    "a browser check": (403, "<html><title>Just a moment...</title></html>", errors.ChallengeError, "Cloudflare"),
    "no results": (200, {"answer": "x"}, errors.StreamError, "no results"),
    "a failure": (200, {"error": {"message": "on fire"}}, errors.ServerError, "on fire"),
}  # fmt: skip


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_a_search_that_fails_is_that_error(
    reply: tuple[int, Any, type[errors.PerplexityError], str],
) -> None:
    status, body, kind, words = reply
    with RawServer([http_response(status, {}, body)]) as server:
        with pytest.raises(errors.PerplexityError) as raised:
            client_for(server).search("dunes")
        assert len(server.requests) == 1
    assert type(raised.value) is kind and words in raised.value.message
    assert raised.value.hint


def test_what_may_pass_is_tried_again() -> None:
    busy = [http_response(429, {"retry-after-ms": "1"}, {})]
    with RawServer(in_turn(busy, busy, found(page("a")))) as server:
        results = client_for(server, max_retries=2).search("dunes")
        assert len(server.requests) == 3
    assert len(results) == 1


@pytest.mark.parametrize(
    ("made", "asked"), [({}, {"timeout": 0.3}), ({"timeout": 0.3}, {})], ids=["search", "client"]
)
def test_a_search_has_a_time_limit(made: dict[str, float], asked: dict[str, float]) -> None:
    with RawServer([HoldOpen()]) as server, pytest.raises(errors.RequestTimeout, match=r"0\.3 s"):
        client_for(server, **made).search("dunes", **asked)


def test_without_a_key_nothing_is_sent() -> None:
    with RawServer(echo) as server:
        with pytest.raises(errors.MissingCredentialError):
            Client(base_url=server.url).search("dunes")
        assert server.requests == []


def test_the_web_backend_has_no_search_and_says_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PERPLEXITY_SESSION_TOKEN", "eyJ-a-login")
    monkeypatch.setenv("PERPLEXITY_API_KEY", KEY)
    with RawServer(echo) as server:
        monkeypatch.setenv("PERPLEXITY_BASE_URL", server.url)
        with pytest.raises(errors.ConfigurationError, match="API key") as raised:
            Client(backend="web", base_url=server.url).search("dunes")
        assert server.requests == []
    assert "backend='agent'" in (raised.value.hint or "")


def test_an_interrupt_ends_a_search_and_is_in_the_ledger() -> None:
    reached = threading.Event()

    def script(request: RawRequest, connection: RawConnection) -> None:
        reached.set()
        connection.play(HoldOpen())

    def is_waiting() -> bool:
        frame = sys._current_frames()[threading.main_thread().ident or 0]
        names = [f.f_code.co_name for f, _ in traceback.walk_stack(frame)]
        return "head" in names  # of the reply

    def interrupt() -> None:
        assert reached.wait(5) and eventually(is_waiting)
        os.kill(os.getpid(), signal.SIGINT)

    with RawServer(script) as server, client_for(server, budget=1.0) as client:
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(errors.Interrupted):
            client.search("dunes")
        thread.join()
        assert server.wait_for_disconnect()
        assert client.usage()["status"] == ["failed"]


@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_a_service_that_repeats_the_key_does_not_make_us_show_it(status: int) -> None:
    body = {"error": {"message": f"no such key: {KEY}", "code": KEY}}
    with RawServer([http_response(status, {"x-request-id": KEY}, body)]) as server:
        client = client_for(server)
        with pytest.raises(errors.PerplexityError) as raised:
            client.search("dunes")
    assert "no such key: ***" in raised.value.message
    assert KEY not in shown(raised.value) and KEY.encode() not in pickle.dumps(raised.value)


def test_a_key_in_a_query_is_in_no_ledger() -> None:
    with RawServer(found(page("a"))) as server, client_for(server) as client:
        client.search(f"whose is {KEY}")
        assert json.dumps(client.usage()["question"]) == '["whose is ***"]'
