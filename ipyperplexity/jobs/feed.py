"""The frames of a run, whatever happens to the connection.

Invariant: what comes out is one stream of frames, each once and in its order, that ends with the
end of the run or with an error that no further look would help. A stream that breaks off is taken
up again after the last frame that came; where the service does not allow that, the run is looked
at until it has ended. Nothing here asks a question, so nothing here can be paid for twice.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Generator, Iterator
from typing import Protocol

from ipyperplexity.errors import (
    AbortedError,
    InvalidRequestError,
    PerplexityError,
)
from ipyperplexity.jobs.pace import Pace, passes
from ipyperplexity.net.replies import content_type, read_json
from ipyperplexity.net.transport import TICK, Exchange, Head, collect
from ipyperplexity.service import CALL_TIMEOUT, Service
from ipyperplexity.wire import agent_runs, sse
from ipyperplexity.wire.agent_runs import RunState
from ipyperplexity.wire.base import TOTAL_TIMEOUT, WireRequest
from ipyperplexity.wire.sse import Frame

#: Streams in a row that bring nothing, before the run is looked at instead.
_FRUITLESS = 3


class Feed(Protocol):
    """Where the frames of a run come from.

    Attributes
    ----------
    ending : str
        The status that the run has ended with, once that is known.
    state : RunState
        What is known of it.
    problem : str
        Why it cannot be looked at just now, if so.
    on_wait : callable
        Called about every 0.05 s while nothing comes.
    """

    ending: str
    state: RunState
    problem: str
    on_wait: Callable[[], None]

    def frames(self) -> Generator[Frame, None, None]:
        """Yield the frames."""

    def stop(self) -> None:
        """Stop, from any thread."""

    def close(self) -> None:
        """Let go of the connection."""


class KnownFeed:
    """The frames of a record that is there already."""

    def __init__(self, state: RunState) -> None:
        self.state, self.problem, self.ending = state, "", ""
        self.on_wait: Callable[[], None] = _nothing

    def frames(self) -> Generator[Frame, None, None]:
        """Yield what the record holds."""
        self.ending = self.state.status if self.state.is_over else ""
        yield from agent_runs.frames_of(self.state)

    def stop(self) -> None:
        """Do nothing: there is nothing to wait for."""

    def close(self) -> None:
        """Do nothing: there is no connection."""


class RunFeed:
    """The frames of a run at the service.

    Parameters
    ----------
    id : str
        The run's.
    connect : callable
        Returns the service to ask, its credential looked up anew; called for each connection.
    pace : Pace
    streams : bool
        Whether to follow the run as a stream; else it is looked at now and then.
    status : str
        What is known of it.
    note : callable
        Is told the status at each look.
    explain : callable
        Returns what a failure means for the job; it is raised.
    """

    def __init__(
        self,
        id: str,
        connect: Callable[[], Service],
        pace: Pace,
        *,
        streams: bool,
        status: str,
        note: Callable[[str], None],
        explain: Callable[[PerplexityError], PerplexityError],
    ) -> None:
        self.state, self.problem, self.ending = RunState(status), "", ""
        self.on_wait: Callable[[], None] = _nothing
        self._id, self._connect, self._pace, self._streams = id, connect, pace, streams
        self._note, self._explain = note, explain
        self._after = 0  # the first event only names the run, and a number is obligatory
        self._stopped = threading.Event()
        self._exchange: Exchange | None = None

    def stop(self) -> None:
        """Stop, from any thread; the run goes on."""
        self._stopped.set()
        exchange = self._exchange
        if exchange is not None:
            exchange.stop()

    def close(self) -> None:
        """Let go of the connection."""
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.close()

    def frames(self) -> Generator[Frame, None, None]:
        """Yield the frames of the run.

        Raises
        ------
        InvalidRequestError
            With status code 404: the service does not know the run.
        PerplexityError
            If it cannot be reached for long, or refuses the credential.
        """
        while not self.ending:
            if self._streams:
                yield from self._streamed()
            if not self.ending:
                yield from self._looked_at()

    # --- as a stream ---------------------------------------------------------------------------

    def _streamed(self) -> Iterator[Frame]:
        """Yield the frames of the run's stream, taken up again until only a look can help."""
        fruitless = 0
        while self._streams and fruitless < _FRUITLESS:
            before, failure = self._after, None
            try:
                yield from self._one_stream()
            except PerplexityError as error:
                failure = error
            if self.ending:
                return
            if isinstance(failure, InvalidRequestError):
                self._streams = False  # its time has passed (official-api 4.3): a look will tell
            elif failure is not None:
                self._fail(failure, 0)
            fruitless = 0 if self._after > before else fruitless + 1
            if fruitless and self._streams:
                self._wait(self._pace.delay(fruitless - 1, _asked(failure)))

    def _one_stream(self) -> Iterator[Frame]:
        """Yield what one connection brings after the last frame that came."""
        with self._reply(agent_runs.resume(self._id, self._after), TOTAL_TIMEOUT) as (head, got):
            if content_type(head) == "application/json":
                self._streams = False  # some server that knows no streams of runs
                return
            for frame in sse.decode(got.chunks()):
                seen = agent_runs.see(frame)
                if seen.is_error:
                    self._streams = False  # of the run, or only of this stream: a look will tell
                    return
                if seen.number is not None and seen.number <= self._after:
                    continue  # it has come before
                self._after = self._after if seen.number is None else seen.number
                # What has no number would be told twice if the stream were taken up again.
                self._streams = self._streams and not seen.is_loose
                self._goes_on()
                self.ending = seen.ends or ""
                yield frame
                if self.ending:
                    return

    def _goes_on(self) -> None:
        self.problem = ""
        if self.state.status in ("queued", "unknown"):
            self.state = RunState("in_progress")
            self._note("in_progress")

    # --- by looking ----------------------------------------------------------------------------

    def _looked_at(self) -> Iterator[Frame]:
        """Yield what each look shows, until the run has ended, or a lost network is back."""
        looks = failures = 0
        while True:
            failure: PerplexityError | None = None
            try:
                with self._reply(agent_runs.look(self._id), CALL_TIMEOUT) as (head, got):
                    state = agent_runs.read_state(read_json(head, collect(got.chunks())))
            except PerplexityError as error:
                failure = error
            if failure is None:
                is_back, failures = failures > 0, 0
                self.state, self.problem = state, ""
                self.ending = state.status if state.is_over else ""
                self._note(state.status)
                yield from agent_runs.frames_of(state)
                if self.ending:
                    return
                self._wait(self._pace.delay(looks))
                if is_back and self._streams:
                    return
                looks += 1
            else:
                failures += 1
                self._fail(failure, failures)
                self._wait(self._pace.delay(failures - 1, _asked(failure)))

    # --- one connection ------------------------------------------------------------------------

    @contextlib.contextmanager
    def _reply(self, request: WireRequest, total: float) -> Iterator[tuple[Head, Exchange]]:
        """Send a request; give its reply's head, and the exchange to read its body from."""
        self._check()
        service = self._connect()
        exchange = service.open(request, began=time.monotonic(), total=total)
        exchange.on_wait = self._look
        self._exchange = exchange
        if self._stopped.is_set():  # while the exchange was being made
            exchange.stop()
        problem: PerplexityError | None = None
        try:
            head, problem = service.attempt(exchange)
            if problem is None:
                yield head, exchange
        except PerplexityError as error:
            problem = error
        finally:
            self.close()
        if problem is not None:
            raise service.cleaned(problem)

    def _fail(self, failure: PerplexityError, failures: int) -> None:
        self._check()
        if not passes(failure) or failures > self._pace.patience:
            raise self._explain(failure)
        self.problem = failure.message

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._stopped.wait(min(TICK, left)):
                break
            self._look()
        self._check()

    def _look(self) -> None:
        self.on_wait()

    def _check(self) -> None:
        if self._stopped.is_set():
            raise AbortedError("Nobody waits for the job any more; it goes on.")


def _asked(failure: PerplexityError | None) -> float | None:
    return failure.retry_after if failure is not None else None


def _nothing() -> None:
    """Do nothing."""
