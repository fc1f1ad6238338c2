"""A lesson: the teacher records it, students replay it, a visitor has the demo, with one notebook."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ipyperplexity import errors
from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.notebook.command_table import read_command
from ipyperplexity.store.tape_file import read_tape
from ipyperplexity.tapes import deck
from tests.notebook.conftest import KEY, Session
from tests.notebook.kernels import Kernel

LESSON = [
    "%%perplexity --limit 3 -o first\nWhat is a lambda?",
    "%%perplexity -c -o second\nAnd how is it sorted?",
    "pages = %perplexity -q -b search --limit 2 lambda",
    "things = ['lambda', 'yield']\ntable = %perplexity -q --each things --limit 2 What is {value}?",
]


@pytest.fixture(autouse=True)
def empty_deck() -> Iterator[None]:
    yield
    deck.stop_recording()
    deck.stop_replaying()


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return tmp_path / "lesson.tape"


def teach(session: Session) -> None:
    for cell in LESSON:
        session.good(cell)


def test_a_lesson_is_recorded_and_replayed_by_students_without_a_key(
    session: Session, server: EmulatorServer, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert session.good(f"%perplexity record {tape}").out.startswith("Recording on ")
    teach(session)
    told = [session["first"].text, session["second"].text, session["table"]["answer"]]
    assert "5 replies recorded on" in session.good("%perplexity record stop").out
    assert len(read_tape(tape)) == len(server.requests) == 5

    monkeypatch.delenv("PERPLEXITY_API_KEY")
    session.good("%perplexity cache --clear\n%reload_ext ipyperplexity")
    ran = session.good(f"%perplexity replay {tape} --speed 0 --strict")
    assert "5 replies of" in ran.out and "at once, strictly" in ran.out
    teach(session)
    assert [session["first"].text, session["second"].text, session["table"]["answer"]] == told
    assert len(server.requests) == 5, "nothing was asked"
    listed = session.good("%perplexity replay").out
    assert "What is a lambda?" in listed and "is being replayed" in listed
    status = session.good("%perplexity status")
    assert "none needed while lesson.tape is replayed" in status.out
    ran = session.run("%perplexity What is a lambada?")
    assert isinstance(ran.error, errors.NotOnTapeError) and "'What is a lambda?'" in ran.out
    assert "no longer replayed" in session.good("%perplexity replay stop").out
    assert isinstance(session.run("%perplexity Why?").error, errors.MissingCredentialError)


def test_without_strict_another_question_goes_to_the_demo_and_a_line_says_so(
    session: Session, server: EmulatorServer, tape: Path
) -> None:
    session.good(f"%perplexity record {tape}\n%perplexity -q Why?\n%perplexity record stop")
    session.good(f"%perplexity replay {tape} --speed=0")
    says = r"'What is a generator\?' is not on the tape lesson\.tape; .* The demo answers\."
    with pytest.warns(errors.PerplexityWarning, match=says):
        ran = session.good("%perplexity What is a generator?")
    assert "yield" in ran.result.text


@pytest.mark.parametrize("cell", [f"%perplexity {word}" for word in ("record", "replay", "record stop", "replay stop")])  # fmt: skip
def test_with_no_tape_running_the_commands_say_so(session: Session, cell: str) -> None:
    assert session.good(cell).out.startswith("Nothing is being re")


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("record a.tape", ("record", "a.tape")),
        ("record 'my lesson.tape'", ("record", "'my lesson.tape'")),
        ("replay ~/a.tape --speed 4 --strict", ("replay", "~/a.tape --speed 4 --strict")),
        ("record sales of 2025", None),
        ("replay the argument for lambda", None),
    ],
)
def test_a_line_is_a_command_only_with_a_tape(line: str, command: tuple[str, str] | None) -> None:
    assert read_command(line) == command


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("replay nowhere.tape", "cannot be read: No such file"),
        ("replay lesson.tape --speed soon", "speed: got 'soon'"),
        ("record /nowhere/a.tape", "cannot be written: No such file"),
    ],
)
def test_what_cannot_be_recorded_or_replayed_is_a_sentence(
    session: Session, line: str, says: str
) -> None:
    ran = session.run(f"%perplexity {line}")
    assert isinstance(ran.error, errors.PerplexityError) and says in ran.out
    assert "Traceback" not in ran.out and len(ran.out.splitlines()) <= 3


def test_a_setting_replays_and_ends_it(
    session: Session, server: EmulatorServer, tape: Path
) -> None:
    session.good(f"%perplexity record {tape}\n%perplexity -q Why?\n%perplexity record stop")
    session.good(f"%config PerplexityMagics.replay = {str(tape)!r}")
    assert session.good("%perplexity -q Why?").result.cached
    session.good("%config PerplexityMagics.replay = ''")
    assert not session.good("%perplexity -q Why?").result.cached
    session.run("%config PerplexityMagics.replay = 'nowhere.tape'")
    assert deck.replaying() is None


def test_the_environment_makes_a_kernel_replay_with_not_a_line_changed(
    kernel: Kernel, server: EmulatorServer, tape: Path
) -> None:
    kernel.run(f"import os; os.environ['IPYPERPLEXITY_RECORD'] = {str(tape)!r}")
    lesson = "%%perplexity -o answer\nWhat is a lambda?"
    kernel.run(lesson)
    told = kernel.value("answer.text")
    kernel.run("%perplexity record stop\ndel os.environ['IPYPERPLEXITY_RECORD']")
    kernel.run(f"os.environ['IPYPERPLEXITY_REPLAY'] = {str(tape)!r}")
    kernel.run("del os.environ['PERPLEXITY_API_KEY']")
    n_asked = len(server.requests)
    cell = kernel.run(lesson)
    assert cell.reply["status"] == "ok" and kernel.value("answer.text") == told
    assert kernel.value("answer.cached") is True and len(server.requests) == n_asked
    kernel.run("%perplexity replay stop\ndel os.environ['IPYPERPLEXITY_REPLAY']")
    assert KEY not in tape.read_text("utf-8")
