"""Login with a code by e-mail: three calls, and a sentence for all that can go wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from ipyperplexity import errors
from ipyperplexity.auth.consumer_login import login_by_code
from ipyperplexity.auth.cookies import as_header
from ipyperplexity.auth.login_record import WebLogin
from ipyperplexity.net.redact import Secret
from ipyperplexity.version import __version__
from tests.auth.signing_in import (
    CHALLENGE,
    CODE,
    CSRF,
    CSRF_COOKIES,
    EMAIL,
    NEW,
    SESSION,
    TOKEN,
    Never,
    SignIn,
    answering,
    paths,
    reply,
    shown,
    typed,
)
from tests.support.raw_server import Close, RawServer, Reset

CALLS = ["GET /api/auth/csrf", "POST /api/auth/signin-email", "POST /api/auth/signin-otp"]


def log_in(server: RawServer, ask_code: Callable[[], Secret] | None = None) -> WebLogin:
    return login_by_code(answering(EMAIL), ask_code or typed(CODE), base_url=server.url)


def fails(pages: Any, kind: type[errors.PerplexityError], **prompts: Any) -> tuple[Any, list[str]]:
    """Log in where that fails; return the error and the calls that were made."""
    with RawServer(pages) as server:
        with pytest.raises(errors.PerplexityError) as raised:
            log_in(server, **prompts)
        assert type(raised.value) is kind
        text = shown(raised.value)
        assert not any(secret in text for secret in (TOKEN, NEW, CSRF, CODE, "abc%7Cdef"))
        return raised.value, paths(server)


def test_exactly_three_calls_of_the_right_shape_give_the_token() -> None:
    with RawServer(SignIn()) as server:
        login = log_in(server)
        assert paths(server) == CALLS
        csrf, mail, otp = server.requests
        origin = server.url
    assert login.token is not None and login.token.reveal() == TOKEN
    assert (login.email, login.cookies, login.stored_as) == (EMAIL, (), "")
    assert csrf.body == b"" and csrf.headers["Cookie"] is None
    assert mail.json == {"email": EMAIL, "csrfToken": CSRF}
    assert otp.json == {"email": EMAIL, "otp": CODE, "csrfToken": CSRF}
    for request in (mail, otp):
        assert (
            request.headers["Cookie"] == "__Host-next-auth.csrf-token=abc%7Cdef; cf_clearance=clear"
        )
        assert request.headers["Content-Type"] == "application/json"
    for request in server.requests:
        assert request.headers["Authorization"] is None
        assert request.headers["Accept"] == "application/json"
        assert request.headers["Origin"] == origin
        assert request.headers["Referer"] == f"{origin}/"
        assert request.headers["User-Agent"] == f"ipyperplexity/{__version__}"
        assert request.headers["X-App-ApiClient"] == "default"
        assert request.headers["X-App-ApiVersion"] == "2.18"


@pytest.mark.parametrize("name", ["token", "accessToken", "jwt", "access_token"])
def test_each_name_of_the_token_is_known(name: str) -> None:
    with RawServer(SignIn(signin_otp=reply(200, {name: TOKEN, "other": "x"}))) as server:
        login = log_in(server)
    assert login.token is not None and login.token.reveal() == TOKEN


def test_a_session_that_is_only_set_as_a_cookie_is_taken_in_its_parts() -> None:
    otp = reply(
        200,
        {"status": "success"},
        "a=b",
        f"{SESSION}.0={TOKEN[:30]}; Path=/",
        f"{SESSION}.1={TOKEN[30:]}",
    )
    with RawServer(SignIn(signin_otp=otp)) as server:
        login = log_in(server)
    assert login.token is not None and login.token.reveal() == TOKEN
    assert as_header(login.cookies) == f"{SESSION}.0={TOKEN[:30]}; {SESSION}.1={TOKEN[30:]}"


@pytest.mark.parametrize("status", [200, 403, 503])
def test_a_browser_challenge_is_named_after_one_call(status: int) -> None:
    error, calls = fails(SignIn(csrf=reply(status, CHALLENGE)), errors.ChallengeError)
    assert "browser challenge" in error.message and "Cloudflare" in error.message
    assert "--browser" in error.hint and "not the problem" in error.hint
    assert error.status_code == status and calls == CALLS[:1]


@pytest.mark.parametrize("page", ["signin_email", "signin_otp"])
def test_a_browser_challenge_later_on_is_named_as_well(page: str) -> None:
    error, _ = fails(SignIn(**{page: reply(403, CHALLENGE)}), errors.ChallengeError)
    assert "browser challenge" in error.message


@pytest.mark.parametrize("cookies", [(), ("gone=; Max-Age=0",)])
def test_without_cookies_it_ends_after_one_call(cookies: tuple[str, ...]) -> None:
    page = reply(200, {"csrfToken": CSRF}, *cookies)
    error, calls = fails(SignIn(csrf=page), errors.AuthenticationError)
    assert "no cookie" in error.message and calls == CALLS[:1]


@pytest.mark.parametrize(("page", "kind"), [
    (reply(200, {}, *CSRF_COOKIES), errors.AuthenticationError),
    (reply(200, {"csrfToken": 5}, *CSRF_COOKIES), errors.AuthenticationError),
    (reply(200, [], *CSRF_COOKIES), errors.AuthenticationError),
    (reply(200, "<html>hello</html>", *CSRF_COOKIES), errors.StreamError),
    (reply(200, "not json", *CSRF_COOKIES), errors.StreamError),
    (reply(302, {}, *CSRF_COOKIES, Location="https://elsewhere.example/"), errors.NetworkError),
    (reply(404, {}), errors.AuthenticationError),
    (reply(429, {}, retry_after="7"), errors.RateLimitError),
    (reply(500, "<h1>oops</h1>"), errors.ServerError),
])  # fmt: skip
def test_a_sign_in_that_cannot_begin_is_explained_after_one_call(page: bytes, kind: Any) -> None:
    error, calls = fails(SignIn(csrf=page), kind)
    assert error.message.startswith("The sign-in could not begin") and calls == CALLS[:1]
    assert error.retry_after == (7.0 if kind is errors.RateLimitError else None)


def test_a_refused_code_is_told_in_the_words_of_the_service() -> None:
    body = {"text": f"Invalid code {CODE}\nfor {CSRF}", "error_code": "BAD_OTP"}
    error, calls = fails(
        SignIn(signin_otp=reply(401, body, x_request_id="r1")), errors.AuthenticationError
    )
    assert error.message == "OTP verification failed: Invalid code *** for ***"
    assert (error.status_code, error.request_id) == (401, "r1") and calls == CALLS
    assert "PERPLEXITY_API_KEY" not in str(error)


@pytest.mark.parametrize("page", [
    reply(200, {"status": "failed"}),
    reply(200, {"token": ""}),
    reply(200, {"token": "a\nb"}),
    reply(200, {"token": 5}),
    reply(403, {"token": NEW}),
    reply(401, {}, f"{SESSION}={NEW}"),
])  # fmt: skip
def test_no_token_is_no_login(page: bytes) -> None:
    error, _ = fails(SignIn(signin_otp=page), errors.AuthenticationError)
    assert error.message.startswith("OTP verification failed")


def test_a_refused_address_is_told_before_a_code_is_asked_for() -> None:
    page = reply(400, {"error_code": "SSO_ONLY"})
    error, calls = fails(SignIn(signin_email=page), errors.AuthenticationError, ask_code=Never())
    assert "SSO_ONLY" in error.message and "--browser" in error.hint and calls == CALLS[:2]


def test_no_code_is_no_third_call() -> None:
    error, calls = fails(SignIn(), errors.MissingCredentialError, ask_code=typed(""))
    assert "No code" in error.message and calls == CALLS[:2]


@pytest.mark.parametrize(("email", "kind", "says"), [
    ("", errors.MissingCredentialError, "OTP fallback"),
    ("  ", errors.MissingCredentialError, "OTP fallback"),
    ("ada", errors.InvalidRequestError, "no e-mail address"),
    ("ada@x y", errors.InvalidRequestError, "no e-mail address"),
    ("a@b@c", errors.InvalidRequestError, "no e-mail address"),
])  # fmt: skip
def test_without_an_address_no_call_is_made(email: str, kind: Any, says: str) -> None:
    with RawServer(SignIn()) as server:
        with pytest.raises(kind, match=says):
            login_by_code(answering(email), Never(), base_url=server.url)
        assert not server.requests


@pytest.mark.parametrize(
    "url", ["http://www.perplexity.ai", "ftp://127.0.0.1", "https://me:pw@x.example", ""]
)
def test_an_address_that_would_show_the_code_on_the_way_is_refused(url: str) -> None:
    with pytest.raises(errors.ConfigurationError, match="base_url"):
        login_by_code(Never(), Never(), base_url=url)


@pytest.mark.parametrize("step", [Close(), Reset(), b"not http\r\n\r\n"])
def test_a_broken_connection_is_an_error_that_tells_nothing(step: Any) -> None:
    def break_off(request: Any, connection: Any) -> None:
        if request.path.endswith("otp"):
            connection.play(step)
            connection.play(Close())
        else:
            SignIn()(request, connection)

    error, calls = fails(break_off, errors.NetworkError)
    assert "127.0.0.1" in error.message and calls == CALLS


def test_a_reply_that_breaks_off_does_not_tell_what_has_come() -> None:
    whole = reply(200, {"token": TOKEN}, f"{SESSION}={NEW}; Path=/")

    def break_off(request: Any, connection: Any) -> None:
        if request.path.endswith("otp"):
            connection.play(whole[:-3])
            connection.play(Close())
        else:
            SignIn()(request, connection)

    fails(break_off, errors.StreamError)


def test_a_redirect_is_not_followed() -> None:
    with RawServer(SignIn()) as other:
        page = reply(307, {}, Location=f"{other.url}/api/auth/signin-otp")
        error, calls = fails(SignIn(signin_otp=page), errors.NetworkError)
        assert "redirect" in error.message and calls == CALLS and not other.requests


def test_a_user_can_take_a_while_to_type_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    from ipyperplexity.auth import web_calls

    monkeypatch.setattr(web_calls, "CALL_TIMEOUT", 0.3)

    def slowly() -> Secret:
        time.sleep(0.5)
        return Secret(CODE)

    with RawServer(SignIn()) as server:
        assert log_in(server, slowly).email == EMAIL


def test_a_service_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from ipyperplexity.auth import web_calls
    from tests.support.raw_server import HoldOpen

    monkeypatch.setattr(web_calls, "CALL_TIMEOUT", 0.3)
    fails([HoldOpen()], errors.RequestTimeout)
