"""Logging in and out, and where each credential comes from. Questions are asked by the caller.

A login to perplexity.ai is looked for in this order: the stored one, which ends the matter unless
``force``; ``PERPLEXITY_SESSION_TOKEN``; ``PERPLEXITY_COOKIE``; pi-perplexity's (used where it is,
unless ``force``); the desktop app's; a code by e-mail. What a variable or the desktop app gives is
stored, because the session is renewed as it is used.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass

import requests

from ipyperplexity.auth import key_store, token_store
from ipyperplexity.auth.consumer_login import login_by_code
from ipyperplexity.auth.cookies import HOW_TO_COPY, read_pasted
from ipyperplexity.auth.desktop import find_desktop_login
from ipyperplexity.auth.keys import KEY_VARIABLES, as_secret, find_key
from ipyperplexity.auth.login_record import WebLogin
from ipyperplexity.auth.web_calls import WEB_URL
from ipyperplexity.auth.web_login import (
    COOKIE_VARIABLES,
    TOKEN_VARIABLES,
    find_web_login,
    login_from_environment,
    login_of_pi_perplexity,
)
from ipyperplexity.errors import ConfigurationError, MissingCredentialError
from ipyperplexity.net.redact import Secret

EMAIL_VARIABLES = ("PERPLEXITY_EMAIL", "PI_PERPLEXITY_EMAIL")
CODE_VARIABLES = ("PERPLEXITY_OTP", "PI_PERPLEXITY_OTP")


@dataclass(frozen=True)
class Prompts:
    """How to ask the user; each returns what was typed, maybe nothing.

    Attributes
    ----------
    email : callable
        Returns text.
    code : callable
        Is given the address that the code was sent to; returns a Secret.
    cookies : callable
        Returns what was copied from a browser, as a Secret.
    """

    email: Callable[[], str]
    code: Callable[[str], Secret]
    cookies: Callable[[], Secret]


@dataclass(frozen=True)
class LoggedIn:
    """What a login came to; ``saved`` tells whether something was written."""

    login: WebLogin
    saved: bool


def login_key(ask: Callable[[], Secret]) -> str:
    """Store the API key that the user gives; return where it is now, in words.

    Only its form is checked: the service checks it with the first question, which is billed.

    Raises
    ------
    MissingCredentialError
        If nothing is given.
    ConfigurationError
        If that is no key, or cannot be stored.
    """
    key = as_secret(_bare(ask()), "the prompt")
    if key is None or not key:
        raise MissingCredentialError(
            "No key was given; nothing has changed.",
            hint="Keys are made at perplexity.ai > API settings.",
        )
    return key_store.save_key(key)


def _bare(given: Secret) -> Secret:
    """Return a key without what was copied with it: a variable's name, quotation marks."""
    return Secret(_AROUND.sub("", given.reveal().strip()).strip().strip("\"'"))


_AROUND = re.compile(r"^(?:export\s+)?[A-Z][A-Z0-9_]*\s*=")


def looks_like_ours(key: Secret) -> bool:
    """Whether a key begins as Perplexity's do."""
    return key.reveal().startswith("pplx-")


def login_web(
    prompts: Prompts,
    *,
    force: bool = False,
    browser: bool = False,
    base_url: str = WEB_URL,
    session: requests.Session | None = None,
    platform: str = sys.platform,
) -> LoggedIn:
    """Log in to perplexity.ai and store the login.

    Parameters
    ----------
    prompts : Prompts
    force : bool
        Log in anew, though there is a login.
    browser : bool
        Take what was copied from a browser; nothing else is looked at.
    base_url : str
    session : requests.Session, optional
    platform : str
        As ``sys.platform``.

    Raises
    ------
    MissingCredentialError
        If what is given holds no session.
    AuthenticationError, ChallengeError, NetworkError, RateLimitError, ServerError
        If perplexity.ai grants none. A login that is stored already stays as it is.
    ConfigurationError
        If it cannot be stored.
    """
    if browser:
        return _save(_pasted(prompts.cookies()))
    if not force and (stored := token_store.load_login()) is not None:
        return LoggedIn(stored, saved=False)
    if (given := login_from_environment()) is not None:
        return _save(given)
    if not force and (borrowed := login_of_pi_perplexity()) is not None:
        return LoggedIn(borrowed, saved=False)
    if (desktop := find_desktop_login(platform)) is not None:
        return _save(desktop)
    return _save(_by_code(prompts, base_url, session))


def _save(login: WebLogin) -> LoggedIn:
    return LoggedIn(token_store.save_login(login), saved=True)


def _pasted(given: Secret) -> WebLogin:
    if not given.reveal().strip():
        raise MissingCredentialError("Nothing was pasted; nothing has changed.", hint=HOW_TO_COPY)
    pasted = read_pasted(given, "What was pasted")
    return WebLogin(pasted.token, pasted.cookies, origin="cookies of a browser")


def _by_code(prompts: Prompts, base_url: str, session: requests.Session | None) -> WebLogin:
    address = first_set(EMAIL_VARIABLES)[1]

    def ask_email() -> str:
        nonlocal address
        address = address or prompts.email()
        return address

    def ask_code() -> Secret:
        _, code = first_set(CODE_VARIABLES)
        return Secret(code) if code else Secret(prompts.code(address).reveal().strip())

    return login_by_code(ask_email, ask_code, base_url=base_url, session=session)


def logout(*, key: bool = True, web: bool = True) -> list[str]:
    """Delete what is stored here, and say what is left; other programs' logins stay.

    Returns
    -------
    list of str
        Sentences for the user.

    Raises
    ------
    ConfigurationError
        If something cannot be deleted.
    """
    said = []
    if key:
        said.append(
            "The stored API key is deleted." if key_store.delete_key() else "No API key was stored."
        )
        if name := first_set(KEY_VARIABLES)[0]:
            said.append(f"{name} is still set, and is used for questions.")
    if web:
        deleted = token_store.delete_login()
        said.append("The stored login is deleted." if deleted else "No login was stored.")
        if name := first_set((*TOKEN_VARIABLES, *COOKIE_VARIABLES))[0]:
            said.append(f"{name} is still set, and is used for the web backend.")
        elif borrowed := login_of_pi_perplexity():
            said.append(
                f"There still is {borrowed.origin}, which belongs to that program; "
                "PERPLEXITY_NO_BORROW=1 leaves it alone."
            )
    return said


def credential_report() -> dict[str, str]:
    """Return where each credential comes from, never its value.

    Examples
    --------
    >>> list(credential_report())
    ['API key', 'web login']
    """
    return {"API key": _said(_key_origin), "web login": _said(_login_origin)}


def _said(origin: Callable[[], str]) -> str:
    try:
        return origin()
    except ConfigurationError as error:
        return f"unusable: {error.message}"


def _key_origin() -> str:
    found = find_key()
    return found.origin if found else "none"


def _login_origin() -> str:
    login = find_web_login()
    if login is None:
        return "none"
    shown = f"{login.origin}, {login.email}" if login.email else login.origin
    name = first_set((*TOKEN_VARIABLES, *COOKIE_VARIABLES))[0]
    return f"{shown} ({name} is set too, and not used)" if login.stored_as and name else shown


def first_set(names: tuple[str, ...]) -> tuple[str, str]:
    """Return the first of these environment variables that is not blank, and its value."""
    for name in names:
        if value := os.environ.get(name, "").strip():
            return name, value
    return "", ""
