"""The questions of a column that the service's Batch API is to answer, and what became of them.

Invariant: a result is read by the code that reads every answer, and each row is handed over as soon
as its outcome is there.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Sequence

from ipyperplexity.answer import Answer
from ipyperplexity.answer_run import Call
from ipyperplexity.errors import InvalidRequestError, PerplexityError
from ipyperplexity.jobs.feed import KnownFeed
from ipyperplexity.jobs.job_stream import JobStream
from ipyperplexity.question import Question
from ipyperplexity.service import Service
from ipyperplexity.wire import agent, agent_runs, batches
from ipyperplexity.wire.batch_results import Result

Outcome = Answer | PerplexityError


class ServerColumn:
    """The questions, each different one once, and what became of them.

    Parameters
    ----------
    service : Service
    questions : sequence of Question
    default_model : str or None
        What is asked when a question names no model.
    on_outcome : callable
        ``on_outcome(row, outcome)`` is called as soon as there is one.

    Attributes
    ----------
    n_done : int
        How many rows have an outcome.
    """

    def __init__(
        self,
        service: Service,
        questions: Sequence[Question],
        default_model: str | None,
        on_outcome: Callable[[int, Outcome], object],
    ) -> None:
        self._service, self._questions, self._on_outcome = service, questions, on_outcome
        self._model = default_model if default_model != agent.DEFAULT_PRESET else None
        self._outcomes: list[Outcome | None] = [None] * len(questions)
        self.n_done = 0
        self._rows: dict[str, list[int]] = {}
        for row in range(len(questions)):
            problem: PerplexityError | None = None
            try:
                self._rows.setdefault(batches.line(self._question(row)).custom_id, []).append(row)
            except InvalidRequestError as error:
                problem = error.with_traceback(None)
            if problem is not None:
                self._put(row, problem)

    def __len__(self) -> int:
        return len(self._outcomes)

    @property
    def custom_ids(self) -> list[str]:
        """The different questions that can be asked and have no outcome."""
        return [name for name, rows in self._rows.items() if self._outcomes[rows[0]] is None]

    def line(self, custom_id: str) -> bytes:
        """Return a question as a line of the input file."""
        return batches.line(self._question(self._rows[custom_id][0])).data

    def settle(self, custom_id: str, outcome: Outcome) -> None:
        """Hand over what became of a question."""
        for row in self._rows[custom_id]:
            self._put(row, outcome)

    def read(self, result: Result, created: dt.datetime) -> Outcome:
        """Return the answer that a result is, read as every answer is, or the error."""
        if result.error is not None or result.reply is None:
            return self._service.cleaned(result.error or PerplexityError("There is no result."))
        failure: PerplexityError | None = None
        try:
            state = agent_runs.read_state(result.reply)
            stream = JobStream(
                self._question(self._rows[result.custom_id][0]),
                Call(self._service, agent.WIRE, cancels=False),
                KnownFeed(state),
                id=str(result.reply.get("id") or result.custom_id),
                created=created,
                hand_over=lambda answer: None,
            )
            for _ in stream:
                pass
            # The service's whole record of each row would be most of a table's memory.
            return dataclasses.replace(stream.answer, raw={})
        except PerplexityError as error:
            failure = self._service.cleaned(error)
        if failure.answer is not None:
            failure.answer = dataclasses.replace(failure.answer, raw={})
        return failure

    def finish(self, why_not: Callable[[str], PerplexityError]) -> list[Outcome]:
        """Return all outcomes; those that are missing are told by ``why_not(custom_id)``."""
        for custom_id, rows in self._rows.items():
            for row in rows:  # an interrupt may have come between two rows of a question
                if self._outcomes[row] is None:
                    self._outcomes[row] = why_not(custom_id)
        return [outcome for outcome in self._outcomes if outcome is not None]

    def _question(self, row: int) -> Question:
        question = self._questions[row]
        if self._model is None or question.model is not None:
            return question
        if any(name in question.extra for name in agent.WHO_ANSWERS):
            return question
        return dataclasses.replace(question, model=self._model)

    def _put(self, row: int, outcome: Outcome) -> None:
        self.n_done += self._outcomes[row] is None
        self._outcomes[row] = outcome
        self._on_outcome(row, outcome)
