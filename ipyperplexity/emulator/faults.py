"""Ready-made behaviors by name, and the errors of the service.

``FAULTS`` fits every wire (status, framing, breaks) or the Agent API; ``WEB_FAULTS`` is for
``/rest/sse/perplexity_ask``, each with the words that say what a client has to make of it.
"""

from __future__ import annotations

from typing import Any

from .behavior import Behavior

__all__ = [
    "CHALLENGE_HEADERS", "CHALLENGE_PAGE", "FAULTS", "WEB_FAULTS", "Behavior", "default_error",
]  # fmt: skip

_ERRORS: dict[int, tuple[str, str]] = {
    400: ("invalid_request", "the request is not valid"),
    401: ("invalid_api_key", "Invalid API key provided."),
    402: ("insufficient_credit", "Your credit balance is too low. Please add credit."),
    403: ("forbidden", "You do not have access to this resource."),
    404: ("not_found", "resource not found"),
    408: ("request_timeout", "the request took too long"),
    409: ("conflict", "the request conflicts with another one"),
    413: ("payload_too_large", "request body exceeds 32 MiB"),
    424: ("external_connector_error", "an external connector failed"),
    429: ("request_rate_limit_exceeded", "Request rate limit exceeded."),
    500: ("internal_error", "an internal error occurred"),
    502: ("bad_gateway", "bad gateway"),
    503: ("service_unavailable", "the service is temporarily unavailable"),
    504: ("gateway_timeout", "gateway timeout"),
}


def default_error(status: int) -> dict[str, Any]:
    """Return the service's envelope for an HTTP status."""
    kind, message = _ERRORS.get(status, ("error", "the request failed"))
    return {"error": {"message": message, "type": kind, "code": status}}


def _page(title: str, text: str) -> str:
    return (
        f"<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1></center>\r\n"
        f"<hr><center>{text}</center>\r\n</body>\r\n</html>\r\n"
    )


_HTML = {"Content-Type": "text/html; charset=utf-8"}
_CHALLENGE = (
    '<!DOCTYPE html><html lang="en-US"><head><title>Just a moment...</title></head><body>'
    '<div id="challenge-error-text">Enable JavaScript and cookies to continue</div>'
    '<script src="/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1"></script></body></html>'
)


def _refusal(kind: str, message: str) -> Behavior:
    return Behavior(status=403, body={"error": {"message": message, "type": kind, "code": 403}})


FAULTS: dict[str, Behavior] = {
    "bad-request": Behavior(status=400),
    "unauthorized": Behavior(status=401),
    "unauthorized-html": Behavior(
        status=401, headers=_HTML, body=_page("401 Authorization Required", "openresty")
    ),
    "no-credit": Behavior(status=402),
    "forbidden": Behavior(status=403),
    "retired": _refusal(
        "chat_completions_not_available", "Sonar is now the Agent API. Use /v1/responses instead."
    ),
    "migration-required": _refusal(
        "agent_api_migration_required", "This model has moved to the Agent API: use /v1/responses."
    ),
    "not-found": Behavior(status=404),
    "too-large": Behavior(status=413),
    "validation": Behavior(
        status=422,
        body={"detail": [{"loc": ["body", "query"], "msg": "Field required", "type": "missing"}]},
    ),
    "rate-limited": Behavior(status=429),
    "rate-limited-seconds": Behavior(status=429, headers={"Retry-After": "1"}),
    "rate-limited-date": Behavior(
        status=429, headers={"Retry-After": "Wed, 21 Oct 2099 07:28:00 GMT"}
    ),
    "server-error": Behavior(status=500),
    "bad-gateway-html": Behavior(status=502, headers=_HTML, body=_page("502 Bad Gateway", "nginx")),
    "unavailable": Behavior(status=503, headers={"Retry-After": "1"}),
    "gateway-timeout-html": Behavior(
        status=504, headers=_HTML, body=_page("504 Gateway Time-out", "cloudflare")
    ),
    "cloudflare": Behavior(
        status=200,
        headers={**_HTML, "Server": "cloudflare", "cf-mitigated": "challenge"},
        body=_CHALLENGE,
    ),
    "cloudflare-403": Behavior(
        status=403,
        headers={**_HTML, "Server": "cloudflare", "cf-mitigated": "challenge"},
        body=_CHALLENGE,
    ),
    "redirect": Behavior(
        status=302, headers={"Location": "https://elsewhere.example/v1/responses"}, body=""
    ),
    "slow-error": Behavior(status=500, slow_body=0.05),
    "empty-body": Behavior(status=200, headers={"Content-Type": "application/json"}, body=""),
    "not-json": Behavior(status=200, headers={"Content-Type": "application/json"}, body="{oops"),
    "failed": Behavior(terminal="failed-event"),
    "failed-response": Behavior(terminal="failed-response"),
    "failed-both": Behavior(terminal="failed-both"),
    "incomplete": Behavior(terminal="incomplete"),
    "cancelled": Behavior(terminal="cancelled"),
    "no-terminal": Behavior(terminal="none"),
    "error-event": Behavior(terminal="error"),
    "cut": Behavior(cut_after=12),
    "reset": Behavior(cut_after=12, cut="reset"),
    "stall": Behavior(stall_after=12),
    "stall-at-once": Behavior(stall_after=0),
    "keep-open": Behavior(keep_open=True),
    "expired-cursor": Behavior(expired_cursor=True),
    "queued": Behavior(queued_polls=3),
    "text-only-at-end": Behavior(text_in=frozenset({"terminal"})),
    "text-only-done": Behavior(text_in=frozenset({"done"})),
    "text-only-item": Behavior(text_in=frozenset({"item"})),
    "text-only-delta": Behavior(text_in=frozenset({"delta"})),
    "nulls": Behavior(nulls=True),
    "keepalives": Behavior(keepalives=True),
    "data-only": Behavior(event_names=False),
    "done-marker": Behavior(done_marker=True),
    "crlf": Behavior(newline="\r\n"),
    "cr": Behavior(newline="\r"),
    "mixed-newlines": Behavior(newline="mixed", bom=True),
    "byte-by-byte": Behavior(piece_bytes=1),
    "gzip": Behavior(framing="gzip"),
    "unchunked": Behavior(framing="close"),
    "odd-characters": Behavior(extra_text=" Ångström\u2028line\u2029para\u0085next 🐍 é"),
    "many-parts": Behavior(parts=3),
    "announced-parts": Behavior(content_parts=True),
    "numbers-from-11": Behavior(id_start=11, shuffle_sources=True),
}
"""Ready-made behaviors by name."""

CHALLENGE_PAGE = _CHALLENGE
CHALLENGE_HEADERS: dict[str, str] = {**_HTML, "Server": "cloudflare", "cf-mitigated": "challenge"}

_WEB_FAULTS: dict[str, str] = {
    # Before the stream.
    "challenge-200": "a Cloudflare page with status 200 (F9)",
    "challenge-403": "a Cloudflare page with status 403 (F9)",
    "unauthorized": "401: the session is not accepted",
    "forbidden": "403 with {}: no entitlement, or a thread that is gone",
    "too-many-requests": "429 with Retry-After: 1",
    "stale-version": "400: the API version is too old",
    "validation": "422 with a list of details",
    "server-error": "500",
    "json-error": "200 with a JSON body, not a stream: {error: ...}",
    "json-detail": "200 with a JSON body, not a stream: {detail: ...}",
    # One event says that it failed.
    "rate-limited": "error_code FREE_TIER_RATE_LIMITED, status failed, no text",
    "quota-exhausted": "error_code quota_exhausted after some text",
    "generic-failed": "GENERIC_FAILED_RESPONSE and a message after some text (F8)",
    "error-message": "only an error_message, the status still PENDING",
    "failed-status": "status FAILED after some text, no code",
    "failed-lower-case": "status failed after some text, no code",
    "blocked": "status BLOCKED after some text",
    "error-sentence": "status FAILED, text is a bare sentence (F6)",
    "error-sentence-completed": "the same sentence, status COMPLETED",
    # It ends well, and there is too little.
    "empty": "COMPLETED with an empty answer and no sources (F11)",
    "sources-only": "COMPLETED with sources and no answer",
    "terminated": "COMPLETED with half of the text and text_completed false",
    # It does not end as it should.
    "no-end": "the stream ends after some text",
    "no-end-of-stream": "COMPLETED, then no end_of_stream event",
    "pending-final-only": "the stream ends after PENDING with final true",
    # An odd frame among good ones.
    "bad-frame": "one frame is not JSON; the chunk in it is lost but for the terminal answer",
    "non-object": "one frame is a JSON list",
    "half-surrogate": "half of a surrogate pair at the end of a chunk, the other half in the next",
    "huge-frame": "one frame of 600 kB",
    # Not what was asked for.
    "anonymous": "a known session is served as anonymous, with turbo (F17)",
}

WEB_FAULTS: dict[str, Behavior] = {name: Behavior(web_fault=name) for name in _WEB_FAULTS}
"""Behaviors of ``/rest/sse/perplexity_ask`` by name (consumer-web 2.10, 3.4 and 6)."""
