"""The embedded service on loopback: HTTP/1.1 around the engine.

Invariant: nothing leaves this machine and nothing listens beyond loopback unless asked for; a
client that goes away, whatever it sent, never costs more than its own thread.
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import socket
import threading
import time
from collections import deque
from http.server import ThreadingHTTPServer
from types import TracebackType
from typing import Any

from .corpus import Corpus
from .engine import Engine
from .faults import Behavior
from .handler import Handler
from .recorded import RecordedRequest
from .runs import RunStore

__all__ = ["EmulatorServer", "RecordedRequest"]


_KEPT_REQUESTS = 1000


@functools.lru_cache(maxsize=1)
def _builtin_engine() -> Engine:
    """Share the index of the built-in corpus: its addresses do not depend on a server."""
    return Engine(Corpus.builtin())


class _Listener(ThreadingHTTPServer):
    """Keeps track of live connections and their threads, so that all can be ended."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], emulator: EmulatorServer) -> None:
        self.emulator = emulator
        self._alive: dict[socket.socket, threading.Thread] = {}
        self._guard = threading.Lock()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, Handler)

    def server_bind(self) -> None:
        # HTTPServer looks its own name up here, which can take seconds without a network.
        socket.socket.bind(self.socket, self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(
            target=self._serve,
            args=(request, client_address),
            name="emulator-connection",
            daemon=True,
        )
        with self._guard:
            self._alive[request] = thread
        thread.start()

    def _serve(self, request: socket.socket, client_address: Any) -> None:
        try:
            self.process_request_thread(request, client_address)
        finally:
            with self._guard:
                self._alive.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet: a client that goes away is no news."""

    def end_connections(self, patience: float) -> None:
        with self._guard:
            alive = dict(self._alive)
        for connection in alive:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        until = time.monotonic() + patience
        for thread in alive.values():
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))


class EmulatorServer:
    """The offline service.

    Parameters
    ----------
    corpus
        What it answers from; None is the reference of the running Python.
    host, port
        Where it listens; port 0 takes a free one.
    api_key
        The key it wants; None takes any or none.
    pace
        Seconds between two text pieces of a stream.
    chunk_chars
        Characters in a text piece.
    behavior
        Default behavior; see :class:`~ipyperplexity.emulator.faults.Behavior`.
    allow_remote
        Allow a host that other machines can reach.

    Raises
    ------
    ValueError
        The host is not loopback and ``allow_remote`` is not set.

    Examples
    --------
    >>> with EmulatorServer(pace=0) as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(
        self,
        corpus: Corpus | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        api_key: str | None = None,
        pace: float = 0.02,
        chunk_chars: int = 12,
        behavior: Behavior | None = None,
        allow_remote: bool = False,
    ) -> None:
        if not allow_remote and not _is_loopback(host):
            raise ValueError(
                f"host {host!r} is not loopback: other machines could reach the demo; "
                "pass allow_remote=True if that is meant"
            )
        self.host, self.port = host, port
        self.api_key = api_key
        self.pace = pace
        self.chunk_chars = chunk_chars
        self.behavior = behavior or Behavior()
        self.requests: list[RecordedRequest] = []
        self.stopped = threading.Event()
        self.runs = RunStore()
        self.used_requests = 0
        self._corpus = corpus
        self._queue: deque[Behavior] = deque()
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._listener: _Listener | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> EmulatorServer:
        """Listen, in a thread of its own; return the server itself."""
        if self._listener is not None:
            return self
        self.stopped.clear()
        self.runs = RunStore()
        self._listener = _Listener((self.host, self.port), self)
        self._thread = threading.Thread(
            target=self._listener.serve_forever, args=(0.05,), name="emulator-accept", daemon=True
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop at once: live connections are closed, running answers end, threads are joined."""
        listener, self._listener = self._listener, None
        self.stopped.set()
        if listener is None:
            return
        self.runs.stop()
        listener.shutdown()
        listener.server_close()
        listener.end_connections(2.0)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(2)
        self._thread = None
        self._engine = None

    def serve_forever(self) -> None:
        """Serve until ``stop`` or Ctrl-C."""
        self.start()
        try:
            while not self.stopped.wait(0.5):
                pass
        except KeyboardInterrupt:
            pass
        finally:
            self.stop()

    def __enter__(self) -> EmulatorServer:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        place = self.url if self._listener is not None else "stopped"
        return f"<EmulatorServer {place}>"

    @property
    def url(self) -> str:
        """The base address, without a slash at its end.

        Raises
        ------
        RuntimeError
            The server is not running.
        """
        if self._listener is None:
            raise RuntimeError("the emulator is not running; call start() first")
        host, port = self._listener.server_address[:2]
        name = host.decode() if isinstance(host, (bytes, bytearray)) else host
        return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"

    @property
    def engine(self) -> Engine:
        """The engine, made at the first use."""
        with self._lock:
            if self._engine is None:
                self._engine = (
                    _builtin_engine()
                    if self._corpus is None
                    else Engine(self._corpus, base_url=self.url)
                )
            return self._engine

    def next(self, *behaviors: Behavior) -> None:
        """Answer the next requests, in the order they come, with these behaviors."""
        with self._lock:
            self._queue.extend(behaviors)

    def take_behavior(self) -> Behavior:
        """Return the behavior for the request that has just come."""
        with self._lock:
            return self._queue.popleft() if self._queue else self.behavior

    def record(self, request: RecordedRequest) -> int:
        """Keep a request; return how many there have been."""
        with self._lock:
            self.requests.append(request)
            # A demo may run for days; a test looks at the last few.
            del self.requests[:-_KEPT_REQUESTS]
            self.used_requests += 1
            return self.used_requests


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
