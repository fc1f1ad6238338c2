"""Sources as perplexity.ai lists them: several lists, repeats, and numbers by position.

``[n]`` in the text means the n-th entry of the list as it came, so a source keeps that number when
repeats before it are dropped (consumer-web 2.9). What a repeat's own number becomes is told beside
the sources, for the text to follow.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

from ipyperplexity.markup.links import one_line
from ipyperplexity.sources import Source, Sources
from ipyperplexity.wire import values
from ipyperplexity.wire.source_collector import domain_of, parse_date

UNTITLED = "Untitled source"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_PLAIN = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


@dataclass(frozen=True)
class SourceList:
    """Sources, each once, and what became of the others.

    Attributes
    ----------
    sources : Sources
    repeats : dict
        Number of a dropped repeat -> number of the source that it repeats.
    """

    sources: Sources = field(default_factory=Sources)
    repeats: dict[int, int] = field(default_factory=dict)


class Accumulated:
    """A list that comes in parts, or whole again with each record.

    Attributes
    ----------
    entries : list
        All so far; what an earlier record had is not taken again.
    """

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self._known: set[str] = set()

    def take(self, entries: list[Any]) -> None:
        """Take one record's part. Repeats inside it are kept: markers count them."""
        keys = [_entry_key(entry) for entry in entries]
        known = frozenset(key for key in keys if key in self._known)
        self._known.update(keys)
        pairs = zip(keys, entries, strict=True)
        self.entries += [entry for key, entry in pairs if key not in known]


def _entry_key(entry: Any) -> str:
    url = values.text(entry.get("url")) if isinstance(entry, dict) else values.text(entry)
    return url_key(url) or json.dumps(entry, sort_keys=True)


def read_sources(numbered: Sequence[Any], others: Iterable[Any] = ()) -> SourceList:
    """Return the sources of a list, without repeats, the first kept, in their order.

    Parameters
    ----------
    numbered : sequence
        Entries as the service lists them; the n-th is what ``[n]`` means.
    others : iterable
        Entries of a second list, which no marker means; they are numbered above the first's.

    Examples
    --------
    >>> entries = [{"name": n, "url": u} for n, u in (
    ...     ("A", "https://a.test/p"), ("A", "https://a.test/p/"), ("B", "https://b.test"))]
    >>> found = read_sources(entries)
    >>> found.sources["id"], found.repeats
    ([1, 3], {2: 1})
    """
    kept: list[Source] = []
    first: dict[str, int] = {}
    repeats: dict[int, int] = {}
    for number, entry in enumerate(numbered, 1):
        source = _source(number, entry)
        if source is None:
            continue
        key = url_key(source.url)
        if key and key in first:
            repeats[number] = first[key]
            continue
        first[key] = number
        kept.append(source)
    above = len(numbered)
    unnumbered: list[int] = []
    for entry in others:
        source = _source(above + 1, entry)
        if source is None or not source.url or (key := url_key(source.url)) in first:
            continue
        above += 1
        first[key] = above
        kept.append(source)
        unnumbered.append(above)
    return SourceList(Sources(kept, unnumbered=unnumbered), repeats)


def url_key(url: str) -> str:
    """Return what two addresses of one page have in common (consumer-web 2.9).

    Scheme and host in lower case, without the scheme's own port and without one last slash; path,
    query and fragment as they are. What is no address is compared in lower case.

    Examples
    --------
    >>> url_key(" HTTPS://A.test:443/Path/?q=1/ "), url_key("https://a.test/#x")
    ('https://a.test/Path/?q=1', 'https://a.test/#x')
    """
    text = url.strip().removesuffix("/")
    try:
        parts = urlsplit(text)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        return text.lower()
    if not parts.scheme or not host:
        return text.lower()
    userinfo, at, _ = parts.netloc.rpartition("@")
    if ":" in host:
        host = f"[{host}]"
    elif not host.isascii():
        host = _ascii_host(host)
    if port is not None and port != _DEFAULT_PORTS.get(parts.scheme):
        host = f"{host}:{port}"
    path, query, fragment = (quote(part, safe=_PLAIN) for part in parts[2:])
    # "https://a.test?q" and "https://a.test/?q" are one page; so are "a.test" and "a.test/".
    path = path or ("/" if query or fragment else "")
    return urlunsplit((parts.scheme, f"{userinfo}{at}{host}", path, query, fragment))


def _ascii_host(host: str) -> str:
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


def _source(number: int, entry: Any) -> Source | None:
    if isinstance(entry, str):
        entry = {"url": entry}
    if not isinstance(entry, dict):
        return None
    url = values.clean(values.text(entry.get("url"))).strip()
    domain = domain_of(url)
    title = values.text(entry.get("name")) or values.text(entry.get("title"))
    snippet = values.text(entry.get("snippet"))
    return Source(
        id=number,
        title=one_line(html.unescape(values.clean(title))) or domain or url or UNTITLED,
        url=url,
        domain=domain,
        published=parse_date(entry.get("timestamp")) or parse_date(entry.get("date")),
        snippet=values.clean(snippet) or None,
    )
