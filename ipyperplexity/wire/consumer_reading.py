"""perplexity.ai's own endpoint, reading: the records of a stream to events (consumer-web 2).

Any record may lack anything, and the same text comes in several places and forms. One of them is
read at a time; the last is authoritative. Bad records are skipped and counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ipyperplexity.errors import PerplexityError, StreamError
from ipyperplexity.events import Event, SourcesFound, Started, TextReplaced
from ipyperplexity.wire import consumer_constants as constants
from ipyperplexity.wire import consumer_problems as problems
from ipyperplexity.wire import values
from ipyperplexity.wire.base import WireRequest
from ipyperplexity.wire.consumer_documents import Document, Documents
from ipyperplexity.wire.consumer_ending import Ending, finished, reported_model
from ipyperplexity.wire.consumer_forms import Form, answer_form
from ipyperplexity.wire.consumer_progress import Progress
from ipyperplexity.wire.consumer_sources import Accumulated, SourceList, read_sources
from ipyperplexity.wire.consumer_steps import (
    Steps,
    TextField,
    read_text,
    reports_in,
)
from ipyperplexity.wire.consumer_text import GivenText
from ipyperplexity.wire.renumbering import renumbered
from ipyperplexity.wire.sse import Frame


def fold(frames: Iterable[Frame], request: WireRequest) -> Iterator[Event]:
    """Turn the frames of a stream into events, ending with ``Finished``.

    Raises
    ------
    PerplexityError
        If the run failed or asks back, or the stream ended without its end marker
        (:class:`StreamError`). What was held back is given out first.
    """
    run = _Run(request.model)

    def read() -> Iterator[Event]:
        for frame in frames:
            if frame.event == constants.END_EVENT or frame.data.strip() == constants.DONE:
                run.ended = True
            else:
                yield from run.take(_record(frame.data), frame.data)
            if run.ended:
                break
        yield from run.finish()

    yield from _guarded(run, read)


def fold_body(reply: Any, request: WireRequest) -> Iterator[Event]:
    """Turn a whole JSON reply (not a stream) into the same events: mostly it is an error."""
    run = _Run(request.model)

    def read() -> Iterator[Event]:
        known = {"status", "blocks", "text", "error", "error_code", "error_message", "detail"}
        if not isinstance(reply, dict) or not known & reply.keys():
            raise StreamError("The reply is not an answer of perplexity.ai.")
        yield from run.take(reply, json.dumps(reply))
        yield from run.finish()

    yield from _guarded(run, read)


def _guarded(run: _Run, read: Callable[[], Iterator[Event]]) -> Iterator[Event]:
    failure: PerplexityError | None = None
    try:
        yield from read()
    except PerplexityError as error:
        failure = error
    except RecursionError:
        failure = StreamError("The service sent a record that is nested too deep.")
    if failure is not None:
        yield from run.settle()
        failure.request_id = failure.request_id or run.id
        raise failure.with_traceback(None)


def _record(data: str) -> Any:
    # Halves of surrogate pairs are kept: the other half may be in the next chunk.
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


class _Run:
    """What is known of the answer while its stream is read."""

    def __init__(self, asked: str | None) -> None:
        self.asked = asked
        self.given = GivenText()
        self.ended = False
        self.id: str | None = None
        self._documents = Documents()
        self._record: dict[str, Any] = {}
        self._listed = Accumulated()
        self._progress = Progress()
        self._text = TextField()
        self._steps = Steps()
        self._report = ""
        self._raw_sources: tuple[list[Any], list[Any]] = ([], [])
        self._sources = SourceList()
        self._started: Started | None = None
        self._readable = self._unreadable = 0
        self._almost_ended = False
        self._is_complete = True

    # --- one record -----------------------------------------------------------------------------

    def take(self, record: Any, data: str) -> Iterator[Event]:
        """Take the next record; ``data`` is its JSON."""
        if not isinstance(record, dict):
            self._unreadable += bool(data.strip())
            return
        self._readable += bool(record)
        self._merge(record)
        yield from self._start()
        touched = self._documents.take(record.get("blocks"))
        if constants.REPORT in data:
            for report in reports_in(record, constants.REPORT):
                self._report = report
        error = self._read_text(record)
        yield from self._progress.read(touched, self._steps)
        if not record.keys().isdisjoint(_WITH_SOURCES) or any(map(_has_sources, touched)):
            yield from self._find_sources()
        yield from self._show()
        if failure := problems.problem(record, asked=self.asked, sentence=error):
            raise failure
        self._look_for_the_end(record)

    def _merge(self, record: dict[str, Any]) -> None:
        for name, value in record.items():
            if name == "sources_list":
                self._listed.take(values.items(value))
            elif name != "blocks" and value not in (None, ""):
                self._record[name] = value

    def _start(self) -> Iterator[Event]:
        self.id = self._name("backend_uuid") or self._name("uuid")
        context, known = self._name("context_uuid"), self._started
        # The two come on different records, and stopping the run takes both.
        if (
            known is None
            or (self.id and self.id != known.id)
            or (context and context != known.context)
        ):
            self._started = Started(self.id, reported_model(self._record, self.asked)[0], context)
            yield self._started

    def _name(self, field: str) -> str | None:
        return values.clean(values.text(self._record.get(field))) or None

    def _read_text(self, record: dict[str, Any]) -> str:
        """Read ``text``; return the error sentence that stands in its place, if one does."""
        text = record.get("text")
        if not isinstance(text, str) or not text.strip():
            return ""
        found = read_text(text)
        if found.error:
            return found.error
        self._text = found
        if found.steps is not None:
            self._steps = found.steps
            self._report = self._report or found.steps.report
        return ""

    def _look_for_the_end(self, record: dict[str, Any]) -> None:
        """Apply the end rule of consumer-web 2.3: ``final`` alone comes one record early."""
        last = record.get("final_sse_message")
        is_final = record.get("final") is True
        self._almost_ended = self._almost_ended or is_final
        if (
            problems.status_of(record) == constants.COMPLETED
            or last is True
            or (is_final and last is not False)
        ):
            self.ended = True
            # Before, it only says that the text is not complete yet.
            self._is_complete = record.get("text_completed") is not False

    # --- text -----------------------------------------------------------------------------------

    def _show(self, *, final: bool = False) -> Iterator[Event]:
        form = self._best_form()
        if form is not None:
            yield from self.given.show(form.name, form.pieces, form.changed_from, final=final)

    def _best_form(self) -> Form | None:
        if self._report:
            return Form("report", [self._report])
        return self._answer_form()

    def _answer_form(self) -> Form | None:
        return answer_form(self._documents, self._steps.answer, self._text.plain)

    # --- sources --------------------------------------------------------------------------------

    def _find_sources(self) -> Iterator[Event]:
        numbered, others = self._source_lists()
        if (numbered, others) == self._raw_sources:
            return
        # A later patch changes these lists in place.
        self._raw_sources = ([*map(_copied, numbered)], [*map(_copied, others)])
        found = read_sources(numbered, others)
        if found.sources != self._sources.sources:
            yield SourcesFound(found.sources)
        self._sources = found

    def _source_lists(self) -> tuple[list[Any], list[Any]]:
        """Return the list that markers count, and a second one of the same answer."""
        lists = [
            values.items(_member(document.fields.get(block), "web_results"))
            for block in constants.SOURCE_BLOCKS
            for document in self._documents
        ]
        lists = list(filter(None, lists))
        if lists:
            return lists[0], [entry for others in lists[1:] for entry in others]
        for entries in (
            self._steps.cited,
            values.items(self._record.get("web_results")),
            self._listed.entries,
            self._steps.found,
        ):
            if entries:
                return entries, []
        return [], []

    # --- the end --------------------------------------------------------------------------------

    def settle(self) -> Iterator[Event]:
        """Give out what was held back, and let markers of dropped repeats mean what was kept.

        That is done once, at the end: before, the lists may still change, and a piece of the text
        may end inside a marker.
        """
        yield from self.given.flush()
        text = renumbered(self.given.shown, self._sources.repeats)
        if text != self.given.shown:
            yield TextReplaced(text)

    def finish(self) -> Iterator[Event]:
        """Give out what is left, and say how it ended."""
        if not self._readable:
            count = f" ({self._unreadable} records made no sense)" if self._unreadable else ""
            raise StreamError(f"perplexity.ai answered with nothing that can be read{count}.")
        questions = [*self._steps.questions, *self._progress.questions]
        asks_back = questions and self._answer_form() is None and not self._report
        if asks_back:
            raise problems.asks_back(list(dict.fromkeys(questions)))
        if not (self.ended or self._almost_ended):
            raise StreamError("The stream ended before the answer did.")
        yield from self._show(final=True)
        yield from self.settle()
        beside = self._answer_form() if self._report else None
        note = beside.text if beside is not None and beside.text != self._report else ""
        yield from self._progress.note(note)
        yield finished(
            Ending(
                record=self._record,
                blocks=self._documents.blocks(),
                asked=self.asked,
                id=self.id,
                has_note=bool(note),
                questions=questions,
                unreadable=self._unreadable,
                is_complete=self._is_complete,
            )
        )


#: Members of a record, beside its blocks, that hold sources.
_WITH_SOURCES = {"sources_list", "web_results", "text"}


def _has_sources(document: Document) -> bool:
    return not document.fields.keys().isdisjoint(constants.SOURCE_BLOCKS)


def _copied(entry: Any) -> Any:
    return dict(entry) if isinstance(entry, dict) else entry


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
