"""The chat completions wire, plain and streamed, or its retirement (official-api 1 and 8).

Invariant: a stream and a plain reply tell the same text, sources and usage; what a chunk has at
which moment is decided here and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from typing import Any

from .chat_checks import check_chat
from .chat_run import ChatRun, plan_chat
from .faults import default_error
from .json_body import read_object
from .rules import RequestError
from .sending import Call, Event, Sender

__all__ = ["ASYNC_PATHS", "complete_chat", "retirement"]

Json = dict[str, Any]
ASYNC_PATHS = ("/async/chat/completions", "/v1/async/sonar")
_LAST = "chat.completion.done"
_RETIRED = "chat_completions_not_available"
_FAILING = frozenset({"failed-event", "failed-response", "failed-both", "error", "cancelled"})


def retirement(kind: str | None = None) -> RequestError:
    """Return the refusal of a service that has retired the endpoint."""
    return RequestError(
        "Sonar is now the Agent API. Please use /v1/responses; see the migration guide.",
        kind=kind or _RETIRED,
        status=403,
    )


def complete_chat(sender: Sender, call: Call) -> None:
    """Serve ``POST /chat/completions`` and its other names."""
    emulator, behavior = sender.emulator, sender.behavior
    if emulator.chat == "retired" or behavior.retired:
        raise retirement(behavior.retired)
    run = plan_chat(check_chat(read_object(call.body)), emulator.engine, behavior)
    headers = sender.limits(run.id)
    if run.request.get("stream"):
        sender.stream(_events(run, sender.chunk_chars), headers=headers, pause=sender.pace)
    elif behavior.terminal in _FAILING:
        sender.reply_json(500, default_error(500), run.id)
    else:
        emulator.stopped.wait(sender.pace * 10)
        sender.reply_json(200, _whole(run), run.id, breakable=True)


def _base(run: ChatRun, kind: str, choice: Json) -> Json:
    return {
        "id": run.id,
        "model": run.model,
        "created": run.created,
        "object": kind,
        "choices": [{"index": 0, **choice}],
    }


def _extras(run: ChatRun) -> Json:
    """Return what comes late."""
    extras: Json = {}
    if run.wants_images:
        extras["images"] = list(run.images)
    if run.request.get("return_related_questions"):
        extras["related_questions"] = list(run.related)
    return extras


def _whole(run: ChatRun) -> Json:
    message: Json = {"role": "assistant", "content": run.content}
    if run.calls:
        message = {"role": "assistant", "content": None, "tool_calls": _plain_calls(run)}
    reason = None if run.behavior.terminal == "none" else run.finish_reason
    # A plain reply has both halves of a choice too (the official SDK's types).
    delta = {"role": "assistant", "content": ""}
    choice = {"message": message, "delta": delta, "finish_reason": reason}
    usage = {"usage": run.usage(run.content)}
    return {**_base(run, "chat.completion", choice), **usage, **run.sources, **_extras(run)}


def _plain_calls(run: ChatRun) -> list[Json]:
    return [{name: one[name] for name in ("id", "type", "function")} for one in run.calls]


def _events(run: ChatRun, chunk_chars: int) -> Generator[Event, None, None]:
    chunks = _chunks(run, chunk_chars)
    name = "message" if run.behavior.event_names else ""
    for chunk in chunks:
        yield name, json.dumps(chunk, ensure_ascii=False, separators=(",", ":"))


def _pieces(run: ChatRun, size: int) -> Iterator[str]:
    """Cut the content up, so that the tags of the thoughts are in two pieces each."""
    content = run.content
    if not run.thoughts:
        cuts: set[int] = set()
    else:
        cuts = {3, content.index("</think>") + 4, content.index("</think>") + 8}
    cuts.update(range(0, len(content), size))
    edges = [*sorted(cuts - {0}), len(content)]
    start = 0
    for edge in edges:
        if edge > start:
            yield content[start:edge]
            start = edge


def _chunks(run: ChatRun, chunk_chars: int) -> Iterator[Json]:
    concise = run.request.get("stream_mode") == "concise"
    behavior = run.behavior
    written = ""

    def chunk(kind: str, delta: Json, **choice: Any) -> Json:
        choice = {"delta": delta, "finish_reason": None, **choice}
        if behavior.chat_message:
            choice["message"] = {"role": "assistant", "content": written}
            choice["delta"] = {**delta, "role": "assistant"}
        made = _base(run, kind, choice)
        # In full mode they ride on every chunk, in concise mode on the two kinds of the end.
        if concise and not kind.endswith(".done"):
            return made
        return {**made, "usage": run.usage(written, ended=kind == _LAST), **run.sources}

    if concise:
        yield from _reasoning(run, chunk)
    if behavior.nulls:
        yield chunk("chat.completion.chunk", {"role": "assistant", "content": None})
    pieces = list(_pieces(run, chunk_chars))
    for at, piece in enumerate(pieces):
        if at == len(pieces) // 2 and behavior.terminal in _FAILING:
            yield default_error(500)
            return
        written += piece
        delta: Json = {"content": piece}
        # The role comes once, and a reader may not wait for it.
        if at == 0 and not behavior.nulls:
            delta = {"role": "assistant", **delta}
        yield chunk("chat.completion.chunk", delta)
    yield from _called(run, chunk)
    if behavior.terminal == "none":
        return
    last = chunk(
        _LAST,
        {} if not behavior.nulls else {"role": None, "content": None},
        finish_reason=run.finish_reason,
        message={"role": "assistant", "content": written},
    )
    yield {**last, **_extras(run)}


def _reasoning(run: ChatRun, chunk: Any) -> Iterator[Json]:
    """Yield the steps of concise mode; sources and usage come with the last of them."""
    sources = run.sources["search_results"] or []
    for search in run.plan.searches:
        found = {result.url for result in search.results}
        step = {
            "type": "web_search",
            "thought": "Searching the corpus.",
            "web_search": {
                "search_keywords": list(search.queries),
                "search_results": [one for one in sources if one["url"] in found],
            },
        }
        delta = {"role": "assistant", "content": "", "reasoning_steps": [step]}
        yield chunk("chat.reasoning", delta)
    if run.plan.searches:
        yield chunk("chat.reasoning.done", {"role": "assistant", "content": ""})


def _called(run: ChatRun, chunk: Any) -> Iterator[Json]:
    """Yield the calls: the name first, the arguments in two pieces, told apart by ``index``."""
    for call in run.calls:
        arguments = call["function"]["arguments"]
        opened = {**call, "function": {"name": call["function"]["name"], "arguments": ""}}
        yield chunk("chat.completion.chunk", {"role": "assistant", "tool_calls": [opened]})
        half = len(arguments) // 2
        for piece in (arguments[:half], arguments[half:]):
            delta = {"index": call["index"], "function": {"arguments": piece}}
            yield chunk("chat.completion.chunk", {"tool_calls": [delta]})
