"""The service that one question goes to: an address, a credential, a session, fixed together.

Whatever changes in the environment meanwhile, a credential is only ever sent to the address that it
was looked up with.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar
from urllib.parse import urlsplit

from ipyperplexity.errors import AbortedError, Interrupted, PerplexityError
from ipyperplexity.net import sessions, transport
from ipyperplexity.net.address import is_loopback, join, shown
from ipyperplexity.net.redact import BearerAuth, Secret, redact
from ipyperplexity.net.replies import content_type, read_json
from ipyperplexity.net.retry import RetryPolicy
from ipyperplexity.net.transport import Exchange, Head
from ipyperplexity.tapes import deck
from ipyperplexity.version import __version__
from ipyperplexity.wire import problems
from ipyperplexity.wire.base import WireRequest

if TYPE_CHECKING:
    import requests
    from requests.auth import AuthBase

#: Bytes of an error's body that are read, and the seconds that may take.
ERROR_BODY_BYTES = 256 * 1024
ERROR_BODY_SECONDS = 5.0
#: Seconds for a call that is answered at once: a look at a job, a search, the list of models.
CALL_TIMEOUT = 60.0
#: Seconds for sending or fetching a file, which may have some hundred MB.
FILE_TIMEOUT = 3600.0
#: Seconds for a message whose answer nobody waits for.
_PARTING_TIMEOUT = 5.0

_T = TypeVar("_T")
_HEADERS = {
    "Content-Type": "application/json",
    "User-Agent": f"ipyperplexity/{__version__}",
    "X-Pplx-Integration": f"ipyperplexity/{__version__}",
    "Accept-Encoding": "identity",
    "Cache-Control": "no-store",
}


#: Headers that tell of the rate limit, and the clock that one of them goes by.
_LIMITS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "date")


@dataclass(frozen=True)
class Service:
    """Where requests go, and with what.

    Attributes
    ----------
    backend : str
        Name in the registry.
    base_url : str
        Checked by :func:`~ipyperplexity.net.address.check_base_url`.
    session : callable
        Returns the session to use.
    auth : requests.auth.AuthBase
        Puts the credential on a request when it is sent.
    secrets : tuple of Secret
        What must not show in messages and records.
    policy : RetryPolicy
    on_cookies : callable or None
        Is given the ``Set-Cookie`` lines of a reply.
    on_limits : callable or None
        Is given the headers of a reply that tells of the rate limit (official-api 7).
    """

    backend: str
    base_url: str
    session: Callable[[], requests.Session] = field(repr=False)
    auth: AuthBase = field(default_factory=lambda: BearerAuth(None), repr=False)
    secrets: tuple[Secret, ...] = field(default=(), repr=False)
    policy: RetryPolicy = field(default_factory=RetryPolicy, repr=False)
    on_cookies: Callable[[tuple[str, ...]], object] | None = field(default=None, repr=False)
    on_limits: Callable[[Mapping[str, str]], object] | None = field(default=None, repr=False)

    def open(
        self,
        request: WireRequest,
        *,
        began: float,
        total: float,
        form: sessions.Form | None = None,
        taped: bool = True,
    ) -> Exchange:
        """Send a request; return its exchange, of which ``total`` seconds began at ``began``.

        ``form`` is sent in place of the request's JSON body. What is not ``taped`` is no part of a
        lesson.
        """
        replaying = deck.replaying()
        asked = None
        if taped and (replaying is not None or deck.recording() is not None):
            body = request.body if form is None else form.summary()
            asked = deck.request_of(request.method, request.path, body, self.secrets)
        base_url, auth = self.base_url, self.auth
        limits: dict[str, Any] = {
            "total": total,
            # Nothing comes while a file is on its way to the service.
            "silence": total if form is not None else min(total, transport.SILENCE_TIMEOUT),
            "started": began,
        }
        if replaying is not None and asked is not None:
            reply = replaying.find(asked)
            if reply is not None:
                speed = replaying.speed
                return self._started(deck.TapeExchange(reply, speed, address="the tape", **limits))
            # Nothing that is asked of the demo costs anything, or is told who asks.
            base_url = deck.start_demo() if deck.start_demo is not None else base_url
            auth = BearerAuth(None)
        url = join(base_url, request.path)
        streams = request.body is not None and request.body.get("stream")
        accept = "text/event-stream" if streams else "application/json"
        send = sessions.sender(
            self.session(),
            request.method,
            url,
            request.body if form is None else form,
            auth=auth,
            headers={**_HEADERS, "Accept": accept, **request.headers},
            loopback=is_loopback(urlsplit(url).hostname or ""),
            read_timeout=max(0.1, began + total - time.monotonic()),
        )
        exchange = Exchange(send, address=shown(base_url), **limits)
        recording = deck.recording()
        if recording is not None and asked is not None:
            recording.listen(exchange, asked, self.secrets)
        return self._started(exchange)

    def _started(self, exchange: Exchange) -> Exchange:
        exchange.on_head = self._look_at
        try:
            exchange.start()
        except BaseException:  # an interrupt: nobody else has it yet, to let it go
            exchange.stop()
            raise
        return exchange

    def attempt(self, exchange: Exchange) -> tuple[Head, PerplexityError | None]:
        """Wait for a reply's head; return with it the failure that it, or its lack, means.

        Raises
        ------
        AbortedError
            If the exchange was stopped.
        """
        failure: PerplexityError | None = None
        head = Head(0, {})
        try:
            head = exchange.head()
        except AbortedError:
            raise
        except PerplexityError as error:
            failure = error.with_traceback(None)
        if failure is None and not 200 <= head.status < 300:
            body = exchange.excerpt(ERROR_BODY_BYTES, ERROR_BODY_SECONDS)
            failure = problems.from_http(head.status, head.headers, body, time.time())
        return head, failure

    def fetch(
        self,
        request: WireRequest,
        *,
        timeout: float = CALL_TIMEOUT,
        stopped: threading.Event | None = None,
    ) -> Any:
        """Make a call that is answered with JSON, again where that is safe; return the value.

        Parameters
        ----------
        request : WireRequest
        timeout : float
            Seconds for all of it.
        stopped : threading.Event, optional
            Ends the call when it is set.

        Raises
        ------
        PerplexityError
            As for a question.
        Interrupted
            On a kernel interrupt.
        """
        return self._call(request, timeout, _read_json, stopped=stopped)

    def upload(
        self,
        path: str,
        fields: Mapping[str, str],
        filename: str,
        content: bytes | BinaryIO,
        *,
        timeout: float = FILE_TIMEOUT,
        stopped: threading.Event | None = None,
    ) -> Any:
        """Send a file as ``multipart/form-data``; return the JSON value of the reply.

        Parameters
        ----------
        path : str
            Below the base URL, with a leading slash.
        fields : mapping of str to str
            Form fields beside the file, which is the field ``file``.
        filename : str
        content : bytes or binary file
            A seekable file is sent piece by piece, whatever its size, and left open.
        timeout : float
            Seconds for all of it.
        stopped : threading.Event, optional
            Ends the call when it is set.

        Raises
        ------
        PerplexityError
            As for a question.
        """
        form = sessions.Form(fields, filename, content)
        return self._call(WireRequest(path, None), timeout, _read_json, form=form, stopped=stopped)

    def download_lines(
        self,
        request: WireRequest,
        *,
        timeout: float = FILE_TIMEOUT,
        stopped: threading.Event | None = None,
    ) -> Iterator[bytes]:
        """Fetch a file of lines, then yield each without its end.

        It has arrived whole before the first line is given, on the disk and not in memory: a line
        can be worked on for as long as it takes, and none comes of a file that broke off.

        Parameters
        ----------
        request : WireRequest
        timeout : float
            Seconds until it has arrived.
        stopped : threading.Event, optional
            Ends the call when it is set.

        Raises
        ------
        PerplexityError
            As for a question.
        """
        with tempfile.TemporaryFile() as file:

            def take(head: Head, exchange: Exchange) -> None:
                if "html" in content_type(head):  # a browser check, or some other server
                    read_json(head, transport.collect(exchange.chunks()))
                for piece in exchange.chunks():
                    file.write(piece)

            self._call(request, timeout, take, stopped=stopped)
            file.seek(0)
            # A line is an answer's record, whose size has a limit like every other reply's.
            while line := file.readline(transport.MAX_BODY_BYTES):
                yield line.rstrip(b"\r\n")

    def _call(
        self,
        request: WireRequest,
        timeout: float,
        take: Callable[[Head, Exchange], _T],
        *,
        form: sessions.Form | None = None,
        stopped: threading.Event | None = None,
    ) -> _T:
        failure: PerplexityError | None = None
        try:
            return self._attempts(request, timeout, take, form, stopped)
        except PerplexityError as error:
            failure = error
        except KeyboardInterrupt:
            pass  # told below, without the frames that hold the request
        if failure is None:
            raise Interrupted("stopped")
        raise self.cleaned(failure)

    def _attempts(
        self,
        request: WireRequest,
        timeout: float,
        take: Callable[[Head, Exchange], _T],
        form: sessions.Form | None,
        stopped: threading.Event | None,
    ) -> _T:
        began, attempt = time.monotonic(), 0
        while True:
            exchange = self.open(request, began=began, total=timeout, form=form)
            exchange.on_wait = lambda exchange=exchange: _stop_if(stopped, exchange)
            try:
                head, failure = self.attempt(exchange)
                if failure is None:
                    return take(head, exchange)
            finally:
                exchange.close()
            # What only reads can be repeated whatever became of the first try.
            unsent = exchange.unsent or (request.method == "GET" and not head.status)
            delay = self.policy.delay(failure, attempt, unsent=unsent)
            if delay is None or time.monotonic() + delay > began + timeout:
                raise failure
            attempt += 1
            if stopped is None:
                time.sleep(delay)
            elif stopped.wait(delay):
                raise AbortedError("The request was stopped.")

    def send_off(self, request: WireRequest) -> None:
        """Send a request whose answer nobody waits for, such as the cancelling of a run."""

        def send() -> None:
            began = time.monotonic()
            exchange = self.open(request, began=began, total=_PARTING_TIMEOUT, taped=False)
            try:
                exchange.head()
            except PerplexityError:
                pass  # the run goes on, which is what would have happened without this
            finally:
                exchange.close()

        if sys.platform != "emscripten" and deck.replaying() is None:
            threading.Thread(target=send, name="ipyperplexity-cancel", daemon=True).start()

    def hide(self, text: str) -> str:
        """Return a text without the secrets of this service."""
        return redact(text, self.secrets)

    def cleaned(self, failure: PerplexityError) -> PerplexityError:
        """Hide the secrets in whatever the service said, and the frames that hold them."""
        for name in ("message", "hint", "field", "request_id"):
            if value := getattr(failure, name):
                setattr(failure, name, self.hide(value))
        failure.args = (failure.message,)
        failure.__cause__ = failure.__context__ = None
        return failure.with_traceback(None)

    def _look_at(self, head: Head) -> None:
        if self.on_cookies is not None and head.set_cookies:
            self.on_cookies(head.set_cookies)
        if self.on_limits is not None:
            told = {name: text for name, text in head.headers.items() if name in _LIMITS}
            if told:
                self.on_limits(told)


def _read_json(head: Head, exchange: Exchange) -> Any:
    return read_json(head, transport.collect(exchange.chunks()))


def _stop_if(stopped: threading.Event | None, exchange: Exchange) -> None:
    if stopped is not None and stopped.is_set():
        exchange.stop()
