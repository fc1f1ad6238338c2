"""Files of ours that are not as they should be: each is a sentence, whatever is asked of it."""

from __future__ import annotations

import os
import re
import socket
import stat
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ipyperplexity.auth.key_store import key_file, save_key
from ipyperplexity.auth.login_record import WebLogin
from ipyperplexity.auth.token_store import login_file, save_login
from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.errors import PerplexityError, PerplexityWarning
from ipyperplexity.net.redact import Secret
from ipyperplexity.store import job_store, ledger
from ipyperplexity.store.folders import state_dir
from ipyperplexity.store.ledger_entry import LedgerEntry
from ipyperplexity.stored_settings import save_setting, settings_path
from tests.auth.signing_in import TOKEN
from tests.notebook.conftest import KEY, Session

COMMANDS = (
    "status",
    "config --show",
    "config recency",
    "usage",
    "usage --all",
    "jobs",
    "models",
    "-q What is a lambda?",
    "-q -b search lambda",
    "-q --background What is a tuple?",
    "-q -b web What is a lambda?",
    "logout",
)


def _put_ledger() -> None:
    book = ledger.Ledger()
    book.record(LedgerEntry("ask", question="Asked before", cost_usd=0.5))
    book.close()


def _put_job() -> None:
    store = job_store.JobStore(state_dir() / job_store.FILE_NAME)
    store.put(job_store.JobRecord("resp_1", "agent", "https://a.example", "Left before"))
    store.close()


#: What is in a file: where it is, and how it comes to be there.
FILES: dict[str, tuple[Callable[[], Path], Callable[[], Any]]] = {
    "key": (key_file, lambda: save_key(Secret(KEY))),
    "login": (login_file, lambda: save_login(WebLogin(Secret(TOKEN)))),
    "config": (settings_path, lambda: save_setting("recency", "month")),
    "ledger": (lambda: state_dir() / ledger.NAME, _put_ledger),
    "jobs": (lambda: state_dir() / job_store.FILE_NAME, _put_job),
}


def _write(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "corrupt": _write(b'{"key": ["' + KEY.encode() + b"\n" + TOKEN.encode()),
    "no text": _write(b"\xff\xfe\x00rubbish" * 50),
    "empty": _write(b""),
    "a folder": _folder,
    "unreadable": lambda path: path.chmod(0),
    "open to others": lambda path: path.chmod(0o644),
}
#: What is said of it, by a warning, an error or the status.
_BAD = r"is damaged|is no JSON|could not be used \(file is not a database\)"
_CANNOT = r"cannot be (read|used): (Is a directory|Permission denied)"
SAID = {
    "corrupt": _BAD,
    "no text": _BAD,
    "empty": "is damaged",
    "a folder": _CANNOT,
    "unreadable": _CANNOT,
    "open to others": "could be read by others",
}
#: Files that are no secret are made private without a word, and an empty one is a new one.
QUIET = {
    (file, kind) for file in ("config", "ledger", "jobs") for kind in ("empty", "open to others")
}


def cannot_happen(damage: str) -> bool:
    if damage == "unreadable":
        return sys.platform == "win32" or not hasattr(os, "geteuid") or os.geteuid() == 0
    return damage == "open to others" and sys.platform == "win32"


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", FILES)
def test_a_file_that_is_not_as_it_should_be_is_a_sentence_and_no_secret(
    session: Session,
    server: EmulatorServer,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    damage: str,
) -> None:
    if cannot_happen(damage):
        pytest.skip("not on this system, or not for this user")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    # Nothing of this leaves the machine, whatever it makes of the login.
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("PERPLEXITY_NO_BORROW", "1")
    monkeypatch.delenv("PERPLEXITY_API_KEY")
    if file in ("config", "ledger", "jobs"):
        save_key(Secret(KEY))
    path, put = FILES[file]
    put()
    DAMAGES[damage](path())
    said = ""
    for command in COMMANDS:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ran = session.run(f"%perplexity {command}")
        assert ran.error is None or isinstance(ran.error, PerplexityError), ran.out
        assert "PerplexityError:" not in ran.out, "a defect of ours"
        assert "Traceback" not in ran.out and len(ran.out.splitlines()) < 60, ran.out
        given = [str(w.message) for w in caught if issubclass(w.category, PerplexityWarning)]
        assert len(given) <= 1, given
        said += ran.out + "\n".join(given)
        if damage == "open to others" and command == "-q -b web What is a lambda?":
            assert stat.S_IMODE(path().stat().st_mode) == 0o600
    assert KEY not in said and TOKEN not in said
    if (file, damage) in QUIET:
        assert not any(re.search(sentence, said) for sentence in SAID.values())
    else:
        assert re.search(SAID[damage], said), said


def test_what_was_set_aside_is_still_there(session: Session, server: EmulatorServer) -> None:
    for path, put in FILES.values():
        put()
        path().write_bytes(b"\xff" * 5000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for command in ("status", "usage", "jobs"):
            session.good(f"%perplexity {command}")
    for path, _ in FILES.values():
        if path() != key_file():  # the variable comes first, and the file is not looked at
            assert path().with_name(f"{path().name}.broken-1").read_bytes() == b"\xff" * 5000


def test_a_session_goes_on_after_a_damaged_file(session: Session, server: EmulatorServer) -> None:
    for name in ("ledger", "jobs", "config"):
        path, put = FILES[name]
        put()
        path().write_bytes(b"rubbish" * 999)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.good("%perplexity -q What is a lambda?")
        session.good("job = %perplexity --background What is a tuple?")
        session.good("job.wait()\n%perplexity config limit=3")
    assert session.good("%perplexity usage").result["kind"] == ["ask", "job"]
    assert session.good("%perplexity jobs").result["status"] == ["completed"]
    assert "limit: 3 (file)" in session.good("%perplexity config limit").out
