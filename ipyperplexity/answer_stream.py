"""An answer while it is written: iterate its events, stop it from anywhere, hold it at the end.

The life of one question: request, retries before the first byte, events, and in every case (done,
broken, stopped, interrupted) an Answer with all the text that came. An error is raised outside
``except`` blocks and without the frames below, so that no traceback can show what they hold.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import sys
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

from ipyperplexity import hooks
from ipyperplexity.answer import Answer, Image, Usage
from ipyperplexity.answer_run import AnswerRun, Call
from ipyperplexity.citations import count_citations
from ipyperplexity.errors import (
    AbortedError,
    EmptyAnswerError,
    PerplexityError,
    StreamError,
)
from ipyperplexity.events import (
    Event,
    Finished,
    ImagesFound,
    ReasoningDelta,
    Searching,
    SourcesFound,
    Started,
    TextDelta,
    TextReplaced,
    ToolCalled,
)
from ipyperplexity.net.redact import redact_json
from ipyperplexity.question import Question
from ipyperplexity.schema import SchemaMismatch
from ipyperplexity.schema.frame import Layout
from ipyperplexity.sources import Sources
from ipyperplexity.tapes import deck

__all__ = ["AnswerStream", "Call"]


class AnswerStream:
    """A running answer: an iterator of events and a context manager.

    Attributes
    ----------
    text : str
        All text so far.
    answer : Answer
        The answer; asking for it early runs the stream to its end.

    Examples
    --------
    >>> import ipyperplexity
    >>> with ipyperplexity.demo().stream("What is a lambda?") as stream:
    ...     for event in stream:
    ...         pass
    >>> stream.answer.status
    'completed'
    """

    def __init__(
        self,
        question: Question,
        call: Call,
        *,
        streaming: bool = True,
        keep_raw: bool = True,
        hand_over: Callable[[Answer], None] = lambda answer: None,
    ) -> None:
        self.question = question
        self.sources = Sources()
        self.searches: tuple[str, ...] = ()
        self.images: tuple[Image, ...] = ()
        self.model: str | None = None
        self.warnings: list[str] = []
        #: Called about every 0.05 s while nothing comes, by the thread that iterates.
        self.on_wait: Callable[[], None] | None = None
        self._call = call
        # Bad input is refused here, when the stream is made, not when it is first read.
        self._run = AnswerRun(
            question, call, streaming=streaming, text=lambda: self.text, look=self._look
        )
        self.warnings += self._run.notices
        self._hand_over = hand_over
        self._keeps_raw = keep_raw
        self._pieces: list[str] = []
        self._joined = (0, "")  # the first so many pieces, and their text
        self._reasoning: list[str] = []
        self._id: str | None = None
        self._started: Started | None = None
        self._finished: Finished | None = None
        self._answer: Answer | None = None
        self._created = dt.datetime.now(dt.UTC)
        self._began: float | None = None
        self._first_text: float | None = None
        self._running = self._iterate()

    # --- what users do with it ----------------------------------------------------------------

    def __iter__(self) -> Iterator[Event]:
        return self._running

    def into(self, output: Any) -> Answer:
        """Stream into an ``ipywidgets.Output`` of yours; return the answer when it is whole.

        The widget shows it as a cell would, from whatever thread this is called in.

        Parameters
        ----------
        output : ipywidgets.Output

        Raises
        ------
        InvalidRequestError
            If that is no Output.
        PerplexityError
            As iterating; what had come is shown, or else the error.

        Examples
        --------
        ::

            output = ipywidgets.Output()
            display(output)
            answer = client.stream("What is a lambda?").into(output)
        """
        if hooks.draw_into is None:  # the first public name that is looked up puts it there
            sys.modules["ipyperplexity"].__getattr__("errors")
        assert hooks.draw_into is not None
        answer: Answer = hooks.draw_into(self, output)
        return answer

    def __enter__(self) -> AnswerStream:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def text(self) -> str:
        """All text so far; may be read from any thread."""
        known, text = self._joined
        count = len(self._pieces)
        if known < count:
            text += "".join(self._pieces[known:count])
            self._joined = (count, text)
        return text

    @property
    def reasoning(self) -> str:
        """All reasoning so far."""
        return "".join(self._reasoning)

    @property
    def elapsed(self) -> float:
        """Seconds since the question was sent, until its end."""
        if self._answer is not None:
            return self._answer.elapsed
        return time.monotonic() - self._began if self._began is not None else 0.0

    @property
    def done(self) -> bool:
        """Whether it has ended, one way or another."""
        return self._answer is not None

    @property
    def answer(self) -> Answer:
        """The answer; runs the stream to its end if it has not ended.

        Raises
        ------
        PerplexityError
            If running it to its end fails. Afterwards the partial answer is here.
        """
        if self._answer is None:
            for _ in self._running:
                pass
        if self._answer is None:  # the iterator was closed before it began
            self._end("stopped", AbortedError("The answer was stopped."))
        assert self._answer is not None
        return self._answer

    def cancel(self) -> None:
        """Stop it, from any thread. The loop over its events then ends; ``answer`` is partial."""
        self._run.stop()

    def close(self) -> None:
        """Stop it if it has not ended."""
        if self._answer is None:
            self.cancel()
            try:
                self._running.close()
            except ValueError:  # another thread is in it, and ends it now
                return
            if self._answer is None:
                self._end("stopped", AbortedError("The stream was closed before its end."))

    # --- how it runs ---------------------------------------------------------------------------

    def _iterate(self) -> Generator[Event, None, None]:
        self._created, self._began = dt.datetime.now(dt.UTC), time.monotonic()
        failure: PerplexityError | None = None
        pieces = self._pieces
        try:
            for event in self._run.events(self._began):
                if type(event) is TextDelta:
                    if not pieces:
                        self._first_text = time.monotonic() - self._began
                    pieces.append(event.text)
                else:
                    self._note(event)
                yield event
        except PerplexityError as error:
            failure = error
        except BaseException:
            # An interrupt, or a reader who left: keep what came, tell the service by hanging up.
            self._end("stopped", AbortedError("The answer was stopped."))
            raise
        finally:
            self._run.close()
        if failure is None:
            failure = self._check()
        if failure is None:
            self._end(self._finished.status if self._finished else "completed", None)
        elif self._run.is_stopped:  # whatever the stop broke, it is no failure of the service
            self._end("stopped", AbortedError("The answer was stopped."))
        else:
            failure = self._call.service.cleaned(failure)
            self._end("failed", failure)
            raise failure

    def _look(self) -> None:
        if self.on_wait is not None:
            self.on_wait()

    def _note(self, event: Event) -> None:
        if isinstance(event, TextReplaced):
            if self._first_text is None and self._began is not None:
                self._first_text = time.monotonic() - self._began
            self._pieces[:] = [event.text]
            self._joined = (0, "")
        elif isinstance(event, Started):
            self._started = event if event.id else self._started
            self._id = event.id or self._id
            self.model = event.model or self.model
        elif isinstance(event, ToolCalled):
            self._started = None  # that run is over: there is nothing to stop
        elif isinstance(event, Searching):
            self.searches += event.queries
        elif isinstance(event, SourcesFound):
            self.sources = event.sources
        elif isinstance(event, ReasoningDelta):
            self._reasoning.append(event.text)
        elif isinstance(event, ImagesFound):
            self.images = event.images
        elif isinstance(event, Finished):
            self._finished = event
            self.model = event.model or self.model
            self.warnings += event.warnings

    def _check(self) -> PerplexityError | None:
        """What is wrong with an answer that the service considers finished, if anything."""
        if self._finished is None:
            return StreamError("The stream ended before the answer did.")
        if self._finished.status == "completed":
            if self._run.functions.is_waiting:
                return None
            if not (self.text.strip() or self.sources or self.images):
                return EmptyAnswerError("The service finished without text and without sources.")
            if self.question.schema is not None:
                return self._check_data()
        return None

    def _check_data(self) -> PerplexityError | None:
        try:
            # Before its functions were run a model may have written an answer that it takes back.
            self._data = self.question.schema.parse(self._run.last_part(self.text))
            self._data_layout = self.question.schema.layout
        except SchemaMismatch as mismatch:
            problem, path = str(mismatch), mismatch.path
        except Exception as error:  # a check of the user's own class may raise anything
            problem, path = f"{type(error).__name__}: {error}", ""
        else:
            return None
        return StreamError(
            f"The answer does not fit the schema: {problem}",
            field=path,
            hint="The raw text is kept: error.answer.text. Ask again, or loosen the schema.",
        )

    _data: Any = None
    _data_layout: Layout | None = None

    def _raw(self) -> dict[str, Any]:
        record = self._finished.raw if self._finished else self._run.raw
        try:
            return dict(redact_json(record, self._call.service.secrets))
        except RecursionError:  # it could not be pickled or saved either
            return {}

    def _usage(self) -> Usage:
        usage = self._run.usage(self._finished.usage if self._finished else Usage())
        # The engine says what the service would have asked; nobody asks for it.
        if self._call.service.backend == "demo":
            return dataclasses.replace(usage, cost_usd=0.0)
        return usage

    def _end(self, status: str, error: PerplexityError | None) -> None:
        if self._answer is not None:
            return
        stops = status == "stopped"
        if isinstance(error, AbortedError):  # a run may also be cancelled at the service
            status = "stopped"
        if (text := self._run.settled(self.text)) != self.text:
            self._note(TextReplaced(text))  # the answer broke off in a later round
        finished, follow = self._finished, self.question.follow
        sources = count_citations(text, self.sources)
        kept = sources.head(self.question.limit)
        hide = self._call.service.hide
        reason = finished.finish_reason if finished else None
        id = (finished.id if finished else None) or self._id
        self._answer = answer = Answer(
            question=self.question.text,
            text=text,
            reasoning=self.reasoning,
            sources=kept,
            searches=self.searches,
            images=self.images,
            related=finished.related if finished else (),
            data=self._data,
            usage=self._usage(),
            model=hide(self.model) if self.model else None,
            backend=self._call.service.backend,
            id=hide(id) if id else None,
            status=status,
            finish_reason=hide(reason) if reason else None,
            truncated=len(kept) < len(sources),
            error=error,
            created=self._created,
            elapsed=self.elapsed,
            first_text=self._first_text,
            cached=deck.replaying() is not None,
            raw=self._raw() if self._keeps_raw else {},
            turns=follow.conversation() if follow is not None else (),
            options=self.question.given(),
            warnings=tuple(hide(warning) for warning in (*self._run.warnings, *self.warnings)),
            tool_calls=tuple(self._run.functions.made),
            data_layout=self._data_layout,
            thread=dict(finished.thread) if finished else {},
            stored=finished is not None and finished.stored and status == "completed",
        )
        if error is not None:
            error.answer = answer
        if stops:
            self._stop_run()
        self._hand_over(answer)

    def _stop_run(self) -> None:
        """Tell the service to stop too: a run that nobody reads would go on, and be billed."""
        is_over = self._finished is not None or not self._call.cancels
        cancel = None if is_over else self._call.wire.cancel
        now_ms = round(time.time() * 1000)
        request = cancel(self._started, now_ms) if cancel and self._started else None
        if request is not None:
            self._call.service.send_off(request)
