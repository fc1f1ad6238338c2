"""What a search may return, and, when that leaves nothing over, which limit is to blame.

Invariant: a passage without a date never passes a limit on dates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from urllib.parse import urlsplit

__all__ = ["Filters", "blame"]

RECENCY_DAYS = {"hour": 1, "day": 1, "week": 7, "month": 31, "year": 366}


@dataclass(frozen=True)
class Filters:
    """What a search may return.

    Attributes
    ----------
    domains
        Host names (with subdomains, and a path if given); a leading ``-`` excludes.
    recency
        ``"hour"``, ``"day"``, ``"week"``, ``"month"``, ``"year"`` or None.
    after, before, updated_after, updated_before
        Bounds of the dates, exclusive, or None.
    languages
        Codes of the languages wanted; empty for any. A page of unknown language passes.
    mode
        Kind of source: ``"web"``, or one that no corpus has (``"academic"``, ``"people"``).
    """

    domains: tuple[str, ...] = ()
    recency: str | None = None
    after: date | None = None
    before: date | None = None
    updated_after: date | None = None
    updated_before: date | None = None
    languages: tuple[str, ...] = ()
    mode: str = "web"

    @property
    def active(self) -> bool:
        """Whether any filter is set."""
        return self != Filters()

    def allow(self, url: str, published: date | None, today: date, language: str = "") -> bool:
        """Whether a page with this address, date and language may be returned."""
        if self.mode != "web" or (language and self.languages and language not in self.languages):
            return False
        return _in_domains(url, self.domains) and _in_time(published, self, today)


def _in_domains(url: str, domains: Sequence[str]) -> bool:
    parts = urlsplit(url)
    place = f"{parts.hostname or ''}{parts.path}"

    def inside(domain: str) -> bool:
        host, _, path = domain.lower().strip("/").partition("/")
        own = (parts.hostname or "").lower()
        if own != host and not own.endswith("." + host):
            return False
        return not path or place.lower().partition("/")[2].startswith(path)

    denied = [domain[1:] for domain in domains if domain.startswith("-")]
    wanted = [domain for domain in domains if not domain.startswith("-")]
    if any(inside(domain) for domain in denied):
        return False
    return not wanted or any(inside(domain) for domain in wanted)


def _in_time(day: date | None, filters: Filters, today: date) -> bool:
    lower = [bound for bound in (filters.after, filters.updated_after) if bound]
    upper = [bound for bound in (filters.before, filters.updated_before) if bound]
    if filters.recency:
        lower.append(today - timedelta(days=RECENCY_DAYS[filters.recency] + 1))
    if not lower and not upper:
        return True
    if day is None:
        return False
    return all(day > bound for bound in lower) and all(day < bound for bound in upper)


def blame(
    filters: Filters,
    pages: Sequence[tuple[str, date | None]],
    today: date,
    whose: str,
    language: str = "",
) -> str:
    """Say which filters leave nothing of the pages, and what the pages are.

    Parameters
    ----------
    filters
        Those of the search.
    pages
        Address and date of each page that could have been returned.
    today
        The day that recency counts from.
    whose
        What the pages are: ``"this corpus"``.
    language
        Code of the language of the pages; ``""`` if it is not known.

    Examples
    --------
    >>> page = ("https://docs.python.org/3/", date(2023, 10, 2))
    >>> blame(Filters(recency="month"), [page], date(2026, 1, 1), "this corpus")
    'Nothing from the last month: this corpus is dated 2023-10-02.'
    """
    each = _singly(filters)
    guilty = [
        (words, kind)
        for words, kind, one in each
        if not any(one.allow(url, day, today, language) for url, day in pages)
    ]
    if not guilty:
        # Each of them lets something pass, but no page passes all of them.
        words = " and ".join(words for words, _, _ in each)
        facts = "; ".join(
            _fact(kind, pages, language) for kind in dict.fromkeys(kind for _, kind, _ in each)
        )
        return f"Nothing {words}: {whose} {facts}."
    return " ".join(
        f"Nothing {words}: {whose} {_fact(kind, pages, language)}." for words, kind in guilty
    )


def _singly(filters: Filters) -> list[tuple[str, str, Filters]]:
    """Return each filter in words, with what it looks at, and alone."""
    only = Filters()
    found: list[tuple[str, str, Filters]] = []
    if filters.recency:
        one = replace(only, recency=filters.recency)
        found.append((f"from the last {filters.recency}", "date", one))
    for name, words in _DATES.items():
        bound = getattr(filters, name)
        if bound:
            one = Filters(**{name: bound})
            found.append((f"{words} {bound.isoformat()}", "date", one))
    wanted = tuple(domain for domain in filters.domains if not domain.startswith("-"))
    denied = tuple(domain for domain in filters.domains if domain.startswith("-"))
    if wanted:
        one = replace(only, domains=wanted)
        found.append((f"on {_listed(wanted)}", "site", one))
    if denied:
        named = [domain[1:] for domain in denied]
        found.append((f"outside {_listed(named)}", "site", replace(only, domains=denied)))
    if filters.languages:
        one = replace(only, languages=filters.languages)
        found.append((f"in {_listed(filters.languages)}", "language", one))
    if filters.mode != "web":
        found.append((f"of the kind `{filters.mode}`", "mode", replace(only, mode=filters.mode)))
    return found


_DATES = {
    "after": "published after",
    "before": "published before",
    "updated_after": "updated after",
    "updated_before": "updated before",
}


def _listed(names: Sequence[str]) -> str:
    shown = [*names[:3], "…"] if len(names) > 3 else list(names)
    return " or ".join(f"`{name.replace('`', '')}`" if name != "…" else name for name in shown)


def _fact(kind: str, pages: Sequence[tuple[str, date | None]], language: str) -> str:
    if kind == "mode":
        return "has web pages only"
    if kind == "language":
        return f"is in `{language}`" if language else "does not tell its language"
    if kind == "site":
        hosts = sorted({urlsplit(url).hostname or "this machine" for url, _ in pages})
        return f"is on {_listed(hosts)}"
    days = sorted(day for _, day in pages if day is not None)
    if not days:
        return "has no date"
    if days[0] == days[-1]:
        return f"is dated {days[0].isoformat()}"
    return f"is dated {days[0].isoformat()} to {days[-1].isoformat()}"
