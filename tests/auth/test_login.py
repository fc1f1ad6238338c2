"""Logging in and out: what is looked at, in which order, what is stored, and what is told."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from ipyperplexity import errors
from ipyperplexity.auth.cookies import as_header
from ipyperplexity.auth.key_store import load_key, save_key
from ipyperplexity.auth.login import (
    LoggedIn,
    Prompts,
    credential_report,
    login_key,
    login_web,
    logout,
)
from ipyperplexity.auth.login_record import WebLogin
from ipyperplexity.auth.token_store import load_login, login_file, save_login
from ipyperplexity.net.redact import Secret
from tests.auth.signing_in import (
    CHALLENGE,
    CODE,
    EMAIL,
    KEY,
    NEW,
    SESSION,
    TOKEN,
    Never,
    SignIn,
    answering,
    reply,
    shown,
    typed,
    write_pi_login,
)
from tests.support.raw_server import RawServer

NOBODY = Prompts(Never(), Never(), Never())
HEADER = f"theme=dark; {SESSION}={TOKEN}"


def nowhere(prompts: Prompts = NOBODY, **options: Any) -> LoggedIn:
    """Log in where no call may be made."""
    with RawServer([]) as server:
        outcome = login_web(prompts, base_url=server.url, **options)
        assert not server.requests
        return outcome


def stored() -> WebLogin:
    login = load_login()
    assert login is not None
    return login


def token_of(login: WebLogin) -> str:
    assert login.token is not None
    return login.token.reveal()


# --- the API key ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [KEY, f" {KEY}\n", f"'{KEY}'", f'PERPLEXITY_API_KEY="{KEY}"', f"export PPLX_API_KEY = {KEY}"],
)
def test_a_key_is_stored_and_its_place_told(given: str) -> None:
    assert login_key(typed(given)).startswith("the file ")
    found = load_key()
    assert found is not None and found[0].reveal() == KEY


@pytest.mark.parametrize("given", ["", " \n"])
def test_no_key_changes_nothing(given: str) -> None:
    save_key(Secret(KEY))
    with pytest.raises(errors.MissingCredentialError, match="nothing has changed"):
        login_key(typed(given))
    assert load_key() is not None


def test_what_can_be_no_key_is_refused_without_being_shown_or_stored() -> None:
    with pytest.raises(errors.ConfigurationError, match="from the prompt") as raised:
        login_key(typed(f"{KEY} x"))
    assert KEY not in shown(raised.value) and load_key() is None


# --- perplexity.ai ----------------------------------------------------------------------------


def test_a_stored_login_ends_the_matter_without_a_call_or_a_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    save_login(WebLogin(Secret(TOKEN), origin="a test"))
    monkeypatch.setenv("PERPLEXITY_SESSION_TOKEN", NEW)
    before = login_file().stat()
    outcome = nowhere()
    assert not outcome.saved and token_of(outcome.login) == TOKEN
    after = login_file().stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


@pytest.mark.parametrize("name", ["PERPLEXITY_SESSION_TOKEN", "PI_PERPLEXITY_TOKEN"])
def test_a_token_of_the_environment_is_stored(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, f"Bearer {TOKEN}")
    outcome = nowhere()
    assert outcome.saved and outcome.login.stored_as == stored().stored_as
    monkeypatch.delenv(name)
    assert (token_of(stored()), stored().origin) == (TOKEN, f"the stored login: {name}")


@pytest.mark.parametrize("name", ["PERPLEXITY_COOKIE", "PI_PERPLEXITY_COOKIE"])
def test_cookies_of_the_environment_are_stored_with_their_token(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, f"curl https://www.perplexity.ai/ -H 'cookie: {HEADER}'")
    assert nowhere().saved
    assert (token_of(stored()), as_header(stored().cookies)) == (TOKEN, HEADER)


def test_a_bare_token_among_the_cookies_is_stored_as_a_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PI_PERPLEXITY_COOKIE", TOKEN)
    nowhere()
    assert token_of(stored()) == TOKEN and not stored().cookies


@pytest.mark.parametrize("value", ["a=b; cf_clearance=c", "curl https://www.perplexity.ai/"])
def test_cookies_without_a_session_store_nothing(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PI_PERPLEXITY_COOKIE", value)
    with pytest.raises(errors.MissingCredentialError, match="PI_PERPLEXITY_COOKIE"):
        nowhere()
    assert not login_file().exists()


def test_force_takes_a_new_variable_in_place_of_the_stored_login(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    save_login(WebLogin(Secret(TOKEN)))
    monkeypatch.setenv("PERPLEXITY_SESSION_TOKEN", NEW)
    assert nowhere(force=True).saved
    assert token_of(stored()) == NEW


def test_the_login_of_pi_perplexity_is_used_where_it_is(tmp_path: Path) -> None:
    write_pi_login(tmp_path, {"access": TOKEN})
    outcome = nowhere()
    assert not outcome.saved and "pi-perplexity" in outcome.login.origin
    assert not login_file().exists()


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_the_desktop_app_is_looked_at_before_a_code_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "bin" / "defaults"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\necho {TOKEN}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{script.parent}:/usr/bin:/bin")
    assert nowhere(platform="darwin").saved
    assert stored().origin == "the stored login: the Perplexity desktop app"
    monkeypatch.setenv("PI_AUTH_NO_BORROW", "1")
    prompts = Prompts(answering(EMAIL), typed(CODE), Never())
    with RawServer(SignIn(signin_otp=reply(200, {"token": NEW}))) as server:
        login_web(prompts, force=True, base_url=server.url, platform="darwin")
        assert len(server.requests) == 3
    assert (token_of(stored()), stored().email) == (NEW, EMAIL)


def test_a_code_by_e_mail_is_the_last_way_and_its_login_is_stored_with_the_address() -> None:
    asked: list[Any] = []

    def code(address: str) -> Secret:
        asked.append(address)
        return Secret(f" {CODE} ")

    with RawServer(SignIn()) as server:
        outcome = login_web(Prompts(answering(EMAIL), code, Never()), base_url=server.url)
        assert len(server.requests) == 3
        assert server.requests[2].json["otp"] == CODE
    assert outcome.saved and asked == [EMAIL]
    assert (token_of(stored()), stored().email) == (TOKEN, EMAIL)
    assert stored().origin == "the stored login: a code by e-mail"


@pytest.mark.parametrize("prefix", ["", "PI_"])
def test_address_and_code_of_the_environment_take_the_place_of_questions(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"{prefix}PERPLEXITY_EMAIL", EMAIL)
    monkeypatch.setenv(f"{prefix}PERPLEXITY_OTP", CODE)
    with RawServer(SignIn()) as server:
        login_web(NOBODY, base_url=server.url)
        assert server.requests[2].json["email"] == EMAIL
        assert server.requests[2].json["otp"] == CODE


@pytest.mark.parametrize("pages", [
    SignIn(csrf=reply(403, CHALLENGE)),
    SignIn(signin_email=reply(400, {})),
    SignIn(signin_otp=reply(401, {"text": "no"})),
])  # fmt: skip
def test_a_login_that_fails_leaves_the_stored_one(pages: Any) -> None:
    save_login(WebLogin(Secret("old")))
    with RawServer(pages) as server, pytest.raises(errors.PerplexityError) as raised:
        login_web(Prompts(answering(EMAIL), typed(CODE), Never()), force=True, base_url=server.url)
    assert token_of(stored()) == "old" and CODE not in shown(raised.value)


def test_no_address_stores_nothing_and_names_the_fallback() -> None:
    with pytest.raises(errors.MissingCredentialError, match="OTP fallback"):
        nowhere(Prompts(answering(""), Never(), Never()))
    assert not login_file().exists()


def test_pasted_cookies_replace_the_stored_login_whatever_else_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    save_login(WebLogin(Secret("old")))
    monkeypatch.setenv("PERPLEXITY_SESSION_TOKEN", NEW)
    assert nowhere(Prompts(Never(), Never(), typed(f"Cookie: {HEADER}")), browser=True).saved
    assert as_header(stored().cookies) == HEADER
    assert stored().origin == "the stored login: cookies of a browser"


@pytest.mark.parametrize(("text", "says"), [
    ("", "Nothing was pasted"),
    ("a=b", "What was pasted: there is no session cookie"),
    ("curl https://www.perplexity.ai/", "What was pasted: the cURL command has no cookies"),
])  # fmt: skip
def test_a_paste_without_a_session_says_what_is_wrong_with_it(text: str, says: str) -> None:
    save_login(WebLogin(Secret("old")))
    with pytest.raises(errors.MissingCredentialError, match=says) as raised:
        nowhere(Prompts(Never(), Never(), typed(text)), browser=True)
    assert "developer tools" in str(raised.value) and "cancel" not in str(raised.value)
    assert token_of(stored()) == "old"


# --- logout and report ------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "web"), [(True, True), (True, False), (False, True)])
def test_logout_deletes_what_it_is_told_to(key: bool, web: bool) -> None:
    save_key(Secret(KEY))
    save_login(WebLogin(Secret(TOKEN)))
    said = logout(key=key, web=web)
    assert (load_key() is None, load_login() is None) == (key, web)
    assert ("The stored API key is deleted." in said) == key
    assert ("The stored login is deleted." in said) == web
    assert logout(key=key, web=web) == [
        s
        for s, wanted in (("No API key was stored.", key), ("No login was stored.", web))
        if wanted
    ]


def test_logout_leaves_no_secret_behind(home: Path) -> None:
    for _ in range(2):
        save_key(Secret(KEY))
        save_login(WebLogin(Secret(TOKEN), ((SESSION, Secret(TOKEN)),)))
        login_file().write_text(f'{{"token": "{TOKEN}')  # damaged, and set aside
        with pytest.warns(errors.PerplexityWarning):
            load_login()
        (home / ".web-login.json.abc.new").write_text(TOKEN)  # a process was ended while writing
    logout()
    left = [path for path in home.rglob("*") if path.is_file()]
    assert not any(KEY in path.read_text() or TOKEN in path.read_text() for path in left), left


def test_logout_says_what_still_gives_a_credential(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = write_pi_login(tmp_path, {"access": TOKEN})
    assert any("pi-perplexity's login" in s and "NO_BORROW" in s for s in logout())
    monkeypatch.setenv("PPLX_API_KEY", KEY)
    monkeypatch.setenv("PI_PERPLEXITY_TOKEN", TOKEN)
    said = " ".join(logout())
    assert "PPLX_API_KEY is still set" in said and "PI_PERPLEXITY_TOKEN is still set" in said
    assert path.exists() and KEY not in said and TOKEN not in said


def test_the_report_says_where_credentials_come_from_and_never_what_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert credential_report() == {"API key": "none", "web login": "none"}
    save_key(Secret(KEY))
    save_login(WebLogin(Secret(TOKEN), email=EMAIL, origin="a code by e-mail"))
    report = credential_report()
    assert report["API key"].startswith("the file ")
    assert report["web login"] == f"the stored login: a code by e-mail, {EMAIL}"
    monkeypatch.setenv("PERPLEXITY_API_KEY", KEY)
    monkeypatch.setenv("PERPLEXITY_COOKIE", HEADER)
    report = credential_report()
    assert report["API key"] == "PERPLEXITY_API_KEY"
    assert "PERPLEXITY_COOKIE is set too, and not used" in report["web login"]
    assert KEY not in str(report) and TOKEN not in str(report)


def test_the_report_survives_a_bad_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERPLEXITY_API_KEY", "a b")
    monkeypatch.setenv("PERPLEXITY_COOKIE", "a=b")
    report = credential_report()
    assert all(origin.startswith("unusable: ") for origin in report.values())
