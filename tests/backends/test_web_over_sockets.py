"""perplexity.ai through the public client: stopping a run, going on in a thread, each refusal."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ipyperplexity import Answer, Client, errors
from ipyperplexity.auth.token_store import load_login, save_login
from ipyperplexity.auth.web_login import WebLogin
from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.events import TextDelta
from ipyperplexity.net.redact import Secret
from tests.net.asking import eventually
from tests.support.raw_server import RawServer, Script, http_response, sse_response
from tests.wire.consumer_streams import completed, frames, page, pending, source_block, text_block

TOKEN = "eyJhbGciOiJkaXIi..5ecre7sessiont0ken.abc.def"
ASK, TERMINATE = "/rest/sse/perplexity_ask", "/rest/sse/perplexity_terminate"
QUESTION = "What is a lambda?"


@pytest.fixture(autouse=True)
def logged_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERPLEXITY_SESSION_TOKEN", TOKEN)


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    with EmulatorServer(pace=0, web_sessions={TOKEN: "ada@example.org"}) as running:
        yield running


def client_for(server: Any, **options: Any) -> Client:
    return Client(**{"backend": "web", "base_url": server.url, "max_retries": 0, **options})


def failure_of(script: Script, **options: Any) -> tuple[errors.PerplexityError, int]:
    """Ask once; return the error, and how many requests it took."""
    with RawServer(script) as server, client_for(server, max_retries=5) as client:
        with pytest.raises(errors.PerplexityError) as raised:
            client.ask("Why?", **options)
        return raised.value, len(server.requests)


# --- stopping -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["interrupt", "cancel", "leave"])
def test_a_stop_ends_the_run_at_the_service_too(server: EmulatorServer, how: str) -> None:
    server.pace = 0.05
    raised = pytest.raises(KeyboardInterrupt) if how == "interrupt" else contextlib.nullcontext()
    with client_for(server) as client:
        with raised, client.stream(QUESTION, model="gpt54") as stream:
            for event in stream:
                if isinstance(event, TextDelta):
                    if how == "leave":
                        break
                    stream.cancel() if how == "cancel" else os.kill(os.getpid(), signal.SIGINT)
        assert stream.answer.status == "stopped"
        assert eventually(lambda: server.terminated)
    assert server.terminated == [stream.answer.id]
    (told,) = [request.json() for request in server.requests if request.path == TERMINATE]
    entry = server.web.entry(stream.answer.id or "")
    assert entry is not None
    assert (told["entry_uuid"], told["context_uuid"]) == (entry.backend_uuid, entry.context_uuid)
    assert told["model_preference"] == "gpt54"
    # Milliseconds since the epoch, not seconds.
    assert abs(told["terminate_requested_at_ms"] / 1000 - stream.answer.created.timestamp()) < 3600


def test_a_run_that_has_ended_is_not_stopped(server: EmulatorServer) -> None:
    with client_for(server) as client:
        client.ask(QUESTION)
    assert eventually(
        lambda: not any(t.name == "ipyperplexity-cancel" for t in threading.enumerate())
    )
    assert [request.path for request in server.requests] == [ASK]


# --- going on in a thread ---------------------------------------------------------------------------


def test_a_follow_up_goes_on_in_its_thread(server: EmulatorServer) -> None:
    with client_for(server) as client:
        first = client.ask(QUESTION)
        client.ask("And a closure?", follow=first)
    sent = [request.json() for request in server.requests]
    assert sent[1]["params"]["last_backend_uuid"] == first.id
    assert sent[1]["query_str"] == "And a closure?"


def test_a_thread_that_the_service_has_forgotten_is_asked_afresh(server: EmulatorServer) -> None:
    with client_for(server) as client:
        first = client.ask(QUESTION)
    with (
        EmulatorServer(pace=0, web_sessions={TOKEN: "ada@example.org"}) as other,
        client_for(other) as client,
        pytest.warns(errors.PerplexityWarning, match="earlier thread is not known"),
    ):
        second = client.ask("And a closure?", follow=first)
        refused, taken = (request.json() for request in other.requests)
    assert second.status == "completed"
    assert refused["params"]["last_backend_uuid"] == first.id
    assert "last_backend_uuid" not in taken["params"]
    assert taken["query_str"].startswith(f"Q: {QUESTION}\nA: ")


def earlier() -> Answer:
    thread = {"last_backend_uuid": "b-1", "read_write_token": "t-1"}
    return Answer("Who?", "Ann.", id="b-1", thread=thread, backend="web", stored=True)


@pytest.mark.parametrize(
    ("reply", "asked"),
    [
        (http_response(403, {}, {}), 2),
        (http_response(401, {}, {}), 1),
        (http_response(403, {"cf-mitigated": "challenge"}, "<html>"), 1),
        (http_response(400, {}, {"error": "no such previous response"}), 1),
    ],
    ids=["403", "401", "challenge", "400"],
)
def test_only_what_may_mean_a_lost_thread_is_asked_again_and_once(reply: Any, asked: int) -> None:
    failure, count = failure_of([reply], follow=earlier())
    assert count == asked
    assert isinstance(failure, errors.PerplexityError) and failure.hint


def test_a_refused_question_without_a_thread_is_asked_once() -> None:
    assert failure_of([http_response(403, {}, {})])[1] == 1


# --- refusals ---------------------------------------------------------------------------------------

PRIVATE = "private protocol"
REFUSALS: dict[str, tuple[int, Any, type[errors.PerplexityError], tuple[str, ...]]] = {
    "400": (400, {"error": "version 2.18 is no longer supported", "status": "failed"},
            errors.InvalidRequestError, ("2.18 is no longer supported", PRIVATE, "-b agent")),
    "422": (422, {"detail": [{"loc": ["body", "params", "mode"], "msg": "Field required", "type": "missing"}]},
            errors.InvalidRequestError, ("Field required", PRIVATE, "-b agent")),
    "404": (404, "nothing here", errors.InvalidRequestError, (PRIVATE, "-b agent")),
    "405": (405, b"", errors.InvalidRequestError, (PRIVATE, "-b agent")),
    "401": (401, {"text": "Session expired", "error_code": "SESSION"}, errors.AuthenticationError,
            ("does not accept the login: Session expired", "%perplexity login --web --force")),
    "403": (403, {}, errors.AuthenticationError, ("does not accept the login", "%perplexity login --web --force")),
    "429": (429, {"detail": "slow"}, errors.RateLimitError, ("slow", "another model")),
    "402": (402, {"detail": "no credits left"}, errors.QuotaError, ("no credits left", "plan")),
    "500": (500, {"detail": "broken"}, errors.ServerError, ("broken",)),
    "challenge": (403, "<html><title>Just a moment...</title>", errors.ChallengeError, ("Cloudflare",)),
}  # fmt: skip


@pytest.mark.parametrize(("status", "body", "kind", "words"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_says_what_helps_on_this_site(
    status: int, body: Any, kind: type[errors.PerplexityError], words: tuple[str, ...]
) -> None:
    headers = {"x-request-id": "r1", "Retry-After": "99"}
    if isinstance(body, str):
        headers["Content-Type"] = "text/html"
    failure, count = failure_of([http_response(status, headers, body)], model="gpt54")
    assert type(failure) is kind and count == 1
    shown = str(failure)
    assert all(word in shown for word in words), shown
    assert "PERPLEXITY" not in shown.replace("PerplexityError", "")
    assert (failure.status_code, failure.request_id, failure.retry_after) == (status, "r1", 99.0)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_login_stays_where_it_is(status: int) -> None:
    save_login(WebLogin(Secret(TOKEN), origin="a test"))
    before = load_login()
    failure, _ = failure_of([http_response(status, {}, {})])
    after = load_login()
    assert isinstance(failure, errors.AuthenticationError)
    assert before is not None and after is not None
    assert after.token is not None and after.token.reveal() == TOKEN
    assert TOKEN not in f"{failure} {failure!r} {failure.answer!r}"


# --- markers ----------------------------------------------------------------------------------------


def test_a_marker_of_a_page_that_is_listed_twice_cites_the_one_that_is_kept() -> None:
    sources = source_block(page("https://a.test/"), page("https://a.test"), page("https://b.test"))
    records = [
        pending(sources, text_block(["It is"], 0)),
        completed(text_block([" so.[2] And [3]."], 1)),
    ]
    with RawServer(sse_response([frames(records)])) as running, client_for(running) as client:
        answer = client.ask("Why?")
    assert answer.text == "It is so.[1] And [3]."
    assert not any("same page" in warning for warning in answer.warnings)
    assert [c.source and c.source.url for c in answer.citations] == [
        "https://a.test/",
        "https://b.test",
    ]
    assert answer.sources["n_cited"] == [1, 1]
