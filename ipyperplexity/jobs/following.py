"""Asking the service about a run: always the one address that the question was sent to.

Invariant: a credential goes to no other address than the job's own, whatever is set up meanwhile.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from ipyperplexity.answer_run import Call
from ipyperplexity.errors import ConfigurationError, PerplexityError
from ipyperplexity.jobs.feed import Feed, KnownFeed, RunFeed
from ipyperplexity.jobs.job_stream import JobStream
from ipyperplexity.jobs.kept import Kept
from ipyperplexity.jobs.pace import Pace, passes
from ipyperplexity.jobs.submission import question_of
from ipyperplexity.jobs.why_not import explained
from ipyperplexity.net.address import shown
from ipyperplexity.question import Question
from ipyperplexity.service import Service
from ipyperplexity.store.job_store import JobRecord
from ipyperplexity.wire import agent_reading, agent_runs
from ipyperplexity.wire.agent_runs import RunState
from ipyperplexity.wire.base import Wire, WireRequest

#: Returns the service of a job, its credential looked up anew; it may refuse.
ServiceOf = Callable[[JobRecord], Service]


class Follower:
    """Looks at a run, follows it, and ends it.

    Parameters
    ----------
    kept : Kept
    service_of : callable
        ``service_of(record)`` returns the service to ask; called for each connection.
    question : Question or None
        As it was asked; made of the record if not given.
    pace : Pace
    """

    def __init__(
        self, kept: Kept, service_of: ServiceOf, question: Question | None, pace: Pace
    ) -> None:
        self.pace = pace
        self._kept, self._service_of, self._question = kept, service_of, question

    def look(self) -> RunState:
        """Look at the run once.

        Raises
        ------
        PerplexityError
        """
        request, service = agent_runs.look(self._kept.record.id), self._connect()
        failure: PerplexityError | None = None
        try:
            return agent_runs.read_state(service.fetch(request))
        except PerplexityError as error:
            failure = error
        raise service.cleaned(failure)

    def cancel(self, until: float) -> None:
        """Ask the service to end the run: as often as it takes, since asking twice does no harm.

        Parameters
        ----------
        until : float
            When to give up, on the monotonic clock.

        Raises
        ------
        PerplexityError
            If it could not be asked.
        """
        n = 0
        while True:
            failure: PerplexityError | None = None
            try:
                self._connect().fetch(agent_runs.cancel(self._kept.record.id))
            except PerplexityError as error:
                failure = error
            if failure is None or failure.status_code in (400, 404):
                return  # it has ended already, or is gone (official-api 6): a look will tell
            delay = self.pace.delay(n, failure.retry_after)
            if not passes(failure) or time.monotonic() + delay > until:
                raise failure.with_traceback(None)
            time.sleep(delay)
            n += 1

    def follow(self, *, streams: bool) -> JobStream:
        """Return the run as it goes on, as a stream or by looking at it.

        Raises
        ------
        ConfigurationError
            If there is no credential for its address.
        """
        record = self._kept.record
        feed = RunFeed(
            record.id,
            self._connect,
            self.pace,
            streams=streams,
            status=record.status,
            note=self._kept.note,
            explain=lambda failure: explained(failure, self._kept),
        )
        return self._stream(feed, self._connect())

    def replay(self, state: RunState, *, is_news: bool) -> JobStream:
        """Return a run whose end is known; nobody is asked.

        Parameters
        ----------
        state : RunState
        is_news : bool
            Whether it has just come from the service, so that it is cleaned of secrets.
        """
        record = self._kept.record
        alone = Service(record.backend, record.base_url, _without_session)
        return self._stream(KnownFeed(state), self._connect() if is_news else alone)

    def _stream(self, feed: Feed, service: Service) -> JobStream:
        record = self._kept.record
        if self._question is None:
            self._question = question_of(record)
        return JobStream(
            self._question,
            Call(service, _wire(record), cancels=False),
            feed,
            id=record.id,
            created=record.created,
            hand_over=lambda answer: self._kept.settle(answer, feed.ending, service.hide),
        )

    def _connect(self) -> Service:
        record = self._kept.record
        service = self._service_of(record)
        if (service.backend, service.base_url) == (record.backend, record.base_url):
            return service
        if record.backend == "demo":
            raise ConfigurationError(
                "This job ran on a demo engine that has ended, and its run with it.",
                hint="Ask again: a demo engine lives as long as its process.",
            )
        raise ConfigurationError(
            f"This job runs at {shown(record.base_url)} ({record.backend}), and what is set up now "
            f"is {shown(service.base_url)} ({service.backend}): a key for the one address is not "
            "sent to the other.",
            field="base_url",
            hint=f"Client(backend={record.backend!r}, base_url={shown(record.base_url)!r}) has it.",
        )


def _wire(record: JobRecord) -> Wire:
    """Return what makes an answer of the run that is there already."""
    looking = dataclasses.replace(agent_runs.look(record.id), notices=record.notices)

    def request(question: Question, *, stream: bool = True, resume: bool = True) -> WireRequest:
        return looking

    return Wire(
        "agent",
        request,
        lambda frames, asked: agent_reading.fold(frames),
        lambda reply, asked: agent_reading.fold_body(reply),
    )


def _without_session() -> Any:
    raise ConfigurationError("What is known of this run is on this machine: nobody is asked.")
