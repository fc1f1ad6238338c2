"""Chat-completions through the public client: gateways, local servers, and each way to fail."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ipyperplexity import Answer, Client, errors
from ipyperplexity.answer_parts import Usage
from ipyperplexity.emulator import Behavior, EmulatorServer
from ipyperplexity.events import Event, TextDelta, TextReplaced
from tests.support.raw_server import (
    Close,
    Framing,
    HoldOpen,
    RawConnection,
    RawRequest,
    RawServer,
    Reset,
    Script,
    http_head,
    http_response,
    in_turn,
    sse_response,
)

KEY = "pplx-5ecre7-0123456789abcdefABCDEF"
KEY_NAMES = ("PERPLEXITY_API_KEY", "PPLX_API_KEY")
RESULTS = [{"title": letter.upper(), "url": f"https://{letter}.example"} for letter in "abcd"]
REPLY = {
    "id": "c1", "model": "sonar", "object": "chat.completion", "search_results": RESULTS,
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "It is so.[1]"}, "finish_reason": "stop"}],
}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path))
    for name in (*KEY_NAMES, "PERPLEXITY_BASE_URL", "IPYPERPLEXITY_MODEL", "IPYPERPLEXITY_BACKEND"):
        monkeypatch.delenv(name, raising=False)


def client_for(server: Any, **options: Any) -> Client:
    return Client(
        **{
            "backend": "chat",
            "api_key": KEY,
            "base_url": f"{server.url}/v1",
            "max_retries": 0,
            **options,
        }
    )


def ask(script: Script, **options: Any) -> Answer:
    """Ask a server with this script; return the answer, whatever became of it."""
    with RawServer(script) as server, client_for(server) as client:
        with client.stream("Why?", **options) as stream:
            events: list[Event] = []
            try:
                events.extend(stream)
            except errors.PerplexityError as error:
                assert error.answer is stream.answer
        return stream.answer


def failure_of(script: Script, **options: Any) -> errors.PerplexityError:
    """Ask once; return the error. Whatever it is, it says what to do, and shows no key."""
    with (
        RawServer(script) as server,
        client_for(server, **options) as client,
        pytest.raises(errors.PerplexityError) as raised,
    ):
        client.ask("Why?")
    assert raised.value.hint
    assert KEY not in f"{raised.value!r} {raised.value} {raised.value.answer!r}"
    return raised.value


def frames(*chunks: Any) -> list[bytes]:
    """Return frames as these servers write them; text is a line as it is."""
    lines = (c if isinstance(c, str) else f"data: {json.dumps(c)}" for c in chunks)
    return [f"{line}\n\n".encode() for line in lines]


def piece(content: Any = None, reason: Any = None, **fields: Any) -> dict[str, Any]:
    delta = fields.pop("delta", {} if content is None else {"content": content})
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **fields}


# --- what servers really send ---------------------------------------------------------------------

FIRST = {"role": "assistant", "content": ""}
COUNTS = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
NOTE = {"type": "url_citation", "url_citation": {"url": "https://a.example", "title": "A"}}


def sonar(piece_of: str, so_far: str, **choice: Any) -> dict[str, Any]:
    made = piece(piece_of, usage={**COUNTS, "cost": {"total_cost": 0.005}})
    message = {"role": "assistant", "content": so_far}
    made["choices"][0] |= {"message": message, **choice}
    return {**made, "citations": ["https://a.example"], "search_results": RESULTS[:1]}


DIALECTS: dict[str, tuple[list[bytes], dict[str, Any]]] = {
    "Ollama": (
        frames(
            piece(delta={"role": "assistant", "content": "", "reasoning": "Hm."}, system_fingerprint="fp_ollama"),
            piece(delta={"role": "assistant", "content": "It is"}),
            piece(delta={"role": "assistant", "content": " so.[1]"}),
            piece(delta={"role": "assistant", "content": ""}, reason="stop"),
            {"id": "c1", "choices": [], "usage": COUNTS}, "data: [DONE]"),
        {"reasoning": "Hm.", "usage": Usage(5, 2, 7)}),
    "vLLM": (
        frames(
            piece(delta=FIRST), piece(delta={"reasoning_content": "Hm."}), piece("It is"), piece(" so.[1]"),
            piece("", "stop", usage=None), {"id": "c1", "choices": [], "usage": COUNTS}, "data: [DONE]"),
        {"reasoning": "Hm.", "usage": Usage(5, 2, 7)}),
    "LM Studio": (
        frames(piece(delta={"role": "assistant", "content": "<thi"}), piece("nk>\nHm.</th"), piece("ink>\n\nIt is"),
               piece(" so.[1]"), piece(delta={}, reason="stop"), "data: [DONE]"),
        {"reasoning": "Hm."}),
    "llama.cpp": (
        frames(piece(delta={"role": "assistant", "content": None}), piece("It is so.[1]"),
               piece(delta={}, reason="stop", timings={"predicted_n": 2}), {"choices": [], "usage": COUNTS}, "data: [DONE]"),
        {"usage": Usage(5, 2, 7)}),
    "LiteLLM": (
        frames(piece(delta={**FIRST, "provider_specific_fields": None}, citations=["https://a.example"]),
               piece("It is", citations=["https://a.example"]), piece(" so.[1]"), piece(delta={}, reason="stop"),
               piece(delta={}, usage=COUNTS), "data: [DONE]"),
        {"urls": ["https://a.example"], "usage": Usage(5, 2, 7)}),
    "OpenRouter": (
        frames(": OPENROUTER PROCESSING", ": OPENROUTER PROCESSING", piece(delta=FIRST, provider="Perplexity"),
               piece("It is"), ": OPENROUTER PROCESSING", piece(" so.[1]"),
               piece(delta={"role": "assistant", "content": "", "annotations": [NOTE]}, reason="stop"),
               piece("", "stop", usage={**COUNTS, "cost": 0.002}), "data: [DONE]"),
        {"urls": ["https://a.example"], "usage": Usage(5, 2, 7, cost_usd=0.002)}),
    "Sonar, full mode": (
        frames(sonar("It is", "It is"), sonar(" so.[1]", "It is so.[1]"), sonar("", "It is so.[1]", finish_reason="stop")),
        {"urls": ["https://a.example"], "usage": Usage(5, 2, 7, cost_usd=0.005)}),
    "Sonar, concise mode": (
        frames(piece(delta={"role": "assistant", "content": "", "reasoning_steps": []}, object="chat.reasoning"),
               piece("", object="chat.reasoning.done", search_results=RESULTS[:1]), piece("It is"), piece(" so.[1]"),
               piece(delta={}, reason="stop", object="chat.completion.done", usage=COUNTS, search_results=RESULTS[:1])),
        {"urls": ["https://a.example"], "usage": Usage(5, 2, 7)}),
}  # fmt: skip


@pytest.mark.parametrize("framing", ["chunked", "close", "length"])
@pytest.mark.parametrize(("stream", "rest"), DIALECTS.values(), ids=DIALECTS)
def test_each_server_is_understood(
    stream: list[bytes], rest: dict[str, Any], framing: Framing
) -> None:
    answer = ask(sse_response(stream, framing, piece=7 if framing == "chunked" else None))
    assert (answer.status, answer.text, answer.error) == ("completed", "It is so.[1]", None)
    assert answer.reasoning == rest.get("reasoning", "")
    assert answer.usage == rest.get("usage", Usage())
    assert [source.url for source in answer.sources] == rest.get("urls", [])
    assert (answer.model, answer.backend, answer.warnings) == ("m", "chat", ())


@pytest.mark.parametrize("label", ["text/event-stream", "application/json", "text/plain"])
def test_stream_and_reply_are_told_apart_whatever_they_are_called(label: str) -> None:
    headers = {"Content-Type": label}
    assert ask([http_response(200, headers, json.dumps(REPLY))]).text == "It is so.[1]"
    streamed = sse_response(frames(piece("It is so.[1]", "stop")), headers=headers)
    assert ask(streamed).text == "It is so.[1]"


def test_pieces_are_given_out_as_they_come() -> None:
    gate = threading.Event()

    def script(request: RawRequest, connection: RawConnection) -> None:
        connection.send(
            http_head(200, {"Content-Type": "text/event-stream", "Connection": "close"})
        )
        connection.send(frames(piece("It "))[0])
        assert gate.wait(5)
        connection.send(frames(piece("is.", "stop"))[0])
        connection.close()

    with RawServer(script) as server, client_for(server).stream("Why?") as stream:
        first = next(event for event in stream if isinstance(event, TextDelta))
        gate.set()
        assert (first.text, stream.answer.text) == ("It ", "It is.")


# --- request ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["", "/v1", "/api/v1/", "/proxy/llm"])
def test_the_question_goes_below_the_base_url(base: str) -> None:
    with RawServer([http_response(200, None, REPLY)]) as server:
        client_for(server, base_url=server.url + base).ask("Why?\n", recency="week", stream=False)
    (sent,) = server.requests
    assert (sent.method, sent.path) == ("POST", f"{base.rstrip('/')}/chat/completions")
    assert sent.headers["Authorization"] == f"Bearer {KEY}"
    assert sent.headers["Content-Type"] == "application/json"
    assert sent.headers["Accept"] == "application/json"
    assert sent.headers["User-Agent"].startswith("ipyperplexity/")
    assert sent.json == {
        "model": "sonar",
        "messages": [{"role": "user", "content": "Why?\n"}],
        "search_recency_filter": "week",
    }


def test_a_follow_up_brings_the_conversation_along() -> None:
    with RawServer([http_response(200, None, REPLY)]) as server, client_for(server) as client:
        client.ask("Why?").follow_up("And then?")
    assert server.requests[1].json["messages"] == [
        {"role": "user", "content": "Why?"},
        {"role": "assistant", "content": "It is so.[1]"},
        {"role": "user", "content": "And then?"},
    ]


@pytest.mark.parametrize(
    ("limit", "count", "truncated"), [(2, 2, True), (4, 4, False), (None, 4, False)]
)
def test_a_limit_cuts_the_sources_and_says_so(
    limit: int | None, count: int, truncated: bool
) -> None:
    answer = ask([http_response(200, None, REPLY)], limit=limit)
    assert (len(answer.sources), answer.truncated) == (count, truncated)


def test_functions_of_the_notebook_are_run_in_between() -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    def call(**function: str) -> dict[str, Any]:
        return {"index": 0, "function": function}

    begun = {**call(name="add", arguments='{"a": 2,'), "id": "call_1", "type": "function"}
    calling = frames(
        piece("Let me add."),
        piece(delta={"tool_calls": [begun]}),
        piece(delta={"tool_calls": [call(arguments=' "b": 3}')]}),
        piece(delta={}, reason="tool_calls", usage=COUNTS),
        "data: [DONE]",
    )
    last = frames(piece("It is 5."), piece(delta={}, reason="stop", usage=COUNTS), "data: [DONE]")
    with RawServer(in_turn(sse_response(calling), sse_response(last))) as server:
        answer = client_for(server).ask("2 and 3?", tools=add)
    assert (answer.status, answer.text) == ("completed", "Let me add.\n\nIt is 5.")
    assert [(made.name, made.output) for made in answer.tool_calls] == [("add", "5")]
    assert answer.usage.total_tokens == 14
    asked, called, result = server.requests[1].json["messages"]
    assert asked == {"role": "user", "content": "2 and 3?"}
    assert called["content"] == "Let me add."
    assert called["tool_calls"] == [
        {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'}}
    ]  # fmt: skip
    assert result == {"role": "tool", "tool_call_id": "call_1", "content": "5"}


def test_a_later_round_that_takes_its_text_back_leaves_what_earlier_ones_wrote() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    asks = {
        "index": 0,
        "id": "call_1",
        "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'},
    }
    calling = frames(piece("Let me add."), piece(delta={"tool_calls": [asks]}, reason="tool_calls"))
    whole = {"index": 0, "message": {"content": "It is 5."}, "finish_reason": "stop"}
    last = frames(piece("It was 4."), {"id": "c2", "choices": [whole]})
    with (
        RawServer(in_turn(sse_response(calling), sse_response(last))) as server,
        client_for(server).stream("2 and 3?", tools=add) as stream,
    ):
        replaced = [event.text for event in stream if isinstance(event, TextReplaced)]
    assert replaced == ["Let me add.\n\nIt is 5."] and stream.answer.text == replaced[0]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("behavior", [
    Behavior(), Behavior(chat_message=True), Behavior(nulls=True), Behavior(chat_cost="number"),
], ids=["plain", "cumulative messages", "nulls", "cost as a number"])  # fmt: skip
def test_the_embedded_engine_is_understood(behavior: Behavior, stream: bool) -> None:
    with EmulatorServer(pace=0, behavior=behavior) as server:
        answer = client_for(server).ask(
            "What is a lambda?", model="sonar-reasoning-pro", stream=stream
        )
    assert answer.status == "completed" and answer.text and answer.reasoning
    assert answer.text.strip() == answer.text and "<think>" not in answer.text
    assert all(citation.source is not None for citation in answer.citations)
    assert answer.usage.cost_usd and answer.usage.searches


# --- configuration ----------------------------------------------------------------------------------


def test_a_server_on_this_machine_needs_no_key_and_is_sent_none() -> None:
    with RawServer([http_response(200, None, REPLY)]) as server:
        client = client_for(server, api_key=None)
        assert client.status().state == "ready"
        assert client.ask("Why?").text == "It is so.[1]"
    assert server.requests[0].headers["Authorization"] is None


def test_what_is_missing_or_wrong_is_said_without_asking_anybody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Client(backend="chat", base_url="https://gateway.invalid/v1")
    assert client.status().state == "missing-credential"
    with pytest.raises(errors.MissingCredentialError, match="PERPLEXITY_API_KEY"):
        client.stream("Why?")
    monkeypatch.setenv(KEY_NAMES[0], KEY)
    assert client.status().state == "ready"
    assert KEY not in repr(client.status())
    monkeypatch.setenv("PERPLEXITY_BASE_URL", "not an address")
    assert Client(backend="chat").status().state == "misconfigured"
    monkeypatch.setenv("PERPLEXITY_BASE_URL", "http://gateway.invalid/v1")
    assert Client(backend="chat").status().state == "misconfigured", "the key would go in clear"
    for tokens in (0, -1, 1.5, "many"):
        with pytest.raises(errors.InvalidRequestError, match="max_tokens"):
            client.stream("Why?", max_tokens=tokens)


def test_the_key_is_looked_up_for_each_question(monkeypatch: pytest.MonkeyPatch) -> None:
    with RawServer([http_response(200, None, REPLY)]) as server:
        client = client_for(server, api_key=None)
        for key in ("pplx-first", "pplx-second"):
            monkeypatch.setenv(KEY_NAMES[0], key)
            client.ask("Why?")
    sent = [request.headers["Authorization"] for request in server.requests]
    assert sent == ["Bearer pplx-first", "Bearer pplx-second"]


def test_a_key_never_goes_to_an_address_that_was_changed_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with RawServer([http_response(200, None, REPLY)]) as one, RawServer([Close()]) as other:
        monkeypatch.setenv(KEY_NAMES[0], KEY)
        monkeypatch.setenv("PERPLEXITY_BASE_URL", one.url)
        stream = Client(backend="chat").stream("Why?")
        monkeypatch.setenv("PERPLEXITY_BASE_URL", other.url)
        monkeypatch.setenv(KEY_NAMES[0], "pplx-of-the-other")
        assert stream.answer.text == "It is so.[1]"
    assert [r.headers["Authorization"] for r in one.requests] == [f"Bearer {KEY}"]
    assert other.requests == []


# --- failures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_refused_and_the_key_stays(status: int) -> None:
    with RawServer([http_response(200, None, REPLY)]) as other:
        moved = http_response(status, {"Location": f"{other.url}/chat/completions"})
        failure = failure_of([moved])
    assert type(failure) is errors.NetworkError and "redirect" in failure.message
    assert other.requests == []


RETIRED: dict[str, dict[str, Any]] = {
    "the service": {"chat": "retired"},
    "its word": {"behavior": Behavior(retired="chat_completions_not_available")},
    "its other word": {"behavior": Behavior(retired="agent_api_migration_required")},
}


@pytest.mark.parametrize("how", RETIRED.values(), ids=RETIRED)
def test_the_retired_endpoint_says_the_way_out_and_is_asked_once(how: dict[str, Any]) -> None:
    with EmulatorServer(pace=0, **how) as server:
        client = client_for(server, base_url=server.url, max_retries=5)
        with pytest.raises(errors.EndpointRetiredError) as raised:
            client.ask("Why?")
        assert len(server.requests) == 1
    assert "your key is not the problem" in raised.value.message
    assert "backend='agent'" in (raised.value.hint or "")


HTML_401 = "<html><head><title>401 Authorization Required</title></head><center>openresty</center>"
REFUSALS: dict[str, tuple[int, Any, type[errors.PerplexityError], str]] = {
    "text": (400, {"error": "bad thing"}, errors.InvalidRequestError, "bad thing"),
    "object": (400, {"error": {"message": "bad thing"}}, errors.InvalidRequestError, "bad thing"),
    "message": (400, {"message": "bad thing"}, errors.InvalidRequestError, "bad thing"),
    "nothing": (503, {}, errors.ServerError, "HTTP 503"),
    "a page": (502, "<html><title>Bad gateway</title>", errors.ServerError, "Bad gateway"),
    "a page for the key": (401, HTML_401, errors.AuthenticationError, "Authorization Required"),
    "vLLM": (400, {"object": "error", "message": "too long", "type": "BadRequestError", "code": 400},
             errors.InvalidRequestError, "too long"),
    "FastAPI": (422, {"detail": [{"loc": ["body", "top_k"], "msg": "extra", "type": "x"}]},
                errors.InvalidRequestError, "top_k: extra"),
    "LiteLLM": (429, {"error": {"message": "slow", "type": "None", "param": "None", "code": "429"}}, errors.RateLimitError, "slow"),
    "LiteLLM's nothing": (400, {"error": {"message": "bad", "type": "None", "param": "None", "code": "400"}}, errors.InvalidRequestError, "bad"),
    "OpenRouter": (502, {"error": {"code": 502, "message": "Provider returned error", "metadata": {"raw": "too hot"}}},
                   errors.ServerError, "too hot"),
    "OpenRouter's credits": (402, {"error": {"code": 402, "message": "Insufficient credits"}}, errors.QuotaError, "credits"),
}  # fmt: skip


@pytest.mark.parametrize(("status", "body", "kind", "words"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_is_told_in_the_servers_own_words(
    status: int, body: Any, kind: type[errors.PerplexityError], words: str
) -> None:
    failure = failure_of([http_response(status, {"x-request-id": "r1"}, body)])
    assert type(failure) is kind and words in failure.message
    assert (failure.status_code, failure.request_id, failure.field) == (
        status,
        "r1",
        "top_k" if words.startswith("top_k") else None,
    )


def test_a_model_that_a_server_does_not_have_is_not_blamed_on_the_address() -> None:
    body = {
        "error": {"message": "model 'sonar' not found, try pulling it first", "type": "api_error"}
    }
    failure = failure_of([http_response(404, None, body)])
    assert type(failure) is errors.InvalidRequestError and failure.field == "model"
    assert "model" in (failure.hint or "") and "BASE_URL" not in (failure.hint or "")
    assert "BASE_URL" in (failure_of([http_response(404, None, "nothing here")]).hint or "")


def test_a_server_that_is_not_there_is_a_network_error() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(errors.NetworkError) as raised:
            Client(KEY, backend="chat", base_url=url, max_retries=0).ask("Why?")
    assert raised.value.message and raised.value.hint


WRONG_BODIES: dict[str, Any] = {
    "no JSON": "It is so.", "cut JSON": '{"choices": [', "a list": "[1, 2]", "a text": '"x"', "null": "null",
    "no choices": {"id": "c1"}, "empty choices": {"choices": []}, "choices of text": {"choices": "x"},
    "only sources": {"search_results": None}, "a page": "<html><title>Welcome</title></html>",
}  # fmt: skip


@pytest.mark.parametrize("body", WRONG_BODIES.values(), ids=WRONG_BODIES)
def test_a_body_that_makes_no_sense_is_a_stream_error(body: Any) -> None:
    failure = failure_of([http_response(200, {"Content-Type": "application/json"}, body)])
    assert type(failure) is errors.StreamError


def test_search_results_of_null_are_none_and_the_text_that_was_paid_for_stays() -> None:
    answer = ask([http_response(200, None, {**REPLY, "search_results": None})])
    assert (answer.status, answer.text, len(answer.sources)) == ("completed", "It is so.[1]", 0)


def test_an_answer_with_neither_text_nor_sources_is_empty() -> None:
    body = {"choices": [{"message": {"content": None}, "finish_reason": "stop"}]}
    assert type(failure_of([http_response(200, None, body)])) is errors.EmptyAnswerError


@pytest.mark.parametrize("end", [Reset(), Close()], ids=["reset", "close"])
def test_a_stream_that_breaks_keeps_its_text(end: Any) -> None:
    whole = sse_response(frames(piece("It is"), piece(" so")))
    failure = failure_of([*whole[:-1], end])
    assert isinstance(failure, errors.StreamError) and failure.answer is not None
    assert failure.answer.text.startswith("It is") or isinstance(end, Reset)
    assert failure.answer.status == "failed"


def test_a_stream_that_ends_in_good_order_but_too_early_is_broken() -> None:
    failure = failure_of(sse_response(frames(piece("It is"), piece(" so"))))
    assert failure.message == "The stream ended before the answer did."
    assert failure.answer is not None and failure.answer.text == "It is so"


def test_a_connection_that_is_cut_after_the_last_word_takes_nothing_away() -> None:
    whole = sse_response(frames(piece("It is so."), piece(delta={}, reason="stop")))
    answer = ask([*whole[:-1], Close()])
    assert (answer.status, answer.text, answer.error) == ("completed", "It is so.", None)


def test_a_failure_inside_a_stream_keeps_the_text() -> None:
    broken = frames(piece("It is"), {"error": {"message": "engine on fire", "code": 500}})
    failure = failure_of(sse_response(broken), max_retries=3)
    assert type(failure) is errors.ServerError and "engine on fire" in failure.message
    assert failure.answer is not None and failure.answer.text == "It is"


def test_an_answer_that_was_cut_is_incomplete_with_a_warning() -> None:
    answer = ask(sse_response(frames(piece("It is", "length"), "data: [DONE]")))
    assert (answer.status, answer.finish_reason, answer.error) == ("incomplete", "length", None)
    assert "max_tokens" in answer.warnings[0]


# --- stopping -----------------------------------------------------------------------------------------

SSE_HEAD = http_head(200, {"Content-Type": "text/event-stream", "Connection": "close"})
LONG = {"Content-Type": "application/json", "Content-Length": "1000"}
PLACES: dict[str, list[bytes]] = {
    "before a reply": [],
    "in an error's body": [http_head(500, LONG) + b'{"error": {"mess'],
    "in a refusal's body": [http_head(401, LONG) + b'{"error"'],
    "before the first chunk": [SSE_HEAD],
    "in a stream": [SSE_HEAD, frames(piece("It is"))[0]],
    "in a whole reply": [http_head(200, LONG) + b'{"choices": [{"message"'],
}


@pytest.fixture(params=PLACES.values(), ids=PLACES)
def stalled(request: pytest.FixtureRequest) -> Iterator[tuple[Client, Callable[[], bool]]]:
    """Yield a client of a server that stalls, and a function that tells whether it does."""
    sent = threading.Event()

    def script(asked: RawRequest, connection: RawConnection) -> None:
        for step in request.param:
            connection.send(step)
        sent.set()
        connection.play(HoldOpen())

    with RawServer(script) as server, client_for(server, max_retries=3) as client:
        yield client, sent.is_set
        assert len(server.requests) == 1, "what was stopped is not sent again"
        assert server.wait_for_disconnect()


def test_a_stop_is_a_stop_wherever_it_comes(stalled: tuple[Client, Callable[[], bool]]) -> None:
    client, is_stalled = stalled
    stream = client.stream("Why?")
    stream.on_wait = lambda: stream.cancel() if is_stalled() else None
    for _ in stream:
        pass
    assert stream.answer.status == "stopped"
    assert type(stream.answer.error) is errors.AbortedError
    assert stream.answer.text in ("", "It is")


def test_what_was_stopped_before_it_began_is_never_sent() -> None:
    with RawServer([http_response(200, None, REPLY)]) as server, client_for(server) as client:
        stream = client.stream("Why?")
        stream.cancel()
        assert list(stream) == []
        assert stream.answer.status == "stopped"
        assert server.requests == []
