"""The Agent API, asking: a Question to ``POST /v1/responses`` (official-api 2).

The service refuses unknown fields at any depth, so nothing is sent that was not asked for.
"""

from __future__ import annotations

import datetime as dt
import difflib
import re
from typing import Any

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.events import Started
from ipyperplexity.question import Question
from ipyperplexity.tools import Tool
from ipyperplexity.wire.agent_calls import give_results
from ipyperplexity.wire.agent_reading import fold, fold_body
from ipyperplexity.wire.base import Wire, WireRequest

PATH = "/v1/responses"
DEFAULT_PRESET = "low"
#: official-api 2.1; the second line are older names that the service still takes.
PRESETS = (
    *("fast", "low", "medium", "high", "xhigh", "wide-research"),
    *("fast-search", "pro-search", "deep-research", "advanced-deep-research"),
)
#: Models of the retired chat-completions -> preset (official-api 2.4, the majority's column).
SONAR_PRESETS = {
    "sonar": "fast",
    "sonar-pro": "low",
    "sonar-reasoning": "medium",
    "sonar-reasoning-pro": "medium",
    "sonar-deep-research": "high",
}
#: ``anthropic/*`` models are refused without a limit (official-api 2.1).
ANTHROPIC_MAX_TOKENS = 8192
WHO_ANSWERS = ("preset", "model", "models", "effort", "profile")


def request(question: Question, *, stream: bool = True, resume: bool = True) -> WireRequest:
    """Turn a Question into the body of ``POST /v1/responses``.

    Raises
    ------
    InvalidRequestError
        If ``model`` is neither a preset nor ``provider/name``.
    """
    body, notices = _who_answers(question)
    is_preset = not {"model", "models"} & {*body, *question.extra}
    follow = question.follow if resume else None
    if follow is not None and not (follow.stored and follow.id):
        follow = None
    if follow is not None:
        body["previous_response_id"] = follow.id
    body["input"] = _input_items(question, whole=follow is None, system_item=is_preset)
    if question.system and not is_preset:
        body["instructions"] = question.system
    body |= _tools(question, is_preset)
    for name, value in (
        ("max_output_tokens", question.max_tokens),
        ("max_steps", question.max_steps),
        ("reasoning", {"effort": question.reasoning} if question.reasoning else None),
        ("temperature", question.temperature),
        ("language_preference", question.language),
        ("response_format", question.schema.response_format() if question.schema else None),
    ):
        if value is not None:
            body[name] = value
    if stream:
        body["stream"] = True
    body |= question.extra
    models = [body.get("model"), *(body.get("models") or ())]
    if any(str(model).startswith("anthropic/") for model in models):
        body.setdefault("max_output_tokens", ANTHROPIC_MAX_TOKENS)
    if question.search is False and question.tools and is_preset:
        notices += ("A preset may search all the same when it is given other tools.",)
    return WireRequest(PATH, body, notices=notices, continues=follow is not None)


def _who_answers(question: Question) -> tuple[dict[str, Any], tuple[str, ...]]:
    name = question.model
    if name is None:
        named = any(field in question.extra for field in WHO_ANSWERS)
        return ({} if named else {"preset": DEFAULT_PRESET}), ()
    if name in PRESETS:
        return {"preset": name}, ()
    if preset := SONAR_PRESETS.get(name):
        notice = f"{name} was retired on 2026-09-27; asked with its successor, the preset {preset}."
        return {"preset": preset}, (notice,)
    if "/" in name.strip("/"):
        return {"model": name}, ()
    near = difflib.get_close_matches(name, [*PRESETS, *SONAR_PRESETS], 1)
    raise InvalidRequestError(
        f"model: got {name!r}; allowed: a preset ({', '.join(PRESETS[:6])}) or provider/name."
        + (f" Did you mean {near[0]!r}?" if near else ""),
        field="model",
    )


def _input_items(question: Question, *, whole: bool, system_item: bool) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if question.system and system_item:
        # A system item leaves the preset's own prompt in place; `instructions` would replace it.
        items.append({"role": "system", "content": question.system})
    if whole and question.follow is not None:
        for turn in question.follow.conversation():
            items.append({"role": "user", "content": turn.question})
            if turn.text:
                items.append({"role": "assistant", "content": turn.text})
    content: Any = question.text
    if question.images:
        content = [{"type": "input_text", "text": question.text}]
        content += [{"type": "input_image", "image_url": image} for image in question.images]
    items.append({"role": "user", "content": content})
    return items


def _tools(question: Question, is_preset: bool) -> dict[str, Any]:
    """Return ``tools`` and ``tool_choice`` (official-api 2.2, 2.5)."""
    search = _search_tool(question)
    tools = [
        tool.declaration() if isinstance(tool, Tool) else dict(tool) for tool in question.tools
    ]
    given = next((tool for tool in tools if tool["type"] == "web_search"), None)
    if question.search is False:
        if given is not None:
            raise InvalidRequestError(
                "tools: got 'web_search'; allowed: other tools, while search is off.", field="tools"
            )
        fields: dict[str, Any] = {"tools": tools} if tools else {}
        # There is no "disable search" field; without tools of its own a preset must be told.
        return fields or ({"tool_choice": "none"} if is_preset else {})
    if given is not None:
        filters = {**search.pop("filters", {}), **(given.get("filters") or {})}
        given |= {**search, **given} | ({"filters": filters} if filters else {})
    elif tools or len(search) > 1 or question.search == "force" or not is_preset:
        # Listing tools beside a preset may replace all of its own: web_search is always among them.
        tools.insert(0, search)
    fields = {"tools": tools} if tools else {}
    if question.search == "force":
        fields["tool_choice"] = {"type": "web_search"}
    return fields


def _search_tool(question: Question) -> dict[str, Any]:
    """Return the ``web_search`` tool: the six filters inside ``filters``, the rest on the tool."""
    tool: dict[str, Any] = {"type": "web_search"}
    filters: dict[str, Any] = {}
    if question.limit is not None:
        tool["max_results"] = question.limit
    if question.context is not None:
        tool["search_context_size"] = question.context
    if question.country is not None:
        tool["user_location"] = {"country": question.country}
    if question.domains:
        filters["search_domain_filter"] = list(question.domains)
    if question.recency is not None:
        filters["search_recency_filter"] = question.recency
    if question.after is not None:
        filters["search_after_date_filter"] = _us_date(question.after)
    if question.before is not None:
        filters["search_before_date_filter"] = _us_date(question.before)
    if filters:
        tool["filters"] = filters
    return tool


def _us_date(date: dt.date) -> str:
    # Not `strftime`: on some systems its year has fewer than four digits.
    return f"{date.month:02}/{date.day:02}/{date.year:04}"


def cancel(started: Started, at_ms: int = 0) -> WireRequest | None:
    """Return the request that stops a run, by its id (official-api 6); the time is not sent."""
    if not _RUN_ID.fullmatch(started.id or ""):
        return None
    return WireRequest(f"{PATH}/{started.id}/cancel", None)


#: As it goes into an address, it must be nothing else than an id.
_RUN_ID = re.compile(r"[\w-]{1,200}")


WIRE = Wire(
    "agent",
    request,
    lambda frames, asked: fold(frames),
    lambda reply, asked: fold_body(reply),
    give_results=give_results,
    cancel=cancel,
)
