"""What perplexity.ai says went wrong: inside a reply with HTTP 200, or by its status.

Facts: consumer-web 2.10 and 3.4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ipyperplexity.errors import (
    AuthenticationError,
    ChallengeError,
    InvalidRequestError,
    PerplexityError,
    QuotaError,
    RateLimitError,
    StreamError,
)
from ipyperplexity.wire import problems, values
from ipyperplexity.wire.base import WireRequest
from ipyperplexity.wire.consumer_constants import FAILED_STATUSES

LOG_IN = "Log in to perplexity.ai again: %perplexity login --web --force"
_LENGTH = 500


class _Kind(NamedTuple):
    error: type[PerplexityError]
    lead: str
    hint: str


_LIMITED = _Kind(
    RateLimitError,
    "perplexity.ai asks to slow down, or your plan's questions are used up",
    "Wait, or ask with another model: the limit may hold for this one only.",
)
_NOT_SIGNED_IN = _Kind(AuthenticationError, "perplexity.ai does not accept the login", LOG_IN)
_UNSUITABLE = _Kind(
    StreamError,
    "perplexity.ai reports that the answer failed",
    "Ask again. If it stays so, your plan may not have this model: leave the model out.",
)
_BLOCKED = _Kind(
    StreamError, "perplexity.ai has blocked the answer", "Ask in other words, or another question."
)
_FAILED = _Kind(
    StreamError, "perplexity.ai reports that the answer failed", "Ask again in a moment."
)
_USED_UP = _Kind(
    QuotaError,
    "perplexity.ai says that your plan is used up",
    "Wait until it is renewed, or ask with an API key: -b agent (in Python backend='agent').",
)
_CHANGED = _Kind(
    InvalidRequestError,
    "perplexity.ai refused the request; its private protocol may have changed",
    "Update ipyperplexity. The API works meanwhile, with a key: -b agent (in Python "
    "backend='agent').",
)
#: HTTP status -> what it means (consumer-web 3.4). A challenge has a 403 too, and keeps its error.
_BY_STATUS = {
    **dict.fromkeys((400, 404, 405, 422), _CHANGED),
    **dict.fromkeys((401, 403), _NOT_SIGNED_IN),
    402: _USED_UP,
    429: _LIMITED,
}
#: Part of an ``error_code`` -> what it means; the first that fits counts.
_BY_CODE = {
    "RATE_LIMIT": _LIMITED,
    "QUOTA": _LIMITED,
    "TOO_MANY_REQUESTS": _LIMITED,
    "UNAUTHENTICATED": _NOT_SIGNED_IN,
    "UNAUTHORIZED": _NOT_SIGNED_IN,
    "GENERIC_FAILED_RESPONSE": _UNSUITABLE,
}


def status_of(record: dict[str, Any]) -> str:
    """Return a record's status in upper case: both are seen."""
    return values.text(record.get("status")).upper()


def is_failed(record: dict[str, Any]) -> bool:
    """Whether a record says that the run failed, whatever text it has."""
    return status_of(record) in FAILED_STATUSES or _details(record) != ("", "")


def problem(
    record: dict[str, Any], *, asked: str | None, sentence: str = ""
) -> PerplexityError | None:
    """Return the failure that a record reports, or None.

    Parameters
    ----------
    record : dict
        One record of a stream, or a JSON reply in its place.
    asked : str or None
        The model that was asked for: it may be why.
    sentence : str
        An error sentence that stood in the record's text.

    Examples
    --------
    >>> limited = {"status": "failed", "error_code": "FREE_TIER_RATE_LIMITED"}
    >>> problem(limited, asked="gpt54").code
    'RATE_LIMIT'
    """
    code, message = _details(record)
    status = status_of(record)
    if not (code or message or sentence) and status not in FAILED_STATUSES:
        return None
    kind = next((kind for part, kind in _BY_CODE.items() if part in code.upper()), None)
    if kind is None:
        kind = _BLOCKED if status == "BLOCKED" else _FAILED
    return kind.error(_told(kind, message or sentence or code, asked), hint=kind.hint)


def explain(failure: PerplexityError, request: WireRequest) -> PerplexityError:
    """Return the error that a refusal by HTTP status is on this site: nothing is about an API key.

    Parameters
    ----------
    failure : PerplexityError
        As :func:`ipyperplexity.wire.problems.from_http` made it.
    request : WireRequest
        What was refused.

    Examples
    --------
    >>> refused = problems.from_http(401, {}, b'{"text": "expired"}', 0.0)
    >>> explain(refused, WireRequest("/", None)).message
    'perplexity.ai does not accept the login: expired.'
    """
    kind = _BY_STATUS.get(failure.status_code or 0)
    if isinstance(failure, QuotaError):
        kind = _USED_UP
    if kind is None or isinstance(failure, ChallengeError):
        return failure
    return kind.error(
        _told(kind, problems.own_words(failure), request.model),
        hint=kind.hint,
        field=failure.field,
        status_code=failure.status_code,
        request_id=failure.request_id,
        retry_after=failure.retry_after,
    )


def forgot_thread(failure: PerplexityError) -> bool:
    """Whether a refused follow-up may mean a thread that is gone, or another account's.

    Then the status is 403; it may also be a model that the plan does not have, or an expired login.
    """
    return isinstance(failure, AuthenticationError) and failure.status_code == 403


def _told(kind: _Kind, reason: str, asked: str | None) -> str:
    reason = _short(reason)
    said = (f"{kind.lead}: {reason}" if reason else kind.lead).rstrip(".")
    model = f" (asked with the model {asked})" if asked else ""
    return f"{said}{model}."


def asks_back(questions: list[str]) -> PerplexityError:
    """Return the error for a run that asks questions instead of answering.

    The question is what has to change, and asking it again unchanged only spends the plan's
    research runs: so it is an :class:`InvalidRequestError`, not a broken stream.
    """
    listed = "\n".join(f"- {_short(question)}" for question in questions)
    return InvalidRequestError(
        "question: perplexity.ai wants to know more before it researches this.",
        field="question",
        hint=f"Ask again, with the answers in the question:\n{listed}",
    )


def _details(record: dict[str, Any]) -> tuple[str, str]:
    """Return the code and the message of a failure, each if there is one."""
    code, message = record.get("error_code"), record.get("error_message")
    error, detail = record.get("error"), record.get("detail")
    if isinstance(error, dict):
        code = code or error.get("code") or error.get("error_code") or error.get("type")
        message = message or error.get("message")
    else:
        message = message or error
    if isinstance(detail, list):  # each has `loc` and `msg`
        detail = "; ".join(values.text(part.get("msg")) for part in values.objects(detail))
    message = message or detail
    return _word(code), values.clean(message).strip() if isinstance(message, str) else ""


def _word(code: Any) -> str:
    is_number = isinstance(code, int) and not isinstance(code, bool) and -1e6 < code < 1e6
    return values.clean(code) if isinstance(code, str) else str(code) if is_number and code else ""


def _short(text: str) -> str:
    text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return text if len(text) <= _LENGTH else text[: _LENGTH - 3] + "..."
