"""How an answer is sent, and everything that can go wrong with it on the way.

Invariant: a ``Behavior`` says only *how* the engine's answer travels (or which error takes its
place); all values are checked when it is made, so a typo in a test fails at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["FAULTS", "Behavior", "default_error"]

FRAMINGS = ("chunked", "dribbled", "length", "close", "gzip")
NEWLINES = ("\n", "\r\n", "\r", "mixed")
TEXT_PLACES = frozenset({"delta", "done", "item", "terminal"})
TERMINALS = (
    "completed", "failed-event", "failed-response", "failed-both", "incomplete", "cancelled",
    "none", "error",
)  # fmt: skip


@dataclass(frozen=True)
class Behavior:
    r"""One way of answering.

    Attributes
    ----------
    pace
        Seconds between two events of a stream (None: the server's own).
    chunk_chars
        Characters in a text delta (None: the server's own).
    framing
        ``"chunked"`` one HTTP chunk an event; ``"dribbled"`` one huge chunk, its bytes in small
        pieces; ``"length"`` Content-Length, in small pieces; ``"close"`` no length, ended by
        closing; ``"gzip"`` chunked and compressed, flushed after each event.
    piece_bytes
        Bytes in one piece (None: a whole event, or 16 for the dribbled framings).
    newline
        Line ends of the stream: ``"\n"``, ``"\r\n"``, ``"\r"``, ``"mixed"`` (in turn).
    bom
        Start the stream with a byte order mark.
    event_names
        Send ``event:`` lines.
    done_marker
        End the stream with ``data: [DONE]``.
    nulls
        Send null for every field that may be null.
    keepalives
        Put comments and ``response.keepalive`` events between the events.
    text_in
        Where the text stands: any of ``"delta"``, ``"done"``, ``"item"``, ``"terminal"``.
    parts
        Number of messages over which the text is spread.
    extra_text
        Appended to the answer.
    terminal
        How the run ends; see ``TERMINALS``.
    cut_after
        Break the connection after this many events.
    cut
        How it breaks: ``"truncated"`` (closed in mid-event) or ``"reset"`` (TCP reset).
    stall_after
        Send this many events, then nothing until the client leaves.
    keep_open
        Do not end the body after the last event.
    status, headers, body
        Answer with this instead; a body may be text, bytes, or data to be sent as JSON.
    delay
        Seconds before the status line.
    slow_body
        Seconds between the pieces of such a body.
    shuffle_sources
        Send the results of a search out of order.
    id_start
        Number of the first result.

    Examples
    --------
    >>> Behavior(status=429, headers={"Retry-After": "1"}).status
    429
    """

    pace: float | None = None
    chunk_chars: int | None = None
    framing: str = "chunked"
    piece_bytes: int | None = None
    newline: str = "\n"
    bom: bool = False
    event_names: bool = True
    done_marker: bool = False
    nulls: bool = False
    keepalives: bool = False
    text_in: frozenset[str] = TEXT_PLACES
    parts: int = 1
    extra_text: str = ""
    terminal: str = "completed"
    cut_after: int | None = None
    cut: str = "truncated"
    stall_after: int | None = None
    keep_open: bool = False
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)
    body: Any = field(default=None, hash=False)
    delay: float = 0.0
    slow_body: float = 0.0
    shuffle_sources: bool = False
    id_start: int = 1

    def __post_init__(self) -> None:
        """Refuse a value that means nothing."""
        allowed = {
            "framing": FRAMINGS,
            "newline": NEWLINES,
            "terminal": TERMINALS,
            "cut": ("truncated", "reset"),
        }
        for name, words in allowed.items():
            value = getattr(self, name)
            if value not in words:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, words))}: {value!r}")
        # A plain set or list reads better in a test; the field stays hashable.
        object.__setattr__(self, "text_in", frozenset(self.text_in))
        if not self.text_in <= TEXT_PLACES:
            raise ValueError(f"text_in takes any of {sorted(TEXT_PLACES)}: {sorted(self.text_in)}")
        if self.parts < 1:
            raise ValueError(f"parts must be at least 1: {self.parts}")
        for name in ("piece_bytes", "chunk_chars"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1: {value}")

    @property
    def replaces_answer(self) -> bool:
        """Whether a fixed reply takes the place of the engine's answer."""
        return self.status is not None or self.body is not None


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
    "numbers-from-11": Behavior(id_start=11, shuffle_sources=True),
}
"""Ready-made behaviors by name."""
