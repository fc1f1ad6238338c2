"""The runs that a server has made: planned, stored, followed, cancelled.

Invariant: a run is planned before its first byte is sent, so a stream, a plain answer and a later
GET tell the same; one condition guards each record, and no thread outlives ``stop``.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections import OrderedDict
from collections.abc import Generator, Sequence
from typing import Any

from .checks import RequestError, check_request
from .compose import page_answer
from .engine import Engine, Plan
from .faults import Behavior
from .functions import arguments_for, called, quoted, read_results
from .honest import NO_PICTURES, nothing_allowed
from .prices import CHARS_PER_TOKEN
from .reading import Reading, input_items, read_request
from .responses import Run, final, response, tool_items
from .structured import fill_json
from .wires import events

__all__ = ["Record", "RunStore"]

Json = dict[str, Any]
_KEPT = 2000
# Pauses, in units of the pace, that make a demo look as if it searched and read.
_PAUSES = {
    "response.reasoning.search_queries": 12,
    "response.reasoning.fetch_url_queries": 12,
    "response.reasoning.search_results": 4,
    "response.reasoning.stopped": 4,
    "response.output_text.delta": 1,
}
_FINISHED = frozenset({"completed", "failed", "incomplete", "cancelled"})


class Record:
    """A run with its state: the events so far, whether it was cancelled, whether it is over."""

    def __init__(self, run: Run, pace: float, chunk_chars: int) -> None:
        self.run = run
        self.pace = pace
        self.chunk_chars = chunk_chars
        self.cancelled = threading.Event()
        self.changed = threading.Condition()
        self.log: list[Json] | None = None
        self.over = False
        self._polls_left = run.behavior.queued_polls
        self.released = threading.Event()
        if not self._polls_left:
            self.released.set()

    @property
    def hidden(self) -> bool:
        """Whether a GET may not see it."""
        return self.run.reading.request.get("store") is False

    def produce(self) -> Generator[Json, None, None]:
        """Yield the events at the pace of the run; end it however the iteration ends."""
        try:
            for event in events(self.run, self.chunk_chars, self.cancelled.is_set):
                if self.log is not None:
                    with self.changed:
                        self.log.append(event)
                        self.changed.notify_all()
                yield event
                self.cancelled.wait(self.pace * _PAUSES.get(event["type"], 0))
        finally:
            self.finish()

    def follow(self, after: int) -> Generator[Json, None, None]:
        """Yield the events of a background run whose sequence number is above ``after``."""
        at = after + 1
        while True:
            with self.changed:
                while at >= len(self.log or ()) and not self.over:
                    self.changed.wait(0.2)
                news = (self.log or [])[at:]
                over = self.over
            yield from news
            at += len(news)
            if over and not news:
                return

    def finish(self) -> None:
        """Settle the result: a client that left does not stop the run of the service."""
        with self.changed:
            if self.run.result is None:
                self.run.result = final(self.run, cancelled=self.cancelled.is_set())
                self.run.status = self.run.result["status"]
            self.over = True
            self.changed.notify_all()

    def first_state(self) -> Json:
        """Return the response object with which a background run is created."""
        return response(self.run, "queued", [])

    def polled(self) -> Json:
        """Return the state as a GET shows it, and let a run that waits for GETs come nearer."""
        with self.changed:
            shown = self.state()
            self._polls_left -= 1
            if self._polls_left <= 0:
                self.released.set()
        return shown

    def state(self) -> Json:
        """Return the response object as a GET shows it now."""
        if self.run.result is not None:
            return self.run.result
        output = tool_items(self.run) if self.run.status == "in_progress" else []
        return response(self.run, self.run.status, output)


class RunStore:
    """Plans runs and keeps them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: OrderedDict[str, Record] = OrderedDict()
        self._threads: list[threading.Thread] = []
        self._makers: dict[str, str] = {}

    def create(
        self, body: Any, engine: Engine, behavior: Behavior, pace: float, chunk_chars: int
    ) -> Record:
        """Check a request and plan its run.

        Raises
        ------
        RequestError
            As the service would refuse it.
        """
        request = check_request(body)
        reading = self._read(request)
        chosen = called(reading.offer, behavior.tool_rounds, behavior.tool_calls)
        plan = Plan("") if chosen else _plan(reading, engine, behavior)
        text, calls = _words(reading, plan), _calls(reading, chosen)
        text = "" if calls else text
        text += behavior.extra_text if not calls else ""
        budget = reading.max_output_tokens
        cut_off = budget is not None and len(text) > budget * CHARS_PER_TOKEN
        if cut_off and budget is not None:
            text = text[: budget * CHARS_PER_TOKEN]
        run = Run(reading, plan, text, behavior, cut_off, calls=calls)
        record = Record(run, pace, chunk_chars)
        with self._lock:
            self._records[run.id] = record
            self._makers.update((call["call_id"], run.id) for call in calls)
            while len(self._records) > _KEPT:
                self._records.popitem(last=False)
        if request.get("background"):
            run.status = "queued"
            record.log = []
        return record

    def _read(self, request: Json) -> Reading:
        """Read a request together with the runs that it goes on with."""
        before = self._earlier(request)
        questions = [text for run in before for text in _own_questions(run.reading)]
        items = [item for run in before for item in (*input_items(run.reading.request), *run.calls)]
        rounds, results = read_results([*items, *input_items(request)], self._makers)
        return read_request(request, questions, rounds, results)

    def _earlier(self, request: Json) -> list[Run]:
        """Return the runs that ``previous_response_id`` leads back to, oldest first."""
        runs: list[Run] = []
        name = request.get("previous_response_id")
        first = True
        while name:
            with self._lock:
                record = self._records.get(name)
            if record is None or record.run.status != "completed":
                if first:
                    raise RequestError(
                        f'previous response "{name}" was not found or is not completed',
                        param="previous_response_id",
                    )
                break
            runs.insert(0, record.run)
            name, first = record.run.reading.request.get("previous_response_id"), False
        return runs

    def start_background(self, record: Record) -> None:
        """Let a thread work the run off."""

        def work() -> None:
            going = record.produce()
            next(going, None)  # who streams it is told its id at once, however long it is queued
            while not record.released.wait(0.05) and not record.cancelled.is_set():
                pass
            record.cancelled.wait(min(0.2, record.pace * 10))
            with record.changed:
                record.run.status = "in_progress"
            for _ in going:
                pass

        thread = threading.Thread(target=work, name="emulator-run", daemon=True)
        with self._lock:
            self._threads = [old for old in self._threads if old.is_alive()]
            self._threads.append(thread)
        thread.start()

    def get(self, name: str) -> Record | None:
        """Return a record that a GET may see, or None."""
        with self._lock:
            record = self._records.get(name)
        return None if record is None or record.hidden else record

    def cancel(self, name: str) -> Json:
        """Cancel a run.

        Raises
        ------
        RequestError
            It is unknown or has ended.
        """
        with self._lock:
            record = self._records.get(name)
        if record is None or record.over or record.run.status in _FINISHED:
            raise RequestError(f'response "{name}" is already terminal')
        record.cancelled.set()
        return {"response_id": name, "status": "cancelling"}

    def stop(self) -> None:
        """Cancel all runs and wait for their threads."""
        with self._lock:
            records, threads = list(self._records.values()), self._threads
            self._threads = []
        for record in records:
            record.cancelled.set()
        for thread in threads:
            thread.join(2)


def _own_questions(reading: Reading) -> list[str]:
    return [text for text in [*reading.history[-4:], reading.question] if text.strip()]


def _plan(reading: Reading, engine: Engine, behavior: Behavior) -> Plan:
    plan = Plan("" if reading.results else nothing_allowed())
    if reading.search is not None:
        plan = engine.answer(
            reading.question,
            max_results=reading.max_results,
            searches=reading.searches,
            filters=reading.filters,
            history=reading.history,
            id_start=behavior.id_start,
        )
    if reading.urls:
        terms = engine.terms(reading.question)
        pages = tuple(page for url in reading.urls if (page := engine.fetch(url, terms)))
        text = plan.text if reading.search is not None else page_answer(pages, terms, engine.index)
        read = re.split(r" \[web:\d+\]\s*", text) if pages and reading.search is None else []
        plan = Plan(text, plan.searches, pages, plan.sentences or tuple(filter(None, read)))
    return plan


def _calls(reading: Reading, chosen: Sequence[Json]) -> tuple[Json, ...]:
    """Return the function calls that take the place of an answer."""
    made = []
    for function in chosen:
        name = uuid.uuid4()
        made.append(
            {
                "type": "function_call",
                "id": f"fc_{name}",
                "call_id": f"call_{name}",
                "name": function["name"],
                "arguments": arguments_for(function, reading.question),
                "status": "completed",
            }
        )
    return tuple(made)


def _words(reading: Reading, plan: Plan) -> str:
    """Return the text of the answer."""
    titles = [result.title for result in plan.results]
    urls = [result.url for result in plan.results]
    if reading.schema is not None:
        said = [*(str(output) for _, output in reading.results), *plan.sentences]
        return fill_json(reading.schema, said, titles, urls)
    parts = (NO_PICTURES if reading.pictures else "", quoted(reading.results), plan.text)
    return "\n\n".join(filter(None, parts))
