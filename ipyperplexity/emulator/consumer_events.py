"""The events of a stream of the web endpoint, in their order (consumer-web 2.2, 2.3).

Invariant: PENDING events, one PENDING event with ``final`` and without ``final_sse_message``, then
the COMPLETED one, which alone has the terminal answer and the follow-ups.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from .consumer_forms import BlockWriter
from .consumer_run import WebRun

__all__ = ["Frame", "frames", "written"]

Json = dict[str, Any]
_ANSWER_USAGES = ("ask_text", "ask_text_0_markdown")
# Every key an event may have, for a stream that spells them all out.
_MAY_BE_NULL = (
    "backend_uuid", "context_uuid", "uuid", "frontend_uuid", "display_model", "error_code",
    "error_message", "expiry_time", "mode", "plan", "read_write_token", "related_queries",
    "related_query_items", "search_focus", "sources_list", "text", "thread_title",
    "thread_url_slug", "user_selected_model", "web_results", "widget_data",
)  # fmt: skip


@dataclass(frozen=True)
class Frame:
    """One event before it is written.

    Attributes
    ----------
    phase
        ``"start"``, ``"text"``, ``"pending-final"`` or ``"completed"``.
    fields
        Top-level keys besides ``blocks``.
    documents
        Field and document by ``intended_usage``.
    raw
        Data to be sent as they are, in place of all this.
    """

    phase: str
    fields: Json
    documents: dict[str, tuple[str, Json]] = field(default_factory=dict)
    raw: str | None = None


def _markdown(run: WebRun, chunks: list[str], *, answer: str | None = None, done: bool) -> Json:
    made: Json = {"chunks": chunks, "progress": "DONE" if done else "IN_PROGRESS"}
    if answer is not None:
        made["answer"] = answer
    return made


def _answer_documents(
    run: WebRun, form: str, chunks: list[str], *, last: bool
) -> dict[str, tuple[str, Json]]:
    if form.startswith("workflow"):
        return {"workflow_root": ("workflow_block", _workflow(run, chunks, last=last))}
    told = last and run.behavior.web_answer != "chunks"
    done = last or len(chunks) == len(run.pieces)
    document = _markdown(run, chunks, answer=run.answer if told else None, done=done)
    return {usage: ("markdown_block", dict(document)) for usage in _ANSWER_USAGES}


def _workflow(run: WebRun, chunks: list[str], *, last: bool) -> Json:
    def item(text: str, pieces: list[str], variant: str, *, streaming: bool) -> Json:
        payload = {"text": text, "chunks": pieces, "variant": variant, "is_streaming": streaming}
        return {"payload": {"text_payload": payload}}

    said = run.answer if last and run.behavior.web_answer != "chunks" else "".join(chunks)
    thought = f"Searching for {', '.join(run.queries)}"
    steps: list[Json] = [
        {"status": "DONE", "items": [item(thought, [thought], "thought", streaming=False)]}
    ]
    if chunks or last:
        status = "DONE" if last else "IN_PROGRESS"
        answer = item(said, list(chunks), "answer", streaming=not last)
        steps.append({"status": status, "items": [answer]})
    return {"steps": steps}


def _plan(run: WebRun, at: int) -> dict[str, tuple[str, Json]]:
    """Return the plan once ``at`` of its steps are done."""
    goal = {"id": "0", "description": "Looking into the corpus", "final": at >= 2}
    steps = run.search_steps(with_sources=False)[:at]
    progress = "DONE" if at >= 2 else "IN_PROGRESS"
    document: Json = {"progress": progress, "goals": [goal], "steps": steps, "final": at >= 2}
    return {"plan": ("plan_block", document)}


def _sources(run: WebRun, found: list[Json]) -> tuple[Json, dict[str, tuple[str, Json]]]:
    """Return the keys and the documents that carry sources."""
    place = run.behavior.web_sources
    block = {"web_results": ("web_result_block", {"web_results": found})}
    # Addresses come again with a slash at their end: one source all the same.
    again = [{**source, "url": source["url"] + "/"} for source in found]
    mode = ("sources_mode_block", {"web_results": again if place == "both" else found})
    flat = [
        {
            "title": source["name"],
            "url": source["url"],
            "snippet": source["snippet"],
            "date": (source["timestamp"] or "")[:10] or None,
        }
        for source in found
    ]
    table: dict[str, tuple[Json, dict[str, tuple[str, Json]]]] = {
        "web_results": ({}, block),
        "sources_answer_mode": ({}, {"sources_answer_mode": mode}),
        "both": ({}, {**block, "sources_answer_mode": mode}),
        "sources_list": ({"sources_list": flat}, {}),
        "top_level": ({"web_results": found}, {}),
    }
    return table.get(place, ({}, {}))


def _report(run: WebRun) -> dict[str, tuple[str, Json]]:
    report = {"title": run.entry.questions[-1][:80], "source_content": run.text}
    assets = [{"asset_type": "RESEARCH_REPORT", "uuid": "report-1", "research_report": report}]
    return {"unified_assets": ("unified_assets_block", {"assets": assets})}


def _chunk_states(run: WebRun) -> Iterator[list[str]]:
    """Yield the chunks so far, again and again, until all but the last are there."""
    pieces = list(run.pieces)
    for at in range(1, len(pieces)):
        if run.behavior.web_chunks == "partial" and len(pieces[at - 1]) > 1:
            half = pieces[at - 1][: len(pieces[at - 1]) // 2]
            yield [*pieces[: at - 1], half]
        yield pieces[:at]


def frames(run: WebRun, form: str) -> Iterator[Frame]:
    """Yield the events of an answer.

    Parameters
    ----------
    run
        What is said.
    form
        ``"snapshot"``, ``"diff"``, ``"workflow"`` or ``"workflow-diff"``.
    """
    ids = run.ids()
    pending: Json = {"status": "PENDING", "message_mode": "STREAMING", "text_completed": False}
    yield Frame("start", {**pending, **ids[0], "reconnectable": True}, _plan(run, 0))
    yield Frame("start", {**pending, **ids[1]}, _plan(run, 1))
    keys, early = _sources(run, run.searches[0] if run.searches else [])
    yield Frame("start", {**pending, **ids[2], **keys}, {**_plan(run, 2), **early})
    keys, documents = _sources(run, run.sources)
    if run.asks_back:
        yield _last(run, form, [], {"text": json.dumps(run.steps(with_sources=True))})
        return
    if run.is_research:
        documents = {**documents, **_report(run)}
    said: list[str] = []
    for chunks in _chunk_states(run):
        if run.entry.terminated.is_set():
            break
        said = chunks
        yield Frame("text", pending, _answer_documents(run, form, chunks, last=False))
    if run.entry.terminated.is_set():
        # What was said so far stands; the model had no time to end it.
        ends = {"text_completed": False, **keys}
        yield _last(replace(run, text="".join(said)), form, said, ends, documents)
        return
    whole = list(run.pieces)
    final = {**pending, "final": True, "final_sse_message": False, "text_completed": True, **keys}
    shown = {**_answer_documents(run, form, whole, last=False), **documents}
    yield Frame("pending-final", final, shown)
    yield _last(run, form, whole, {"text_completed": True, **_text(run, form)}, documents)


def _last(
    run: WebRun,
    form: str,
    chunks: list[str],
    fields: Json,
    documents: dict[str, tuple[str, Json]] | None = None,
) -> Frame:
    ends = {"status": "COMPLETED", "message_mode": "FULL", "final": True, "final_sse_message": True}
    answer = {} if run.asks_back else _answer_documents(run, form, chunks, last=True)
    everything = {**answer, **(documents or {})}
    return Frame("completed", {**ends, **run.last_fields(), **fields}, everything)


def _text(run: WebRun, form: str) -> Json:
    wanted = run.behavior.web_text or ("none" if form.startswith("workflow") else "steps")
    if wanted == "plain":
        return {"text": run.answer}
    with_sources = run.behavior.web_sources != "none"
    steps = json.dumps(run.steps(with_sources=with_sources), ensure_ascii=False)
    needed = run.behavior.web_sources == "steps"
    return {"text": steps} if wanted == "steps" or needed else {}


def written(frame: Frame, writer: BlockWriter, *, nulls: bool) -> str:
    """Return the data of an event."""
    blocks = writer.blocks(frame.documents)
    if frame.raw is not None:
        return frame.raw
    event = {**dict.fromkeys(_MAY_BE_NULL if nulls else ()), **frame.fields}
    event["blocks"] = blocks or (None if nulls else [])
    data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    if any("\ud800" <= letter <= "\udfff" for letter in data):
        # Half a character cannot be sent as it is, only as an escape.
        data = json.dumps(event, separators=(",", ":"))
    return data
