"""The events of a stream of the Agent API.

Invariant: ``events`` yields the whole run in the service's usual order with rising sequence
numbers and ends with exactly one terminal event, or none when the behavior says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .responses import (
    FAILURE,
    Json,
    Run,
    end_of,
    final,
    message_item,
    page_items,
    response,
    source_items,
    text_part,
    tool_items,
)

__all__ = ["events"]


def _reasoning(run: Run) -> Iterator[tuple[str, Json]]:
    nulls = run.behavior.nulls

    def thought(text: str) -> str | None:
        return None if nulls else text

    yield "response.reasoning.started", {"thought": thought("Looking into the corpus.")}
    for search in run.plan.searches:
        yield (
            "response.reasoning.search_queries",
            {"queries": list(search.queries), "thought": thought("Searching the corpus.")},
        )
        found = f"Found {len(search.results)} passages."
        yield (
            "response.reasoning.search_results",
            {
                "results": None if nulls else source_items(run, search.results),
                "thought": thought(found),
                "usage": None,
            },
        )
    if run.reading.urls:
        yield (
            "response.reasoning.fetch_url_queries",
            {"urls": list(run.reading.urls), "thought": thought("Reading the page.")},
        )
        yield (
            "response.reasoning.fetch_url_results",
            {
                "contents": None if nulls else page_items(run),
                "thought": thought(f"{len(run.plan.fetched)} URLs were fetched."),
            },
        )
    yield "response.reasoning.stopped", {"thought": thought("Writing the answer.")}


def _texts(run: Run, output_index: int, chunk_chars: int) -> Iterator[tuple[str, Json]]:
    places, nulls = run.behavior.text_in, run.behavior.nulls
    announced = run.behavior.content_parts
    for at, (name, parts) in enumerate(run.messages):
        index = output_index + at
        opened = message_item(run, at, status="in_progress", with_text=False)
        yield "response.output_item.added", {"output_index": index, "item": opened}
        for content_index, part in enumerate(parts):
            shown = None if nulls and len(parts) == 1 else content_index
            where = {"item_id": name, "output_index": index, "content_index": shown}
            if announced:
                yield "response.content_part.added", {**where, "part": text_part(run, "")}
            if nulls:
                yield "response.output_text.delta", {**where, "delta": None}
            if "delta" in places:
                for start in range(0, len(part), chunk_chars):
                    piece = part[start : start + chunk_chars]
                    yield "response.output_text.delta", {**where, "delta": piece}
            # A null text must not lose the answer where it stands nowhere else.
            absent = None if nulls else ""
            told = part if "done" in places and not (nulls and "delta" in places) else absent
            yield "response.output_text.done", {**where, "text": told}
            if announced:
                yield "response.content_part.done", {**where, "part": text_part(run, part)}
        closed = message_item(run, at, status="completed", with_text="item" in places)
        yield "response.output_item.done", {"output_index": index, "item": closed}


def _terminal(run: Run, *, cancelled: bool) -> tuple[str, Json] | None:
    end = end_of(run, cancelled=cancelled)
    whole = final(run, cancelled=cancelled)
    run.result, run.status = whole, whole["status"]
    if "terminal" not in run.behavior.text_in:
        whole = {**whole, "output": []}
    table: dict[str, tuple[str, Json] | None] = {
        "completed": ("response.completed", {"response": whole}),
        "incomplete": ("response.incomplete", {"response": whole}),
        "cancelled": ("response.cancelled", {"response": whole}),
        "failed-event": ("response.failed", {"error": FAILURE}),
        "failed-response": ("response.failed", {"response": whole}),
        "failed-both": ("response.failed", {"error": FAILURE, "response": whole}),
        "error": ("error", {"error": FAILURE}),
        "none": None,
    }
    return table[end]


def events(run: Run, chunk_chars: int, is_cancelled: Callable[[], bool]) -> Iterator[Json]:
    """Yield the events of a run.

    Parameters
    ----------
    run
        Its ``status`` and ``result`` are set when the terminal event is reached.
    chunk_chars
        Characters of a text delta.
    is_cancelled
        Asked before each event; once true, the run ends as cancelled.
    """
    number = 0
    for name, payload in _body(run, chunk_chars):
        if is_cancelled():
            break
        yield {"type": name, "sequence_number": number, **payload}
        number += 1
    last = _terminal(run, cancelled=is_cancelled())
    if last is not None:
        yield {"type": last[0], "sequence_number": number, **last[1]}


def _body(run: Run, chunk_chars: int) -> Iterator[tuple[str, Json]]:
    yield "response.created", {"response": response(run, "in_progress")}
    yield "response.in_progress", {"response": response(run, "in_progress")}
    items = tool_items(run)
    if run.plan.searches or run.reading.urls:
        yield from _reasoning(run)
    for index, item in enumerate(items):
        yield "response.output_item.added", {"output_index": index, "item": item}
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield from _texts(run, len(items), chunk_chars)
