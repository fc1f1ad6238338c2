"""After a whole life of a login no secret is anywhere but in the store."""

from __future__ import annotations

import gc
import io
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipyperplexity import errors
from ipyperplexity.auth.key_store import key_file
from ipyperplexity.auth.login import Prompts, credential_report, login_key, login_web, logout
from ipyperplexity.auth.token_store import login_file
from ipyperplexity.auth.web_login import keep_rotated, require_web_login
from ipyperplexity.auth.web_session import fetch_account
from ipyperplexity.net import sessions
from tests.auth.signing_in import (
    CODE,
    CSRF,
    EMAIL,
    KEY,
    NEW,
    SESSION,
    TOKEN,
    SignIn,
    answering,
    inside,
    reply,
    shown,
    typed,
)
from tests.support.raw_server import RawServer

SECRETS = (TOKEN, NEW, CSRF, CODE, KEY)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)


def told(text: str) -> list[str]:
    return [secret[:12] for secret in SECRETS if secret in text]


def test_a_whole_life_of_a_login_tells_nothing(
    log: io.StringIO, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    pages = SignIn(session=reply(200, {"user": {"id": "u1"}}, f"{SESSION}={NEW}; Path=/"))
    with warnings.catch_warnings(record=True) as caught, RawServer(pages) as server:
        warnings.simplefilter("always")
        said.append(login_key(typed(KEY)))
        prompts = Prompts(answering(EMAIL), typed(CODE), typed(""))
        said.append(inside(login_web(prompts, base_url=server.url)))
        login = require_web_login()
        said.append(inside(fetch_account(login, base_url=server.url)))
        # A question: what it needs of a login are these three.
        session = sessions.make_session()
        send = sessions.sender(
            session, "GET", f"{server.url}/api/auth/session", None,
            auth=login.auth(), headers={}, loopback=True, read_timeout=5,
        )  # fmt: skip
        lines = send().raw.headers.getlist("set-cookie")
        said += [inside(keep_rotated(login, lines)), repr(login.secrets()), repr(session.cookies)]
        assert f"{SESSION}={TOKEN}" in server.requests[-1].headers["Cookie"]
        login_file().chmod(0o644)
        said += [repr(credential_report()), inside(require_web_login())]
        pages.session = reply(401, {"error": f"bad {NEW}"})
        for _ in range(2):
            with pytest.raises(errors.AuthenticationError) as raised:
                fetch_account(require_web_login(), base_url=server.url)
            said += [shown(raised.value), *raised.value._render_traceback_()]
    said += [str(warning.message) for warning in caught] + [log.getvalue(), *capfd.readouterr()]
    assert caught and log.getvalue()
    assert told("\n".join(said)) == []
    files = {path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert told(files.pop(login_file())) == [NEW[:12]]
    assert told(files.pop(key_file())) == [KEY[:12]]
    assert told("\n".join(files.values())) == []
    said = logout()
    assert told("\n".join(said)) == []
    left = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert told("\n".join(left)) == []


def test_no_error_keeps_what_was_parsed_alive(home: Path) -> None:
    """A decoder's own error holds the whole text; it must not hang on ours or on a warning."""
    home.mkdir(parents=True)
    login_file().write_text(f'{{"token": "{TOKEN}"')
    login_file().chmod(0o600)
    with pytest.warns(errors.PerplexityWarning) as caught:
        assert credential_report()["web login"] == "none"
    gc.collect()
    held = [thing for thing in gc.get_objects() if isinstance(thing, ValueError)]
    assert not [error for error in held if TOKEN in str(vars(error))]
    assert told(str(caught[0].message)) == []
