"""Login with a code that perplexity.ai sends by e-mail: three calls (consumer-web 3.1)."""

from __future__ import annotations

import re
from collections.abc import Callable

import requests

from ipyperplexity.auth.cookies import Cookies, is_sendable, is_session, read_set_cookies
from ipyperplexity.auth.cookies import session_token as joined_token
from ipyperplexity.auth.login_record import LoginAuth, WebLogin
from ipyperplexity.auth.web_calls import PASTE_INSTEAD, WEB_URL, Reply, WebCalls, refusal
from ipyperplexity.errors import AuthenticationError, InvalidRequestError, MissingCredentialError
from ipyperplexity.net.redact import Secret

#: Fields of the last reply that may hold the token.
_TOKEN_FIELDS = ("token", "accessToken", "jwt", "access_token")
_SINGLE_SIGN_ON = (
    "An account that signs in through Google, Apple or an employer may have no codes: "
    "%perplexity login --web --browser"
)


def login_by_code(
    ask_email: Callable[[], str],
    ask_code: Callable[[], Secret],
    *,
    base_url: str = WEB_URL,
    session: requests.Session | None = None,
) -> WebLogin:
    """Log in with a code sent by e-mail; nothing is stored.

    Parameters
    ----------
    ask_email, ask_code : callable
        Called before the first call, and when the code is on its way. A code may hold letters and
        a dash.
    base_url : str
        https, or http on this machine.
    session : requests.Session, optional

    Raises
    ------
    MissingCredentialError
        If no address or no code is given.
    ChallengeError
        If a browser challenge answers.
    AuthenticationError
        If the address or the code is refused.
    """
    with WebCalls(base_url, session) as calls:
        email = _checked(ask_email())
        reply = calls.call("GET", "/api/auth/csrf", auth=_nothing())
        csrf = reply.first("csrfToken")
        if not reply.ok or csrf is None:
            raise refusal(reply, "The sign-in could not begin")
        cookies = _set(reply)
        if not cookies:
            raise AuthenticationError(
                "The sign-in could not begin: perplexity.ai has set no cookie for it.",
                hint=PASTE_INSTEAD,
            )
        auth = LoginAuth(WebLogin(None, cookies))
        known = [csrf, *(value for _, value in cookies)]
        body = {"email": Secret(email), "csrfToken": csrf}
        reply = calls.call("POST", "/api/auth/signin-email", body, auth=auth)
        if not reply.ok:
            raise refusal(
                reply, "No code could be sent to this address", hint=_SINGLE_SIGN_ON, secrets=known
            )
        code = ask_code()
        if not code:
            raise MissingCredentialError(
                "No code was given, so there is no login.",
                hint="Ask for a new one: %perplexity login --web",
            )
        body = {"email": Secret(email), "otp": code, "csrfToken": csrf}
        reply = calls.call("POST", "/api/auth/signin-otp", body, auth=auth)
    return _granted(reply, email, [code, *known])


def _checked(email: str) -> str:
    email = email.strip()
    if not email:
        raise MissingCredentialError(
            "No e-mail address was given, so no code can be sent (the OTP fallback).",
            hint=(
                "Set PERPLEXITY_EMAIL, or give the session by PERPLEXITY_SESSION_TOKEN or "
                "PERPLEXITY_COOKIE."
            ),
        )
    if not re.fullmatch(r"[^\s@]+@[^\s@]+", email) or not email.isprintable():
        raise InvalidRequestError(
            "email: that is no e-mail address; allowed: one such as name@example.org.",
            field="email",
        )
    return email


def _granted(reply: Reply, email: str, known: list[Secret]) -> WebLogin:
    token = reply.first(*_TOKEN_FIELDS) if reply.ok else None
    if token is not None and is_sendable(token.reveal()):
        return WebLogin(token, (), email, "a code by e-mail")
    cookies = tuple((name, value) for name, value in _set(reply) if is_session(name))
    token = joined_token(cookies)
    if reply.ok and token is not None:
        return WebLogin(token, cookies, email, "a code by e-mail")
    raise refusal(
        reply,
        "OTP verification failed",
        hint="Check the code, or ask for a new one: %perplexity login --web",
        secrets=known,
    )


def _set(reply: Reply) -> Cookies:
    cookies = read_set_cookies(line.reveal() for line in reply.set_cookies)
    return tuple((cookie.name, cookie.value) for cookie in cookies if not cookie.expired)


def _nothing() -> LoginAuth:
    return LoginAuth(WebLogin(None))
