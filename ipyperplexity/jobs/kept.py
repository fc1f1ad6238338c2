"""What is known of a job, here and on disk: its record, and its answer once that has come.

Invariant: an answer is settled once, and together with the end of its run: a record that says
``completed`` has its answer beside it. A disk that cannot be written is a warning, never an error:
the run is paid for, and goes on.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import threading
import warnings
from collections.abc import Callable
from typing import Any

from ipyperplexity import answer_record
from ipyperplexity.answer import Answer
from ipyperplexity.errors import ConfigurationError, InvalidRequestError, PerplexityWarning
from ipyperplexity.store.job_store import JobRecord, JobStore
from ipyperplexity.wire.agent_runs import ENDED

#: Is given each answer that a job fetches or finds, and whether it is new on this machine.
HandOver = Callable[[Answer, bool], None]


def nobody(answer: Answer, is_new: bool) -> None:
    """Tell nobody of an answer."""


class Kept:
    """A job's record and answer.

    Parameters
    ----------
    record : JobRecord
    store : JobStore
    hand_over : callable
        ``hand_over(answer, is_new)`` is called once, when the answer is there.

    Attributes
    ----------
    record : JobRecord
    answer : Answer or None
        The finished one, as far as it has been fetched or looked up.
    """

    def __init__(self, record: JobRecord, store: JobStore, hand_over: HandOver) -> None:
        self.record = record
        self.answer: Answer | None = None
        self.store = store
        self._hand_over = hand_over
        self._lock = threading.RLock()
        self._has_warned = False

    @property
    def is_over(self) -> bool:
        """Whether the run had ended at the last look."""
        return self.record.status in ENDED

    def begin(self) -> None:
        """Keep the record of a run that has just been made."""
        self._keep(self.record)

    def note(self, status: str) -> None:
        """Keep that a run is as far as this; that it has ended comes with its answer only."""
        with self._lock:
            if status != self.record.status and status not in ENDED and not self.is_over:
                self._keep(self._changed(status=status))

    def settle(self, answer: Answer, status: str, hide: Callable[[str], str]) -> None:
        """Keep the answer of a run that has ended so; the first one counts.

        Parameters
        ----------
        answer : Answer
        status : str
        hide : callable
            Takes the key out of what goes to disk: somebody may have pasted it into the question.
        """
        with self._lock:
            if self.answer is not None:
                return
            self.answer = answer
            record = self._changed(
                status=status,
                model=answer.model or self.record.model,
                cost_usd=answer.usage.cost_usd,
            )
            is_new = self._keep(record, hide(_document(answer)))
        self._hand_over(answer, is_new)

    def find(self) -> Answer | None:
        """Return the answer if it is on this machine."""
        with self._lock:
            if self.answer is not None:
                return self.answer
            known, document = self.record, None
            try:
                document = self.store.answer(self.record.id)
                known = self.store.get(self.record.id) or known
            except ConfigurationError:
                pass  # the service has it too
            answer = _read(document, known.id) if document is not None else None
            if answer is None:
                return None
            self.answer, self.record = answer, known
        self._hand_over(answer, False)
        return answer

    def _changed(self, **facts: Any) -> JobRecord:
        return dataclasses.replace(self.record, updated=dt.datetime.now(dt.UTC), **facts)

    def _keep(self, record: JobRecord, document: str | None = None) -> bool:
        """Keep what is known now; return whether the answer is new on this machine."""
        self.record = record
        problem = ""
        try:
            return self.store.put(record, document)
        except ConfigurationError as error:
            problem = error.message
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"The job goes on, and cannot be noted on this machine: {problem} After a restart "
                f"it can only be found by its id, {record.id}.",
                PerplexityWarning,
                stacklevel=5,
            )
        return document is not None


def _document(answer: Answer) -> str:
    fields = {field.name: getattr(answer, field.name) for field in dataclasses.fields(answer)}
    try:
        return answer_record.dumps(fields)
    except InvalidRequestError:
        # An instance of the user's own type that JSON cannot hold: the text has it too.
        return answer_record.dumps({**fields, "data": None, "data_layout": None})


def _read(document: str, id: str) -> Answer | None:
    try:
        answer = Answer(**answer_record.loads(document.encode(), f"The job {id}"))
    except InvalidRequestError:  # damaged, or of a later version: the service may still have it
        return None
    if answer.error is not None:
        answer.error.answer = answer
    return answer
