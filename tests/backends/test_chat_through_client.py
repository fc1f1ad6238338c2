"""Chat-completions through the client: keys, functions of the notebook, and every way to stop."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ipyperplexity import Answer, Client, errors
from ipyperplexity.auth.key_store import save_key
from ipyperplexity.emulator import Behavior, EmulatorServer
from ipyperplexity.events import Retrying
from ipyperplexity.net.redact import Secret
from tests.auth.signing_in import KEY, shown
from tests.net.asking import eventually
from tests.support.raw_server import (
    HoldOpen,
    RawConnection,
    RawRequest,
    RawServer,
    agent_stream,
    http_head,
    http_response,
    in_turn,
    sse_response,
)

OTHER_KEY = "pplx-" + "0therkey" * 3
REPLY = {
    "id": "c1",
    "model": "sonar",
    "choices": [{"message": {"role": "assistant", "content": "So."}, "finish_reason": "stop"}],
}
GOOD = [http_response(200, None, REPLY)]


def client_for(server: Any, **options: Any) -> Client:
    given = {"backend": "chat", "api_key": KEY, "base_url": f"{server.url}/v1", "max_retries": 0}
    return Client(**{**given, **options})


def chunk(reason: str | None = None, **delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return f"data: {json.dumps({'id': 'c1', 'model': 'm', 'choices': [choice]})}\n\n".encode()


def calling(*calls: tuple[str, str]) -> list[Any]:
    """Return a stream that calls these functions, each with these arguments."""
    made = [
        {"index": n, "id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls)
    ]  # fmt: skip
    return sse_response([chunk(tool_calls=made), chunk("tool_calls"), b"data: [DONE]\n\n"])


def saying(text: str) -> list[Any]:
    return sse_response([chunk(content=text), chunk("stop"), b"data: [DONE]\n\n"])


def messages(server: RawServer, number: int = -1) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = server.requests[number].json["messages"]
    return found


# --- keys -------------------------------------------------------------------------------------------


def test_a_stored_key_is_used_until_it_is_replaced() -> None:
    good = sse_response(agent_stream("So."))
    with RawServer(good) as server, Client(base_url=server.url) as client:
        for key in (KEY, OTHER_KEY):
            save_key(Secret(key))
            client.ask("Why?")
    sent = [request.headers["Authorization"] for request in server.requests]
    assert sent == [f"Bearer {KEY}", f"Bearer {OTHER_KEY}"]


def test_a_stored_key_is_perplexitys_and_no_other_server_is_told_it() -> None:
    save_key(Secret(KEY))
    with RawServer(GOOD) as server, client_for(server, api_key=None) as client:
        assert client.ask("Why?").text == "So."
        assert "none needed" in client.status().key
    assert server.requests[0].headers["Authorization"] is None
    elsewhere = Client(backend="chat", base_url="https://gateway.example/v1")
    with pytest.raises(errors.MissingCredentialError, match=r"no API key for gateway\.example"):
        elsewhere.ask("Why?")
    assert elsewhere.status().state == "missing-credential"
    site = Client(base_url="https://api.perplexity.ai").status()
    assert site.state == "ready" and "set, from" in site.key


def test_a_question_that_is_sent_again_keeps_its_key_and_its_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = [http_response(503, {"retry-after-ms": "1"}, "busy")]
    with RawServer(in_turn(slow, GOOD)) as one, RawServer(GOOD) as other:
        monkeypatch.setenv("PERPLEXITY_API_KEY", KEY)
        monkeypatch.setenv("PERPLEXITY_BASE_URL", one.url)
        client = Client(backend="chat")
        with client.stream("Why?") as stream:
            assert isinstance(next(iter(stream)), Retrying)
            monkeypatch.setenv("PERPLEXITY_BASE_URL", other.url)
            monkeypatch.setenv("PERPLEXITY_API_KEY", OTHER_KEY)
            assert stream.answer.text == "So."
        assert [r.headers["Authorization"] for r in one.requests] == [f"Bearer {KEY}"] * 2
        assert other.requests == []
        client.ask("Why?")
    assert [r.headers["Authorization"] for r in other.requests] == [f"Bearer {OTHER_KEY}"]


def test_results_of_functions_go_where_the_question_went(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        RawServer(in_turn(calling(("move", "{}")), saying("So."))) as one,
        RawServer(GOOD) as other,
    ):

        def move() -> str:
            """Set up another service in the middle of an answer."""
            monkeypatch.setenv("PERPLEXITY_BASE_URL", other.url)
            monkeypatch.setenv("PERPLEXITY_API_KEY", OTHER_KEY)
            return "moved"

        monkeypatch.setenv("PERPLEXITY_BASE_URL", one.url)
        monkeypatch.setenv("PERPLEXITY_API_KEY", KEY)
        assert Client(backend="chat").ask("Why?", tools=[move]).text == "So."
    assert [r.headers["Authorization"] for r in one.requests] == [f"Bearer {KEY}"] * 2
    assert other.requests == []


def test_a_client_of_a_local_server_needs_no_key_and_one_elsewhere_does() -> None:
    with RawServer(GOOD) as server:
        assert client_for(server, api_key=None).ask("Why?").text == "So."
        assert server.requests[0].headers["Authorization"] is None
    for address in ("https://gateway.example/v1", "https://localhost.example/v1"):
        client = Client(backend="chat", base_url=address)
        assert client.status().state == "missing-credential"
        with pytest.raises(errors.MissingCredentialError):
            client.stream("Why?")


@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
def test_a_server_that_repeats_the_key_does_not_make_us_show_it(status: int) -> None:
    body = {"error": {"message": f"no such key: {KEY}", "code": KEY}}
    with RawServer([http_response(status, {"x-request-id": KEY}, body)]) as server:
        client = client_for(server)
        with pytest.raises(errors.PerplexityError) as raised:
            client.ask("Why?")
        assert "no such key: ***" in raised.value.message
        dumped = pickle.dumps((raised.value, client, client.last))
        assert KEY not in shown(raised.value) and KEY.encode() not in dumped
        assert KEY not in repr(client.usage().to_dicts())


# --- the retired service ------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
def test_the_retired_service_is_asked_once_and_the_key_is_not_blamed(stream: bool) -> None:
    with EmulatorServer(pace=0, chat="retired", api_key=KEY) as server:
        client = client_for(server, base_url=server.url, max_retries=5)
        with pytest.raises(errors.EndpointRetiredError) as raised:
            client.ask("Why?", stream=stream)
        assert len(server.requests) == 1
        assert server.requests[0].authorized
    error = raised.value
    assert (error.code, error.status_code) == ("RETIRED", 403)
    assert "not the problem" in error.message and "backend='agent'" in (error.hint or "")
    assert "API settings" not in str(error), "that is the advice for a bad key"
    entry = client.usage()[-1]
    assert (entry.status, entry.backend, entry.cost_usd) == ("failed", "chat", None)


# --- functions of the notebook ------------------------------------------------------------------------


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


async def slowly(a: int) -> int:
    """Double a number, in its own time."""
    await asyncio.sleep(0)
    return 2 * a


def fail(a: int) -> int:
    """Fail."""
    raise LookupError(f"nothing under {a}")


def test_several_functions_are_run_in_their_order_and_all_results_go_back() -> None:
    calls = calling(("add", '{"a": 2, "b": 3}'), ("slowly", '{"a": 4}'), ("add", '{"a": 1}'))
    with RawServer(in_turn(calls, saying("5, 8 and 2."))) as server:
        answer = client_for(server).ask("Well?", tools=[add, slowly])
    assert (answer.status, answer.text) == ("completed", "5, 8 and 2.")
    assert [call.output for call in answer.tool_calls] == ["5", "8", "2"]
    declared = [tool["function"]["name"] for tool in server.requests[0].json["tools"]]
    assert declared == ["add", "slowly"]
    _, asked, *results = messages(server)
    assert [call["id"] for call in asked["tool_calls"]] == ["call_0", "call_1", "call_2"]
    assert [(m["role"], m["tool_call_id"], m["content"]) for m in results] == [
        ("tool", "call_0", "5"), ("tool", "call_1", "8"), ("tool", "call_2", "2"),
    ]  # fmt: skip


def test_what_a_function_raises_is_told_to_the_model_and_kept() -> None:
    with RawServer(in_turn(calling(("fail", '{"a": 7}')), saying("It failed."))) as server:
        answer = client_for(server).ask("Well?", tools=[fail])
    assert (answer.status, answer.text) == ("completed", "It failed.")
    (call,) = answer.tool_calls
    assert "nothing under 7" in (call.error or "")
    assert "nothing under 7" in messages(server)[-1]["content"]


def test_the_rounds_are_bounded() -> None:
    with RawServer(calling(("add", '{"a": 1}'))) as server:  # again and again
        with pytest.warns(errors.PerplexityWarning, match="after 3 rounds"):
            answer = client_for(server).ask("Well?", tools=[add], max_steps=3)
        assert len(server.requests) == 3
    assert (answer.status, answer.finish_reason) == ("incomplete", "max_steps")


def test_a_stop_while_a_function_runs_sends_nothing_more() -> None:
    with RawServer(in_turn(calling(("stop", "{}")), saying("Never."))) as server:
        client = client_for(server)

        def stop() -> str:
            """Press the button."""
            running.cancel()
            return "too late"

        with client.stream("Well?", tools=[stop]) as running:
            for _ in running:
                pass
        assert running.answer.status == "stopped"
        assert isinstance(running.answer.error, errors.AbortedError)
        assert len(server.requests) == 1


@pytest.mark.parametrize("stream", [True, False])
def test_the_embedded_engine_calls_a_function_and_goes_on(stream: bool) -> None:
    def lookup(query: str) -> str:
        """Look a word up."""
        return "a word of Python"

    with EmulatorServer(pace=0) as server:
        answer = client_for(server).ask(
            "What is a lambda?", tools=[lookup], stream=stream, extra={"tool_choice": "required"}
        )
    assert (answer.status, bool(answer.text)) == ("completed", True)
    assert [call.name for call in answer.tool_calls] == ["lookup"]
    assert len(server.requests) == 2


# --- conversations ------------------------------------------------------------------------------------


def test_an_answer_of_another_backend_is_gone_on_with_as_text() -> None:
    first = Answer("Who?", "Ann.", id="resp_1", backend="agent", stored=True)
    with RawServer(GOOD) as server:
        client_for(server).ask("And why?", follow=first)
    assert [(m["role"], m["content"]) for m in messages(server)] == [
        ("user", "Who?"), ("assistant", "Ann."), ("user", "And why?"),
    ]  # fmt: skip
    assert "previous_response_id" not in server.requests[0].json


def test_thoughts_are_not_sent_back_in_a_conversation() -> None:
    thinking = sse_response([chunk(content=piece) for piece in ("<th", "ink>Hm", ".</thi", "nk>So", ". <think> stays.")] + [chunk("stop")])  # fmt: skip
    with RawServer(thinking) as server, client_for(server) as client:
        answer = client.ask("Why?")
        assert (answer.reasoning, answer.text) == ("Hm.", "So. <think> stays.")
        answer.follow_up("And?")
    assert messages(server)[1] == {"role": "assistant", "content": "So. <think> stays."}


# --- stopping -------------------------------------------------------------------------------------------

LONG = {"Content-Type": "application/json", "Content-Length": "1000"}
SSE_HEAD = http_head(200, {"Content-Type": "text/event-stream", "Connection": "close"})
PHASES: dict[str, list[bytes]] = {
    "before a reply": [],
    "in an error's body": [http_head(500, LONG) + b'{"error": {"mess'],
    "in a refusal's body": [http_head(401, LONG) + b'{"error"'],
    "before the first chunk": [SSE_HEAD],
    "in a stream": [SSE_HEAD, chunk(content="It is")],
    "in a whole reply": [http_head(200, LONG) + b'{"choices": [{"message"'],
    "before it is sent again": [http_response(503, {"Retry-After": "30"}, "busy")],
}


@pytest.fixture(params=PHASES.values(), ids=PHASES)
def stalled(request: pytest.FixtureRequest) -> Iterator[tuple[Client, Callable[[], bool]]]:
    """Yield a client of a server that stalls, and a function that waits until it does."""
    reached = threading.Event()

    def script(asked: RawRequest, connection: RawConnection) -> None:
        for step in request.param:
            connection.send(step)
        reached.set()
        if request.param is not PHASES["before it is sent again"]:
            connection.play(HoldOpen())

    with RawServer(script) as server, client_for(server, max_retries=3) as client:
        yield client, lambda: reached.wait(5)
        assert len(server.requests) == 1, "what was stopped is not sent again"


def test_an_interrupt_is_one_wherever_it_comes(
    stalled: tuple[Client, Callable[[], bool]],
) -> None:
    client, wait_until_stalled = stalled

    def interrupt() -> None:
        assert wait_until_stalled()
        assert eventually(lambda: len(client._running) == 1)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(errors.Interrupted) as raised:
        client.ask("Why?")
    thread.join()
    answer = raised.value.answer
    assert answer is not None and answer is client.last
    assert answer.status == "stopped" and type(answer.error) is errors.AbortedError
    assert answer.text in ("", "It is")


def test_closing_the_client_is_an_abort_wherever_it_comes(
    stalled: tuple[Client, Callable[[], bool]],
) -> None:
    client, wait_until_stalled = stalled

    def close() -> None:
        assert wait_until_stalled()
        client.close()

    thread = threading.Thread(target=close)
    thread.start()
    with pytest.raises(errors.AbortedError) as raised:
        client.ask("Why?")
    thread.join()
    assert raised.value.code == "ABORTED"
    assert raised.value.answer is not None and raised.value.answer.status == "stopped"


def test_a_time_limit_is_a_timeout_and_no_abort() -> None:
    with RawServer([SSE_HEAD, chunk(content="It is"), HoldOpen()]) as server:
        with pytest.raises(errors.RequestTimeout) as raised:
            client_for(server, max_retries=3).ask("Why?", timeout=0.3)
        assert len(server.requests) == 1
    assert raised.value.answer is not None and raised.value.answer.text == "It is"


@pytest.mark.parametrize("behavior", [Behavior(cut_after=4), Behavior(cut_after=4, cut="reset")])
def test_a_connection_that_breaks_is_no_abort(behavior: Behavior) -> None:
    with EmulatorServer(pace=0, behavior=behavior) as server:
        with pytest.raises(errors.StreamError) as raised:
            client_for(server, max_retries=3).ask("What is a lambda?")
        assert len(server.requests) == 1
    assert raised.value.answer is not None and raised.value.answer.status == "failed"
