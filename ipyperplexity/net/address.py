"""Where requests go: a base URL, checked before a key is ever sent to it."""

from __future__ import annotations

import ipaddress
import os
import re
from urllib.parse import urlsplit

from ipyperplexity.errors import ConfigurationError


def check_base_url(url: str, *, allow_http: bool = False) -> str:
    """Return the URL without a trailing slash, and without the path of the call itself.

    Raises
    ------
    ConfigurationError
        If it is no http(s) URL, carries a user or a query, or is plain http to another machine
        (which would show the key to everybody on the way) without ``allow_http``, or
        ``IPYPERPLEXITY_ALLOW_HTTP=1`` in the environment.

    Examples
    --------
    >>> check_base_url("https://api.perplexity.ai/")
    'https://api.perplexity.ai'
    >>> check_base_url("https://gateway.example/v1/chat/completions")
    'https://gateway.example/v1'
    """
    parts = None
    try:
        parts = urlsplit(url.strip()) if isinstance(url, str) else None
        valid = parts is not None and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if parts is None or not valid or parts.scheme not in ("http", "https"):
        raise _refused(url, "an address such as https://api.perplexity.ai")
    if any(c.isspace() or not c.isprintable() for c in url.strip()):
        raise _refused(url, "an address without blanks")
    if parts.username is not None or parts.password is not None:
        raise _refused(url, "an address without user or password")
    if parts.query or parts.fragment:
        raise _refused(url, "an address without ? and #")
    allow_http = allow_http or os.environ.get(HTTP_VARIABLE, "").strip() == "1"
    if parts.scheme == "http" and not allow_http and not is_loopback(parts.hostname or ""):
        raise _refused(
            url,
            "https, or http on this machine only (to allow it on purpose: allow_http=True, or "
            f"{HTTP_VARIABLE}=1)",
        )
    url = url.strip().rstrip("/")
    for call in _CALLS:
        url = url.removesuffix(call).rstrip("/")
    return url


#: Allows plain http to other machines, such as that of a teacher in the same room.
HTTP_VARIABLE = "IPYPERPLEXITY_ALLOW_HTTP"
#: What a base URL ends with when the address of a call was copied whole.
_CALLS = ("/chat/completions", "/responses")


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine."""
    host = host.lower()
    if host == "localhost":  # a name below it is whatever a name server says
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def join(base_url: str, path: str) -> str:
    """Return the address of ``path``; a base URL may already end in the path's first part.

    Examples
    --------
    >>> join("http://localhost:8000/v1", "/v1/responses")
    'http://localhost:8000/v1/responses'
    """
    first = "/" + path.split("/")[1]
    if base_url.endswith(first) and path.startswith(first + "/"):
        base_url = base_url.removesuffix(first)
    return base_url + path


def shown(url: object) -> str:
    """Return an address to show, good or bad: without what may be a password or a key in it.

    Examples
    --------
    >>> shown("https://me:secret@x.example/v1?key=secret")
    'https://***@x.example/v1?***'
    """
    text = re.sub(r"[^/]*@", "***@", str(url)[:200])
    return re.sub(r"([?#]).*", r"\1***", text, flags=re.DOTALL)


def _refused(given: object, allowed: str) -> ConfigurationError:
    return ConfigurationError(
        f"base_url: got {shown(given)!r}; allowed: {allowed}.",
        field="base_url",
        hint="Set it with base_url=... or PERPLEXITY_BASE_URL.",
    )
