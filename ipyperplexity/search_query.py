"""What is searched for, without an answer being written: the queries and every option.

The magic and the client derive their options from the fields of :class:`SearchQuery`;
:mod:`ipyperplexity.wire.search` turns one into a request. A SearchQuery that exists is a valid one:
filters that the service would refuse together are refused here, before anything is paid for
(official-api 5).
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.option_checks import (
    CHECKS,
    CONTEXT_SIZES,
    RECENCIES,
    Option,
    did_you_mean,
    items_of,
    one_of,
    refuse,
    shown,
    whole_number,
)
from ipyperplexity.tabular.cells import clean_text

MODES = ("web", "academic", "sec")
SEARCH_TYPES = ("web", "fast", "people")
MAX_QUERIES = 5
#: Most results of a query; a search for people may give more.
MAX_RESULTS = 20
MAX_PEOPLE = 50
MAX_LANGUAGES = 20
#: Most tokens of text, for a page and for all of them.
MAX_TOKENS = 1_000_000
#: What a question calls it -> what it is here.
OTHER_NAMES = {"limit": "max_results", "language": "languages"}


def _shown(help: str, *flags: str, **details: Any) -> dict[str, Option]:
    return {"option": Option(help, flags, **details)}


@dataclass(frozen=True, eq=False, kw_only=True)
class SearchQuery:
    """One search, or up to five in one request, and their options.

    Parameters
    ----------
    query : str or list of str
        What to search for: one query, or 1 to 5; none blank. Of two alike one is kept.
    max_results, domains, recency, after, before, updated_after, updated_before, country, \
languages, context, max_tokens, max_tokens_per_page, mode, search_type, timeout, extra
        See each field's ``metadata["option"].help``, or :data:`SEARCH_OPTIONS`.

    Attributes
    ----------
    several : bool
        Whether a list was given, be it of one: its results are asked for by query.

    Raises
    ------
    InvalidRequestError
        If a value is not allowed; ``error.field`` names it. Nothing has been sent.

    Examples
    --------
    >>> query = SearchQuery("dune of Pilat", recency="year", languages="fr, en")
    >>> query.languages
    ('fr', 'en')
    >>> SearchQuery(["dunes", "sand"]).query
    ('dunes', 'sand')
    """

    query: str | tuple[str, ...] = field(kw_only=False)
    max_results: int | None = field(
        default=None,
        metadata=_shown(
            "At most this many results of a query, 1 to 20; of people to 50.",
            "--limit",
            metavar="N",
        ),
    )
    domains: tuple[str, ...] = field(
        default=(),
        metadata=_shown(
            "Only these sites (python.org), or not these (-x.com); at most 20.",
            "--domain",
            metavar="SITE",
            repeatable=True,
        ),
    )
    recency: str | None = field(
        default=None,
        metadata=_shown(
            "Only pages from the last hour, day, week, month or year.",
            "--recency",
            metavar="PERIOD",
            choices=RECENCIES,
        ),
    )
    after: dt.date | None = field(
        default=None,
        metadata=_shown(
            "Only pages published on or after this date (YYYY-MM-DD).", "--after", metavar="DATE"
        ),
    )
    before: dt.date | None = field(
        default=None,
        metadata=_shown(
            "Only pages published on or before this date (YYYY-MM-DD).", "--before", metavar="DATE"
        ),
    )
    updated_after: dt.date | None = field(
        default=None,
        metadata=_shown(
            "Only pages last changed on or after this date.", "--updated-after", metavar="DATE"
        ),
    )
    updated_before: dt.date | None = field(
        default=None,
        metadata=_shown(
            "Only pages last changed on or before this date.", "--updated-before", metavar="DATE"
        ),
    )
    country: str | None = field(
        default=None,
        metadata=_shown(
            "Search as from this country (two letters, such as BE).", "--country", metavar="CODE"
        ),
    )
    languages: tuple[str, ...] = field(
        default=(),
        metadata=_shown(
            "Only pages in these languages (two letters, such as nl); at most 20.",
            "--language",
            metavar="CODE",
            repeatable=True,
        ),
    )
    context: str | None = field(
        default=None,
        metadata=_shown(
            "How much of each page comes along: low, medium or high.",
            "--context",
            metavar="SIZE",
            choices=CONTEXT_SIZES,
        ),
    )
    max_tokens: int | None = field(
        default=None,
        metadata=_shown("Most text of all pages together, in tokens.", "--max-tokens", metavar="N"),
    )
    max_tokens_per_page: int | None = field(
        default=None,
        metadata=_shown("Most text of a page, in tokens.", "--max-tokens-per-page", metavar="N"),
    )
    mode: str | None = field(
        default=None,
        metadata=_shown(
            "Where to search: the web, academic works, or filings with the SEC.",
            "--mode",
            metavar="WHERE",
            choices=MODES,
        ),
    )
    search_type: str | None = field(
        default=None,
        metadata=_shown(
            "How to search: web, fast (at a fifth of the price), or people.",
            "--search-type",
            metavar="HOW",
            choices=SEARCH_TYPES,
        ),
    )
    timeout: float | None = field(
        default=None,
        metadata=_shown("Seconds that the search may take.", "--timeout", metavar="SECONDS"),
    )
    extra: Mapping[str, Any] = field(
        default=None,  # type: ignore[arg-type]
        metadata=_shown("Raw fields of the request body, merged last."),
    )

    def __post_init__(self) -> None:
        for name, check in SEARCH_CHECKS.items():
            object.__setattr__(self, name, check(getattr(self, name), name))
        if (self.max_results or 0) > MAX_RESULTS and self.search_type != "people":
            raise refuse(
                "max_results",
                self.max_results,
                f"1 to {MAX_RESULTS}, or to {MAX_PEOPLE} with search_type='people'",
            )
        self._check_period()
        if self.context:
            for name in ("max_tokens", "max_tokens_per_page"):
                if getattr(self, name):
                    raise refuse(
                        "context", self.context, f"nothing beside {name}: give one or the other"
                    )

    def _check_period(self) -> None:
        dates = {name: getattr(self, name) for name in _DATES if getattr(self, name)}
        if self.recency and dates:
            clash = next(iter(dates))
            raise refuse("recency", self.recency, f"nothing beside {clash}: give one or the other")
        for first, last in (("after", "before"), ("updated_after", "updated_before")):
            if first in dates and last in dates and dates[first] > dates[last]:
                given = dates[first].isoformat()
                raise refuse(first, given, f"a date not past {last}={dates[last]}")

    @classmethod
    def make(cls, query: str | Iterable[str], **options: Any) -> SearchQuery:
        """Build a SearchQuery, with a helpful error for an option that does not exist.

        ``limit`` and ``language``, as a question calls them, are taken for ``max_results`` and
        ``languages``.

        Raises
        ------
        InvalidRequestError
            For an unknown option (naming the nearest) or a value that is not allowed.

        Examples
        --------
        >>> SearchQuery.make("dunes", limit=3)
        SearchQuery('dunes', max_results=3)
        """
        named: dict[str, Any] = {}
        for given, value in options.items():
            name = OTHER_NAMES.get(given, given)
            if name not in SEARCH_OPTIONS:
                near = did_you_mean(name, (*SEARCH_OPTIONS, *OTHER_NAMES), 0.5)
                raise InvalidRequestError(
                    f"{name}: a search has no such option{near}.",
                    field=name,
                    hint="Options: " + ", ".join(SEARCH_OPTIONS) + ".",
                )
            if name in named:
                other = next(other for other in OTHER_NAMES if OTHER_NAMES[other] == name)
                raise InvalidRequestError(
                    f"{name}: {other} is given as well; they are the same.", field=name
                )
            named[name] = value
        return cls(query, **named)  # type: ignore[arg-type]

    @property
    def several(self) -> bool:
        return isinstance(self.query, tuple)

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries, be it one."""
        return self.query if isinstance(self.query, tuple) else (self.query,)

    def singly(self) -> tuple[SearchQuery, ...]:
        """Return the same search for each query alone: as many requests, each with one query.

        Examples
        --------
        >>> [each.query for each in SearchQuery(["dunes", "sand"], mode="academic").singly()]
        ['dunes', 'sand']
        """
        return tuple(dataclasses.replace(self, query=query) for query in self.queries)

    def given(self) -> dict[str, Any]:
        """Options that differ from their defaults, in values that JSON can hold.

        Raw fields are left out: they may be large, or private.
        """
        values: dict[str, Any] = {}
        for name in SEARCH_OPTIONS:
            value = getattr(self, name)
            if name == "extra" or value is None or value == ():
                continue
            if isinstance(value, dt.date):
                value = value.isoformat()
            elif isinstance(value, tuple):
                value = list(value)
            values[name] = value
        return values

    def __repr__(self) -> str:
        options = "".join(
            f", {name}={shown(value) if isinstance(value, str) else repr(value)}"
            for name, value in self.given().items()
        )
        queries = ", ".join(map(shown, self.queries))
        return f"SearchQuery({f'[{queries}]' if self.several else queries}{options})"


def _query(value: Any, name: str) -> str | tuple[str, ...]:
    if isinstance(value, str):
        return _one_query(value, name)
    # Of a frame the items would be the names of its columns.
    given = items_of(value) if getattr(value, "ndim", 1) == 1 else None
    if given is None:
        raise refuse(name, value, f"text, or a list of 1 to {MAX_QUERIES} texts")
    queries = tuple(dict.fromkeys(_one_query(item, name) for item in given))
    if not 1 <= len(queries) <= MAX_QUERIES:
        raise InvalidRequestError(
            f"{name}: got {len(queries)} queries; allowed: 1 to {MAX_QUERIES}.",
            field=name,
            hint=f"Search for {MAX_QUERIES} at a time." if queries else None,
        )
    return queries


def _one_query(value: Any, name: str) -> str:
    text = clean_text(str.__str__(value)).strip() if isinstance(value, str) else ""
    if not text:
        raise refuse(name, value, "text that is not blank")
    return text


def _languages(value: Any, name: str) -> tuple[str, ...]:
    if value is None:
        return ()
    given = [value] if isinstance(value, str) else items_of(value)
    if given is None:
        raise refuse(name, value, "codes of two letters (ISO 639-1), such as en or nl")
    words: list[Any] = []
    for entry in given:  # one text may name several: "en, nl"
        words += entry.replace(",", " ").split() if isinstance(entry, str) else [entry]
    codes = tuple(dict.fromkeys(CHECKS["language"](word, name) for word in words))
    if None in codes:
        raise refuse(name, None, "codes of two letters (ISO 639-1), such as en or nl")
    if len(codes) > MAX_LANGUAGES:
        raise refuse(name, f"{len(codes)} languages", f"at most {MAX_LANGUAGES}")
    return codes


def _extra(value: Any, name: str) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = CHECKS[name](value, name)
    if "query" in fields:
        raise refuse(name, "query", "any field but this: it is the first argument")
    return fields


#: Name -> check of each field; those that a question has too are the question's.
SEARCH_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "query": _query,
    "max_results": whole_number(1, MAX_PEOPLE),
    "domains": CHECKS["domains"],
    "recency": CHECKS["recency"],
    "after": CHECKS["after"],
    "before": CHECKS["before"],
    "updated_after": CHECKS["after"],
    "updated_before": CHECKS["before"],
    "country": CHECKS["country"],
    "languages": _languages,
    "context": CHECKS["context"],
    "max_tokens": whole_number(1, MAX_TOKENS),
    "max_tokens_per_page": whole_number(1, MAX_TOKENS),
    "mode": one_of(MODES),
    "search_type": one_of(SEARCH_TYPES),
    "timeout": CHECKS["timeout"],
    "extra": _extra,
}
_DATES = ("after", "before", "updated_after", "updated_before")

#: Name -> Option of each field, in the order of help texts.
SEARCH_OPTIONS: dict[str, Option] = {
    field.name: field.metadata["option"]
    for field in dataclasses.fields(SearchQuery)
    if "option" in field.metadata
}


def search_defaults(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults, made for questions, that can stand beside what a search is given.

    Parameters
    ----------
    defaults, given : mapping
        By the names of :data:`SEARCH_OPTIONS` or :data:`OTHER_NAMES`; others are left out.

    Examples
    --------
    >>> search_defaults({"recency": "day", "limit": 5}, {"updated_after": "2026-01-01"})
    {'max_results': 5}
    """
    taken = {OTHER_NAMES.get(name, name) for name in given}
    kept = {OTHER_NAMES.get(name, name): value for name, value in defaults.items()}
    for name in (*taken, "max_tokens"):  # which bounds an answer there, and the pages here
        kept.pop(name, None)
    if taken & set(_DATES):
        kept.pop("recency", None)
    if "recency" in taken:
        kept = {name: value for name, value in kept.items() if name not in _DATES}
    if taken & {"max_tokens", "max_tokens_per_page"}:
        kept.pop("context", None)
    if (kept.get("max_results") or 0) > MAX_RESULTS:
        del kept["max_results"]
    return {name: value for name, value in kept.items() if name in SEARCH_OPTIONS}
