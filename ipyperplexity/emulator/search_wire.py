"""The Search API (``POST /search``) over the same index.

Invariant: the fields and limits of official-api 5; refusals of a field are 422 ``detail`` lists,
clashing filters are 400 in the usual envelope.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from .checks import DATES, RECENCY, RequestError, parse_date
from .engine import Engine, Result
from .json_body import read_json
from .prices import CHARS_PER_TOKEN
from .search_filters import read_filters
from .sending import Call, Sender

__all__ = ["answer_search", "search"]

Json = dict[str, Any]
_MOST, _MOST_PEOPLE = 20, 50
# Characters of a snippet.
_SNIPPETS = {"low": 150, "medium": 300, "high": 600}


def _is_text_list(most: int, form: str = r"(?s).*\S.*") -> Callable[[Any], bool]:
    fits = re.compile(form).fullmatch
    return lambda value: (
        isinstance(value, list)
        and len(value) <= most
        and all(isinstance(v, str) and fits(v) for v in value)
    )


def _is_count(most: int) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most
    )


def _is_form(form: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(form, value) is not None


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
    "max_results": (_is_count(_MOST_PEOPLE), "Input should be an integer from 1 to 20"),
    "max_tokens": (_is_count(1_000_000), "Input should be an integer from 1 to 1000000"),
    "max_tokens_per_page": (_is_count(1_000_000), "Input should be an integer from 1 to 1000000"),
    "search_context_size": (
        ("low", "medium", "high").__contains__,
        "Input should be low, medium or high",
    ),
    "country": (_is_form(r"[A-Za-z]{2}"), "Input should be a two-letter code"),
    "search_domain_filter": (
        _is_text_list(20, r"-?(?!\w+://)[^\s/]{1,253}(?:/\S*)?"),
        "Input should be at most 20 domains, without a scheme",
    ),
    "search_language_filter": (
        _is_text_list(20, "[a-z]{2}"),
        "Input should be at most 20 ISO 639-1 codes",
    ),
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


def search(sender: Sender, call: Call) -> None:
    """Serve ``POST /search``."""
    status, reply = answer_search(
        call.body, sender.emulator.engine, grouped=sender.behavior.search_groups
    )
    sender.reply_json(status, reply)


def answer_search(body: bytes, engine: Engine, *, grouped: bool = False) -> tuple[int, Json]:
    """Return the HTTP status and the reply to a search.

    Parameters
    ----------
    body
        Bytes of the request.
    engine
        What searches.
    grouped
        Give a list of results for each of several queries, not one list of all.

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
    problem = _problem(given)
    if problem is not None:
        return problem
    _check_clashes(given)
    queries = given["query"] if isinstance(given["query"], list) else [given["query"]]
    lists = [_found(query, given, engine) for query in queries]
    if grouped and isinstance(given["query"], list):
        results: list[Any] = [_shown(found, given) for found in lists]
    else:
        first = {result.url: result for found in lists[::-1] for result in found[::-1]}
        every = dict.fromkeys(result.url for found in lists for result in found)
        results = _shown([first[url] for url in every], given)
    clock = datetime.now(UTC).isoformat() if given.get("display_server_time") else None
    return 200, {"id": str(uuid.uuid4()), "results": results, "server_time": clock}


def _problem(given: Json) -> tuple[int, Json] | None:
    """Return the refusal of the first field that does not fit, or None."""
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
    if given.get("max_results", 1) > _MOST and given.get("search_type") != "people":
        return _detail("max_results", _FIELDS["max_results"][1], "value_error")
    return None


def _found(query: str, given: Json, engine: Engine) -> list[Result]:
    plan = engine.answer(
        query,
        max_results=given.get("max_results", 10),
        searches=1,
        filters=read_filters(given),
    )
    return list(plan.results)


def _shown(found: list[Result], given: Json) -> list[Json]:
    """Return results as the wire shows them, their snippets within the budgets."""
    size = _SNIPPETS[given.get("search_context_size", "high")]
    page = min(size, given.get("max_tokens_per_page", size) * CHARS_PER_TOKEN)
    left = given.get("max_tokens", 10**9) * CHARS_PER_TOKEN
    shown: list[Json] = []
    for result in found:
        snippet = result.snippet[: min(page, left)]
        left -= len(snippet)
        day = result.date.isoformat() if result.date else None
        shown.append(
            {
                "title": result.title,
                "url": result.url,
                "snippet": snippet,
                "date": day,
                "last_updated": day,
            }
        )
    return shown


def _check_clashes(given: Json) -> None:
    if "search_recency_filter" in given and any(name in given for name in DATES):
        raise RequestError("search_recency_filter cannot be combined with date filters")
    budget = [name for name in ("max_tokens", "max_tokens_per_page") if name in given]
    if "search_context_size" in given and budget:
        raise RequestError(f"search_context_size cannot be combined with {budget[0]}")
