"""Client: ask, stream, and what is configured.

A client is safe to use from several threads. Settings are looked up when a question is asked and
hold for that question to its end: a key never goes to a base URL that was changed meanwhile.
Order: argument, environment, default. The key is never shown and never pickled.
"""

from __future__ import annotations

import dataclasses
import os
import threading
import time
import warnings
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ipyperplexity import demo_engine
from ipyperplexity.answer import Answer
from ipyperplexity.answer_stream import AnswerStream, Call
from ipyperplexity.auth.keys import KEY_VARIABLES, as_secret, find_key, require_key
from ipyperplexity.backends import (
    BACKEND_VARIABLE,
    BACKENDS,
    BASE_URL_VARIABLE,
    DEFAULT_BACKEND,
    DEFAULT_BASE_URL,
    MODEL_VARIABLE,
    Status,
    known_backend,
)
from ipyperplexity.errors import (
    AbortedError,
    ConfigurationError,
    Interrupted,
    InvalidRequestError,
    MissingCredentialError,
    PerplexityError,
    PerplexityWarning,
)
from ipyperplexity.net import sessions, transport
from ipyperplexity.net.address import check_base_url, is_loopback, join, shown
from ipyperplexity.net.redact import BearerAuth, Secret
from ipyperplexity.net.retry import RetryPolicy
from ipyperplexity.question import Question
from ipyperplexity.version import __version__
from ipyperplexity.wire import agent
from ipyperplexity.wire.base import WireRequest

if TYPE_CHECKING:
    import requests


@dataclass(frozen=True)
class _Settings:
    """What one question uses, from its beginning to its end."""

    backend: str
    base_url: str
    model: str | None
    secret: Secret | None


class Client:
    """Asks questions.

    Parameters
    ----------
    api_key : str, optional
        Else ``PERPLEXITY_API_KEY`` (or ``PPLX_API_KEY``), read anew for each question.
    backend : str, optional
        ``agent`` (default) or ``demo``; else ``IPYPERPLEXITY_BACKEND``.
    base_url : str, optional
        Else ``PERPLEXITY_BASE_URL``, else the official address.
    model : str, optional
        Default for questions that name none; else ``IPYPERPLEXITY_MODEL``, else the preset ``low``.
    timeout : float, optional
        Seconds that a whole answer may take; 900 if not given.
    max_retries : int
        How often a request that failed before its answer began is sent again.
    session : requests.Session, optional
        To use instead of the client's own (proxies, certificates, adapters).
    allow_http : bool
        Allow plain http to another machine, where the key can be read on the way.

    Raises
    ------
    ConfigurationError
        If an argument is not valid.

    Examples
    --------
    >>> client = Client(backend="demo")
    >>> answer = client.ask("What does the with statement do?")
    >>> answer.sources[0].domain
    'docs.python.org'
    """

    def __init__(
        self,
        api_key: str | None = None,
        backend: str | None = None,
        base_url: str | None = None,
        model: str | None = None,
        timeout: float | None = None,
        max_retries: int = 2,
        session: requests.Session | None = None,
        *,
        allow_http: bool = False,
    ) -> None:
        # From here on no local variable holds the key: a traceback may show them.
        api_key = Secret(api_key.strip()) if isinstance(api_key, str) else api_key  # type: ignore
        self._key = as_secret(api_key, "the api_key argument")
        self._backend = known_backend(backend, "backend") if backend is not None else None
        self._allow_http = allow_http
        self._base_url = (
            check_base_url(base_url, allow_http=allow_http) if base_url is not None else None
        )
        if self._base_url is not None and self._backend == "demo":
            raise ConfigurationError(
                "base_url: the demo backend has its own address; leave base_url out.",
                field="base_url",
            )
        _check_defaults(model=model, timeout=timeout)
        self._model, self._timeout = model, timeout
        if isinstance(max_retries, bool) or not isinstance(max_retries, int) or max_retries < 0:
            raise ConfigurationError(
                f"max_retries: got {max_retries!r}; allowed: a whole number from 0 up.",
                field="max_retries",
            )
        self._max_retries = max_retries
        if session is not None and not callable(getattr(session, "post", None)):
            raise ConfigurationError(
                f"session: got {type(session).__name__}; allowed: a requests.Session.",
                field="session",
            )
        self._given_session = session
        self._session = session
        self._lock = threading.Lock()
        # Weakly: a stream that nobody holds any more is over.
        self._running: weakref.WeakSet[AnswerStream] = weakref.WeakSet()
        self._last: Answer | None = None
        _clients.add(self)

    def ask(self, text: str | Question, *, stream: bool = True, **options: Any) -> Answer:
        """Ask, and wait for the whole answer.

        Parameters
        ----------
        text : str or Question
            The question.
        stream : bool
            Whether to have it streamed on the way, so that a broken answer keeps its text.
        **options
            See :class:`~ipyperplexity.question.Question`.

        Raises
        ------
        PerplexityError
            With ``error.answer`` holding what had arrived.
        Interrupted
            On Ctrl-C (a ``KeyboardInterrupt``), likewise.

        Examples
        --------
        >>> answer = Client(backend="demo").ask("What is a lambda?", limit=3)
        >>> len(answer.sources)
        3
        """
        interrupted = False
        with self.stream(text, stream=stream, **options) as running:
            try:
                answer = running.answer
            except KeyboardInterrupt:
                interrupted = True
        if interrupted:
            raise Interrupted("stopped; error.answer holds what came", answer=running.answer)
        if answer.status == "stopped" and isinstance(answer.error, AbortedError):
            raise answer.error
        for warning in answer.warnings:
            warnings.warn(warning, PerplexityWarning, stacklevel=2)
        return answer

    def stream(self, text: str | Question, *, stream: bool = True, **options: Any) -> AnswerStream:
        """Ask, and take the answer as it is written.

        Returns
        -------
        AnswerStream
            To iterate for events; a context manager that stops the answer when it is left.

        Raises
        ------
        ConfigurationError, InvalidRequestError
            At once, before anything is sent.

        Examples
        --------
        >>> from ipyperplexity.events import TextDelta
        >>> with Client(backend="demo").stream("What is a lambda?") as running:
        ...     first = next(event.text for event in running if isinstance(event, TextDelta))
        >>> running.answer.status
        'stopped'
        """
        settings = self._settings()
        question = self.question(text, **options)
        backend = BACKENDS[settings.backend]
        total = question.timeout or self._timeout or transport.TOTAL_TIMEOUT
        running = AnswerStream(
            question,
            Call(
                backend=settings.backend,
                wire=backend.wire,
                open=lambda request, began: self._open(request, settings, total, began),
                total=total,
                policy=RetryPolicy(self._max_retries),
                secret=settings.secret,
            ),
            streaming=stream,
            hand_over=self._hand_over,
        )
        with self._lock:
            self._running.add(running)
        return running

    def question(self, text: str | Question, **options: Any) -> Question:
        """Return a checked Question with this client's defaults, without asking it.

        Raises
        ------
        InvalidRequestError
            If an option is unknown, or its value not allowed.
        """
        if isinstance(text, Question):
            if options:
                raise TypeError("options go into the Question, not beside it")
            names_one = text.model is not None or any(
                field in text.extra for field in agent.WHO_ANSWERS
            )
            model = None if names_one else self._model or os.environ.get(MODEL_VARIABLE)
            return dataclasses.replace(text, model=model) if model else text
        model = self._model or os.environ.get(MODEL_VARIABLE)
        for name, default in (("model", model), ("timeout", self._timeout)):
            if options.get(name) is None and default is not None:
                options[name] = default
        return Question.make(text, **options)

    def status(self) -> Status:
        """Say what is configured, without asking the service.

        Examples
        --------
        >>> Client(backend="demo").status().state
        'ready'
        """
        name = self._backend or os.environ.get(BACKEND_VARIABLE) or DEFAULT_BACKEND
        address = shown(self._base_url or os.environ.get(BASE_URL_VARIABLE) or DEFAULT_BASE_URL)
        model = self._model or os.environ.get(MODEL_VARIABLE) or agent.DEFAULT_PRESET
        state, problem, hint, key = "ready", "", "", "none needed"
        try:
            if name in BACKENDS and BACKENDS[name].needs_key:
                credential = find_key(self._key)
                key = f"set, from {credential.origin}" if credential else "not set"
            if name != "demo":  # which would start
                self._settings()
            agent.request(Question("check", model=model))
        except MissingCredentialError as error:
            state, problem, hint = "missing-credential", error.message, error.hint or ""
        except PerplexityError as error:
            state, problem, hint = "misconfigured", error.message, error.hint or ""
        if name == "demo":
            address = demo_engine.shared.url or "on this machine; starts with the first question"
        return Status(state, name, address, model, key, problem, hint)

    @property
    def last(self) -> Answer | None:
        """The newest answer of this client, also a broken or stopped one."""
        return self._last

    def close(self) -> None:
        """Stop what runs and let the connections go. The client can be used again."""
        with self._lock:
            running = [known for known in self._running if not known.done]
            session, self._session = self._session, self._given_session
        for answer in running:
            answer.cancel()
        if session is not None and session is not self._given_session:
            session.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        # `get`: a traceback may show a client whose arguments were refused.
        given = {name: self.__dict__.get(f"_{name}") for name in _SHOWN}
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
        return f"Client({shown})"

    def __getstate__(self) -> dict[str, Any]:
        # The key stays here, and so do sockets: where the client arrives it finds its own.
        keep = ("_backend", "_allow_http", "_base_url", "_model", "_timeout", "_max_retries")
        return {name: self.__dict__[name] for name in keep}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._key = self._given_session = self._last = None
        self._forget_connections()
        _clients.add(self)

    def __copy__(self) -> Client:
        # A copy stays in this process, and so does the key that it was given.
        other = Client.__new__(Client)
        other.__setstate__(self.__getstate__())
        other._key, other._given_session, other._session = (
            self._key,
            self._given_session,
            self._given_session,
        )
        return other

    def __deepcopy__(self, memo: Any) -> Client:
        return self.__copy__()

    def _forget_connections(self) -> None:
        self._lock = threading.Lock()
        self._running = weakref.WeakSet()
        self._session = self._given_session

    # --- how a question finds its way ---------------------------------------------------------

    def _settings(self) -> _Settings:
        origin = "backend" if self._backend else BACKEND_VARIABLE
        name = self._backend or os.environ.get(BACKEND_VARIABLE) or DEFAULT_BACKEND
        name = known_backend(name, origin)
        model = self._model or os.environ.get(MODEL_VARIABLE) or None
        if name == "demo":
            return _Settings(name, demo_engine.shared.start(), model, None)
        base_url = self._base_url or check_base_url(
            os.environ.get(BASE_URL_VARIABLE) or DEFAULT_BASE_URL, allow_http=self._allow_http
        )
        return _Settings(name, base_url, model, require_key(self._key).secret)

    def _open(
        self, request: WireRequest, settings: _Settings, total: float, began: float
    ) -> transport.Exchange:
        url = join(settings.base_url, request.path)
        accept = "text/event-stream" if request.body.get("stream") else "application/json"
        send = sessions.post(
            self._open_session(),
            url,
            request.body,
            auth=BearerAuth(settings.secret),
            headers={**_HEADERS, "Accept": accept, **request.headers},
            loopback=is_loopback(urlsplit(url).hostname or ""),
            read_timeout=max(0.1, began + total - time.monotonic()),
        )
        silence = min(total, transport.SILENCE_TIMEOUT)
        exchange = transport.Exchange(
            send, total=total, silence=silence, started=began, address=shown(settings.base_url)
        )
        exchange.start()
        return exchange

    def _open_session(self) -> requests.Session:
        with self._lock:
            if self._session is None:
                self._session = sessions.make_session()
            return self._session

    def _hand_over(self, answer: Answer) -> None:
        answer.__dict__["_ask"] = self.ask
        self._last = answer


#: All clients of this process, to make them safe after a fork.
_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _after_fork() -> None:
    """In a forked child: leave the parent's sockets to the parent, and its held locks behind.

    Two processes that read one socket would get each other's answers.
    """
    global _default_lock
    _default_lock = threading.Lock()
    demo_engine.shared = demo_engine.DemoEngine()
    for client in list(_clients):
        client._forget_connections()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

_HEADERS = {
    "Content-Type": "application/json",
    "User-Agent": f"ipyperplexity/{__version__}",
    "X-Pplx-Integration": f"ipyperplexity/{__version__}",
    "Accept-Encoding": "identity",
    "Cache-Control": "no-store",
}


_SHOWN = ("backend", "base_url", "model", "timeout")


def _check_defaults(**options: Any) -> None:
    refused: InvalidRequestError | None = None
    try:
        Question("check", **options)
    except InvalidRequestError as error:
        refused = error
    if refused is not None:
        raise ConfigurationError(refused.message, field=refused.field)


_default_lock = threading.Lock()
_default: Client | None = None


def default_client() -> Client:
    """Return the client behind ``ipyperplexity.ask``: made when it is first needed."""
    global _default
    with _default_lock:
        if _default is None:
            _default = Client()
        return _default


def ask(text: str | Question, **options: Any) -> Answer:
    """Ask with the default client; see :meth:`Client.ask`."""
    return default_client().ask(text, **options)


def stream(text: str | Question, **options: Any) -> AnswerStream:
    """Stream with the default client; see :meth:`Client.stream`."""
    return default_client().stream(text, **options)


def status() -> Status:
    """Say what is configured; see :meth:`Client.status`."""
    return default_client().status()


def demo() -> Client:
    """Start the embedded engine and return a client on it: no key, no network.

    Examples
    --------
    >>> answer = demo().ask("What does the with statement do?")
    >>> answer.model.startswith("demo")
    True
    """
    demo_engine.shared.start()
    return Client(backend="demo")


__all__ = [
    "BACKENDS",
    "KEY_VARIABLES",
    "AnswerStream",
    "Client",
    "Status",
    "ask",
    "default_client",
    "demo",
    "status",
    "stream",
]
