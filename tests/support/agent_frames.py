"""The Agent API's stream, written by hand from the protocol notes (official-api 4).

An independent reading: it imports nothing from the package, so a misunderstanding there cannot
hide here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal


def agent_events(
    text: str,
    sources: Sequence[Mapping[str, Any]] = (),
    *,
    queries: Sequence[str] = ("a query",),
    deltas: Sequence[str] | None = None,
    status: Literal["completed", "incomplete", "failed", "cancelled"] | None = "completed",
    model: str = "openai/gpt-6-luna",
) -> list[dict[str, Any]]:
    """Return the events of one answer in their usual order.

    Parameters
    ----------
    text
        The answer; sent as `deltas` (default: word by word).
    sources
        Search results; ``id`` (from 1), ``title``, ``snippet`` and ``source`` are filled in.
    status
        How the stream ends; None leaves the terminal event out.
    """
    results = [
        {"id": n, "title": f"Page {n}", "snippet": "", "source": "web", **source}
        for n, source in enumerate(sources, start=1)
    ]
    if deltas is None:
        deltas = [word + " " for word in text.split(" ")]
        deltas[-1] = deltas[-1][:-1]
    part = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    content = [{"type": "output_text", "text": text, "annotations": []}]
    message = {"type": "message", "id": "msg_1", "role": "assistant"}
    search = {"type": "search_results", "queries": list(queries), "results": results}
    response: dict[str, Any] = {"id": "resp_1", "object": "response", "created_at": 1796000000}
    begun = {**response, "status": "in_progress", "model": "fast", "output": []}

    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    if results:
        events += [
            {"type": "response.reasoning.started", "thought": None},
            {"type": "response.reasoning.search_queries", "queries": list(queries)},
            {"type": "response.reasoning.search_results", "results": results},
            {"type": "response.reasoning.stopped", "thought": None},
            {"type": "response.output_item.done", "output_index": 0, "item": search},
        ]
    if text:
        added = {**message, "status": "in_progress", "content": []}
        done = {**message, "status": "completed", "content": content}
        events += [
            {"type": "response.output_item.added", "output_index": 1, "item": added},
            *({"type": "response.output_text.delta", **part, "delta": d} for d in deltas),
            {"type": "response.output_text.done", **part, "text": text},
            {"type": "response.output_item.done", "output_index": 1, "item": done},
        ]
    if status == "failed":
        error = {"message": "the model failed", "code": "internal_error", "type": "internal_error"}
        events.append({"type": "response.failed", "error": error})
    elif status:
        output = ([search] if results else []) + (
            [{**message, "status": status, "content": content}] if text else []
        )
        reasons = {"incomplete": "max_output_tokens", "cancelled": "cancelled"}
        reason = {"reason": reasons[status]} if status in reasons else None
        usage = {
            "input_tokens": 900,
            "output_tokens": len(deltas),
            "total_tokens": 900 + len(deltas),
            "output_tokens_details": {"reasoning_tokens": 0},
            "tool_calls_details": {"search_web": {"invocation": 1}} if results else {},
            "cost": {"currency": "USD", "input_cost": 0.001, "total_cost": 0.00125},
        }
        last = {
            **response,
            "status": status,
            "model": model,
            "output": output,
            "incomplete_details": reason,
            "usage": usage if status != "cancelled" else None,
        }
        events.append({"type": f"response.{status}", "response": last})
    return [{**event, "sequence_number": n} for n, event in enumerate(events)]


def sse_frames(
    events: Iterable[Mapping[str, Any]],
    *,
    named: bool = True,
    done: bool = False,
    newline: bytes = b"\n",
) -> list[bytes]:
    """Return events as frames: with ``event:`` lines if `named`, a last ``[DONE]`` if `done`."""
    frames = []
    for event in events:
        name = f"event: {event['type']}\n" if named else ""
        frames.append(f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode())
    if done:
        frames.append(b"data: [DONE]\n\n")
    return [frame.replace(b"\n", newline) for frame in frames]


def agent_stream(
    text: str,
    sources: Sequence[Mapping[str, Any]] = (),
    *,
    named: bool = True,
    done: bool = False,
    newline: bytes = b"\n",
    **options: Any,
) -> list[bytes]:
    """Return the frames of one answer: `agent_events` (which takes `options`) as `sse_frames`."""
    return sse_frames(
        agent_events(text, sources, **options), named=named, done=done, newline=newline
    )
