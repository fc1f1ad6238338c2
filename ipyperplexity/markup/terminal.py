"""An answer as plain text for a terminal or a log.

Invariant: no character leaves here that a terminal would obey. Escape sequences, control
characters and bidirectional overrides are taken out whole, also when a stream cuts one in two.
"""

from __future__ import annotations

import re
import shutil
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence

from .calls import CallLike, call_text, calls_label, result_text
from .links import SourceLike, one_line

# What the service could send of one unfinished sequence before it is dropped, in characters.
_MAX_SEQUENCE = 4096
_INDENT = "    "
#: Sources beyond which only the cited ones are listed below an answer.
_LONG_LIST = 8
#: Function calls that are listed.
_MAX_CALLS = 8

_STRING_END = r"(?:\x1b\\|\x07|\x9c)"
# String sequences (OSC, DCS, APC, PM, SOS) first: their payload must go too.
_SEQUENCE = re.compile(
    rf"(?:\x1b[\]P_^X]|[\x9d\x90\x9f\x9e\x98])[^\x07\x1b\x9c]*{_STRING_END}"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-OQ-WYZ\\`-~]"
)
_UNFINISHED = re.compile(
    r"(?:(?:\x1b[\]P_^X]|[\x9d\x90\x9f\x9e\x98])[^\x07\x1b\x9c]*\x1b?"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*|\x1b[ -/]*|\r)\Z"
)
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u061c\u2028\u2029"
    "\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb]"
)
_RETURN = re.compile(r"\r\n?")


def strip_controls(text: str) -> str:
    r"""Return `text` without anything that a terminal would obey.

    Newline and tab stay, carriage returns become newlines. Zero-width joiners stay too: emoji and
    several scripts need them. Bidirectional controls go.

    Examples
    --------
    >>> strip_controls("\x1b[31mred\x1b[0m \x1b]0;title\x07text")
    'red text'
    """
    # Line ends first: a sequence between \r and \n must not make one of two.
    text = _SEQUENCE.sub("", _RETURN.sub("\n", text))
    return _CONTROL.sub("", text)


class ControlStripper:
    r"""Strip controls from text that arrives in pieces.

    Examples
    --------
    >>> strip = ControlStripper()
    >>> strip.feed("a\x1b[3") + strip.feed("1mb") + strip.finish()
    'ab'
    """

    def __init__(self) -> None:
        self._held = ""

    def feed(self, delta: str) -> str:
        """Return what of the text so far is safe to print; an unfinished sequence is held back."""
        text = self._held + delta
        match = _UNFINISHED.search(_SEQUENCE.sub(lambda m: "\0" * len(m[0]), text))
        start = match.start() if match else len(text)
        if len(text) - start > _MAX_SEQUENCE:
            # Never closed: let its payload go as the plain text it then is.
            start = len(text)
        self._held = text[start:]
        return strip_controls(text[:start])

    def finish(self) -> str:
        """Return the rest, once no more text comes."""
        held, self._held = self._held, ""
        return strip_controls(held)


def answer_text(
    text: str,
    sources: Iterable[SourceLike] = (),
    *,
    status: str = "",
    notices: Sequence[str] = (),
    calls: Iterable[CallLike] = (),
    width: int | None = None,
) -> str:
    """Return an answer as plain text: text, remarks, numbered sources, function calls, status.

    Parameters
    ----------
    text : str
        The answer's Markdown, shown as it is.
    sources : iterable of SourceLike
        In the order in which to list them.
    status : str
        One line, for instance model, time and cost.
    notices : sequence of str
        Short remarks, one line each.
    calls : iterable of CallLike
        The functions that were run for it.
    width : int, optional
        Columns; that of the terminal if not given.
    """
    parts = [
        strip_controls(text).strip("\n"),
        "\n".join(f"({one_line(strip_controls(notice))})" for notice in notices),
        _sources_in_sight(list(sources), width),
        calls_text(calls, width),
        textwrap.fill(_plain(status), columns(width)),  # whole: its end says how many sources
    ]
    return "\n\n".join(part for part in parts if part)


def _sources_in_sight(items: list[SourceLike], width: int | None) -> str:
    """Return all of a short list; of a long one what the text leans on, and how many are left."""
    shown = [source for source in items if source.cited] if len(items) > _LONG_LIST else items
    listed = sources_text(shown, width)
    if len(shown) == len(items):
        return listed
    more = f"({len(items) - len(shown)} more, not cited: answer.sources)"
    return f"{listed}\n{more}" if listed else more


def sources_text(sources: Iterable[SourceLike], width: int | None = None) -> str:
    """Return two lines for each source: number, title, domain and date; then the URL, whole.

    Titles are cut to `width` columns; a URL never is, as it has to stay a URL.
    """
    across = columns(width)
    lines: list[str] = []
    for source in sources:
        day = source.published or source.updated
        details = ", ".join(
            part for part in (_plain(source.domain), day.isoformat() if day else "") if part
        )
        number = f"[{int(source.id)}]".ljust(len(_INDENT)) + " "
        tail = f" \u2014 {details}" if details else ""
        title = _plain(source.title) or "untitled"
        room = across - len(number) - display_width(tail)
        lines.append(fit(number + fit(title, max(room, 20)) + tail, across))
        url = _plain(source.url)
        if url:
            lines.append(" " * len(number) + url)
    return "\n".join(lines)


def calls_text(calls: Iterable[CallLike], width: int | None = None) -> str:
    """Return the function calls, one line each of at most `width` columns, below how many.

    Examples
    --------
    >>> from ipyperplexity.tools import ToolCall
    >>> print(calls_text([ToolCall("add", '{"a": 1, "b": 2}', "3")], 80))
    Functions: 1 call
      add(a=1, b=2) -> 3
    """
    made = list(calls)
    if not made:
        return ""
    across = columns(width)
    lines = [calls_label(made)]
    for call in made[:_MAX_CALLS]:
        # The call leaves room for what came of it.
        asked = fit(_plain(call_text(call.name, call.arguments)), across * 3 // 5)
        result = _plain(result_text(call))
        lines.append(fit(f"  {asked}{' ' if call.error else ' -> '}{result}", across))
    if len(made) > _MAX_CALLS:
        lines.append(f"  ({len(made) - _MAX_CALLS:,} more: answer.tool_calls)")
    return "\n".join(lines)


def status_text(status: str, width: int | None = None) -> str:
    """Return the status as one line of at most `width` columns."""
    return fit(_plain(status), columns(width))


def display_width(text: str) -> int:
    """Return how many columns `text` takes in a terminal."""
    return sum(map(_char_width, text))


def fit(text: str, width: int) -> str:
    """Cut `text` to `width` columns, with an ellipsis if something is lost."""
    if display_width(text) <= width:
        return text
    taken, kept = 0, []
    for char in text:
        taken += _char_width(char)
        if taken > width - 1:
            break
        kept.append(char)
    return "".join(kept).rstrip() + "\u2026"


def _char_width(char: str) -> int:
    if char < "\x7f":
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _plain(text: str) -> str:
    return one_line(strip_controls(text))


def columns(width: int | None = None) -> int:
    """Return `width`, or that of the terminal, in columns."""
    return max(20, width if width is not None else shutil.get_terminal_size((100, 24)).columns)
