"""One request of an answer: sent, sent again where that helps, and its reply read into events.

Invariant: nothing is sent twice once the first byte of a body has come, and whoever stops it is
heard within a moment, wherever it is.
"""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections.abc import Callable, Iterator

from ipyperplexity.errors import AbortedError
from ipyperplexity.events import Event, Retrying
from ipyperplexity.net.replies import content_type, read_json
from ipyperplexity.net.transport import TICK, Exchange, Head, collect
from ipyperplexity.service import Service
from ipyperplexity.wire import sse
from ipyperplexity.wire.base import Wire, WireRequest


class Asking:
    """A request on its way.

    Parameters
    ----------
    service : Service
    wire : Wire
    request : WireRequest
    afresh : callable
        Returns the request to send when the service has forgotten what this one goes on from.
    stopped : threading.Event
        Set by whoever stops the answer, who then calls :meth:`stop`.
    look : callable
        Called about every 0.05 s while nothing comes; a bound method, held weakly.

    Attributes
    ----------
    request : WireRequest
        The one that was sent last.
    """

    def __init__(
        self,
        service: Service,
        wire: Wire,
        request: WireRequest,
        *,
        afresh: Callable[[], WireRequest],
        stopped: threading.Event,
        look: Callable[[], None],
    ) -> None:
        self.request = request
        self._service = service
        self._wire = wire
        self._afresh = afresh
        self._stopped = stopped
        self._look = _weakly(look)
        self._exchange: Exchange | None = None

    def stop(self) -> None:
        """Shut the connection, from any thread."""
        exchange = self._exchange
        if exchange is not None:
            exchange.stop()

    def close(self) -> None:
        """Let go of the connection."""
        if self._exchange is not None:
            self._exchange.close()
            self._exchange = None

    def events(self, began: float, total: float) -> Iterator[Event]:
        """Yield what comes; ``total`` seconds for all began at ``began``.

        Raises
        ------
        PerplexityError
        """
        attempt = 0
        continues = self.request.continues
        while True:
            if self._stopped.is_set():
                raise AbortedError("The answer was stopped.")
            exchange = self._exchange = self._service.open(self.request, began=began, total=total)
            if self._stopped.is_set():  # while the exchange was being made
                exchange.stop()
            exchange.on_wait = self._look
            head, failure = self._service.attempt(exchange)
            if failure is None:
                break
            exchange.close()
            if self._wire.explain is not None:
                failure = self._wire.explain(failure, self.request)
            if continues and self._wire.forgot(failure):
                # The service no longer knows the earlier answer: send the conversation instead,
                # once; whatever is refused then has another reason.
                self.request, continues = self._afresh(), False
                continue
            delay = self._service.policy.delay(failure, attempt, unsent=exchange.unsent)
            if delay is None or time.monotonic() + delay > began + total:
                raise failure
            attempt += 1
            yield Retrying(attempt, delay, self._service.hide(failure.message))
            self._wait(delay)
        yield from self._read(exchange, head)

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._stopped.wait(min(TICK, left)):
                raise AbortedError("The answer was stopped.")
            self._look()

    def _read(self, exchange: Exchange, head: Head) -> Iterator[Event]:
        kind = content_type(head)
        chunks = exchange.chunks()
        lead, first = b"", b""
        for chunk in chunks:
            lead += chunk
            if first := lead.lstrip(_BLANK)[:1]:
                break
        whole = itertools.chain((lead,), chunks)
        # A gateway may label the one as the other; the first character tells them apart.
        if first not in _PAGE_BEGINS and (kind not in _NOT_STREAMS or first in _STREAM_BEGINS):
            yield from self._wire.fold(sse.decode(whole), self.request)
            return
        reply = read_json(head, collect(whole))
        yield from self._wire.fold_body(reply, self.request)


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
