"""The model calls functions of the notebook, and the answer goes on with what they return."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from ipyperplexity import Answer, Client, Question
from ipyperplexity.answer_stream import AnswerStream, Call
from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.errors import (
    AbortedError,
    InvalidRequestError,
    PerplexityError,
    RequestTimeout,
    ServerError,
    StreamError,
)
from ipyperplexity.events import (
    Event,
    Finished,
    Retrying,
    Searching,
    SourcesFound,
    Started,
    TextDelta,
    TextReplaced,
    ToolCalled,
    ToolReturned,
)
from ipyperplexity.service import Service
from ipyperplexity.wire.base import Wire, WireRequest
from tests.net.asking import (
    KEY,
    client_for,
    completed,
    delta,
    eventually,
    item_done,
    message,
    results,
)
from tests.support.raw_server import (
    HoldOpen,
    RawConnection,
    RawRequest,
    RawServer,
    Script,
    Step,
    http_response,
    in_turn,
    sse_frames,
    sse_response,
)

USAGE = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12, "cost": {"total_cost": 0.25}}
PAGE = {"id": 1, "url": "https://a.example/one", "title": "One"}
OTHER = {"id": 1, "url": "https://b.example/two", "title": "Two"}


def wants(name: str = "add", arguments: str = '{"a": 1, "b": 2}', n: int = 1, **fields: Any) -> dict[str, Any]:  # fmt: skip
    """Return a ``function_call`` item."""
    call = {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "name": name}
    return {**call, "arguments": arguments, "status": "completed", **fields}


def events_of(*output: dict[str, Any], id: str = "resp_1", **fields: Any) -> list[dict[str, Any]]:
    """Return the events of a round with these output items."""
    begun = {"id": id, "object": "response", "status": "in_progress", "model": "low", "output": []}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(output):
        if item["type"] == "message":
            text = item["content"][0]["text"]
            events.append(delta(text, item_id=item["id"], output_index=index))
        else:
            events.append({**item_done(item, index), "type": "response.output_item.added"})
        events.append(item_done(item, index))
    return [*events, completed(*output, id=id, **{"usage": USAGE, **fields})]


def round_of(*output: dict[str, Any], **fields: Any) -> list[Step]:
    return sse_response(sse_frames(events_of(*output, **fields)))


LAST = round_of(message("It is 3."), id="resp_2")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def fail(a: int, b: int) -> int:
    raise ValueError("no such number")


def ask(
    *scripts: Script, tools: Any = (add,), **options: Any
) -> tuple[list[Event], Answer, list[Any]]:
    """Ask a server that plays a script a round; return events, answer and the requests' bodies."""
    retries = options.pop("max_retries", 0)
    with RawServer(in_turn(*scripts)) as server, client_for(server, max_retries=retries) as client:
        events: list[Event] = []
        with client.stream("How much?", tools=tools, **options) as stream:
            try:
                events += stream
            except PerplexityError as error:
                assert error.answer is stream.answer
        assert stream.text == stream.answer.text
        return events, stream.answer, [request.json for request in server.requests]


def kinds(events: list[Event]) -> list[type]:
    return [type(event) if not isinstance(event, ToolCalled) else ToolCalled for event in events]


# --- the way of a call --------------------------------------------------------------------------


def test_a_function_is_run_and_the_answer_goes_on() -> None:
    events, answer, bodies = ask(round_of(wants()), LAST)
    assert kinds(events) == [
        Started, ToolCalled, ToolReturned, Started, TextDelta, Finished,
    ]  # fmt: skip
    assert answer.text == "It is 3."
    assert answer.status == "completed" and answer.id == "resp_2"
    (call,) = answer.tool_calls
    assert (call.name, call.arguments, call.output) == ("add", '{"a": 1, "b": 2}', "3")
    assert call.error is None and call.traceback is None and call.elapsed >= 0
    first, second = bodies
    assert [tool["type"] for tool in first["tools"]] == ["web_search", "function"]
    assert second.pop("input") == [
        {"role": "user", "content": "How much?"},
        {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": '{"a": 1, "b": 2}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "3"},
    ]  # fmt: skip
    first.pop("input")
    assert first == second, "all else stays as it was"


def test_what_all_rounds_took_is_added_up() -> None:
    _, answer, _ = ask(
        round_of(results(PAGE, queries=["q"]), wants(), usage={**USAGE, "tool_calls_details": {"search_web": {"invocation": 2}}}),
        LAST,
    )  # fmt: skip
    assert (answer.usage.total_tokens, answer.usage.cost_usd) == (24, 0.5)
    assert answer.usage.searches == 2
    assert answer.usage.reasoning_tokens is None


def test_a_reply_that_is_no_stream_calls_functions_too() -> None:
    reply = http_response(200, {}, completed(wants(), usage=USAGE)["response"])
    last = http_response(200, {}, completed(message("It is 3."), usage=USAGE)["response"])
    events, answer, bodies = ask([reply], [last], stream=False)
    assert kinds(events) == [ToolCalled, ToolReturned, TextDelta, Finished]
    assert answer.text == "It is 3." and answer.usage.total_tokens == 24
    assert "stream" not in bodies[1]


def test_several_calls_run_in_their_order_in_the_callers_thread() -> None:
    ran: list[tuple[int, threading.Thread]] = []

    def note(n: int) -> None:
        ran.append((n, threading.current_thread()))

    calls = [wants("note", f'{{"n": {n}}}', n) for n in (3, 1, 2)]
    events, _, bodies = ask(round_of(*calls), LAST, tools=note)
    assert ran == [(n, threading.current_thread()) for n in (3, 1, 2)]
    assert kinds(events[1:7]) == [ToolCalled, ToolReturned] * 3
    sent = [(item["type"], item["call_id"]) for item in bodies[1]["input"][1:]]
    assert sent == [("function_call", f"call_{n}") for n in (3, 1, 2)] + [
        ("function_call_output", f"call_{n}") for n in (3, 1, 2)
    ]


def test_calls_of_every_round_are_answered_and_all_is_sent_again() -> None:
    second = round_of(wants(n=2, arguments='{"a": 3, "b": 4}'), id="resp_2")
    _, answer, bodies = ask(round_of(wants()), second, LAST)
    assert [call.output for call in answer.tool_calls] == ["3", "7"]
    assert [item.get("call_id") for item in bodies[2]["input"]] == [
        None, "call_1", "call_1", "call_2", "call_2",
    ]  # fmt: skip
    assert answer.usage.total_tokens == 36


def test_what_the_service_wants_back_with_a_call_is_sent_back() -> None:
    signed = wants(thought_signature="c2lnbmVk")
    _, _, bodies = ask(round_of(message("I add."), signed), LAST)
    assert bodies[1]["input"][1:3] == [
        {"role": "assistant", "content": "I add."},
        {"type": "function_call", "call_id": "call_1", "name": "add",
         "arguments": '{"a": 1, "b": 2}', "thought_signature": "c2lnbmVk"},
    ]  # fmt: skip


def test_a_call_that_was_forced_is_not_forced_again() -> None:
    extra = {"tool_choice": {"name": "add"}}
    _, _, bodies = ask(round_of(wants()), LAST, extra=extra)
    assert bodies[0]["tool_choice"] == {"name": "add"} and "tool_choice" not in bodies[1]


def test_a_run_that_waits_for_results_gets_them() -> None:
    waiting = events_of(wants(), status="requires_action")
    for kind in ("response.completed", "response.incomplete", "response.requires_action"):
        waiting[-1]["type"] = kind
        _, answer, _ = ask(sse_response(sse_frames(waiting)), LAST)
        assert (answer.status, answer.text, answer.warnings) == ("completed", "It is 3.", ())


def test_a_follow_up_keeps_its_earlier_answer_through_the_rounds() -> None:
    with RawServer(in_turn(LAST, round_of(wants()), LAST)) as server, client_for(server) as client:
        first = client.ask("How much?")
        assert first.follow_up("And now?", tools=add).text == "It is 3."
        bodies = [request.json for request in server.requests]
    assert [body.get("previous_response_id") for body in bodies] == [None, "resp_2", "resp_2"]
    assert bodies[2]["input"][0] == {"role": "user", "content": "And now?"}


# --- what is told and kept ----------------------------------------------------------------------


def test_what_a_function_raises_is_told_to_the_model_and_kept() -> None:
    events, answer, bodies = ask(round_of(wants("fail")), LAST, tools=fail)
    assert bodies[1]["input"][2]["output"] == "Error: ValueError: no such number"
    (call,) = answer.tool_calls
    assert call.error == "ValueError: no such number"
    assert call.traceback is not None and "in fail" in call.traceback
    assert answer.status == "completed" and answer.error is None
    (returned,) = (event for event in events if isinstance(event, ToolReturned))
    assert returned.error == call.error


def test_a_name_that_does_not_exist_is_told_to_the_model() -> None:
    _, answer, bodies = ask(round_of(wants("subtract")), LAST)
    said = "there is no function 'subtract'; there are: add"
    assert bodies[1]["input"][2]["output"] == f"Error: {said}"
    assert answer.tool_calls[0].error == said and answer.text == "It is 3."


def test_arguments_that_are_damaged_are_told_to_the_model() -> None:
    _, answer, _ = ask(round_of(wants(arguments='{"a": 1')), LAST)
    assert "they are no JSON" in (answer.tool_calls[0].error or "")
    assert answer.text == "It is 3."


def test_calls_are_saved_and_pickled_and_hold_no_key(tmp_path: Path) -> None:
    def leak(a: int, b: int) -> str:
        raise ValueError(KEY)

    _, answer, _ = ask(round_of(wants("leak")), LAST, tools=leak)
    assert KEY not in repr(answer.tool_calls) and "ValueError" in repr(answer.tool_calls)
    answer.save(tmp_path / "answer.json")
    assert Answer.load(tmp_path / "answer.json").tool_calls == answer.tool_calls
    assert pickle.loads(pickle.dumps(answer)).tool_calls == answer.tool_calls


def test_a_coroutine_is_a_function_too_also_where_a_loop_runs() -> None:
    async def later(a: int, b: int) -> int:
        await asyncio.sleep(0.001)
        return a + b

    async def cell() -> Answer:
        return ask(round_of(wants("later")), LAST, tools=later)[1]

    assert asyncio.run(cell()).tool_calls[0].output == "3"


# --- sources and text of several rounds ---------------------------------------------------------


def test_sources_of_all_rounds_are_there_and_the_last_keeps_its_numbers() -> None:
    first = round_of(
        results(PAGE, {**PAGE, "id": 2, "url": "https://c.example"}, queries=["q"]), wants()
    )
    last = round_of(results(OTHER, queries=["r"]), message("It is 3.[1]"), id="resp_2")
    events, answer, _ = ask(first, last)
    assert [(s.id, s.domain, s.cited) for s in answer.sources] == [
        (1, "b.example", True), (2, "c.example", False), (3, "a.example", False),
    ]  # fmt: skip
    assert answer.text == "It is 3.[1]" and answer.searches == ("q", "r")
    assert answer.sources.get(3) is None, "no marker of the service means a number of ours"
    assert not any(isinstance(event, TextReplaced) for event in events)
    shown = [event for event in events if isinstance(event, SourcesFound)][-1]
    assert list(shown.sources["url"]) == list(answer.sources["url"])
    assert [event.queries for event in events if isinstance(event, Searching)] == [("q",), ("r",)]


def test_text_of_earlier_rounds_is_kept_and_its_markers_follow_their_sources() -> None:
    first = round_of(results(PAGE), message("One is so.[1] `x[1]`"), wants())
    last = round_of(results(OTHER), message("Two is so.[1]", id="msg_2"), id="resp_2")
    events, answer, _ = ask(first, last)
    shown = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert shown == "One is so.[1] `x[1]`\n\nTwo is so.[1]"
    assert answer.text == "One is so.[2] `x[1]`\n\nTwo is so.[1]"
    assert [c.source.domain for c in answer.citations if c.source] == ["a.example", "b.example"]
    assert kinds(events)[-2:] == [TextReplaced, Finished]
    assert events[-2] == TextReplaced(answer.text)


def test_a_structured_answer_is_read_from_the_last_round() -> None:
    first = round_of(message('{"n": 1}'), wants())
    _, answer, _ = ask(first, round_of(message('{"n": 3}'), id="resp_2"), schema={"n": int})
    assert answer.data == {"n": 3} and answer.text == '{"n": 1}\n\n{"n": 3}'


# --- where it ends ------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "rounds"), [({}, 10), ({"max_steps": 3}, 3), ({"max_steps": 1}, 1)])  # fmt: skip
def test_the_number_of_rounds_is_bounded(options: dict[str, Any], rounds: int) -> None:
    events, answer, bodies = ask(round_of(message("Hm."), wants()), **options)
    assert len(bodies) == rounds
    assert (answer.status, answer.finish_reason) == ("incomplete", "max_steps")
    assert [f"after {rounds} rounds" in warning for warning in answer.warnings] == [True]
    assert [call.output for call in answer.tool_calls] == ["3"] * (rounds - 1) + [""]
    assert "max_steps" in (answer.tool_calls[-1].error or "")
    assert answer.usage.total_tokens == 12 * rounds
    assert isinstance(events[-1], Finished) and events[-1].status == "incomplete"


def test_a_call_of_a_function_that_was_declared_by_hand_is_left_to_who_did() -> None:
    form = {"name": "mine", "parameters": {"type": "object"}}
    flat, nested = {"type": "function", **form}, {"type": "function", "function": form}
    for tools in ([flat], [flat, add], [nested], [nested, add]):
        events, answer, bodies = ask(round_of(wants("mine", "{}")), tools=tools)
        assert len(bodies) == 1
        assert (answer.status, answer.text, answer.error) == ("completed", "", None)
        (call,) = answer.tool_calls
        assert (call.name, call.output, call.error) == ("mine", "", None)
        assert kinds(events) == [Started, ToolCalled, Finished]


def test_calls_of_a_round_that_was_cut_are_not_run() -> None:
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    _, answer, bodies = ask(round_of(wants(), **cut))
    assert len(bodies) == 1 and answer.status == "incomplete"
    assert answer.tool_calls[0].output == ""


def test_a_later_round_that_fails_loses_nothing_of_the_first() -> None:
    first = round_of(results(PAGE), message("I add.[1]"), wants())
    events, answer, _ = ask(first, [http_response(500, {}, {"error": {"message": "broken"}})])
    assert answer.status == "failed" and isinstance(answer.error, ServerError)
    assert answer.text == "I add.[1]" and answer.sources[0].cited
    assert answer.tool_calls[0].output == "3"
    assert (answer.usage.total_tokens, answer.usage.cost_usd) == (12, 0.25)
    assert answer.raw["id"] == "resp_1"
    assert not any(isinstance(event, Finished) for event in events)


def test_a_later_round_that_breaks_off_keeps_its_text_and_the_meaning_of_markers() -> None:
    first = round_of(results(PAGE), message("One.[1]"), wants())
    broken = sse_frames(events_of(results(OTHER), message("Two.[1]", id="msg_2"))[:-1])
    _, answer, _ = ask(first, sse_response(broken))
    assert isinstance(answer.error, StreamError)
    assert answer.text == "One.[2]\n\nTwo.[1]"
    assert [c.source.domain for c in answer.citations if c.source] == ["a.example", "b.example"]


def test_a_later_round_is_sent_again_as_a_first_one_is() -> None:
    busy = http_response(503, {"Retry-After": "0.01"})
    events, answer, bodies = ask(round_of(wants()), [busy], LAST, max_retries=1)
    assert answer.text == "It is 3." and len(answer.tool_calls) == 1
    assert sum(isinstance(event, Retrying) for event in events) == 1
    assert bodies[1] == bodies[2]


def test_the_time_limit_holds_for_all_rounds_and_the_functions() -> None:
    for kind in (slow, slow_coroutine):
        _, answer, bodies = ask(round_of(wants(kind.__name__, "{}")), tools=kind, timeout=0.3)
        assert isinstance(answer.error, RequestTimeout) and answer.error.field == "timeout"
        assert len(bodies) == 1, "what is too late is not paid for"
        assert len(answer.tool_calls) == 1


def slow() -> None:
    threading.Event().wait(0.4)


async def slow_coroutine() -> None:
    await asyncio.sleep(60)


# --- stopping -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["cancel", "interrupt", "leave"])
def test_a_stop_while_a_function_runs_ends_the_answer(how: str) -> None:
    running: list[AnswerStream] = []

    def stop(a: int, b: int) -> int:
        if how == "interrupt":
            os.kill(os.getpid(), signal.SIGINT)
        running[0].cancel()
        return a + b

    with RawServer(in_turn(round_of(message("Hm."), wants("stop")))) as server:
        client = client_for(server)
        stream = client.stream("Why?", tools=stop)
        running.append(stream)
        if how == "leave":
            with stream:
                for event in stream:
                    if isinstance(event, ToolCalled):
                        break
        elif how == "interrupt":
            with pytest.raises(KeyboardInterrupt):
                list(stream)
        else:
            list(stream)
        assert (stream.answer.status, stream.answer.text) == ("stopped", "Hm.")
        assert isinstance(stream.answer.error, AbortedError)
        assert stream.answer.usage.total_tokens == 12, "the first round has been paid"
        assert len(stream.answer.tool_calls) == (0 if how == "leave" else 1)
        assert no_message_is_left()
        assert len(server.requests) == 1, "nothing goes on, and no run is left to stop"


def no_message_is_left() -> bool:
    """Whether nothing is on its way to the service any more."""
    return eventually(
        lambda: not any(t.name == "ipyperplexity-cancel" for t in threading.enumerate())
    )


def test_a_call_that_is_seen_can_still_be_prevented() -> None:
    ran: list[int] = []

    def delete(a: int, b: int) -> None:
        ran.append(a)

    with RawServer(round_of(wants("delete"))) as server, client_for(server) as client:
        stream = client.stream("Why?", tools=delete)
        for event in stream:
            if isinstance(event, ToolCalled):
                stream.cancel()
        assert ran == [] and stream.answer.status == "stopped"
        assert stream.answer.tool_calls == ()


@pytest.mark.parametrize("how", ["cancel", "interrupt"])
def test_a_stop_while_a_coroutine_runs_cancels_it(how: str) -> None:
    began, cancelled = threading.Event(), threading.Event()

    async def sleep(a: int, b: int) -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    with RawServer(round_of(wants("sleep"))) as server, client_for(server) as client:
        stream = client.stream("Why?", tools=sleep)

        def stop() -> None:
            assert began.wait(5)
            stream.cancel() if how == "cancel" else os.kill(os.getpid(), signal.SIGINT)

        stopper = threading.Thread(target=stop)
        stopper.start()
        if how == "interrupt":
            with pytest.raises(KeyboardInterrupt):
                list(stream)
        else:
            list(stream)
        stopper.join()
        assert cancelled.wait(5)
        assert stream.answer.status == "stopped"
        assert (stream.answer.tool_calls[0].error or "").startswith("not finished: ")
        assert no_message_is_left()
        assert len(server.requests) == 1


def test_while_a_coroutine_runs_the_loop_is_told_the_time() -> None:
    ticks = threading.Event()

    async def wait(a: int, b: int) -> str:
        while not ticks.is_set():
            await asyncio.sleep(0.01)
        return "told"

    with RawServer(in_turn(round_of(wants("wait")), LAST)) as server, client_for(server) as client:
        stream = client.stream("Why?", tools=wait)
        stream.on_wait = ticks.set
        assert stream.answer.tool_calls[0].output == "told"


def test_a_stop_in_a_later_round_stops_that_run_at_the_service() -> None:
    begun = sse_frames(events_of(id="resp_2")[:1])

    def second(request: RawRequest, connection: RawConnection) -> None:
        if request.path.endswith("/cancel"):
            connection.play(http_response(200, {}, {}))
            return
        for step in sse_response([*begun, *sse_frames([delta("It")])])[:3]:
            connection.play(step)
        connection.play(HoldOpen())

    with RawServer(in_turn(round_of(wants()), second)) as server, client_for(server) as client:
        with client.stream("Why?", tools=add) as stream:
            for event in stream:
                if isinstance(event, TextDelta):
                    break
        assert server.wait_for_requests(3)
        assert server.requests[2].path == "/v1/responses/resp_2/cancel"
        assert stream.answer.tool_calls[0].output == "3"


# --- other services -----------------------------------------------------------------------------


def test_a_backend_that_runs_no_functions_says_so_before_anything_is_sent() -> None:
    nothing = Wire("plain", lambda q, **how: WireRequest("/", {}), lambda f, r: iter(()), lambda b, r: iter(()))  # fmt: skip
    service = Service("plain", "http://127.0.0.1:9", session=lambda: pytest.fail("sent"))
    with pytest.raises(InvalidRequestError, match="plain backend") as raised:
        AnswerStream(Question("Why?", tools=add), Call(service, nothing))
    assert raised.value.field == "tools"
    assert "'agent'" in (raised.value.hint or "") and "'chat'" in (raised.value.hint or "")


def topic(name: str) -> str:
    """Say what a word is about."""
    return f"{name} is a word"


async def topic_later(name: str) -> str:
    await asyncio.sleep(0)
    return topic(name)


@pytest.mark.parametrize("function", [topic, topic_later])
@pytest.mark.parametrize("stream", [True, False])
def test_the_embedded_engine_calls_a_function_and_goes_on(function: Any, stream: bool) -> None:
    with EmulatorServer(pace=0) as server, Client(api_key=KEY, base_url=server.url) as client:
        extra = {"tool_choice": {"name": function.__name__}}
        answer = client.ask("What is a lambda?", stream=stream, tools=function, extra=extra)
    assert [call.error for call in answer.tool_calls] == [None]
    assert answer.tool_calls[0].output == "What is a lambda? is a word"
    assert json.loads(answer.tool_calls[0].arguments) == {"name": "What is a lambda?"}
    assert answer.text and answer.sources and answer.status == "completed"
