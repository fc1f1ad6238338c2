"""How an answer is sent, and everything that can go wrong with it on the way.

Invariant: a ``Behavior`` says only *how* the engine's answer travels (or which error takes its
place); all values are checked when it is made, so a typo in a test fails at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Behavior"]

FRAMINGS = ("chunked", "dribbled", "length", "close", "gzip")
NEWLINES = (None, "\n", "\r\n", "\r", "mixed")
TEXT_PLACES = frozenset({"delta", "done", "item", "terminal"})
TERMINALS = (
    "completed", "failed-event", "failed-response", "failed-both", "incomplete", "cancelled",
    "none", "error",
)  # fmt: skip
RETIREMENTS = (None, "chat_completions_not_available", "agent_api_migration_required")
COSTS = ("object", "number", "none")
WEB_FORMS = (None, "snapshot", "diff", "workflow", "workflow-diff")
WEB_CHUNKS = ("append", "partial", "resend", "whole")
WEB_ANSWERS = ("final", "renumbered", "chunks")
WEB_TEXTS = (None, "none", "steps", "plain")
WEB_SOURCES = (
    "web_results", "sources_answer_mode", "sources_list", "top_level", "steps", "both", "none",
)  # fmt: skip
WEB_RESEARCH = ("report", "clarify")
WEB_FAULT_NAMES = (
    None, "challenge-200", "challenge-403", "unauthorized", "forbidden", "too-many-requests",
    "stale-version", "validation", "server-error", "json-error", "json-detail",
    "rate-limited", "quota-exhausted", "generic-failed", "error-message", "failed-status",
    "failed-lower-case", "blocked", "error-sentence", "error-sentence-completed", "empty",
    "sources-only", "no-end", "no-end-of-stream", "pending-final-only", "terminated", "bad-frame",
    "non-object", "anonymous", "half-surrogate", "huge-frame",
)  # fmt: skip
BATCHES = (None, "invalid", "expired", "shuffled", "lost-reply")
BATCH_LINES = ("error", "http", "damaged", "missing", "doubled")
LOGIN_TOKENS = ("token", "accessToken", "jwt", "access_token", "cookie")
CSRF_COOKIES = ("next-auth.csrf-token", "__Host-next-auth.csrf-token", "none")

_WORDS: dict[str, tuple[Any, ...]] = {
    "framing": FRAMINGS,
    "newline": NEWLINES,
    "terminal": TERMINALS,
    "cut": ("truncated", "reset"),
    "retired": RETIREMENTS,
    "chat_cost": COSTS,
    "web_form": WEB_FORMS,
    "web_chunks": WEB_CHUNKS,
    "web_answer": WEB_ANSWERS,
    "web_text": WEB_TEXTS,
    "web_sources": WEB_SOURCES,
    "web_research": WEB_RESEARCH,
    "web_fault": WEB_FAULT_NAMES,
    "login_token": LOGIN_TOKENS,
    "batch": BATCHES,
    "csrf_cookie": CSRF_COOKIES,
}
_LEAST: dict[str, int] = {
    "parts": 1, "piece_bytes": 1, "chunk_chars": 1, "tool_calls": 1, "tool_rounds": 0,
    "queued_polls": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Behavior:
    r"""One way of answering.

    Fields whose default is None or that name no wire fit every wire: there None is what the wire
    at hand really does.

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
        Line ends of the stream: ``"\n"``, ``"\r\n"``, ``"\r"``, ``"mixed"`` (in turn); None:
        CRLF on the web, else LF.
    bom
        Start the stream with a byte order mark.
    event_names
        Send ``event:`` lines (None: yes, except in chat completions).
    done_marker
        End the stream with ``data: [DONE]``.
    nulls
        Send null for every field that may be null.
    keepalives
        Put comments (and ``response.keepalive`` events in the Agent API) between the events.
    text_in
        Agent: where the text stands, any of ``"delta"``, ``"done"``, ``"item"``, ``"terminal"``.
    parts
        Agent: number of messages over which the text is spread.
    content_parts
        Agent: announce each part of a message, as OpenAI does (``response.content_part.added``
        and ``.done``); the types of the official SDK have neither.
    extra_text
        Appended to the answer.
    terminal
        How the run ends; see ``TERMINALS``. In a chat stream ``"none"`` leaves out its end,
        ``"incomplete"`` finishes with ``"length"``, and all that fail send an ``error`` object.
    cut_after
        Break the connection after this many events; a background run goes on.
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
        Agent: send the results of a search out of order.
    id_start
        Agent: number of the first result.
    queued_polls
        Agent: a background run stays queued until this many GETs have seen it so.
    expired_cursor
        Agent: refuse to resume a stream (400).
    tool_calls
        Functions called at once, in a turn that calls functions.
    tool_rounds
        Turns that call functions before the answer comes; 0 for none unless one is forced.
    batch
        Batches: it fails its validation (``"invalid"``), has time for half of its lines
        (``"expired"``), gives its results in another order (``"shuffled"``), or is made while the
        reply that says so is lost behind a 502 (``"lost-reply"``). ``pace`` and ``queued_polls``
        of the request that makes it slow it down.
    batch_lines
        Batches: what becomes of some lines, by number from 1: ``"error"`` and ``"http"`` fail,
        ``"damaged"``, ``"missing"`` and ``"doubled"`` are said of the line with the result.
    search_groups
        Search API: results of a list of queries as one list a query, not as a flat list.
    retired
        Chat: refuse with this ``error.type`` (403).
    chat_message
        Chat: each chunk of a stream also has ``message`` with all text so far, and each ``delta``
        its role: both are obligatory in the types of the official SDK.
    chat_cost
        Chat: ``usage.cost`` as an ``"object"``, a ``"number"``, or ``"none"``; until a stream has
        ended it is zero and without ``request_cost``.
    web_form
        Web: form of the stream (None: as ``supported_block_use_cases`` asks).
    web_chunks
        Web: how snapshots give the text: each chunk once (``"append"``), each also half finished
        first (``"partial"``), the last one always again (``"resend"``), all from 0 (``"whole"``).
    web_answer
        Web: the terminal ``answer`` is the joined chunks (``"final"``), has other citation
        numbers than they have (``"renumbered"``), or is left out (``"chunks"``).
    web_text
        Web: what ``text`` is in the last event (None: steps, or nothing in the workflow form).
    web_sources
        Web: where the sources stand; ``"both"`` is two blocks, one with repeated addresses.
    web_odd_patches
        Web: patches without ``op``, with the field's name in the path, with ``-``, and with an
        operation and a path that mean nothing.
    web_model
        Web: the model that the events report, whatever was used.
    web_research
        Web: deep research gives its ``"report"`` or asks back (``"clarify"``).
    web_fault
        Web: what goes wrong; see :data:`~ipyperplexity.emulator.faults.WEB_FAULTS`.
    rotate_session
        Web: value of the session cookie that the reply sets; ``""`` for none (None: a new one,
        from ``/api/auth/session`` only).
    csrf_cookie
        Login: name of the cookie that ``/api/auth/csrf`` sets, or ``"none"``.
    login_token
        Login: key of the token in the last reply; ``"cookie"``: only in ``Set-Cookie``.

    Examples
    --------
    >>> Behavior(status=429, headers={"Retry-After": "1"}).status
    429
    """

    pace: float | None = None
    chunk_chars: int | None = None
    framing: str = "chunked"
    piece_bytes: int | None = None
    newline: str | None = None
    bom: bool = False
    event_names: bool | None = None
    done_marker: bool = False
    nulls: bool = False
    keepalives: bool = False
    text_in: frozenset[str] = TEXT_PLACES
    parts: int = 1
    content_parts: bool = False
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
    queued_polls: int = 0
    expired_cursor: bool = False
    tool_calls: int = 1
    tool_rounds: int = 1
    batch: str | None = None
    batch_lines: Mapping[int, str] = field(default_factory=dict, hash=False)
    search_groups: bool = False
    retired: str | None = None
    chat_message: bool = False
    chat_cost: str = "object"
    web_form: str | None = None
    web_chunks: str = "append"
    web_answer: str = "final"
    web_text: str | None = None
    web_sources: str = "web_results"
    web_odd_patches: bool = False
    web_model: str | None = None
    web_research: str = "report"
    web_fault: str | None = None
    rotate_session: str | None = field(default=None, repr=False)
    csrf_cookie: str = "next-auth.csrf-token"
    login_token: str = "token"

    def __post_init__(self) -> None:
        """Refuse a value that means nothing."""
        for name, words in _WORDS.items():
            value = getattr(self, name)
            if value not in words:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, words))}: {value!r}")
        for fault in self.batch_lines.values():
            if fault not in BATCH_LINES:
                raise ValueError(f"batch_lines takes {', '.join(BATCH_LINES)}: {fault!r}")
        # A plain set or list reads better in a test; the field stays hashable.
        object.__setattr__(self, "text_in", frozenset(self.text_in))
        if not self.text_in <= TEXT_PLACES:
            raise ValueError(f"text_in takes any of {sorted(TEXT_PLACES)}: {sorted(self.text_in)}")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(f"{name} must be at least {least}: {value}")

    @property
    def replaces_answer(self) -> bool:
        """Whether a fixed reply takes the place of the engine's answer."""
        return self.status is not None or self.body is not None
