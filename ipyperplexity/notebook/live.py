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
    Fetching,
    ReasoningDelta,
    Retrying,
    Searching,
    SourcesFound,
    Started,
    TextDelta,
)
from ipyperplexity.markup import page, terminal
from ipyperplexity.markup.live import LiveMarkdown
from ipyperplexity.markup.wrapping import WordWrapper

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
_MAX_QUERIES = 3
_MAX_WORDS = 80


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


class Activity:
    """What the service is doing, in a few words."""

    def __init__(self) -> None:
        self._doing = "Asking"
        self._n_sources = 0
        self._writing = False

    def event(self, event: Event) -> bool:
        """Take note; return whether there is something new to say."""
        before = (self._doing, self._n_sources)
        if isinstance(event, SourcesFound):
            self._n_sources = len(event.sources)
        elif isinstance(event, Retrying):
            self._doing = f"{event.reason} Retrying in {event.delay:.1f} s"
        elif isinstance(event, TextDelta):
            self._doing, self._writing = "Writing", True
        elif not self._writing:
            self._doing = _doing(event) or self._doing
        return (self._doing, self._n_sources) != before

    def words(self, seconds: float) -> str:
        """Return a line such as ``Searching: rivers of Ghent · 12 sources · 3 s``."""
        found = {0: [], 1: ["1 source"]}.get(self._n_sources, [f"{self._n_sources} sources"])
        return " · ".join([self._doing, *found, f"{seconds:.0f} s"])


def _doing(event: Event) -> str:
    if isinstance(event, Searching):
        more = len(event.queries) - _MAX_QUERIES
        return f"Searching: {_few(event.queries)}" + (f" and {more} more" if more > 0 else "")
    if isinstance(event, Fetching):
        return f"Reading: {_few(event.urls)}"
    if isinstance(event, ReasoningDelta):
        return ""
    return "Waiting for the service" if isinstance(event, Started) else ""


def _few(texts: tuple[str, ...]) -> str:
    return "; ".join(terminal.fit(text, _MAX_WORDS) for text in texts[:_MAX_QUERIES])


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
        self._markdown = LiveMarkdown(stream.sources.resolve)
        self._plain = terminal.ControlStripper()
        self._plain_text = ""
        self._n_taken = 0
        self._activity = Activity()
        self._handle: Any = None
        self._clock = clock
        self._began = clock()
        self._drawn = 0.0
        self._due = False

    def event(self, event: Event) -> None:
        """Take note of what happened, and show it when it is time."""
        if isinstance(event, TextDelta):
            if not self._raw:
                self._markdown.append(event.text)
                self._n_taken += len(event.text)
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
            # An interrupt may have come while a piece was taken or drawn: then draw it anew.
            whole = answer.status != "stopped" and self._n_taken == len(answer.text)
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
        self._stripper = terminal.ControlStripper()
        # A file or a pipe gets the text as it is; a screen gets lines that end at words.
        self._wrapper = WordWrapper(terminal.columns()) if self._out.isatty() else None
        self._in_line = False
        self._has_text = False

    def event(self, event: Event) -> None:
        """Print what is new."""
        if isinstance(event, TextDelta):
            if not self._has_text:
                self._begin_text()
            self._write_text(self._stripper.feed(event.text))
        elif isinstance(event, SourcesFound):
            if self._in_line and not self._has_text:
                self._write(f" · {len(event.sources)} sources\n")
                self._in_line = False
        elif not self._has_text and (isinstance(event, Retrying) or _doing(event)):
            self._new_line()
            if isinstance(event, Retrying):
                self._write(terminal.status_text(f"{event.reason} Retrying in {event.delay:.1f} s"))
            elif not isinstance(event, Started):
                self._write(terminal.status_text(_doing(event)))
            self._in_line = not isinstance(event, Started)

    def tick(self) -> None:
        """Nothing came for a moment: nothing to print."""

    def finish(self, answer: Answer) -> None:
        """Print the rest: sources, remarks, status line."""
        self._write_text(self._stripper.finish())
        if self._wrapper is not None:
            self._write(self._wrapper.finish())
        if not _has_content(answer) and answer.error is not None:
            self._new_line()
            return
        rest = terminal.answer_text(
            "", answer.sources, status=answer.summary(), notices=answer.warnings
        )
        self._write(("\n\n" if self._has_text else "") + rest + "\n")

    def _begin_text(self) -> None:
        self._new_line()
        self._write("\n")
        self._has_text = True

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
    return bool(answer.text or answer.sources)


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
