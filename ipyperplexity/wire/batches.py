"""The Batch API: a file of questions, a batch made of it, and the file of answers that comes back.

It follows the shape of OpenAI's (docs.perplexity.ai/docs/agent-api/batch): each line of the input
is a request of the Agent API, each line of the two files that come back is the reply to one, in any
order (``batch_results``).

A line's ``custom_id`` is a digest of its request. So the same question has the same id in every
file, and is recognized in a batch that an earlier process has left at the service.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

from ipyperplexity.errors import (
    AbortedError,
    InvalidRequestError,
    PerplexityError,
    RequestTimeout,
    StreamError,
)
from ipyperplexity.question import Question
from ipyperplexity.tools import Tool
from ipyperplexity.wire import agent, problems, values
from ipyperplexity.wire.base import WireRequest

PATH = "/v1/batches"
FILES_PATH = "/v1/files"
FILE_NAME = "batch.jsonl"
#: Fields of the form beside the file.
FILE_FIELDS = {"purpose": "batch"}
#: The service's limits for one file (api-reference/files-create-post); 200 MB read as the smaller.
MAX_LINES = 50_000
MAX_BYTES = 200 * 10**6
#: Days that the service keeps files and results.
KEPT_DAYS = 30

RUNNING = ("validating", "in_progress", "finalizing", "cancelling")
ENDED = ("completed", "failed", "expired", "cancelled")


# --- what is sent --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """A question as a line of the input file.

    Attributes
    ----------
    custom_id : str
        Digest of the request: 32 hex digits, the same for the same question.
    data : bytes
        The line, with its end.
    """

    custom_id: str
    data: bytes = field(repr=False)


def line(question: Question) -> Line:
    """Return a question as a line of the input file.

    A follow-up is sent with its whole conversation: nobody is there to send it again if the service
    has forgotten the earlier answer.

    Raises
    ------
    InvalidRequestError
        If it cannot be asked so.

    Examples
    --------
    >>> made = line(Question("Why?", model="fast"))
    >>> sorted(json.loads(made.data))
    ['body', 'custom_id', 'method', 'url']
    >>> made.custom_id == line(Question("Why?", model="fast", timeout=5)).custom_id
    True
    """
    if any(isinstance(tool, Tool) for tool in question.tools):
        raise InvalidRequestError(
            "tools: got functions; allowed: in a batch only the service's own tools.",
            field="tools",
            hint="A batch runs without this process, and cannot call it: leave out mode='server'.",
        )
    body = dict(agent.request(question, stream=False, resume=False).body or {})
    body.pop("stream_options", None)  # raw fields may bring them, and there is no stream
    custom_id = hashlib.sha256(_json(body)).hexdigest()[:32]
    whole = {"custom_id": custom_id, "method": "POST", "url": agent.PATH, "body": body}
    return Line(custom_id, _json(whole) + b"\n")


def _json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    # To some readers these end a line as well.
    for char in "\x85\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text.encode("utf-8", "replace")


def create(file_id: str, key: str) -> WireRequest:
    """Return the request that makes a batch of a file.

    Parameters
    ----------
    file_id : str
        Of the input file.
    key : str
        ``Idempotency-Key``: the same one makes no second batch (api-reference/batches-create-post).
    """
    body = {
        "input_file_id": _checked(file_id),
        "endpoint": agent.PATH,
        "completion_window": "24h",
    }
    return WireRequest(PATH, body, {"Idempotency-Key": key})


def look(id: str) -> WireRequest:
    """Return the request that shows how far a batch is.

    Raises
    ------
    InvalidRequestError
        If this is no id.

    Examples
    --------
    >>> look("batch_1").method, look("batch_1").path
    ('GET', '/v1/batches/batch_1')
    """
    return WireRequest(f"{PATH}/{_checked(id)}", None, method="GET")


def cancel(id: str) -> WireRequest:
    """Return the request that ends a batch; what it has answered by then is kept."""
    return WireRequest(f"{PATH}/{_checked(id)}/cancel", None)


def content(file_id: str) -> WireRequest:
    """Return the request for the lines of a file."""
    accept = {"Accept": "application/octet-stream"}
    return WireRequest(f"{FILES_PATH}/{_checked(file_id)}/content", None, accept, method="GET")


#: As it goes into an address, it must be nothing else than an id.
_ID = re.compile(r"[\w-]{1,200}", re.ASCII)


def _checked(id: str) -> str:
    if not (isinstance(id, str) and _ID.fullmatch(id)):
        raise InvalidRequestError(
            f"id: got {str(id)[:60]!r}; allowed: an id, such as batch_123.", field="id"
        )
    return id


# --- what comes back -----------------------------------------------------------------------------


def expired() -> PerplexityError:
    """Return what became of a question that a batch had no time for."""
    return RequestTimeout(
        "The batch expired before this question was answered.",
        hint="The same call asks what is missing.",
    )


def cancelled() -> PerplexityError:
    """Return what became of a question of a batch that was cancelled."""
    return AbortedError(
        "The batch was cancelled before this question was answered.",
        hint="The same call asks what is missing.",
    )


_UNASKED = {"expired": expired, "cancelled": cancelled}


@dataclass(frozen=True)
class BatchState:
    """How far a batch is, as a GET shows it.

    Attributes
    ----------
    id : str
    status : str
        ``validating``, ``in_progress``, ``finalizing``, ``cancelling``, ``completed``, ``failed``,
        ``expired`` or ``cancelled``.
    total, completed, failed : int
        Lines in all, answered and failed.
    output_file_id, error_file_id : str or None
        Where the lines are that were answered, and those that were not.
    errors : tuple of (int or None, str)
        Why it failed as a whole: number of the input line (from 1) if one is to blame, and text.
    """

    id: str
    status: str
    total: int = 0
    completed: int = 0
    failed: int = 0
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: tuple[tuple[int | None, str], ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.status in ENDED

    def why_missing(self, number: int | None = None) -> PerplexityError:
        """Return why a line has no result in either file.

        Parameters
        ----------
        number : int, optional
            Of the line in the input file, from 1.
        """
        if self.status in _UNASKED:
            return _UNASKED[self.status]()
        if self.status != "failed":
            return StreamError(
                "The results of the batch have no line for this question.",
                hint="It may have been billed. Ask again.",
            )
        own = next((text for line, text in self.errors if line == number and line), None)
        if own is not None:
            return InvalidRequestError(f"The service refused the question: {own}")
        told = "; ".join(f"line {line}: {text}" if line else text for line, text in self.errors[:3])
        return InvalidRequestError(
            f"The service refused the whole batch: {told or 'it does not say why'}",
            hint="Nothing was asked. Mend what it names, and ask again.",
        )


def read_file(reply: Any) -> str:
    """Return the id of the file that was uploaded.

    Raises
    ------
    PerplexityError
        If the reply names none.

    Examples
    --------
    >>> read_file({"id": "file_1", "object": "file"})
    'file_1'
    """
    id = values.text(reply.get("id")) if isinstance(reply, dict) else ""
    if not _ID.fullmatch(id):
        _refuse(reply, "a file")
    return id


def read_batch(reply: Any) -> BatchState:
    """Read the reply to :func:`create`, :func:`look` or :func:`cancel`.

    Raises
    ------
    PerplexityError
        If it shows no batch.

    Examples
    --------
    >>> read_batch({"id": "batch_1", "status": "validating", "errors": None}).is_over
    False
    """
    known = reply if isinstance(reply, dict) else {}
    id, status = values.text(known.get("id")), values.text(known.get("status"))
    if not (_ID.fullmatch(id) and status):
        _refuse(reply, "a batch")
    given = known.get("request_counts")
    counts = given if isinstance(given, dict) else {}
    n_total, n_done, n_failed = (
        max(0, values.whole(counts.get(name)) or 0) for name in ("total", "completed", "failed")
    )
    output, errors = (
        name if _ID.fullmatch(name := values.text(known.get(key))) else None
        for key in ("output_file_id", "error_file_id")
    )
    told = _errors(known.get("errors"))
    return BatchState(id, _meaning(status, known), n_total, n_done, n_failed, output, errors, told)


def _errors(given: Any) -> tuple[tuple[int | None, str], ...]:
    listed = given.get("data") if isinstance(given, dict) else given
    return tuple(
        (
            values.whole(error.get("line")),
            values.clean(values.text(error.get("message")) or values.text(error.get("code")))[:500],
        )
        for error in values.objects(listed)
    )


def _meaning(status: str, reply: dict[str, Any]) -> str:
    status = "cancelled" if status == "canceled" else status
    if status in RUNNING or status in ENDED:
        return status
    # A word of a later version: what only an ended batch has tells.
    for ending in ENDED:
        if reply.get(f"{ending}_at"):
            return ending
    return "in_progress"


def _refuse(reply: Any, what: str) -> None:
    if isinstance(reply, dict) and reply.get("error"):
        raise problems.from_run(reply["error"])
    raise StreamError(
        f"The reply is not {what} of the Batch API.",
        hint="Check PERPLEXITY_BASE_URL: this may be some other server.",
    )


def refused_line(failure: PerplexityError) -> int | None:
    """Return the number (from 1) of the line for which the service refused a file, if it says so.

    Examples
    --------
    >>> refused_line(InvalidRequestError("line 3: invalid model", status_code=400))
    3
    """
    if not isinstance(failure, InvalidRequestError) or failure.status_code not in (400, 422):
        return None
    found = re.search(r"\blines?\W{1,3}(\d{1,6})\b", failure.message, re.I)
    return int(found.group(1)) or None if found else None
