"""One call to perplexity.ai's sign-in pages, and the error that a refusal means.

Headers are those of consumer-web 3.1, with a User-Agent of our own: nothing here passes for another
program, and a browser challenge is reported, not answered.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase

from ipyperplexity.errors import (
    AuthenticationError,
    ChallengeError,
    NetworkError,
    PerplexityError,
    RateLimitError,
    ServerError,
    StreamError,
)
from ipyperplexity.net import sessions, transport
from ipyperplexity.net.address import check_base_url, is_loopback, join, shown
from ipyperplexity.net.redact import Secret, redact
from ipyperplexity.net.transport import Exchange, Head
from ipyperplexity.version import __version__
from ipyperplexity.wire import problems

WEB_URL = "https://www.perplexity.ai"
#: Seconds for one call.
CALL_TIMEOUT = 30.0
_MAX_BODY = 1024 * 1024
_SHOWN = 160
_NOTHING = object()

PASTE_INSTEAD = (
    "Try another network, or sign in with a browser and hand its cookies over: "
    "%perplexity login --web --browser"
)


@dataclass(frozen=True)
class Reply:
    """A reply, read whole; whatever in it may be secret is a Secret.

    Attributes
    ----------
    status : int
    headers : mapping
        By their names in lower case; without the cookies.
    set_cookies : tuple of Secret
        Each ``Set-Cookie`` line by itself.
    body : Secret
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    set_cookies: tuple[Secret, ...] = ()
    body: Secret = field(default=Secret(""), repr=False)

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_json(self) -> bool:
        return self._value() is not _NOTHING

    @property
    def fields(self) -> dict[str, Any]:
        """The JSON object that the body is, every text in it a Secret; else an empty one."""
        value = _hidden(self._value())
        return value if isinstance(value, dict) else {}

    def _value(self) -> Any:
        try:
            return json.loads(self.body.reveal().removeprefix("\ufeff"))
        except (ValueError, RecursionError):
            return _NOTHING

    def first(self, *names: str) -> Secret | None:
        """Return the first of these fields that holds some text."""
        values = (self.fields.get(name) for name in names)
        return next((value for value in values if isinstance(value, Secret) and value), None)


class WebCalls:
    """Calls to one address; a context manager that lets a session of its own go.

    Parameters
    ----------
    base_url : str
        https, or http on this machine.
    session : requests.Session, optional
        To use instead of one of its own.

    Raises
    ------
    ConfigurationError
        If the address is not valid.
    """

    def __init__(self, base_url: str = WEB_URL, session: requests.Session | None = None) -> None:
        self.base_url = check_base_url(base_url)
        self._given = session
        self._session = session or sessions.make_session()

    def __enter__(self) -> WebCalls:
        return self

    def __exit__(self, *error: object) -> None:
        if self._given is None:
            self._session.close()

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Secret] | None = None,
        *,
        auth: AuthBase,
    ) -> Reply:
        """Send a call once, following no redirect; return its reply, good or bad.

        Raises
        ------
        NetworkError, RequestTimeout, StreamError
            If no whole reply comes.
        ChallengeError
            If a browser challenge answers.
        """
        failure: PerplexityError | None = None
        try:
            reply = self._call(method, path, body, auth)
        except PerplexityError as error:
            failure = error
        if failure is not None:  # without the frames, which hold what has come so far
            raise failure.with_traceback(None)
        if problems.is_challenge(reply.headers, reply.body.reveal().encode()):
            raise ChallengeError(
                "A browser challenge (Cloudflare) answered instead of perplexity.ai.",
                hint=f"Your login is not the problem. {PASTE_INSTEAD}",
                status_code=reply.status,
            )
        return reply

    def _call(
        self, method: str, path: str, body: Mapping[str, Secret] | None, auth: AuthBase
    ) -> Reply:
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(self.base_url))
        exchange = Exchange(
            sessions.sender(
                self._session,
                method,
                join(self.base_url, path),
                None if body is None else {name: value.reveal() for name, value in body.items()},
                auth=auth,
                headers={
                    "Accept": "application/json",
                    "Accept-Encoding": "identity",
                    "Origin": origin,
                    "Referer": f"{origin}/",
                    "User-Agent": f"ipyperplexity/{__version__}",
                    "X-App-ApiClient": "default",
                    "X-App-ApiVersion": "2.18",
                    **({} if body is None else {"Content-Type": "application/json"}),
                },
                loopback=is_loopback(urlsplit(self.base_url).hostname or ""),
                read_timeout=CALL_TIMEOUT,
            ),
            total=CALL_TIMEOUT,
            address=shown(self.base_url),
        )
        exchange.start()
        try:
            return _reply(exchange.head(), transport.collect(exchange.chunks(), _MAX_BODY))
        finally:
            exchange.close()


def _reply(head: Head, body: bytes) -> Reply:
    headers = {k.lower(): v for k, v in head.headers.items() if k.lower() != "set-cookie"}
    cookies = tuple(Secret(line) for line in head.set_cookies)
    return Reply(head.status, headers, cookies, Secret(body.decode("utf-8", "replace")))


def _hidden(value: Any) -> Any:
    if isinstance(value, str):
        return Secret(value)
    if isinstance(value, dict):
        return {name: _hidden(item) for name, item in value.items()}
    return value


def refusal(
    reply: Reply, what: str, *, hint: str | None = None, secrets: Iterable[Secret | None] = ()
) -> PerplexityError:
    """Return the error for a reply that does not grant what was asked for.

    Parameters
    ----------
    reply : Reply
    what : str
        What has failed, as the beginning of a sentence.
    hint : str, optional
        What to do if the service has refused it.
    secrets : iterable of Secret
        What must not show in the service's own words.
    """
    status = reply.status
    said = reply.first("text", "message", "error", "error_code")
    text = redact(" ".join(said.reveal().split()), secrets)[:_SHOWN] if said else ""
    message = f"{what}: {text}" if text else f"{what} (HTTP {status})."
    facts: dict[str, Any] = {
        "status_code": status,
        "request_id": reply.headers.get("x-request-id"),
    }
    if 300 <= status < 400:
        return NetworkError(
            f"{what}: the service answered with a redirect, which is not followed.",
            hint=PASTE_INSTEAD,
            **facts,
        )
    if status == 429:
        wait = problems.retry_after(reply.headers, time.time())
        return RateLimitError(message, retry_after=wait, **facts)
    if status >= 500:
        return ServerError(message, **facts)
    if reply.ok and not reply.is_json:
        return StreamError(
            f"{what}: the service answered with a page instead.", hint=PASTE_INSTEAD, **facts
        )
    return AuthenticationError(message, hint=hint or PASTE_INSTEAD, **facts)
