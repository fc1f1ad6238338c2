"""What a failure looks like: a few lines, no frames, and never the key."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from typing import Any

import pytest

from ipyperplexity import errors
from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.emulator.faults import Behavior
from ipyperplexity.notebook import commands
from tests.notebook.conftest import KEY, Ran, Session

MODES = ("Plain", "Context", "Verbose", "Minimal")
QUESTION = "%perplexity -o a What is a lambda?"


def _echo(status: int) -> Behavior:
    """Return a reply that gives the key back, as careless services do."""
    message = f"Key {KEY} (Authorization: Bearer {KEY}) may not do this."
    headers = {"x-request-id": "req-1", "X-Echo": KEY}
    return Behavior(status=status, headers=headers, body={"error": {"message": message}})


def _closed_port(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    monkeypatch.setenv("PERPLEXITY_BASE_URL", f"http://127.0.0.1:{port}")


def _wrong_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERPLEXITY_API_KEY", KEY + " " + KEY)


def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERPLEXITY_API_KEY")


Arrange = Callable[[pytest.MonkeyPatch], None] | Behavior | None
#: Kind of failure -> what brings it about, the cell, the error.
FAILURES: dict[str, tuple[Arrange, str, type[BaseException]]] = {
    "401 with the key in it": (_echo(401), QUESTION, errors.AuthenticationError),
    "403": (_echo(403), QUESTION, errors.AuthenticationError),
    "402": (Behavior(status=402), QUESTION, errors.QuotaError),
    "429": (_echo(429), QUESTION, errors.RateLimitError),
    "500": (_echo(500), QUESTION, errors.ServerError),
    "a page": (
        Behavior(body=f"<html>{KEY}</html>", headers={"Content-Type": "text/html"}),
        QUESTION,
        errors.StreamError,
    ),
    "cut stream": (Behavior(cut_after=30, chunk_chars=3), QUESTION, errors.StreamError),
    "failed run": (Behavior(terminal="failed-event"), QUESTION, errors.PerplexityError),
    "timeout": (
        Behavior(stall_after=5),
        QUESTION.replace("-o a", "-o a --timeout 0.2"),
        errors.RequestTimeout,
    ),
    "refused connection": (_closed_port, QUESTION, errors.NetworkError),
    "no key": (_no_key, QUESTION, errors.MissingCredentialError),
    "a key with a blank": (_wrong_key, QUESTION, errors.ConfigurationError),
    "unknown option": (None, "%perplexity --recencyy day Why?", errors.InvalidRequestError),
    "bad value": (None, "%perplexity --recency fortnight Why?", errors.InvalidRequestError),
    "bad model": (None, "%perplexity -m gpt5 Why?", errors.InvalidRequestError),
    "unknown variable": (None, "%perplexity Why {{nothing}}?", errors.InvalidRequestError),
    "unknown schema": (None, "%perplexity --schema Nothing Why?", errors.InvalidRequestError),
    "bad schema": (None, "x = 5\n%perplexity --schema x Why?", errors.InvalidRequestError),
}
_FRAME = re.compile(r"^\s*(File |-+>|Input In|Cell In|\S+\.py)|Traceback", re.MULTILINE)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_is_a_few_lines_in_every_traceback_mode(
    session: Session,
    server: EmulatorServer,
    monkeypatch: pytest.MonkeyPatch,
    failure: str,
    mode: str,
) -> None:
    arrange, cell, expected = FAILURES[failure]
    session.good(f"%xmode {mode}")
    if isinstance(arrange, Behavior):
        server.next(arrange)
    elif arrange is not None:
        arrange(monkeypatch)
    ran = session.run(cell)
    assert isinstance(ran.error, expected), ran.out
    lines = error_lines(ran)
    assert lines[0].startswith(f"{type(ran.error).__name__}: ")
    assert len(lines) <= 4 and not _FRAME.search("\n".join(lines)), ran.out
    assert ran.error.__cause__ is None and ran.error.__context__ is None
    session.run("%tb")
    if "a" in session.shell.user_ns:
        session.run("print(a.error, repr(a), a.raw, a.options, vars(a.error))\na")
    assert KEY not in session.printed


def error_lines(ran: Ran) -> list[str]:
    """Return the lines from the error's name on."""
    lines = ran.out.strip().splitlines()
    name = type(ran.error).__name__
    first = next(n for n, line in enumerate(lines) if line.startswith(f"{name}: "))
    return lines[first:]


@pytest.mark.parametrize("mode", MODES)
def test_an_error_of_the_users_own_that_follows_ours_does_not_show_the_key(
    session: Session, server: EmulatorServer, mode: str
) -> None:
    session.good(f"%xmode {mode}")
    server.next(_echo(401))
    ran = session.run(
        "def go():\n"
        "    try:\n"
        "        answer = %perplexity What is a lambda?\n"
        "    except Exception as error:\n"
        "        raise ValueError('it did not work') from error\n"
        "go()"
    )
    assert isinstance(ran.error, ValueError) and "it did not work" in ran.out
    assert KEY not in session.printed


def test_the_error_says_what_to_do_and_where_the_text_is(
    session: Session, server: EmulatorServer
) -> None:
    server.next(Behavior(cut_after=30, chunk_chars=3))
    out = session.run(QUESTION).out
    assert "characters that had arrived are kept: %perplexity last" in out
    server.next(Behavior(status=401))
    assert "PERPLEXITY_API_KEY" in session.run(QUESTION).out


def test_a_failure_can_be_caught_like_any_other(session: Session, server: EmulatorServer) -> None:
    server.next(Behavior(status=429))
    session.good(
        "import ipyperplexity\n"
        "try:\n"
        "    answer = %perplexity What is a lambda?\n"
        "except ipyperplexity.errors.RateLimitError as error:\n"
        "    caught = error.code\n"
    )
    assert session["caught"] == "RATE_LIMIT"


def test_an_answer_that_the_service_cut_is_an_answer_with_a_remark(
    session: Session, server: EmulatorServer
) -> None:
    server.next(Behavior(terminal="incomplete"))
    ran = session.good(QUESTION)
    assert session["a"].status == "incomplete" and session["a"].warnings
    assert "cut short" in ran.out


def test_a_retry_is_announced_and_its_answer_shown(
    session: Session, server: EmulatorServer
) -> None:
    session.good("%config PerplexityMagics.max_retries = 1")
    server.next(Behavior(status=503, headers={"Retry-After": "0.01"}))
    ran = session.good(QUESTION)
    assert "Retrying in 0." in ran.out and session["a"].status == "completed"
    assert len(server.requests) == 2


def test_the_key_is_not_to_be_found_in_what_the_magics_show_of_themselves(
    session: Session, server: EmulatorServer
) -> None:
    session.good(QUESTION)
    session.good("%perplexity status")
    session.good("%config PerplexityMagics")
    magics: Any = session.shell.magics_manager.registry["PerplexityMagics"]
    session.good("print(a.raw, a.options)")
    seen = session.printed + repr(magics) + repr(magics._clients) + repr(vars(magics))
    assert KEY not in seen


class Broken:
    """A variable whose attributes and text fail, as a user's own code may."""

    @property
    def x(self) -> str:
        raise ValueError("no x today")

    def __str__(self) -> str:
        raise ValueError("no text today")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("cell", ["{{bad.x}}", "{{bad}}", "--schema bad.x hello"])
def test_a_variable_that_fails_shows_neither_frames_nor_the_cells_before(
    session: Session, server: EmulatorServer, mode: str, cell: str
) -> None:
    session.good(f"import os; os.environ['PERPLEXITY_API_KEY'] = '{KEY}'")
    session.shell.user_ns["bad"] = Broken()
    session.good(f"%xmode {mode}")
    ran = session.run(f"%perplexity {cell}")
    assert isinstance(ran.error, errors.InvalidRequestError)
    assert "today" in ran.out and "local_ns" not in ran.out and KEY not in ran.out
    assert len(ran.out.splitlines()) < 8
    assert not server.requests


@pytest.mark.parametrize("mode", MODES)
def test_a_defect_of_ours_is_told_without_frames(
    session: Session, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.good(f"secret = '{KEY}'")
    session.good(f"%xmode {mode}")
    monkeypatch.setitem(commands._RUN, "last", lambda magics, arguments: 1 / 0)
    ran = session.run("%perplexity last")
    assert "ZeroDivisionError" in ran.out and "report it" in ran.out
    assert KEY not in ran.out and "local_ns" not in ran.out
