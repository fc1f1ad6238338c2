"""Whoever stops an answer stops its run at the service too, and never waits for that."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import Any

import pytest

from ipyperplexity import Client
from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.errors import AbortedError
from ipyperplexity.events import Finished, TextDelta
from tests.net.asking import KEY, client_for, delta, eventually
from tests.support.raw_server import (
    HoldOpen,
    Pause,
    RawConnection,
    RawRequest,
    RawServer,
    agent_stream,
    http_response,
    sse_frames,
    sse_response,
)

FRAMES = sse_response(agent_stream("It is so. And more."))


@pytest.mark.parametrize("how", ["interrupt", "cancel", "leave"])
def test_a_stop_cancels_the_run_of_a_real_service(how: str) -> None:
    with EmulatorServer(pace=0.05) as server, Client(api_key=KEY, base_url=server.url) as client:
        raised = (
            pytest.raises(KeyboardInterrupt) if how == "interrupt" else contextlib.nullcontext()
        )
        with raised, client.stream("What is a lambda?") as stream:
            for event in stream:
                if isinstance(event, TextDelta):
                    if how == "leave":
                        break
                    stream.cancel() if how == "cancel" else os.kill(os.getpid(), signal.SIGINT)
        assert stream.answer.status == "stopped" and stream.answer.id
        cancels = [f"/v1/responses/{stream.answer.id}/cancel"]
        asked = lambda: [r.path for r in server.requests if "cancel" in r.path]  # noqa: E731
        assert eventually(asked) and asked() == cancels


@pytest.mark.parametrize("id", [None, "", "../../v1/files", "resp_1?x=", "resp 1", 3])
def test_what_is_no_id_is_put_into_no_address(id: Any) -> None:
    begun = {"type": "response.created", "response": {"id": id, "status": "in_progress"}}
    frames = sse_frames([begun, delta("It is")])
    script = [*sse_response(frames)[:3], HoldOpen()]
    with RawServer(script) as server, client_for(server) as client:
        with client.stream("Why?") as stream:
            for event in stream:
                if isinstance(event, TextDelta):
                    break
        assert stream.answer.status == "stopped" and no_message_is_left()
        assert [request.path for request in server.requests] == ["/v1/responses"]


def no_message_is_left() -> bool:
    """Whether nothing is on its way to the service any more."""
    return eventually(
        lambda: not any(t.name == "ipyperplexity-cancel" for t in threading.enumerate())
    )


def test_without_an_id_there_is_nothing_to_cancel() -> None:
    silent = threading.Event()

    def script(request: RawRequest, connection: RawConnection) -> None:
        connection.play(FRAMES[0])
        silent.set()
        connection.play(HoldOpen())

    with RawServer(script) as server, client_for(server) as client:
        stream = client.stream("Why?")
        stopper = threading.Thread(target=lambda: silent.wait(5) and stream.cancel())
        stopper.start()
        list(stream)
        stopper.join()
        assert server.wait_for_disconnect()
        assert stream.answer.status == "stopped" and stream.answer.id is None
        assert no_message_is_left()
        assert [request.path for request in server.requests] == ["/v1/responses"]


@pytest.mark.parametrize("answer", ["silence", "an error", "nonsense"])
def test_leaving_never_waits_for_the_cancelling(answer: str) -> None:
    left, gave_up = threading.Event(), threading.Event()

    def script(request: RawRequest, connection: RawConnection) -> None:
        if not request.path.endswith("/cancel"):
            for step in FRAMES[:5]:
                connection.play(step)
            connection.play(HoldOpen())
        elif answer == "silence":
            connection.play(Pause(left))  # as long as the caller has not come back
            if not left.is_set():
                gave_up.set()
        else:
            status = 400 if answer == "an error" else 200
            connection.play(http_response(status, {}, "<html>"))

    with RawServer(script) as server, client_for(server) as client:
        with client.stream("Why?") as stream:
            for event in stream:
                if isinstance(event, TextDelta):
                    break
        assert stream.answer.status == "stopped", "the caller is back"
        assert server.wait_for_requests(2)
        assert answer != "silence" or not gave_up.wait(0.2)
        left.set()
        cancel = server.requests[1]
        assert (cancel.method, cancel.path, cancel.body) == ("POST", "/v1/responses/resp_1/cancel", b"")  # fmt: skip
        assert cancel.headers["Authorization"] == f"Bearer {KEY}"


def test_a_run_that_was_cancelled_at_the_service_is_not_cancelled_again() -> None:
    with RawServer(sse_response(agent_stream("So far", status="cancelled"))) as server:
        stream = client_for(server).stream("Why?")
        with pytest.raises(AbortedError) as raised:
            list(stream)
        assert raised.value.answer is stream.answer and stream.answer.status == "stopped"
        assert no_message_is_left() and len(server.requests) == 1


def test_a_run_that_has_ended_is_not_cancelled() -> None:
    with RawServer(FRAMES) as server, client_for(server) as client:
        with client.stream("Why?") as stream:
            for event in stream:
                if isinstance(event, Finished):
                    break
        assert no_message_is_left()
        assert len(server.requests) == 1
