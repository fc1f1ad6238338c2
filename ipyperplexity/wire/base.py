"""What a backend is: two pure functions and a name.

``request`` turns a Question into what is sent, ``fold`` turns the frames that come back into
events. What only some services do (run a function for the model, stop a run, refuse in a way of
their own) is a function more, or None. A wire knows no socket, no clock and no notebook, so it is
tested by feeding it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ipyperplexity.errors import PerplexityError
from ipyperplexity.events import Event, Started, ToolCalled, ToolReturned
from ipyperplexity.wire import problems
from ipyperplexity.wire.sse import Frame

#: Seconds for a whole answer (official-api 7).
TOTAL_TIMEOUT = 900.0


@dataclass(frozen=True)
class WireRequest:
    """A request, before it has an address or a credential.

    Attributes
    ----------
    path : str
        Below the base URL, with a leading slash.
    body : dict or None
        The JSON body; None for none.
    headers : dict
        Beside those that every request has.
    notices : tuple of str
        What the user should know about how the question was translated, one line each.
    continues : bool
        Whether it leans on an earlier answer that the service is believed to keep.
    method : str
        HTTP method.
    model : str or None
        The model that was asked for, as the service names it; None if the service chooses.
    """

    path: str
    body: dict[str, Any] | None
    headers: dict[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    continues: bool = False
    method: str = "POST"
    model: str | None = None


@dataclass(frozen=True)
class Wire:
    """A backend's two halves.

    Attributes
    ----------
    name : str
        As in ``backend=``.
    request : callable
        ``request(question, stream=True, resume=True)``; with ``resume=False`` a follow-up is sent
        with its whole conversation instead of the earlier answer's id.
    fold : callable
        ``fold(frames, request)``: frames of a stream, the reply to ``request``, to events.
    fold_body : callable
        ``fold_body(reply, request)``: a whole JSON reply to the same events.
    give_results : callable or None
        ``give_results(request, calls, results)``: the request with which an answer goes on after
        functions were run for it.
    cancel : callable or None
        ``cancel(started, at_ms)``: the request that stops a run on the service, from its newest
        ``Started`` event and the time in milliseconds since the epoch; None if there is nothing to
        stop it by.
    explain : callable or None
        ``explain(failure, request)``: the error that a refusal by HTTP status is for this service,
        where the one that fits most services would mislead.
    forgot : callable
        ``forgot(failure)``: whether the service refuses because it no longer knows the answer that
        a request goes on from.
    time_limit : callable
        ``time_limit(request)``: seconds that an answer may take unless the user says otherwise.
    """

    name: str
    request: Callable[..., WireRequest]
    fold: Callable[[Iterable[Frame], WireRequest], Iterator[Event]]
    fold_body: Callable[[Any, WireRequest], Iterator[Event]]
    give_results: (
        Callable[[WireRequest, Sequence[ToolCalled], Sequence[ToolReturned]], WireRequest] | None
    ) = None
    cancel: Callable[[Started, int], WireRequest | None] | None = None
    explain: Callable[[PerplexityError, WireRequest], PerplexityError] | None = None
    forgot: Callable[[PerplexityError], bool] = problems.forgot_answer
    time_limit: Callable[[WireRequest], float] = lambda request: TOTAL_TIMEOUT
