"""Where an answer is to be found after its cell, and how it is shown while it is written."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest

from ipyperplexity import Answer, Client
from ipyperplexity.answer_stream import AnswerStream
from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.emulator.faults import FAULTS, Behavior
from ipyperplexity.errors import PerplexityError
from ipyperplexity.notebook.live import Display, KernelDisplay, TerminalDisplay
from tests.net.asking import completed, delta, item_done, message, results
from tests.notebook.conftest import KEY, Ran, Session
from tests.support.raw_server import (
    Close,
    RawServer,
    Step,
    http_response,
    in_turn,
    sse_frames,
    sse_response,
)

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


# --- while it is written --------------------------------------------------------------------------

PAGE = {"id": 1, "url": "https://a.example/one", "title": "One"}
OTHER = {"id": 1, "url": "https://b.example/two", "title": "Two"}


class Frames:
    """Takes what a kernel would send: each state of the output."""

    def __init__(self) -> None:
        self.all: list[dict[str, str]] = []

    def publish(self, data: dict[str, str], metadata: Any = None, **options: Any) -> None:
        self.all.append(dict(data))

    @property
    def pages(self) -> list[str]:
        """What a reader would see of each, tags and style taken away."""
        return [visible(frame["text/html"]) for frame in self.all]


def visible(html: str) -> str:
    return unescape(re.sub(r"<style>.*?</style>|<[^>]*>", "", html, flags=re.DOTALL))


class Screen(io.StringIO):
    """A terminal of the width that ``COLUMNS`` says."""

    def isatty(self) -> bool:
        return True


def show_live(
    make: Callable[[AnswerStream], Display], *scripts: list[Step], **options: Any
) -> Answer:
    """Ask a server that plays a script a request, and show what comes as the magic does."""
    backend = options.pop("backend", "agent")
    retries = options.pop("max_retries", 0)
    with (
        RawServer(in_turn(*scripts)) as server,
        Client(KEY, backend=backend, base_url=server.url, max_retries=retries) as client,
        client.stream("How many?", **options) as stream,
    ):
        display = make(stream)
        with contextlib.suppress(PerplexityError):
            for event in stream:
                display.event(event)
    display.finish(stream.answer)
    return stream.answer


def shown_rich(shell: Any, *scripts: list[Step], **options: Any) -> tuple[Frames, Answer]:
    """Return each state of a notebook's output: one an event, as time goes by fast."""
    frames = shell.display_pub = Frames()
    clock = itertools.count()

    def make(stream: AnswerStream) -> Display:
        return KernelDisplay(stream, clock=lambda: float(next(clock)) * 10)

    return frames, show_live(make, *scripts, **options)


def printed(*scripts: list[Step], out: io.StringIO | None = None, **options: Any) -> str:
    """Return what a terminal shows, a pipe if not told otherwise."""
    screen = out if out is not None else io.StringIO()
    show_live(lambda stream: TerminalDisplay(stream, screen), *scripts, **options)
    return screen.getvalue()


def round_of(*output: dict[str, Any], id: str = "resp_1", broken: bool = False) -> list[Step]:
    """Return the reply of a round with these items; a broken one lacks its end."""
    begun = {"id": id, "object": "response", "status": "in_progress", "model": "m", "output": []}
    events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(output):
        if item["type"] == "message":
            for piece in re.findall(r"\S+\s*|\s+", item["content"][0]["text"]):
                events.append(delta(piece, item_id=item["id"], output_index=index))
        events.append(item_done(item, index))
    if broken:
        return [*sse_response(sse_frames(events))[:-1], Close()]
    return sse_response(sse_frames([*events, completed(*output, id=id)]))


def wants(city: str, n: int = 1, name: str = "population_of") -> dict[str, Any]:
    call = {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "name": name}
    return {**call, "arguments": json.dumps({"city": city}), "status": "completed"}


def population_of(city: str) -> int:
    """Return how many people live in a city."""
    return {"Ghent": 272_657}[city]


def chat_of(*chunks: dict[str, Any]) -> list[Step]:
    """Return a chat completion of these choices; ``message`` is all of the text so far."""
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    made = [{**base, "choices": [{"index": 0, "delta": {}, **chunk}]} for chunk in chunks]
    ending = {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    lines = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in [*made, ending]]
    return sse_response([*lines, b"data: [DONE]\n\n"])


def piece(text: str) -> dict[str, Any]:
    return {"delta": {"content": text}}


def whole(text: str) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": text}}


TAKEN_BACK = chat_of(
    piece("The **first** paragraph.\n\n"),
    piece("```\nopen code\n"),
    piece("more of it\n"),
    whole("Another *first* one.\n\n- item"),
    piece(" and more"),
)


def test_text_that_the_service_takes_back_is_replaced_in_a_notebook(bare_shell: Any) -> None:
    frames, answer = shown_rich(bare_shell, TAKEN_BACK, backend="chat")
    assert answer.text == "Another *first* one.\n\n- item and more"
    old = [n for n, shown in enumerate(frames.pages) if "open code" in shown]
    new = [n for n, shown in enumerate(frames.pages) if "Another first one." in shown]
    assert old and len(new) >= 2 and max(old) < min(new), "never both, and never back"
    assert not any("paragraph" in frames.pages[n] for n in new)
    assert all("open code" not in frame["text/plain"] for frame in frames.all[min(new) :])
    assert frames.all[-1] == answer._repr_mimebundle_()
    assert "<li>item and more</li>" in frames.all[-1]["text/html"]


def test_text_that_the_service_takes_back_is_replaced_in_a_raw_display(bare_shell: Any) -> None:
    frames = bare_shell.display_pub = Frames()
    show_live(lambda stream: KernelDisplay(stream, raw=True), TAKEN_BACK, backend="chat")
    assert "<pre>Another *first* one.\n\n- item and more</pre>" in frames.all[-1]["text/html"]
    assert "open code" not in "".join(frames.all[-1].values())


def test_a_terminal_says_that_the_text_was_revised_and_prints_all_of_it() -> None:
    text = printed(TAKEN_BACK, backend="chat")
    assert text.startswith(
        "\nThe **first** paragraph.\n\n```\nopen code\nmore of it\n\n"
        "The text was revised:\n\n"
        "Another *first* one.\n\n- item and more\n\n"
    )
    assert text.count("revised") == text.count("item and more") == 1


def test_text_that_only_goes_on_is_not_printed_twice() -> None:
    text = printed(chat_of(piece("One"), whole("One two"), whole("One two three")), backend="chat")
    assert text.startswith("\nOne two three\n\n") and "revised" not in text


def test_what_was_open_in_the_old_text_does_not_hold_on_in_the_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    words = "word " * 20
    script = chat_of(piece("```\n" + words), piece("\n\x1b[3"), whole(f"mild {words}"))
    text = printed(script, backend="chat", out=Screen())
    new = text.partition("revised:\n\n")[2]
    assert new.startswith("mild word"), "an unfinished escape sequence of the old text eats none"
    assert max(map(len, new.splitlines())) <= 30, "the old code block is over"


# --- functions of the notebook --------------------------------------------------------------------

FIRST = round_of(results(PAGE, queries=["q"]), message("I look.[1]"), wants("Ghent"))
LAST = round_of(message("It is 272,657.", id="msg_2"), id="resp_2")


def test_a_notebook_tells_which_function_runs_and_shows_all_calls_in_the_end(
    bare_shell: Any,
) -> None:
    frames, answer = shown_rich(bare_shell, FIRST, LAST, tools=[population_of])
    status = [page.rstrip().splitlines()[-1] for page in frames.pages]
    running = [n for n, line in enumerate(status) if "Running population_of(city='Ghent')" in line]
    assert running and "I look." in frames.pages[running[0]]
    assert any("population_of() is done · 1 source" in line for line in status[running[-1] :])
    assert any(line.startswith("Writing · ") for line in status[running[-1] :])
    assert frames.all[-1] == answer._repr_mimebundle_()
    assert "Functions: 1 call" in frames.pages[-1] and "272657" in frames.pages[-1]


def test_a_notebook_tells_that_a_function_failed_until_the_answer_goes_on(bare_shell: Any) -> None:
    frames, _ = shown_rich(
        bare_shell, round_of(wants("Gent"), wants("Ghent", 2)), LAST, tools=[population_of]
    )
    status = [page.rstrip().splitlines()[-1] for page in frames.pages]
    told = [
        n for n, line in enumerate(status) if "population_of() failed: KeyError: 'Gent'" in line
    ]
    assert any("Running population_of(city='Ghent') · population_of() failed" in s for s in status)
    assert any(status[n].startswith("Waiting for the service · population_of()") for n in told)
    assert all("Writing" not in status[n] for n in told) and told[-1] < len(status) - 1
    assert "Functions: 2 calls, 1 failed" in frames.pages[-1]
    assert "failed: KeyError: 'Gent'" in frames.pages[-1]


def test_the_last_page_has_the_markers_of_the_first_round_numbered_anew(bare_shell: Any) -> None:
    last = round_of(results(OTHER), message("So.[1]", id="msg_2"), id="resp_2")
    frames, answer = shown_rich(bare_shell, FIRST, last, tools=[population_of])
    assert answer.text == "I look.[2]\n\nSo.[1]"
    assert frames.all[-1] == answer._repr_mimebundle_()
    body = frames.all[-1]["text/html"].partition('<ol class="pplx-sources">')[0]
    assert re.findall(r'href="([^"]+)"[^>]*>\[(\d)\]', body) == [
        ("https://a.example/one", "2"),
        ("https://b.example/two", "1"),
    ]


BROKEN = round_of(results(OTHER), message("So.[1]", id="msg_2"), id="resp_2", broken=True)


def test_an_answer_that_breaks_off_in_a_later_round_has_the_right_markers_too(
    bare_shell: Any,
) -> None:
    frames, answer = shown_rich(bare_shell, FIRST, BROKEN, tools=[population_of])
    assert (answer.status, answer.text) == ("failed", "I look.[2]\n\nSo.[1]")
    assert frames.all[-1] == answer._repr_mimebundle_()


def test_a_terminal_prints_them_again_if_it_has_printed_others() -> None:
    for last in (BROKEN, round_of(results(OTHER), message("So.[1]", id="msg_2"), id="resp_2")):
        text = printed(FIRST, last, tools=[population_of])
        assert "\nSo.[1]\n\nThe text was revised:\n\nI look.[2]\n\nSo.[1]\n\n" in text
        assert text.count("revised") == 1


def test_a_terminal_has_a_line_for_a_function_that_runs_and_one_if_it_fails() -> None:
    text = printed(round_of(wants("Gent"), wants("Ghent", 2)), LAST, tools=[population_of])
    assert text.startswith(
        "Running population_of(city='Gent')\n"
        "population_of() failed: KeyError: 'Gent'\n"
        "Running population_of(city='Ghent')\n"
        "\nIt is 272,657.\n\n"
        "Functions: 2 calls, 1 failed\n"
        "  population_of(city='Gent') failed: KeyError: 'Gent'\n"
        "  population_of(city='Ghent') -> 272657\n\n"
    )


@pytest.mark.parametrize("screen", [io.StringIO, Screen])
def test_a_function_that_runs_amid_the_text_has_its_own_lines(
    screen: type[io.StringIO],
) -> None:
    out = screen()

    def population_of(city: str) -> int:
        print("looking", city, file=out)
        return 1

    first = round_of(message("I look:"), wants("Ghent"), wants("Paris", 2))
    text = printed(first, LAST, out=out, tools=[population_of])
    assert text.startswith(
        "\nI look:\n\n"
        "Running population_of(city='Ghent')\nlooking Ghent\n"
        "Running population_of(city='Paris')\nlooking Paris\n"
        "\nIt is 272,657.\n\nFunctions: 2 calls\n"
    )


def test_a_call_that_ends_the_answer_is_shown_without_a_word_of_text(bare_shell: Any) -> None:
    down = [http_response(500, {}, b"{}")]
    frames, answer = shown_rich(bare_shell, round_of(wants("Gent")), down, tools=[population_of])
    assert answer.status == "failed" and not answer.text
    assert "Functions: 1 call, 1 failed" in frames.pages[-1]
    text = printed(round_of(wants("Gent")), down, tools=[population_of])
    assert "population_of(city='Gent') failed: KeyError: 'Gent'\n\nfailed · " in text


def test_a_retry_between_two_rounds_is_told_in_both_displays(bare_shell: Any) -> None:
    busy = [http_response(503, {"Retry-After": "0"}, b"{}")]
    given: dict[str, Any] = {"tools": [population_of], "max_retries": 1}
    frames, _ = shown_rich(bare_shell, FIRST, busy, LAST, **given)
    assert any("Retrying in" in page for page in frames.pages[:-1])
    text = printed(FIRST, busy, LAST, **given)
    assert re.search(r"\nRunning \S+\n[^\n]*Retrying in [^\n]*\n\nIt is 272,657.\n", text), text


def test_no_key_and_no_control_character_of_a_call_is_shown(bare_shell: Any) -> None:
    key = "pplx-0123456789abcdefXYZ"

    def population_of(city: str) -> int:
        raise ValueError(f"refused: Bearer {key}\x1b[2J <b>{city}</b> {'long ' * 100}")

    first = round_of(wants(f"{key} \x1b]0;owned\x07<img src=x>"))
    frames, _ = shown_rich(bare_shell, first, LAST, tools=[population_of])
    html = "".join(frame["text/html"] for frame in frames.all)
    plain = "".join(frame["text/plain"] for frame in frames.all)
    plain += printed(first, LAST, tools=[population_of])
    assert "Running population_of(city='***" in plain and "failed: ValueError: refused" in plain
    assert "0123456789abcdef" not in html + plain
    assert "<img" not in html and "<b>" not in html
    assert not set(html + plain) & set("\x1b\x07\r")
    assert max(map(len, plain.splitlines())) < 300
