"""Where an answer is to be found after its cell, and that it is shown exactly once."""

from __future__ import annotations

import contextlib

import pytest

from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.emulator.faults import FAULTS, Behavior
from ipyperplexity.errors import PerplexityError
from tests.notebook.conftest import Ran, Session

#: A line that every display of an answer has once: its status line.
STATUS = " tokens · "


def times_shown(ran: Ran) -> int:
    return ran.out.count(STATUS)


def test_the_answer_is_the_value_of_its_cell_in_all_the_places_where_ipython_keeps_it(
    session: Session,
) -> None:
    session.good("%%perplexity -o kept\nWhat is a lambda?")
    kept = session["kept"]
    assert kept.question == "What is a lambda?"
    assert session["_"] is kept and session["Out"][2] is kept
    assert session.good("%perplexity last").result is kept


def test_the_last_answer_is_at_hand_without_a_name(session: Session) -> None:
    assert "There is no answer yet" in session.good("%perplexity last").out
    session.good("%perplexity What is a lambda?")
    session.good("1 + 1")
    assert session.good("%perplexity last").result.question == "What is a lambda?"


@pytest.mark.parametrize(
    "cell",
    [
        "%%perplexity\nWhat is a lambda?",
        "%perplexity What is a lambda?",
        "a = %perplexity What is a lambda?",
        "a = %perplexity What is a lambda?\na",
        "%%perplexity -o a\nWhat is a lambda?",
        "%perplexity --no-stream What is a lambda?",
        "%perplexity --raw What is a lambda?",
        "for _i in range(1):\n    %perplexity What is a lambda?",
    ],
)
def test_an_answer_is_shown_once_by_the_cell_that_asked(session: Session, cell: str) -> None:
    ran = session.good(cell)
    assert times_shown(ran) == 1, ran.out
    assert "Out[" not in ran.out, "there is no prompt without a value after it"


def test_a_loop_shows_each_of_its_answers_once(session: Session) -> None:
    ran = session.good(
        "for topic in ('lambda', 'tuple', 'set'):\n    a = %perplexity What is a {{topic}}?\na"
    )
    assert times_shown(ran) == 3, ran.out


def test_an_answer_shows_itself_in_later_cells(session: Session) -> None:
    session.good("a = %perplexity What is a lambda?")
    for cell in ("a", "_", "a"):
        ran = session.good(cell)
        assert times_shown(ran) == 1 and "Out[" in ran.out, ran.out
    session.good("b = %perplexity What is a tuple?")
    assert times_shown(session.good("a")) == 1


def test_an_earlier_answer_shows_itself_in_a_cell_that_asks_for_another(session: Session) -> None:
    session.good("a = %perplexity What is a lambda?")
    ran = session.good("b = %perplexity What is a tuple?\na")
    assert times_shown(ran) == 2 and "Out[" in ran.out, ran.out


def test_display_shows_an_answer_again_on_purpose(session: Session) -> None:
    ran = session.good("a = %perplexity What is a lambda?\ndisplay(a)\na")
    assert times_shown(ran) == 2


def test_other_values_show_themselves_in_a_cell_that_asks(session: Session) -> None:
    ran = session.good("a = %perplexity What is a lambda?\n6 * 7")
    assert ran.out.rstrip().endswith(": 42") and "Out[" in ran.out, ran.out


def test_an_answer_that_was_asked_between_two_cells_shows_itself_in_the_next(
    session: Session,
) -> None:
    answer = session.shell.run_line_magic("perplexity", "-q What is a lambda?")
    session.shell.user_ns["a"] = answer
    assert times_shown(session.good("a")) == 1


def test_quiet_shows_nothing_and_keeps_the_answer(session: Session) -> None:
    for cell in (
        "%%perplexity -q -o a\nWhat is a lambda? --recency day",
        "%perplexity --quiet -m sonar What is a lambda?",
        "a = %perplexity -q What is a lambda?",
    ):
        assert session.good(cell).out == ""
    assert session["a"].text and times_shown(session.good("a")) == 1


def test_what_is_remarkable_is_said_in_one_line_and_kept(session: Session) -> None:
    ran = session.good("%perplexity -m sonar-pro What is a lambda? --recency day")
    assert ran.out.count("sonar-pro was retired on 2026-09-27; asked with its successor") == 1
    assert ran.out.count("--recency was sent as part of the question") == 1
    assert len(session["_"].warnings) == 2


def test_no_option_of_showing_changes_what_is_asked_or_kept(session: Session) -> None:
    texts = {
        session.good(f"%perplexity {options} What is a lambda?").result.text
        for options in ("", "-q", "--raw", "--no-stream")
    }
    assert len(texts) == 1


def test_no_character_that_a_terminal_obeys_comes_from_an_answer(
    session: Session, server: EmulatorServer
) -> None:
    evil = (
        "\x1b[2J\x1b]0;owned\x07\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\ \x9b31m\r\x08"
    )
    for chunk in (1, 3, 1000):
        server.next(Behavior(extra_text=f"Before {evil} after", chunk_chars=chunk))
        out = session.good("%perplexity What is a lambda?").out
        assert not [c for c in out if c < " " and c not in "\n\t"] and "\x9b" not in out
        assert "Before link" in out and "after" in out and "owned" not in out
    assert "\x1b" in session["_"].text, "the answer itself keeps what came"


BREAKS = {
    "cut": Behavior(cut_after=30, chunk_chars=3),
    "reset": Behavior(cut_after=30, chunk_chars=3, cut="reset"),
    "failed": FAULTS["failed"],
    "no-terminal": FAULTS["no-terminal"],
}


@pytest.mark.parametrize("name", BREAKS)
@pytest.mark.parametrize("cell", ["%%perplexity -o a\n{}", "%perplexity -o a {}"])
def test_what_came_before_a_failure_is_shown_and_kept(
    session: Session, server: EmulatorServer, name: str, cell: str
) -> None:
    server.next(BREAKS[name])
    ran = session.run(cell.format("What is a lambda?"))
    kept = session["a"]
    assert ran.error is kept.error and ran.error.answer is kept
    assert kept.status == "failed" and kept.text and kept.text in ran.out
    assert session.good("%perplexity last").result is kept


def test_a_failure_before_anything_came_shows_only_the_error(
    session: Session, server: EmulatorServer
) -> None:
    server.next(FAULTS["no-credit"])
    ran = session.run("%perplexity -o a What is a lambda?")
    assert session["a"].error is ran.error and session["a"].text == ""
    assert ran.out.strip().startswith("QuotaError: "), ran.out


def test_a_display_that_fails_does_not_lose_the_answer(
    session: Session,
) -> None:
    class Broken:
        def write(self, text: str) -> None:
            raise BrokenPipeError("nobody reads this")

        flush = isatty = fileno = lambda self: None

    # Told in our words: the frames of a foreign error would hold the notebook's variables.
    told = pytest.raises(PerplexityError, match="nobody reads this")
    with contextlib.redirect_stdout(Broken()), told:  # type: ignore[type-var]
        session.shell.run_line_magic("perplexity", "-o a What is a lambda?")
    assert session["a"].question == "What is a lambda?"
