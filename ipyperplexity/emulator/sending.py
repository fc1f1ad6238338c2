"""Replies of the embedded service: JSON, fixed errors, streams, and replies broken on purpose.

Invariant: every reply, whole or broken, goes through the framing of its behavior, and a broken
one raises ``ReplyBroken``, so that nothing is ever sent after the break.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, NoReturn

from .faults import Behavior, default_error
from .framing import BodyWriter, encode_event, reset, wait_for_departure
from .recorded import RecordedRequest

if TYPE_CHECKING:
    from .server import EmulatorServer

__all__ = ["Call", "Event", "ReplyBroken", "Sender"]

Event = tuple[str, str]
"""Name (``""`` for none) and data of a server-sent event."""
_PATIENCE = 600.0
_LIMIT = 50


class ReplyBroken(Exception):
    """The reply was broken on purpose, or the server stops: the connection is of no more use."""


@dataclass(frozen=True)
class Call:
    """What a route is given: the parts of the path that it left open, the query, the request."""

    names: Sequence[str] = ()
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    request: RecordedRequest = field(
        default_factory=lambda: RecordedRequest("GET", "/", "", {}, b"", True)
    )

    @property
    def body(self) -> bytes:
        """The bytes of the body."""
        return self.request.body


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

    @property
    def pace(self) -> float:
        """Seconds between two text pieces of a stream."""
        return self.emulator.pace if self.behavior.pace is None else self.behavior.pace

    @property
    def chunk_chars(self) -> int:
        """Characters in a text piece."""
        return self.behavior.chunk_chars or self.emulator.chunk_chars

    def limits(self, run_id: str = "") -> dict[str, str]:
        """Return the headers that number the request and tell the rate limit."""
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

    def reply_json(
        self,
        status: int,
        data: Any,
        run_id: str = "",
        *,
        breakable: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send data as JSON; ``breakable``: in the framing, and with the breaks, of a stream."""
        body = json.dumps(data, ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", **self.limits(run_id), **(headers or {})}
        framing = self.behavior.framing
        broken = self.behavior.cut_after is not None or self.behavior.stall_after is not None
        if not breakable or (
            framing == "chunked" and self.behavior.piece_bytes is None and not broken
        ):
            self.reply(status, body, headers)
            return
        writer = self._open_body(status, headers, len(body))
        if broken:
            if self.behavior.stall_after is not None:
                writer.write_part(body)
            self._break(writer, body)
        writer.write(body)
        self._close_body(writer)

    def reply(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a whole body."""
        has_body = status not in (204, 304)
        self._head(status, {**headers, "Content-Length": str(len(body))} if has_body else headers)
        if self.command != "HEAD" and has_body:
            self.wfile.write(body)

    def fixed_reply(self) -> None:
        """Send what the behavior has in place of an answer."""
        behavior = self.behavior
        status = behavior.status or 200
        body = behavior.body if behavior.body is not None else default_error(status)
        kind = "text/plain; charset=utf-8"
        if not isinstance(body, (str, bytes)):
            body, kind = json.dumps(body, ensure_ascii=False), "application/json"
        data = body.encode() if isinstance(body, str) else body
        given = {name.lower() for name in behavior.headers}
        headers = {} if "content-type" in given else {"Content-Type": kind}
        headers |= {**self.limits(), **behavior.headers}
        if not behavior.slow_body:
            self.reply(status, data, headers)
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

    def stream(
        self,
        source: Generator[Event, None, None],
        *,
        headers: Mapping[str, str],
        newline: str = "\n",
        keepalive: Event | None = None,
        pause: float = 0.0,
    ) -> None:
        """Send server-sent events, whole or broken, as the behavior says.

        Parameters
        ----------
        source
            The events; closed when the reply ends, in whatever way.
        headers
            Besides those of every stream.
        newline
            Line ends, unless the behavior has its own.
        keepalive
            An event to put between the others where the behavior wants them.
        pause
            Seconds after each event.
        """
        behavior = self.behavior
        headers = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", **headers}
        frames: Iterator[bytes] = self._frames(source, behavior.newline or newline, keepalive)
        length = None
        # Closing the source settles a run when the client has left.
        with contextlib.closing(source):
            if behavior.framing == "length":
                # The length must be known first: run ahead, then send at the pace of the run.
                known = list(frames)
                length = sum(map(len, known))
                frames = iter(known)
            writer = self._open_body(200, headers, length)
            for at, frame in enumerate(frames):
                if at in (behavior.cut_after, behavior.stall_after):
                    self._break(writer, frame)
                writer.write(frame)
                self.emulator.stopped.wait(pause)
                if self.emulator.stopped.is_set():
                    raise ReplyBroken
            self._close_body(writer)

    def _frames(
        self, source: Iterator[Event], newline: str, keepalive: Event | None
    ) -> Iterator[bytes]:
        """Yield the bytes of each event; comments and keepalives go with the one before."""
        behavior = self.behavior
        mark = b"\xef\xbb\xbf" if behavior.bom else b""
        for count, (name, data) in enumerate(source):
            frame = mark + encode_event(name, data, newline, count)
            mark = b""
            if behavior.keepalives and count % 3 == 1:
                frame += encode_event(None, ": keep-alive", newline, count)
                if keepalive is not None:
                    frame += encode_event(name and keepalive[0], keepalive[1], newline, count)
            yield frame
        if behavior.done_marker:
            yield encode_event("", "[DONE]", newline, 0)

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
