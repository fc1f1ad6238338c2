"""The Search API (``POST /search``) over the same index.

Invariant: the fields and limits of official-api 5; refusals of a field are 422 ``detail`` lists,
clashing filters are 400 in the usual envelope.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from .checks import DATES, RECENCY, RequestError, parse_date
from .engine import Engine, Filters
from .json_body import read_json

__all__ = ["answer_search"]

Json = dict[str, Any]


def _is_text_list(most: int) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, list) and len(value) <= most and all(isinstance(v, str) for v in value)
    )


def _is_count(most: int) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most
    )


def _is_date(value: Any) -> bool:
    try:
        parse_date(value)
    except (ValueError, TypeError):
        return False
    return True


def _is_query(value: Any) -> bool:
    several = isinstance(value, list) and bool(value) and _is_text_list(5)(value)
    return several or (isinstance(value, str) and bool(value.strip()))


_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "query": (_is_query, "Input should be a string or up to 5 strings, not empty"),
    "max_results": (_is_count(20), "Input should be an integer from 1 to 20"),
    "max_tokens": (_is_count(1_000_000), "Input should be an integer from 1 to 1000000"),
    "max_tokens_per_page": (_is_count(1_000_000), "Input should be an integer from 1 to 1000000"),
    "search_context_size": (
        ("low", "medium", "high").__contains__,
        "Input should be low, medium or high",
    ),
    "country": (lambda v: isinstance(v, str) and len(v) == 2, "Input should be a two-letter code"),
    "search_domain_filter": (_is_text_list(20), "Input should be at most 20 domains"),
    "search_language_filter": (_is_text_list(20), "Input should be at most 20 language codes"),
    "search_recency_filter": (
        RECENCY.__contains__,
        "Input should be hour, day, week, month or year",
    ),
    **dict.fromkeys(DATES, (_is_date, "Input should be a date, MM/DD/YYYY")),
    "search_mode": (
        ("web", "academic", "sec").__contains__,
        "Input should be web, academic or sec",
    ),
    "search_type": (("web", "fast", "people").__contains__, "Input should be web, fast or people"),
    "display_server_time": (lambda v: isinstance(v, bool), "Input should be a boolean"),
}


def _detail(field: str, message: str, kind: str) -> tuple[int, Json]:
    return 422, {"detail": [{"loc": ["body", field], "msg": message, "type": kind}]}


def answer_search(body: bytes, engine: Engine) -> tuple[int, Json]:
    """Return the HTTP status and the reply to a search.

    Raises
    ------
    RequestError
        Filters that exclude each other.
    """
    try:
        asked = read_json(body)
    except (ValueError, RecursionError):
        return _detail("", "JSON decode error", "json_invalid")
    if not isinstance(asked, dict):
        return _detail("", "Input should be an object", "model_type")
    given = {name: value for name, value in asked.items() if value is not None}
    if "query" not in given:
        return _detail("query", "Field required", "missing")
    for name, value in given.items():
        rule = _FIELDS.get(name)
        if rule is None:
            return _detail(name, "Extra inputs are not permitted", "extra_forbidden")
        try:
            fits = rule[0](value)
        except TypeError:
            fits = False
        if not fits:
            return _detail(name, rule[1], "value_error")
    _check_clashes(given)
    queries = given["query"] if isinstance(given["query"], list) else [given["query"]]
    dates = [parse_date(given[name]) if name in given else None for name in DATES]
    filters = Filters(
        tuple(given.get("search_domain_filter", ())), given.get("search_recency_filter"), *dates
    )
    found: dict[str, Json] = {}
    for query in queries:
        limit = given.get("max_results", 10)
        plan = engine.answer(query, max_results=limit, searches=1, filters=filters)
        for result in plan.results:
            day = result.date.isoformat() if result.date else None
            found.setdefault(
                result.url,
                {
                    "title": result.title,
                    "url": result.url,
                    "snippet": result.snippet,
                    "date": day,
                    "last_updated": day,
                },
            )
    reply = {"id": str(uuid.uuid4()), "results": list(found.values()), "server_time": None}
    return 200, reply


def _check_clashes(given: Json) -> None:
    if "search_recency_filter" in given and any(name in given for name in DATES):
        raise RequestError("search_recency_filter cannot be combined with date filters")
    budget = [name for name in ("max_tokens", "max_tokens_per_page") if name in given]
    if "search_context_size" in given and budget:
        raise RequestError(f"search_context_size cannot be combined with {budget[0]}")
