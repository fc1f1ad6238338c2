"""The runs that a server has made: planned, stored, followed, cancelled.

Invariant: a run is planned before its first byte is sent, so a stream, a plain answer and a later
GET tell the same; one condition guards each record, and no thread outlives ``stop``.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections import OrderedDict
from collections.abc import Generator
from typing import Any

from .checks import RequestError, check_request
from .compose import page_answer
from .engine import Engine, Plan
from .faults import Behavior
from .honest import NO_PICTURES, nothing_allowed
from .prices import CHARS_PER_TOKEN
from .reading import Reading, read_request
from .responses import Run, final, response, tool_items
from .structured import fill, fill_json
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
        reading = read_request(request, self._earlier(request))
        plan = _plan(reading, engine, behavior)
        text, calls = _words(reading, plan)
        text += behavior.extra_text if not calls else ""
        budget = reading.max_output_tokens
        cut_off = budget is not None and len(text) > budget * CHARS_PER_TOKEN
        if cut_off and budget is not None:
            text = text[: budget * CHARS_PER_TOKEN]
        run = Run(reading, plan, text, behavior, cut_off, calls=calls)
        record = Record(run, pace, chunk_chars)
        with self._lock:
            self._records[run.id] = record
            while len(self._records) > _KEPT:
                self._records.popitem(last=False)
        if request.get("background"):
            run.status = "queued"
            record.log = []
        return record

    def _earlier(self, request: Json) -> list[str]:
        """Return the questions of the conversation that ``previous_response_id`` continues."""
        questions: list[str] = []
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
            reading = record.run.reading
            questions = [*_own_questions(reading), *questions]
            name, first = reading.request.get("previous_response_id"), False
        return questions

    def start_background(self, record: Record) -> None:
        """Let a thread work the run off."""

        def work() -> None:
            record.cancelled.wait(min(0.2, record.pace * 10))
            with record.changed:
                record.run.status = "in_progress"
            for _ in record.produce():
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
    if reading.function is not None:
        return Plan("")
    plan = Plan(nothing_allowed())
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


def _words(reading: Reading, plan: Plan) -> tuple[str, tuple[Json, ...]]:
    """Return the text of the answer and the function calls that take its place."""
    titles = [result.title for result in plan.results]
    urls = [result.url for result in plan.results]
    if reading.function is not None:
        made = fill(
            reading.function.get("parameters") or {"type": "object"}, [reading.question], [], []
        )
        name = uuid.uuid4()
        call: Json = {
            "type": "function_call",
            "id": f"fc_{name}",
            "call_id": f"call_{name}",
            "name": reading.function["name"],
            "arguments": json.dumps(made, ensure_ascii=False),
            "status": "completed",
        }
        return "", (call,)
    if reading.schema is not None:
        return fill_json(reading.schema, plan.sentences, titles, urls), ()
    text = f"{NO_PICTURES}\n\n{plan.text}" if reading.pictures else plan.text
    return text, ()
