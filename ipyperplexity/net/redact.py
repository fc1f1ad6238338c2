"""Secrets stay secret: a value that cannot be printed, and a filter for other people's text.

A :class:`Secret` has no readable ``repr`` and refuses to be pickled. It is put into a request at
the last moment, by :class:`BearerAuth`: a header that is merely passed along would lose against a
``.netrc`` entry for the same host, and would show in tracebacks that print local variables.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

import requests
from requests.auth import AuthBase

from ipyperplexity.errors import ConfigurationError
from ipyperplexity.secret_patterns import MASK, hide_secrets


class Secret:
    """A value that shows as ``***`` wherever it is printed.

    Examples
    --------
    >>> Secret("pplx-something")
    Secret(***)
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value itself; only what writes it to the wire or to a key store needs it."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> NoReturn:
        raise ConfigurationError("A key is never pickled: it is read where the work is done.")


class BearerAuth(AuthBase):
    """Puts ``Authorization: Bearer`` on a request when it is sent, or nothing without a secret."""

    def __init__(self, secret: Secret | None) -> None:
        self._secret = secret

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._secret:
            request.headers["Authorization"] = f"Bearer {self._secret.reveal()}"
        return request

    def __repr__(self) -> str:
        return f"BearerAuth({MASK})"


def redact(text: str, secrets: Iterable[Secret | None] = ()) -> str:
    """Return ``text`` without keys: the given ones, and whatever looks like one.

    Examples
    --------
    >>> redact("bad key pplx-abcdef123456")
    'bad key ***'
    """
    for secret in secrets:
        if secret and len(secret.reveal()) >= 4:
            text = text.replace(secret.reveal(), MASK)
    return hide_secrets(text)


def redact_json(value: Any, secrets: tuple[Secret | None, ...]) -> Any:
    """Return a JSON value with the same done to every text in it."""
    if isinstance(value, str):
        return redact(value, secrets)
    if isinstance(value, list):
        return [redact_json(item, secrets) for item in value]
    if isinstance(value, dict):
        return {redact(key, secrets): redact_json(item, secrets) for key, item in value.items()}
    return value
