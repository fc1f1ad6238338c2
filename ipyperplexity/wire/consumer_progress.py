"""What perplexity.ai does while it works: searches, pages read, goals of its plan.

Plans come again with each record, in several blocks, and grow; each thing is told once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ipyperplexity.events import Event, Fetching, ReasoningDelta, Searching
from ipyperplexity.wire import values
from ipyperplexity.wire.consumer_constants import PLAN_BLOCK
from ipyperplexity.wire.consumer_documents import Document
from ipyperplexity.wire.consumer_steps import Steps, read_steps


class Progress:
    """Keeps account of what has been told.

    Attributes
    ----------
    questions : list of str
        What the plan's steps ask back.

    Examples
    --------
    >>> progress, steps = Progress(), Steps(queries=["capital of Norway"])
    >>> list(progress.read([], steps)), list(progress.read([], steps))
    ([Searching(queries=('capital of Norway',))], [])
    """

    def __init__(self) -> None:
        self.questions: list[str] = []
        self._queries: dict[str, None] = {}
        self._urls: dict[str, None] = {}
        self._goals: dict[str, str] = {}
        self._thoughts: dict[str, None] = {}
        self._read: Steps | None = None
        self._has_thought = False

    def read(self, touched: Iterable[Document], steps: Steps) -> Iterator[Event]:
        """Yield what is new in the plans of these documents, and in the answer's steps."""
        for document in touched:
            if isinstance(plan := document.fields.get(PLAN_BLOCK), dict):
                found = read_steps(values.items(plan.get("steps")))
                self.questions = found.questions or self.questions
                yield from self._steps(found)
                yield from self._plan(plan)
        if steps is not self._read:
            self._read = steps
            yield from self._steps(steps)

    def _steps(self, steps: Steps) -> Iterator[Event]:
        if queries := _new(self._queries, steps.queries):
            yield Searching(queries)
        if urls := _new(self._urls, steps.urls):
            yield Fetching(urls)
        for thought in _new(self._thoughts, steps.thoughts):
            yield self._thought(thought)

    def _plan(self, plan: dict[str, Any]) -> Iterator[Event]:
        for index, goal in enumerate(values.objects(plan.get("goals"))):
            text = values.clean(values.text(goal.get("description"))).strip()
            # Several blocks hold the same plan; the last record may word it anew.
            name = str(goal.get("id", index))
            told = self._goals.get(name)
            if not text or (told is None and text in self._goals.values()):
                continue
            if told is None:
                yield self._thought(text)
            elif text.startswith(told) and text != told:
                yield ReasoningDelta(text[len(told) :])
            else:
                continue
            self._goals[name] = text

    def _thought(self, text: str) -> ReasoningDelta:
        lead, self._has_thought = "\n" if self._has_thought else "", True
        return ReasoningDelta(lead + values.clean(text))

    def note(self, text: str) -> Iterator[Event]:
        """Yield what the service says beside the answer, such as a report's cover note."""
        if text.strip():
            yield self._thought(text.strip())


def _new(told: dict[str, None], found: list[str]) -> tuple[str, ...]:
    new = tuple(dict.fromkeys(word for word in map(values.clean, found) if word not in told))
    told.update(dict.fromkeys(new))
    return new
