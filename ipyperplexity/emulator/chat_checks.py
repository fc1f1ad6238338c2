"""The rules of a chat completions request (official-api 8).

Invariant: a field or value that the documents do not have is refused as the older endpoints do,
422 with a list of details; filters that exclude each other are 400.
"""

from __future__ import annotations

import re
from typing import Any

from .checks import DATES, RECENCY, parse_date
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
    unprocessable,
    words,
)

__all__ = ["check_chat"]

Json = dict[str, Any]
_ROLES = ("system", "developer", "user", "assistant", "tool")


def _date(value: Any, path: str) -> None:
    try:
        parse_date(value if isinstance(value, str) else repr(value))
    except ValueError as problem:
        raise refuse(path, str(problem)) from None


def _domain(value: Any, path: str) -> None:
    text(253, 1)(value, path)
    if "://" in value:
        raise refuse(path, f"must be a domain without a scheme, got {value!r}")


_PART = tagged(
    {
        "text": typed(["text"], text=text()),
        "image_url": typed(["image_url"], image_url=lambda value, path: _image(value, path)),
        "file_url": typed(["file_url"], file_url=anything, file_name=text()),
        "pdf_url": typed(["pdf_url"], pdf_url=anything),
        "video_url": typed(["video_url"], video_url=anything),
    }
)


def _image(value: Any, path: str) -> None:
    address = pattern(r"(?s)(?:https://|data:image/).*", "must be https or a data URI")
    if isinstance(value, str):
        address(value, path)
    else:
        object_of({"url": address, "detail": text()}, ["url"])(value, path)


def _content(value: Any, path: str) -> None:
    if not isinstance(value, str):
        list_of(_PART, least=1)(value, path)


_CALL = typed(
    ["id", "function"],
    id=text(),
    index=number(0, whole=True),
    function=object_of({"name": text(64, 1), "arguments": text()}, ["name", "arguments"]),
)
_MESSAGE = object_of(
    {
        "role": words(*_ROLES),
        "content": _content,
        "name": text(),
        "tool_calls": list_of(_CALL, least=1),
        "tool_call_id": text(),
        "reasoning_steps": list_of(anything),
    },
    ["role"],
)


def _message(value: Any, path: str) -> None:
    _MESSAGE(value, path)
    if value["role"] == "tool" and not value.get("tool_call_id"):
        raise refuse(f"{path}.tool_call_id", "is required")
    if value.get("content") is None and not value.get("tool_calls"):
        raise refuse(f"{path}.content", "is required")


def _tool_choice(value: Any, path: str) -> None:
    if not isinstance(value, dict):
        words("none", "auto", "required")(value, path)
    else:
        typed(["function"], function=object_of({"name": text(64, 1)}, ["name"]))(value, path)


def _stop(value: Any, path: str) -> None:
    if not isinstance(value, str):
        list_of(text(None, 1), 4, 1)(value, path)


_LOCATION = object_of(
    {
        "country": pattern(r"[A-Za-z]{2}", "must be a two-letter code"),
        "region": text(),
        "city": text(),
        "latitude": number(-90, 90),
        "longitude": number(-180, 180),
    }
)
_TOOL = tagged(
    {
        "function": typed(
            ["function"],
            function=object_of(
                {
                    "name": text(64, 1),
                    "description": text(),
                    "parameters": anything,
                    "strict": flag,
                },
                ["name"],
            ),
        )
    }
)
_FORMAT = tagged(
    {
        "text": typed(),
        "json_schema": typed(
            ["json_schema"],
            json_schema=object_of(
                {"name": text(64, 1), "schema": anything, "strict": flag, "description": text()},
                ["schema"],
            ),
        ),
        "regex": typed(
            ["regex"],
            regex=object_of(
                {"regex": text(None, 1), "name": text(), "strict": flag, "description": text()},
                ["regex"],
            ),
        ),
    }
)
# Fields that the official SDK (0.46.1) offers and no page explains: taken, and without effect.
_UNEXPLAINED: dict[str, Check] = {
    "best_of": number(1, whole=True),
    "country": pattern(r"[A-Za-z]{2}", "must be a two-letter code"),
    "cum_logprobs": flag,
    "diverse_first_token": flag,
    "file_workspace_id": text(),
    "has_image_url": flag,
    "latitude": number(-90, 90),
    "logprobs": flag,
    "longitude": number(-180, 180),
    "num_search_results": number(1, whole=True),
    "ranking_model": text(),
    "response_formatting_locale": text(),
    "response_metadata": anything,
    "safe_search": flag,
    "search_internal_properties": anything,
    "search_tenant": text(),
    "thread_id": text(),
    "top_logprobs": number(0, 20, whole=True),
    "updated_after_timestamp": number(0, whole=True),
    "updated_before_timestamp": number(0, whole=True),
    "use_threads": flag,
    "user_original_query": text(),
}
_CODE = pattern(r"[a-z]{2}", "must be an ISO 639-1 code")

_CHAT = object_of(
    {
        "model": text(None, 1),
        "messages": list_of(_message, least=1),
        "max_tokens": number(1, 128_000, whole=True),
        "max_completion_tokens": number(1, 128_000, whole=True),
        "temperature": number(0, 2),
        "top_p": number(0, 1),
        "top_k": number(0, 2048, whole=True),
        "presence_penalty": number(-2, 2),
        "frequency_penalty": number(-2, 2),
        "n": number(1, 1, whole=True),
        "seed": number(-(2**63), 2**63, whole=True),
        "user": text(),
        "stream": flag,
        "stream_options": object_of({"include_usage": flag}),
        "stop": _stop,
        "response_format": _FORMAT,
        "web_search_options": object_of(
            {
                "search_context_size": words("low", "medium", "high"),
                "search_type": words("fast", "pro", "auto"),
                "user_location": _LOCATION,
                "image_results_enhanced_relevance": flag,
                # So langchain-perplexity 1.4.2 calls it.
                "image_search_relevance_enhanced": flag,
            }
        ),
        "search_mode": words("web", "academic", "sec"),
        "disable_search": flag,
        "enable_search_classifier": flag,
        "num_images": number(1, whole=True),
        "return_images": flag,
        "media_response": object_of(
            {"overrides": object_of({"return_images": flag, "return_videos": flag})}
        ),
        "image_domain_filter": list_of(_domain, 10),
        "image_format_filter": list_of(text(None, 1), 10),
        "return_related_questions": flag,
        "search_domain_filter": list_of(_domain, 20),
        "search_language_filter": list_of(_CODE, 20),
        "search_recency_filter": words(*RECENCY),
        **dict.fromkeys(DATES, _date),
        "stream_mode": words("full", "concise"),
        "reasoning_effort": words("minimal", "low", "medium", "high"),
        "language_preference": text(None, 1),
        "tools": list_of(_TOOL),
        "tool_choice": _tool_choice,
        "parallel_tool_calls": flag,
        **_UNEXPLAINED,
    },
    ["model", "messages"],
)


def check_chat(body: Any) -> Json:
    """Check the body of ``POST /chat/completions``.

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
    >>> asked = {"model": "sonar", "messages": [{"role": "user", "content": "hi"}], "top_p": None}
    >>> sorted(check_chat(asked))
    ['messages', 'model']
    """
    problem: RequestError | None = None
    try:
        _CHAT(body, "")
    except RequestError as refused:
        kind = "extra_forbidden" if "unknown field" in refused.message else "value_error"
        problem = unprocessable(refused.param or "", refused.message, kind)
    if problem is not None:
        raise problem
    given: Json = {name: value for name, value in body.items() if value is not None}
    if not any(message["role"] == "user" for message in given["messages"]):
        raise RequestError("messages: at least one must be of the user", param="messages")
    if given.get("search_recency_filter") and any(name in given for name in DATES):
        raise RequestError(
            "search_recency_filter cannot be combined with date filters",
            param="search_recency_filter",
        )
    _check_calls(given["messages"])
    wanted = (given.get("response_format") or {}).get("regex")
    if wanted is not None:
        try:
            re.compile(wanted["regex"])
        except re.error as problem_:
            raise RequestError(f"response_format.regex: {problem_}") from None
    return given


def _check_calls(messages: list[Json]) -> None:
    """Each result of a tool must be of a call that was made before it."""
    made: set[str] = set()
    for at, message in enumerate(messages):
        made.update(call["id"] for call in message.get("tool_calls") or [])
        if message["role"] == "tool" and message["tool_call_id"] not in made:
            raise RequestError(
                f"messages[{at}].tool_call_id: no call has the id {message['tool_call_id']!r}",
                param=f"messages[{at}].tool_call_id",
            )
