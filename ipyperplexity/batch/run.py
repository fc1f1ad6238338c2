"""The run of a batch: who is asked when, what is tried again, and when it stops.

One thread, the caller's, gives out the work and takes what comes back; it alone keeps the pace, the
budget, the checkpoint and the count, wherever the work runs. Invariant: an answer is on disk before
it is counted, and whatever ends the run, each row has an outcome.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import heapq
import itertools
import queue
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ipyperplexity import spending
from ipyperplexity.answer import Answer
from ipyperplexity.batch.executor_faults import (
    as_ours,
    is_lost_worker,
    lost_worker,
    why_stopped,
)
from ipyperplexity.batch.kept_answers import KeptAnswers
from ipyperplexity.batch.money import CostCap
from ipyperplexity.batch.outcome import RowOutcome
from ipyperplexity.batch.pacer import Pacer
from ipyperplexity.batch.plan import Plan, Task
from ipyperplexity.batch.row_asker import Attempt, RowAsker, ask_row
from ipyperplexity.errors import (
    AbortedError,
    AuthenticationError,
    BudgetError,
    ChallengeError,
    ConfigurationError,
    EndpointRetiredError,
    NetworkError,
    PerplexityError,
    QuotaError,
    RateLimitError,
    RequestTimeout,
    StreamError,
)
from ipyperplexity.net.retry import RetryPolicy
from ipyperplexity.tapes import deck

#: What each further question would meet as well: the run stops at once.
FATAL = (
    AuthenticationError,
    QuotaError,
    EndpointRetiredError,
    ChallengeError,
    ConfigurationError,
)
#: Seconds between two looks when nothing comes, and for what is stopped to come back.
_TICK = 0.1
_PARTING = 0.3


@dataclass(frozen=True)
class Limits:
    """What a run keeps to.

    Attributes
    ----------
    concurrency : int
        Questions at once.
    rpm : float or None
        Requests a minute; learned from the service if not given.
    max_cost : float or None
        US dollars for this run.
    budget : float or None
        US dollars for this process, over all runs and clients.
    retries : int
        How often a question is sent again.
    """

    concurrency: int = 8
    rpm: float | None = None
    max_cost: float | None = None
    budget: float | None = None
    retries: int = 5


class BatchRun:
    """One run.

    Parameters
    ----------
    plan : Plan
    asker : RowAsker
    limits : Limits
    kept : KeptAnswers
    executor : concurrent.futures.Executor
    default_model : str
        What is asked when a question names no model.
    on_progress : callable
        ``on_progress(rows_done, errors, spent_usd, rows_cached)``.
    estimate : float
        US dollars that a question may cost, until one has been paid.
    learns : bool
        Whether the service's word about its limit counts.
    lookahead : int
        Questions beyond ``concurrency`` that lie ready at an executor with just so many workers:
        none is idle until this thread gets round to giving it the next one.
    executor_is_own : bool
        Whether a failure of the executor is ours, and raised, or one of the user's machines: then
        another worker is given the question, or the run stops with a word if there is none.
    """

    def __init__(
        self,
        plan: Plan,
        asker: RowAsker,
        limits: Limits,
        kept: KeptAnswers,
        executor: concurrent.futures.Executor,
        *,
        default_model: str,
        on_progress: Callable[[int, int, float, int], object] = lambda *counts: None,
        estimate: float = 0.0,
        learns: bool = True,
        lookahead: int = 0,
        executor_is_own: bool = True,
    ) -> None:
        self._plan, self._asker, self._limits, self._kept = plan, asker, limits, kept
        self._executor, self._default_model = executor, default_model
        self._on_progress, self._learns = on_progress, learns
        self._executor_is_own = executor_is_own
        self._places = limits.concurrency + lookahead
        self._pacer = Pacer(limits.rpm)
        self._policy = RetryPolicy(limits.retries)
        self._cap = CostCap(limits.max_cost, estimate)
        self._outcomes: dict[int, RowOutcome] = {}
        self._waiting: collections.deque[Task] = collections.deque()
        self._later: list[tuple[float, int, Task]] = []
        self._order = itertools.count()
        self._running: dict[concurrent.futures.Future[Attempt], _Sent] = {}
        self._back: queue.SimpleQueue[concurrent.futures.Future[Attempt]] = queue.SimpleQueue()
        self._slot: float | None = None
        self._errors = self._cached = 0
        #: Why nothing more is sent; empty while the run goes on.
        self.stopped_by = ""
        self.interrupted = False
        self._is_ending = False
        #: A failure that no row is to blame for.
        self.defect: BaseException | None = None

    @property
    def spent_usd(self) -> float:
        """What this run has paid, in US dollars."""
        return self._cap.spent

    def run(self) -> list[RowOutcome]:
        """Ask all; return an outcome for each row, in order. An interrupt ends it early."""
        try:
            self._begin()
            while not self.stopped_by and (self._waiting or self._later or self._running):
                self._send()
                self._take(self._patience())
        except KeyboardInterrupt:
            self.interrupted = True
            self.stopped_by = "the run was stopped"
        self._end()
        return [self._outcomes[row] for row in range(self._plan.n_rows)]

    # --- beginning ------------------------------------------------------------------------------

    def _begin(self) -> None:
        for row, error in self._plan.refused.items():
            self._outcomes[row] = RowOutcome(row, "", "error", error=error)
            self._errors += 1
        asked = [(task.key, task.question) for task in self._plan.tasks if task.key is not None]
        known = self._kept.find(asked)
        for task in self._plan.tasks:
            answer = known.get(task.key) if task.key is not None else None
            if answer is None:
                self._waiting.append(task)
            else:
                self._finish(task, answer, None, None, cached=True)
        self._tell()

    # --- sending --------------------------------------------------------------------------------

    def _send(self) -> None:
        """Send what may be sent now."""
        now = time.monotonic()
        while self._later and self._later[0][0] <= now:
            self._waiting.appendleft(heapq.heappop(self._later)[2])
        while self._waiting and len(self._running) < self._places:
            if not self._cap.fits(len(self._running)):
                if not self._running and not self._later:
                    self.stopped_by = (
                        f"max_cost: ${self._cap.spent:.4f} is spent, and one more may pass "
                        f"${self._limits.max_cost:.4g}"
                    )
                return
            if self._slot is None:
                self._slot = self._pacer.reserve(now)
            if self._pacer.delay(self._slot, time.monotonic()) > 0:
                return
            task = self._waiting.popleft()
            if not self._submit(task):
                return
            self._slot = None

    def _submit(self, task: Task) -> bool:
        asked = task.question.model or self._default_model
        problem = ""
        try:
            reserved = spending.reserve(self._limits.budget, asked)
        except BudgetError as error:
            problem = error.message
        if problem:
            self._waiting.appendleft(task)
            if not self._running:
                self.stopped_by = problem
            return False
        task.attempts += 1
        try:
            future = self._executor.submit(ask_row, self._asker, task.question, uuid.uuid4().hex)
        except Exception as error:  # its processes are gone, say
            task.attempts -= 1
            self._waiting.appendleft(task)
            reserved.settle(0.0)
            self._break(error)
            return False
        self._running[future] = _Sent(task, reserved)
        future.add_done_callback(self._back.put)
        return True

    def _patience(self) -> float:
        """Return the seconds until there may be something to send."""
        now = time.monotonic()
        wait = _TICK
        if self._later:
            wait = min(wait, self._later[0][0] - now)
        # A slot that is there already waits for something else: money, or a free place.
        if self._slot is not None and (delay := self._pacer.delay(self._slot, now)) > 0:
            wait = min(wait, delay)
        return max(0.0, wait)

    # --- taking ---------------------------------------------------------------------------------

    def _take(self, patience: float) -> None:
        """Take what has come back, after waiting for it so long."""
        try:
            future = self._back.get(timeout=patience) if patience else self._back.get_nowait()
        except queue.Empty:
            return
        back = [future]
        with contextlib.suppress(queue.Empty):
            while True:
                back.append(self._back.get_nowait())
        self._keep(back)
        for future in back:
            self._settle(future)
        self._tell()

    def _keep(self, back: Sequence[concurrent.futures.Future[Attempt]]) -> None:
        """Put what has come back on disk, in one go."""
        whole: list[tuple[str, Answer]] = []
        for future in back:
            sent = self._running.get(future)
            if sent is None or future.cancelled() or future.exception() is not None:
                continue
            attempt, key = future.result(), sent.task.key
            if attempt.error is None and attempt.answer is not None and key is not None:
                whole.append((key, attempt.answer))
        problem = ""
        try:
            self._kept.keep(whole)
        except ConfigurationError as error:
            problem = error.message
        if problem and not self.stopped_by:  # what was paid for is in the table at least
            self.stopped_by = problem

    def _settle(self, future: concurrent.futures.Future[Attempt]) -> None:
        sent = self._running.pop(future, None)
        if sent is None:
            return
        if future.cancelled() and self._is_ending:
            sent.task.attempts -= 1
            sent.reserved.settle(0.0)
            return
        fault = concurrent.futures.CancelledError() if future.cancelled() else future.exception()
        if fault is not None:
            self._lose(sent, fault)
            return
        attempt = future.result()
        if attempt.defect is not None:
            self.defect = attempt.defect
            self._lose(sent, attempt.defect)
            return
        if self._learns:
            self._pacer.learn(attempt.limits)
        answer, error = attempt.answer, attempt.error
        if answer is not None:
            sent.reserved.finish(answer, "batch")
        else:
            sent.reserved.settle(0.0 if error is not None and spending.is_unbilled(error) else None)
        if error is None and answer is not None:
            self._cap.paid(_cost(answer))
            self._finish(sent.task, answer, None, attempt.elapsed_s)
            return
        assert error is not None
        if answer is not None and answer.usage.cost_usd:
            self._cap.paid(answer.usage.cost_usd)
        self._fail(sent.task, answer, error, attempt.elapsed_s)

    def _lose(self, sent: _Sent, fault: BaseException) -> None:
        """Give a question up that did not come back, or to another worker if there is one."""
        # It may have been asked, and billed.
        sent.reserved.settle(None)
        if self._executor_is_own or self.defect is not None or not is_lost_worker(fault):
            self._break(fault)
            self._leave(sent.task, "error", as_ours(fault))
        elif self.interrupted:
            self._leave(sent.task, "cancelled")
        else:
            self._cap.paid(None)
            self._fail(sent.task, None, lost_worker(fault), None)

    def _fail(
        self, task: Task, answer: Answer | None, error: PerplexityError, elapsed_s: float | None
    ) -> None:
        if isinstance(error, RateLimitError):
            self._pacer.pause(error.retry_after or 1.0)
        elif error.retry_after and error.status_code == 503:
            self._pacer.pause(error.retry_after)
        delay = None if self.stopped_by else self._delay(task, error)
        if delay is not None:
            heapq.heappush(self._later, (time.monotonic() + delay, next(self._order), task))
            return
        self._finish(task, answer, error, elapsed_s)
        if isinstance(error, FATAL) and not self.stopped_by:
            self.stopped_by = error.message

    def _delay(self, task: Task, error: PerplexityError) -> float | None:
        """Return the seconds after which a question is sent again, or None for not at all.

        More is tried again than for a single question: an answer that broke off too, since a table
        with holes is what the user does not want. Not what took too long: it may run on, and cost.
        """
        broke_off = isinstance(error, StreamError | NetworkError)
        return self._policy.delay(
            error, task.attempts - 1, unsent=broke_off and not isinstance(error, RequestTimeout)
        )

    # --- outcomes -------------------------------------------------------------------------------

    def _finish(
        self,
        task: Task,
        answer: Answer | None,
        error: PerplexityError | None,
        elapsed_s: float | None,
        *,
        cached: bool = False,
    ) -> None:
        for outcome in outcomes_of(task, answer, error, elapsed_s, cached=cached):
            self._outcomes[outcome.row] = outcome
            self._errors += outcome.status == "error"
            self._cached += outcome.cached

    def _leave(self, task: Task, status: str, error: PerplexityError | None = None) -> None:
        for row in task.rows:
            self._outcomes[row] = RowOutcome(
                row,
                task.question.text,
                status,
                error=error,
                attempts=task.attempts,
                reason=self.stopped_by if status == "skipped" else "",
            )
        self._errors += len(task.rows) * (status == "error")

    def _tell(self) -> None:
        self._on_progress(len(self._outcomes), self._errors, self._cap.spent, self._cached)

    def _break(self, fault: BaseException) -> None:
        """Stop, since no question can be asked any more."""
        if self._executor_is_own and self.defect is None:
            self.defect = fault
        self.stopped_by = self.stopped_by or why_stopped(fault)

    # --- ending ---------------------------------------------------------------------------------

    def _end(self) -> None:
        """Stop what runs, keep what has come, and give each row that is left an outcome."""
        self._is_ending = True
        if self._running:
            if self.interrupted:
                self._asker.stop()
            for future in list(self._running):
                future.cancel()
                if future.done():  # it may have been taken when the interrupt came
                    self._back.put(future)
            # Of a run that stops by itself what was paid for is waited for; of an interrupt not.
            until = time.monotonic() + _PARTING
            while self._running and (not self.interrupted or time.monotonic() < until):
                try:
                    self._take(0.05)
                except KeyboardInterrupt:
                    self.interrupted = True
                    self._asker.stop()
                    until = time.monotonic() + _PARTING
        for sent in self._running.values():
            sent.reserved.settle(None)
            self._leave(sent.task, "cancelled")
        for task in self._plan.tasks:
            if any(row not in self._outcomes for row in task.rows):
                self._leave(task, "cancelled" if self.interrupted else "skipped")
        self._tell()


@dataclass(frozen=True)
class _Sent:
    task: Task
    reserved: spending.Reservation


def outcomes_of(
    task: Task,
    answer: Answer | None,
    error: PerplexityError | None,
    elapsed_s: float | None,
    *,
    cached: bool = False,
) -> list[RowOutcome]:
    """Return an outcome for each row of a task: the first one pays, unless it is kept already."""
    cost = None if answer is None else _cost(answer)
    status = "ok" if error is None else "error"
    if isinstance(error, AbortedError):
        status = "cancelled"
    return [
        RowOutcome(
            row,
            task.question.text,
            status,
            answer=answer,
            error=error,
            attempts=0 if cached or place else task.attempts,
            elapsed_s=None if cached or place else elapsed_s,
            cost_usd=0.0 if cached or place else cost,
            asked_usd=cost,
            cached=(cached or place > 0) and error is None,
        )
        for place, row in enumerate(task.rows)
    ]


def _cost(answer: Answer) -> float | None:
    if deck.replaying() is not None or answer.backend in spending.FREE_BACKENDS:
        return 0.0
    return answer.usage.cost_usd


def own_executor(concurrency: int) -> concurrent.futures.Executor:
    """Return threads of our own."""
    return concurrent.futures.ThreadPoolExecutor(concurrency, "ipyperplexity-batch")
