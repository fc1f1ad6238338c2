"""What goes wrong on the web endpoint, by the names of ``WEB_FAULTS``.

Invariant: a fault either takes the place of the stream or changes its frames; nothing else knows
of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from .behavior import Behavior
from .consumer_events import Frame
from .consumer_run import WebRun
from .faults import CHALLENGE_HEADERS, CHALLENGE_PAGE

__all__ = ["UNENDED", "fault_of", "fixed_reply", "spoiled"]

Json = dict[str, Any]
SENTENCE = "Error in processing query."
UNENDED = frozenset({"no-end", "no-end-of-stream", "pending-final-only"})
"""Faults without the event that ends a stream."""

# Status, headers, body.
_FIXED: dict[str, tuple[int, dict[str, str], Any]] = {
    "challenge-200": (200, CHALLENGE_HEADERS, CHALLENGE_PAGE),
    "challenge-403": (403, CHALLENGE_HEADERS, CHALLENGE_PAGE),
    "unauthorized": (401, {}, {"detail": "Unauthorized"}),
    "forbidden": (403, {}, {}),
    "too-many-requests": (429, {"Retry-After": "1"}, {"detail": "Too many requests"}),
    "stale-version": (400, {}, {"error": "version 2.18 is no longer supported"}),
    "validation": (
        422,
        {},
        {"detail": [{"loc": ["body", "params"], "msg": "Field required", "type": "missing"}]},
    ),
    "server-error": (500, {}, {"detail": "Internal server error"}),
    "json-error": (200, {}, {"error": "the service is being rebuilt"}),
    "json-detail": (200, {}, {"detail": "the service is being rebuilt"}),
}
_BY_TERMINAL = {
    "none": "no-end",
    "incomplete": "terminated",
    "cancelled": "terminated",
    **dict.fromkeys(("failed-event", "failed-response", "failed-both", "error"), "generic-failed"),
}


def fault_of(behavior: Behavior) -> str:
    """Return the fault that a behavior asks for: its own, or what its terminal comes to."""
    return behavior.web_fault or _BY_TERMINAL.get(behavior.terminal, "")


def fixed_reply(fault: str) -> Behavior | None:
    """Return the behavior that sends the reply of a fault without a stream, or None."""
    if fault not in _FIXED:
        return None
    status, headers, body = _FIXED[fault]
    return Behavior(status=status, headers=headers, body=body)


def spoiled(frames: Iterator[Frame], run: WebRun, fault: str) -> Iterator[Frame]:
    """Yield frames as a fault changes them."""
    change = _CHANGES.get(fault)
    return frames if change is None else change(frames, run)


Change = Callable[[Iterator[Frame], WebRun], Iterator[Frame]]


def _half(run: WebRun) -> int:
    return max(1, len(run.pieces) // 2)


def _cut(frames: Iterator[Frame], run: WebRun) -> Iterator[Frame]:
    """Yield about half of the text."""
    texts = 0
    for frame in frames:
        texts += frame.phase == "text"
        if frame.phase in ("pending-final", "completed") or texts > _half(run):
            return
        yield frame


def _then(**fields: Any) -> Change:
    """End with this event, after some text."""

    def change(frames: Iterator[Frame], run: WebRun) -> Iterator[Frame]:
        yield from _cut(frames, run)
        yield Frame("completed", fields)

    return change


def _only(**fields: Any) -> Change:
    """Send this event alone."""
    return lambda frames, run: iter([Frame("completed", fields)])


def _empty(frames: Iterator[Frame], run: WebRun) -> Iterator[Frame]:
    for frame in frames:
        if frame.phase == "start":
            yield replace(frame, documents={})
    fields = {"status": "COMPLETED", "final": True, "final_sse_message": True}
    nothing: Json = {"answer": "", "chunks": [], "progress": "DONE"}
    yield Frame("completed", fields, {"ask_text": ("markdown_block", nothing)})


def _sources_only(frames: Iterator[Frame], run: WebRun) -> Iterator[Frame]:
    answers = ("ask_text", "ask_text_0_markdown", "workflow_root")
    for frame in frames:
        if frame.phase != "text":
            kept = {usage: d for usage, d in frame.documents.items() if usage not in answers}
            fields = {name: value for name, value in frame.fields.items() if name != "text"}
            yield replace(frame, documents=kept, fields=fields)


def _pending_final_only(frames: Iterator[Frame], run: WebRun) -> Iterator[Frame]:
    return (frame for frame in frames if frame.phase != "completed")


def _terminated(frames: Iterator[Frame], run: WebRun) -> Iterator[Frame]:
    texts = 0
    for frame in frames:
        yield frame
        texts += frame.phase == "text"
        if texts >= _half(run):
            run.entry.terminated.set()


def _bad_frame(frames: Iterator[Frame], run: WebRun) -> Iterator[Frame]:
    texts = 0
    for frame in frames:
        texts += frame.phase == "text"
        if frame.phase == "text" and texts == _half(run):
            # The frame is lost, and the next one goes on after what it had.
            yield replace(frame, raw='{"status":"PENDING","blocks":[{"intended_us')
        else:
            yield frame


def _non_object(frames: Iterator[Frame], run: WebRun) -> Iterator[Frame]:
    for at, frame in enumerate(frames):
        if at == 1:
            yield Frame("start", {}, raw="[1, 2]")
        yield frame


def _huge(frames: Iterator[Frame], run: WebRun) -> Iterator[Frame]:
    for at, frame in enumerate(frames):
        more = {"telemetry_data": _LONG} if at == 1 else {}
        yield replace(frame, fields={**frame.fields, **more})


_LONG = "é" * 300_000
_CHANGES: dict[str, Change] = {
    "rate-limited": _only(status="failed", error_code="FREE_TIER_RATE_LIMITED"),
    "quota-exhausted": _then(
        status="FAILED", error_code="quota_exhausted", error_message="You have used your quota."
    ),
    "generic-failed": _then(
        status="FAILED", error_code="GENERIC_FAILED_RESPONSE", error_message="try later"
    ),
    "error-message": _then(status="PENDING", error_message="something went wrong"),
    "failed-status": _then(status="FAILED", final=True, final_sse_message=True),
    "failed-lower-case": _then(status="failed", final=True, final_sse_message=True),
    "blocked": _then(status="BLOCKED", final=True, final_sse_message=True),
    "error-sentence": _only(status="FAILED", final=True, text=SENTENCE),
    "error-sentence-completed": _only(status="COMPLETED", final=True, text=SENTENCE),
    "empty": _empty,
    "sources-only": _sources_only,
    "terminated": _terminated,
    "no-end": _cut,
    "pending-final-only": _pending_final_only,
    "bad-frame": _bad_frame,
    "non-object": _non_object,
    "huge-frame": _huge,
}
