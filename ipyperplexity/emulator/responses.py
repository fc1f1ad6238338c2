"""The Agent API as JSON: a run, its output items, and its response object in every state.

Invariant: this module only builds data; a response object always has the same 32 keys, and its
text is the same wherever and whenever it is shown.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .engine import Plan, Result
from .faults import Behavior
from .prices import DEMO_MODEL, count_tokens, usage
from .reading import Reading

__all__ = [
    "FAILURE",
    "Json",
    "Run",
    "end_of",
    "final",
    "message_item",
    "page_items",
    "response",
    "source_items",
    "text_part",
    "tool_items",
]

Json = dict[str, Any]
_PARTS_PER_MESSAGE = 2


@dataclass
class Run:
    """One run of the engine: what was asked, what it will say, how far it is."""

    reading: Reading
    plan: Plan
    text: str
    behavior: Behavior
    cut_off: bool = False
    id: str = field(default_factory=lambda: f"resp_{uuid.uuid4()}")
    created: int = field(default_factory=lambda: int(time.time()))
    status: str = "in_progress"
    result: Json | None = None
    calls: tuple[Json, ...] = ()

    def __post_init__(self) -> None:
        """Split the text over the messages once, so that all places agree."""
        pieces = _split(self.text, self.behavior.parts) if self.text else []
        groups = [
            pieces[at : at + _PARTS_PER_MESSAGE] for at in range(0, len(pieces), _PARTS_PER_MESSAGE)
        ]
        self.messages = [(f"msg_{uuid.uuid4()}", group) for group in groups]


def _split(text: str, parts: int) -> list[str]:
    size = -(-len(text) // parts)
    return [text[at : at + size] for at in range(0, len(text), size)]


def _source(result: Result, nulls: bool) -> Json:
    shown: Json = {
        "id": result.id,
        "url": result.url,
        "title": result.title,
        "snippet": result.snippet,
        "source": "web",
    }
    if nulls:
        return {**shown, "date": None, "last_updated": None}
    if result.date is not None:
        shown["date"] = shown["last_updated"] = result.date.isoformat()
    return shown


def source_items(run: Run, results: tuple[Result, ...]) -> list[Json]:
    """Return the results of a search as the wire shows them."""
    shown = [_source(result, run.behavior.nulls) for result in results]
    # Neither sorted nor reversed: a reader that leans on the order must notice.
    return [*shown[1::2], *shown[0::2]] if run.behavior.shuffle_sources else shown


def page_items(run: Run) -> list[Json]:
    """Return the fetched pages as the wire shows them."""
    return [
        {"url": page.url, "title": page.title, "snippet": page.snippet} for page in run.plan.fetched
    ]


def tool_items(run: Run) -> list[Json]:
    """Return the output items of the tools, in the order of their use."""
    items: list[Json] = [
        {
            "type": "search_results",
            "queries": None if run.behavior.nulls else list(search.queries),
            "results": source_items(run, search.results),
        }
        for search in run.plan.searches
    ]
    if run.reading.urls:
        contents = page_items(run)
        items.append(
            {
                "type": "fetch_url_results",
                "contents": contents if contents or not run.behavior.nulls else None,
            }
        )
    return [*items, *run.calls]


def text_part(run: Run, text: str) -> Json:
    """Return one part of a message."""
    return {"type": "output_text", "text": text, "annotations": None if run.behavior.nulls else []}


def message_item(run: Run, at: int, *, status: str, with_text: bool) -> Json:
    """Return one message of the answer."""
    name, parts = run.messages[at]
    content = [text_part(run, part) for part in parts]
    return {
        "type": "message",
        "id": name,
        "role": "assistant",
        "status": status,
        "content": content if with_text else [],
    }


def _output(run: Run, status: str) -> list[Json]:
    messages = [
        message_item(run, at, status=status, with_text=True) for at in range(len(run.messages))
    ]
    return [*tool_items(run), *messages]


def response(run: Run, status: str, output: list[Json] | None = None, **changes: Any) -> Json:
    """Return the response object, with all of its 32 keys."""
    asked = run.reading.request
    done = status == "completed" or status == "incomplete"
    whole: Json = {
        "id": run.id,
        "object": "response",
        "status": status,
        "model": DEMO_MODEL if done else run.reading.asked_model,
        "created_at": run.created,
        "completed_at": int(time.time()) if status == "completed" else None,
        "background": bool(asked.get("background")),
        "error": None,
        "incomplete_details": None,
        "output": output if output is not None else [],
        "usage": None,
        "instructions": asked.get("instructions"),
        "max_output_tokens": run.reading.max_output_tokens,
        "max_tool_calls": asked.get("max_tool_calls"),
        "metadata": asked.get("metadata") or {},
        "parallel_tool_calls": asked.get("parallel_tool_calls", True),
        "previous_response_id": asked.get("previous_response_id"),
        "prompt_cache_key": asked.get("prompt_cache_key"),
        "reasoning": asked.get("reasoning"),
        "safety_identifier": None,
        "service_tier": asked.get("service_tier") or ("fast" if run.reading.fast else "default"),
        "store": asked.get("store", True),
        "temperature": asked.get("temperature", 1),
        "text": {"format": {"type": "text"}},
        "tool_choice": asked.get("tool_choice", "auto"),
        "tools": run.reading.tools,
        "top_logprobs": 0,
        "top_p": asked.get("top_p", 1),
        "truncation": asked.get("truncation", ""),
        "user": None,
        "frequency_penalty": 0,
        "presence_penalty": 0,
    }
    return {**whole, **changes}


def _usage(run: Run) -> Json | None:
    if run.reading.request.get("stream_options", {}).get("include_usage") is False:
        return None
    snippets = sum(count_tokens(result.snippet) for result in run.plan.results + run.plan.fetched)
    return usage(
        model=run.reading.priced_model,
        input_text=count_tokens(run.reading.all_text) + snippets + 320,
        output_tokens=count_tokens(run.text),
        searches=len(run.plan.searches),
        fetches=1 if run.reading.urls else 0,
        search_type="fast" if run.reading.fast else "web",
    )


FAILURE = {
    "message": "the run failed: upstream model error",
    "code": "internal_error",
    "type": "server_error",
}
CANCELLED = {"message": "the run was cancelled", "code": "cancelled", "type": "cancelled"}


def _failed(run: Run) -> Json:
    return response(run, "failed", _output(run, "incomplete"), error=FAILURE)


def _cancelled(run: Run) -> Json:
    return response(
        run,
        "cancelled",
        tool_items(run),
        error=CANCELLED,
        incomplete_details={"reason": "cancelled"},
    )


def _incomplete(run: Run) -> Json:
    return response(
        run,
        "incomplete",
        _output(run, "incomplete"),
        usage=_usage(run),
        incomplete_details={"reason": "max_output_tokens"},
    )


def _completed(run: Run) -> Json:
    return response(run, "completed", _output(run, "completed"), usage=_usage(run))


def _unfinished(run: Run) -> Json:
    return response(run, "in_progress", _output(run, "in_progress"))


_ENDS: dict[str, Callable[[Run], Json]] = {
    "completed": _completed,
    "incomplete": _incomplete,
    "cancelled": _cancelled,
    "failed-event": _failed,
    "failed-response": _failed,
    "failed-both": _failed,
    "error": _failed,
    "none": _unfinished,
}


def end_of(run: Run, *, cancelled: bool = False) -> str:
    """Return how a run ends: as the behavior says, unless it was cancelled or cut off."""
    if cancelled:
        return "cancelled"
    if run.behavior.terminal == "completed" and run.cut_off:
        return "incomplete"
    return run.behavior.terminal


def final(run: Run, *, cancelled: bool = False) -> Json:
    """Return the response object of a run that has ended."""
    return _ENDS[end_of(run, cancelled=cancelled)](run)
