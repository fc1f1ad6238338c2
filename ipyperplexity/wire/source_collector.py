"""Sources as a stream names them: several times, some without a number; each is kept once."""

from __future__ import annotations

import datetime as dt
import html
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from ipyperplexity.markup.links import one_line
from ipyperplexity.sources import Source, Sources

#: A larger number is none of the service's: markers end at 999, columns at 32 bits.
MAX_ID = 1_000_000_000


class SourceCollector:
    """Gathers sources as a stream names them, each once, and numbers those without a number.

    The same page comes several times: while searching, when the search's item is done, and in the
    final response (official-api 4.3). It is merged by id, else by URL; two ids of one URL stay two
    sources, since the text may cite both.
    """

    def __init__(self) -> None:
        self._numbered: dict[int, Source] = {}
        self._first_id: dict[str, int] = {}  # URL -> the first number that it had
        self._others: dict[str, Source] = {}
        self._fetched: dict[str, None] = {}

    def add(
        self,
        *,
        id: Any = None,
        url: Any = None,
        title: Any = None,
        snippet: Any = None,
        date: Any = None,
        last_updated: Any = None,
        kind: str = "search",
    ) -> bool:
        """Take one source as the wire gives it; return whether that taught us anything new."""
        url = url.strip() if isinstance(url, str) else ""
        known = isinstance(id, int) and not isinstance(id, bool) and 0 < id <= MAX_ID
        if not url and not (known and isinstance(title, str)):
            return False
        if kind == "fetch" and url:
            self._fetched.setdefault(url)
        domain = domain_of(url)
        found = Source(
            id=id if known else 0,
            title=_one_line(title) or domain or url,
            url=url,
            domain=domain,
            published=parse_date(date),
            updated=parse_date(last_updated),
            snippet=snippet if isinstance(snippet, str) and snippet else None,
            kind=kind,
        )
        if known:
            earlier = self._numbered.get(id)
            if earlier is None or not url or earlier.url in ("", url):
                return self._number(id, earlier, found)
            # The number is taken: the first page keeps it.
        if (owner := self._first_id.get(url)) is not None:
            return self._number(owner, self._numbered[owner], found)
        earlier = self._others.get(url)
        self._others[url] = merged = _merge(earlier, found)
        return merged != earlier

    def _number(self, id: int, earlier: Source | None, found: Source) -> bool:
        merged = _merge(earlier, found)
        waiting = self._others.pop(found.url, None)
        if waiting is not None:
            merged = _merge(merged, waiting)
        self._numbered[id] = merged
        if found.url:
            self._first_id.setdefault(found.url, id)
        return merged != earlier or waiting is not None

    def sources(self) -> Sources:
        """Return all sources so far, in order of their ids."""
        numbered = [self._numbered[id] for id in sorted(self._numbered)]
        above = numbered[-1].id if numbered else 0
        others = [
            replace(source, id=above + offset)
            for offset, source in enumerate(self._others.values(), 1)
        ]
        items = [*numbered, *others]
        by_url = {source.url: source.id for source in reversed(items)}
        return Sources(
            items,
            fetched=(by_url[url] for url in self._fetched),
            # Where the service numbers nothing, [n] can only mean the n-th.
            unnumbered=(source.id for source in others) if numbered else (),
        )


def _merge(earlier: Source | None, later: Source) -> Source:
    if earlier is None:
        return later
    return replace(
        earlier,
        title=next(
            # An address stands in for a title that has not come yet.
            (s.title for s in (earlier, later) if s.title not in ("", s.domain, s.url)),
            earlier.title or later.title,
        ),
        url=earlier.url or later.url,
        domain=earlier.domain or later.domain,
        published=earlier.published or later.published,
        updated=earlier.updated or later.updated,
        snippet=earlier.snippet or later.snippet,
    )


def _one_line(text: Any) -> str:
    return one_line(html.unescape(text)) if isinstance(text, str) else ""


def domain_of(url: str) -> str:
    """Return the host of a URL in lower case, without a leading ``www.``; empty if it has none.

    Examples
    --------
    >>> domain_of("https://www.Example.org:8080/a")
    'example.org'
    """
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return host.rstrip(".").removeprefix("www.")


def parse_date(value: Any) -> dt.date | None:
    """Return the date that an ISO string begins with, or None.

    Examples
    --------
    >>> parse_date("2025-03-02T10:00:00Z")
    datetime.date(2025, 3, 2)
    """
    if not isinstance(value, str):
        return None
    try:
        return dt.date.fromisoformat(value.strip()[:10])
    except ValueError:
        return None
