"""All requests of one answer: the question, and one more for each round of function calls.

What comes is told as one answer: one ``Finished`` at the end, sources and images of all rounds
together, usage added up. A round that the service has completed is paid for, so whatever happens
in a later one, what it brought is kept.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

from ipyperplexity.answer import Image, Usage
from ipyperplexity.asking import Asking
from ipyperplexity.errors import AbortedError, InvalidRequestError, RequestTimeout
from ipyperplexity.events import (
    Event,
    Finished,
    ImagesFound,
    ReasoningDelta,
    SourcesFound,
    TextDelta,
    TextReplaced,
    ToolCalled,
    ToolReturned,
)
from ipyperplexity.function_calls import FunctionCalls
from ipyperplexity.question import Question
from ipyperplexity.rounds import Rounds
from ipyperplexity.service import Service
from ipyperplexity.sources import Sources
from ipyperplexity.wire.base import Wire, WireRequest

#: Rounds, unless ``max_steps`` says otherwise.
MAX_ROUNDS = 10


@dataclass(frozen=True)
class Call:
    """What a stream needs to run: fixed when the question is asked, whatever changes after.

    Attributes
    ----------
    service : Service
        Where it goes.
    wire : Wire
    total : float or None
        Seconds that the whole answer may take, retries and all; None for the wire's own limit.
    cancels : bool
        Whether stopping the stream stops the run on the service too.
    """

    service: Service
    wire: Wire
    total: float | None = None
    cancels: bool = True


class AnswerRun:
    """The requests of an answer, one after the other.

    Parameters
    ----------
    question : Question
    call : Call
    streaming : bool
        Whether replies are streamed.
    text : callable
        Returns all text so far.
    look : callable
        Called about every 0.05 s while nothing comes; a bound method, held weakly.

    Attributes
    ----------
    functions : FunctionCalls
    raw : dict
        The service's final record of the last round that was completed.
    total : float
        Seconds that all of it may take.
    warnings : list of str
        What the earlier rounds warned of.

    Raises
    ------
    InvalidRequestError
        If the question cannot be asked so.
    """

    def __init__(
        self,
        question: Question,
        call: Call,
        *,
        streaming: bool,
        text: Callable[[], str],
        look: Callable[[], None],
    ) -> None:
        self._question, self._call, self._streaming = question, call, streaming
        self._text, self._look = text, look
        self.functions = FunctionCalls(question.tools, call.service.hide)
        if self.functions and call.wire.give_results is None:
            raise InvalidRequestError(
                f"tools: got functions; allowed: on the {call.wire.name} backend none.",
                field="tools",
                hint="Functions work on the agent and chat backends: backend='agent' or 'chat'.",
            )
        follow = question.follow
        # Whether the service that is asked is the one that keeps the earlier answer.
        resume = follow is not None and follow.stored and follow.backend == call.service.backend
        self._request = self._first_request(resume=resume)
        self.notices = self._request.notices
        self.total = call.total or call.wire.time_limit(self._request)
        self.raw: dict[str, Any] = {}
        self.warnings: list[str] = []
        self._rounds = Rounds()
        self._sources = Sources()  # those of the round that runs
        self._images: tuple[Image, ...] = ()
        self._stopped = threading.Event()
        self._asking: Asking | None = None
        self._began = 0.0

    def _first_request(self, *, resume: bool) -> WireRequest:
        return self._call.wire.request(self._question, stream=self._streaming, resume=resume)

    @property
    def is_stopped(self) -> bool:
        """Whether somebody has stopped it."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Stop it, from any thread."""
        self._stopped.set()
        asking = self._asking
        if asking is not None:
            asking.stop()

    def close(self) -> None:
        """Let go of the connection."""
        if self._asking is not None:
            self._asking.close()
            self._asking = None

    def settled(self, text: str) -> str:
        """Return the whole text with its markers numbered as the sources of all rounds are."""
        return self._rounds.settle(text, self._sources)

    def last_part(self, text: str) -> str:
        """Return what the last round wrote of the whole text; all of it if that is nothing."""
        part = text[self._rounds.start :]
        return part if part.strip() else text

    def usage(self, last: Usage) -> Usage:
        """Return what all rounds took, given what the last one did."""
        return self._rounds.total(last)

    def events(self, began: float) -> Iterator[Event]:
        """Yield what happens.

        Parameters
        ----------
        began : float
            When it was asked, on the monotonic clock.

        Raises
        ------
        PerplexityError
        """
        self._began = began
        while True:
            finished, calls = yield from self._round()
            if finished is None:
                return
            if not self._goes_on(finished, calls):
                yield from self._last_events(finished, calls)
                return
            self._keep(finished)
            yield from self._run_functions(calls)

    def _round(self) -> Generator[Event, None, tuple[Finished | None, list[ToolCalled]]]:
        """Yield the events of one request, as a part of the whole; return how it ended."""
        asking = self._asking = Asking(
            self._call.service,
            self._call.wire,
            self._request,
            afresh=lambda: self._first_request(resume=False),
            stopped=self._stopped,
            look=self._look,
        )
        finished: Finished | None = None
        calls: list[ToolCalled] = []
        before = self._text()
        gap = "\n\n" if before.strip() else ""
        line = "\n" if self._rounds.count else ""
        for event in asking.events(self._began, self.total):
            if type(event) is TextDelta:
                if gap:
                    yield TextDelta(gap)
                    gap = ""
            elif isinstance(event, TextReplaced):
                # A round takes back what it wrote itself, and nothing else.
                event = TextReplaced(before + ("\n\n" if before.strip() else "") + event.text)
                gap = ""
            elif isinstance(event, ReasoningDelta) and line:
                event, line = ReasoningDelta(line + event.text), ""
            elif isinstance(event, SourcesFound):
                self._sources = event.sources
                event = SourcesFound(self._rounds.sources(event.sources))
            elif isinstance(event, ImagesFound):
                self._images = event.images
                event = ImagesFound(self._rounds.all_images(event.images))
            elif isinstance(event, ToolCalled):
                calls.append(event)
                continue
            elif isinstance(event, Finished):
                finished = event
                continue
            yield event
        if asking.request is not self._request:  # asked afresh
            known = {*self.notices, *self.warnings}
            self.warnings += [notice for notice in asking.request.notices if notice not in known]
            self._request = asking.request
        return finished, calls

    def _goes_on(self, finished: Finished, calls: list[ToolCalled]) -> bool:
        """Whether there is another round."""
        waits = finished.status == "completed" or finished.finish_reason == "requires_action"
        return waits and self.functions.can_answer(calls) and not self._is_last()

    def _is_last(self) -> bool:
        return self._rounds.count + 1 >= (self._question.max_steps or MAX_ROUNDS)

    def _keep(self, finished: Finished) -> None:
        """Keep what a round brought before the next begins."""
        self._rounds.end(self._text(), self._sources, self._images, finished.usage)
        self._sources, self._images = Sources(), ()
        self.raw = finished.raw
        self.warnings += _without_waiting(finished)
        self.close()

    def _last_events(self, finished: Finished, calls: list[ToolCalled]) -> Iterator[Event]:
        yield from calls
        if self.functions.can_answer(calls) and self._is_last():
            n_rounds = self._rounds.count + 1
            self.functions.leave(calls, f"not run: max_steps={n_rounds} was reached")
            warning = f"The answer stopped after {n_rounds} rounds with functions. Raise max_steps."
            finished = dataclasses.replace(
                finished,
                status="incomplete",
                finish_reason="max_steps",
                warnings=(*_without_waiting(finished), warning),
            )
        else:
            self.functions.leave(calls)
        if (text := self.settled(self._text())) != self._text():
            yield TextReplaced(text)
        yield finished

    def _run_functions(self, calls: list[ToolCalled]) -> Iterator[Event]:
        results: list[ToolReturned] = []
        for call in calls:
            yield call
            self._check_time()
            results.append(self.functions.run(call, self._watch))
            yield results[-1]
            self._check_time()
        give_results = self._call.wire.give_results
        assert give_results is not None  # or the question had been refused
        self._request = give_results(self._request, calls, results)

    def _watch(self) -> None:
        self._check_time()
        self._look()

    def _check_time(self) -> None:
        if self._stopped.is_set():
            raise AbortedError("The answer was stopped.")
        if time.monotonic() - self._began > self.total:
            raise RequestTimeout(f"The answer took more than {self.total:g} s.", field="timeout")


def _without_waiting(finished: Finished) -> tuple[str, ...]:
    # That the service waits for results is no news to who gives them.
    return () if finished.finish_reason == "requires_action" else finished.warnings
