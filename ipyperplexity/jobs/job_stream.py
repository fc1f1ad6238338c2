"""The answer of a run, made of its frames by the code that makes every answer.

An `AnswerStream` whose one request has been sent long ago: it follows the run instead of asking.
Stopping it leaves the run alone.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import time
import weakref
from collections.abc import Callable, Iterator

from ipyperplexity.answer import Answer
from ipyperplexity.answer_run import AnswerRun, Call
from ipyperplexity.answer_stream import AnswerStream
from ipyperplexity.errors import AbortedError, PerplexityError
from ipyperplexity.events import Event, Finished, ToolCalled
from ipyperplexity.jobs.feed import Feed
from ipyperplexity.jobs.progress import Progress
from ipyperplexity.question import Question
from ipyperplexity.wire import agent_reading


class _JobRun(AnswerRun):
    """Follows a run, where its base asks a question."""

    def __init__(
        self,
        question: Question,
        call: Call,
        feed: Feed,
        *,
        text: Callable[[], str],
        look: Callable[[], None],
    ) -> None:
        super().__init__(question, call, streaming=True, text=text, look=look)
        self._feed = feed

    def stop(self) -> None:
        super().stop()
        self._feed.stop()

    def close(self) -> None:
        self._feed.close()

    def events(self, began: float) -> Iterator[Event]:
        calls: list[ToolCalled] = []
        with contextlib.closing(self._feed.frames()) as frames:
            for event in agent_reading.fold(frames):
                if isinstance(event, ToolCalled):
                    calls.append(event)
                elif isinstance(event, Finished):
                    self.functions.leave(calls)
                yield event


class JobStream(AnswerStream):
    """A job that is followed: an iterator of events, as of an answer that is asked for.

    Leaving it, or stopping it, does not stop the run. ``answer.created`` is when the question was
    asked, and ``answer.elapsed`` the seconds from then until its end was seen here.

    Parameters
    ----------
    question : Question
    call : Call
    feed : Feed
        Where the frames of the run come from.
    id : str
        The run's.
    created : datetime.datetime
        When it was asked; aware.
    hand_over : callable
        Is given the answer when the run has ended and been read to its end.
    """

    def __init__(
        self,
        question: Question,
        call: Call,
        feed: Feed,
        *,
        id: str,
        created: dt.datetime,
        hand_over: Callable[[Answer], None],
    ) -> None:
        super().__init__(question, call, hand_over=self._settle)
        self._feed, self._run_id, self._asked = feed, id, created
        self._on_settled = hand_over
        self._is_settled = False
        self._run = _JobRun(question, call, feed, text=lambda: self.text, look=self._look)
        feed.on_wait = _weakly(self._look)

    @property
    def progress(self) -> Progress:
        """How far the job is; may be read from any thread."""
        state = self._feed.state
        return Progress(
            self._run_id,
            self._feed.ending or state.status,
            self._age(),
            max(state.searches, len(self.searches)),
            max(state.sources, len(self.sources)),
            self._feed.problem,
        )

    def _age(self) -> float:
        return max(0.0, (dt.datetime.now(dt.UTC) - self._asked).total_seconds())

    def _end(self, status: str, error: PerplexityError | None) -> None:
        if self._answer is not None:
            return
        # Who stops here knows only a part of an answer that may be whole at the service.
        self._is_settled = bool(self._feed.ending) and status != "stopped"
        if isinstance(error, AbortedError):
            status = "stopped"
        self._created, self._began = self._asked, time.monotonic() - self._age()
        self._first_text = None  # nobody watched
        self._id = self._id or self._run_id
        super()._end(status, error)

    def _settle(self, answer: Answer) -> None:
        if self._is_settled:
            self._on_settled(answer)


def _weakly(method: Callable[[], None]) -> Callable[[], None]:
    # The reader thread holds the feed: it must not keep a stream alive that nobody wants any more.
    reference = weakref.WeakMethod(method)

    def call() -> None:
        if (alive := reference()) is not None:
            alive()

    return call
