"""Text and thoughts of a chat completion, each given out once.

Both come in pieces (``delta``), as all so far (``message``), or both at a time (official-api 8).
Pieces count where the two agree; where they contradict each other, the whole is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ipyperplexity.events import Event, ReasoningDelta, TextDelta, TextReplaced
from ipyperplexity.wire import values
from ipyperplexity.wire.consumer_text import GivenText


class ChatText:
    """Turns pieces and whole texts into events.

    Attributes
    ----------
    has_thought : bool
        Whether any thought was given out, also by a ``<think>`` block.

    Examples
    --------
    >>> text = ChatText()
    >>> list(text.write("He", "")), list(text.write("llo", "Hello")), list(text.write("", "Hello!"))
    ([TextDelta(text='He')], [TextDelta(text='llo')], [TextDelta(text='!')])
    >>> list(text.write("", "Hi!"))
    [TextReplaced(text='Hi!')]
    """

    def __init__(self) -> None:
        self.has_thought = False
        self._written: list[str] = []  # as the service wrote it, a block of thoughts and all
        self._given = GivenText()
        self._shown: list[str] = []
        self._thoughts: list[str] = []
        self._half = ""

    @property
    def shown(self) -> str:
        """The text as a reader has it."""
        return "".join(self._shown)

    @property
    def thoughts(self) -> str:
        """The thoughts that came beside the text."""
        return str(values.clean("".join(self._thoughts)))

    def write(self, piece: str, whole: str) -> Iterator[Event]:
        """Give out what is new, given the next piece and all of the text; each may be empty."""
        written = self._written
        if whole:
            written[:] = [_newest("".join(written), piece, whole)]
            yield from self._note(self._given.show("", written, final=True))
        elif piece:
            written.append(piece)
            yield from self._note(self._given.show("", written, len(written) - 1))

    def think(self, piece: str, whole: str) -> Iterator[Event]:
        """Give out what is new of the thoughts; what was given out cannot be taken back."""
        if whole:
            before = "".join(self._thoughts)
            newest = _newest(before, piece, whole)
            if newest.startswith(before):
                piece = newest[len(before) :]
        if not piece:
            return
        self._thoughts.append(piece)
        piece = self._half + piece
        # Half a character: JSON can cut one in two, and the other half is in the next chunk.
        cut = len(piece) - 1 if "\ud800" <= piece[-1:] <= "\udbff" else len(piece)
        piece, self._half = piece[:cut], piece[cut:]
        if piece:
            self.has_thought = True
            yield ReasoningDelta(values.clean(piece))

    def flush(self) -> Iterator[Event]:
        """Give out what was held back, at the end."""
        if self._half:
            self._half = ""
            yield ReasoningDelta("\ufffd")
        yield from self._note(self._given.flush())

    def _note(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, TextDelta):
                self._shown.append(event.text)
            elif isinstance(event, TextReplaced):
                # Without its thoughts, or the blanks around it, it is the same text.
                if event.text.strip() == self.shown.strip():
                    continue
                self._shown = [event.text]
            elif isinstance(event, ReasoningDelta):
                self.has_thought = True
            yield event


def _newest(before: str, piece: str, whole: str) -> str:
    """Return all of a text, given what it was before, and the next piece and the whole of it."""
    after = before + piece
    # A whole that is late says nothing; one that is only the piece again is no whole.
    is_known = after.startswith(whole) or (whole == piece and not whole.startswith(before))
    return after if is_known else whole
