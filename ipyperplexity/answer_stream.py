"""An answer while it is written: iterate its events, stop it from anywhere, hold it at the end.

The life of one question: request, retries before the first byte, events, and in every case (done,
broken, stopped, interrupted) an Answer with all the text that came. An error is raised outside
``except`` blocks and without the frames below, so that no traceback can show what they hold.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import json
import re
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

from ipyperplexity.answer import Answer, Image, Usage
from ipyperplexity.citations import count_citations
from ipyperplexity.errors import (
    AbortedError,
    ChallengeError,
    EmptyAnswerError,
    PerplexityError,
    StreamError,
)
from ipyperplexity.events import (
    Event,
    Finished,
    ImagesFound,
    ReasoningDelta,
    Retrying,
    Searching,
    SourcesFound,
    Started,
    TextDelta,
)
from ipyperplexity.net.redact import Secret, redact, redact_json
from ipyperplexity.net.retry import RetryPolicy
from ipyperplexity.net.transport import TICK, Exchange, Head, collect
from ipyperplexity.question import Question
from ipyperplexity.schema import SchemaMismatch
from ipyperplexity.schema.frame import Layout
from ipyperplexity.sources import Sources
from ipyperplexity.wire import problems, sse
from ipyperplexity.wire.base import Wire, WireRequest

#: Bytes of an error's body that are read, and the seconds that may take.
_ERROR_BODY_BYTES = 256 * 1024
_ERROR_BODY_SECONDS = 5.0


@dataclass(frozen=True)
class Call:
    """What a stream needs to run: fixed when the question is asked, whatever changes after.

    Attributes
    ----------
    backend : str
        Name for the Answer.
    wire : Wire
    open : callable
        ``open(request, began)`` sends a WireRequest and returns its Exchange; ``began`` is when
        the question's time began.
    total : float
        Seconds that the whole answer may take, retries and all.
    policy : RetryPolicy
    secret : Secret or None
        To keep out of messages and records.
    """

    backend: str
    wire: Wire
    open: Callable[[WireRequest, float], Exchange]
    total: float
    policy: RetryPolicy
    secret: Secret | None = None


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
        # Bad input is refused here, when the stream is made, not when it is first read.
        self._request = call.wire.request(question, stream=streaming, resume=self._may_resume(call))
        self.warnings += self._request.notices
        self._call = call
        self._streaming = streaming
        self._hand_over = hand_over
        self._pieces: list[str] = []
        self._joined = (0, "")  # the first so many pieces, and their text
        self._reasoning: list[str] = []
        self._id: str | None = None
        self._finished: Finished | None = None
        self._answer: Answer | None = None
        self._cancelled = threading.Event()
        self._exchange: Exchange | None = None
        self._created = dt.datetime.now(dt.UTC)
        self._began: float | None = None
        self._first_text: float | None = None
        self._running = self._run()

    def _may_resume(self, call: Call) -> bool:
        """Whether the service that is asked is the one that keeps the earlier answer."""
        follow = self.question.follow
        return follow is not None and follow.stored and follow.backend == call.backend

    # --- what users do with it ----------------------------------------------------------------

    def __iter__(self) -> Iterator[Event]:
        return self._running

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
        self._cancelled.set()
        exchange = self._exchange
        if exchange is not None:
            exchange.stop()

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

    def _run(self) -> Generator[Event, None, None]:
        self._created, self._began = dt.datetime.now(dt.UTC), time.monotonic()
        failure: PerplexityError | None = None
        pieces = self._pieces
        try:
            for event in self._events(self._began):
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
            if self._exchange is not None:
                self._exchange.close()
                self._exchange = None
        if failure is None:
            failure = self._check()
        if failure is None:
            self._end(self._finished.status if self._finished else "completed", None)
        elif self._cancelled.is_set():  # whatever the stop broke, it is no failure of the service
            self._end("stopped", AbortedError("The answer was stopped."))
        else:
            self._redact(failure)
            self._end("failed", failure)
            failure.__cause__ = failure.__context__ = None
            raise failure.with_traceback(None)

    def _events(self, began: float) -> Iterator[Event]:
        attempt = 0
        while True:
            if self._cancelled.is_set():
                raise AbortedError("The answer was stopped.")
            exchange = self._exchange = self._call.open(self._request, began)
            if self._cancelled.is_set():  # while the exchange was being made
                exchange.stop()
            exchange.on_wait = _weakly(self._look)
            head, failure = self._attempt(exchange)
            if failure is None:
                break
            exchange.close()
            if self._request.continues and _forgot_answer(failure):
                # The service no longer knows the earlier answer: send the conversation instead.
                self._request = self._call.wire.request(
                    self.question, stream=self._streaming, resume=False
                )
                continue
            delay = self._call.policy.delay(failure, attempt, unsent=exchange.unsent)
            if delay is None or time.monotonic() + delay > began + self._call.total:
                raise failure
            attempt += 1
            yield Retrying(attempt, delay, redact(failure.message, [self._call.secret]))
            self._wait(delay)
        yield from self._read(exchange, head)

    def _attempt(self, exchange: Exchange) -> tuple[Head, PerplexityError | None]:
        """Wait for a reply's head; return with it the failure that it, or its lack, means."""
        failure: PerplexityError | None = None
        head = Head(0, {})
        try:
            head = exchange.head()
        except AbortedError:
            raise
        except PerplexityError as error:
            failure = error.with_traceback(None)
        if failure is None and not 200 <= head.status < 300:
            body = exchange.excerpt(_ERROR_BODY_BYTES, _ERROR_BODY_SECONDS)
            failure = problems.from_http(head.status, head.headers, body, time.time())
        return head, failure

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._cancelled.wait(min(TICK, left)):
                raise AbortedError("The answer was stopped.")
            self._look()

    def _look(self) -> None:
        if self.on_wait is not None:
            self.on_wait()

    def _read(self, exchange: Exchange, head: Head) -> Iterator[Event]:
        kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
        chunks = exchange.chunks()
        lead, first = b"", b""
        for chunk in chunks:
            lead += chunk
            if first := lead.lstrip(_BLANK)[:1]:
                break
        whole = itertools.chain((lead,), chunks)
        # A gateway may label the one as the other; the first character tells them apart.
        if first not in _PAGE_BEGINS and (kind not in _NOT_STREAMS or first in _STREAM_BEGINS):
            yield from self._call.wire.fold(sse.decode(whole))
            return
        body = collect(whole)
        reply, is_json = None, True
        try:
            reply = json.loads(body.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            is_json = False
        if not is_json:
            if problems.is_challenge(head.headers, body):
                raise ChallengeError(
                    "A browser check (Cloudflare) answered, not Perplexity.",
                    status_code=head.status,
                )
            raise StreamError(
                f"The service answered with {kind or 'something'} instead of an answer.",
                hint="Check PERPLEXITY_BASE_URL: this may be some other server.",
                status_code=head.status,
            )
        yield from self._call.wire.fold_body(reply)

    def _note(self, event: Event) -> None:
        if isinstance(event, Started):
            self._id = event.id or self._id
            self.model = event.model or self.model
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
            if not (self.text.strip() or self.sources or self.images):
                return EmptyAnswerError("The service finished without text and without sources.")
            if self.question.schema is not None:
                return self._check_data()
        return None

    def _check_data(self) -> PerplexityError | None:
        try:
            self._data = self.question.schema.parse(self.text)
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

    def _redact(self, failure: PerplexityError) -> None:
        """Hide the key in whatever the service said."""
        for name in ("message", "hint", "field", "request_id"):
            if value := getattr(failure, name):
                setattr(failure, name, redact(value, [self._call.secret]))
        failure.args = (failure.message,)

    def _raw(self) -> dict[str, Any]:
        try:
            raw = redact_json(self._finished.raw, (self._call.secret,)) if self._finished else {}
        except RecursionError:  # it could not be pickled or saved either
            raw = {}
        return dict(raw)

    def _usage(self) -> Usage:
        usage = self._finished.usage if self._finished else Usage()
        # The engine says what the service would have asked; nobody asks for it.
        return dataclasses.replace(usage, cost_usd=0.0) if self._call.backend == "demo" else usage

    def _end(self, status: str, error: PerplexityError | None) -> None:
        if self._answer is not None:
            return
        text, finished, follow = self.text, self._finished, self.question.follow
        sources = count_citations(text, self.sources)
        kept = sources.head(self.question.limit)
        secrets = (self._call.secret,)
        reason = finished.finish_reason if finished else None
        id = (finished.id if finished else None) or self._id
        self._answer = answer = Answer(
            question=self.question.text,
            text=text,
            reasoning=self.reasoning,
            sources=kept,
            searches=self.searches,
            images=self.images,
            data=self._data,
            usage=self._usage(),
            model=redact(self.model, secrets) if self.model else None,
            backend=self._call.backend,
            id=redact(id, secrets) if id else None,
            status=status,
            finish_reason=redact(reason, secrets) if reason else None,
            truncated=len(kept) < len(sources),
            error=error,
            created=self._created,
            elapsed=self.elapsed,
            first_text=self._first_text,
            raw=self._raw(),
            turns=follow.conversation() if follow is not None else (),
            options=self.question.given(),
            warnings=tuple(redact(warning, secrets) for warning in self.warnings),
            data_layout=self._data_layout,
            stored=finished is not None and finished.stored and status == "completed",
        )
        if error is not None:
            error.answer = answer
        self._hand_over(answer)


def _weakly(method: Callable[[], None]) -> Callable[[], None]:
    # The reader thread holds the exchange: it must not hold the stream as well, or a stream that
    # nobody wants any more would read on.
    reference = weakref.WeakMethod(method)

    def call() -> None:
        if (alive := reference()) is not None:
            alive()

    return call


_BLANK = b"\xef\xbb\xbf \t\r\n"  # and the bytes of a byte order mark
_PAGE_BEGINS = (b"{", b"[", b"<", b'"')
_STREAM_BEGINS = (b":", b"d", b"e", b"i", b"r")  # a comment, data, event, id, retry
_NOT_STREAMS = ("application/json", "text/html", "application/xhtml+xml")


def _forgot_answer(failure: PerplexityError) -> bool:
    """Whether the service refuses because it no longer knows the answer that is gone on from."""
    if failure.status_code == 404 or failure.field == "previous_response_id":
        return True
    about_it = re.search(r"previous|resp_|response", failure.message.rpartition(": ")[2], re.I)
    return failure.status_code == 400 and failure.field is None and about_it is not None
