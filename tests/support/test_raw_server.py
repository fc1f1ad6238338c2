"""The scripted server does to a client exactly what its script says."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Literal
from urllib.parse import urlsplit

import pytest
import requests

from tests.support.raw_server import (
    FRAMINGS,
    Close,
    Framing,
    HoldOpen,
    Pause,
    RawConnection,
    RawRequest,
    RawServer,
    Reset,
    Wait,
    agent_stream,
    http_head,
    http_response,
    in_turn,
    sse_response,
)

FRAMES = [b"data: one\n\n", b"data: two\n\n", b"data: three\n\n"]


def raw_client(server: RawServer) -> socket.socket:
    address = urlsplit(server.url)
    client = socket.create_connection((address.hostname or "", address.port or 0), timeout=5)
    client.sendall(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
    return client


def pieces(response: requests.Response) -> Iterator[bytes]:
    while piece := response.raw.read1(65536, decode_content=True):
        yield piece


def test_a_request_is_kept_as_it_came() -> None:
    with RawServer([http_response(201, {"X-A": "b"}, {"ok": True})]) as server:
        reply = requests.post(
            server.url + "/v1?q=1", json={"é": 1}, headers={"x-k": "v"}, timeout=5
        )
        (request,) = server.requests
    assert (reply.status_code, reply.headers["x-a"], reply.json()) == (201, "b", {"ok": True})
    assert (request.method, request.path, request.json) == ("POST", "/v1?q=1", {"é": 1})
    assert request.headers["X-K"] == "v"
    assert request.headers["Content-Length"] == str(len(request.body))


def test_a_chunked_request_body_is_read() -> None:
    with RawServer([http_response()]) as server:
        requests.post(server.url, data=iter([b"one", b"two"]), timeout=5)
        assert server.requests[0].body == b"onetwo"


def test_a_session_keeps_its_connection() -> None:
    with RawServer([http_response(200, {}, b"hi")]) as server, requests.Session() as session:
        assert [session.get(server.url, timeout=5).text for _ in range(3)] == ["hi"] * 3
        assert (len(server.connections), server.connections_open) == (1, 1)


def test_scripts_can_take_turns() -> None:
    script = in_turn([http_response(503)], [http_response(200)])
    with RawServer(script) as server:
        codes = [requests.get(server.url, timeout=5).status_code for _ in range(3)]
    assert codes == [503, 200, 200]


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("piece", [None, 5])
def test_every_framing_carries_the_stream_whole(framing: Framing, piece: int | None) -> None:
    with RawServer(sse_response(FRAMES, framing, piece)) as server:
        reply = requests.get(server.url, timeout=5)
    assert reply.headers["Content-Type"] == "text/event-stream"
    assert reply.content == b"".join(FRAMES)


@pytest.mark.parametrize("framing", FRAMINGS)
def test_every_framing_sends_each_frame_when_its_turn_comes(framing: Framing) -> None:
    gate = threading.Event()
    steps = sse_response(FRAMES, framing, between=Pause(gate))
    steps.insert(1, steps.pop(2))  # the first frame does not wait
    with RawServer(steps) as server, requests.get(server.url, stream=True, timeout=5) as reply:
        stream = pieces(reply)
        assert next(stream) == FRAMES[0]
        gate.set()
        assert b"".join(stream) == b"".join(FRAMES[1:])


def test_a_reset_reaches_the_client_as_one() -> None:
    with RawServer([b"HTTP/1.1 200 OK\r\n", Reset()]) as server, raw_client(server) as client:
        with pytest.raises(ConnectionResetError):
            while client.recv(100):
                pass
        assert not server.disconnected.is_set()


def test_a_reset_is_at_once_even_in_a_script_that_goes_on() -> None:
    gate = threading.Event()

    def script(request: RawRequest, connection: RawConnection) -> None:
        connection.play(Reset())
        gate.wait(5)

    with RawServer(script) as server, raw_client(server) as client:
        with pytest.raises(ConnectionResetError):
            client.recv(100)
        gate.set()


def test_a_close_in_mid_stream_cuts_it() -> None:
    steps = [*sse_response(FRAMES)[:-1], Close()]
    with (
        RawServer(steps) as server,
        requests.get(server.url, stream=True, timeout=5) as reply,
        pytest.raises(requests.exceptions.ChunkedEncodingError),
    ):
        _ = reply.content


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("step", [HoldOpen(), Pause(threading.Event()), Wait(60)], ids=repr)
def test_the_client_leaving_is_seen_and_ends_the_script(
    step: HoldOpen | Pause | Wait, tls: bool
) -> None:
    if tls:
        pytest.importorskip("trustme")
    with RawServer([http_head(200, {"Content-Length": "10"}), step], tls=tls) as server:
        reply = requests.get(server.url, stream=True, timeout=5, verify=server.ca_file or True)
        assert server.connections_open == 1
        assert not server.disconnected.is_set()
        reply.close()
        assert server.wait_for_disconnect()
        assert server.connections_open == 0


def test_a_client_that_stays_is_no_disconnect() -> None:
    with RawServer([HoldOpen()]) as server, raw_client(server):
        assert server.wait_for_requests()
        assert not server.wait_for_disconnect(0.05)


def test_leaving_the_server_ends_what_it_holds() -> None:
    began = time.monotonic()
    with RawServer([Wait(60)]) as server, raw_client(server):
        assert server.wait_for_requests()
    assert time.monotonic() - began < 30


def test_an_assertion_in_a_script_fails_the_test() -> None:
    def script(request: RawRequest, connection: RawConnection) -> None:
        raise AssertionError("seen")

    with (
        pytest.raises(AssertionError, match="seen"),
        RawServer(script) as server,
        raw_client(server) as client,
    ):
        assert client.recv(100) == b""


@pytest.mark.parametrize("status", ["completed", "incomplete", "cancelled", "failed", None])
@pytest.mark.parametrize("named", [True, False])
def test_an_agent_stream_says_the_text_in_deltas_and_ends_as_asked(
    status: Literal["completed", "incomplete", "failed", "cancelled"] | None, named: bool
) -> None:
    sources: list[dict[str, object]] = [
        {"url": "https://a.example"},
        {"url": "https://b.example", "id": 11},
    ]
    frames = agent_stream("It is so.[1] Så![11]", sources, status=status, named=named, done=True)
    assert frames[-1] == b"data: [DONE]\n\n"
    lines = [frame.decode().rstrip("\n").split("\n")[-1] for frame in frames[:-1]]
    events = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert all(frame.startswith(b"event: ") is named for frame in frames[:-1])
    assert "".join(e["delta"] for e in events if "delta" in e) == "It is so.[1] Så![11]"
    results = next(e for e in events if e["type"] == "response.reasoning.search_results")["results"]
    assert [result["id"] for result in results] == [1, 11]
    ended = {"response.completed", "response.incomplete", "response.cancelled", "response.failed"}
    assert [e["type"] for e in events if e["type"] in ended] == (
        [f"response.{status}"] if status else []
    )
