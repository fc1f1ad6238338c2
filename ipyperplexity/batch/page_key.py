"""What a web address names, whatever its spelling.

Invariant: two addresses have one key only if they differ in what hardly ever means another page;
a key is for comparing, never for opening. No text whatever raises.
"""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}


def page_key(url: str) -> str:
    """Return what an address names, for comparing: two spellings of one page have one key.

    http or https, a leading ``www.``, the case of the host, the default port, a slash at the end,
    the fragment, and ``utm_`` parameters make no difference. What is no http address is compared
    as it is.

    Examples
    --------
    >>> page_key("http://www.A.example/b/?utm_source=x&c=1#d") == page_key("https://a.example/b?c=1")
    True
    """
    parts = _http_parts(url)
    if parts is None:
        return url.strip()
    port = "" if parts.port in (None, *_DEFAULT_PORTS.values()) else f":{parts.port}"
    kept = [p for p in parts.query.split("&") if p and not p.lower().startswith("utm_")]
    query = "?" + "&".join(kept) if kept else ""
    return f"//{_bare_host(parts)}{port}{parts.path.rstrip('/')}{query}"


def host_of(url: str) -> str:
    """Return the host of an http address in lower case, without ``www.``; else nothing.

    Examples
    --------
    >>> host_of("https://www.A.example:8080/b"), host_of("mailto:a@b.example")
    ('a.example', '')
    """
    parts = _http_parts(url)
    return _bare_host(parts) if parts else ""


def _http_parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in _DEFAULT_PORTS and parts.hostname and (parts.port or True)
    except ValueError:  # broken brackets, a port that is no number
        return None
    return parts if usable else None


def _bare_host(parts: SplitResult) -> str:
    return (parts.hostname or "").rstrip(".").removeprefix("www.")
