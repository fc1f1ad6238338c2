"""Which login is used, and what of it goes over the wire."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
import requests

from ipyperplexity.auth.login_record import LoginAuth
from ipyperplexity.auth.token_store import save_login
from ipyperplexity.auth.web_login import (
    WebLogin,
    find_web_login,
    keep_rotated,
    require_web_login,
)
from ipyperplexity.errors import ConfigurationError, MissingCredentialError
from ipyperplexity.net import sessions
from ipyperplexity.net.redact import Secret
from tests.auth.signing_in import EMAIL, NEW, SESSION, TOKEN, shown, write_pi_login
from tests.support.raw_server import RawServer, http_response

HEADER = f"theme=dark; {SESSION}={TOKEN}"
PI = "pi-perplexity's login"


def token_of(login: WebLogin | None) -> str:
    assert login is not None and login.token is not None
    return login.token.reveal()


def found() -> WebLogin:
    login = find_web_login()
    assert login is not None
    return login


def sent(login: WebLogin) -> Any:
    """Send a request with a login, as questions are sent; return its headers."""
    with RawServer([http_response(200, {"Set-Cookie": "other=1"}, {})]) as server:
        session = sessions.make_session()
        for _ in range(2):  # what a reply sets is not sent along with the next
            send = sessions.sender(
                session,
                "GET",
                server.url,
                None,
                auth=login.auth(),
                headers={},
                loopback=True,
                read_timeout=5,
            )
            send().content  # noqa: B018
        return server.requests[-1].headers


def test_stored_cookies_are_sent_as_they_are_and_no_authorization() -> None:
    login = WebLogin(Secret(TOKEN), (("theme", Secret("dark")), (SESSION, Secret(TOKEN))))
    headers = sent(login)
    assert headers.get_all("Cookie") == [HEADER]
    assert headers["Authorization"] is None


def test_a_token_alone_is_sent_as_the_session_cookie_and_as_a_bearer() -> None:
    headers = sent(WebLogin(Secret(TOKEN)))
    assert headers.get_all("Cookie") == [f"{SESSION}={TOKEN}"]
    assert headers.get_all("Authorization") == [f"Bearer {TOKEN}"]


def test_parts_of_a_cookie_are_sent_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = f"{SESSION}.0=eyJaaa; {SESSION}.1=bbb"
    monkeypatch.setenv("PERPLEXITY_COOKIE", parts)
    assert token_of(found()) == "eyJaaabbb"
    assert sent(found())["Cookie"] == parts


def test_a_netrc_file_does_not_replace_the_login(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password other\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    login = WebLogin(Secret(TOKEN), ((SESSION, Secret(TOKEN)),))
    assert sent(login)["Authorization"] is None


def test_without_a_login_it_says_how_to_log_in() -> None:
    assert find_web_login() is None
    with pytest.raises(MissingCredentialError, match="not logged in") as raised:
        require_web_login()
    assert "%perplexity login --web" in str(raised.value)
    assert "PERPLEXITY_SESSION_TOKEN" in str(raised.value)


def test_the_order_is_store_token_cookie_pi(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_pi_login(tmp_path, {"type": "oauth", "access": "of-pi", "email": EMAIL})
    assert (token_of(found()), found().email) == ("of-pi", EMAIL) and PI in found().origin
    for name, value in (
        ("PI_PERPLEXITY_COOKIES", "pplx_jwt=c3"),
        ("PI_PERPLEXITY_COOKIE", "pplx_jwt=c2"),
        ("PERPLEXITY_COOKIE", "pplx_jwt=c1"),
        ("PI_PERPLEXITY_AUTH_TOKEN", "t3"),
        ("PI_PERPLEXITY_TOKEN", "t2"),
        ("PERPLEXITY_SESSION_TOKEN", "t1"),
    ):
        monkeypatch.setenv(name, value)
        assert (token_of(found()), found().origin) == (value.removeprefix("pplx_jwt="), name)
    save_login(WebLogin(Secret("stored"), origin="a test"))
    assert token_of(require_web_login()) == "stored"
    assert found().origin == "the stored login: a test"


@pytest.mark.parametrize(
    "value", [TOKEN, f"Bearer {TOKEN}", f"bearer  {TOKEN} ", f'"{TOKEN}"', f"{TOKEN}\n"]
)
def test_a_token_variable_may_have_a_bearer_before_it(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERPLEXITY_SESSION_TOKEN", value)
    assert token_of(found()) == TOKEN and not found().cookies


@pytest.mark.parametrize("value", ["", "  ", '""', "Bearer "])
def test_a_blank_variable_hides_nothing(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERPLEXITY_SESSION_TOKEN", value)
    monkeypatch.setenv("PERPLEXITY_COOKIE", value.replace("Bearer", "").replace('"', ""))
    assert find_web_login() is None
    monkeypatch.setenv("PI_PERPLEXITY_TOKEN", TOKEN)
    assert found().origin == "PI_PERPLEXITY_TOKEN"


@pytest.mark.parametrize(
    "value", [f"{SESSION}={TOKEN}; a=b", f"{TOKEN} x", f"{TOKEN}é", f"{TOKEN}\nx"]
)
def test_a_token_variable_that_holds_no_token_is_named(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERPLEXITY_SESSION_TOKEN", value)
    with pytest.raises(MissingCredentialError, match="PERPLEXITY_SESSION_TOKEN: ") as raised:
        find_web_login()
    assert "PERPLEXITY_COOKIE" in str(raised.value) and TOKEN not in shown(raised.value)


def test_a_cookie_variable_without_a_session_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_PERPLEXITY_COOKIE", "a=b; cf_clearance=" + TOKEN[3:])
    with pytest.raises(
        MissingCredentialError, match=r"PI_PERPLEXITY_COOKIE: .*session cookie"
    ) as raised:
        find_web_login()
    assert TOKEN[3:] not in shown(raised.value)


# --- pi-perplexity's file ---------------------------------------------------------------------

LIST = [{"name": "theme", "value": "dark"}, {"name": SESSION, "value": TOKEN}]


@pytest.mark.parametrize(("record", "header"), [
    ({"type": "oauth", "access": TOKEN}, f"{SESSION}={TOKEN}"),
    ({"type": "oauth", "access": TOKEN, "cookies": HEADER}, HEADER),
    ({"type": "oauth", "cookies": HEADER}, HEADER),
    ({"type": "oauth", "cookies": LIST, "userAgent": "x"}, HEADER),
    ({"access": TOKEN, "cookies": "a=b"}, f"{SESSION}={TOKEN}"),
    ({"access": TOKEN, "cookies": 5, "email": 5}, f"{SESSION}={TOKEN}"),
])  # fmt: skip
def test_the_login_of_pi_perplexity_is_used_and_never_written(
    record: Any, header: str, tmp_path: Path
) -> None:
    path = write_pi_login(tmp_path, record)
    before = path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode
    login = found()
    assert token_of(login) == TOKEN and sent(login)["Cookie"] == header
    newer = keep_rotated(login, [f"{SESSION}={NEW}"])
    assert token_of(newer) == NEW
    assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode) == before
    assert not (tmp_path / "ours").exists()
    assert [p.name for p in path.parent.iterdir()] == ["auth.json"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"access": ""}',
        '{"access": 5}',
        '{"access": "a;b"}',
        '{"cookies": "a=b"}',
        "[" * 100_000,
    ],
)
def test_a_file_of_pi_perplexity_that_is_none_is_passed_over(text: str, tmp_path: Path) -> None:
    write_pi_login(tmp_path, text)
    assert find_web_login() is None


def test_a_file_of_pi_perplexity_that_is_no_text_is_passed_over(tmp_path: Path) -> None:
    path = write_pi_login(tmp_path, "")
    path.write_bytes(b"\xff\xfe")
    assert find_web_login() is None
    path.unlink()
    path.mkdir()
    assert find_web_login() is None


def test_no_borrow_leaves_the_file_of_pi_perplexity_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_pi_login(tmp_path, {"access": TOKEN})
    monkeypatch.setenv("PERPLEXITY_NO_BORROW", "1")
    assert find_web_login() is None
    monkeypatch.setenv("PERPLEXITY_NO_BORROW", "0")
    assert token_of(found()) == TOKEN


# --- secrecy ----------------------------------------------------------------------------------


def test_a_login_shows_nothing_of_itself() -> None:
    login = WebLogin(Secret(TOKEN), ((SESSION, Secret(TOKEN)), ("a", Secret("b" * 30))), EMAIL, "x")
    text = f"{login} {login!r} {login.auth()!r} {login.secrets()!r} {vars(login.auth())}"
    assert TOKEN not in text and "b" * 30 not in text
    assert isinstance(login.auth(), LoginAuth)
    for thing in (login, login.auth()):
        with pytest.raises((ConfigurationError, TypeError)):
            pickle.dumps(thing)


def test_what_must_be_hidden_is_the_session_and_no_everyday_word() -> None:
    cookies = (
        ("theme", Secret("dark")),
        (SESSION, Secret("short")),
        ("id", Secret("i" * 36)),
        ("e", Secret("")),
    )
    login = WebLogin(Secret("short"), cookies)
    assert {secret.reveal() for secret in login.secrets()} == {"short", "i" * 36}
    assert [s.reveal() for s in WebLogin(Secret(TOKEN)).secrets()] == [TOKEN]
    assert WebLogin(None).secrets() == ()


def test_a_request_that_fails_does_not_tell_the_login() -> None:
    login = WebLogin(Secret(TOKEN))
    send = sessions.sender(
        sessions.make_session(), "POST", "http://127.0.0.1:9/", json.loads("{}"),
        auth=login.auth(), headers={}, loopback=True, read_timeout=1,
    )  # fmt: skip
    with pytest.raises(requests.ConnectionError) as raised:
        send()
    assert TOKEN not in str(raised.value) and TOKEN not in repr(raised.value)
