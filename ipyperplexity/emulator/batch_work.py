"""A batch of the embedded service, and the thread that works it off.

Invariant: a batch that is over never changes, and each line of its input is in exactly one of its
two files, unless the behavior wants it otherwise.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from .batch_files import StoredFile, check_lines
from .behavior import Behavior
from .faults import default_error
from .rules import RequestError

if TYPE_CHECKING:
    from .server import EmulatorServer

__all__ = ["ENDED", "Batch", "work"]

Json = dict[str, Any]
_WINDOW = 24 * 3600
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_SKIPPED = {"expired": "batch_expired", "cancelled": "batch_cancelled"}


class Desk(Protocol):
    """Where batches and files are kept."""

    lock: threading.RLock

    def store(self, file: StoredFile) -> StoredFile:
        """Keep a file."""


class Batch:
    """A batch with its state."""

    def __init__(self, request: Json, file: StoredFile, behavior: Behavior) -> None:
        self.requests = check_lines(file.content)
        self.behavior = behavior
        self.id = f"batch_{uuid.uuid4()}"
        self.file_id = file.id
        self.metadata = request.get("metadata")
        self.status = "validating"
        self.times: dict[str, int] = {"created": int(time.time())}
        self.counts: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.files: dict[str, str] = {}
        self.errors: list[Json] = []
        self.cancelled = threading.Event()
        self.released = threading.Event()
        self._polls_left = behavior.queued_polls
        if not self._polls_left:
            self.released.set()

    def becomes(self, status: str) -> None:
        """Take note of a new status, and of its time."""
        self.status = status
        self.times[status] = int(time.time())

    def polled(self) -> Json:
        """Return it as a GET shows it, and let one that waits for GETs come nearer."""
        shown = self.shown()
        self._polls_left -= 1
        if self._polls_left <= 0:
            self.released.set()
        return shown

    def shown(self) -> Json:
        """Return it as the wire shows it."""
        stages = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling")
        times = {f"{stage}_at": self.times.get(stage) for stage in (*stages, "cancelled")}
        tokens = self.tokens
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": "/v1/responses",
            "completion_window": "24h",
            "input_file_id": self.file_id,
            "output_file_id": self.files.get("output"),
            "error_file_id": self.files.get("error"),
            "errors": {"object": "list", "data": self.errors} if self.errors else None,
            "status": self.status,
            "created_at": self.times["created"],
            "expires_at": self.times["created"] + _WINDOW,
            **times,
            "metadata": self.metadata,
            "request_counts": {
                "total": len(self.requests),
                "completed": self.counts["completed"],
                "failed": self.counts["failed"],
            },
            "usage": {
                "input_tokens": tokens["input_tokens"],
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": tokens["output_tokens"],
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": tokens["total_tokens"],
            },
        }


def work(emulator: EmulatorServer, desk: Desk, batch: Batch, pace: float) -> None:
    """Ask the engine each line of a batch, in a thread of its own."""
    behavior = batch.behavior
    while not batch.released.wait(0.05):
        if emulator.stopped.is_set():
            return
    with desk.lock:
        if behavior.batch == "invalid":
            batch.errors = [
                {"code": "invalid_request", "line": 1, "message": "model is not available"}
            ]
            batch.becomes("failed")
            return
        if not batch.cancelled.is_set():
            batch.becomes("in_progress")
    last = len(batch.requests) // 2 if behavior.batch == "expired" else len(batch.requests)
    output: list[bytes] = []
    errors: list[bytes] = []
    done = 0
    for number, request in enumerate(batch.requests[:last], 1):
        if batch.cancelled.wait(pace * 10):
            break
        if emulator.stopped.is_set():
            return
        fault = behavior.batch_lines.get(number, "")
        result, is_error = _result(emulator, batch, request, fault)
        line = _line(request["custom_id"], **result)
        (errors if is_error else output).extend(_damaged(line, fault))
        with desk.lock:
            batch.counts["failed" if is_error else "completed"] += 1
        done = number
    ending = "completed" if done == len(batch.requests) else "expired"
    ending = "cancelled" if batch.cancelled.is_set() and ending != "completed" else ending
    for request in batch.requests[done:]:
        error = {"code": _SKIPPED[ending], "message": f"the batch {ending} before this request"}
        errors.append(_line(request["custom_id"], response=None, error=error))
        batch.counts["failed"] += 1
    if behavior.batch == "shuffled":
        output.reverse()
    with desk.lock:
        for kind, lines in (("output", output), ("error", errors)):
            if lines:
                content = b"".join(lines)
                name = f"{batch.id}_{kind}.jsonl"
                batch.files[kind] = desk.store(StoredFile(content, name, "batch_output")).id
        batch.becomes(ending)


def _result(emulator: EmulatorServer, batch: Batch, request: Json, fault: str) -> tuple[Json, bool]:
    """Return what stands in the line of a request, and whether it is an error."""
    if fault == "error":
        return {"response": None, "error": {"code": "internal_error", "message": "broken"}}, True
    if fault == "http":
        return {"response": _response(500, default_error(500)), "error": None}, True
    try:
        record = emulator.runs.create(
            request["body"], emulator.engine, batch.behavior, 0.0, emulator.chunk_chars
        )
    except RequestError as refused:
        return {"response": _response(refused.status, refused.envelope()), "error": None}, True
    record.finish()
    body = record.state()
    batch.tokens.update(
        {name: body["usage"][name] for name in ("input_tokens", "output_tokens", "total_tokens")}
        if body["usage"]
        else {}
    )
    return {"response": _response(200, body), "error": None}, False


def _response(status: int, body: Json) -> Json:
    return {"status_code": status, "request_id": str(uuid.uuid4()), "body": body}


def _line(custom_id: str, response: Json | None, error: Json | None) -> bytes:
    whole = {
        "id": f"batch_req_{uuid.uuid4()}",
        "custom_id": custom_id,
        "response": response,
        "error": error,
    }
    return json.dumps(whole, ensure_ascii=False).encode() + b"\n"


def _damaged(line: bytes, fault: str) -> Sequence[bytes]:
    if fault == "damaged":
        return [line[: len(line) // 2] + b"\n"]
    return {"missing": [], "doubled": [line, line]}.get(fault, [line])
