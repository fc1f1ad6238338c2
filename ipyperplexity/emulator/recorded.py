"""What a test may ask about a request that came in.

Invariant: the value of ``Authorization`` is never kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["RecordedRequest"]


@dataclass(frozen=True)
class RecordedRequest:
    """A request as it came in; the value of ``Authorization`` is masked.

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
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    authorized: bool

    def json(self) -> Any:
        """Return the body as JSON data."""
        return json.loads(self.body)
