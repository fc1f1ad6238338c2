"""The Batch API over HTTP: files of requests, worked off by the engine (docs/agent-api/batch).

Invariant: one lock guards the files and batches of a server; the same ``Idempotency-Key`` never
makes a second batch.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from .batch_files import StoredFile, check_lines, read_form
from .batch_work import ENDED, Batch, work
from .faults import default_error
from .json_body import read_object
from .rules import Check, RequestError, object_of, refuse, text, words
from .sending import Call, Sender

__all__ = [
    "cancel_batch", "create_batch", "create_file", "delete_file", "list_batches", "list_files",
    "read_batch", "read_content", "read_file",
]  # fmt: skip

Json = dict[str, Any]


class _Desk:
    """The files and batches of one server."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.files: dict[str, StoredFile] = {}
        self.batches: dict[str, Batch] = {}
        self.by_key: dict[str, Batch] = {}

    def file(self, name: str) -> StoredFile:
        with self.lock:
            found = self.files.get(name)
        if found is None:
            raise RequestError("resource not found", kind="not_found", status=404)
        return found

    def batch(self, name: str) -> Batch:
        with self.lock:
            found = self.batches.get(name)
        if found is None:
            raise RequestError("resource not found", kind="not_found", status=404)
        return found

    def store(self, file: StoredFile) -> StoredFile:
        with self.lock:
            self.files[file.id] = file
        return file


_desks: weakref.WeakKeyDictionary[Any, _Desk] = weakref.WeakKeyDictionary()
_guard = threading.Lock()


def _desk(sender: Sender) -> _Desk:
    with _guard:
        return _desks.setdefault(sender.emulator, _Desk())


# --- files ---------------------------------------------------------------------------------------


def create_file(sender: Sender, call: Call) -> None:
    """Serve ``POST /v1/files``."""
    fields = read_form(call.request.headers.get("content-type", ""), call.body)
    for name in fields.keys() - {"file", "purpose"}:
        raise RequestError(f"{name} is not supported", param=name)
    if fields.get("purpose", (None, b""))[1] != b"batch":
        raise RequestError('purpose: must be "batch"', param="purpose")
    filename, content = fields.get("file", (None, b""))
    if filename is None:
        raise RequestError("file: a file is required", param="file")
    check_lines(content)
    file = _desk(sender).store(StoredFile(content, filename, "batch"))
    sender.reply_json(200, file.shown())


def list_files(sender: Sender, call: Call) -> None:
    """Serve ``GET /v1/files``."""
    desk = _desk(sender)
    purpose, order = (call.query.get(name, [""])[-1] for name in ("purpose", "order"))
    with desk.lock:
        files = [file for file in desk.files.values() if purpose in ("", file.purpose)]
    if order != "asc":
        files.reverse()
    sender.reply_json(200, _page([file.shown() for file in files], call))


def read_file(sender: Sender, call: Call) -> None:
    """Serve ``GET /v1/files/{id}``."""
    sender.reply_json(200, _desk(sender).file(call.names[0]).shown())


def read_content(sender: Sender, call: Call) -> None:
    """Serve ``GET /v1/files/{id}/content``."""
    content = _desk(sender).file(call.names[0]).content
    sender.reply(200, content, {"Content-Type": "application/octet-stream", **sender.limits()})


def delete_file(sender: Sender, call: Call) -> None:
    """Serve ``DELETE /v1/files/{id}``."""
    desk = _desk(sender)
    file = desk.file(call.names[0])
    with desk.lock:
        desk.files.pop(file.id, None)
    sender.reply_json(200, {"id": file.id, "object": "file", "deleted": True})


def _page(items: list[Json], call: Call) -> Json:
    given = call.query.get("limit", ["20"])[-1]
    if not given.isdigit() or not 1 <= int(given) <= 100:
        raise RequestError("limit: must be a number from 1 to 100", param="limit")
    after = call.query.get("after", [""])[-1]
    ids = [item["id"] for item in items]
    if after and after not in ids:
        raise RequestError("after: unknown id", param="after")
    rest = items[ids.index(after) + 1 :] if after else items
    page = rest[: int(given)]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(rest) > len(page),
    }


# --- batches -------------------------------------------------------------------------------------


def _metadata(value: Any, path: str) -> None:
    if not isinstance(value, dict) or len(value) > 16:
        raise refuse(path, "must be an object of at most 16 pairs")
    for name, inner in value.items():
        text(64, 1)(name, path)
        text(512)(inner, f"{path}.{name}")


def _unsupported(value: Any, path: str) -> None:
    raise refuse(path, "is not supported")


_REQUEST: Check = object_of(
    {
        "input_file_id": text(200, 1),
        "endpoint": words("/v1/responses"),
        "completion_window": words("24h"),
        "metadata": _metadata,
        "output_expires_after": _unsupported,
    },
    ["input_file_id", "endpoint"],
)


def create_batch(sender: Sender, call: Call) -> None:
    """Serve ``POST /v1/batches``; a repeated ``Idempotency-Key`` gives the first one's batch."""
    desk, body = _desk(sender), read_object(call.body)
    if not isinstance(body, dict):
        raise RequestError("request body must be a JSON object")
    _REQUEST(body, "")
    key = call.request.headers.get("idempotency-key", "")
    with desk.lock:
        batch = desk.by_key.get(key) if key else None
        is_new = batch is None
        if batch is None:
            file = desk.files.get(body["input_file_id"])
            if file is None or file.purpose != "batch":
                raise RequestError("input_file_id: no such batch file", param="input_file_id")
            batch = Batch(body, file, sender.behavior)
            desk.batches[batch.id] = batch
            if key:
                desk.by_key[key] = batch
        shown = batch.shown()
    if is_new:
        thread = threading.Thread(
            target=work,
            args=(sender.emulator, desk, batch, sender.pace),
            name="emulator-batch",
            daemon=True,
        )
        thread.start()
    if sender.behavior.batch == "lost-reply":
        sender.reply_json(502, default_error(502))
    else:
        sender.reply_json(200, shown)


def list_batches(sender: Sender, call: Call) -> None:
    """Serve ``GET /v1/batches``."""
    desk = _desk(sender)
    with desk.lock:
        shown = [batch.shown() for batch in reversed(desk.batches.values())]
    sender.reply_json(200, _page(shown, call))


def read_batch(sender: Sender, call: Call) -> None:
    """Serve ``GET /v1/batches/{id}``."""
    desk = _desk(sender)
    batch = desk.batch(call.names[0])
    with desk.lock:
        shown = batch.polled()
    sender.reply_json(200, shown)


def cancel_batch(sender: Sender, call: Call) -> None:
    """Serve ``POST /v1/batches/{id}/cancel``."""
    desk = _desk(sender)
    batch = desk.batch(call.names[0])
    with desk.lock:
        if batch.status in ENDED:
            raise RequestError(f'batch "{batch.id}" is already {batch.status}')
        if not batch.cancelled.is_set():
            batch.becomes("cancelling")
        batch.cancelled.set()
        batch.released.set()
        shown = batch.shown()
    sender.reply_json(200, shown)
