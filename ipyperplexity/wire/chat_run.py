"""What is known of a chat completion while it is read (official-api 8).

Nothing about a chunk is certain: ``object`` says nothing, and any member may be missing, null or of
another shape. The text comes in pieces (``delta``), as all so far (``message``), or both; it is
given out once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ipyperplexity.answer_parts import Image
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
from ipyperplexity.wire.chat_calls import ChatCalls
from ipyperplexity.wire.chat_content import read_content, read_thoughts
from ipyperplexity.wire.chat_sources import ChatSources
from ipyperplexity.wire.chat_text import ChatText
from ipyperplexity.wire.usage import read_usage


class ChatRun:
    """What is known of the answer so far.

    Attributes
    ----------
    id : str or None
        The service's name for it.
    has_ended : bool
        Whether the service has said that the answer is complete.
    unreadable : int
        Chunks that were no JSON.
    """

    NOT_ONE = "The reply is not a chat completion."
    WHICH_SERVER = "Check PERPLEXITY_BASE_URL: this may be some other server."

    def __init__(self) -> None:
        self.id: str | None = None
        self.has_ended = False
        self.unreadable = 0
        self._started = False
        self._model: str | None = None
        self._has_choice = False
        self._reason: str | None = None
        self._record: dict[str, Any] = {}
        self._sources = ChatSources()
        self._images: dict[str, Image] = {}
        self._calls = ChatCalls()
        self._text = ChatText()
        self._gives_thoughts_back = False
        self._steps: dict[str, None] = {}
        self._searched: dict[str, None] = {}

    # --- one chunk, or a whole reply --------------------------------------------------------------

    def take(self, chunk: dict[str, Any]) -> Iterator[Event]:
        """Take the next chunk, or the whole reply.

        Raises
        ------
        PerplexityError
            If it reports a failure, or its ``choices`` make no sense.
        """
        choices = chunk.get("choices")
        self._record.update(
            (name, value)
            for name, value in chunk.items()
            if value is not None and (value or name != "choices")
        )
        yield from self._start(chunk)
        if self._sources.take(chunk):
            yield SourcesFound(self._sources.sources)
        if chunk.get("images"):
            yield from self._find_images(chunk["images"])
        choice: dict[str, Any] = {}
        if isinstance(choices, list):
            choice = _first(choices)
            yield from self._read(choice)
        error = chunk.get("error") or choice.get("error")
        if not error and chunk.get("object") == "error":  # as older vLLM has it
            error = chunk
        if error or self._reason == "error":
            raise problems.from_run(values.clean(error or {"type": "error"}))
        if not isinstance(choices, list | None):
            raise StreamError(self.NOT_ONE, hint=self.WHICH_SERVER)
        if chunk.get("object") == "chat.completion.done":
            self.has_ended = True

    def _start(self, chunk: Mapping[str, Any]) -> Iterator[Event]:
        self.id = self.id or _name(chunk.get("id"))
        self._model = _name(chunk.get("model")) or self._model
        if not self._started and (self.id or self._model):
            self._started = True
            yield Started(self.id, self._model)

    def _find_images(self, found: Any) -> Iterator[Event]:
        before = len(self._images)
        for item in values.items(values.clean(found)):
            entry = item if isinstance(item, dict) else {"image_url": item}
            url = entry.get("image_url")
            if isinstance(url, dict):
                url = url.get("url")
            if url := values.text(url):
                self._images.setdefault(
                    url,
                    Image(
                        url,
                        values.text(entry.get("origin_url")),
                        values.text(entry.get("title")),
                        values.whole(entry.get("width")),
                        values.whole(entry.get("height")),
                    ),
                )
        if len(self._images) > before:
            yield ImagesFound(tuple(self._images.values()))

    # --- the choice -------------------------------------------------------------------------------

    def _read(self, choice: dict[str, Any]) -> Iterator[Event]:
        if not choice:
            return
        self._has_choice = True
        delta, message = choice.get("delta"), choice.get("message")
        piece, whole = read_content(delta), read_content(message)
        yield from self._text.think(read_thoughts(delta), read_thoughts(message))
        yield from self._text.write(piece, whole)
        for part, is_whole in ((delta, False), (message, True)):
            if isinstance(part, dict) and not part.keys().isdisjoint(_MORE):
                yield from self._read_more(part, is_whole)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self._reason = values.clean(reason)
            self.has_ended = True

    def _read_more(self, part: Mapping[str, Any], is_whole: bool) -> Iterator[Event]:
        if part.get("reasoning_content"):
            self._gives_thoughts_back = True
        calls = values.objects(part.get("tool_calls"))
        if is_whole:
            self._calls.whole(calls)
        else:
            for call in calls:
                self._calls.fragment(call)
        if self._sources.annotate(part.get("annotations")):
            yield SourcesFound(self._sources.sources)
        for step in values.objects(values.clean(part.get("reasoning_steps"))):
            yield from self._step(step)

    def _step(self, step: Mapping[str, Any]) -> Iterator[Event]:
        """Read a step of a pro search: a thought, and what was looked for or read."""
        thought = values.text(step.get("thought"))
        if thought.strip() and thought not in self._steps:
            self._steps[thought] = None
            lead, self._text.has_thought = "\n" if self._text.has_thought else "", True
            yield ReasoningDelta(lead + thought)
        queries = self._new(values.items(_member(step, "web_search").get("search_keywords")))
        if queries:
            yield Searching(queries)
        pages = values.objects(_member(step, "fetch_url_content").get("contents"))
        if urls := self._new(page.get("url") for page in pages):
            yield Fetching(urls)

    def _new(self, words: Iterable[Any]) -> tuple[str, ...]:
        texts = dict.fromkeys(word for word in words if isinstance(word, str) and word)
        new = tuple(text for text in texts if text not in self._searched)
        self._searched.update(dict.fromkeys(new))
        return new

    # --- the end ----------------------------------------------------------------------------------

    def flush(self) -> Iterator[Event]:
        """Give out what was held back."""
        yield from self._text.flush()

    def finish(self) -> Iterator[Event]:
        """Give out what is left, and say how it ended.

        Raises
        ------
        StreamError
            If it has not ended, or was no chat completion at all.
        """
        if not self.has_ended:
            raise StreamError("The stream ended before the answer did.")
        if not self._has_choice:
            raise StreamError(self.NOT_ONE, hint=self.WHICH_SERVER)
        yield from self.flush()
        thoughts = self._text.thoughts if self._gives_thoughts_back else ""
        yield from self._calls.calls(self._text.shown, thoughts)
        cut = _CUT.get(self._reason or "")
        warnings = [cut] if cut else []
        if self._sources.is_odd:
            warnings.append("The service sent its sources in a form that cannot be read.")
        if self.unreadable:
            warnings.append(f"{self.unreadable} records of the stream could not be read.")
        record = values.clean(self._record)
        yield Finished(
            status="incomplete" if cut else "completed",
            finish_reason=self._reason,
            id=self.id,
            model=self._model,
            usage=read_usage(record.get("usage")),
            stored=False,
            warnings=tuple(warnings),
            related=tuple(_questions(record.get("related_questions"))),
            raw=record,
        )


def _first(choices: list[Any]) -> dict[str, Any]:
    """Return the choice with index 0; where none has an index, the first."""
    for position, choice in enumerate(choices):
        if isinstance(choice, dict):
            index = values.whole(choice.get("index"))
            if (position if index is None else index) == 0:
                return choice
    return {}


def _questions(found: Any) -> Iterator[str]:
    for item in values.items(found):
        question = item.get("question") if isinstance(item, dict) else item
        if isinstance(question, str) and question.strip():
            yield question


def _member(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}


def _name(value: Any) -> str | None:
    return str(values.clean(values.text(value))) or None


#: What a message may hold beside text and thoughts.
_MORE = {"tool_calls", "annotations", "reasoning_steps", "reasoning_content"}

_TOO_LONG = "The service cut the answer short: it reached the limit of tokens. Raise max_tokens."
_FILTERED = "The service cut the answer short: a content filter stopped it."
#: Reasons to end that are not the model's own, in the words of several services.
_CUT = {
    **dict.fromkeys(("length", "max_tokens", "model_length"), _TOO_LONG),
    **dict.fromkeys(("content_filter", "safety", "recitation"), _FILTERED),
    "abort": "The service cut the answer short: it was stopped there.",
}
