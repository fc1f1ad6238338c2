"""A plain reader of the web endpoint for the tests of the emulator: none of our client code."""

from __future__ import annotations

import json
import re
import uuid
from typing import Any

from .http_help import Reply, call

TOKEN = "eyJ-known-session"
EMAIL = "ada@example.org"
COOKIE = {"Cookie": f"__Secure-next-auth.session-token={TOKEN}"}
ASK_PATH = "/rest/sse/perplexity_ask"
QUESTION = "What is a lambda?"


def web_body(question: str = QUESTION, **params: Any) -> dict[str, Any]:
    given = {
        "frontend_uuid": str(uuid.uuid4()),
        "mode": "copilot",
        "model_preference": "glm_5_2",
        "version": "2.18",
        "is_incognito": True,
        **params,
    }
    return {
        "query_str": question,
        "params": {name: value for name, value in given.items() if value is not None},
    }


def ask_web(
    server: Any, question: str = QUESTION, /, cookie: dict[str, str] = COOKIE, **params: Any
) -> Reply:
    return call(server, "POST", ASK_PATH, web_body(question, **params), cookie)


def read_sse(body: bytes) -> list[tuple[str, str]]:
    """Name and data of each event, by the letter of the standard."""
    events: list[tuple[str, str]] = []
    name, data = "", []
    for line in re.split("\r\n|\n|\r", body.decode().removeprefix("\ufeff")):
        if not line:
            if data:
                events.append((name, "\n".join(data)))
            name, data = "", []
        elif not line.startswith(":"):
            field, _, value = line.partition(":")
            if field == "event":
                name = value.removeprefix(" ")
            elif field == "data":
                data.append(value.removeprefix(" "))
    return events


def web_events(reply: Reply) -> list[dict[str, Any]]:
    """The objects of all events but the last, which only ends the stream."""
    assert reply.status == 200, reply.body
    return [json.loads(data) for name, data in read_sse(reply.body) if name == "message"]


def documents(events: list[dict[str, Any]]) -> dict[str, Any]:
    """What each usage's document is at the end, from snapshots and from patches."""
    found: dict[str, Any] = {}
    for event in events:
        for block in event.get("blocks") or []:
            usage = block["intended_usage"]
            payload = next(value for name, value in block.items() if name != "intended_usage")
            if "diff_block" in block:
                for patch in payload["patches"]:
                    found[usage] = patched(found.get(usage), patch, payload["field"])
            elif "chunk_starting_offset" in payload:
                at = payload["chunk_starting_offset"]
                old = found.get(usage, {})
                chunks = old.get("chunks", [])[:at] + payload["chunks"]
                new = {name: v for name, v in payload.items() if name != "chunk_starting_offset"}
                found[usage] = {**old, **new, "chunks": chunks}
            else:
                given = {name: value for name, value in payload.items() if value is not None}
                found[usage] = {**found.get(usage, {}), **given}
    return found


def patched(document: Any, patch: dict[str, Any], field: str) -> Any:
    path = patch["path"].removeprefix(f"/{field}")
    if path == "":
        return patch["value"]
    *steps, last = [s.replace("~1", "/").replace("~0", "~") for s in path.split("/")[1:]]
    place = document
    try:
        for step in steps:
            place = place[int(step)] if isinstance(place, list) else place[step]
        op = patch.get("op", "replace")
        if isinstance(place, list):
            at = len(place) if last == "-" else int(last)
            if op == "add":
                place.insert(at, patch["value"])
            elif op == "replace":
                place[at] = patch["value"]
            elif op == "remove":
                del place[at]
        elif op in ("add", "replace"):
            place[last] = patch["value"]
        elif op == "remove":
            del place[last]
    except KeyError:
        pass
    return document


def streamed_text(found: dict[str, Any], usage: str = "ask_text") -> str:
    return "".join(found[usage]["chunks"])


def answer_of(events: list[dict[str, Any]]) -> str:
    found = documents(events)["ask_text"]
    return found.get("answer") or "".join(found["chunks"])
