"""What a chat completion says: its text, thoughts, sources and calls, before any framing.

Invariant: markers are 1-based into the sources, which all parts of a reply give in the same
order; a ``ChatRun`` never changes once it is made.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from .behavior import Behavior
from .engine import Engine, Plan
from .functions import Offer, arguments_for, called, quoted
from .honest import NO_PICTURES, nothing_allowed
from .prices import CHARS_PER_TOKEN, count_tokens
from .related import related_questions
from .search_filters import read_filters
from .structured import fill_json

__all__ = ["ChatRun", "plan_chat"]

Json = dict[str, Any]
_SIZES = {"low": 4, "medium": 6, "high": 8}
# USD per million tokens in and out, and per request by context size (official-api 9).
_PRICES: dict[str, tuple[float, float, tuple[float, float, float]]] = {
    "sonar": (1.0, 1.0, (0.005, 0.008, 0.012)),
    "sonar-pro": (3.0, 15.0, (0.006, 0.010, 0.014)),
    "sonar-reasoning-pro": (2.0, 8.0, (0.006, 0.010, 0.014)),
    "sonar-deep-research": (2.0, 8.0, (0.0, 0.0, 0.0)),
}


@dataclass(frozen=True)
class ChatRun:
    """A completion, ready to be sent.

    Attributes
    ----------
    request
        The fields that were given.
    text
        The answer, without the thoughts.
    thoughts
        What goes into ``<think>``; ``""`` for a model that does not think.
    """

    request: Json
    behavior: Behavior
    plan: Plan
    text: str
    thoughts: str = ""
    calls: tuple[Json, ...] = ()
    images: tuple[Json, ...] = ()
    related: tuple[str, ...] = ()
    cut_off: bool = False
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def content(self) -> str:
        """All that ``content`` holds."""
        return f"<think>\n{self.thoughts}\n</think>\n\n{self.text}" if self.thoughts else self.text

    @property
    def model(self) -> str:
        """The model as the reply names it."""
        return str(self.request["model"])

    @property
    def wants_images(self) -> bool:
        """Whether pictures are asked for."""
        return _wants_images(self.request)

    @property
    def finish_reason(self) -> str:
        """Why it ended."""
        if self.calls:
            return "tool_calls"
        cut_off = self.cut_off or self.behavior.terminal == "incomplete"
        return "length" if cut_off else "stop"

    @property
    def sources(self) -> Json:
        """The two lists of sources."""
        if self.behavior.nulls and not self.plan.results:
            return {"citations": None, "search_results": None}
        results = []
        for result in self.plan.results:
            day = result.date.isoformat() if result.date else None
            results.append(
                {
                    "title": result.title,
                    "url": result.url,
                    "date": day,
                    "last_updated": day,
                    "snippet": result.snippet,
                    "source": "web",
                }
            )
        return {"citations": [one["url"] for one in results], "search_results": results}

    def usage(self, written: str, *, ended: bool = True) -> Json:
        """Return the usage once this much of the content has been written.

        The cost of a stream that has not ended is the zero skeleton of the official SDK's types.
        """
        options = self.request.get("web_search_options") or {}
        size = options.get("search_context_size") or "low"
        price_in, price_out, fees = _PRICES.get(self.model.rpartition("/")[2], _PRICES["sonar"])
        read = sum(count_tokens(_text_of(m)) for m in self.request["messages"])
        made = count_tokens(written)
        fee = fees[("low", "medium", "high").index(size)] if self.plan.searches else 0.0
        counted: Json = {
            "prompt_tokens": read,
            "completion_tokens": made,
            "total_tokens": read + made,
            "search_context_size": size,
        }
        if self.thoughts:
            counted["reasoning_tokens"] = count_tokens(self.thoughts)
            counted["num_search_queries"] = len(self.plan.searches)
        cost = {
            "input_tokens_cost": round(read * price_in / 1e6, 8),
            "output_tokens_cost": round(made * price_out / 1e6, 8),
            "request_cost": fee,
        }
        if not ended:
            cost = {"input_tokens_cost": 0.0, "output_tokens_cost": 0.0}
        total = round(sum(cost.values()), 8)
        if self.behavior.chat_cost == "object":
            counted["cost"] = {**cost, "total_cost": total}
        elif self.behavior.chat_cost == "number":
            counted["cost"] = total
        return counted


def _wants_images(request: Json) -> bool:
    media = (request.get("media_response") or {}).get("overrides") or {}
    return bool(request.get("return_images") or media.get("return_images"))


def _text_of(message: Json) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def _offer(request: Json) -> Offer:
    choice = request.get("tool_choice") or "auto"
    if isinstance(choice, dict):
        choice = choice["function"]["name"]
    rounds, turn = 0, False
    for message in request["messages"]:
        if message["role"] == "user":
            rounds = 0
        turn, before = message["role"] == "tool", turn
        rounds += turn and not before
    return Offer(
        [tool["function"] for tool in request.get("tools", [])],
        choice,
        rounds,
        request.get("parallel_tool_calls", True),
    )


def _results(messages: list[Json]) -> list[tuple[str, Any]]:
    """Return what the functions gave since the last turn of the user."""
    names: dict[str, str] = {}
    found: list[tuple[str, Any]] = []
    for message in messages:
        for call in message.get("tool_calls") or []:
            names[call["id"]] = call["function"]["name"]
        if message["role"] == "user":
            found = []
        elif message["role"] == "tool":
            found.append((names[message["tool_call_id"]], message.get("content")))
    return found


def plan_chat(request: Json, engine: Engine, behavior: Behavior) -> ChatRun:
    """Search, and compose the reply.

    Parameters
    ----------
    request
        Fields that :func:`~ipyperplexity.emulator.chat_checks.check_chat` let pass.
    engine
        What answers.
    behavior
        How.
    """
    users = [m for m in request["messages"] if m["role"] == "user"]
    questions = [_text_of(message) for message in users]
    chosen = called(_offer(request), behavior.tool_rounds, behavior.tool_calls)
    if chosen:
        calls = tuple(
            {
                "index": at,
                "id": f"call_{uuid.uuid4()}",
                "type": "function",
                "function": {
                    "name": function["name"],
                    "arguments": arguments_for(function, questions[-1]),
                },
            }
            for at, function in enumerate(chosen)
        )
        return ChatRun(request, behavior, Plan(""), "", calls=calls)
    results = _results(request["messages"])
    if request.get("disable_search"):
        plan = Plan("" if results else nothing_allowed("Leave out `disable_search`."))
    else:
        options = request.get("web_search_options") or {}
        plan = engine.answer(
            questions[-1],
            max_results=_SIZES[options.get("search_context_size") or "low"],
            searches=1 if options.get("search_type") == "fast" else 2,
            filters=read_filters(request),
            history=[text for text in questions[:-1] if text.strip()],
        )
    text, cut_off = _text(request, behavior, plan, results, users[-1])
    return ChatRun(
        request,
        behavior,
        plan,
        text,
        thoughts=_thoughts(request, plan),
        images=_images(plan)[: request.get("num_images")] if _wants_images(request) else (),
        related=related_questions(plan) if request.get("return_related_questions") else (),
        cut_off=cut_off,
    )


def _text(
    request: Json, behavior: Behavior, plan: Plan, results: list[tuple[str, Any]], last: Json
) -> tuple[str, bool]:
    """Return the text of the answer, and whether it was cut for its length."""
    schema = ((request.get("response_format") or {}).get("json_schema") or {}).get("schema")
    if schema is not None:
        said = [*plan.sentences, *(str(output) for _, output in results)]
        titles = [result.title for result in plan.results]
        text = fill_json(schema, said, titles, [result.url for result in plan.results])
    else:
        content = last.get("content")
        seen = isinstance(content, list) and any(part["type"] == "image_url" for part in content)
        text = "\n\n".join(filter(None, (NO_PICTURES if seen else "", quoted(results), plan.text)))
    text += behavior.extra_text
    stops = request.get("stop", [])
    for stop in [stops] if isinstance(stops, str) else stops:
        text = text.partition(stop)[0]
    budget = request.get("max_tokens") or request.get("max_completion_tokens")
    if budget is None or len(text) <= budget * CHARS_PER_TOKEN:
        return text, False
    return text[: budget * CHARS_PER_TOKEN], True


def _thoughts(request: Json, plan: Plan) -> str:
    if not any(word in request["model"] for word in ("reasoning", "deep-research")):
        return ""
    searched = json.dumps([query for search in plan.searches for query in search.queries])
    return f"I searched for {searched} and found {len(plan.results)} passages. I quote the best."


def _images(plan: Plan) -> tuple[Json, ...]:
    return tuple(
        {
            "image_url": f"https://images.example/{result.id}.png",
            "origin_url": result.url,
            "title": result.title,
            "width": 640,
            "height": 360,
        }
        for result in plan.results[:3]
    )
