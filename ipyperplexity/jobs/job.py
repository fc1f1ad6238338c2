"""A question that was left to the service: look at it, wait for it, watch it, cancel it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

from ipyperplexity import hooks
from ipyperplexity.answer import Answer
from ipyperplexity.errors import (
    Interrupted,
    PerplexityError,
    PerplexityWarning,
    RequestTimeout,
)
from ipyperplexity.jobs.facts import JobFacts
from ipyperplexity.jobs.following import Follower, ServiceOf
from ipyperplexity.jobs.job_stream import JobStream
from ipyperplexity.jobs.kept import HandOver, Kept, nobody
from ipyperplexity.jobs.pace import Pace
from ipyperplexity.jobs.progress import Progress
from ipyperplexity.jobs.submission import submit
from ipyperplexity.jobs.watch import Watch
from ipyperplexity.jobs.why_not import explained, why_not
from ipyperplexity.question import Question
from ipyperplexity.service import Service
from ipyperplexity.store.job_store import JobRecord, JobStore, shared_store
from ipyperplexity.wire import agent_runs


class Job(JobFacts):
    """A question that was left to the service, and goes on there whatever happens here.

    It can be fetched later, also by another process: what it is, and its answer once that has come,
    are kept on disk. Then ``answer.data`` of a ``schema`` has plain values instead of instances of
    your types.

    Parameters
    ----------
    record : JobRecord
    service_of : callable
        ``service_of(record)`` returns the service to ask; called for each connection.
    store : JobStore, optional
        Where it is kept; this user's own if not given.
    question : Question, optional
        As it was asked; made of the record if not given.
    hand_over : callable, optional
        ``hand_over(answer, is_new)`` is called once, when the answer is there.
    pace : Pace, optional
        How often to look.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ipyperplexity.emulator import EmulatorServer
    >>> from ipyperplexity.net.sessions import make_session
    >>> store = JobStore(pathlib.Path(tempfile.mkdtemp()) / "jobs.db")
    >>> with EmulatorServer(pace=0) as server:
    ...     service = Service("agent", server.url, make_session)
    ...     job = Job.submit(service, Question("What is a lambda?"), store=store, pace=Pace(0.01))
    ...     job.wait().status
    'completed'
    >>> job.status, job.done
    ('completed', True)
    >>> store.close()
    """

    def __init__(
        self,
        record: JobRecord,
        service_of: ServiceOf,
        *,
        store: JobStore | None = None,
        question: Question | None = None,
        hand_over: HandOver = nobody,
        pace: Pace | None = None,
    ) -> None:
        self._kept = Kept(record, store or shared_store(), hand_over)
        self._follower = Follower(self._kept, service_of, question, pace or Pace())

    @classmethod
    def submit(
        cls,
        service: Service,
        question: Question,
        *,
        stream: bool = False,
        service_of: ServiceOf | None = None,
        store: JobStore | None = None,
        hand_over: HandOver = nobody,
        pace: Pace | None = None,
    ) -> Job:
        """Leave a question to a service; return the job.

        Parameters
        ----------
        service : Service
            Where it is sent.
        question : Question
        stream : bool
            Whether its text can be watched while it is written, with :meth:`stream`: the service
            promises that only for runs that are created so (official-api 4.3).
        service_of, store, hand_over, pace
            As of :class:`Job`; without ``service_of`` it is ``service`` that is asked later.

        Raises
        ------
        PerplexityError
            If the question was not taken, or nobody can tell whether it was.
        Interrupted
            If that is because of an interrupt.
        """
        record = submit(service, question, stream=stream)
        job = cls(
            record,
            service_of or (lambda record: service),
            store=store,
            question=question,
            hand_over=hand_over,
            pace=pace,
        )
        job._kept.begin()
        return job

    @classmethod
    def attach(
        cls,
        service: Service,
        id: str,
        *,
        service_of: ServiceOf | None = None,
        store: JobStore | None = None,
        hand_over: HandOver = nobody,
        pace: Pace | None = None,
    ) -> Job:
        """Return the job of a run that is not in this machine's list, by its id.

        Nobody here knows what it was asked: its options and its schema do not count.

        Raises
        ------
        InvalidRequestError
            If this is no id.
        """
        agent_runs.look(id)
        record = JobRecord(id, service.backend, service.base_url, f"(run {id})")
        job = cls(
            record,
            service_of or (lambda record: service),
            store=store,
            hand_over=hand_over,
            pace=pace,
        )
        job._kept.begin()
        return job

    @property
    def answer(self) -> Answer:
        """The answer; waits for it if the run has not ended.

        Raises
        ------
        PerplexityError
            If the run failed or was cancelled; ``error.answer`` has what came.
        """
        return self.wait()

    def refresh(self) -> Job:
        """Look at the run once; return the job itself.

        Raises
        ------
        InvalidRequestError
            If the service does not know the run (any more); its ``status`` is then ``unknown``.
        PerplexityError
            If the service cannot be asked. The job is as it was.
        """
        if self._kept.find() is not None:
            return self
        failure: PerplexityError | None = None
        try:
            state = self._follower.look()
        except PerplexityError as error:
            failure = error
        if failure is not None:
            raise explained(failure, self._kept)
        if state.is_over:
            _run_out(self._follower.replay(state, is_news=True))
        else:
            self._kept.note(state.status)
        return self

    def wait(
        self,
        timeout: float | None = None,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> Answer:
        """Wait for the answer.

        The run is looked at every 2 s, later every 10 s. A network that fails meanwhile does no
        harm. An interrupt (Ctrl-C) ends the waiting only: the run goes on at the service.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait at most.
        on_progress : callable, optional
            Is given a :class:`~ipyperplexity.jobs.Progress` at each news, and about once a second.
            Unless given, a notebook with the extension loaded shows it below the cell.

        Raises
        ------
        RequestTimeout
            If it takes longer than ``timeout``. The run goes on.
        Interrupted
            On Ctrl-C (a ``KeyboardInterrupt``). The run goes on.
        InvalidRequestError
            If the service does not know the run (any more).
        PerplexityError
            If the run failed or was cancelled, with ``error.answer``; or if the service could not
            be asked for about ten minutes: wait again, the run goes on.
        """
        answer = self._kept.find()
        if answer is None:
            if on_progress is None and hooks.show_progress is not None:
                with hooks.show_progress() as show:
                    outcome = self._outcome(timeout, show)
            else:
                outcome = self._outcome(timeout, on_progress)
            if isinstance(outcome, BaseException):
                raise outcome
            answer = outcome
            for warning in answer.warnings:
                warnings.warn(warning, PerplexityWarning, stacklevel=2)
        if answer.error is not None:
            raise answer.error.with_traceback(None)
        return answer

    def stream(self) -> JobStream:
        """Follow the run from its beginning: events, as those of an answer that is asked for.

        A stream that breaks off is taken up again where it was. Where the service cannot stream the
        run (any more), it is looked at until it has ended, and the text comes at the end. Stopping
        or leaving the stream does not stop the run.

        Raises
        ------
        ConfigurationError
            If there is no credential for the job's address.

        Examples
        --------
        ::

            with job.stream() as events:
                for event in events:
                    ...
        """
        answer = self._kept.find()
        if answer is not None and answer.raw.get("output"):
            return self._follower.replay(agent_runs.read_state(answer.raw), is_news=False)
        return self._follower.follow(streams=True)

    def cancel(self, timeout: float = 60.0) -> str:
        """End the run; return how it ended: ``cancelled``, or otherwise if it had ended already.

        Parameters
        ----------
        timeout : float
            Seconds to wait until the service confirms it.

        Raises
        ------
        RequestTimeout
            If it is not confirmed in time.
        PerplexityError
            As :meth:`refresh`.
        """
        if self._kept.find() is not None:
            return self.status
        until = time.monotonic() + timeout
        self._follower.cancel(until)
        why = self._outcome(max(0.0, until - time.monotonic()), None)
        if self.done:
            return self.status
        if isinstance(why, Interrupted):
            why.message = f"stopped waiting for the service to confirm that {self.id} is cancelled"
        elif isinstance(why, RequestTimeout) and why.field == "timeout":
            why.message = (
                f"The service did not confirm in {timeout:g} s that {self.id} is cancelled."
            )
            why.hint = "It may still be: look again with job.refresh()."
        assert isinstance(why, BaseException)  # with an answer the job would be done
        raise why

    def forget(self) -> None:
        """Take the job out of this machine's list. The run, and its answer, stay at the service.

        Raises
        ------
        ConfigurationError
            If the list cannot be written.
        """
        self._kept.store.forget([self.id])

    def _outcome(
        self, timeout: float | None, on_progress: Callable[[Progress], object] | None
    ) -> Answer | BaseException:
        """Look at the run until it has ended; return its answer, or why there is none."""
        stream = self._follower.follow(streams=False)
        watch = Watch(stream, timeout, on_progress)
        is_interrupted = False
        try:
            _run_out(stream, watch.look)
        except KeyboardInterrupt:
            is_interrupted = True
        finally:
            stream.close()
        if self._kept.answer is not None:
            return self._kept.answer
        waited = timeout if watch.is_late else None
        return why_not(stream.answer, self.id, waited, is_interrupted=is_interrupted)


def _run_out(stream: JobStream, look: Callable[[], None] | None = None) -> None:
    """Read a stream to its end; what it fails with is in its answer."""
    stream.on_wait = look
    try:
        for _ in stream:
            if look is not None:
                look()
    except PerplexityError:
        if not stream.done:  # it was raised by who looks
            raise
