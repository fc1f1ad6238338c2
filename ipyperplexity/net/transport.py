"""One request on its way: a thread that only reads bytes, and the caller who takes them.

The reader thread never touches IPython, decodes nothing and raises nothing: it puts pieces into
a queue. The calling thread takes them, and between two looks (0.05 s) notices an interrupt, a stop
from another thread, and the deadlines. That is what makes a stream stop at once: waiting inside a
socket cannot be interrupted everywhere, and closing a response from another thread blocks.
"""

from __future__ import annotations

import contextlib
import http.client
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import requests
import urllib3

from ipyperplexity.errors import (
    AbortedError,
    NetworkError,
    PerplexityError,
    RequestTimeout,
    StreamError,
)
from ipyperplexity.net import sessions
from ipyperplexity.wire.base import TOTAL_TIMEOUT

#: Seconds between two looks at deadlines and stops.
TICK = 0.05
#: Seconds without a single byte, unless ``timeout`` says otherwise.
SILENCE_TIMEOUT = 300.0
READ_SIZE = 65536
#: Bytes of a reply that is not a stream. An answer's record is far smaller.
MAX_BODY_BYTES = 64 * 2**20
#: Pieces that are taken in one go; a flood is looked at in between, for stops and deadlines.
_MOST_PIECES = 256
#: Seconds that a finished exchange waits for its last bytes, so that the connection is kept.
_GRACE = 0.02


@dataclass(frozen=True)
class Head:
    """Status and headers of a reply; header names are looked up without regard to case.

    ``set_cookies`` has each ``Set-Cookie`` line by itself: joined they could not be told apart.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    set_cookies: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Broken:
    """Why the reader gave up. Text only: an exception would keep frames, and the key, alive."""

    cause: str
    detail: str


class End:
    """The reply is complete."""


class Exchange:
    """A request and its reply, read by a thread of its own.

    Parameters
    ----------
    send : callable
        Sends the request and returns the response, unread.
    total, silence : float
        Seconds for everything, and without a byte.
    started : float, optional
        When ``total`` began, on the monotonic clock: an earlier attempt may have used some of it.
    address : str
        Whom it is sent to, for messages.
    threaded : bool
        False where there are no threads (Emscripten): bytes are then read in place.
    """

    def __init__(
        self,
        send: Callable[[], requests.Response],
        *,
        total: float = TOTAL_TIMEOUT,
        silence: float = SILENCE_TIMEOUT,
        started: float | None = None,
        address: str = "",
        threaded: bool = sys.platform != "emscripten",
    ) -> None:
        self._send = send
        self._total = total
        self._silence = silence
        self._threaded = threaded
        self._address = f" ({address})" if address else ""
        self._queue: queue.SimpleQueue[Head | bytes | Broken | End] = queue.SimpleQueue()
        self._in_place: Iterator[Head | bytes | Broken | End] | None = None
        self._stopped = threading.Event()
        self._finished = threading.Event()
        self._lock = threading.Lock()
        self._response: requests.Response | None = None
        self._connection: Any = None
        self._last_byte = time.monotonic()
        self._started = self._last_byte if started is None else started
        self._head: Head | None = None
        #: Called at each look while nothing comes, by the thread that takes the bytes.
        self.on_wait: Callable[[], None] | None = None
        #: Called with the head of the reply, by the thread that takes it.
        self.on_head: Callable[[Head], None] | None = None
        #: Given what is read, hands it on: how a recording hears it. Set before the start.
        self.tap: Callable[[Iterator[Any]], Iterator[Any]] | None = None
        #: Whether somebody, or a time limit, ended it; and whether it was cut in any way.
        self.was_stopped = self.was_cut = False
        #: True when no connection came about, so that the service cannot have seen the request.
        self.unsent = False

    def start(self) -> None:
        """Send the request."""
        if self._threaded:
            thread = threading.Thread(target=self._pump, name="ipyperplexity-reader", daemon=True)
            thread.start()
        else:
            self._in_place = self._items()

    def head(self) -> Head:
        """Wait for the reply's status and headers.

        Raises
        ------
        NetworkError, RequestTimeout, AbortedError
        """
        if self._head is None:
            item = self._take()
            if not isinstance(item, Head):
                raise self._failure(item)
            self._head = item
            if self.on_head is not None:
                self.on_head(item)
        return self._head

    def chunks(self) -> Iterator[bytes]:
        """Yield the pieces of the body as they come.

        Raises
        ------
        StreamError, RequestTimeout, AbortedError
            If the connection breaks, is too slow, or was stopped.
        """
        waiting = self._queue
        while True:
            item = self._take()
            # All that has come since the last look goes on in one piece: one decoding, not many.
            pieces: list[bytes] = []
            while type(item) is bytes:
                pieces.append(item)
                if len(pieces) == _MOST_PIECES or waiting.empty():
                    break
                item = waiting.get()
            if pieces:
                yield pieces[0] if len(pieces) == 1 else b"".join(pieces)
            if isinstance(item, End):
                return
            if type(item) is not bytes:
                raise self._failure(item)

    def excerpt(self, limit: int, seconds: float) -> bytes:
        """Read an error's body: as much as comes in ``seconds``, and about ``limit`` bytes at most.

        Raises
        ------
        AbortedError
        """
        self._total = min(self._total, time.monotonic() - self._started + seconds)
        excerpt = b""
        try:
            for piece in self.chunks():
                excerpt += piece
                if len(excerpt) >= limit:
                    break
        except (NetworkError, StreamError):
            pass  # the status has been read, and says enough
        return excerpt

    def stop(self) -> None:
        """Shut the connection now. From any thread, any number of times."""
        self.was_stopped = True
        self._cut()

    def _cut(self) -> None:
        self.was_cut = True
        self._stopped.set()
        with self._lock:
            response, connection = self._response, self._connection
            if self._finished.is_set():
                return
            _shut(response, connection)

    def close(self) -> None:
        """Let go of the connection: kept for the next request if the reply was read to its end."""
        if not self._finished.wait(_GRACE if self._head is not None else 0):
            self._cut()

    # --- the calling thread -------------------------------------------------------------------

    def _take(self) -> Head | bytes | Broken | End:
        if self._stopped.is_set():
            raise AbortedError("The request was stopped.")
        if self._in_place is not None:
            return next(self._in_place, End())
        get = self._queue.get
        while True:
            try:
                item = get(timeout=TICK)
            except queue.Empty:
                pass
            else:
                if self._stopped.is_set():
                    raise AbortedError("The request was stopped.")
                self._last_byte = time.monotonic()
                return item
            if self._stopped.is_set():
                raise AbortedError("The request was stopped.")
            now = time.monotonic()
            if now - self._started > self._total or now - self._last_byte > self._silence:
                self._too_late(now)
            if self.on_wait is not None:
                self.on_wait()

    def _too_late(self, now: float) -> None:
        self.stop()
        if now - self._started > self._total:
            raise self._late()
        raise RequestTimeout(f"The service has been silent for {self._silence:g} s.")

    def _late(self) -> RequestTimeout:
        return RequestTimeout(f"The answer took more than {self._total:g} s.", field="timeout")

    def _failure(self, item: Any) -> PerplexityError:
        if self._stopped.is_set():
            return AbortedError("The request was stopped.")
        if not isinstance(item, Broken):
            return StreamError("The reply ended before it began.")
        if item.cause == "late" or (
            item.cause == "timeout" and time.monotonic() - self._started > self._total - TICK
        ):
            return self._late()
        if self._head is None:
            self.unsent = item.cause == "connect"
            kind = RequestTimeout if item.cause == "timeout" else NetworkError
            return kind(f"{_CAUSES[item.cause]}{self._address}: {item.detail}")
        if item.cause == "timeout":
            return RequestTimeout(f"The service fell silent: {item.detail}")
        return StreamError(f"The connection broke in the middle of the answer: {item.detail}")

    # --- the reader thread --------------------------------------------------------------------

    def _pump(self) -> None:
        put = self._queue.put
        with sessions.watching(self._sees):
            for item in self._items():
                put(item)
        self._response = self._connection = None

    def _items(self) -> Iterator[Head | bytes | Broken | End]:
        return self._read() if self.tap is None else self.tap(self._read())

    def _read(self) -> Iterator[Head | bytes | Broken | End]:
        broken: Broken | None = None
        try:
            response = self._send()
            with self._lock:
                self._response = response
                if self._stopped.is_set():
                    _shut(response, self._connection)
            yield Head(response.status_code, response.headers, _set_cookies(response))
            for piece in _pieces(response):
                # Here, so that what came in time counts, however long the caller takes over it.
                if time.monotonic() - self._started > self._total:
                    broken = Broken("late", "")
                    break
                yield piece
        except Exception as error:  # whatever it is, the caller is told; threads must not print
            broken = _explain(error)
        with self._lock:
            self._finished.set()
        if self._response is not None and broken is not None:
            with contextlib.suppress(Exception):
                self._response.close()
        yield End() if broken is None else broken

    def _sees(self, connection: Any) -> None:
        """Take note of the connection that this exchange is about to use."""
        with self._lock:
            self._connection = connection
        if self._stopped.is_set():
            raise OSError("stopped")


def _set_cookies(response: requests.Response) -> tuple[str, ...]:
    headers = getattr(response.raw, "headers", None)
    if not isinstance(headers, urllib3.HTTPHeaderDict):  # an adapter of the user's own
        joined = response.headers.get("set-cookie")
        return (joined,) if joined else ()
    return tuple(headers.getlist("set-cookie"))


def _pieces(response: requests.Response) -> Iterator[bytes]:
    raw = response.raw
    if not isinstance(raw, urllib3.response.HTTPResponse):  # an adapter of the user's own
        yield from response.iter_content(1024)
        return
    plain = raw._original_response
    # `read1` gives what has arrived, at once: other ways wait for a full buffer behind a proxy.
    if isinstance(plain, http.client.HTTPResponse) and "content-encoding" not in raw.headers:
        # urllib3 has nothing to decode, and passing through it takes twice the time of all else.
        while piece := plain.read1(READ_SIZE):
            yield piece
        if plain.length:
            raise http.client.IncompleteRead(b"", plain.length)
    else:
        while piece := raw.read1(READ_SIZE, decode_content=True):
            yield piece
    raw.release_conn()


def collect(pieces: Iterable[bytes], limit: int = MAX_BODY_BYTES) -> bytes:
    """Return a body in one piece.

    Raises
    ------
    StreamError
        If it has more than ``limit`` bytes.
    """
    body: list[bytes] = []
    size = 0
    for piece in pieces:
        body.append(piece)
        size += len(piece)
        if size > limit:
            raise StreamError(f"The reply has more than {limit:,} bytes.")
    return b"".join(body)


def _shut(response: requests.Response | None, connection: Any) -> None:
    # `response.close()` would block until the service sends something; a shut socket does not.
    if response is not None and hasattr(response.raw, "shutdown"):
        with contextlib.suppress(Exception):
            response.raw.shutdown()
        return
    sock = getattr(connection, "sock", None)
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


_CAUSES = {
    "connect": "The service could not be reached",
    "timeout": "The service did not answer in time",
    "tls": "No secure connection to the service",
    "proxy": "The proxy did not let the request through",
    "broken": "The connection broke before the answer began",
}


def _explain(error: BaseException) -> Broken:
    """Say in words what went wrong, without headers and addresses of objects."""
    names = {type(link).__name__ for link in _chain(error)}
    deepest = list(_chain(error))[-1]
    detail = " ".join(str(getattr(deepest, "strerror", None) or deepest).split())
    detail = detail.split("object at 0x")[-1].split(">: ")[-1][:300] or type(deepest).__name__
    if isinstance(deepest, http.client.IncompleteRead):
        detail = "it ended too early."
    for cause, marks in _MARKS.items():
        if names & marks:
            return Broken(cause, detail)
    return Broken("broken", detail)


_MARKS = {
    "proxy": {"ProxyError", "InvalidProxyURL", "ProxySchemeUnknown"},
    "tls": {"SSLError", "SSLCertVerificationError", "SSLEOFError"},
    "connect": {
        *("NewConnectionError", "NameResolutionError", "ConnectTimeout", "ConnectTimeoutError"),
        *("ConnectionRefusedError", "gaierror"),
    },
    "timeout": {"ReadTimeout", "ReadTimeoutError", "TimeoutError"},
}


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    pending: list[Any] = [error]
    while pending:
        link = pending.pop(0)
        if not isinstance(link, BaseException) or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        pending += [getattr(link, "reason", None), link.__cause__, link.__context__, *link.args]
