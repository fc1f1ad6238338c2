"""The API key: found anew for each question, so that a new one counts at once.

Order: the argument, ``PERPLEXITY_API_KEY``, its alias ``PPLX_API_KEY``, the key that
``%perplexity login`` has stored.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ipyperplexity.auth.key_store import load_key
from ipyperplexity.errors import ConfigurationError, MissingCredentialError
from ipyperplexity.net.redact import Secret

KEY_VARIABLES = ("PERPLEXITY_API_KEY", "PPLX_API_KEY")


@dataclass(frozen=True)
class Credential:
    """A key and where it came from; only the latter is ever shown."""

    secret: Secret
    origin: str


def as_secret(value: Any, origin: str) -> Secret | None:
    """Check a key's form; return None for an empty one.

    Raises
    ------
    ConfigurationError
        If it is not text, or holds blanks or unprintable characters (a line end of a copied key
        would break the request). The message never shows the key.
    """
    kind = type(value).__name__
    # From here on no local variable holds the key: a traceback may show them.
    value = Secret(value.strip()) if isinstance(value, str) else value
    if value is None:
        return None
    if not isinstance(value, Secret):
        value = None
        raise ConfigurationError(
            f"api_key: got {kind} from {origin}; allowed: text.", field="api_key"
        )
    secret = Secret(value.reveal().strip())
    if not secret:
        return None
    if not _is_key(secret):
        raise ConfigurationError(
            f"api_key: the key from {origin} holds blanks or characters that no key has.",
            field="api_key",
            hint="Copy it again, in one piece.",
        )
    return secret


def _is_key(secret: Secret) -> bool:
    key = secret.reveal()
    return key.isascii() and key.isprintable() and " " not in key


def find_key(argument: Secret | None = None, *, stored: bool = True) -> Credential | None:
    """Return the key to use now, or None.

    Parameters
    ----------
    argument : Secret, optional
        One that was given on purpose.
    stored : bool
        Whether the one of ``%perplexity login`` counts: it is Perplexity's, and no other server's.

    Raises
    ------
    ConfigurationError
        If there is one that cannot be a key, or cannot be read.
    """
    if argument:
        return Credential(argument, "the api_key argument")
    for name in KEY_VARIABLES:
        secret = as_secret(os.environ.get(name), name)
        if secret is not None:
            return Credential(secret, name)
    kept = load_key() if stored else None
    if kept is None:
        return None
    key, place = kept
    secret = as_secret(key, place)
    return Credential(secret, place) if secret is not None else None


def require_key(argument: Secret | None = None) -> Credential:
    """Return the key to use now.

    Raises
    ------
    MissingCredentialError
        If there is none.
    """
    credential = find_key(argument)
    if credential is None:
        raise MissingCredentialError(
            "There is no API key: PERPLEXITY_API_KEY is not set, and none is stored."
        )
    return credential
