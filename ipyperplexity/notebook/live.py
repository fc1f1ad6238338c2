"""An answer on the screen while it is written, in the form that fits where it is shown.

In a kernel: one display handle, updated less often the longer the answer is, since the browser
draws it anew each time; the last state is always shown. In a terminal: the text as it comes, then
the sources. With nobody watching (``jupyter execute``): the same handle, updated rarely. There is
no ``clear_output`` and no widget, so a saved notebook shows the answer.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from IPython.display import display

from ipyperplexity.events import (
    Event,
    Retrying,
    SourcesFound,
    Started,
    TextDelta,
    TextReplaced,
    ToolCalled,
    ToolReturned,
)
from ipyperplexity.markup import page, terminal
from ipyperplexity.markup.live import LiveMarkdown
from ipyperplexity.markup.wrapping import WordWrapper
from ipyperplexity.notebook.activity import Activity, doing

if TYPE_CHECKING:
    from ipyperplexity.answer import Answer
    from ipyperplexity.answer_stream import AnswerStream

#: Seconds between two updates of a short answer; a long one is updated less often.
INTERVAL = 0.1
LONG = 8192
MAX_INTERVAL = 2.0
#: Seconds between two updates when nobody is watching.
UNWATCHED_INTERVAL = 1.0
#: Seconds after which a request that has said nothing shows that it is alive.
PATIENCE = 0.7
_TICKER = 1.0


class Display(Protocol):
    """Shows one answer."""

    def event(self, event: Event) -> None:
        """Take note of what happened, and show it when it is time."""

    def tick(self) -> None:
        """Nothing came for a moment: show what is due."""

    def finish(self, answer: Answer) -> None:
        """Show the last state."""


class QuietDisplay:
    """Shows nothing."""

    def event(self, event: Event) -> None:
        """Do nothing."""

    def tick(self) -> None:
        """Do nothing."""

    def finish(self, answer: Answer) -> None:
        """Do nothing."""


class KernelDisplay:
    """One display handle in a notebook.

    Parameters
    ----------
    stream : AnswerStream
    watched : bool
        Whether somebody is looking (a front end that could ask for input).
    raw : bool
        Whether to show the Markdown as it is.
    clock : callable
        Returns seconds that only grow.
    """

    def __init__(
        self,
        stream: AnswerStream,
        *,
        watched: bool = True,
        raw: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._raw = raw
        self._floor = INTERVAL if watched else UNWATCHED_INTERVAL
        self._start_text()
        self._activity = Activity()
        self._handle: Any = None
        self._clock = clock
        self._began = clock()
        self._drawn = 0.0
        self._due = False

    def _start_text(self) -> None:
        self._markdown = LiveMarkdown(self._stream.sources.resolve)
        self._plain = terminal.ControlStripper()
        self._plain_text = ""
        self._taken: list[str] = []

    def event(self, event: Event) -> None:
        """Take note of what happened, and show it when it is time."""
        if isinstance(event, TextReplaced):
            self._start_text()
        if isinstance(event, TextDelta | TextReplaced):
            if not self._raw:
                self._markdown.append(event.text)
                self._taken.append(event.text)
            self._plain_text += self._plain.feed(event.text)
            self._due = True
        elif isinstance(event, SourcesFound):
            self._markdown.update(event.sources.resolve)
        self._due = self._activity.event(event) or self._due
        if self._due and self._clock() - self._drawn >= self._interval():
            self._draw()

    def tick(self) -> None:
        """Nothing came for a moment: show what is due, and that time passes."""
        now = self._clock()
        if self._handle is None:
            if now - self._began >= PATIENCE:
                self._draw()
        elif now - self._drawn >= (self._interval() if self._due else _TICKER):
            self._draw()

    def finish(self, answer: Answer) -> None:
        """Show the last state; nothing at all for a failure that came before anything else."""
        if self._handle is None and answer.error is not None and not _has_content(answer):
            return
        if self._raw:
            bundle = {"text/plain": answer.to_text(), "text/html": answer.to_html(self._body())}
        else:
            # An interrupt may have come while a piece was taken or drawn, and an answer that broke
            # off between two rounds has its markers numbered anew: then draw it anew.
            whole = answer.status != "stopped" and "".join(self._taken) == answer.text
            body = self._markdown.finish() if whole else None
            bundle = {"text/plain": answer.to_text(), "text/html": answer.to_html(body)}
        self._show(bundle)

    def _interval(self) -> float:
        return max(self._floor, min(INTERVAL * (1 + len(self._stream.text) / LONG), MAX_INTERVAL))

    def _body(self) -> str:
        if self._raw:
            return f"<pre>{escape(self._stream.text)}</pre>" if self._stream.text else ""
        return self._markdown.html()

    def _draw(self) -> None:
        status = self._activity.words(self._stream.elapsed)
        html = page.answer_page(
            body_html=self._body(),
            status_line=status,
            state="running",
            notices=self._stream.warnings,
        )
        # Put together here, from pieces that are stripped already: once each, not at every update.
        parts = (self._plain_text.strip("\n"), terminal.status_text(status))
        text = "\n\n".join(part for part in parts if part)
        self._show({"text/plain": text, "text/html": html})

    def _show(self, bundle: dict[str, str]) -> None:
        if self._handle is None:
            self._handle = show(bundle, display_id=True)
        else:
            self._handle.update(bundle, raw=True)
        self._drawn, self._due = self._clock(), False


class TerminalDisplay:
    """Plain text, as it comes."""

    def __init__(self, stream: AnswerStream, out: TextIO | None = None) -> None:
        self._stream = stream
        self._out = out or sys.stdout
        self._in_line = False
        self._has_text = False
        self._is_aside = False  # whether a line of our own stands below the text
        self._given = ""  # all text so far, as it came
        self._start_text()

    def _start_text(self) -> None:
        self._stripper = terminal.ControlStripper()
        # A file or a pipe gets the text as it is; a screen gets lines that end at words.
        self._wrapper = WordWrapper(terminal.columns()) if self._out.isatty() else None

    def event(self, event: Event) -> None:
        """Print what is new."""
        if isinstance(event, TextReplaced):
            self._replace(event.text)
        elif isinstance(event, TextDelta):
            self._add(event.text)
        elif isinstance(event, SourcesFound):
            if self._in_line and not self._has_text:
                self._write(f" \u00b7 {len(event.sources)} sources\n")
                self._in_line = False
        elif isinstance(event, ToolCalled | Retrying):
            self._say(doing(event))
        elif isinstance(event, ToolReturned):
            if event.error:
                self._say(doing(event))
        elif not self._has_text and (words := doing(event)):
            self._new_line()
            if not isinstance(event, Started):
                self._write(terminal.status_text(words))
                self._in_line = True

    def tick(self) -> None:
        """Nothing came for a moment: nothing to print."""

    def finish(self, answer: Answer) -> None:
        """Print the rest: text, sources, function calls, remarks, status line."""
        if answer.text != self._given:
            self._replace(answer.text)
        self._flush_text()
        if not _has_content(answer) and answer.error is not None:
            self._new_line()
            return
        self._new_line()
        rest = terminal.answer_text(
            "",
            answer.sources,
            status=answer.summary(),
            notices=answer.warnings,
            calls=answer.tool_calls,
        )
        gap = "\n" if self._is_aside else "\n\n" if self._has_text else ""
        self._write(gap + rest + "\n")

    def _add(self, text: str) -> None:
        self._given += text
        if self._is_aside:
            # What parts this text from the one before it stands above our line already.
            text = text.lstrip("\n")
        if not text:
            return
        if self._is_aside:
            self._write("\n")
            self._is_aside = False
        elif not self._has_text:
            self._new_line()
            self._write("\n")
        self._has_text = True
        self._write_text(self._stripper.feed(text))

    def _replace(self, text: str) -> None:
        """Print what is new in a text that stands for all so far; what is printed stays printed."""
        if text.startswith(self._given):
            self._add(text[len(self._given) :])
            return
        self._say("The text was revised:")
        self._given = ""
        self._add(text)

    def _say(self, words: str) -> None:
        """Print a line of our own; it ends at once, as a function may print something too."""
        self._flush_text()
        self._new_line()
        if self._has_text and not self._is_aside:
            self._write("\n" if self._given.endswith("\n") else "\n\n")
            self._start_text()
            self._is_aside = True
        self._write(terminal.status_text(words) + "\n")

    def _flush_text(self) -> None:
        self._write_text(self._stripper.finish())
        if self._wrapper is not None:
            self._write(self._wrapper.finish())

    def _new_line(self) -> None:
        if self._in_line:
            self._write("\n")
            self._in_line = False

    def _write_text(self, text: str) -> None:
        self._write(self._wrapper.feed(text) if self._wrapper is not None else text)

    def _write(self, text: str) -> None:
        if not text:
            return
        try:
            self._out.write(text)
        except UnicodeEncodeError:
            # A screen that lacks a character must not end an answer that is being paid for.
            encoding = self._out.encoding or "ascii"
            self._out.write(text.encode(encoding, "replace").decode(encoding))
        self._out.flush()


def show(bundle: dict[str, str], **options: Any) -> Any:
    """Publish a bundle of MIME types; with ``display_id=True`` return its handle."""
    return display(bundle, raw=True, **options)  # type: ignore[no-untyped-call]


def _has_content(answer: Answer) -> bool:
    return bool(answer.text or answer.sources or answer.tool_calls)


def make_display(shell: Any, stream: AnswerStream, *, quiet: bool, raw: bool) -> Display:
    """Return the display that fits where this runs."""
    if quiet:
        return QuietDisplay()
    if not hasattr(shell, "kernel"):
        return TerminalDisplay(stream)
    return KernelDisplay(stream, watched=_is_watched(shell), raw=raw)


def _is_watched(shell: Any) -> bool:
    """Whether a person may be looking: such front ends say that they can ask for input."""
    try:
        content = shell.get_parent().get("content", {})
    except Exception:  # a shell that cannot say has somebody in front of it
        return True
    return bool(content.get("allow_stdin", True))
