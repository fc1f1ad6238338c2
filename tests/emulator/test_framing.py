from __future__ import annotations

import gzip
import json
import socket
import struct
import time
from typing import Any
from urllib.parse import urlsplit

import pytest

from ipyperplexity.emulator import FAULTS, Behavior, EmulatorServer

from .http_help import ASK, ask, call, deltas_of, parse_events, raw_exchange, stream, text_of


def split_head(raw: bytes) -> tuple[dict[str, str], bytes]:
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    assert lines[0].startswith("HTTP/1.1 200")
    return {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}, body


def chunks(body: bytes) -> list[bytes]:
    found = []
    while True:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        found.append(body[:length])
        assert body[length : length + 2] == b"\r\n"
        body = body[length + 2 :]
        if not length:
            assert body == b""
            return found[:-1]


def test_chunked_sends_one_chunk_an_event(server: EmulatorServer) -> None:
    headers, body = split_head(raw_exchange(server))
    assert headers["transfer-encoding"] == "chunked"
    assert headers["content-type"] == "text/event-stream"
    found = chunks(body)
    assert all(chunk.startswith(b"event: ") and chunk.endswith(b"\n\n") for chunk in found)
    assert len(found) == len(parse_events(b"".join(found)))


def test_pieces_of_one_byte_are_chunks_of_one_byte(server: EmulatorServer) -> None:
    server.next(Behavior(piece_bytes=1))
    _, body = split_head(raw_exchange(server))
    found = chunks(body)
    assert {len(chunk) for chunk in found} == {1}
    assert parse_events(b"".join(found))[-1]["type"] == "response.completed"


def test_dribbled_is_one_huge_chunk_that_never_ends(server: EmulatorServer) -> None:
    server.next(Behavior(framing="dribbled"))
    headers, body = split_head(raw_exchange(server))
    assert headers["transfer-encoding"] == "chunked"
    size, _, rest = body.partition(b"\r\n")
    assert int(size, 16) > len(rest)
    assert parse_events(rest)[-1]["type"] == "response.completed"


def test_length_announces_just_the_bytes_that_come(server: EmulatorServer) -> None:
    server.next(Behavior(framing="length"))
    headers, body = split_head(raw_exchange(server))
    assert int(headers["content-length"]) == len(body)
    assert "transfer-encoding" not in headers
    assert parse_events(body)[-1]["type"] == "response.completed"


def test_close_has_neither_length_nor_chunks(server: EmulatorServer) -> None:
    server.next(Behavior(framing="close"))
    headers, body = split_head(raw_exchange(server))
    assert headers["connection"] == "close"
    assert not {"content-length", "transfer-encoding"} & set(headers)
    assert parse_events(body)[-1]["type"] == "response.completed"


def test_gzip_can_be_read_event_by_event(server: EmulatorServer) -> None:
    import zlib

    server.next(Behavior(framing="gzip"))
    headers, body = split_head(raw_exchange(server))
    assert headers["content-encoding"] == "gzip"
    found = chunks(body)
    reader = zlib.decompressobj(wbits=31)
    first = reader.decompress(found[0])
    assert parse_events(first)[0]["type"] == "response.created"
    assert parse_events(gzip.decompress(b"".join(found)))[-1]["type"] == "response.completed"


def test_a_plain_answer_can_be_framed_in_all_ways(server: EmulatorServer) -> None:
    expected = text_of(ask(server).json())
    for framing in ("chunked", "length", "close", "gzip"):
        server.next(Behavior(framing=framing))
        reply = ask(server)
        body = gzip.decompress(reply.body) if framing == "gzip" else reply.body
        assert text_of(json.loads(body)) == expected


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r", "mixed"])
@pytest.mark.parametrize("names", [True, False])
def test_every_line_end_makes_the_same_events(
    server: EmulatorServer, newline: str, names: bool
) -> None:
    expected = [e["type"] for e in stream(server)]
    server.next(
        Behavior(newline=newline, bom=True, event_names=names, done_marker=True, keepalives=True)
    )
    body = ask(server, stream=True).body
    assert body.startswith(b"\xef\xbb\xbf")
    assert (b"event: " in body) is names
    assert b"data: [DONE]" in body
    assert b": keep-alive" in body
    kinds = [e["type"] for e in parse_events(body)]
    assert "response.keepalive" in kinds
    assert [kind for kind in kinds if kind != "response.keepalive"] == expected
    if newline in ("\r", "\r\n"):
        assert b"\n" not in body.replace(b"\r\n", b"") if newline == "\r\n" else b"\n" not in body


def test_keepalive_events_are_null_but_for_their_type(server: EmulatorServer) -> None:
    server.next(Behavior(keepalives=True))
    event = next(e for e in stream(server) if e["type"] == "response.keepalive")
    assert {value for name, value in event.items() if name != "type"} == {None}


@pytest.mark.parametrize("place", ["delta", "done", "item", "terminal"])
def test_the_text_can_stand_in_one_place_only(server: EmulatorServer, place: str) -> None:
    expected = text_of(ask(server).json())
    server.next(Behavior(text_in=frozenset({place})))
    events = stream(server)
    output = events[-1]["response"]["output"]
    told = {
        "delta": deltas_of(events),
        "done": "".join(e["text"] for e in events if e["type"].endswith("output_text.done")),
        "item": "".join(
            text_of({"output": [e["item"]]}) for e in events if e["type"].endswith("item.done")
        ),
        "terminal": text_of({"output": output}),
    }
    assert told == {name: expected if name == place else "" for name in told}


def test_nulls_stand_where_a_value_may_be_null_and_lose_no_text(server: EmulatorServer) -> None:
    server.next(Behavior(nulls=True))
    events = stream(server)
    by_type = {e["type"]: e for e in events}
    assert by_type["response.reasoning.search_results"]["results"] is None
    assert by_type["response.reasoning.started"]["thought"] is None
    assert by_type["response.output_text.done"]["text"] is None
    deltas = [e for e in events if e["type"].endswith(".delta")]
    assert deltas[0]["delta"] is None
    assert {e["content_index"] for e in deltas} == {None}
    output = events[-1]["response"]["output"]
    assert output[0]["queries"] is None
    assert {source["date"] for source in output[0]["results"]} == {None}
    assert deltas_of(events) == text_of(events[-1]["response"])


def test_parts_spread_the_text_over_parts_and_messages(server: EmulatorServer) -> None:
    expected = text_of(ask(server).json())
    server.next(Behavior(parts=3))
    events = stream(server)
    messages = [i for i in events[-1]["response"]["output"] if i["type"] == "message"]
    assert [len(message["content"]) for message in messages] == [2, 1]
    assert text_of(events[-1]["response"]) == deltas_of(events) == expected


def test_extra_text_arrives_in_its_own_characters(server: EmulatorServer) -> None:
    extra = FAULTS["odd-characters"].extra_text
    server.next(FAULTS["odd-characters"])
    body = ask(server, stream=True).body
    assert "Å".encode() in body
    assert text_of(parse_events(body)[-1]["response"]).endswith(extra)


def test_numbers_can_start_anywhere_and_come_out_of_order(server: EmulatorServer) -> None:
    server.next(Behavior(id_start=11, shuffle_sources=True))
    answer = ask(server).json()
    ids = [source["id"] for source in answer["output"][0]["results"]]
    assert min(ids) == 11
    assert ids != sorted(ids)
    assert "[11]" in text_of(answer)


@pytest.mark.parametrize(
    ("terminal", "last", "status"),
    [
        ("completed", "response.completed", "completed"),
        ("failed-event", "response.failed", "failed"),
        ("failed-response", "response.failed", "failed"),
        ("failed-both", "response.failed", "failed"),
        ("incomplete", "response.incomplete", "incomplete"),
        ("cancelled", "response.cancelled", "cancelled"),
        ("none", "response.output_item.done", "in_progress"),
        ("error", "error", None),
    ],
)
def test_a_run_can_end_in_every_way(
    server: EmulatorServer, terminal: str, last: str, status: str | None
) -> None:
    server.next(Behavior(terminal=terminal), Behavior(terminal=terminal))
    event = stream(server)[-1]
    assert event["type"] == last
    assert ("error" in event) is (terminal in ("failed-event", "failed-both", "error"))
    assert ("response" in event) is (terminal not in ("failed-event", "error", "none"))
    plain = ask(server)
    if status is None:
        assert plain.status == 500
    else:
        assert (plain.status, plain.json()["status"]) == (200, status)
        assert bool(plain.json()["error"]) is (status in ("failed", "cancelled"))


def test_a_truncated_stream_breaks_in_the_middle_of_a_chunk(server: EmulatorServer) -> None:
    server.next(Behavior(cut_after=4))
    _, body = split_head(raw_exchange(server))
    events = parse_events(b"\n\n".join(body.split(b"\n\n")[:-1]).replace(b"\r\n", b"\n") + b"\n\n")
    assert len(events) == 4
    assert not body.endswith(b"0\r\n\r\n")


def test_a_reset_reaches_the_client_as_a_reset(server: EmulatorServer) -> None:
    server.next(Behavior(cut_after=4, cut="reset"))
    with pytest.raises(ConnectionResetError):
        raw_exchange(server)


def open_stream(server: EmulatorServer, **fields: Any) -> socket.socket:
    host, port = urlsplit(server.url).netloc.split(":")
    data = json.dumps({**ASK, "stream": True, **fields}).encode()
    link = socket.create_connection((host, int(port)), timeout=10)
    link.sendall(
        b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(data) + data
    )
    return link


@pytest.mark.parametrize(
    "behavior",
    [Behavior(stall_after=3), Behavior(keep_open=True), Behavior(framing="close", keep_open=True)],
)
def test_a_stalled_stream_stays_open_and_silent_until_the_client_leaves(
    server: EmulatorServer, behavior: Behavior
) -> None:
    server.next(behavior)
    with open_stream(server) as link:
        link.settimeout(0.5)
        taken = b""
        with pytest.raises(TimeoutError):
            while piece := link.recv(65536):
                taken += piece
        if behavior.keep_open:
            assert b"response.completed" in taken
        else:
            assert taken.count(b"event: ") == 3
    assert ask(server).status == 200


def test_a_plain_answer_can_be_cut_and_can_stall(server: EmulatorServer) -> None:
    import http.client

    server.next(Behavior(cut_after=0), Behavior(stall_after=0))
    with pytest.raises(http.client.IncompleteRead):
        ask(server)
    with open_stream(server, stream=False) as link:
        link.settimeout(0.4)
        with pytest.raises(TimeoutError):
            while link.recv(65536):
                pass


@pytest.mark.parametrize(
    ("name", "status", "kind"),
    [
        ("unauthorized", 401, "invalid_api_key"),
        ("forbidden", 403, "forbidden"),
        ("retired", 403, "chat_completions_not_available"),
        ("migration-required", 403, "agent_api_migration_required"),
        ("not-found", 404, "not_found"),
        ("too-large", 413, "payload_too_large"),
        ("rate-limited", 429, "request_rate_limit_exceeded"),
        ("server-error", 500, "internal_error"),
    ],
)
def test_an_error_has_the_envelope_of_the_service(
    server: EmulatorServer, name: str, status: int, kind: str
) -> None:
    server.next(FAULTS[name])
    reply = ask(server, stream=True)
    assert reply.status == status
    assert reply.json()["error"] | {"message": ""} == {"message": "", "type": kind, "code": status}


def test_errors_can_come_as_pages_lists_and_with_headers(server: EmulatorServer) -> None:
    names = (
        "unauthorized-html",
        "cloudflare",
        "validation",
        "rate-limited-seconds",
        "rate-limited-date",
        "redirect",
    )
    server.next(*(FAULTS[name] for name in names))
    page, challenge, details, seconds, day, moved = (ask(server) for _ in names)
    assert (page.status, page.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert challenge.status == 200
    assert b"Just a moment" in challenge.body
    assert details.status == 422
    assert isinstance(details.json()["detail"], list)
    assert seconds.headers["retry-after"] == "1"
    assert "GMT" in day.headers["retry-after"]
    assert (moved.status, moved.headers["location"][:8]) == (302, "https://")
    assert ask(server).status == 200


def test_headers_and_error_bodies_can_be_slow(server: EmulatorServer) -> None:
    server.next(Behavior(delay=0.2), Behavior(status=500, body="0123456789", slow_body=0.02))
    start = time.monotonic()
    assert ask(server).status == 200
    assert time.monotonic() - start >= 0.2
    start = time.monotonic()
    assert ask(server).body == b"0123456789"
    assert time.monotonic() - start >= 0.15


def test_the_pace_makes_a_stream_take_its_time() -> None:
    with EmulatorServer(pace=0.004, chunk_chars=20) as server:
        start = time.monotonic()
        events = stream(server)
        deltas = [e for e in events if e["type"].endswith(".delta")]
        assert all(len(e["delta"]) <= 20 for e in deltas)
        assert time.monotonic() - start >= 0.004 * len(deltas)
        server.next(Behavior(pace=0, chunk_chars=5))
        assert max(len(e["delta"]) for e in stream(server) if e["type"].endswith(".delta")) == 5


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_no_fault_hurts_the_request_that_follows(server: EmulatorServer, name: str) -> None:
    server.next(FAULTS[name])
    with open_stream(server) as link:
        assert link.recv(65536)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert call(server, "POST", "/v1/responses", ASK).status == 200


@pytest.mark.parametrize(
    "fields",
    [
        {"framing": "pigeon"},
        {"newline": "\n\n"},
        {"terminal": "done"},
        {"text_in": {"air"}},
        {"parts": 0},
        {"piece_bytes": 0},
    ],
)
def test_a_behavior_that_means_nothing_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(fields))):
        Behavior(**fields)
