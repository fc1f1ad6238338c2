"""Bytes of a reply body on a socket: chunked, dribbled, with a length, until close, compressed.

Invariant: a writer never sends a byte that its framing has not announced, and ``finish`` leaves
the connection in a state that the status line promised.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterator

from .faults import Behavior

__all__ = ["BodyWriter", "encode_event", "reset", "wait_for_departure"]

Send = Callable[[bytes], object]
# Any number that no answer of the engine reaches.
_HUGE_CHUNK = 0x7FFFFFFF


class BodyWriter:
    """Sends the pieces of one body in the framing of a behavior."""

    def __init__(self, send: Send, behavior: Behavior) -> None:
        self._send = send
        self._behavior = behavior
        self._deflate = zlib.compressobj(wbits=31) if behavior.framing == "gzip" else None
        self._opened = False
        default = 16 if behavior.framing in ("dribbled", "length") else None
        self._size = behavior.piece_bytes or default

    @staticmethod
    def headers(behavior: Behavior, length: int | None) -> dict[str, str]:
        """Return the headers that announce the framing."""
        if behavior.framing == "length":
            return {"Content-Length": str(length or 0)}
        if behavior.framing == "close":
            return {"Connection": "close"}
        headers = {"Transfer-Encoding": "chunked"}
        return {**headers, "Content-Encoding": "gzip"} if behavior.framing == "gzip" else headers

    def write(self, data: bytes) -> None:
        """Send one event, in pieces."""
        if self._deflate is not None:
            data = self._deflate.compress(data) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        for piece in _pieces(data, self._size):
            self._put(piece)

    def _put(self, piece: bytes) -> None:
        framing = self._behavior.framing
        if framing in ("chunked", "gzip"):
            self._send(b"%x\r\n%b\r\n" % (len(piece), piece))
        elif framing == "dribbled" and not self._opened:
            self._opened = True
            self._send(b"%x\r\n" % _HUGE_CHUNK)
            self._send(piece)
        else:
            self._send(piece)

    def write_part(self, data: bytes) -> None:
        """Announce a whole event and send the first half of it."""
        half = data[: max(1, len(data) // 2)]
        if self._behavior.framing in ("chunked", "gzip"):
            self._send(b"%x\r\n%b" % (len(data), half))
        else:
            self._put(half)

    def finish(self) -> bool:
        """End the body; return whether the connection may serve another request."""
        framing = self._behavior.framing
        if self._deflate is not None:
            tail = self._deflate.flush()
            self._send(b"%x\r\n%b\r\n" % (len(tail), tail))
        if framing in ("chunked", "gzip"):
            self._send(b"0\r\n\r\n")
        # The huge chunk can only end by closing.
        return framing in ("chunked", "gzip", "length")


def _pieces(data: bytes, size: int | None) -> Iterator[bytes]:
    if size is None:
        yield data
        return
    for at in range(0, len(data), size):
        yield data[at : at + size]


def encode_event(name: str | None, data: str, newline: str, count: int) -> bytes:
    """Write one server-sent event; a comment has ``name`` None and starts with a colon."""
    if name is None:
        lines = [data]
    else:
        lines = [f"event: {name}", f"data: {data}"] if name else [f"data: {data}"]
    ends = [newline] * (len(lines) + 1)
    if newline == "mixed":
        ends = [("\r\n", "\n", "\r")[(count + at) % 3] for at in range(len(lines) + 1)]
        if ends[-2] == "\r":
            # CR and then LF would be one line end, and the event would lack its blank line.
            ends[-1] = "\r"
    return "".join(line + end for line, end in zip([*lines, ""], ends, strict=True)).encode()


def reset(connection: socket.socket) -> None:
    """Break a connection so that the other side sees a TCP reset."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()


def wait_for_departure(connection: socket.socket, stopped: threading.Event, limit: float) -> None:
    """Return when the client has closed its side, the server stops, or ``limit`` seconds passed."""
    until = time.monotonic() + limit
    while not stopped.is_set() and time.monotonic() < until:
        try:
            ready, _, _ = select.select([connection], [], [], 0.05)
            if ready and not connection.recv(1, socket.MSG_PEEK):
                return
        except (OSError, ValueError):
            return
        if ready:
            # Bytes of a next request wait unread: the client is still there.
            stopped.wait(0.05)
