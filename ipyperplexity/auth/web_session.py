"""Who is signed in with a login, as perplexity.ai itself says (consumer-web 1.7)."""

from __future__ import annotations

from dataclasses import dataclass

import requests

from ipyperplexity.auth.login_record import WebLogin
from ipyperplexity.auth.web_calls import WEB_URL, Reply, WebCalls, refusal
from ipyperplexity.auth.web_login import keep_rotated
from ipyperplexity.net.redact import Secret


@dataclass(frozen=True)
class Account:
    """Who is signed in; a text is empty if the service does not tell.

    Attributes
    ----------
    id, email : str
    subscription : str
        Such as ``active`` or ``none``.
    tier : str
        Such as ``pro`` or ``max``.
    expires : str
        When the session ends, as the service writes it.
    """

    id: str
    email: str = ""
    subscription: str = ""
    tier: str = ""
    expires: str = ""


def fetch_account(
    login: WebLogin, *, base_url: str = WEB_URL, session: requests.Session | None = None
) -> Account | None:
    """Ask who is signed in; a session that is renewed on the way is kept.

    Returns
    -------
    Account or None
        None if nobody is: questions with this login would be answered anonymously.

    Raises
    ------
    AuthenticationError, ChallengeError, NetworkError, ServerError, StreamError
        If the service does not say.
    """
    with WebCalls(base_url, session) as calls:
        reply = calls.call("GET", "/api/auth/session", auth=login.auth())
    keep_rotated(login, [line.reveal() for line in reply.set_cookies])
    if reply.ok and reply.is_json:
        return _account(reply)
    raise refusal(
        reply,
        "perplexity.ai does not say who is signed in",
        hint="Log in anew: %perplexity login --web --force",
        secrets=login.secrets(),
    )


def _account(reply: Reply) -> Account | None:
    user = reply.fields.get("user")
    if not isinstance(user, dict) or not user:
        return None
    names = ("id", "email", "subscription_status", "payment_tier")
    values = (user.get(name) for name in names)
    known = (value.reveal() if isinstance(value, Secret) else "" for value in values)
    id, email, subscription, tier = known
    expires = reply.first("expires")
    return Account(id, email, subscription, tier, expires.reveal() if expires else "")
