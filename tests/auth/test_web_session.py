"""Who is signed in, as the service says; a session that it renews on the way is kept."""

from __future__ import annotations

from typing import Any

import pytest

from ipyperplexity import errors
from ipyperplexity.auth.login_record import WebLogin
from ipyperplexity.auth.token_store import load_login, save_login
from ipyperplexity.auth.web_session import Account, fetch_account
from ipyperplexity.net.redact import Secret
from tests.auth.signing_in import CHALLENGE, EMAIL, NEW, SESSION, TOKEN, SignIn, paths, reply, shown
from tests.support.raw_server import RawServer

LOGIN = WebLogin(
    Secret(TOKEN), (("theme", Secret("dark")), (SESSION, Secret(TOKEN))), origin="a test"
)


def test_the_account_is_told_from_one_call_with_the_cookies() -> None:
    user = {"id": "u1", "email": EMAIL, "subscription_status": "active", "payment_tier": "pro"}
    with RawServer(SignIn(session=reply(200, {"user": user, "expires": "2098-01-01"}))) as server:
        account = fetch_account(LOGIN, base_url=server.url)
        assert account == Account("u1", EMAIL, "active", "pro", "2098-01-01")
        assert paths(server) == ["GET /api/auth/session"]
        assert server.requests[0].headers["Cookie"] == f"theme=dark; {SESSION}={TOKEN}"


@pytest.mark.parametrize("body", [{}, {"user": None}, {"user": {}}, {"user": "x"}, [], None])
def test_an_anonymous_session_is_nobody(body: Any) -> None:
    with RawServer(SignIn(session=reply(200, body))) as server:
        assert fetch_account(LOGIN, base_url=server.url) is None


def test_fields_of_an_odd_type_are_left_empty() -> None:
    with RawServer(
        SignIn(session=reply(200, {"user": {"id": "u1", "email": 5}, "expires": 5}))
    ) as server:
        assert fetch_account(LOGIN, base_url=server.url) == Account("u1")


@pytest.mark.parametrize("body", [{"user": {"id": "u1"}}, {}])
def test_a_renewed_session_is_kept(body: Any) -> None:
    kept = save_login(LOGIN)
    with RawServer(
        SignIn(session=reply(200, body, f"{SESSION}={NEW}; Path=/; Secure", "x=y"))
    ) as server:
        fetch_account(kept, base_url=server.url)
    found = load_login()
    assert found is not None
    assert {n: v.reveal() for n, v in found.cookies} == {"theme": "dark", SESSION: NEW}


@pytest.mark.parametrize(("page", "kind"), [
    (reply(401, {"error": f"no {TOKEN}"}, f"{SESSION}=; Max-Age=0"), errors.AuthenticationError),
    (reply(403, {}), errors.AuthenticationError),
    (reply(403, CHALLENGE), errors.ChallengeError),
    (reply(429, {}), errors.RateLimitError),
    (reply(500, {}), errors.ServerError),
    (reply(200, "<p>hello"), errors.StreamError),
    (reply(301, {}, Location="https://x.example"), errors.NetworkError),
])  # fmt: skip
def test_no_failure_takes_the_stored_login_away_or_tells_it(page: bytes, kind: Any) -> None:
    kept = save_login(LOGIN)
    with RawServer(SignIn(session=page)) as server, pytest.raises(errors.PerplexityError) as raised:
        fetch_account(kept, base_url=server.url)
    assert type(raised.value) is kind and TOKEN not in shown(raised.value)
    found = load_login()
    assert found is not None and found.token is not None and found.token.reveal() == TOKEN
