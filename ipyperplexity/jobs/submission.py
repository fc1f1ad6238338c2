"""Leaving a question to the service, and its record, from which the question can be made again.

Invariant: a question is sent once, and never again when it may have arrived: a run whose id nobody
knows goes on all the same, and is billed; the service lists none.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

from ipyperplexity.answer import Answer, Turn
from ipyperplexity.asking import Asking
from ipyperplexity.errors import (
    Interrupted,
    InvalidRequestError,
    NetworkError,
    PerplexityError,
    ServerError,
    StreamError,
)
from ipyperplexity.events import Event, Started
from ipyperplexity.net.redact import redact_json
from ipyperplexity.net.retry import RetryPolicy
from ipyperplexity.question import OPTIONS, Question
from ipyperplexity.service import CALL_TIMEOUT, Service
from ipyperplexity.store.job_store import JobRecord
from ipyperplexity.wire import agent_reading, agent_runs
from ipyperplexity.wire.base import Wire, WireRequest

#: Set by Jupyter in the kernels that it starts.
NOTEBOOK_VARIABLE = "JPY_SESSION_NAME"
_MAY_RUN = "If the question did arrive, it runs and is billed: it was not sent again."


def submit(service: Service, question: Question, *, stream: bool = False) -> JobRecord:
    """Leave a question to the service; return the record of its run.

    Parameters
    ----------
    service : Service
    question : Question
        Its ``timeout`` does not count: nobody waits here.
    stream : bool
        Whether its run can be followed as a stream later.

    Raises
    ------
    PerplexityError
        If it was not taken, or nobody can tell whether it was.
    Interrupted
        If that is because of an interrupt.
    """
    follow = question.follow
    resume = follow is not None and follow.stored and follow.backend == service.backend
    request = agent_runs.create(question, stream=stream, resume=resume)
    created = dt.datetime.now(dt.UTC)
    id = _send(
        service,
        request,
        afresh=lambda: agent_runs.create(question, stream=stream, resume=False),
    )
    turns = follow.conversation() if follow is not None else ()
    asked = {
        "question": question.text,
        "options": question.given(),
        "schema": question.schema.response_format() if question.schema else None,
        "turns": [[turn.question, turn.text] for turn in turns],
    }
    # A key that somebody pasted into a question goes to no disk.
    asked = redact_json(asked, service.secrets)
    return JobRecord(
        id,
        service.backend,
        service.base_url,
        asked["question"],
        model=request.model,
        created=created,
        updated=created,
        notebook=os.environ.get(NOTEBOOK_VARIABLE, ""),
        options=asked["options"],
        schema=asked["schema"],
        turns=tuple((text, answer) for text, answer in asked["turns"]),
        notices=request.notices,
    )


def _send(service: Service, request: WireRequest, *, afresh: Any) -> str:
    """Send the question; return the id of its run."""
    nobody = _Nobody()
    asking = Asking(
        dataclasses.replace(service, policy=_SentOnce(**vars(service.policy))),
        Wire("agent", agent_runs.create, _read_stream, _read_reply),
        request,
        afresh=afresh,
        stopped=threading.Event(),
        look=nobody.look,
    )
    failure: PerplexityError | None = None
    is_interrupted = False
    try:
        for event in asking.events(time.monotonic(), CALL_TIMEOUT):
            if isinstance(event, Started) and event.id:
                return event.id
        failure = StreamError("The service took the question and named no run.")
    except PerplexityError as error:
        failure = error
    except KeyboardInterrupt:
        is_interrupted = True
    finally:
        asking.close()
    if is_interrupted or failure is None:
        raise Interrupted("stopped while the question was sent; it may run, and be billed")
    if isinstance(failure, NetworkError | StreamError | ServerError):
        failure.hint = f"{failure.hint} {_MAY_RUN}" if failure.hint else _MAY_RUN
    raise service.cleaned(failure)


def _read_stream(frames: Any, asked: WireRequest) -> Iterator[Event]:
    return agent_reading.fold(frames)


def _read_reply(reply: Any, asked: WireRequest) -> Iterator[Event]:
    return agent_runs.read_created(reply)


class _SentOnce(RetryPolicy):
    """Sends a question again only when it was surely not taken (official-api 7)."""

    def delay(self, error: PerplexityError, attempt: int, *, unsent: bool = False) -> float | None:
        status = error.status_code or 0
        # Behind an edge server's 502 or 504 the question may be running.
        if status == 408 or (status >= 500 and status != 503):
            return None
        return super().delay(error, attempt, unsent=unsent)


class _Nobody:
    """Who watches while a question is sent; the request holds it weakly."""

    def look(self) -> None:
        """Do nothing."""


def question_of(record: JobRecord) -> Question:
    """Return the question of a record, as far as a record can hold one.

    Pictures, tools and raw fields are not in it, and of the types of a ``schema`` only their JSON
    schema is: ``answer.data`` then has plain values. An option that this version refuses is left
    out; the service has it.

    Examples
    --------
    >>> record = JobRecord("resp_1", "agent", "", "Why?", options={"limit": 3})
    >>> question_of(record).limit
    3
    """
    options = {name: value for name, value in record.options.items() if name in OPTIONS}
    if record.schema is not None:
        options["schema"] = record.schema
    if record.turns:
        *earlier, (asked, text) = record.turns
        turns = tuple(Turn(*turn) for turn in earlier)
        options["follow"] = Answer(asked, text, turns=turns)
    while True:
        refused: str | None = None
        try:
            return Question.make(record.question, **options)
        except InvalidRequestError as error:
            refused = error.field
        if refused not in options:
            # Whatever else is wrong with it, it has been asked.
            return Question(f"(run {record.id})")
        del options[refused]
