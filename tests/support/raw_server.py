"""A scripted HTTP server on a real loopback socket, for everything that a mock cannot break.

A script decides each byte and each silence that the client meets: half a chunk, a reset, a stall
that ends when the test says so. The server never decides to be correct on its own: what a script
does not send is not sent. It imports nothing from the package under test.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import socket
import ssl
import struct
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self, TypeAlias

from tests.support.agent_frames import agent_events, agent_stream, sse_frames

__all__ = [
    "FRAMINGS",
    "Close",
    "Framing",
    "HoldOpen",
    "Pause",
    "RawConnection",
    "RawRequest",
    "RawServer",
    "Reset",
    "Script",
    "Step",
    "Wait",
    "agent_events",
    "agent_stream",
    "http_head",
    "http_response",
    "in_turn",
    "sse_frames",
    "sse_response",
]

# --- what a script can do ---------------------------------------------------------------------


@dataclass(frozen=True)
class Wait:
    """Send nothing for some seconds (less, if the client goes away)."""

    seconds: float


@dataclass(frozen=True)
class Pause:
    """Send nothing until the test sets the event (or the client goes away)."""

    until: threading.Event


@dataclass(frozen=True)
class HoldOpen:
    """Send nothing and stay connected until the client goes away."""


@dataclass(frozen=True)
class Close:
    """Close the connection in an orderly way (FIN)."""


@dataclass(frozen=True)
class Reset:
    """Break the connection (RST): the client gets "connection reset by peer"."""


Step: TypeAlias = bytes | Wait | Pause | HoldOpen | Close | Reset


@dataclass(frozen=True)
class RawRequest:
    """One request as it came in; header names are found in any case."""

    method: str
    path: str
    headers: Message
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class RawConnection:
    """The server's end of one connection; `disconnected` is set when the client has left."""

    def __init__(self, sock: socket.socket, on_disconnect: Callable[[], None]) -> None:
        self.disconnected = threading.Event()
        self.closed = threading.Event()  # by the server
        self._socket = sock
        self._over = threading.Event()  # either of the two
        self._on_disconnect = on_disconnect
        self._wake, self._woken = socket.socketpair()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def send(self, data: bytes) -> None:
        """Send now; quietly nothing if the client has left."""
        with contextlib.suppress(OSError):
            self._socket.sendall(data)

    def play(self, step: Step) -> None:
        """Do one step of a script."""
        match step:
            case bytes():
                self.send(step)
            case Wait(seconds):
                self._over.wait(seconds)
            case Pause(until):
                while not (until.wait(0.005) or self._over.is_set()):
                    pass
            case HoldOpen():
                self._over.wait()
            case Close():
                self.close()
            case Reset():
                self._stop_watching()
                linger = struct.pack("ii", 1, 0)
                with contextlib.suppress(OSError):
                    self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    # Not `close()`: that waits for the file object which reads the requests.
                    os.close(self._socket.detach())

    def close(self) -> None:
        self._stop_watching()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _stop_watching(self) -> None:
        self.closed.set()
        self._over.set()
        with contextlib.suppress(OSError):
            self._wake.send(b".")
        # A thread inside poll() would keep the socket alive and hold back the FIN or RST.
        self._watcher.join()
        self._wake.close()
        self._woken.close()

    def _watch(self) -> None:
        # RDHUP tells of the client's leaving even while bytes wait unread, as TLS leaves some.
        poll = select.poll()
        poll.register(self._socket, getattr(select, "POLLRDHUP", select.POLLHUP))
        poll.register(self._woken, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll()}
        if self._woken.fileno() not in ready:
            self.disconnected.set()
            self._over.set()
            self._on_disconnect()


Script: TypeAlias = Callable[[RawRequest, RawConnection], None] | Sequence[Step]


def in_turn(*scripts: Script) -> Script:
    """Play the first script for the first request, and so on; the last one from then on."""
    waiting = list(scripts)
    lock = threading.Lock()

    def play(request: RawRequest, connection: RawConnection) -> None:
        with lock:
            script = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        _run(script, request, connection)

    return play


def _run(script: Script, request: RawRequest, connection: RawConnection) -> None:
    if callable(script):
        script(request, connection)
        return
    for step in script:
        if connection.closed.is_set() or connection.disconnected.is_set():
            return
        connection.play(step)


# --- the server -------------------------------------------------------------------------------


class RawServer:
    """Answer each request on 127.0.0.1 by a script; a connection stays open until one closes it.

    Parameters
    ----------
    script
        A callable ``(request, connection)``, or a sequence of steps played for every request:
        bytes to send, `Wait`, `Pause`, `HoldOpen`, `Close`, `Reset`. See also `in_turn`.
    tls
        Speak HTTPS; the client must trust `ca_file`. Needs ``trustme``.

    Examples
    --------
    >>> with RawServer([http_response(200, {}, b"hi"), Close()]) as server:
    ...     urllib.request.urlopen(server.url).read()
    b'hi'
    """

    def __init__(self, script: Script, *, tls: bool = False) -> None:
        self.requests: list[RawRequest] = []
        self.connections: list[RawConnection] = []
        self.disconnected = threading.Event()
        self.ca_file: str | None = None
        self._script = script
        self._failures: list[BaseException] = []
        self._changed = threading.Condition()
        self._folder = tempfile.TemporaryDirectory() if tls else None
        self._tls = self._tls_context() if tls else None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    @property
    def url(self) -> str:
        scheme = "https" if self._tls else "http"
        return f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def connections_open(self) -> int:
        """Number of connections that neither side has closed."""
        return sum(
            not (connection.closed.is_set() or connection.disconnected.is_set())
            for connection in self.connections
        )

    def wait_for_disconnect(self, timeout: float = 5.0) -> bool:
        """Wait until a client has closed one of its connections; False after `timeout` seconds."""
        return self.disconnected.wait(timeout)

    def wait_for_requests(self, count: int = 1, timeout: float = 5.0) -> bool:
        """Wait until `count` requests have come in; False after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.requests) >= count, timeout)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # frees accept()
        self._listener.close()
        self._acceptor.join(5)
        for connection in self.connections:
            if not connection.closed.is_set():
                connection.close()
        if self._folder:
            self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
        if self._failures and error is None:
            raise self._failures[0]  # an assertion that failed inside a script fails the test

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls:
            try:
                sock.settimeout(10)
                sock = self._tls.wrap_socket(sock, server_side=True)
                sock.settimeout(None)
            except OSError:  # a client that does not trust us
                sock.close()
                return
        connection = RawConnection(sock, self.disconnected.set)
        self.connections.append(connection)
        try:
            with sock.makefile("rb") as stream:
                while request := _read_request(stream):
                    with self._changed:
                        self.requests.append(request)
                        self._changed.notify_all()
                    _run(self._script, request, connection)
                    if connection.closed.is_set():
                        return
        except OSError:
            pass  # the client left in the middle of its request
        except BaseException as failure:
            self._failures.append(failure)
        if not connection.closed.is_set():
            connection.close()

    def _tls_context(self) -> ssl.SSLContext:
        import trustme

        authority = trustme.CA()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
        assert self._folder
        self.ca_file = str(Path(self._folder.name) / "ca.pem")
        authority.cert_pem.write_to_path(self.ca_file)
        return context


def _read_request(stream: BinaryIO) -> RawRequest | None:
    first = stream.readline().split()
    if len(first) != 3:
        return None
    headers = http.client.parse_headers(stream)
    if headers.get("Transfer-Encoding") == "chunked":
        body = b"".join(_read_chunks(stream))
    else:
        body = stream.read(int(headers.get("Content-Length", 0)))
    return RawRequest(first[0].decode(), first[1].decode(), headers, body)


def _read_chunks(stream: BinaryIO) -> Iterator[bytes]:
    while size := int(stream.readline(), 16):
        yield stream.read(size)
        stream.readline()
    stream.readline()


# --- HTTP responses ---------------------------------------------------------------------------

Framing: TypeAlias = Literal["chunked", "dribbled", "length", "close", "gzip"]
FRAMINGS: tuple[Framing, ...] = ("chunked", "dribbled", "length", "close", "gzip")


def http_head(status: int = 200, headers: Mapping[str, str] | None = None) -> bytes:
    """Return the status line and headers with the blank line after them."""
    reason = http.client.responses.get(status, "Unknown")
    lines = [f"HTTP/1.1 {status} {reason}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def http_response(
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    body: bytes | str | dict[str, Any] = b"",
) -> bytes:
    """Return a whole response; a dict is sent as JSON."""
    own = {"Content-Type": "text/plain; charset=utf-8"}
    if isinstance(body, dict):
        own["Content-Type"] = "application/json"
        body = json.dumps(body)
    if isinstance(body, str):
        body = body.encode()
    own["Content-Length"] = str(len(body))
    return http_head(status, {**own, **(headers or {})}) + body


def sse_response(
    frames: Iterable[bytes],
    framing: Framing = "chunked",
    piece: int | None = None,
    *,
    between: Step | None = None,
    headers: Mapping[str, str] | None = None,
) -> list[Step]:
    """Return the steps of an event stream: its head, one step a frame, its end.

    Parameters
    ----------
    frames
        Bytes of the frames, blank lines included.
    framing
        ``chunked``: an HTTP chunk each; ``dribbled``: one HTTP chunk, sent frame by frame, as
        proxies do; ``length``: under a Content-Length; ``close``: until the connection closes;
        ``gzip``: chunked, compressed, flushed after each.
    piece
        Cut the stream into pieces of so many bytes instead of frames.
    between
        A step put before each piece, such as ``Wait(0.05)``.
    """
    parts = list(frames)
    if piece:
        whole = b"".join(parts)
        parts = [whole[i : i + piece] for i in range(0, len(whole), piece)]
    size = sum(map(len, parts))
    own = {"Content-Type": "text/event-stream"}
    start = end = b""
    close = False
    match framing:
        case "chunked" | "gzip":
            own["Transfer-Encoding"] = "chunked"
            if framing == "gzip":
                own["Content-Encoding"] = "gzip"
                parts = list(_gzip(parts))
            parts = [b"%x\r\n%b\r\n" % (len(part), part) for part in parts]
            end = b"0\r\n\r\n"
        case "dribbled":
            own["Transfer-Encoding"] = "chunked"
            start, end = b"%x\r\n" % size, b"\r\n0\r\n\r\n"
        case "length":
            own["Content-Length"] = str(size)
        case "close":
            own["Connection"] = "close"
            close = True
    steps: list[Step] = [http_head(200, {**own, **(headers or {})}) + start]
    for part in parts:
        steps += [part] if between is None else [between, part]
    if end:
        steps.append(end)
    if close:
        steps.append(Close())
    return steps


def _gzip(parts: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(wbits=31)
    for part in parts:
        yield compressor.compress(part) + compressor.flush(zlib.Z_SYNC_FLUSH)
    yield compressor.flush()
