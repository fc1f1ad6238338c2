"""``ipyperplexity ask``: the answer on stdout, all else on stderr.

Options are those of a question, from the one table that the magic reads too.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipyperplexity.backend_names import BACKEND_NAMES
from ipyperplexity.errors import Interrupted, InvalidRequestError, PerplexityError
from ipyperplexity.events import Event, Retrying, Searching, TextDelta, TextReplaced
from ipyperplexity.markup import terminal
from ipyperplexity.notebook.line import QUESTION_FLAGS
from ipyperplexity.notebook.live import TerminalDisplay

if TYPE_CHECKING:
    from ipyperplexity.answer import Answer


def add_ask(commands: Any) -> None:
    """Add the command to a parser's commands."""
    ask = commands.add_parser(
        "ask",
        help="ask a question; the answer goes to stdout, with its sources",
        description=(
            "The question is the rest of the line, or, with - or in a pipe, what comes from stdin. "
            "Exit codes: 0 answered, 1 failed, 2 wrong use, 130 interrupted."
        ),
    )
    ask.add_argument("question", nargs="*", help="the question; - reads it from stdin")
    forms = ask.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="the answer and its sources as JSON")
    forms.add_argument("--csv", action="store_true", help="the table of its sources as CSV")
    forms.add_argument("--markdown", action="store_true", help="a document with numbered sources")
    ask.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    ask.add_argument(
        "-b", "--backend", choices=BACKEND_NAMES, help="whom to ask; see ipyperplexity status"
    )
    ask.add_argument("--replay", metavar="TAPE", help="answer from a tape: no key, no network")
    add_question_options(ask)
    ask.set_defaults(run=run_ask)


def add_question_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a question."""
    group = parser.add_argument_group("options of the question")
    for flag in QUESTION_FLAGS:
        option = flag.option
        text = option.help.replace("%", "%%")
        if flag.name == "schema":
            text = "Form of a structured answer: a file with a JSON schema."
        group.add_argument(
            *option.flags,
            dest=f"option_{flag.name}",
            metavar="FILE" if flag.name == "schema" else option.metavar,
            action="append" if option.repeatable else "store",
            help=text,
        )


def attached(arguments: Sequence[str]) -> list[str]:
    """Return arguments with values that begin with a dash attached to their option.

    Examples
    --------
    >>> attached(["ask", "--domain", "-x.com", "-q", "Why?"])
    ['ask', '--domain=-x.com', '-q', 'Why?']
    """
    spellings = {spelling for flag in QUESTION_FLAGS for spelling in flag.option.flags}
    found: list[str] = []
    for word in arguments:
        before = found[-1] if found else ""
        is_value = before in spellings and before.startswith("--") and word not in spellings
        if is_value and word.startswith("-") and word not in ("-", "--"):
            found[-1] = f"{before}={word}"
        else:
            found.append(word)
    return found


def question_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of the question that were given.

    Raises
    ------
    InvalidRequestError
        If the file of a schema holds none.
    """
    given = {
        flag.name: value
        for flag in QUESTION_FLAGS
        if (value := getattr(options, f"option_{flag.name}")) is not None
    }
    if "schema" in given:
        given["schema"] = _schema(Path(given["schema"]))
    return given


def _schema(path: Path) -> Any:
    problem = ""
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        problem = error.strerror or str(error)
    except ValueError as error:
        problem = f"it is no JSON ({error})"
    raise InvalidRequestError(f"--schema {path}: {problem}.", field="schema")


def run_ask(options: argparse.Namespace) -> int:
    """Ask, and print the answer."""
    tolerate_narrow_pipes()
    text = _question(options.question)
    given = question_options(options)
    if options.replay:
        from ipyperplexity.taping import replay

        with replay(options.replay, strict=True):
            return _ask(text, given, options)
    return _ask(text, given, options)


def _question(words: list[str]) -> str:
    text = " ".join(words).strip()
    if text == "-" or (not text and not sys.stdin.isatty()):
        text = sys.stdin.read().strip()
    if not text:
        raise InvalidRequestError(
            "question: there is none.",
            field="question",
            hint='ipyperplexity ask "What is a lambda?"',
        )
    return text


def _ask(text: str, given: dict[str, Any], options: argparse.Namespace) -> int:
    from ipyperplexity.client import Client

    form = _FORMS.get(next((name for name in _FORMS if getattr(options, name)), ""))
    with Client(backend=options.backend) as client:
        stream = client.stream(text, **given)
        show: Progress | TerminalDisplay = Progress(quiet=options.quiet, streams=form is None)
        if form is None and sys.stdout.isatty():  # a person reads it, in lines of a screen's width
            show = TerminalDisplay(stream)
        failure: PerplexityError | None = None
        interrupted = False
        try:
            with stream:
                for event in stream:
                    show.event(event)
        except KeyboardInterrupt:
            interrupted = True
        except PerplexityError as error:
            failure = error
        if failure is not None or interrupted:
            if form is None and stream.answer.text:  # what had come is paid for
                show.finish(stream.answer)
            if failure is not None:
                raise failure
            raise Interrupted("stopped", answer=stream.answer)
        if form is None:
            show.finish(stream.answer)
        else:
            print(form(stream.answer))
        if stream.answer.status != "completed" and not options.quiet:
            print(f"ipyperplexity: the answer is {stream.answer.status}", file=sys.stderr)
    return 0


def as_json(answer: Answer) -> str:
    """Return an answer as a JSON object: its row, and its sources."""
    row = {**answer.row(), "data": answer.data, "sources": answer.to_dicts()}
    return json.dumps(row, ensure_ascii=False, indent=2, default=_plain)


def _plain(value: Any) -> str:
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


_FORMS: dict[str, Callable[[Any], str]] = {
    "json": as_json,
    "csv": lambda answer: str(answer.to_csv()).rstrip("\n"),
    "markdown": lambda answer: str(answer.to_markdown()).rstrip("\n"),
}


class Progress:
    """Writes text to stdout as it comes, and what is being done to stderr.

    Parameters
    ----------
    quiet : bool
        Nothing on stderr.
    streams : bool
        Whether the text goes to stdout.
    """

    def __init__(self, *, quiet: bool, streams: bool) -> None:
        self._quiet, self._streams = quiet, streams
        self._written = ""
        self._stripper = terminal.ControlStripper()
        self._tells_searches = sys.stderr.isatty()

    def event(self, event: Event) -> None:
        """Take what has come."""
        if isinstance(event, TextDelta) and self._streams:
            self._written += event.text
            sys.stdout.write(self._stripper.feed(event.text))
            sys.stdout.flush()
        elif isinstance(event, TextReplaced) and self._streams:
            self._replace(event.text)
        elif isinstance(event, Retrying):
            self._say(f"{event.reason} Asking again in {event.delay:.0f} s.")
        elif isinstance(event, Searching) and self._tells_searches:
            self._say(f"searching: {'; '.join(event.queries)}")

    def finish(self, answer: Answer) -> None:
        """Write the sources below the text."""
        if answer.text != self._written:
            self._replace(answer.text)
        sys.stdout.write(f"{self._stripper.finish()}\n")
        if answer.sources:
            sys.stdout.write(f"\n{terminal.strip_controls(str(answer.sources))}\n")
        if not self._quiet:
            self._say(answer.summary())

    def _replace(self, text: str) -> None:
        """Write what is new in a text that stands for all so far."""
        new = text.removeprefix(self._written)
        lead = "" if not self._written or len(new) < len(text) else "\n\n"
        sys.stdout.write(lead + self._stripper.feed(new))
        self._written = text

    def _say(self, words: str) -> None:
        if not self._quiet:
            sys.stdout.flush()
            print(terminal.strip_controls(words), file=sys.stderr, flush=True)


def tolerate_narrow_pipes() -> None:
    """Let a pipe of a narrow encoding have question marks for what it lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
