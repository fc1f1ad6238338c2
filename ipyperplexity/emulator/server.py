"""The embedded service on loopback: HTTP/1.1 around the engine.

Invariant: nothing leaves this machine and nothing listens beyond loopback unless asked for; a
client that goes away, whatever it sent, never costs more than its own thread.
"""

from __future__ import annotations

import functools
import ipaddress
import threading
from collections import deque
from collections.abc import Mapping
from types import TracebackType

from .behavior import Behavior
from .corpus import Corpus
from .engine import Engine
from .listener import Listener
from .recorded import RecordedRequest
from .runs import RunStore
from .web_state import WebState

__all__ = ["EmulatorServer", "RecordedRequest"]


_KEPT_REQUESTS = 1000


@functools.lru_cache(maxsize=1)
def _builtin_engine() -> Engine:
    """Share the index of the built-in corpus: its addresses do not depend on a server."""
    return Engine(Corpus.builtin())


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
    chat
        ``"answers"``: chat completions are answered; ``"retired"``: they are refused (403).
    web_sessions
        Sessions of the web endpoint that are signed in: e-mail address by session token.

    Attributes
    ----------
    requests
        The requests that came, oldest first; see :class:`RecordedRequest`.
    web_sessions
        As above; a login and a rotated cookie add to it, and a test may take from it.
    sent_codes
        The last login code "sent" to each e-mail address.
    web_limits
        What ``/rest/rate-limit/all`` tells; asking counts down, at 0 asking is refused.
    terminated
        ``backend_uuid`` of the web answers that were stopped, in order.

    Raises
    ------
    ValueError
        The host is not loopback and ``allow_remote`` is not set, or ``chat`` is neither word.

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
        chat: str = "answers",
        web_sessions: Mapping[str, str] | None = None,
    ) -> None:
        if chat not in ("answers", "retired"):
            raise ValueError(f"chat must be 'answers' or 'retired': {chat!r}")
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
        self.chat = chat
        self.web = WebState(web_sessions or {})
        self._corpus = corpus
        self._queue: deque[Behavior] = deque()
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._listener: Listener | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> EmulatorServer:
        """Listen, in a thread of its own; return the server itself."""
        if self._listener is not None:
            return self
        self.stopped.clear()
        self.runs = RunStore()
        self._listener = Listener((self.host, self.port), self)
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

    @property
    def web_sessions(self) -> dict[str, str]:
        """E-mail address by session token."""
        return self.web.sessions

    @property
    def sent_codes(self) -> dict[str, str]:
        """Login code by e-mail address."""
        return self.web.codes

    @property
    def web_limits(self) -> dict[str, int]:
        """Questions left, by kind."""
        return self.web.limits

    @property
    def terminated(self) -> list[str]:
        """Web answers that were stopped."""
        return self.web.terminated

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
