"""The Agent API, reading: the frames of a stream to events (official-api 3 and 4).

Names may be missing, null, repeated or unknown, and the set of event types is open. The text may
come as deltas, whole, or both, in several parts and places; it is given out exactly once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from ipyperplexity.errors import PerplexityError, StreamError
from ipyperplexity.events import Event, TextDelta
from ipyperplexity.wire import problems, values
from ipyperplexity.wire.agent_run import Run
from ipyperplexity.wire.sse import Frame

# Half the time of `json.loads`, which looks for blanks at both ends first.
_decode = json.JSONDecoder().raw_decode


def fold(frames: Iterable[Frame]) -> Iterator[Event]:
    """Turn the frames of a stream into events, ending with :class:`Finished`.

    Raises
    ------
    PerplexityError
        If the run failed, or the stream ended without its end marker (:class:`StreamError`). What
        was held back is given out first.
    """
    run = Run()
    failure: PerplexityError | None = None
    splitter, pieces_of = run.splitter, run.parts.pieces
    try:
        for event_name, data, _, _ in frames:
            try:
                message, end = _decode(data)
            except (ValueError, RecursionError):
                message, end = None, -1
            if end != len(data) or "\\ud" in data or "\\uD" in data:
                if data.strip() == "[DONE]":
                    break
                message = values.parse(data)
            if type(message) is not dict:
                if event_name == "error" and data.strip():
                    raise problems.from_run(data, request_id=run.id)
                continue
            kind = message.get("type") or event_name
            if kind == "response.output_text.delta":
                delta = message.get("delta")
                if type(delta) is str and delta:
                    pieces_of(message).append(delta)
                    if splitter.passthrough:
                        yield TextDelta(delta)
                    else:
                        yield from splitter.feed(delta)
                continue
            handler = _HANDLERS.get(kind) if type(kind) is str else None
            if not kind and message.get("error"):
                handler = _on_error
            if handler is not None:
                yield from handler(run, message)
                if run.finished:
                    return
    except PerplexityError as error:
        failure = error
    except RecursionError:
        failure = StreamError("The service sent a record that is nested too deep.")
    yield from splitter.flush()
    if failure is None:
        failure = StreamError("The stream ended before the answer did.", request_id=run.request_id)
    raise failure.with_traceback(None)


def fold_body(reply: Any) -> Iterator[Event]:
    """Turn a whole reply (not a stream) into the same events."""
    run = Run()
    failure: PerplexityError | None = None
    try:
        yield from run.body(values.clean(reply))
    except PerplexityError as error:
        failure = error
    except RecursionError:
        failure = StreamError("The service sent a record that is nested too deep.")
    if failure is not None:
        yield from run.splitter.flush()
        raise failure.with_traceback(None)


# --- tables from names to handlers -----------------------------------------------------------

_Handler = Callable[[Run, dict[str, Any]], Iterator[Event]]


def _on_search_queries(run: Run, message: dict[str, Any]) -> Iterator[Event]:
    yield from run.thought(message)
    yield from run.searching(message.get("queries"))


def _on_search_results(run: Run, message: dict[str, Any]) -> Iterator[Event]:
    yield from run.thought(message)
    yield from run.search_results(message)


def _on_fetch_queries(run: Run, message: dict[str, Any]) -> Iterator[Event]:
    yield from run.thought(message)
    yield from run.fetching(message.get("urls"))


def _on_fetch_results(run: Run, message: dict[str, Any]) -> Iterator[Event]:
    yield from run.thought(message)
    yield from run.fetch_results(message)


def _on_text_done(run: Run, message: dict[str, Any]) -> Iterator[Event]:
    yield from run.whole_text(message, message.get("text"))


def _on_item_done(run: Run, message: dict[str, Any]) -> Iterator[Event]:
    yield from run.item(message.get("item"), message.get("output_index"))


def _on_arguments_delta(run: Run, message: dict[str, Any]) -> Iterator[Event]:
    run.calls.piece(message)
    return iter(())


def _on_arguments_done(run: Run, message: dict[str, Any]) -> Iterator[Event]:
    run.calls.whole(message)
    return iter(())


def _on_item_added(run: Run, message: dict[str, Any]) -> Iterator[Event]:
    # Of all items only a call is complete from its beginning (official-api 4.2).
    item = message.get("item")
    if isinstance(item, dict) and item.get("type") == "function_call":
        run.calls.item(item, message.get("output_index"))
    return iter(())


#: What a record may say of itself in spite of the event's name.
_OTHER_ENDS = ("failed", "cancelled", "incomplete", "requires_action")


def _on_end(status: str) -> _Handler:
    def handler(run: Run, message: dict[str, Any]) -> Iterator[Event]:
        response = message.get("response")
        nested = response if isinstance(response, dict) else {}
        # The two reported places of a failure (official-api 4.3, 9): on the event, or nested.
        error = message.get("error") or nested.get("error")
        ended = status
        if status in ("completed", "incomplete") and nested.get("status") in _OTHER_ENDS:
            ended = cast("str", nested["status"])
        yield from run.terminal({**nested, "error": error} if error else nested, ended)

    return handler


def _on_error(run: Run, message: dict[str, Any]) -> Iterator[Event]:
    error = message.get("error") or {
        name: message.get(name) for name in ("message", "code") if message.get(name)
    }
    raise problems.from_run(error, request_id=run.id)


_HANDLERS: dict[str, _Handler] = {
    "response.created": lambda run, message: run.started(message.get("response")),
    "response.in_progress": lambda run, message: run.started(message.get("response")),
    "response.queued": lambda run, message: run.started(message.get("response")),
    "response.reasoning.started": lambda run, message: run.thought(message),
    "response.reasoning.stopped": lambda run, message: run.thought(message),
    "response.reasoning.search_queries": _on_search_queries,
    "response.reasoning.search_results": _on_search_results,
    "response.reasoning.image_search_queries": _on_search_queries,
    "response.reasoning.image_search_results": lambda run, message: run.image_results(message),
    "response.reasoning.fetch_url_queries": _on_fetch_queries,
    "response.reasoning.fetch_url_results": _on_fetch_results,
    "response.output_text.done": _on_text_done,
    "response.output_item.added": _on_item_added,
    "response.output_item.done": _on_item_done,
    "response.function_call_arguments.delta": _on_arguments_delta,
    "response.function_call_arguments.done": _on_arguments_done,
    "response.completed": _on_end("completed"),
    "response.incomplete": _on_end("incomplete"),
    "response.requires_action": _on_end("requires_action"),
    "response.failed": _on_end("failed"),
    "response.cancelled": _on_end("cancelled"),
    "error": _on_error,
    "response.error": _on_error,
}
