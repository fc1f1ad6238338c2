"""The service's rules for a request, as a table of fields.

Invariant: a field that is not in the table is refused at any depth, as the service does; null
counts as "not given". Nothing here knows how a request is answered.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any

from .rules import (
    Check,
    RequestError,
    anything,
    flag,
    list_of,
    number,
    object_of,
    pattern,
    refuse,
    tagged,
    text,
    typed,
    words,
)  # fmt: skip

__all__ = ["RequestError", "check_request", "parse_date"]


def parse_date(written: str) -> date:
    """Read ``MM/DD/YYYY`` or ``YYYY-MM-DD``.

    Raises
    ------
    ValueError
        It is neither.
    """
    for form in ("%m/%d/%Y", "%Y-%m-%d"):
        try:
            return datetime.strptime(written, form).date()
        except ValueError:
            continue
    raise ValueError(f"invalid date {written!r}; must be MM/DD/YYYY")


def _date(value: Any, path: str) -> None:
    try:
        parse_date(value if isinstance(value, str) else repr(value))
    except ValueError as problem:
        raise refuse(path, str(problem)) from None


def _domain(value: Any, path: str) -> None:
    text(253, 1)(value, path)
    if "://" in value:
        raise refuse(path, f"must be a domain without a scheme, got {value!r}")
    if not re.fullmatch(r"-?[^\s/]+(?:/\S*)?", value):
        raise refuse(path, f"must be a domain, got {value!r}")


RECENCY = ("hour", "day", "week", "month", "year")
DATES = (
    "search_after_date_filter",
    "search_before_date_filter",
    "last_updated_after_filter",
    "last_updated_before_filter",
)
_FILTERS = object_of(
    {
        "search_domain_filter": list_of(_domain, 20),
        "search_recency_filter": words(*RECENCY),
        **dict.fromkeys(DATES, _date),
    }
)


def _filters(value: Any, path: str) -> None:
    _FILTERS(value, path)
    if value.get("search_recency_filter") and any(value.get(name) for name in DATES):
        raise refuse(path, "search_recency_filter cannot be combined with explicit date filters")


_LOCATION = object_of(
    {
        "country": pattern(r"[A-Za-z]{2}", "must be an ISO 3166-1 two-letter code"),
        "region": text(),
        "city": text(),
        "latitude": number(-90, 90),
        "longitude": number(-180, 180),
    }
)
_POSITIVE = number(1, whole=True)
_TOOLS: dict[str, Check] = {
    "web_search": typed(
        filters=_filters,
        search_context_size=words("low", "medium", "high"),
        search_type=words("web", "fast"),
        max_tokens=_POSITIVE,
        max_tokens_per_page=_POSITIVE,
        user_location=_LOCATION,
        max_results=number(1, 50, whole=True),
    ),
    "image_search": typed(
        filters=object_of(
            {
                "domain_filter": list_of(_domain, 20),
                "format_filter": list_of(text()),
                "safe_search": anything,
            }
        ),
        max_results=number(1, 50, whole=True),
    ),
    "fetch_url": typed(max_urls=number(1, 10, whole=True)),
    "people_search": typed(),
    "finance_search": typed(),
    "sandbox": typed(),
    "function": typed(
        ["name"], name=text(64, 1), description=text(), parameters=anything, strict=flag
    ),
    "mcp": typed(
        ["server_label", "server_url"],
        server_label=text(),
        server_url=pattern(r"https?://\S+", "must be an http(s) URL"),
        authorization=text(),
        headers=anything,
        allowed_tools=anything,
        require_approval=anything,
        defer_loading=flag,
    ),
    "connector": typed(
        ["id", "server_label"],
        id=text(),
        server_label=text(),
        server_description=text(),
        allowed_tools=anything,
        require_approval=anything,
    ),
}
_PART = tagged(
    {
        "input_text": typed(["text"], text=text()),
        "input_image": typed(
            ["image_url"],
            image_url=pattern(r"(?s)(?:https://|data:image/).*", "must be https or a data URI"),
        ),
        "input_file": typed(file_data=text(), file_url=text(), filename=text()),
        "output_text": typed(["text"], text=text(), annotations=anything, logprobs=anything),
    }
)


def _content(value: Any, path: str) -> None:
    if not isinstance(value, str):
        list_of(_PART)(value, path)


_ITEMS: dict[str, Check] = {
    "message": typed(
        ["role", "content"],
        role=words("user", "assistant", "system", "developer"),
        content=_content,
        id=text(),
        status=text(),
    ),
    "function_call": typed(
        ["call_id", "name", "arguments"],
        id=text(),
        call_id=text(),
        name=text(),
        arguments=text(),
        status=text(),
        thought_signature=text(),
    ),
    "function_call_output": typed(
        ["call_id", "output"],
        id=text(),
        call_id=text(),
        output=anything,
        name=text(),
        status=text(),
        thought_signature=text(),
    ),
    "reasoning": typed(
        id=text(), summary=anything, content=anything, encrypted_content=anything, status=text()
    ),
    "mcp_call": typed(
        id=text(),
        call_id=text(),
        name=text(),
        server_label=text(),
        arguments=anything,
        output=anything,
        error=anything,
        status=text(),
        approval_request_id=text(),
        connector_id=text(),
    ),
    "mcp_list_tools": typed(id=text(), server_label=text(), tools=anything, error=anything),
    "mcp_approval_request": typed(
        id=text(),
        name=text(),
        server_label=text(),
        arguments=anything,
        connector_id=text(),
        thought_signature=text(),
    ),
    "mcp_approval_response": typed(
        ["approval_request_id", "approve"],
        id=text(),
        approval_request_id=text(),
        approve=flag,
        reason=text(),
    ),
}
_ITEM = tagged(_ITEMS, "message")


def _input(value: Any, path: str) -> None:
    if value == "" or value == []:
        raise RequestError("input array cannot be empty", param="input")
    if isinstance(value, list):
        list_of(_ITEM)(value, path)
    elif not isinstance(value, str):
        raise refuse(path, "must be a string or an array")


def _tool_choice(value: Any, path: str) -> None:
    if not isinstance(value, dict):
        words("none", "auto", "required")(value, path)


def _metadata(value: Any, path: str) -> None:
    if not isinstance(value, dict):
        raise refuse(path, "must be an object")
    if len(value) > 16:
        raise refuse(path, f"must have at most 16 pairs, has {len(value)}")
    for name, inner in value.items():
        text(64, 1)(name, path)
        text(512)(inner, f"{path}.{name}")


PRESETS = (
    "fast", "low", "medium", "high", "xhigh", "wide-research",
    "fast-search", "pro-search", "deep-research", "advanced-deep-research",
)  # fmt: skip
_GONE = ("perplexity/sonar-pro", "perplexity/sonar-reasoning-pro", "perplexity/sonar-deep-research")


def _model(value: Any, path: str) -> None:
    text()(value, path)
    if not re.fullmatch(r"[\w.-]+/[\w.:-]+", value) or value in _GONE:
        raise RequestError(
            f'model "{value}" is not supported; use provider/name',
            kind="invalid_model",
            param="model",
        )


_REQUEST = object_of(
    {
        "input": _input,
        "model": _model,
        "models": list_of(_model, 5, 1),
        "preset": words(*PRESETS),
        "effort": words(*PRESETS),
        "profile": typed(["type", "id"], id=text(), version=anything),
        "instructions": text(),
        "max_output_tokens": _POSITIVE,
        "max_steps": number(1, whole=True, says="max steps must be at least 1"),
        "max_tool_calls": number(0, whole=True),
        "reasoning": object_of(
            {"effort": words("none", "minimal", "low", "medium", "high", "xhigh", "max")}
        ),
        "response_format": tagged(
            {
                "text": typed(),
                "json_schema": typed(
                    ["json_schema"],
                    json_schema=object_of(
                        {
                            "name": text(64, 1),
                            "schema": anything,
                            "strict": flag,
                            "description": text(),
                        },
                        ["name", "schema"],
                    ),
                ),
            }
        ),
        "temperature": number(0, 2),
        "top_p": number(0, 1),
        "stream": flag,
        "stream_options": object_of({"include_usage": flag}),
        "text": object_of({}),
        "tools": list_of(tagged(_TOOLS)),
        "tool_choice": _tool_choice,
        "parallel_tool_calls": flag,
        "background": flag,
        "store": flag,
        "previous_response_id": text(),
        "language_preference": pattern(r"[a-z]{2}", "must be an ISO 639-1 code"),
        "metadata": _metadata,
        "truncation": words("auto", "disabled"),
        "service_tier": words("auto", "default", "flex", "priority", "fast"),
        "prompt_cache_key": text(),
        "skills": list_of(
            tagged(
                {
                    "builtin": typed(["name"], name=text()),
                    "inline": typed(
                        ["name", "description", "instructions"],
                        name=text(),
                        description=text(),
                        instructions=text(),
                    ),
                    "custom": typed(["id"], id=text(), version=anything),
                }
            ),
            16,
        ),
        "step_budget_reminder": flag,
    }
)


def check_request(body: Any) -> dict[str, Any]:
    """Check the body of ``POST /v1/responses``.

    Returns
    -------
    dict
        The fields that were given (not null).

    Raises
    ------
    RequestError
        As the service would refuse it.

    Examples
    --------
    >>> sorted(check_request({"preset": "fast", "input": "hi", "model": None}))
    ['input', 'preset']
    """
    if not isinstance(body, dict):
        raise RequestError("request body must be a JSON object")
    _REQUEST(body, "")
    given = {name: value for name, value in body.items() if value is not None}
    if "input" not in given:
        raise RequestError("input array cannot be empty", param="input")
    if not any(given.get(name) for name in ("model", "models", "preset", "effort", "profile")):
        raise RequestError(
            "one of model, models, preset, effort or profile is required", param="model"
        )
    if "profile" in given and "preset" in given:
        raise RequestError("profile cannot be combined with preset", param="profile")
    if given.get("profile", {}).get("type", "custom") != "custom":
        raise RequestError("profile.type: must be custom", param="profile.type")
    models = given.get("models") or [given.get("model") or ""]
    if any(name.startswith("anthropic/") for name in models) and "max_output_tokens" not in given:
        raise RequestError(
            "max_output_tokens is required for anthropic models", param="max_output_tokens"
        )
    if sum(tool["type"] == "mcp" for tool in given.get("tools", [])) > 16:
        raise RequestError("tools: at most 16 mcp servers", param="tools")
    return given
