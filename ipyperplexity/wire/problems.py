"""A failure that the service reports, as the error that a user can act on (official-api 7).

One table for HTTP statuses, one for the ``type`` and ``code`` words of a reply's ``error``. Bodies
are read defensively: JSON in four shapes, HTML of an edge server, or nothing.
"""

from __future__ import annotations

import email.utils
import json
import re
from collections.abc import Mapping
from typing import Any

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

_QUOTA = re.compile(r"\b(quota|credits?|billing|balance|payment)\b", re.I)
_CHALLENGE = re.compile(rb"just a moment|cf[-_]chl|challenge-platform|attention required", re.I)
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
    message, word, param = _read_body(body)
    kind = _BY_WORD.get(word or "") or _BY_STATUS.get(status)
    if kind is None:
        kind = ServerError if status >= 500 else InvalidRequestError
    if kind in (AuthenticationError, RateLimitError) and message and _QUOTA.search(message):
        kind = QuotaError
    hint = None
    if kind in (InvalidRequestError, AuthenticationError):
        hint = _HINTS.get(status, kind.default_hint or _HINTS[400])
    return kind(
        _sentence(kind, status, message),
        field=param if kind is InvalidRequestError else None,
        hint=hint,
        **facts,
    )


def from_run(error: Any, *, request_id: str | None = None) -> PerplexityError:
    """Return the error for a run that failed inside an HTTP 200 (official-api 3.5)."""
    fields = error if isinstance(error, Mapping) else {"message": error}
    words = [str(fields.get(name) or "").lower() for name in ("type", "code")]
    kind = next((_BY_WORD[word] for word in words if word in _BY_WORD), None)
    if kind is None:
        code = fields.get("code")
        kind = _BY_STATUS.get(code, ServerError) if isinstance(code, int) else ServerError
    message = fields.get("message")
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


def _read_body(body: bytes) -> tuple[str | None, str | None, str | None]:
    """Return message, type word and parameter of an error body, each if there is one."""
    try:
        reply = json.loads(body)
    except (ValueError, RecursionError):
        return _page_title(body), None, None
    if not isinstance(reply, dict):
        return (reply if isinstance(reply, str) else None), None, None
    error = reply.get("error")
    if isinstance(error, dict):
        words = [w for w in (error.get("type"), error.get("code")) if isinstance(w, str)]
        word = next((w for w in words if w.lower() in _BY_WORD), words[0] if words else None)
        param = error.get("param")
        return (
            error.get("message") if isinstance(error.get("message"), str) else None,
            word.lower() if word else None,
            param if isinstance(param, str) else None,
        )
    if isinstance(detail := reply.get("detail"), list):
        return _details(detail)
    for value in (error, reply.get("message"), reply.get("detail")):
        if isinstance(value, str) and value.strip():
            return value, None, None
    return None, None, None


def _details(details: list[Any]) -> tuple[str | None, str | None, str | None]:
    """Read the ``detail`` list of a 422: each has ``loc``, ``msg``, ``type``."""
    lines: list[str] = []
    first: str | None = None
    for detail in details:
        if not isinstance(detail, dict):
            continue
        loc = detail.get("loc")
        where = (
            ".".join(str(step) for step in loc if step != "body") if isinstance(loc, list) else ""
        )
        first = first or where or None
        lines.append(f"{where}: {detail.get('msg')}" if where else str(detail.get("msg")))
    return "; ".join(lines) or None, None, first


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
    lead = {
        AuthenticationError: "The service does not accept the API key",
        QuotaError: "The account has no credit left",
        RateLimitError: "The service asked to slow down",
        InvalidRequestError: "The service refused the request",
        RequestTimeout: "The service gave up waiting",
    }.get(kind, f"The service failed with HTTP {status}")
    return f"{lead}: {text}" if text else f"{lead}."


def _shorten(text: str) -> str:
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return text if len(text) <= _MESSAGE_LENGTH else text[: _MESSAGE_LENGTH - 3] + "..."
