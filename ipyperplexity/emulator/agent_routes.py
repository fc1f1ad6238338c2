"""The Agent API over HTTP: create, read, resume and cancel a run (official-api 2 to 6)."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable
from typing import Any

from .checks import RequestError
from .faults import default_error
from .json_body import read_object
from .runs import Record
from .sending import Call, Event, Sender

__all__ = ["cancel_run", "create_run", "list_files", "read_run"]

_KEEPALIVE = "response.keepalive"
_NULLS = ("sequence_number", "response", "item", "output_index", "delta", "thought", "error")


def create_run(sender: Sender, call: Call) -> None:
    """Serve ``POST /v1/responses``."""
    emulator, behavior = sender.emulator, sender.behavior
    record = emulator.runs.create(
        read_object(call.body), emulator.engine, behavior, sender.pace, sender.chunk_chars
    )
    request = record.run.reading.request
    if request.get("background"):
        emulator.runs.start_background(record)
    if request.get("stream"):
        try:
            background = record.log is not None
            _stream(sender, record, record.follow(-1) if background else record.produce())
        finally:
            if not background:
                # Also when the client left before the first event was made.
                record.finish()
    elif request.get("background"):
        sender.reply_json(200, record.first_state(), record.run.id)
    else:
        record.cancelled.wait(sender.pace * 10)
        record.finish()
        if behavior.terminal == "error":
            sender.reply_json(500, default_error(500), record.run.id)
        else:
            sender.reply_json(200, record.state(), record.run.id, breakable=True)


def read_run(sender: Sender, call: Call) -> None:
    """Serve ``GET /v1/responses/{id}``, as a stream when the query says so."""
    record = _found(sender, call)
    if call.query.get("stream") != ["true"]:
        sender.reply_json(200, record.polled(), record.run.id)
        return
    cursor = call.query.get("starting_after", [""])[-1]
    known = cursor.isdigit() and record.log is not None and int(cursor) <= len(record.log)
    if not known or sender.behavior.expired_cursor:
        raise RequestError("invalid or expired cursor", param="starting_after")
    _stream(sender, record, record.follow(int(cursor)))


def _found(sender: Sender, call: Call) -> Record:
    record = sender.emulator.runs.get(call.names[0])
    if record is None:
        raise RequestError("resource not found", kind="not_found", status=404)
    return record


def list_files(sender: Sender, call: Call) -> None:
    """Serve ``GET /v1/responses/{id}/files``: no run of the engine makes any."""
    record = _found(sender, call)
    sender.reply_json(200, {"object": "list", "data": []}, record.run.id)


def cancel_run(sender: Sender, call: Call) -> None:
    """Serve ``POST /v1/responses/{id}/cancel``."""
    name = call.names[0]
    sender.reply_json(200, sender.emulator.runs.cancel(name), name)


def _stream(sender: Sender, record: Record, source: Generator[dict[str, Any], None, None]) -> None:
    pause = 0.0
    if sender.behavior.framing == "length":
        # All events are made before the first is sent: the pauses come afterwards.
        pause, record.pace = record.pace, 0.0
    sender.stream(
        _named(source, sender.behavior.event_names is not False),
        headers=sender.limits(record.run.id),
        keepalive=(_KEEPALIVE, json.dumps({"type": _KEEPALIVE, **dict.fromkeys(_NULLS)})),
        pause=pause,
    )


def _named(source: Iterable[dict[str, Any]], names: bool) -> Generator[Event, None, None]:
    for event in source:
        data = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        yield (event["type"] if names else ""), data
