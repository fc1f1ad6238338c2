"""A login to perplexity.ai, and how it is put on a request.

The web endpoint counts the session cookie only; a bearer token alone is not refused but served
anonymously (consumer-web 1.3). So a token that came without cookies is sent as that cookie, with
the bearer header beside it, and cookies are sent as they are, with no bearer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import requests
from requests.auth import AuthBase

from ipyperplexity.auth.cookies import (
    SESSION_COOKIES,
    Cookies,
    as_header,
    is_session,
    read_set_cookies,
    rotate,
    session_token,
)
from ipyperplexity.net.redact import Secret
from ipyperplexity.secret_patterns import MASK

#: Characters from which on a cookie's value is hidden in other people's text. A shorter one, such
#: as a color theme, is a word that an answer may hold too.
_TELLING = 20


@dataclass(frozen=True)
class WebLogin:
    """Who asks on perplexity.ai; values are never shown.

    Attributes
    ----------
    token : Secret or None
        The session token, also if it came in cookies.
    cookies : tuple of (str, Secret)
        To be sent as they are; empty if only a token is known.
    email : str or None
        Whose login it is, if that is known.
    origin : str
        Where it comes from; this is what is shown.
    stored_as : str
        Names this login in our store; empty if it is not from there.

    Examples
    --------
    >>> WebLogin(Secret("abc"), origin="PERPLEXITY_SESSION_TOKEN")
    WebLogin(token=Secret(***), cookies=(), email=None, origin='PERPLEXITY_SESSION_TOKEN', \
stored_as='')
    """

    token: Secret | None
    cookies: Cookies = ()
    email: str | None = None
    origin: str = ""
    stored_as: str = ""

    def auth(self) -> LoginAuth:
        """Return what puts this login on a request when it is sent."""
        return LoginAuth(self)

    def secrets(self) -> tuple[Secret, ...]:
        """Return what must not show in messages and records."""
        cookies = [
            value
            for name, value in self.cookies
            if value and (is_session(name) or len(value.reveal()) >= _TELLING)
        ]
        return (self.token, *cookies) if self.token else tuple(cookies)

    def with_reply(self, set_cookie_lines: Sequence[str]) -> WebLogin:
        """Return the login with the session that a reply has set; itself if it has set none."""
        reply = read_set_cookies(set_cookie_lines)
        if self.cookies:
            cookies = rotate(self.cookies, reply)
            if as_header(cookies) == as_header(self.cookies):
                return self
            return dataclasses.replace(
                self, cookies=cookies, token=session_token(cookies) or self.token
            )
        token = session_token(rotate((), reply))
        if token is None or (self.token and token.reveal() == self.token.reveal()):
            return self
        return dataclasses.replace(self, token=token)


class LoginAuth(AuthBase):
    """Puts a login on a request when it is sent."""

    def __init__(self, login: WebLogin) -> None:
        self._login = login

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        login = self._login
        if login.cookies:
            request.headers["Cookie"] = as_header(login.cookies)
        elif login.token:
            request.headers["Cookie"] = as_header(((SESSION_COOKIES[0], login.token),))
            request.headers["Authorization"] = f"Bearer {login.token.reveal()}"
        return request

    def __repr__(self) -> str:
        return f"LoginAuth({MASK})"
