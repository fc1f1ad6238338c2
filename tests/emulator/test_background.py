"""Runs in the background: queued, polled, followed from anywhere, cancelled, failed."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from ipyperplexity.emulator import FAULTS, Behavior, EmulatorServer

from .http_help import ask, call, deltas_of, parse_events, text_of
from .test_framing import open_stream


def get(server: EmulatorServer, name: str) -> dict[str, Any]:
    found: dict[str, Any] = call(server, "GET", f"/v1/responses/{name}").json()
    return found


def finished(server: EmulatorServer, name: str) -> dict[str, Any]:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        answer = get(server, name)
        if answer["status"] not in ("queued", "in_progress"):
            return answer
    raise AssertionError(answer["status"])


def resume(server: EmulatorServer, name: str, after: int) -> list[dict[str, Any]]:
    path = f"/v1/responses/{name}?stream=true&starting_after={after}"
    reply = call(server, "GET", path)
    assert reply.status == 200, reply.body
    return parse_events(reply.body)


def test_a_run_is_queued_for_as_many_polls_as_wanted(server: EmulatorServer) -> None:
    server.next(Behavior(queued_polls=3))
    created = ask(server, background=True).json()
    assert (created["status"], created["output"], created["usage"]) == ("queued", [], None)
    seen = [get(server, created["id"]) for _ in range(3)]
    assert [one["status"] for one in seen] == ["queued"] * 3
    assert seen[0]["model"] == "low"
    assert finished(server, created["id"])["status"] == "completed"


def test_a_queued_run_can_be_cancelled(server: EmulatorServer) -> None:
    server.next(Behavior(queued_polls=10**6))
    name = ask(server, background=True).json()["id"]
    assert call(server, "POST", f"/v1/responses/{name}/cancel").status == 200
    assert finished(server, name)["status"] == "cancelled"


@pytest.mark.parametrize("fault", [{"cut_after": 4}, {"cut_after": 4, "cut": "reset"}])
def test_a_dropped_stream_of_a_background_run_goes_on_and_can_be_resumed(
    server: EmulatorServer, fault: dict[str, Any]
) -> None:
    whole = parse_events(ask(server, stream=True).body)
    server.next(Behavior(**fault))
    taken = b""
    with open_stream(server, background=True) as link:
        try:
            while piece := link.recv(65536):
                taken += piece
        except ConnectionResetError:
            pass
    assert taken.count(b"event: ") == 5 and b"response.completed" not in taken
    line = next(line for line in taken.split(b"\n") if line.startswith(b"data: "))
    name = json.loads(line[6:])["response"]["id"]
    assert finished(server, name)["status"] == "completed"
    rest = resume(server, name, 3)
    assert [e["sequence_number"] for e in rest] == list(range(4, len(whole)))
    assert [e["type"] for e in rest] == [e["type"] for e in whole[4:]]
    assert deltas_of(rest) == text_of(rest[-1]["response"]) == text_of(whole[-1]["response"])


def test_a_cursor_can_have_expired_and_a_plain_get_still_answers(server: EmulatorServer) -> None:
    name = ask(server, background=True).json()["id"]
    answer = finished(server, name)
    server.next(FAULTS["expired-cursor"], FAULTS["expired-cursor"])
    reply = call(server, "GET", f"/v1/responses/{name}?stream=true&starting_after=0")
    assert (reply.status, reply.json()["error"]["param"]) == (400, "starting_after")
    assert get(server, name) == answer


@pytest.mark.parametrize("query", ["stream=true", "stream=true&starting_after=-1"])
def test_a_stream_is_resumed_only_with_a_cursor(server: EmulatorServer, query: str) -> None:
    name = ask(server, background=True).json()["id"]
    assert call(server, "GET", f"/v1/responses/{name}?{query}").status == 400


def test_a_cursor_beyond_the_end_is_refused_and_one_at_the_end_gives_nothing(
    server: EmulatorServer,
) -> None:
    name = ask(server, background=True).json()["id"]
    finished(server, name)
    last = resume(server, name, 0)[-1]["sequence_number"]
    assert resume(server, name, last) == []
    path = f"/v1/responses/{name}?stream=true&starting_after={last + 5}"
    assert call(server, "GET", path).status == 400


def test_a_run_in_the_foreground_has_no_stream_to_resume(server: EmulatorServer) -> None:
    name = ask(server).json()["id"]
    path = f"/v1/responses/{name}?stream=true&starting_after=0"
    assert call(server, "GET", path).status == 400


@pytest.mark.parametrize("name", ["failed", "failed-response", "failed-both", "error-event"])
def test_a_run_in_the_background_can_fail(server: EmulatorServer, name: str) -> None:
    server.next(FAULTS[name])
    created = ask(server, background=True).json()
    answer = finished(server, created["id"])
    assert answer["status"] == "failed"
    assert answer["error"]["code"] == "internal_error"
    assert answer["usage"] is None
    cancelled = call(server, "POST", f"/v1/responses/{created['id']}/cancel")
    assert (cancelled.status, cancelled.json()["error"]["type"]) == (400, "invalid_request")


def test_a_finished_run_cannot_be_cancelled(server: EmulatorServer) -> None:
    name = ask(server).json()["id"]
    reply = call(server, "POST", f"/v1/responses/{name}/cancel")
    assert reply.status == 400 and "terminal" in reply.json()["error"]["message"]


def test_a_stream_in_the_foreground_is_cancelled_by_its_id_from_another_connection() -> None:
    with EmulatorServer(pace=0.05, chunk_chars=4) as server:
        server.next(Behavior(framing="close"))
        with open_stream(server) as link:
            taken = b""
            while b"output_text.delta" not in taken:
                taken += link.recv(65536)
            line = next(line for line in taken.split(b"\n") if line.startswith(b"data: "))
            name = json.loads(line[6:])["response"]["id"]
            reply = call(server, "POST", f"/v1/responses/{name}/cancel")
            assert reply.json() == {"response_id": name, "status": "cancelling"}
            while piece := link.recv(65536):
                taken += piece
        last = parse_events(taken.partition(b"\r\n\r\n")[2])[-1]
        assert last["type"] == "response.cancelled"
        assert last["response"]["error"]["code"] == "cancelled"
        assert last["response"]["usage"] is None
        assert get(server, name)["status"] == "cancelled"
