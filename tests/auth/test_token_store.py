"""The stored login: private from its first byte, whole at every moment, shared by all kernels."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipyperplexity.auth.cookies import as_header
from ipyperplexity.auth.login_record import WebLogin
from ipyperplexity.auth.token_store import delete_login, load_login, login_file, save_login
from ipyperplexity.auth.web_login import keep_rotated
from ipyperplexity.errors import ConfigurationError, PerplexityWarning
from ipyperplexity.net.redact import Secret
from tests.auth.signing_in import EMAIL, NEW, SESSION, TOKEN, shown

posix = pytest.mark.skipif(sys.platform == "win32", reason="file modes")
COOKIES = (("theme", Secret("dark")), (SESSION, Secret(TOKEN)), ("pplx_jwt", Secret("second")))


def login(**changes: Any) -> WebLogin:
    return WebLogin(**{"token": Secret(TOKEN), "email": EMAIL, "origin": "a test", **changes})


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def stored() -> WebLogin:
    found = load_login()
    assert found is not None
    return found


@pytest.mark.parametrize("cookies", [(), COOKIES], ids=["token", "cookies"])
def test_a_login_is_found_as_it_was_stored(cookies: Any) -> None:
    assert load_login() is None
    kept = save_login(login(cookies=cookies))
    for found in (kept, stored()):
        assert found.token is not None and found.token.reveal() == TOKEN
        assert as_header(found.cookies) == as_header(cookies)
        assert (found.email, found.origin) == (EMAIL, "the stored login: a test")
        assert found.stored_as == kept.stored_as != ""
    assert login_file().read_text().endswith("}\n") and "\n  " in login_file().read_text()


@posix
def test_an_existing_file_that_all_can_read_is_private_after_a_login(home: Path) -> None:
    home.mkdir(parents=True)
    login_file().write_text("{}")
    login_file().chmod(0o644)
    save_login(login())
    assert mode(login_file()) == 0o600


@posix
def test_the_file_is_private_from_its_first_byte(home: Path) -> None:
    """Under a umask that hides nothing, look at the folder before each line that Python runs."""
    seen: set[tuple[str, int]] = set()

    def look(frame: Any, event: str, argument: Any) -> Any:
        if event == "line":
            for folder in (home.parent, home):
                if os.path.isdir(folder):  # noqa: PTH112 - pathlib would be traced into
                    for name in os.listdir(folder):  # noqa: PTH208
                        path = os.path.join(folder, name)  # noqa: PTH118
                        seen.add((name.split(".")[-1], stat.S_IMODE(os.lstat(path).st_mode)))
        return look

    before = os.umask(0)
    sys.settrace(look)
    try:
        save_login(login())
        keep_rotated(stored(), [f"{SESSION}={NEW}"])
    finally:
        sys.settrace(None)
        os.umask(before)
    kinds = {kind for kind, _ in seen}
    assert {"new", "json", "config"} <= kinds, f"the temporary file was not seen: {seen}"
    assert {m for kind, m in seen if kind == "config"} == {0o700}
    assert {m for kind, m in seen if kind in ("new", "json")} == {0o600}


@posix
def test_a_file_that_others_can_read_is_made_private_and_used() -> None:
    save_login(login())
    login_file().chmod(0o640)
    with pytest.warns(PerplexityWarning, match="could be read by others") as caught:
        assert stored().email == EMAIL
    assert mode(login_file()) == 0o600 and TOKEN not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stored()


DAMAGED = ["", " ", "{", '{"token": "' + TOKEN, "[]", "null", "{}", '{"token": 5}', '{"token": ""}', '{"token": "a;b"}', '{"token": "a\\nb"}', '{"cookies": "x"}', '{"cookies": [{"name": "a", "value": "b"}]}', '{"cookies": [5, {}, {"name": 1, "value": 2}]}', "[" * 100_000, b"\xff\xfe\x00", b"\x00" * 100]  # fmt: skip


@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_file_is_set_aside_with_a_warning(text: str | bytes, home: Path) -> None:
    home.mkdir(parents=True)
    login_file().write_bytes(text if isinstance(text, bytes) else text.encode())
    login_file().chmod(0o600)
    with pytest.warns(PerplexityWarning, match=r"damaged.*broken-1.*login --web") as caught:
        assert load_login() is None
    assert TOKEN not in str(caught[0].message)
    assert (home / "web-login.json.broken-1").exists() and not login_file().exists()
    save_login(login())
    assert stored().email == EMAIL
    assert delete_login()
    assert [path.name for path in home.iterdir()] in ([], [".web-login.json.lock"])
    assert not delete_login()


def test_a_file_that_cannot_be_read_is_a_sentence(home: Path) -> None:
    login_file().mkdir(parents=True)
    with pytest.raises(ConfigurationError, match=r"web-login\.json cannot be read") as raised:
        load_login()
    assert "login --web" in str(raised.value)


def test_a_login_that_cannot_be_written_is_not_in_the_error(home: Path) -> None:
    login_file().mkdir(parents=True)
    with pytest.raises(ConfigurationError, match="cannot be written") as raised:
        save_login(login(cookies=COOKIES))
    assert TOKEN not in shown(raised.value)
    assert not [path for path in home.rglob("*") if path.is_file() and TOKEN in path.read_text()]


def test_a_hand_written_file_is_read() -> None:
    login_file().parent.mkdir(parents=True)
    login_file().write_text(json.dumps({"cookies": [{"name": SESSION, "value": TOKEN}]}))
    login_file().chmod(0o600)
    found = stored()
    assert found.token is not None and found.token.reveal() == TOKEN
    keep_rotated(found, [f"{SESSION}={NEW}"])
    assert as_header(stored().cookies) == f"{SESSION}={NEW}"


# --- the session is renewed -------------------------------------------------------------------


def test_a_renewed_session_is_kept_beside_the_other_cookies() -> None:
    kept = save_login(login(cookies=COOKIES))
    lines = [f"{SESSION}={NEW}; Path=/; Secure; HttpOnly", "theme=light", "__cf_bm=x"]
    newer = keep_rotated(kept, lines)
    found = stored()
    for result in (newer, found):
        assert result.token is not None and result.token.reveal() == NEW
        assert as_header(result.cookies) == f"theme=dark; {SESSION}={NEW}; pplx_jwt=second"
        assert (result.email, result.stored_as) == (EMAIL, kept.stored_as)
        assert result.origin == "the stored login: a test"
    if sys.platform != "win32":
        assert mode(login_file()) == 0o600


def test_a_login_by_token_keeps_a_renewed_token_also_in_parts() -> None:
    kept = save_login(login())
    keep_rotated(kept, [f"{SESSION}.0={NEW[:50]}", f"{SESSION}.1={NEW[50:]}"])
    found = stored()
    assert found.token is not None and found.token.reveal() == NEW and not found.cookies


@pytest.mark.parametrize(
    "lines", [[], ["__cf_bm=1"], [f"{SESSION}=; Max-Age=0"], [f"{SESSION}={TOKEN}"]]
)
def test_nothing_is_written_when_the_session_is_the_same_or_is_taken_away(lines: list[str]) -> None:
    kept = save_login(login(cookies=COOKIES))
    before = login_file().stat()
    assert keep_rotated(kept, lines) is kept
    assert login_file().stat().st_ino == before.st_ino
    assert login_file().stat().st_mtime_ns == before.st_mtime_ns


def test_a_login_from_elsewhere_is_renewed_in_memory_only() -> None:
    save_login(login())
    before = login_file().read_bytes()
    newer = keep_rotated(login(origin="PERPLEXITY_SESSION_TOKEN"), [f"{SESSION}={NEW}"])
    assert newer.token is not None and newer.token.reveal() == NEW
    assert login_file().read_bytes() == before


def test_logging_out_or_in_anew_meanwhile_is_respected() -> None:
    kept = save_login(login())
    delete_login()
    keep_rotated(kept, [f"{SESSION}={NEW}"])
    assert load_login() is None
    other = save_login(login(token=Secret("of-another-account"), email="bob@example.org"))
    keep_rotated(kept, [f"{SESSION}={NEW}"])
    found = stored()
    assert found.stored_as == other.stored_as
    assert found.token is not None and found.token.reveal() == "of-another-account"


def test_a_renewed_session_that_cannot_be_stored_is_a_warning(home: Path) -> None:
    kept = save_login(login())
    login_file().unlink()
    login_file().mkdir()
    with pytest.warns(PerplexityWarning, match="could not be stored") as caught:
        newer = keep_rotated(kept, [f"{SESSION}={NEW}"])
    assert newer.token is not None and newer.token.reveal() == NEW
    assert NEW not in str(caught[0].message)


ROUNDS = 60


def _renew(name: str, start: Any, lost: Any) -> None:
    """In a process of its own: renew one of the cookies, again and again."""
    mine = stored()
    start.wait(30)
    for number in range(1, ROUNDS + 1):
        keep_rotated(mine, [f"{name}={name}-{number}"])
        found = {cookie: value.reveal() for cookie, value in stored().cookies}
        if found[name] != f"{name}-{number}" or found["theme"] != "dark":
            lost.put((name, number, found[name]))


def test_two_processes_that_write_at_once_lose_nothing() -> None:
    save_login(login(cookies=COOKIES))
    context = multiprocessing.get_context("spawn")
    start, lost = context.Barrier(2), context.Queue()
    names = (SESSION, "pplx_jwt")
    processes = [context.Process(target=_renew, args=(name, start, lost)) for name in names]
    for process in processes:
        process.start()
    for process in processes:
        process.join(100)
        assert process.exitcode == 0
    assert lost.empty(), lost.get()
    found = {name: value.reveal() for name, value in stored().cookies}
    assert found == {"theme": "dark", **{name: f"{name}-{ROUNDS}" for name in names}}


def test_a_reader_never_meets_half_a_file() -> None:
    kept = save_login(login(cookies=COOKIES))
    over = threading.Event()
    failures: list[BaseException] = []

    def read() -> None:
        try:
            while not over.is_set():
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    assert stored().email == EMAIL
        except BaseException as failure:
            failures.append(failure)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(50):
        keep_rotated(kept, [f"{SESSION}=token-{number}"])
    over.set()
    reader.join()
    assert not failures


@pytest.fixture(autouse=True)
def _no_traces_left() -> Iterator[None]:
    yield
    assert sys.gettrace() is None or "look" not in repr(sys.gettrace())
