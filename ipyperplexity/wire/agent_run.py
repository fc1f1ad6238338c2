"""What is known of an Agent API answer while it is read: its items and its end (official-api 3).

Names may be missing, null, repeated or unknown, and the set of item types is open; each text,
source and call is given out once, in whichever of its places it stands first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ipyperplexity.answer import Image
from ipyperplexity.errors import StreamError
from ipyperplexity.events import (
    Event,
    Fetching,
    Finished,
    ImagesFound,
    ReasoningDelta,
    Searching,
    SourcesFound,
    Started,
)
from ipyperplexity.wire import problems, values
from ipyperplexity.wire.agent_calls import CallCollector
from ipyperplexity.wire.source_collector import SourceCollector
from ipyperplexity.wire.text_parts import TextParts
from ipyperplexity.wire.thinking import ThinkSplitter
from ipyperplexity.wire.usage import read_usage

#: A source's number fits the table's column; a larger one is no number that a text would cite.
_MAX_ID = 2**31


class Run:
    """What is known of the answer while its stream is read."""

    def __init__(self) -> None:
        self.collector = SourceCollector()
        self.splitter = ThinkSplitter()
        self.parts = TextParts()
        self.calls = CallCollector()
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

    def function_call(self, item: Mapping[str, Any], index: Any = None) -> Iterator[Event]:
        self.calls.item(item, index)
        return iter(())

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
        yield from self.calls.calls(_written(response))
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


def _written(response: dict[str, Any]) -> str:
    """Return the text of a final record."""
    messages = (i for i in values.objects(response.get("output")) if i.get("type") == "message")
    parts = (content for item in messages for _, content in _contents(item, None))
    return "".join(values.text(content.get("text")) for content in parts)


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


_ITEMS: dict[str, Callable[[Run, dict[str, Any], Any], Iterator[Event]]] = {
    "message": Run.message,
    "search_results": Run.search_results,
    "people_search_results": Run.search_results,
    "fetch_url_results": Run.fetch_results,
    "image_search_results": Run.image_results,
    "finance_results": Run.finance_results,
    "function_call": Run.function_call,
}
