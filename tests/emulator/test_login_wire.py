"""A person signs in with a code from an e-mail, and the session then counts."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ipyperplexity.emulator import FAULTS, Behavior, EmulatorServer

from .http_help import Reply, call
from .web_help import COOKIE, EMAIL, TOKEN, ask_web

SESSION = "__Secure-next-auth.session-token"


def start(server: EmulatorServer) -> tuple[str, dict[str, str]]:
    """The CSRF token, and the header with its cookie."""
    reply = call(server, "GET", "/api/auth/csrf")
    pair = reply.headers["set-cookie"].partition(";")[0]
    return reply.json()["csrfToken"], {"Cookie": pair}


def ask_for_code(server: EmulatorServer, email: str = EMAIL) -> tuple[str, dict[str, str]]:
    csrf, cookie = start(server)
    body = {"email": email, "csrfToken": csrf}
    reply = call(server, "POST", "/api/auth/signin-email", body, cookie)
    assert (reply.status, reply.json()) == (200, {"success": "Email sign in triggered"})
    return csrf, cookie


def give_code(server: EmulatorServer, code: str, csrf: str, cookie: dict[str, str]) -> Reply:
    body = {"email": EMAIL, "otp": code, "csrfToken": csrf}
    return call(server, "POST", "/api/auth/signin-otp", body, cookie)


def test_the_code_from_the_mail_opens_a_session(server: EmulatorServer) -> None:
    csrf, cookie = ask_for_code(server)
    code = server.sent_codes[EMAIL]
    assert re.fullmatch(r"[a-z0-9]{5}-[a-z0-9]{5}", code)
    reply = give_code(server, code, csrf, cookie)
    token = reply.json()["token"]
    assert reply.json() == {"token": token, "status": "success"}
    assert token.startswith("eyJ") and len(token.split(".")) == 5
    assert reply.headers["set-cookie"].startswith(f"{SESSION}={token}; Path=/")
    session = call(server, "GET", "/api/auth/session", headers={"Cookie": f"{SESSION}={token}"})
    assert session.json()["user"]["email"] == EMAIL


def test_a_code_works_once(server: EmulatorServer) -> None:
    csrf, cookie = ask_for_code(server)
    code = server.sent_codes[EMAIL]
    assert give_code(server, code, csrf, cookie).status == 200
    assert give_code(server, code, csrf, cookie).status == 401


def test_a_wrong_code_is_told_in_words_and_as_a_code(server: EmulatorServer) -> None:
    csrf, cookie = ask_for_code(server)
    reply = give_code(server, "00000-00000", csrf, cookie)
    assert reply.status == 401
    assert sorted(reply.json()) == ["error_code", "text"]
    assert server.web_sessions == {}
    assert give_code(server, server.sent_codes[EMAIL], csrf, cookie).status == 200


@pytest.mark.parametrize("path", ["/api/auth/signin-email", "/api/auth/signin-otp"])
@pytest.mark.parametrize("lost", ["cookie", "token", "both of another start"])
def test_a_step_without_the_csrf_cookie_or_token_is_refused(
    server: EmulatorServer, path: str, lost: str
) -> None:
    csrf, cookie = ask_for_code(server)
    body = {"email": EMAIL, "otp": server.sent_codes[EMAIL], "csrfToken": csrf}
    if lost == "cookie":
        cookie = {}
    elif lost == "token":
        body["csrfToken"] = "made up"
    else:
        _, cookie = start(server)
    assert call(server, "POST", path, body, cookie).status == 403
    assert server.web_sessions == {}


@pytest.mark.parametrize(
    "body", [b"", b"[]", {"email": EMAIL}, {"email": 3, "csrfToken": "x"}, b"{"]
)
def test_a_body_that_is_no_login_step_is_refused(server: EmulatorServer, body: Any) -> None:
    reply = call(server, "POST", "/api/auth/signin-email", body)
    assert (reply.status, reply.json()["error_code"]) == (400, "INVALID_REQUEST")


def test_the_csrf_cookie_has_either_name_or_does_not_come(server: EmulatorServer) -> None:
    server.next(Behavior(csrf_cookie="__Host-next-auth.csrf-token"), Behavior(csrf_cookie="none"))
    csrf, cookie = start(server)
    assert cookie["Cookie"].startswith(f"__Host-next-auth.csrf-token={csrf}%7C")
    assert "set-cookie" not in call(server, "GET", "/api/auth/csrf").headers
    body = {"email": EMAIL, "csrfToken": csrf}
    assert call(server, "POST", "/api/auth/signin-email", body, cookie).status == 200


def test_a_challenge_can_take_the_place_of_the_first_step(server: EmulatorServer) -> None:
    server.next(FAULTS["cloudflare-403"])
    reply = call(server, "GET", "/api/auth/csrf")
    assert reply.status == 403 and b"Just a moment" in reply.body


@pytest.mark.parametrize("name", ["accessToken", "jwt", "access_token", "cookie"])
def test_the_token_comes_under_each_name_that_was_seen(server: EmulatorServer, name: str) -> None:
    csrf, cookie = ask_for_code(server)
    server.next(Behavior(login_token=name))
    reply = give_code(server, server.sent_codes[EMAIL], csrf, cookie)
    token = reply.headers["set-cookie"].partition(";")[0].partition("=")[2]
    assert server.web_sessions == {token: EMAIL}
    assert reply.json() == {"status": "success", **({name: token} if name != "cookie" else {})}


def test_asking_for_the_session_rotates_its_cookie_and_the_new_one_counts(
    web: EmulatorServer,
) -> None:
    reply = call(web, "GET", "/api/auth/session", headers=COOKIE)
    user = reply.json()["user"]
    assert sorted(user) == ["email", "id", "payment_tier", "subscription_status"]
    new = reply.headers["set-cookie"].partition(";")[0]
    assert new != COOKIE["Cookie"]
    again = call(web, "GET", "/api/auth/session", headers={"Cookie": new})
    assert again.json()["user"] == user
    assert ask_web(web, cookie={"Cookie": new}).headers["x-pplx-account-used"] == user["id"]


def test_who_is_not_signed_in_has_no_user_and_gets_no_cookie(web: EmulatorServer) -> None:
    for headers in ({}, {"Cookie": f"{SESSION}=stale"}, {"Authorization": f"Bearer {TOKEN}"}):
        reply = call(web, "GET", "/api/auth/session", headers=headers)
        assert (reply.status, reply.json()) == (200, {})
        assert "set-cookie" not in reply.headers


def test_a_reply_can_set_a_session_cookie_of_choice_or_none(web: EmulatorServer) -> None:
    web.next(Behavior(rotate_session="ONE"), Behavior(rotate_session="TWO"))
    replies = ask_web(web), call(web, "GET", "/api/auth/session", headers=COOKIE)
    for name, reply in zip(("ONE", "TWO"), replies, strict=True):
        assert reply.headers["set-cookie"].startswith(f"{SESSION}={name}; ")
        cookie = {"Cookie": f"{SESSION}={name}"}
        assert "x-pplx-account-used" in ask_web(web, cookie=cookie).headers
    assert "set-cookie" not in ask_web(web).headers
    web.next(Behavior(rotate_session=""))
    assert "set-cookie" not in call(web, "GET", "/api/auth/session", headers=COOKIE).headers


def test_a_session_in_two_parts_is_one(web: EmulatorServer) -> None:
    parts = f"{SESSION}.1={TOKEN[6:]}; {SESSION}.0={TOKEN[:6]}; cf_clearance=x"
    assert "x-pplx-account-used" in ask_web(web, cookie={"Cookie": parts}).headers


def test_no_credential_shows_but_a_test_can_ask_for_it(web: EmulatorServer) -> None:
    headers = {**COOKIE, "Authorization": "Bearer pplx-secret"}
    ask_web(web, cookie=headers)
    seen = web.requests[-1]
    assert (seen.bearer, seen.cookies) == ("pplx-secret", {SESSION: TOKEN})
    assert seen.headers["authorization"] == "***"
    assert seen.headers["cookie"] == f"{SESSION}=***"
    assert TOKEN not in repr(seen) and "pplx-secret" not in repr(seen)
    call(web, "GET", "/api/auth/csrf")
    assert (web.requests[-1].bearer, web.requests[-1].cookies) == (None, {})


def test_the_limits_are_told_and_counted_down(web: EmulatorServer) -> None:
    before = call(web, "GET", "/rest/rate-limit/all", headers=COOKIE).json()
    ask_web(web)
    ask_web(web, model_preference="pplx_alpha")
    ask_web(web, mode="concise")
    after = call(web, "GET", "/rest/rate-limit/all", headers=COOKIE).json()
    assert before["remaining_pro"] - after["remaining_pro"] == 1
    assert before["remaining_research"] - after["remaining_research"] == 1
    assert "web" in after["sources"]["source_to_limit"]
    assert call(web, "GET", "/rest/rate-limit/all").json()["remaining_pro"] == 0


def test_the_catalogue_names_models_tiers_and_defaults(server: EmulatorServer) -> None:
    path = "/rest/models/config?config_schema=v1&version=2.18&source=default"
    reply = call(server, "GET", path).json()
    assert reply["default_models"]["research"] == "pplx_alpha"
    assert sorted(reply["models"]["turbo"]) == ["description", "label", "mode", "provider"]
    for entry in reply["config"]:
        slug = entry["reasoning_model"] or entry["non_reasoning_model"]
        assert reply["models"][slug]["label"] == entry["label"]
        assert entry["subscription_tier"] in ("pro", "max")
