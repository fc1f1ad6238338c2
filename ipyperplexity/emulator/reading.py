"""What a checked request asks of the engine.

Invariant: a pure reading; the rules of official-api 2.5 (what searches, what does not) stand in
one place, here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from .checks import parse_date
from .filters import Filters
from .functions import Offer

__all__ = ["Reading", "input_items", "read_request"]

Json = dict[str, Any]
_URL = re.compile(r"https?://[^\s<>\"'`\])]+")
_LEAST_TOKENS = 16
_PRESET_PRICE = {"high": "openai/gpt-6-sol", "xhigh": "anthropic/claude-opus-5-5"}
_DEFAULT_RESULTS = {"low": 4, "medium": 6, "high": 8}


@dataclass(frozen=True)
class Reading:
    """A request, understood.

    Attributes
    ----------
    question, history
        What is asked, and the questions before it.
    search
        The web_search tool to use, or None for no search.
    searches, max_results, filters
        How it searches.
    urls
        Pages to fetch; empty unless the tool is allowed and the question names some.
    tools
        The tools as the response echoes them.
    schema
        JSON schema of the answer, or None.
    offer
        The functions that may be called.
    results
        Name and output of each function that was called for this question.
    pictures
        Whether the question comes with pictures.
    """

    request: Json
    question: str
    history: tuple[str, ...]
    all_text: str
    search: Json | None
    searches: int
    max_results: int
    filters: Filters
    urls: tuple[str, ...]
    tools: list[Json]
    schema: Any
    offer: Offer
    results: tuple[tuple[str, Any], ...]
    pictures: bool
    asked_model: str
    priced_model: str
    fast: bool
    max_output_tokens: int | None


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content if isinstance(part.get("text"), str))


def _turns(given: Any) -> tuple[list[str], str]:
    """Return the questions of the user, oldest first, and all text of the input."""
    if isinstance(given, str):
        return [given], given
    questions: list[str] = []
    words: list[str] = []
    for item in given:
        text = _text_of(item.get("content") or item.get("output") or "") if _has_text(item) else ""
        words.append(text)
        if item.get("role") == "user" and item.get("type", "message") == "message":
            questions.append(text)
    return questions, "\n".join(words)


def _has_pictures(given: Any) -> bool:
    """Whether the last turn of the user has a picture among its parts."""
    turns = (
        [item for item in given if item.get("role") == "user"] if isinstance(given, list) else []
    )
    content = turns[-1].get("content") if turns else None
    return isinstance(content, list) and any(
        isinstance(part, dict) and part.get("type") == "input_image" for part in content
    )


def _has_text(item: Json) -> bool:
    content = item.get("content") or item.get("output")
    return isinstance(content, str) or (
        isinstance(content, list) and all(isinstance(part, dict) for part in content)
    )


def _filters(tool: Json | None) -> Filters:
    given = (tool or {}).get("filters") or {}

    def day(name: str) -> date | None:
        return parse_date(given[name]) if given.get(name) else None

    return Filters(
        domains=tuple(given.get("search_domain_filter") or ()),
        recency=given.get("search_recency_filter"),
        after=day("search_after_date_filter"),
        before=day("search_before_date_filter"),
        updated_after=day("last_updated_after_filter"),
        updated_before=day("last_updated_before_filter"),
    )


def _choice(request: Json) -> str:
    chosen = request.get("tool_choice") or "auto"
    if isinstance(chosen, dict):
        return str(chosen.get("name") or chosen.get("type") or "auto")
    return str(chosen)


def input_items(request: Json) -> list[Json]:
    """Return the input as a list of items."""
    given = request["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given)


def _offer(usable: Sequence[Json], request: Json, rounds: int) -> Offer:
    functions = [tool for tool in usable if tool["type"] == "function"]
    choice = _choice(request)
    if choice not in ("auto", "required", "function", *(tool["name"] for tool in functions)):
        # Another tool is forced.
        functions = []
    return Offer(functions, choice, rounds, request.get("parallel_tool_calls", True))


def read_request(
    request: Json,
    earlier: Sequence[str] = (),
    rounds: int = 0,
    results: Sequence[tuple[str, Any]] = (),
) -> Reading:
    """Read a request that :func:`~ipyperplexity.emulator.checks.check_request` let pass.

    Parameters
    ----------
    request
        Its fields.
    earlier
        Questions of the runs that ``previous_response_id`` leads back to, oldest first.
    rounds, results
        What :func:`~ipyperplexity.emulator.functions.read_results` found.
    """
    questions, words = _turns(request["input"])
    if not questions and results:
        # Outputs of functions alone go on with the question that called them.
        questions, earlier = list(earlier[-1:]), earlier[:-1]
    question = questions[-1] if questions else ""
    history = tuple(text for text in [*earlier, *questions[:-1]] if text.strip())
    preset = (
        request.get("effort") or request.get("preset") or ("low" if "profile" in request else "")
    )
    given = request.get("tools")
    tools: list[Json] = given if given is not None else [{"type": "web_search"}] if preset else []
    choice = _choice(request)
    blocked = choice == "none" or request.get("max_tool_calls") == 0
    usable = [] if blocked else tools
    search = next((tool for tool in usable if tool["type"] == "web_search"), None)
    fetch = next((tool for tool in usable if tool["type"] == "fetch_url"), None)
    named = tuple(dict.fromkeys(url.rstrip(".,;:!?") for url in _URL.findall(question)))
    urls = named[: fetch.get("max_urls") or 10] if fetch else ()
    fast = preset in ("fast", "fast-search") or (search or {}).get("search_type") == "fast"
    steps = request.get("max_steps") or (2 if preset else 1)
    one = fast or steps < 2 or request.get("max_tool_calls") == 1
    size = _DEFAULT_RESULTS[(search or {}).get("search_context_size") or "medium"]
    budget = request.get("max_output_tokens")
    format_ = request.get("response_format") or {}
    models = request.get("models") or [request.get("model")]
    return Reading(
        request=request,
        question=question,
        history=history,
        all_text=words + (request.get("instructions") or ""),
        search=search,
        searches=1 if one else 2,
        max_results=(search or {}).get("max_results") or size,
        filters=_filters(search),
        urls=urls,
        tools=tools,
        schema=(format_.get("json_schema") or {}).get("schema"),
        offer=_offer(usable, request, rounds),
        results=tuple(results),
        pictures=_has_pictures(request["input"]),
        asked_model=models[0] or preset,
        priced_model=models[0] or _PRESET_PRICE.get(preset, "openai/gpt-6-luna"),
        fast=fast,
        max_output_tokens=None if budget is None else max(_LEAST_TOKENS, budget),
    )
