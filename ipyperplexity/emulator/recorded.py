"""What a test may ask about a request that came in.

Invariant: no credential shows in a representation, and none stands among the headers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["RecordedRequest", "masked", "read_cookies"]


@dataclass(frozen=True)
class RecordedRequest:
    """A request as it came in; values of ``Authorization`` and of cookies are masked.

    Attributes
    ----------
    method, path, query
        Of the request line; ``query`` is the raw text after ``?``.
    headers
        By lower-case name.
    body
        The bytes sent.
    authorized
        Whether the key was right; True also when the server wants none.
    bearer
        The token of ``Authorization: Bearer``, or None; not in the repr.
    cookies
        Value by name; not in the repr.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    authorized: bool
    bearer: str | None = field(default=None, repr=False)
    cookies: Mapping[str, str] = field(default_factory=dict, repr=False)

    def json(self) -> Any:
        """Return the body as JSON data."""
        return json.loads(self.body)


def read_cookies(header: str) -> dict[str, str]:
    """Return the cookies of a ``Cookie`` header, value by name.

    Examples
    --------
    >>> read_cookies("a=1; b=x=y")
    {'a': '1', 'b': 'x=y'}
    """
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return {name: value for name, equals, value in pairs if equals and name}


def masked(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers without what they prove: the names of cookies stay, their values go.

    Examples
    --------
    >>> masked({"cookie": "a=1; b=2", "accept": "*/*"})
    {'cookie': 'a=***; b=***', 'accept': '*/*'}
    """
    shown = dict(headers)
    if "authorization" in shown:
        shown["authorization"] = "***"
    if "cookie" in shown:
        names = read_cookies(shown["cookie"])
        shown["cookie"] = "; ".join(f"{name}=***" for name in names) or "***"
    return shown
