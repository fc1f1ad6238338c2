"""What the web endpoint remembers: sessions, login codes, threads, what is left to ask.

Invariant: one lock guards everything, and a session is known by its token alone.
"""

from __future__ import annotations

import base64
import secrets
import threading
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Entry", "SESSION_COOKIE", "WebState", "account_id", "read_session"]

SESSION_COOKIE = "__Secure-next-auth.session-token"
_KEPT = 1000
_CODE_LETTERS = "abcdefghijkmnopqrstuvwxyz23456789"


@dataclass
class Entry:
    """One entry of a thread: a question, and what goes on from it.

    Attributes
    ----------
    account
        Whose it is; ``""`` of an anonymous caller.
    backend_uuid, context_uuid
        Of the entry, and of the thread.
    token
        The ``read_write_token``, constant for the thread.
    questions
        All questions so far, oldest first.
    terminated
        Set when the client asks to stop.
    """

    account: str
    questions: tuple[str, ...]
    slug: str
    context_uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    token: str = field(default_factory=lambda: str(uuid.uuid4()), repr=False)
    backend_uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    terminated: threading.Event = field(default_factory=threading.Event, repr=False)


def account_id(email: str) -> str:
    """Return the id of an account: the same for the same address."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"mailto:{email}"))


def read_session(cookies: Mapping[str, str]) -> str:
    """Return the session token among cookies, joined if it came in parts; ``""`` if none.

    Examples
    --------
    >>> read_session({f"{SESSION_COOKIE}.1": "b", f"{SESSION_COOKIE}.0": "a"})
    'ab'
    """
    if SESSION_COOKIE in cookies:
        return cookies[SESSION_COOKIE]
    parts: list[str] = []
    while f"{SESSION_COOKIE}.{len(parts)}" in cookies:
        parts.append(cookies[f"{SESSION_COOKIE}.{len(parts)}"])
    return "".join(parts)


def _encoded(size: int) -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(size)).decode().rstrip("=")


class WebState:
    """The memory of the web endpoint.

    Parameters
    ----------
    sessions
        E-mail address by session token.
    """

    def __init__(self, sessions: Mapping[str, str]) -> None:
        self.sessions: dict[str, str] = dict(sessions)
        self.codes: dict[str, str] = {}
        self.limits: dict[str, int] = {
            "remaining_pro": 200,
            "remaining_research": 20,
            "remaining_labs": 25,
            "remaining_agentic_research": 3,
        }
        self.terminated: list[str] = []
        self._csrf: set[str] = set()
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._lock = threading.Lock()

    def account(self, cookies: Mapping[str, str]) -> str:
        """Return the e-mail address that cookies are signed in with, or ``""``."""
        return self.sessions.get(read_session(cookies), "")

    def open_session(self, email: str, token: str = "") -> str:
        """Make a session known; without a token, a new one of five parts (consumer-web 3.1)."""
        header = base64.urlsafe_b64encode(b'{"alg":"dir","enc":"A256GCM"}').decode().rstrip("=")
        made = token or f"{header}..{_encoded(12)}.{_encoded(96)}.{_encoded(16)}"
        with self._lock:
            self.sessions[made] = email
        return made

    def new_csrf(self) -> str:
        """Return a token that a later login step has to show."""
        token = secrets.token_hex(32)
        with self._lock:
            self._csrf.add(token)
        return token

    def knows_csrf(self, token: str, cookie: str) -> bool:
        """Whether a token was given out, and the cookie with it belongs to it."""
        with self._lock:
            return token in self._csrf and cookie.startswith(token)

    def send_code(self, email: str) -> None:
        """Send a new code to an address: it can be read in ``codes``."""
        letters = [secrets.choice(_CODE_LETTERS) for _ in range(10)]
        with self._lock:
            self.codes[email] = f"{''.join(letters[:5])}-{''.join(letters[5:])}"

    def use_code(self, email: str, code: str) -> bool:
        """Whether a code is right; it is of no more use then."""
        with self._lock:
            if not code or self.codes.get(email) != code:
                return False
            del self.codes[email]
            return True

    def count_down(self, kind: str) -> bool:
        """Take one question of a kind; return whether there was one."""
        with self._lock:
            left = self.limits.get(kind, 0)
            if left > 0:
                self.limits[kind] = left - 1
            return left > 0

    def keep(self, entry: Entry) -> None:
        """Remember an entry."""
        with self._lock:
            self._entries[entry.backend_uuid] = entry
            while len(self._entries) > _KEPT:
                self._entries.popitem(last=False)

    def entry(self, backend_uuid: str) -> Entry | None:
        """Return an entry by its id, or None."""
        with self._lock:
            return self._entries.get(backend_uuid)

    def terminate(self, backend_uuid: str) -> bool:
        """Stop an entry; return whether it is known."""
        entry = self.entry(backend_uuid)
        if entry is None:
            return False
        entry.terminated.set()
        with self._lock:
            self.terminated.append(backend_uuid)
        return True
