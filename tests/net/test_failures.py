"""Each way in which the service or the network fails has its error, its next step, its retries."""

from __future__ import annotations

import email.utils
import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import requests

from ipyperplexity import Client, errors
from ipyperplexity.emulator import FAULTS, Behavior, EmulatorServer
from ipyperplexity.events import Event, Retrying, Started, TextDelta
from tests.net.asking import KEY, SOURCES, client_for, eventually, readers
from tests.support.raw_server import (
    Close,
    HoldOpen,
    RawConnection,
    RawRequest,
    RawServer,
    Reset,
    Script,
    Wait,
    agent_stream,
    http_head,
    http_response,
    in_turn,
    sse_response,
)

GOOD = sse_response(agent_stream("It is so.[1]", SOURCES))
CHALLENGE = (
    "<!DOCTYPE html><title>Just a moment...</title><script src=/cdn-cgi/challenge-platform/x>"
)


def envelope(message: str, word: Any = None, code: Any = None, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": word, "code": code, **more}}


def failure_of(script: Script, **options: Any) -> errors.PerplexityError:
    """Ask once; return the error. Whatever it is, the client stays usable and holds an answer."""
    with RawServer(script) as server, client_for(server, **options) as client:
        with pytest.raises(errors.PerplexityError) as raised:
            client.ask("Why?")
        assert client.last is not None and client.last is raised.value.answer
        assert client.last.status == "failed"
    assert raised.value.hint, "every failure says what to do next"
    assert eventually(lambda: not readers())
    return raised.value


# --- what the service says ----------------------------------------------------------------------

HTML_401 = "<html><head><title>401 Authorization Required</title></head><center>openresty</center>"
REFUSALS: dict[str, tuple[int, Any, type[errors.PerplexityError], str]] = {
    "400": (400, envelope("max steps must be at least 1", "invalid_request", 400, param="max_steps"),
            errors.InvalidRequestError, "max steps must be at least 1"),
    "400 model": (400, envelope("no such model", "invalid_model"), errors.InvalidRequestError, "no such model"),
    "400 code as text": (400, envelope("no", None, "invalid_parameter"), errors.InvalidRequestError, "no"),
    "400 bare": (400, {"error": "bad thing"}, errors.InvalidRequestError, "bad thing"),
    "400 message": (400, {"message": "bad thing"}, errors.InvalidRequestError, "bad thing"),
    "400 empty": (400, b"", errors.InvalidRequestError, "refused"),
    "400 nulls": (400, {"error": None, "message": None, "detail": None}, errors.InvalidRequestError, "refused"),
    "401": (401, envelope("Invalid API key provided.", "invalid_api_key", 401), errors.AuthenticationError, "Invalid API key"),
    "401 html": (401, HTML_401, errors.AuthenticationError, "401 Authorization Required"),
    "401 credit": (401, envelope("You have no credit left"), errors.QuotaError, "credit"),
    "402": (402, b"", errors.QuotaError, "no credit"),
    "402 words": (402, envelope("Please pay", "whatever"), errors.QuotaError, "Please pay"),
    "403": (403, envelope("You may not", "forbidden", 403), errors.AuthenticationError, "You may not"),
    "403 retired": (403, envelope("Sonar is now the Agent API", "chat_completions_not_available", 403),
                    errors.EndpointRetiredError, "your key is not the problem"),
    "403 migrate": (403, envelope("moved", "agent_api_migration_required", 403),
                    errors.EndpointRetiredError, "your key is not the problem"),
    "403 quota": (403, envelope("quota exceeded for this account"), errors.QuotaError, "quota"),
    "404": (404, envelope("resource not found", "not_found", 404), errors.InvalidRequestError, "not found"),
    "404 html": (404, "<html><title>404 Not Found</title>", errors.InvalidRequestError, "404 Not Found"),
    "405": (405, b"", errors.InvalidRequestError, "refused"),
    "413": (413, envelope("too big", "payload_too_large"), errors.InvalidRequestError, "too big"),
    "422": (422, {"detail": [{"loc": ["body", "tools", 0, "max_results"], "msg": "too many", "type": "x"},
                             {"loc": ["body", "query"], "msg": "Field required"}]},
            errors.InvalidRequestError, "tools.0.max_results: too many; query: Field required"),
    "422 odd": (422, {"detail": [None, {"loc": None, "msg": None}, "x"]}, errors.InvalidRequestError, "refused"),
    "422 text": (422, {"detail": "wrong"}, errors.InvalidRequestError, "wrong"),
    "424": (424, envelope("the connector failed", "external_connector_error"), errors.ServerError, "connector"),
    "302": (302, b"", errors.NetworkError, "redirect"),
    "301": (301, b"", errors.NetworkError, "redirect"),
    "307": (307, b"", errors.NetworkError, "redirect"),
    "418": (418, "I am a teapot", errors.InvalidRequestError, "teapot"),
    "list": (400, [1, 2], errors.InvalidRequestError, "refused"),
    "control characters": (400, envelope("a\x00b\x1b[31mc\u202ed\r\n\te"), errors.InvalidRequestError, "a b [31mc d e"),
}  # fmt: skip


def reply(status: int, body: Any, **headers: str) -> bytes:
    if isinstance(body, list):
        body = json.dumps(body)
    kind = {"Content-Type": "text/html"} if isinstance(body, str) else {}
    return http_response(status, {**kind, "x-request-id": "req-7", **headers}, body)


@pytest.mark.parametrize(("status", "body", "kind", "words"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_has_its_error_and_is_not_repeated(
    status: int, body: Any, kind: type[errors.PerplexityError], words: str
) -> None:
    with RawServer([reply(status, body)]) as server, client_for(server, max_retries=5) as client:
        with pytest.raises(errors.PerplexityError) as raised:
            client.ask("Why?")
        assert len(server.requests) == 1
    error = raised.value
    assert type(error) is kind
    assert words in error.message
    assert (error.status_code, error.request_id) == (status, "req-7")
    assert error.hint


def test_the_field_at_fault_is_named() -> None:
    body = envelope("bad", "invalid_request", 400, param="tools[0].filters")
    assert failure_of([reply(400, body)]).field == "tools[0].filters"
    assert failure_of([reply(422, REFUSALS["422"][1])]).field == "tools"


def test_a_very_long_message_is_cut() -> None:
    assert len(failure_of([reply(400, envelope("x" * 100_000))]).message) < 600
    assert len(failure_of([reply(400, "y" * 1_000_000)]).message) < 600


def test_a_deeply_nested_error_body_does_no_harm() -> None:
    assert failure_of([reply(500, "[" * 100_000)]).code == "SERVER"


@pytest.mark.parametrize("headers", [{}, {"cf-mitigated": "challenge"}])
@pytest.mark.parametrize("status", [200, 403, 429, 503])
@pytest.mark.parametrize("stream", [True, False])
def test_a_bot_check_is_named_whatever_its_status_and_not_repeated(
    status: int, stream: bool, headers: dict[str, str]
) -> None:
    script = [reply(status, CHALLENGE, **headers)]
    with RawServer(script) as server, client_for(server, max_retries=5) as client:
        with pytest.raises(errors.ChallengeError) as raised:
            client.ask("Why?", stream=stream)
        assert len(server.requests) == 1
        assert raised.value.status_code == status


def test_a_redirect_is_refused_and_the_key_stays_here() -> None:
    with RawServer(GOOD) as elsewhere:
        script = [http_response(307, {"Location": elsewhere.url + "/v1/responses"})]
        assert "redirect" in failure_of(script).message
        assert elsewhere.requests == []


# --- retries ------------------------------------------------------------------------------------

SOON = {"retry-after-ms": "1"}
PASSING = [408, 409, 429, 500, 502, 503, 504, 529]


@pytest.mark.parametrize("status", PASSING)
@pytest.mark.parametrize("html", [True, False])
def test_what_may_pass_is_tried_again_and_said(status: int, html: bool) -> None:
    body: Any = "<html><title>Oops</title>" if html else envelope("try later")
    script = in_turn([reply(status, body, **SOON)], [reply(status, body, **SOON)], GOOD)
    with RawServer(script) as server, client_for(server, max_retries=2) as client:
        with client.stream("Why?") as stream:
            events = list(stream)
        assert len(server.requests) == 3
        assert len({request.body for request in server.requests}) == 1
    retries = [event for event in events if isinstance(event, Retrying)]
    assert [event.attempt for event in retries] == [1, 2]
    assert all(event.delay == pytest.approx(0.001) for event in retries)
    assert ("Oops" if html else "try later") in retries[0].reason
    assert stream.answer.text == "It is so.[1]"
    assert len(server.connections) == 1, "an error that was read to its end keeps its connection"


@pytest.mark.parametrize("status", PASSING)
def test_what_does_not_pass_is_an_error_in_the_end(status: int) -> None:
    with RawServer([reply(status, envelope("busy"), **SOON)]) as server:
        client = client_for(server, max_retries=3)
        with pytest.raises(errors.PerplexityError, match="busy") as raised:
            client.ask("Why?")
        assert len(server.requests) == 4
    assert raised.value.status_code == status
    expected = {408: "TIMEOUT", 429: "RATE_LIMIT"}.get(status, "SERVER")
    assert raised.value.code == expected


def test_no_retries_means_none() -> None:
    with RawServer([reply(503, b"", **SOON)]) as server:
        with pytest.raises(errors.ServerError):
            client_for(server, max_retries=0).ask("Why?")
        assert len(server.requests) == 1


def test_exhausted_credit_is_not_asked_for_again() -> None:
    script = [reply(429, envelope("Your credit balance is too low"), **SOON)]
    with RawServer(script) as server:
        with pytest.raises(errors.QuotaError):
            client_for(server, max_retries=3).ask("Why?")
        assert len(server.requests) == 1


WAITS: dict[str, tuple[Callable[[], dict[str, str]], float, float]] = {
    "seconds": (lambda: {"Retry-After": "7"}, 7, 7),
    "part of a second": (lambda: {"Retry-After": "0.25"}, 0.25, 0.25),
    "milliseconds first": (lambda: {"retry-after-ms": "1500", "Retry-After": "9"}, 1.5, 1.5),
    "a date": (lambda: {"Retry-After": email.utils.formatdate(time.time() + 30, usegmt=True)}, 27, 31),
    "a date gone by": (lambda: {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0, 0),
    "the limit's reset": (
        lambda: {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(time.time()) + 20)}, 17, 21),
    "a limit with room": (
        lambda: {"x-ratelimit-remaining": "9", "x-ratelimit-reset": str(int(time.time()) + 20)}, 0.37, 0.5),
    "none": (dict, 0.37, 0.5),
    "nonsense": (lambda: {"Retry-After": "soon", "retry-after-ms": "-4"}, 0.37, 0.5),
    "a nonsense date": (lambda: {"Retry-After": "Wed, 99 Oct 99999 07:28:00 GMT"}, 0.37, 0.5),
}  # fmt: skip


@pytest.mark.parametrize(("headers", "least", "most"), WAITS.values(), ids=WAITS)
def test_the_wait_is_the_one_that_the_service_asks_for(
    headers: Callable[[], dict[str, str]], least: float, most: float
) -> None:
    with RawServer(
        lambda request, connection: connection.send(reply(429, b"", **headers()))
    ) as server:
        with client_for(server, max_retries=1).stream("Why?") as stream:
            event = next(event for event in stream)
        assert isinstance(event, Retrying)
        assert least <= event.delay <= most


@pytest.mark.parametrize("wait", ["61", "86400", "Wed, 21 Oct 2099 07:28:00 GMT"])
def test_a_long_wait_is_told_not_slept_through(wait: str) -> None:
    error = failure_of([reply(429, envelope("slow down"), **{"Retry-After": wait})], max_retries=5)
    assert isinstance(error, errors.RateLimitError)
    assert error.retry_after is not None and error.retry_after > 60


def test_a_wait_beyond_the_time_limit_is_not_begun() -> None:
    with RawServer([reply(503, b"", **{"Retry-After": "50"})]) as server:
        with pytest.raises(errors.ServerError):
            client_for(server, max_retries=2, timeout=20).ask("Why?")
        assert len(server.requests) == 1


def test_all_attempts_together_keep_to_the_time_limit() -> None:
    script = in_turn([Wait(0.3), reply(503, b"", **SOON)], [HoldOpen()])
    with (
        RawServer(script) as server,
        pytest.raises(errors.RequestTimeout, match=r"more than 0\.6 s"),
    ):
        client_for(server, max_retries=2, timeout=0.6).ask("Why?")


def test_waits_grow_and_differ() -> None:
    from ipyperplexity.net.retry import RetryPolicy

    policy, error = RetryPolicy(max_retries=9), errors.ServerError("x", status_code=500)
    waits = [[policy.delay(error, attempt) for attempt in range(9)] for _ in range(20)]
    for attempt in range(9):
        longest = min(0.5 * 2**attempt, 8.0)
        assert all(0.75 * longest <= wait[attempt] <= longest for wait in waits)  # type: ignore[operator]
    assert len({wait[3] for wait in waits}) > 10
    assert policy.delay(error, 9) is None


@pytest.mark.parametrize("steps", [
    [*GOOD[:-4], Close()],
    [*GOOD[:2], Close()],
    [GOOD[0], Close()],
    [*GOOD[:-4], Reset()],
])  # fmt: skip
def test_a_request_is_never_repeated_once_its_answer_has_begun(steps: list[Any]) -> None:
    with RawServer(steps) as server:
        with pytest.raises(errors.StreamError):
            client_for(server, max_retries=5).ask("Why?")
        assert len(server.requests) == 1


def test_a_request_that_got_no_reply_at_all_is_not_repeated_it_may_be_running() -> None:
    for end in (Close(), Reset()):
        with RawServer([end]) as server:
            with pytest.raises(errors.NetworkError, match="broke before the answer"):
                client_for(server, max_retries=5).ask("Why?")
            assert len(server.requests) == 1


def test_a_failed_run_is_not_repeated() -> None:
    with RawServer(sse_response(agent_stream("x", status="failed"))) as server:
        with pytest.raises(errors.ServerError):
            client_for(server, max_retries=5).ask("Why?")
        assert len(server.requests) == 1


def test_an_error_body_that_breaks_off_or_has_no_end_leaves_the_status_to_say() -> None:
    head = http_head(503, {"Content-Length": "1000", **SOON})
    for rest in ([b"<html>", Close()], [b"<html>", Reset()], [b"x" * 1000]):
        with RawServer(in_turn([head, *rest], GOOD)) as server:
            assert client_for(server, max_retries=1).ask("Why?").text == "It is so.[1]"
    endless = [
        http_head(500, {"Transfer-Encoding": "chunked", **SOON}),
        *[b"4000\r\n" + b"x" * 0x4000 + b"\r\n"] * 40,
    ]
    with RawServer(in_turn([*endless, HoldOpen()], GOOD)) as server:
        assert client_for(server, max_retries=1).ask("Why?").text == "It is so.[1]"


def test_an_error_body_that_dribbles_for_ever_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ipyperplexity.service.ERROR_BODY_SECONDS", 0.2)
    script = [http_head(500, {"Content-Length": "1000"}), b'{"error"', HoldOpen()]
    error = failure_of(script)
    assert (error.code, error.status_code) == ("SERVER", 500)


# --- time ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [0, 1, len(GOOD) - 3], ids=["no head", "no body", "some text"])
def test_a_silent_service_runs_into_the_time_limit(before: int) -> None:
    with RawServer([*GOOD[:before], HoldOpen()]) as server, client_for(server) as client:
        with pytest.raises(errors.RequestTimeout, match="more than") as raised:
            client.ask("Why?", timeout=0.5)
        assert server.wait_for_disconnect()
        assert len(server.requests) == 1
    error = raised.value
    assert (error.code, error.field) == ("TIMEOUT", "timeout")
    assert error.answer is not None
    assert error.answer.text == ("It is so.[1]" if before > 1 else "")
    assert eventually(lambda: not readers())


def test_a_service_that_only_sends_comments_for_ever_runs_into_the_time_limit() -> None:
    def dribble(request: RawRequest, connection: RawConnection) -> None:
        connection.send(
            http_head(200, {"Content-Type": "text/event-stream", "Connection": "close"})
        )
        while not connection.disconnected.is_set():
            connection.send(b": keep-alive\n\n")
            connection.play(Wait(0.01))

    with RawServer(dribble) as server:
        with pytest.raises(errors.RequestTimeout, match="more than"):
            client_for(server).ask("Why?", timeout=0.3)
        assert server.wait_for_disconnect()


def test_what_came_in_time_counts_however_long_its_reader_takes() -> None:
    with RawServer(GOOD) as server, client_for(server, timeout=1).stream("Why?") as stream:
        next(iter(stream))
        assert eventually(lambda: not readers())
        time.sleep(1.05)  # the reader's own time: nothing else to wait for
        assert stream.answer.text == "It is so.[1]"
        assert stream.answer.status == "completed"


def test_silence_has_a_limit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipyperplexity.net.transport.SILENCE_TIMEOUT", 0.5)
    with RawServer([*GOOD[:-3], HoldOpen()]) as server:
        with pytest.raises(errors.RequestTimeout, match="silent") as raised:
            client_for(server, timeout=60).ask("Why?")
        assert raised.value.answer is not None and raised.value.answer.text == "It is so.[1]"


def test_the_engine_that_stalls_is_a_time_out() -> None:
    for name in ("stall", "stall-at-once"):
        with (
            EmulatorServer(pace=0, behavior=FAULTS[name]) as server,
            pytest.raises(errors.RequestTimeout),
        ):
            client_for(server).ask("What is a lambda?", timeout=0.3)


# --- the network --------------------------------------------------------------------------------


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def collect(client: Client) -> tuple[list[Event], errors.PerplexityError]:
    events: list[Event] = []
    with pytest.raises(errors.PerplexityError) as raised, client.stream("Why?") as stream:
        events.extend(stream)
    return events, raised.value


def test_nobody_listening_is_tried_again_and_then_said(closed_port: int) -> None:
    events, error = collect(Client(KEY, base_url=f"http://127.0.0.1:{closed_port}", max_retries=1))
    assert [type(event) for event in events] == [Retrying]
    assert isinstance(error, errors.NetworkError)
    assert "could not be reached" in error.message and "refused" in error.message.lower()
    assert error.status_code is None


def test_a_name_that_does_not_exist_is_said() -> None:
    _, error = collect(Client(KEY, base_url="https://no-such-host.invalid", max_retries=0))
    assert isinstance(error, errors.NetworkError)
    assert "could not be reached" in error.message
    assert "0x" not in error.message and KEY not in error.message


def test_a_certificate_that_nobody_vouches_for_is_refused() -> None:
    with RawServer(GOOD, tls=True) as server, client_for(server, max_retries=3) as client:
        events, error = collect(client)
        assert server.requests == []
    assert "secure connection" in error.message and "certificate" in error.message.lower()
    assert events == []


def test_a_certificate_that_is_trusted_works_and_stops_at_once() -> None:
    with RawServer([*GOOD[:-2], HoldOpen()], tls=True) as server, requests.Session() as session:
        session.verify = server.ca_file or False
        with client_for(server, session=session).stream("Why?") as stream:
            for event in stream:
                if isinstance(event, TextDelta):
                    stream.cancel()
        assert server.wait_for_disconnect()
        assert stream.answer.status == "stopped"
    assert eventually(lambda: not readers())


def test_https_asked_of_an_http_server_is_said() -> None:
    def answer_in_clear(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=answer_in_clear, args=(listener,))
        server.start()
        address = f"https://127.0.0.1:{listener.getsockname()[1]}"
        _, error = collect(Client(KEY, base_url=address, max_retries=0))
        server.join()
    assert isinstance(error, errors.NetworkError)
    assert "secure connection" in error.message


def test_what_is_not_http_is_said() -> None:
    for garbage in (b"SSH-2.0-OpenSSH_9\r\n", b"\x00" * 50, b"HTTP/1.1 abc\r\n\r\n"):
        with RawServer([garbage, Close()]) as server:
            _, error = collect(client_for(server, max_retries=3))
            assert isinstance(error, errors.NetworkError)
            assert len(server.requests) == 1


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    name: str, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port}")
    with RawServer(GOOD) as server:
        for host in ("127.0.0.1", "localhost"):
            address = server.url.replace("127.0.0.1", host)
            assert Client(KEY, base_url=address, max_retries=0).ask("Why?").text


def test_a_proxy_that_is_down_is_said(closed_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:sesame@127.0.0.1:{closed_port}")
    _, error = collect(Client(KEY, base_url="https://api.example.invalid", max_retries=0))
    assert isinstance(error, errors.NetworkError)
    assert "proxy" in error.message.lower()
    assert "sesame" not in str(error)


def test_a_netrc_entry_does_not_replace_the_key(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login other password wrong\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with RawServer(GOOD) as server:
        client_for(server).ask("Why?")
        assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"


def test_a_broken_connection_of_the_engine_keeps_the_text() -> None:
    for name in ("cut", "reset"):
        behavior = Behavior(cut_after=16, cut="reset" if name == "reset" else "truncated")
        with EmulatorServer(pace=0, behavior=behavior) as server:
            with pytest.raises(errors.StreamError) as raised:
                client_for(server, max_retries=3).ask("What does the with statement do?")
            assert len(server.requests) == 1
        assert raised.value.answer is not None and raised.value.answer.status == "failed"


def test_requests_carry_what_they_should_and_no_more() -> None:
    with RawServer(GOOD) as server, client_for(server) as client:
        client.ask("Why?")
        client.ask("Why?", stream=False)
        first, second = server.requests
    assert (first.method, first.path) == ("POST", "/v1/responses")
    assert first.headers["Content-Type"] == "application/json"
    assert (first.headers["Accept"], second.headers["Accept"]) == (
        "text/event-stream",
        "application/json",
    )
    assert "Cookie" not in second.headers
    assert first.headers["User-Agent"].startswith("ipyperplexity/")


def test_cookies_of_the_edge_are_not_kept() -> None:
    headers = {"Set-Cookie": "__cf_bm=abc; path=/"}
    steps = sse_response(agent_stream("So."), headers=headers)
    with RawServer(steps) as server, client_for(server) as client:
        client.ask("Why?")
        client.ask("Why?")
        assert "Cookie" not in server.requests[1].headers


def test_a_stream_begins_with_started() -> None:
    with RawServer(GOOD) as server, client_for(server).stream("Why?") as stream:
        assert next(iter(stream)) == Started("resp_1", "fast")
