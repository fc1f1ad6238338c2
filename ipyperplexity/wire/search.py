"""The Search API: a SearchQuery to ``POST /search``, and its reply to Sources (official-api 5).

A reply to one query is a flat list of pages. For a list of queries the documentation says that the
results are grouped, one list a query in the order of the queries; the SDK's types and clients that
were written against the service know a flat list only. So every shape is read, and a page counts as
a query's only if the reply says whose it is.
"""

from __future__ import annotations

import datetime as dt
import html
from collections.abc import Iterable
from typing import Any

from ipyperplexity.errors import StreamError
from ipyperplexity.markup.links import one_line
from ipyperplexity.search_query import SearchQuery
from ipyperplexity.search_results import SearchResults
from ipyperplexity.sources import Sources
from ipyperplexity.wire import problems, values
from ipyperplexity.wire.base import WireRequest
from ipyperplexity.wire.source_collector import SourceCollector

PATH = "/search"
#: Option -> field of the body, where the value goes as it is.
_FIELDS = {
    "max_results": "max_results",
    "domains": "search_domain_filter",
    "recency": "search_recency_filter",
    "after": "search_after_date_filter",
    "before": "search_before_date_filter",
    "updated_after": "last_updated_after_filter",
    "updated_before": "last_updated_before_filter",
    "country": "country",
    "languages": "search_language_filter",
    "context": "search_context_size",
    "max_tokens": "max_tokens",
    "max_tokens_per_page": "max_tokens_per_page",
    "mode": "search_mode",
    "search_type": "search_type",
}

#: USD of a request, by ``search_type`` (official-api 9); whether a list counts as one is not known.
PRICES = {"web": 0.005, "people": 0.005, "fast": 0.001}


def most_usd(query: SearchQuery) -> float:
    """Return what a search costs at most: the documented price, once for each query.

    Examples
    --------
    >>> most_usd(SearchQuery(["dunes", "sand"]))
    0.01
    """
    return PRICES[query.search_type or "web"] * len(query.queries)


def request(query: SearchQuery) -> WireRequest:
    """Turn a SearchQuery into the body of ``POST /search``; only what was given is sent.

    A list of one query is sent as that query, whose results are then surely its own.

    Examples
    --------
    >>> request(SearchQuery("dunes", after="2026-03-09", max_results=3)).body
    {'query': 'dunes', 'max_results': 3, 'search_after_date_filter': '03/09/2026'}
    """
    queries = query.queries
    body: dict[str, Any] = {"query": list(queries) if len(queries) > 1 else queries[0]}
    for name, field in _FIELDS.items():
        value = getattr(query, name)
        if value is None or value == ():
            continue
        if isinstance(value, dt.date):
            # Not `strftime`: on some systems its year has fewer than four digits.
            value = f"{value.month:02}/{value.day:02}/{value.year:04}"
        body[field] = list(value) if isinstance(value, tuple) else value
    return WireRequest(PATH, {**body, **query.extra})


def read(reply: Any, query: SearchQuery) -> SearchResults:
    """Read what was found for each query.

    Parameters
    ----------
    reply : JSON value
        The whole reply.
    query : SearchQuery
        What was asked.

    Returns
    -------
    SearchResults
        Of each query the pages in the service's order, numbered from 1; maybe none. If there are
        several queries and the reply does not tell them apart, ``grouped`` is False.

    Raises
    ------
    StreamError
        If it is no reply to a search.
    PerplexityError
        If it reports a failure.

    Examples
    --------
    >>> reply = {"results": [{"title": "Dune", "url": "https://d.example/dune"}]}
    >>> read(reply, SearchQuery("dunes"))["dunes"][0].title
    'Dune'
    >>> read(reply, SearchQuery(["dunes", "sand"])).grouped
    False
    """
    if isinstance(reply, dict) and reply.get("error"):
        raise problems.from_run(reply["error"])
    results = reply
    if isinstance(reply, dict):
        results = reply.get("results")
        if results is None and "results" in reply:  # as some servers write an empty list
            results = []
    if not isinstance(results, list | dict):
        raise StreamError(
            "The service answered a search with something that holds no results.",
            hint="Check PERPLEXITY_BASE_URL: this may be some other server.",
        )
    queries = query.queries
    pages = _flat(results)
    if len(queries) == 1:
        return SearchResults({queries[0]: _sources(pages)})
    groups = _groups(results, queries)
    if groups is None and pages:
        return SearchResults(queries, ungrouped=_sources(pages))
    return SearchResults({text: _sources((groups or {}).get(text, ())) for text in queries})


def _groups(results: Any, queries: tuple[str, ...]) -> dict[str, list[Any]] | None:
    """Return the pages of each query; None if the reply does not tell them apart."""
    if isinstance(results, dict):
        pairs = [(_text(name), _flat(pages)) for name, pages in results.items()]
    elif len(results) == len(queries) and all(map(_is_group, results)):
        return {text: _flat(pages) for text, pages in zip(queries, results, strict=True)}
    else:
        pairs = [
            (_text(item.get("query")), _flat(item)) if isinstance(item, dict) else ("", [])
            for item in results
        ]
    if not pairs or any(name not in queries for name, _ in pairs):
        return None
    groups: dict[str, list[Any]] = {}
    for name, pages in pairs:
        groups.setdefault(name, []).extend(pages)
    return groups


def _is_group(item: Any) -> bool:
    """Whether it is the list of one query's pages, which only its place tells from the others."""
    return isinstance(item, list) or (
        isinstance(item, dict) and isinstance(item.get("results"), list) and "query" not in item
    )


def _text(value: Any) -> str:
    cleaned: str = values.clean(values.text(value))
    return cleaned.strip()


def _flat(results: Any, depth: int = 0) -> list[dict[str, Any]]:
    """Return the pages of a list, of lists in it, and of objects that hold ``results``."""
    if depth > _DEEPEST:
        return []
    if isinstance(results, dict):
        if _is_page(results):
            return [results]
        inner: Iterable[Any] = (
            [results["results"]] if "results" in results else list(results.values())
        )
    else:
        inner = values.items(results)
    return [page for item in inner for page in _flat(item, depth + 1)]


#: Lists in lists beyond this are none of the service's.
_DEEPEST = 4


def _is_page(item: dict[str, Any]) -> bool:
    """Whether there is an address, or a title in which there is something to read."""
    url, title = values.text(item.get("url")), values.text(item.get("title"))
    return bool(url.strip() or one_line(html.unescape(title)))


_PAGE_FIELDS = ("url", "title", "snippet", "date", "last_updated")


def _sources(pages: Iterable[dict[str, Any]]) -> Sources:
    collector = SourceCollector()
    for number, page in enumerate(pages, 1):
        # Numbered by us, so that a page found twice, with two snippets, stays two results.
        fields: dict[str, Any] = {
            name: values.clean(values.text(page.get(name))) for name in _PAGE_FIELDS
        }
        collector.add(id=number, **fields)
    return collector.sources()
