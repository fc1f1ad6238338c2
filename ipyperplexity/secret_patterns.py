"""What a secret looks like, and text without it.

Invariant: whatever is kept or shown of other people's text passes through here or through
:mod:`ipyperplexity.net.redact`, which also knows the key in use; the patterns stand here only.
"""

from __future__ import annotations

import re
from typing import Any

MASK = "***"
#: What a Perplexity key looks like (official-api 2); some of it is enough to hide it.
_KEY = re.compile(r"\bpplx-[A-Za-z0-9_-]{6,}")
_BEARER = re.compile(r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{8,}")
#: A session token: a JWT of three parts or a JWE of five, of which some may be empty
#: (consumer-web 3.1). That dots follow is looked at first, once for each run of its characters:
#: tried from every "eyJ" of a long text, the time would grow with the square of its length.
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9_-])(?=[A-Za-z0-9_-]++(?:\.[A-Za-z0-9_-]*+){2})"
    r"([A-Za-z0-9_-]*?)\beyJ[A-Za-z0-9_-]{10,}+(?:\.[A-Za-z0-9_-]*+){2,4}+"
)


def hide_secrets(text: str) -> str:
    """Return ``text`` with a mask in place of whatever looks like a key or a session token.

    Examples
    --------
    >>> hide_secrets("bad key pplx-abcdef123456")
    'bad key ***'
    """
    if "eyJ" in text:  # which is much faster told than the pattern is tried, here and below
        text = _TOKEN.sub(rf"\g<1>{MASK}", text)
    if "pplx-" in text:
        text = _KEY.sub(MASK, text)
    if "bearer" in text.lower():
        text = _BEARER.sub(rf"\g<1>{MASK}", text)
    return text


def hide_secrets_in(value: Any) -> Any:
    """Return a JSON value with the same done to every text in it, the names included."""
    if isinstance(value, str):
        return hide_secrets(value)
    if isinstance(value, list):
        return [hide_secrets_in(item) for item in value]
    if isinstance(value, dict):
        return {hide_secrets(name): hide_secrets_in(item) for name, item in value.items()}
    return value
