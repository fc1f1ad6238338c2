"""Chat-completions, reading: a stream's chunks, or a whole reply, to events (official-api 8).

What ends a stream well: ``data: [DONE]``, or its end after a chunk with a ``finish_reason`` (or of
the kind ``chat.completion.done``). Ollama, vLLM, LM Studio, llama.cpp and the gateways send both,
Perplexity only the latter, some proxies only the former. An end with neither is a broken stream.
After a ``finish_reason`` the text is complete, so a connection that breaks then breaks nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ipyperplexity.errors import NetworkError, PerplexityError, StreamError
from ipyperplexity.events import Event
from ipyperplexity.wire import problems, values
from ipyperplexity.wire.base import WireRequest
from ipyperplexity.wire.chat_run import ChatRun
from ipyperplexity.wire.sse import Frame

# Half the time of `json.loads`, which looks for blanks at both ends first.
_decode = json.JSONDecoder().raw_decode


def fold(frames: Iterable[Frame], request: WireRequest) -> Iterator[Event]:
    """Turn the frames of a stream into events, ending with ``Finished``.

    Raises
    ------
    PerplexityError
        If the service reports a failure, or the stream ended before its answer
        (:class:`StreamError`). What was held back is given out first.
    """
    run = ChatRun()
    yield from _guarded(run, _chunks(run, frames))


def fold_body(reply: Any, request: WireRequest) -> Iterator[Event]:
    """Turn a whole reply (not a stream) into the same events.

    Raises
    ------
    PerplexityError
        If it reports a failure, or is no chat completion (:class:`StreamError`).
    """
    run = ChatRun()
    yield from _guarded(run, _whole(run, reply))


def _guarded(run: ChatRun, events: Iterator[Event]) -> Iterator[Event]:
    failure: PerplexityError | None = None
    try:
        yield from events
    except PerplexityError as error:
        failure = error
    except RecursionError:
        failure = StreamError("The service sent a record that is nested too deep.")
    if failure is not None:
        yield from run.flush()
        failure.request_id = failure.request_id or run.id
        raise failure.with_traceback(None)


def _chunks(run: ChatRun, frames: Iterable[Frame]) -> Iterator[Event]:
    for event_name, data, _, complete in _until_broken(run, frames):
        try:
            chunk, end = _decode(data)
        except (ValueError, RecursionError):
            chunk, end = None, -1
        if end != len(data):
            if data.strip() == "[DONE]":
                run.has_ended = True
                break
            chunk = _parsed(data)
        if type(chunk) is dict:
            if event_name == "error" and "choices" not in chunk:
                raise problems.from_run(values.clean(chunk.get("error") or chunk))
            yield from run.take(chunk)
        elif event_name == "error" and data.strip():
            raise problems.from_run(data)
        elif complete and data.lstrip().startswith("{"):
            run.unreadable += 1
    yield from run.finish()


def _until_broken(run: ChatRun, frames: Iterable[Frame]) -> Iterator[Frame]:
    try:
        yield from frames
    except (StreamError, NetworkError):
        if not run.has_ended:
            raise


def _parsed(data: str) -> Any:
    # Halves of surrogate pairs are kept: the other half may be in the next chunk.
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _whole(run: ChatRun, reply: Any) -> Iterator[Event]:
    if not isinstance(reply, dict):
        raise StreamError(run.NOT_ONE, hint=run.WHICH_SERVER)
    if not reply.get("choices") and not reply.get("error"):
        says_why = isinstance(reply.get("message"), str)
        reply = {**reply, "error": reply if says_why else reply.get("detail")}
    yield from run.take(reply)
    run.has_ended = True
    yield from run.finish()
