"""The rules of a question to the web endpoint (consumer-web 1.4, 3.4).

Invariant: fields of a wrong type are 422, an old version is 400; a field that is not listed is
let pass, as the endpoint is not documented.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .rules import (
    Check,
    RequestError,
    anything,
    flag,
    list_of,
    object_of,
    pattern,
    text,
    unprocessable,
    words,
)

__all__ = ["API_VERSION", "check_ask"]

Json = dict[str, Any]
API_VERSION = "2.18"
_UUID = pattern(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", "must be a UUID")
_WORDS = ("hour", "day", "week", "month", "year")
# Clients send either case, and it is not settled which one counts.
_RECENCY = (*_WORDS, *(word.upper() for word in _WORDS))

_PARAMS: dict[str, Check] = {
    "query_str": text(None, 1),
    "search_focus": words("internet", "writing", "scholar", "wolfram", "youtube", "reddit"),
    "mode": words("copilot", "concise", "search"),
    "model_preference": text(None, 1),
    "sources": list_of(text(None, 1)),
    "attachments": list_of(text(None, 1), 30),
    "frontend_uuid": _UUID,
    "frontend_context_uuid": _UUID,
    "version": text(None, 1),
    "language": pattern(r"[a-zA-Z]{2,3}(?:-[a-zA-Z]{2,4})?", "must be a language tag"),
    "timezone": text(None, 1),
    "search_recency_filter": words(*_RECENCY),
    "search_domain_filter": list_of(text(None, 1)),
    "is_incognito": flag,
    "use_schematized_api": flag,
    "skip_search_enabled": flag,
    "send_back_text_in_streaming_api": flag,
    "supported_block_use_cases": list_of(text(None, 1)),
    "last_backend_uuid": _UUID,
    "read_write_token": text(None, 1),
    "query_source": text(None, 1),
    "source": text(None, 1),
    "prompt_source": text(None, 1),
    "is_related_query": flag,
    "is_sponsored": flag,
    "mentions": list_of(anything),
    "client_coordinates": object_of(
        {"location_lat": anything, "location_lng": anything, "name": anything}
    ),
}
# The fewest fields that are known to be taken, without those that only tell where one comes from.
_NEEDED = ("frontend_uuid", "mode", "model_preference", "version")


def check_ask(body: Any, headers: Mapping[str, str]) -> Json:
    """Check the body of a question.

    Parameters
    ----------
    body
        Its JSON value.
    headers
        Of the request, by lower-case name.

    Returns
    -------
    dict
        ``params`` without the fields that are null, and with ``query_str``.

    Raises
    ------
    RequestError
        As the endpoint would refuse it.
    """
    if not isinstance(body, dict):
        raise unprocessable("", "Input should be an object", "model_type")
    params = body.get("params")
    if not isinstance(params, dict):
        raise unprocessable("params", "Field required", "missing")
    given: Json = {name: value for name, value in params.items() if value is not None}
    given["query_str"] = body.get("query_str")
    if not isinstance(given["query_str"], str) or not given["query_str"].strip():
        raise unprocessable("query_str", "Field required", "missing")
    if params.get("query_str", given["query_str"]) != given["query_str"]:
        raise unprocessable("params.query_str", "differs from query_str")
    for name in _NEEDED:
        if name not in given:
            raise unprocessable(f"params.{name}", "Field required", "missing")
    for name, value in given.items():
        _check(name, value)
    told = headers.get("x-app-apiversion", API_VERSION)
    if given["version"] != API_VERSION or told != API_VERSION:
        message = f"version {given['version']} is no longer supported"
        raise RequestError(message, status=400, reply={"error": message, "status": "failed"})
    return given


def _check(name: str, value: Any) -> None:
    problem: RequestError | None = None
    try:
        _PARAMS.get(name, anything)(value, name)
    except RequestError as refused:
        problem = unprocessable(f"params.{refused.param or name}", refused.message)
    if problem is not None:
        raise problem
