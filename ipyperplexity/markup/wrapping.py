r"""Wrap text at words while it arrives, for a terminal.

Lines that begin a list item are continued under its text. Code fences and table rows are left
alone, since their line ends mean something. A word is held back until it is whole; nothing else is.
"""

from __future__ import annotations

import re

from .terminal import display_width

_TOKEN = re.compile(r"\n|[^\S\n]+|\S+")
_LIST_MARK = re.compile(r"[-*+]|\d{1,4}[.)]")
_FENCES = ("```", "~~~")


class WordWrapper:
    r"""Wraps a growing text.

    Parameters
    ----------
    width : int
        Columns of a line.

    Examples
    --------
    >>> wrapper = WordWrapper(12)
    >>> wrapper.feed("- one two th") + wrapper.feed("ree") + wrapper.finish()
    '- one two\n  three'
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._word = ""
        self._gap = ""
        self._column = 0
        self._indent = 0
        self._in_code = False
        self._as_is = False

    def feed(self, text: str) -> str:
        """Take the next piece; return what can be shown."""
        tokens = _TOKEN.findall(self._word + text)
        # The last word may go on in the next piece.
        self._word = tokens.pop() if tokens and not tokens[-1].isspace() else ""
        return "".join(map(self._place, tokens))

    def finish(self) -> str:
        """Return the last word."""
        word, self._word = self._word, ""
        return self._place(word) if word else ""

    def _place(self, token: str) -> str:
        if token == "\n":
            self._gap, self._column, self._indent, self._as_is = "", 0, 0, False
            return token
        if token.isspace():
            self._gap += token.expandtabs(4)
            return ""
        gap, self._gap = self._gap, ""
        size = display_width(token)
        begins = self._column == 0
        if begins:
            if token.startswith(_FENCES):
                self._in_code = not self._in_code
                self._as_is = True
            self._as_is = self._as_is or self._in_code or token.startswith("|")
            self._indent = len(gap)
            if _LIST_MARK.fullmatch(token):
                self._indent += size + 1
        elif not self._as_is and self._column + len(gap) + size > self._width:
            self._column = self._indent + size
            return "\n" + " " * self._indent + token
        self._column += len(gap) + size
        return gap + token
