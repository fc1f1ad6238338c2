"""Replies of the embedded service: JSON, fixed errors, streams, and replies broken on purpose.

Invariant: every reply, whole or broken, goes through the framing of its behavior, and a broken
one raises ``ReplyBroken``, so that nothing is ever sent after the break.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, NoReturn

from .faults import Behavior, default_error
from .framing import BodyWriter, encode_event, reset, wait_for_departure
from .runs import Record

if TYPE_CHECKING:
    from .server import EmulatorServer

__all__ = ["ReplyBroken", "Sender"]

Json = dict[str, Any]
_PATIENCE = 600.0
_LIMIT = 50


class ReplyBroken(Exception):
    """The reply was broken on purpose, or the server stops: the connection is of no more use."""


class Sender(BaseHTTPRequestHandler):
    """The sending half of a connection."""

    protocol_version = "HTTP/1.1"
    server_version = "ipyperplexity-demo"
    sys_version = ""
    disable_nagle_algorithm = True
    behavior = Behavior()
    count = 0

    @property
    def emulator(self) -> EmulatorServer:
        """The server this connection belongs to."""
        found: EmulatorServer = self.server.emulator  # type: ignore[attr-defined]
        return found

    def _limits(self, run_id: str = "") -> dict[str, str]:
        used = (self.count - 1) % _LIMIT + 1
        return {
            "x-request-id": run_id.removeprefix("resp_") or str(uuid.uuid4()),
            "x-ratelimit-limit": str(_LIMIT),
            "x-ratelimit-remaining": str(_LIMIT - used),
            "x-ratelimit-used": str(used),
            "x-ratelimit-reset": str(int(time.time()) + 60),
        }

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if headers.get("Connection") == "close":
            self.close_connection = True
        elif self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def _reply_json(
        self, status: int, data: Any, run_id: str = "", *, breakable: bool = False
    ) -> None:
        body = json.dumps(data, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", **self._limits(run_id)}
        framing = self.behavior.framing
        broken = self.behavior.cut_after is not None or self.behavior.stall_after is not None
        if not breakable or (
            framing == "chunked" and self.behavior.piece_bytes is None and not broken
        ):
            self._reply(status, body, headers)
            return
        writer = self._open_body(status, headers, len(body))
        if broken:
            if self.behavior.stall_after is not None:
                writer.write_part(body)
            self._break(writer, body)
        writer.write(body)
        self._close_body(writer)

    def _reply(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        has_body = status not in (204, 304)
        self._head(status, {**headers, "Content-Length": str(len(body))} if has_body else headers)
        if self.command != "HEAD" and has_body:
            self.wfile.write(body)

    def _fixed_reply(self) -> None:
        behavior = self.behavior
        status = behavior.status or 200
        body = behavior.body if behavior.body is not None else default_error(status)
        kind = "text/plain; charset=utf-8"
        if not isinstance(body, (str, bytes)):
            body, kind = json.dumps(body, ensure_ascii=False), "application/json"
        data = body.encode() if isinstance(body, str) else body
        given = {name.lower() for name in behavior.headers}
        headers = {} if "content-type" in given else {"Content-Type": kind}
        headers |= {**self._limits(), **behavior.headers}
        if not behavior.slow_body:
            self._reply(status, data, headers)
            return
        self._head(status, {**headers, "Content-Length": str(len(data))})
        step = behavior.piece_bytes or 1
        for at in range(0, len(data), step):
            self.wfile.write(data[at : at + step])
            if self.emulator.stopped.wait(behavior.slow_body):
                raise ReplyBroken
        if self.behavior.keep_open:
            self._wait()

    def _open_body(self, status: int, headers: Mapping[str, str], length: int | None) -> BodyWriter:
        behavior = self.behavior
        if self.request_version == "HTTP/1.0" and behavior.framing != "length":
            # Chunks came with HTTP/1.1.
            self.behavior = behavior = replace(behavior, framing="close")
        framing = BodyWriter.headers(behavior, length)
        self._head(status, {**headers, **framing})
        return BodyWriter(self.wfile.write, behavior)

    def _close_body(self, writer: BodyWriter) -> None:
        if self.behavior.keep_open:
            self._wait()
        if not writer.finish():
            self.close_connection = True

    def _stream(self, record: Record, source: Generator[Json, None, None]) -> None:
        behavior = self.behavior
        headers = {
            "Content-Type": "text/event-stream",
            "Cache-Control": "no-cache",
            **self._limits(record.run.id),
        }
        frames: Iterator[bytes] = self._frames(source)
        length = None
        if behavior.framing == "length":
            # The length must be known first: run ahead, then send at the pace of the run.
            pause, record.pace = record.pace, 0.0
            known = list(frames)
            length = sum(map(len, known))
            frames = self._paced(known, pause)
        # Closing the source settles the run when the client has left.
        with contextlib.closing(source):
            writer = self._open_body(200, headers, length)
            for at, frame in enumerate(frames):
                if at in (behavior.cut_after, behavior.stall_after):
                    self._break(writer, frame)
                writer.write(frame)
                if self.emulator.stopped.is_set():
                    raise ReplyBroken
            self._close_body(writer)

    def _paced(self, frames: list[bytes], pause: float) -> Iterator[bytes]:
        for frame in frames:
            yield frame
            self.emulator.stopped.wait(pause)

    def _frames(self, source: Iterator[Json]) -> Iterator[bytes]:
        """Yield the bytes of each event; comments and keepalives go with the one before."""
        behavior = self.behavior
        mark = b"\xef\xbb\xbf" if behavior.bom else b""
        for count, event in enumerate(source):
            data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
            name = event["type"] if behavior.event_names else ""
            frame = mark + encode_event(name, data, behavior.newline, count)
            mark = b""
            if behavior.keepalives and count % 3 == 1:
                frame += encode_event(None, ": keep-alive", behavior.newline, count)
                frame += encode_event(name and _KEEPALIVE, _keepalive(), behavior.newline, count)
            yield frame
        if behavior.done_marker:
            yield encode_event("", "[DONE]", behavior.newline, 0)

    def _break(self, writer: BodyWriter, data: bytes) -> NoReturn:
        """Cut or stall the reply before ``data``, as the behavior says."""
        self.close_connection = True
        if self.behavior.stall_after is not None:
            self._wait()
        writer.write_part(data)
        if self.behavior.cut == "reset":
            # A reset discards what is still under way: let it arrive.
            self.emulator.stopped.wait(0.05)
            reset(self.connection)
        raise ReplyBroken

    def _wait(self) -> NoReturn:
        self.close_connection = True
        wait_for_departure(self.connection, self.emulator.stopped, _PATIENCE)
        raise ReplyBroken


_KEEPALIVE = "response.keepalive"


def _keepalive() -> str:
    names = ("sequence_number", "response", "item", "output_index", "delta", "thought", "error")
    return json.dumps({"type": _KEEPALIVE, **dict.fromkeys(names)})
