"""A stream stops at once, whoever stops it and wherever it is, and what came is kept.

Nothing here looks at a clock: a stop counts as prompt because the server is still silent (it would
never have sent another byte) when the client hangs up.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import requests

from ipyperplexity import Client
from ipyperplexity.answer_stream import AnswerStream
from ipyperplexity.errors import AbortedError, Interrupted, PerplexityError
from ipyperplexity.events import Retrying, TextDelta
from tests.net.asking import SOURCES, client_for, eventually, readers
from tests.support.raw_server import (
    FRAMINGS,
    HoldOpen,
    RawConnection,
    RawRequest,
    RawServer,
    Script,
    Wait,
    agent_stream,
    http_head,
    http_response,
    sse_response,
)

ANSWER = agent_stream("It is so.[1] And more.", SOURCES)
FRAMES = sse_response(ANSWER)
SOME = (
    next(n for n, s in enumerate(FRAMES) if isinstance(s, bytes) and b'"delta": "so.[1] ' in s) + 1
)
SOME_OF: dict[str, list[bytes]] = {
    framing: [step for step in sse_response(ANSWER, framing)[:SOME] if isinstance(step, bytes)]
    for framing in FRAMINGS
}
STOPS = ("interrupt", "cancel")


@dataclass(frozen=True)
class Place:
    """Where a stream is when it is stopped: the server plays `steps`, then stays silent."""

    steps: list[bytes]
    text: str = ""


PLACES = {
    "before the headers": Place([]),
    "in the middle of the headers": Place([b"HTTP/1.1 200 OK\r\nContent-Type: text/ev"]),
    "before the first byte": Place([FRAMES[0]]),  # type: ignore[list-item]
    "in the body": Place(FRAMES[:SOME], "It is so.[1] "),  # type: ignore[arg-type]
    "in a body under a length": Place(SOME_OF["length"], "It is so.[1] "),
    "in a body until the end of the connection": Place(SOME_OF["close"], "It is so.[1] "),
    "in one large chunk": Place(SOME_OF["dribbled"], "It is so.[1] "),
    "in a compressed body": Place(SOME_OF["gzip"], "It is so.[1] "),
    "inside an error's body": Place([http_head(500, {"Content-Length": "500"}), b'{"error"']),
    "before an error's body": Place([http_head(429, {"Content-Length": "500"})]),
    "inside a body of JSON": Place(
        [http_head(200, {"Content-Type": "application/json", "Content-Length": "500"}), b'{"id": ']
    ),
    "before a body of JSON": Place(
        [http_head(200, {"Content-Type": "application/json", "Content-Length": "500"})]
    ),
}


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@contextlib.contextmanager
def asking(
    steps: list[bytes], **options: object
) -> Iterator[tuple[RawServer, Client, threading.Event]]:
    """Serve `steps`, then silence; the event is set when all of it has been sent."""
    silent = threading.Event()

    def script(request: RawRequest, connection: RawConnection) -> None:
        if takes_leave(request, connection):
            return
        for step in steps:
            connection.send(step)
        silent.set()
        connection.play(HoldOpen())

    with RawServer(script) as server, client_for(server, **options) as client:
        yield server, client, silent


def stop_when(ready: Callable[[], object], stop: Callable[[], object]) -> threading.Thread:
    def wait_and_stop() -> None:
        if eventually(ready):
            stop()

    thread = threading.Thread(target=wait_and_stop)
    thread.start()
    return thread


def takes_leave(request: RawRequest, connection: RawConnection) -> bool:
    """Answer the message that stops a run at the service, if it is that."""
    if not request.path.endswith("/cancel"):
        return False
    connection.play(http_response(200, {"Content-Type": "application/json"}, b"{}"))
    return True


def questions(server: RawServer) -> list[RawRequest]:
    """Return what was asked, without the messages that stop a run at the service."""
    return [request for request in server.requests if not request.path.endswith("/cancel")]


def is_over(server: RawServer) -> bool:
    """Whether the server was hung up on, and no thread reads on."""
    return server.wait_for_disconnect() and eventually(lambda: not readers())


def assert_stopped(stream: AnswerStream, text: str) -> None:
    answer = stream.answer
    assert (answer.status, answer.text) == ("stopped", text)
    assert isinstance(answer.error, AbortedError)
    assert answer.error.status_code is None and answer.error.answer is answer


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("how", STOPS)
@pytest.mark.parametrize("max_retries", [0, 3])
def test_a_stop_is_at_once_while_the_service_is_silent(
    place: Place, how: str, max_retries: int
) -> None:
    with asking(place.steps, max_retries=max_retries) as (server, client, silent):
        stream = client.stream("Why?")
        has_come = lambda: silent.is_set() and stream.text == place.text  # noqa: E731
        stopper = stop_when(has_come, interrupt if how == "interrupt" else stream.cancel)
        raised = (
            pytest.raises(KeyboardInterrupt) if how == "interrupt" else contextlib.nullcontext()
        )
        with raised:
            for event in stream:
                assert not isinstance(event, Retrying)
        stopper.join()
        assert_stopped(stream, place.text)
        assert is_over(server)
        assert len(questions(server)) == 1
        assert client.last is stream.answer


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_an_interrupted_ask_holds_what_came(place: Place) -> None:
    with asking(place.steps, max_retries=2) as (server, client, silent):
        has_come = lambda: silent.is_set() and all(s.text == place.text for s in client._running)  # noqa: E731
        stopper = stop_when(has_come, interrupt)
        with pytest.raises(Interrupted) as raised:
            client.ask("Why?")
        stopper.join()
        answer = raised.value.answer
        assert answer is not None and answer is client.last
        assert (answer.status, answer.text) == ("stopped", place.text)
        assert is_over(server)
        assert raised.value._render_traceback_() == [f"Interrupted: {raised.value.message}"]


@pytest.mark.parametrize("how", STOPS)
def test_a_stop_is_at_once_while_data_flows(how: str) -> None:
    def flow(request: RawRequest, connection: RawConnection) -> None:
        head, *frames = FRAMES[:SOME]
        connection.send(head)  # type: ignore[arg-type]
        while not connection.disconnected.is_set():
            connection.send(frames[-1])  # type: ignore[arg-type]
            connection.play(Wait(0.002))

    with RawServer(flow) as server, client_for(server) as client:
        stream = client.stream("Why?")
        stopper = stop_when(lambda: len(stream.text) > 100, interrupt if how == "interrupt" else stream.cancel)  # fmt: skip
        shown: list[str] = []
        raised = (
            pytest.raises(KeyboardInterrupt) if how == "interrupt" else contextlib.nullcontext()
        )
        with raised:
            for event in stream:
                if isinstance(event, TextDelta):
                    shown.append(event.text)
        stopper.join()
        assert stream.answer.status == "stopped"
        assert len(stream.answer.text) > 100
        assert stream.answer.text.startswith("".join(shown))
        assert is_over(server)


@pytest.mark.parametrize("how", STOPS)
def test_a_stop_is_at_once_while_waiting_for_a_retry(how: str) -> None:
    script = [http_response(429, {"Retry-After": "50"})]
    with RawServer(script) as server, client_for(server, max_retries=3) as client:
        stream = client.stream("Why?")
        seen: list[Retrying] = []
        stopper = stop_when(lambda: seen, interrupt if how == "interrupt" else stream.cancel)
        raised = (
            pytest.raises(KeyboardInterrupt) if how == "interrupt" else contextlib.nullcontext()
        )
        with raised:
            seen.extend(event for event in [next(iter(stream))] if isinstance(event, Retrying))
            for _ in stream:
                pass
        stopper.join()
        assert_stopped(stream, "")
        assert len(questions(server)) == 1


def test_the_loop_is_told_the_time_while_it_waits_for_a_retry() -> None:
    script = [http_response(503, {"Retry-After": "50"})]
    with RawServer(script) as server, client_for(server, max_retries=1) as client:
        stream = client.stream("Why?")
        ticks: list[float] = []

        def look() -> None:
            ticks.append(stream.elapsed)
            if len(ticks) == 3:
                stream.cancel()

        stream.on_wait = look
        list(stream)
        assert ticks == sorted(ticks) and len(ticks) == 3


def test_the_loop_is_told_the_time_while_the_service_is_silent() -> None:
    with asking(PLACES["in the body"].steps) as (server, client, _):
        stream = client.stream("Why?")
        stream.on_wait = stream.cancel
        list(stream)
        assert_stopped(stream, "It is so.[1] ")
        assert is_over(server)


def test_an_error_of_the_users_own_ends_the_request_and_comes_through() -> None:
    def fail() -> None:
        raise LookupError("mine")

    with asking(PLACES["in the body"].steps) as (server, client, _):
        stream = client.stream("Why?")
        stream.on_wait = fail
        with pytest.raises(LookupError, match="mine"):
            list(stream)
        assert is_over(server)
        assert stream.answer.text == "It is so.[1] "


def test_leaving_the_with_block_hangs_up_and_keeps_what_came() -> None:
    with asking(PLACES["in the body"].steps) as (server, client, _):
        with client.stream("Why?") as stream:
            for _event in stream:
                if stream.text == "It is ":
                    break
        assert_stopped(stream, "It is ")
        assert is_over(server)
        assert list(stream) == []


def test_leaving_by_an_error_hangs_up_too() -> None:
    with asking(PLACES["in the body"].steps) as (server, client, _):
        with pytest.raises(LookupError), client.stream("Why?") as stream:
            for _event in stream:
                raise LookupError
        assert is_over(server)
        assert stream.answer.status == "stopped"


def test_breaking_out_of_the_loop_alone_lets_the_rest_be_had() -> None:
    with RawServer(FRAMES) as server, client_for(server).stream("Why?") as stream:
        for event in stream:
            if isinstance(event, TextDelta):
                break
        assert stream.text == "It "
        assert not stream.done
        assert stream.answer.text == "It is so.[1] And more."
        assert stream.done


def test_a_stream_that_nobody_holds_any_more_hangs_up() -> None:
    with asking(PLACES["in the body"].steps) as (server, client, _):
        next(iter(client.stream("Why?")))
        gc.collect()
        assert is_over(server)


def test_the_answer_may_be_asked_for_before_anything_was_read() -> None:
    with RawServer(FRAMES) as server, client_for(server).stream("Why?") as stream:
        assert (stream.text, stream.elapsed, stream.done) == ("", 0.0, False)
        assert stream.answer.text == "It is so.[1] And more."
        assert stream.answer is stream.answer
        assert list(stream) == []


def test_a_stream_cancelled_before_it_begins_sends_nothing() -> None:
    with RawServer(FRAMES) as server, client_for(server) as client:
        stream = client.stream("Why?")
        stream.cancel()
        assert list(stream) == []
        assert_stopped(stream, "")
        assert server.requests == []


def test_a_stream_closed_before_it_begins_sends_nothing() -> None:
    with RawServer(FRAMES) as server, client_for(server) as client:
        with client.stream("Why?") as stream:
            pass
        assert_stopped(stream, "")
        assert server.requests == []


def test_stopping_again_or_after_the_end_changes_nothing() -> None:
    with RawServer(FRAMES) as server, client_for(server) as client:
        with client.stream("Why?") as stream:
            list(stream)
            for _ in range(3):
                stream.cancel()
                stream.close()
        assert stream.answer.status == "completed"
        assert client.ask("Why?").status == "completed"
        assert len(server.connections) == 1, "a late stop must not break the kept connection"


def test_a_cancelled_ask_is_an_error_with_the_text() -> None:
    with asking(PLACES["in the body"].steps) as (server, client, silent):
        stopper = stop_when(lambda: silent.is_set() and client._running and all(s.text.endswith("] ") for s in client._running), client.close)  # fmt: skip
        with pytest.raises(AbortedError) as raised:
            client.ask("Why?")
        stopper.join()
        assert raised.value.answer is not None
        assert (raised.value.answer.status, raised.value.answer.text) == (
            "stopped",
            "It is so.[1] ",
        )
        assert is_over(server)


def test_closing_the_client_stops_all_that_runs_and_it_can_be_used_again() -> None:
    arrived = threading.Barrier(4)

    def script(request: RawRequest, connection: RawConnection) -> None:
        if takes_leave(request, connection):
            return
        for step in FRAMES[:SOME]:
            connection.play(step)
        if request.json["input"][0]["content"] == "Wait":
            arrived.wait(5)
            connection.play(HoldOpen())
        for step in FRAMES[SOME:]:
            connection.play(step)

    with RawServer(script) as server, client_for(server) as client:
        streams = [client.stream("Wait") for _ in range(3)]
        threads = [threading.Thread(target=list, args=(stream,)) for stream in streams]
        for thread in threads:
            thread.start()
        arrived.wait(5)
        client.close()
        for thread in threads:
            thread.join(5)
        assert [stream.answer.status for stream in streams] == ["stopped"] * 3
        assert eventually(lambda: not readers())
        assert client.ask("Why?").status == "completed"


@pytest.mark.parametrize("name", ["before the headers", "in the body"])
def test_a_stop_comes_through_a_session_of_the_users_own(name: str) -> None:
    text = PLACES[name].text
    with (
        asking(PLACES[name].steps) as (server, _, silent),
        requests.Session() as session,
        client_for(server, session=session) as client,
    ):
        stream = client.stream("Why?")
        stopper = stop_when(lambda: silent.is_set() and stream.text == text, stream.cancel)
        list(stream)
        stopper.join()
        assert_stopped(stream, text)


def test_text_may_be_read_from_another_thread_while_it_grows() -> None:
    text = "".join(f"word{n} " for n in range(800))
    script: Script = sse_response(agent_stream(text), "close")
    with RawServer(script) as server, client_for(server).stream("Why?") as stream:
        seen: list[str] = []
        over = threading.Event()

        def watch() -> None:
            while not over.is_set():
                seen.append(stream.text)
                over.wait(0.001)

        watcher = threading.Thread(target=watch)
        watcher.start()
        list(stream)
        over.set()
        watcher.join()
        assert stream.text == stream.answer.text == text
        assert all(text.startswith(part) for part in seen[:: max(1, len(seen) // 200)])


def test_closing_from_another_thread_ends_the_loop() -> None:
    with asking(PLACES["in the body"].steps) as (server, client, _):
        stream = client.stream("Why?")
        stopper = stop_when(lambda: stream.text.endswith("] "), stream.close)
        with contextlib.suppress(PerplexityError):
            list(stream)
        stopper.join()
        assert_stopped(stream, "It is so.[1] ")
        assert is_over(server)
