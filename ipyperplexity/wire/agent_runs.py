"""The Agent API's background runs: create, look at, take up again, cancel (official-api 4.3, 6).

Whatever way a run is followed, it is read as one stream of frames: what a GET shows is written as
the frames that a stream would have had, and goes through the same reader. So an answer that was
waited for, or whose stream broke off and was taken up again, is the one that a stream gives.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ipyperplexity.errors import InvalidRequestError, StreamError
from ipyperplexity.events import Event, Started
from ipyperplexity.question import Question
from ipyperplexity.tools import Tool
from ipyperplexity.wire import agent, problems, values
from ipyperplexity.wire.base import WireRequest
from ipyperplexity.wire.sse import Frame

RUNNING = ("queued", "in_progress")
ENDED = ("completed", "incomplete", "failed", "cancelled")
#: The set of statuses is open (official-api 3.5): those that mean one of the above.
_MEANT = {"cancelling": "in_progress", "requires_action": "incomplete", "canceled": "cancelled"}
_ENDS = {
    **{f"response.{status}": status for status in ENDED},
    "response.requires_action": "incomplete",
}
_ERRORS = ("error", "response.error")


# --- requests ------------------------------------------------------------------------------------


def create(question: Question, *, stream: bool = False, resume: bool = True) -> WireRequest:
    """Return the request that leaves a question to the service.

    Parameters
    ----------
    question : Question
    stream : bool
        Whether to create it as a stream. Only runs that were created so can be followed as one
        later (official-api 4.3).
    resume : bool
        Whether a follow-up names the earlier answer's id, or is sent with the whole conversation.

    Raises
    ------
    InvalidRequestError
        If the answer could never be fetched, or needs functions of this process.

    Examples
    --------
    >>> create(Question("Why?", model="high")).body["background"]
    True
    """
    if any(isinstance(tool, Tool) for tool in question.tools):
        raise InvalidRequestError(
            "tools: got functions; allowed: in the background only the service's own tools.",
            field="tools",
            hint="A run that goes on without this process cannot call it: use ask or stream.",
        )
    request = agent.request(question, stream=stream, resume=resume)
    body = dict(request.body or {})
    if body.get("store") is False:
        # official-api 6: a GET of such a run is a 404.
        raise InvalidRequestError(
            "extra: got store=False; allowed: runs that the service keeps.",
            field="extra",
            hint="An answer that is not kept cannot be fetched later: leave store out.",
        )
    body["background"] = True
    models = body.get("models")
    first = models[0] if isinstance(models, list) and models else None
    asked = body.get("preset") or first or body.get("model") or body.get("effort")
    return WireRequest(
        request.path,
        body,
        request.headers,
        request.notices,
        request.continues,
        model=asked if isinstance(asked, str) else None,
    )


def look(id: str) -> WireRequest:
    """Return the request that shows how far a run is.

    Raises
    ------
    InvalidRequestError
        If this is no id.

    Examples
    --------
    >>> look("resp_1").method, look("resp_1").path
    ('GET', '/v1/responses/resp_1')
    """
    return WireRequest(_path(id), None, method="GET")


def resume(id: str, after: int) -> WireRequest:
    """Return the request that streams a run's events whose sequence number is above ``after``.

    Examples
    --------
    >>> resume("resp_1", 7).path
    '/v1/responses/resp_1?stream=true&starting_after=7'
    """
    path = f"{_path(id)}?stream=true&starting_after={max(0, after)}"
    return WireRequest(path, None, {"Accept": "text/event-stream"}, method="GET")


def cancel(id: str) -> WireRequest:
    """Return the request that ends a run."""
    return WireRequest(f"{_path(id)}/cancel", None)


def _path(id: str) -> str:
    known = agent.cancel(Started(id)) if isinstance(id, str) else None
    if known is None:
        raise InvalidRequestError(
            f"id: got {str(id)[:60]!r}; allowed: a run's id, such as resp_123.", field="id"
        )
    return known.path.removesuffix("/cancel")


# --- what comes back -----------------------------------------------------------------------------


@dataclass(frozen=True)
class RunState:
    """How far a run is, as a GET shows it.

    Attributes
    ----------
    status : str
        ``queued``, ``in_progress``, ``completed``, ``incomplete``, ``failed`` or ``cancelled``.
    searches, sources : int
        How many searches were made, and how many different pages they found.
    record : dict
        The service's own.
    """

    status: str
    searches: int = 0
    sources: int = 0
    record: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return self.status in ENDED


def read_created(reply: Any) -> Iterator[Event]:
    """Read the reply to :func:`create` that is no stream: it names the run.

    Raises
    ------
    PerplexityError
        If it names none.
    """
    id = values.text(reply.get("id")) if isinstance(reply, dict) else ""
    if not id:
        _refuse(reply)
    yield Started(values.clean(id), values.clean(values.text(reply.get("model"))) or None)


def read_state(reply: Any) -> RunState:
    """Read the reply to :func:`look`.

    Raises
    ------
    PerplexityError
        If it shows no run.

    Examples
    --------
    >>> read_state({"id": "resp_1", "status": "in_progress", "output": []}).is_over
    False
    """
    status = values.text(reply.get("status")) if isinstance(reply, dict) else ""
    if not status:
        _refuse(reply)
    found = [item for item in values.objects(reply.get("output")) if "results" in item]
    pages = [page for item in found for page in values.objects(item["results"])]
    # Unhashable or missing, an address tells nothing apart.
    urls = {values.text(page.get("url")) or f"#{at}" for at, page in enumerate(pages)}
    searches = sum(values.text(item.get("type")).endswith("search_results") for item in found)
    return RunState(_meaning(status, reply), searches, len(urls), reply)


def _refuse(reply: Any) -> None:
    if isinstance(reply, dict) and reply.get("error"):
        raise problems.from_run(reply["error"])
    raise StreamError(
        "The reply is not a run of the Agent API.",
        hint="Check PERPLEXITY_BASE_URL: this may be some other server.",
    )


def _meaning(status: str, reply: dict[str, Any]) -> str:
    status = _MEANT.get(status, status)
    if status in RUNNING or status in ENDED:
        return status
    # A word of a later version: what only an ended run has tells (official-api 3.4, 3.5).
    if reply.get("error"):
        return "failed"
    return "incomplete" if reply.get("usage") else "in_progress"


def frames_of(state: RunState) -> Iterator[Frame]:
    """Yield the frames that a stream would have had up to this state."""
    record = state.record
    if state.is_over:
        yield _frame({"type": f"response.{state.status}", "response": record})
        return
    yield _frame({"type": f"response.{state.status}", "response": {**record, "output": []}})
    for index, item in enumerate(values.items(record.get("output"))):
        # Texts are not finished, and calls are told at the end.
        if isinstance(item, dict) and item.get("type") not in ("message", "function_call"):
            yield _frame({"type": "response.output_item.done", "output_index": index, "item": item})


def _frame(message: dict[str, Any]) -> Frame:
    return Frame("", json.dumps(message))


@dataclass(frozen=True)
class Seen:
    """What matters of a frame to whoever follows a run.

    Attributes
    ----------
    number : int or None
        Its sequence number: where to go on.
    ends : str or None
        The status that the run has ended with.
    is_error : bool
        Whether it reports an error outside of the run's own record: of the run, or only of this
        stream.
    is_loose : bool
        Whether it says something and has no number: after it a stream cannot be taken up again, as
        it would be told twice.
    """

    number: int | None = None
    ends: str | None = None
    is_error: bool = False
    is_loose: bool = False


def see(frame: Frame) -> Seen:
    """Return what matters of a frame.

    Examples
    --------
    >>> see(Frame("", '{"type": "response.completed", "sequence_number": 7}'))
    Seen(number=7, ends='completed', is_error=False, is_loose=False)
    """
    message = values.parse(frame.data)
    if not isinstance(message, dict):
        return Seen(is_error=frame.event in _ERRORS)  # such as a last one that was cut off
    kind = values.text(message.get("type")) or frame.event
    nested = message.get("response")
    status = values.text(nested.get("status")) if isinstance(nested, dict) else ""
    ends = _ENDS.get(kind)
    if ends in ("completed", "incomplete"):
        # A record may say of itself what the event's name does not (agent_reading).
        ends = next((s for s in ("failed", "cancelled", "incomplete") if s == status), ends)
    is_error = kind in _ERRORS or (not kind and bool(message.get("error")))
    number = values.whole(message.get("sequence_number"))
    is_loose = number is None and kind != "response.keepalive"
    return Seen(number, ends, is_error, is_loose=is_loose)
