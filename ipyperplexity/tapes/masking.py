"""What never goes on a tape: keys, logins, cookies, tokens, e-mail addresses.

Invariant: a masked body is as long as it was, so that the pieces it came in stay as they were. It
is looked at as a whole: a secret may be cut in two by the network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ipyperplexity.net.redact import Secret
from ipyperplexity.secret_patterns import hide_secrets

#: Headers of a reply that make a difference to who reads it; no other is kept.
_KEPT = (
    *("content-type", "retry-after", "retry-after-ms", "x-request-id", "cf-mitigated", "server"),
    *("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "date"),
)
_EMAIL = re.compile(r"[A-Za-z0-9_.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")
#: Fields of JSON, also of JSON within a text of JSON, whose value proves who somebody is.
_FIELD = re.compile(
    r"""(\\*"(?:read_write_token|access_?[tT]oken|session_?[tT]oken|csrf_?[tT]oken|token|jwt|cookie|
    email|author_username|author_email|api_key)\\*"\s*:\s*\\*")([^"\\]+)""",
    re.VERBOSE,
)
_STAR = "*"


def mask_body(body: bytes, secrets: Iterable[Secret | None] = ()) -> bytes:
    """Return a body of the same length without anything secret.

    Examples
    --------
    >>> mask_body(b'{"read_write_token": "abc", "mail": "ann@x.org"}')
    b'{"read_write_token": "***", "mail": "*********"}'
    """
    text = body.decode("latin-1")
    for secret in secrets:
        if secret and len(secret.reveal()) >= 4:
            plain = secret.reveal().encode().decode("latin-1")
            text = text.replace(plain, _STAR * len(plain))
    text = _FIELD.sub(lambda found: found[1] + _STAR * len(found[2]), text)
    text = _EMAIL.sub(lambda found: _STAR * len(found[0]), text)
    return _same_length(text).encode("latin-1")


def _same_length(text: str) -> str:
    """Mask what looks like a key or a session token, character by character."""
    hidden = hide_secrets(text)
    if hidden == text:
        return text
    return _WORD.sub(lambda found: _masked_word(found[0]), text)


#: What may be a key or a token, with what is before it on the line.
_WORD = re.compile(r"(?i)(?:bearer\s+)?[A-Za-z0-9_.~+/=-]{10,}")


def _masked_word(word: str) -> str:
    return word if hide_secrets(word) == word else _STAR * len(word)


def mask_value(value: Any, secrets: tuple[Secret | None, ...] = ()) -> Any:
    """Return a JSON value with the same done to every text in it."""
    if isinstance(value, str):
        return mask_body(value.encode("utf-8", "surrogatepass"), secrets).decode(
            "utf-8", "surrogatepass"
        )
    if isinstance(value, list):
        return [mask_value(item, secrets) for item in value]
    if isinstance(value, dict):
        return {name: mask_value(item, secrets) for name, item in value.items()}
    return value


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that are kept, by their names in lower case."""
    found = {name.lower(): value for name, value in headers.items()}
    return {name: hide_secrets(found[name]) for name in _KEPT if name in found}
