"""A failure that the service reports, as the error that a user can act on (official-api 7).

One table for HTTP statuses, one for the ``type`` and ``code`` words of a reply's ``error``. Bodies
are read defensively: JSON in four shapes, HTML of an edge server, or nothing.
"""

from __future__ import annotations

import email.utils
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ipyperplexity.errors import (
    AbortedError,
    AuthenticationError,
    ChallengeError,
    EndpointRetiredError,
    InvalidRequestError,
    NetworkError,
    PerplexityError,
    QuotaError,
    RateLimitError,
    RequestTimeout,
    ServerError,
)

#: ``type`` words of a refusal that is about the address, not the key (official-api 1).
RETIRED_TYPES = ("chat_completions_not_available", "agent_api_migration_required")

_BY_STATUS: dict[int, type[PerplexityError]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    402: QuotaError,
    403: AuthenticationError,
    404: InvalidRequestError,
    405: InvalidRequestError,
    408: RequestTimeout,
    409: ServerError,
    413: InvalidRequestError,
    422: InvalidRequestError,
    424: ServerError,
    429: RateLimitError,
}

_BY_WORD: dict[str, type[PerplexityError]] = {
    "invalid_api_key": AuthenticationError,
    "authentication_error": AuthenticationError,
    "unauthorized": AuthenticationError,
    "forbidden": AuthenticationError,
    "permission_denied": AuthenticationError,
    **dict.fromkeys(RETIRED_TYPES, EndpointRetiredError),
    "insufficient_quota": QuotaError,
    "insufficient_credits": QuotaError,
    "billing_error": QuotaError,
    "request_rate_limit_exceeded": RateLimitError,
    "rate_limit_exceeded": RateLimitError,
    "rate_limit_error": RateLimitError,
    "invalid_request": InvalidRequestError,
    "invalid_request_error": InvalidRequestError,
    "invalid_model": InvalidRequestError,
    "invalid_parameter": InvalidRequestError,
    "not_found": InvalidRequestError,
    "payload_too_large": InvalidRequestError,
    "gateway_timeout": RequestTimeout,
    "timeout": RequestTimeout,
    "cancelled": AbortedError,
}

_HINTS: dict[int, str] = {
    400: "Nothing was billed. Change the request and ask again.",
    403: "This key may not do this. Use a project key: organization keys are refused too.",
    404: "Check PERPLEXITY_BASE_URL: nothing answers at this address.",
    405: "Check PERPLEXITY_BASE_URL: this address takes no questions.",
    413: "The question is too large (32 MiB at most): send fewer pictures, or less text.",
    422: "Nothing was billed. Change the request and ask again.",
}

_STATUS = re.compile(r"[1-5]\d\d", re.ASCII)
_ABOUT_EARLIER = re.compile(r"previous|resp_|response", re.I)
_ABOUT_MODEL = re.compile(r"\bmodel\b", re.I)
_QUOTA = re.compile(r"\b(quota|credits?|billing|balance|payment)\b", re.I)
_CHALLENGE = re.compile(
    rb"just a moment|cf[-_]chl|challenge-platform|attention required"
    rb"|enable javascript and cookies|cf-browser-verification",
    re.I,
)
#: A longer wait is not slept through: the user is told instead (as the official SDK does).
MAX_RETRY_AFTER = 60.0
_MESSAGE_LENGTH = 500


def from_http(status: int, headers: Mapping[str, str], body: bytes, now: float) -> PerplexityError:
    """Return the error for a reply that is not an answer.

    Parameters
    ----------
    status : int
        HTTP status; 200 too, when the body is a page instead of an answer.
    headers : mapping
        Reply headers, looked up without regard to case.
    body : bytes
        As much of the body as was read.
    now : float
        Seconds since the epoch, for a ``Retry-After`` that is a date.
    """
    facts: dict[str, Any] = {
        "status_code": status,
        "request_id": headers.get("x-request-id"),
        "retry_after": retry_after(headers, now),
    }
    if is_challenge(headers, body):
        return ChallengeError("A browser check (Cloudflare) answered, not Perplexity.", **facts)
    if 300 <= status < 400:
        return NetworkError(
            "The service answered with a redirect, which is not followed: the key would go along.",
            hint="Check PERPLEXITY_BASE_URL (https, and no path that moved).",
            **facts,
        )
    message, word, field = _read_body(body)
    kind = _BY_WORD.get(word or "") or _BY_STATUS.get(status)
    if kind is None:
        kind = ServerError if status >= 500 else InvalidRequestError
    if kind in (AuthenticationError, RateLimitError) and message and _QUOTA.search(message):
        kind = QuotaError
    hint = None
    if kind in (InvalidRequestError, AuthenticationError):
        hint = _HINTS.get(status, kind.default_hint or _HINTS[400])
        if status == 404 and _ABOUT_MODEL.search(message or ""):
            # A server that knows no such model has been reached (Ollama, vLLM, OpenRouter).
            field, hint = field or "model", "Check the model's name: this server has none such."
    return kind(
        _sentence(kind, status, message),
        field=field if kind is InvalidRequestError else None,
        hint=hint,
        **facts,
    )


def from_run(error: Any, *, request_id: str | None = None) -> PerplexityError:
    """Return the error for a run that failed inside an HTTP 200 (official-api 3.5)."""
    fields = error if isinstance(error, Mapping) else {"message": error}
    words = [str(fields.get(name) or "").lower() for name in ("type", "code")]
    kind = next((_BY_WORD[word] for word in words if word in _BY_WORD), None)
    if kind is None:
        # Gateways write the status of the server behind them as a number, or as its text.
        code = str(fields.get("code"))
        kind = _BY_STATUS.get(int(code) if _STATUS.fullmatch(code) else 0, ServerError)
    message = _detailed(fields)
    text = _shorten(message) if isinstance(message, str) and message.strip() else ""
    if kind is AbortedError:
        return AbortedError(text or "The run was cancelled at the service.", request_id=request_id)
    if kind is not InvalidRequestError and text and _QUOTA.search(text):
        kind = QuotaError
    return kind(
        f"The service reports that the run failed: {text}"
        if text
        else "The service reports that the run failed, without saying why.",
        request_id=request_id,
    )


def is_challenge(headers: Mapping[str, str], body: bytes) -> bool:
    """Whether a reply is a page that checks for bots."""
    if headers.get("cf-mitigated") == "challenge":
        return True
    is_page = "html" in headers.get("content-type", "") or body.lstrip()[:1] == b"<"
    return is_page and bool(_CHALLENGE.search(body))


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds that the service asks to wait, or None.

    ``retry-after-ms``, then ``Retry-After`` (seconds or an HTTP date), then ``x-ratelimit-reset``
    (epoch seconds), which is the one that was seen live.
    """
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
            return float(value) * scale
    parsed = email.utils.parsedate_tz(headers.get("retry-after", ""))
    if parsed is not None:
        try:
            return max(0.0, email.utils.mktime_tz(parsed) - now)
        except (ValueError, OverflowError):
            return None
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") == "0" and re.fullmatch(r"\d{9,11}", reset):
        return max(0.0, float(reset) - now)
    return None


def forgot_answer(failure: PerplexityError) -> bool:
    """Whether the service refuses because it no longer knows the answer that is gone on from."""
    if failure.status_code == 404 or failure.field == "previous_response_id":
        return True
    about_it = _ABOUT_EARLIER.search(failure.message.rpartition(": ")[2])
    return failure.status_code == 400 and failure.field is None and about_it is not None


class _Said(NamedTuple):
    """What an error body says, each if it does."""

    message: str | None = None
    word: str | None = None
    field: str | None = None


def _read_body(body: bytes) -> _Said:
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        return _Said(_page_title(body))
    if not isinstance(reply, dict):
        return _Said(reply if isinstance(reply, str) else None)
    if isinstance(error := reply.get("error"), dict):
        return _read_error(error)
    detail = reply.get("detail")
    if isinstance(detail, list):
        return _read_details(detail)
    if isinstance(detail, dict):
        return _read_details([detail]) if {"loc", "msg"} & detail.keys() else _read_error(detail)
    return _read_error(reply)


def _read_error(error: Mapping[str, Any]) -> _Said:
    """Read an object that says what went wrong, in the words of several services."""
    words = [w for w in map(error.get, ("type", "code", "error_code")) if isinstance(w, str) and w]
    word = next((w for w in words if w.lower() in _BY_WORD), words[0] if words else None)
    others = ("error_message", "text", "detail", "error_code")  # the web endpoint's, mostly
    texts = (error.get("error"), _detailed(error), *map(error.get, others))
    message = next((text for text in texts if isinstance(text, str) and text.strip()), None)
    param = error.get("param")
    return _Said(
        message,
        word.lower() if word else None,
        param if isinstance(param, str) and param != "None" else None,  # LiteLLM
    )


def _detailed(error: Mapping[str, Any]) -> Any:
    """Return an error's message; with what the server behind a gateway said (OpenRouter)."""
    message, metadata = error.get("message"), error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    if isinstance(message, str) and isinstance(raw, str) and raw.strip():
        return f"{message}: {raw}"
    return message


def _read_details(details: list[Any]) -> _Said:
    """Read the ``detail`` list of a 422 (FastAPI): each has ``loc`` and ``msg``, or less.

    ``loc`` leads through the body, and where a field may have several forms also through the names
    of those: only its first step is surely a field.
    """
    lines: list[str] = []
    field: str | None = None
    for detail in details:
        if not isinstance(detail, dict):
            lines += [detail] if isinstance(detail, str) else []
            continue
        loc = detail.get("loc")
        steps = [str(step) for step in loc if step != "body"] if isinstance(loc, list) else []
        field = field or next(iter(steps), None)
        said = (detail.get("msg"), detail.get("type"))
        what = next((text for text in said if isinstance(text, str) and text.strip()), "")
        lines.append(": ".join(filter(None, (".".join(steps), what))))
    return _Said("; ".join(filter(None, lines)) or None, None, field)


def _page_title(body: bytes) -> str | None:
    text = body.decode("utf-8", "replace").strip()
    if text.startswith("<"):
        title = re.search(r"<title[^>]*>(.*?)</title>", text, re.I | re.S)
        return " ".join(title.group(1).split()) if title else None
    return text or None


def _sentence(kind: type[PerplexityError], status: int, message: str | None) -> str:
    text = _shorten(message) if message else ""
    if kind is EndpointRetiredError:
        return "This address no longer answers chat-completions; your key is not the problem."
    return f"{_lead(kind, status)}: {text}" if text else f"{_lead(kind, status)}."


def _lead(kind: type[PerplexityError], status: int | None) -> str:
    return _LEADS.get(kind, f"The service failed with HTTP {status}")


_LEADS: dict[type[PerplexityError], str] = {
    AuthenticationError: "The service does not accept the API key",
    QuotaError: "The account has no credit left",
    RateLimitError: "The service asked to slow down",
    InvalidRequestError: "The service refused the request",
    RequestTimeout: "The service gave up waiting",
}


def own_words(failure: PerplexityError) -> str:
    """Return what the service itself says in an error of :func:`from_http`; empty if nothing.

    Examples
    --------
    >>> own_words(from_http(400, {}, b'{"message": "too long"}', 0.0))
    'too long'
    """
    lead = f"{_lead(type(failure), failure.status_code)}: "
    return failure.message.removeprefix(lead) if failure.message.startswith(lead) else ""


def _shorten(text: str) -> str:
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= _MESSAGE_LENGTH else text[: _MESSAGE_LENGTH - 3] + "..."
