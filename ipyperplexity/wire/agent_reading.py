"""The Agent API, reading: the frames of a stream to events (official-api 3 and 4).

Names may be missing, null, repeated or unknown, and the set of event types is open. The text may
come as deltas, whole, or both, in several parts and places; it is given out exactly once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from ipyperplexity.answer import Image
from ipyperplexity.errors import PerplexityError, StreamError
from ipyperplexity.events import (
    Event,
    Fetching,
    Finished,
    ImagesFound,
    ReasoningDelta,
    Searching,
    SourcesFound,
    Started,
    TextDelta,
)
from ipyperplexity.wire import problems, values
from ipyperplexity.wire.source_collector import SourceCollector
from ipyperplexity.wire.sse import Frame
from ipyperplexity.wire.text_parts import TextParts
from ipyperplexity.wire.thinking import ThinkSplitter
from ipyperplexity.wire.usage import read_usage

# Half the time of `json.loads`, which looks for blanks at both ends first.
_decode = json.JSONDecoder().raw_decode
#: A source's number fits the table's column; a larger one is no number that a text would cite.
_MAX_ID = 2**31


def fold(frames: Iterable[Frame]) -> Iterator[Event]:
    """Turn the frames of a stream into events, ending with :class:`Finished`.

    Raises
    ------
    PerplexityError
        If the run failed, or the stream ended without its end marker (:class:`StreamError`). What
        was held back is given out first.
    """
    run = _Run()
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
    run = _Run()
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


class _Run:
    """What is known of the answer while its stream is read."""

    def __init__(self) -> None:
        self.collector = SourceCollector()
        self.splitter = ThinkSplitter()
        self.parts = TextParts()
        self.finished = False
        self.id: str | None = None
        self.request_id: str | None = None
        self.queries: dict[str, None] = {}
        self.urls: dict[str, None] = {}
        self.images: dict[str, Image] = {}
        self.warnings: list[str] = []
        self._is_started = False
        self._thought: str | None = None

    def whole_text(self, where: Mapping[str, Any], text: Any) -> Iterator[Event]:
        """Give out what of a part's whole text was not given out yet."""
        if isinstance(text, str) and text and (rest := self.parts.rest(where, text)):
            yield from self.splitter.feed(rest)

    # output items

    def item(self, item: Any, index: Any = None) -> Iterator[Event]:
        if isinstance(item, dict):
            handler = _ITEMS.get(str(item.get("type")))
            if handler is not None:
                yield from handler(self, item, index)

    def message(self, item: dict[str, Any], index: Any) -> Iterator[Event]:
        for where, content in _contents(item, index):
            yield from self.annotations(content)
            yield from self.whole_text(where, content.get("text"))

    def annotations(self, content: Mapping[str, Any]) -> Iterator[Event]:
        found = [
            {"url": note.get("url"), "title": note.get("title"), "kind": "annotation"}
            for note in values.objects(content.get("annotations"))
        ]
        yield from self.sources(found)

    def search_results(self, item: Mapping[str, Any], index: Any = None) -> Iterator[Event]:
        yield from self.searching(item.get("queries"))
        yield from self.sources(
            {
                "id": values.whole(result.get("id"), _MAX_ID),
                "url": result.get("url"),
                "title": result.get("title"),
                "snippet": result.get("snippet"),
                "date": result.get("date"),
                "last_updated": result.get("last_updated"),
            }
            for result in values.objects(item.get("results"))
        )

    def fetch_results(self, item: Mapping[str, Any], index: Any = None) -> Iterator[Event]:
        yield from self.sources(
            {
                "url": page.get("url"),
                "title": page.get("title"),
                "snippet": page.get("snippet"),
                "kind": "fetch",
            }
            for page in values.objects(item.get("contents"))
        )

    def finance_results(self, item: Mapping[str, Any], index: Any = None) -> Iterator[Event]:
        pages = [
            page if isinstance(page, dict) else {"url": page}
            for result in values.objects(item.get("results"))
            for page in values.items(result.get("sources"))
        ]
        yield from self.sources(
            {"url": page.get("url"), "title": page.get("title"), "kind": "annotation"}
            for page in pages
        )

    def image_results(self, item: Mapping[str, Any], index: Any = None) -> Iterator[Event]:
        yield from self.searching(item.get("queries"))
        before = len(self.images)
        for result in values.objects(item.get("results")):
            if url := values.text(result.get("image_url")):
                self.images.setdefault(
                    url,
                    Image(
                        url,
                        values.text(result.get("origin_url")),
                        values.text(result.get("title")),
                        values.whole(result.get("width")),
                        values.whole(result.get("height")),
                    ),
                )
        if len(self.images) > before:
            yield ImagesFound(tuple(self.images.values()))

    def searching(self, queries: Any) -> Iterator[Event]:
        named = (query for query in values.items(queries) if isinstance(query, str) and query)
        new = [query for query in named if query not in self.queries]
        self.queries.update(dict.fromkeys(new))
        if new:
            yield Searching(tuple(dict.fromkeys(new)))

    def fetching(self, urls: Any) -> Iterator[Event]:
        new = [u for u in values.items(urls) if isinstance(u, str) and u and u not in self.urls]
        self.urls.update(dict.fromkeys(new))
        if new:
            yield Fetching(tuple(new))

    def sources(self, found: Iterable[dict[str, Any]]) -> Iterator[Event]:
        changed = [self.collector.add(**source) for source in found]
        if any(changed):
            yield SourcesFound(self.collector.sources())

    def thought(self, message: Mapping[str, Any]) -> Iterator[Event]:
        thought = message.get("thought")
        if isinstance(thought, str) and thought.strip() and thought != self._thought:
            lead = "\n" if self._thought else ""
            self._thought = thought
            yield ReasoningDelta(lead + thought)

    # the beginning and the end

    def started(self, response: Any) -> Iterator[Event]:
        if isinstance(response, dict) and not self._is_started:
            self._is_started = True
            self.id = self.request_id = values.text(response.get("id")) or None
            yield Started(self.id, values.text(response.get("model")) or None)

    def body(self, reply: Any) -> Iterator[Event]:
        """Read a whole reply: an answer, or an error in its place (HTTP 200 can be a failure)."""
        if not isinstance(reply, dict) or not {"output", "status", "error"} & reply.keys():
            raise StreamError("The reply is not an answer of the Agent API.")
        status = reply.get("status") or ("completed" if "output" in reply else "failed")
        yield from self.terminal(reply, str(status))

    def terminal(self, response: dict[str, Any], status: str) -> Iterator[Event]:
        """Read a final response: whatever has not been given out yet, and how it ended."""
        self.id = self.id or values.text(response.get("id")) or None
        yield from self.output(values.objects(response.get("output")))
        if status in ("failed", "cancelled"):
            raise problems.from_run(response.get("error") or {"type": status}, request_id=self.id)
        if status in ("queued", "in_progress", "cancelling"):
            raise StreamError(
                f"The run is not finished: its status is {status}.", request_id=self.id
            )
        yield from self.splitter.flush()
        yield self.finish(response, status)

    def output(self, items: list[dict[str, Any]]) -> Iterator[Event]:
        texts: list[tuple[dict[str, Any], str]] = []
        for index, item in enumerate(items):
            if item.get("type") != "message":
                yield from self.item(item, index)
                continue
            for where, content in _contents(item, index):
                yield from self.annotations(content)
                texts.append((where, values.text(content.get("text"))))
        for rest in self.parts.final_rest(texts):
            yield from self.splitter.feed(rest)

    def finish(self, response: dict[str, Any], status: str) -> Finished:
        self.finished = True
        reason: str | None = None
        if self.parts.differs:
            self.warnings.append(_DIFFERS)
        if status != "completed":
            details = response.get("incomplete_details")
            reason = values.text(details.get("reason")) if isinstance(details, dict) else ""
            reason = reason or status
            self.warnings.append(_CUT.get(reason, f"The service cut the answer short ({reason})."))
        return Finished(
            status="completed" if status == "completed" else "incomplete",
            finish_reason=reason or "stop",
            id=self.id,
            model=values.text(response.get("model")) or None,
            usage=read_usage(response.get("usage")),
            stored=bool(self.id) and status == "completed" and response.get("store") is not False,
            warnings=tuple(self.warnings),
            raw=response,
        )


def _contents(item: dict[str, Any], index: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the content parts of a message, each with its label."""
    for content_index, content in enumerate(values.items(item.get("content"))):
        if isinstance(content, dict):
            where = {"item_id": item.get("id"), "output_index": index}
            yield {**where, "content_index": content_index}, content


_DIFFERS = "The service's final text differs from what it streamed; answer.raw holds it."
_CUT = {
    "max_output_tokens": (
        "The service cut the answer short: it reached the limit of tokens. Raise max_tokens."
    ),
    "max_steps": (
        "The service cut the answer short: it reached the limit of steps. Raise max_steps."
    ),
    "requires_action": "The service waits for a tool's result, which nothing here provides.",
}


# --- tables from names to handlers -----------------------------------------------------------

_Handler = Callable[[_Run, dict[str, Any]], Iterator[Event]]


def _on_search_queries(run: _Run, message: dict[str, Any]) -> Iterator[Event]:
    yield from run.thought(message)
    yield from run.searching(message.get("queries"))


def _on_search_results(run: _Run, message: dict[str, Any]) -> Iterator[Event]:
    yield from run.thought(message)
    yield from run.search_results(message)


def _on_fetch_queries(run: _Run, message: dict[str, Any]) -> Iterator[Event]:
    yield from run.thought(message)
    yield from run.fetching(message.get("urls"))


def _on_fetch_results(run: _Run, message: dict[str, Any]) -> Iterator[Event]:
    yield from run.thought(message)
    yield from run.fetch_results(message)


def _on_text_done(run: _Run, message: dict[str, Any]) -> Iterator[Event]:
    yield from run.whole_text(message, message.get("text"))


def _on_item_done(run: _Run, message: dict[str, Any]) -> Iterator[Event]:
    yield from run.item(message.get("item"), message.get("output_index"))


#: What a record may say of itself in spite of the event's name.
_OTHER_ENDS = ("failed", "cancelled", "incomplete", "requires_action")


def _on_end(status: str) -> _Handler:
    def handler(run: _Run, message: dict[str, Any]) -> Iterator[Event]:
        response = message.get("response")
        nested = response if isinstance(response, dict) else {}
        # The two reported places of a failure (official-api 4.3, 9): on the event, or nested.
        error = message.get("error") or nested.get("error")
        ended = status
        if status == "completed" and nested.get("status") in _OTHER_ENDS:
            ended = cast("str", nested["status"])
        yield from run.terminal({**nested, "error": error} if error else nested, ended)

    return handler


def _on_error(run: _Run, message: dict[str, Any]) -> Iterator[Event]:
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
    "response.output_item.done": _on_item_done,
    "response.completed": _on_end("completed"),
    "response.incomplete": _on_end("incomplete"),
    "response.failed": _on_end("failed"),
    "response.cancelled": _on_end("cancelled"),
    "error": _on_error,
    "response.error": _on_error,
}

_ITEMS: dict[str, Callable[[_Run, dict[str, Any], Any], Iterator[Event]]] = {
    "message": _Run.message,
    "search_results": _Run.search_results,
    "people_search_results": _Run.search_results,
    "fetch_url_results": _Run.fetch_results,
    "image_search_results": _Run.image_results,
    "finance_results": _Run.finance_results,
}
