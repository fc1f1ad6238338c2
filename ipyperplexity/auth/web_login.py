"""Which login to perplexity.ai to use now, found anew for each question.

Order: our store; ``PERPLEXITY_SESSION_TOKEN``; ``PERPLEXITY_COOKIE``; the file of pi-perplexity,
which is read and never written. The store comes before the variables, other than for the API key:
the session cookie changes as it is used, and the store has its newest value while a variable keeps
its oldest. ``login(force=True)`` takes a new variable over. Another program's file comes last:
what was set up for this one counts more.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Sequence
from pathlib import Path

from ipyperplexity.auth import token_store
from ipyperplexity.auth.cookies import (
    is_sendable,
    read_cookie_list,
    read_pasted,
    session_token,
)
from ipyperplexity.auth.login_record import LoginAuth, WebLogin
from ipyperplexity.errors import (
    ConfigurationError,
    MissingCredentialError,
    PerplexityWarning,
)
from ipyperplexity.net.redact import Secret

__all__ = [
    "LoginAuth",
    "WebLogin",
    "find_web_login",
    "keep_rotated",
    "login_from_environment",
    "login_of_pi_perplexity",
    "may_borrow",
    "require_web_login",
]

#: Names, then pi-perplexity's names for the same.
TOKEN_VARIABLES = (
    "PERPLEXITY_SESSION_TOKEN",
    "PI_PERPLEXITY_TOKEN",
    "PI_PERPLEXITY_AUTH_TOKEN",
)
COOKIE_VARIABLES = ("PERPLEXITY_COOKIE", "PI_PERPLEXITY_COOKIE", "PI_PERPLEXITY_COOKIES")
NO_BORROW = "PERPLEXITY_NO_BORROW"


def find_web_login() -> WebLogin | None:
    """Return the login to use now, or None; nothing is asked and nothing sent.

    Raises
    ------
    ConfigurationError
        If one is set up that cannot be one, or cannot be read.
    """
    return token_store.load_login() or login_from_environment() or login_of_pi_perplexity()


def require_web_login() -> WebLogin:
    """Return the login to use now.

    Raises
    ------
    MissingCredentialError
        If there is none.
    """
    login = find_web_login()
    if login is None:
        raise MissingCredentialError(
            "You are not logged in to perplexity.ai.",
            hint=(
                f"{token_store.LOG_IN} (in a shell: ipyperplexity login --web), or set "
                f"{TOKEN_VARIABLES[0]} or {COOKIE_VARIABLES[0]}. With an API key: backend='agent'."
            ),
        )
    return login


def keep_rotated(login: WebLogin, set_cookie_lines: Sequence[str]) -> WebLogin:
    """Keep the session that a reply to a login's request has set; return the login to go on with.

    Another kernel may have written meanwhile, so the new session goes into what the store holds
    now. Nothing is written if the login is not from the store, or if somebody has since logged out,
    or in anew. It never fails: what cannot be written is a warning.
    """
    rotated = login.with_reply(set_cookie_lines)
    if rotated is login or not login.stored_as:
        return rotated
    problem = ""
    try:
        with token_store.locked_store():
            stored = token_store.load_login()
            if stored is None or stored.stored_as != login.stored_as:
                return rotated
            newer = stored.with_reply(set_cookie_lines)
            if newer is not stored:
                token_store.write_login(newer)
            return newer
    except ConfigurationError as error:
        problem = error.message
    warnings.warn(
        f"The renewed login could not be stored: {problem}", PerplexityWarning, stacklevel=2
    )
    return rotated


def login_from_environment() -> WebLogin | None:
    """Return the login that an environment variable gives, or None.

    Raises
    ------
    MissingCredentialError
        Naming the variable, if there is no session in it.
    """
    for name in TOKEN_VARIABLES:
        # No variable of this frame holds the token as text.
        token = _token(Secret(os.environ.get(name, "")))
        if token:
            if not is_sendable(token.reveal()) or " " in token.reveal():
                raise MissingCredentialError(
                    f"{name}: it holds blanks or characters that no token has.",
                    hint=f"A whole Cookie header belongs into {COOKIE_VARIABLES[0]}.",
                )
            return WebLogin(token, origin=name)
    for name in COOKIE_VARIABLES:
        given = Secret(os.environ.get(name, "").strip())
        if given:
            pasted = read_pasted(given, name)
            return WebLogin(pasted.token, pasted.cookies, origin=name)
    return None


def _token(given: Secret) -> Secret:
    text = given.reveal().strip().strip("\"'")
    return Secret(re.sub(r"(?i)^bearer(\s+|$)", "", text))


def login_of_pi_perplexity() -> WebLogin | None:
    """Return the login of pi-perplexity on this machine, or None, also if its file is damaged.

    ``PERPLEXITY_NO_BORROW=1`` leaves it alone.
    """
    if not may_borrow():
        return None
    try:
        path = Path.home() / ".config" / "pi-perplexity" / "auth.json"
        return _of_pi(Secret(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RuntimeError):  # RuntimeError: no home folder
        return None


def _of_pi(text: Secret) -> WebLogin | None:
    try:
        record = json.loads(text.reveal())
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    cookies = read_cookie_list(record.get("cookies"))
    token = session_token(cookies)
    if token is None:
        cookies, access = (), record.get("access")
        if not (isinstance(access, str) and access.strip() and is_sendable(access.strip())):
            return None
        token = Secret(access.strip())
    email = record.get("email")
    return WebLogin(
        token,
        cookies,
        email if isinstance(email, str) and email else None,
        "pi-perplexity's login (~/.config/pi-perplexity/auth.json)",
    )


def may_borrow() -> bool:
    """Whether logins of other programs may be used."""
    return os.environ.get(NO_BORROW, "").strip().lower() not in ("1", "true", "yes", "on")
