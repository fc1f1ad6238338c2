"""Cookies of perplexity.ai: what a user pastes, and what a reply sets.

The one that matters is the session cookie (consumer-web 3.3). A long one comes in parts,
``name.0``, ``name.1`` and so on; the parts are sent on as they are, and joined they are the token.
Values are :class:`Secret` from the moment they are known to be values; no function here that holds
them as text raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias
from urllib.parse import unquote

from ipyperplexity.auth.curl import is_curl, read_curl
from ipyperplexity.errors import MissingCredentialError
from ipyperplexity.net.redact import Secret

#: Names of the session cookie, the usual one first (consumer-web 3.3).
SESSION_COOKIES = (
    "__Secure-next-auth.session-token",
    "next-auth.session-token",
    "perplexity_jwt",
    "pplx_jwt",
)
Cookies: TypeAlias = tuple[tuple[str, Secret], ...]

HOW_TO_COPY = (
    "Sign in at www.perplexity.ai in a browser, open its developer tools (F12) > Network, reload, "
    "and copy a request to www.perplexity.ai as cURL; or its Cookie header."
)
#: Characters; a browser's cookies for one site are far fewer.
MAX_PASTE = 256 * 1024

_SESSION = re.compile(rf"({'|'.join(map(re.escape, SESSION_COOKIES))})(?:\.(\d{{1,2}}))?")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Printable ASCII; a ; ends a value. Anything else cannot stand in a header.
_VALUE = re.compile(r"[\x20-\x3a\x3c-\x7e]*")
_TOKEN_PART = r"[A-Za-z0-9_-]*"
# The second of five parts is empty when the content key is agreed on directly (consumer-web 3.1).
_TOKEN = re.compile(rf"eyJ{_TOKEN_PART}(?:\.{_TOKEN_PART}){{2}}(?:(?:\.{_TOKEN_PART}){{2}})?")
# Some tools put a header's value on the line below its name.
_COOKIE_LINE = re.compile(r"^[ \t]*cookie[ \t]*:[ \t]*(?:\n[ \t]*)?(.+)$", re.I | re.M)


@dataclass(frozen=True)
class Paste:
    """What was found in a pasted text; ``problem`` says what is wrong, if something is."""

    token: Secret | None = None
    cookies: Cookies = ()
    problem: str = ""


def is_session(name: str) -> bool:
    """Whether a cookie is the session cookie, or a part of it."""
    return _SESSION.fullmatch(name) is not None


def looks_like_token(text: str) -> bool:
    """Whether a text has the form of a session token: a JWT, or an encrypted one.

    Examples
    --------
    >>> looks_like_token("eyJhbGciOiJkaXIifQ..c29tZXRoaW5n.c29tZXRoaW5nZWxzZQ.dGFn")
    True
    """
    return len(text) >= 40 and _TOKEN.fullmatch(text) is not None


def session_token(cookies: Cookies) -> Secret | None:
    """Return the token that session cookies hold, its parts joined; None if there is none whole."""
    values = {name: value.reveal() for name, value in reversed(cookies) if value}
    for base in SESSION_COOKIES:
        if base in values:
            return Secret(_decoded(values[base]))
        parts = sorted(
            int(match[2])
            for name in values
            if (match := _SESSION.fullmatch(name)) and match[1] == base
        )
        if parts and parts == list(range(len(parts))):
            return Secret(_decoded("".join(values[f"{base}.{part}"] for part in parts)))
    return None


def read_pasted(given: Secret, origin: str) -> Paste:
    """Find the session in what a user copied: cookies, a cURL command, or a token by itself.

    Parameters
    ----------
    given : Secret
        A ``Cookie`` header with or without its name, alone or among other headers; a cURL command;
        a list of cookies as browser extensions export it (JSON); or a bare token.
    origin : str
        Where it is from, for the message.

    Raises
    ------
    MissingCredentialError
        If there is no session in it; the message says why, and shows nothing of it.

    Examples
    --------
    >>> pasted = read_pasted(Secret("Cookie: theme=dark; pplx_jwt=abc"), "the text")
    >>> pasted.token.reveal(), [name for name, _ in pasted.cookies]
    ('abc', ['theme', 'pplx_jwt'])
    """
    found = _read(given)
    if found.problem:
        raise MissingCredentialError(f"{origin}: {found.problem}", hint=HOW_TO_COPY)
    return found


def _read(given: Secret) -> Paste:
    text = _unquoted(given.reveal().strip().removeprefix("\ufeff").strip())
    bare = unquote(re.sub(r"(?i)^bearer\s+", "", text))
    if not text:
        return Paste(problem="there is nothing in it.")
    if len(text) > MAX_PASTE:
        return Paste(problem=f"it has more than {MAX_PASTE:,} characters.")
    if looks_like_token(bare):
        return Paste(Secret(bare))
    if is_curl(text):
        command = read_curl(text)
        if command.host and not is_perplexity(command.host):
            host = "".join(c for c in command.host if c.isalnum() or c in ".-:")[:80]
            return Paste(problem=f"the cURL command is for {host}, not for perplexity.ai.")
        if not command.cookies:
            return Paste(
                problem="the cURL command has no cookies: it was copied without being signed in."
            )
        return _paste(read_cookie_header("; ".join(command.cookies)))
    if text[0] in "[{":
        return _paste(read_cookie_list(_json(text)))
    lines = text.splitlines()
    headers = [match[1] for match in _COOKIE_LINE.finditer("\n".join(lines))]
    return _paste(read_cookie_header("; ".join(headers or lines)))


def _paste(cookies: Cookies) -> Paste:
    token = session_token(cookies)
    if token is not None:
        return Paste(token, cookies)
    if not cookies:
        return Paste(problem="it is neither cookies, nor a cURL command, nor a token.")
    return Paste(problem=f"there is no session cookie ({SESSION_COOKIES[0]}) in it.")


def read_cookie_header(header: str) -> Cookies:
    """Return the cookies of a ``Cookie`` header, without what cannot be sent in one."""
    pairs = (pair.partition("=") for pair in header.split(";"))
    return _sendable((name.strip(), value.strip()) for name, equals, value in pairs if equals)


def read_cookie_list(value: Any) -> Cookies:
    """Return cookies from JSON: objects with ``name`` and ``value``, names to values, or a header.

    Of a browser's whole collection only those of perplexity.ai are taken.
    """
    if isinstance(value, str):
        return read_cookie_header(value)
    if isinstance(value, dict):
        value = value.get("cookies", value)
    if isinstance(value, dict):
        return _sendable(value.items())
    if not isinstance(value, list):
        return ()
    ours = (
        item
        for item in value
        if isinstance(item, dict)
        and is_perplexity(str(item.get("domain") or "perplexity.ai").lstrip("."))
    )
    return _sendable((item.get("name"), item.get("value")) for item in ours)


def is_perplexity(host: str) -> bool:
    """Whether a host belongs to perplexity.ai: other sites use the same name for their cookie."""
    host = host.lower().rstrip(".")
    return host == "perplexity.ai" or host.endswith(".perplexity.ai")


def as_header(cookies: Cookies) -> str:
    """Return the value of a ``Cookie`` header; only what writes it to the wire needs it."""
    return "; ".join(f"{name}={value.reveal()}" for name, value in cookies)


def is_sendable(text: str) -> bool:
    """Whether a text can be a cookie's value."""
    return _VALUE.fullmatch(text) is not None


# --- what a reply sets ------------------------------------------------------------------------


@dataclass(frozen=True)
class SetCookie:
    """One ``Set-Cookie``; ``expired`` if it asks to forget the cookie."""

    name: str
    value: Secret
    expired: bool = False


def read_set_cookies(lines: Iterable[str]) -> tuple[SetCookie, ...]:
    """Read ``Set-Cookie`` lines, also those that an HTTP library has joined by commas."""
    read = []
    for line in lines:
        for part in re.split(r",\s*(?=[^\s;,=]+=)", line):
            pair, *attributes = part.split(";")
            name, equals, value = (side.strip() for side in pair.partition("="))
            if equals and _NAME.fullmatch(name) and is_sendable(value):
                expired = not _unquoted(value) or _is_expired(attributes)
                read.append(SetCookie(name, Secret(value), expired))
    return tuple(read)


def rotate(cookies: Cookies, reply: Sequence[SetCookie]) -> Cookies:
    """Return cookies with the session that a reply has set, all others as they are.

    A reply that only takes the session away changes nothing: a login ends by ``logout``.
    """
    session = [cookie for cookie in reply if is_session(cookie.name)]
    fresh = {cookie.name: cookie.value for cookie in session if not cookie.expired}
    if not fresh:
        return cookies
    gone = {cookie.name for cookie in session if cookie.expired}
    # A whole cookie takes the place of its parts, and parts take that of a whole one.
    whole = {name for name in fresh if name == _base(name)}
    in_parts = {_base(name) for name in fresh if name != _base(name)}
    kept: list[tuple[str, Secret]] = []
    for name, value in cookies:
        if name in fresh:
            kept.append((name, fresh.pop(name)))
        elif not (is_session(name) and (name in gone | in_parts or _base(name) in whole)):
            kept.append((name, value))
    return (*kept, *fresh.items())


def _base(name: str) -> str:
    match = _SESSION.fullmatch(name)
    return match[1] if match else name


def _is_expired(attributes: Sequence[str]) -> bool:
    for attribute in attributes:
        name, _, value = (side.strip() for side in attribute.lower().partition("="))
        if name == "max-age" and re.fullmatch(r"-\d+|0+", value):
            return True
        if name == "expires":
            try:
                when = parsedate_to_datetime(value)
            except (ValueError, OverflowError):
                continue
            if when.replace(tzinfo=when.tzinfo or UTC) <= datetime.now(UTC):
                return True
    return False


def _sendable(pairs: Iterable[tuple[Any, Any]]) -> Cookies:
    return tuple(
        (name, Secret(value))
        for name, value in pairs
        if isinstance(name, str)
        and isinstance(value, str)
        and _NAME.fullmatch(name)
        and is_sendable(value)
    )


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1].strip()
    return text


def _decoded(value: str) -> str:
    value = _unquoted(value)
    plain = unquote(value)
    return plain if is_sendable(plain) and " " not in plain else value
