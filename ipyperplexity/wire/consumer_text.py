"""What of a perplexity.ai answer has been given out, and what has to be said next.

The text comes as a list of pieces that mostly grows, may be corrected from some piece on, and may
come again in another form (another block, the final answer). Only what changed is looked at, so
that the work is linear in what the stream brings.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence

from ipyperplexity.events import Event, ReasoningDelta, TextDelta, TextReplaced
from ipyperplexity.wire import values
from ipyperplexity.wire.thinking import ThinkSplitter


class GivenText:
    """Turns the state of a text into the events that bring a reader there.

    Examples
    --------
    >>> given = GivenText()
    >>> list(given.show("a", ["He"])), list(given.show("a", ["He", "llo"], changed_from=1))
    ([TextDelta(text='He')], [TextDelta(text='llo')])
    >>> list(given.show("b", ["Hello [2]"]))
    [TextDelta(text=' [2]')]
    >>> list(given.show("b", ["Hi [1]"]))
    [TextReplaced(text='Hi [1]')]
    """

    def __init__(self) -> None:
        self._given: list[str] = []
        self._form: Hashable = None
        #: so many pieces of the form are known to be the first of those given out
        self._aligned = 0
        self._splitter = ThinkSplitter()
        self._half = ""
        self._shown: list[str] = []
        self._has_thought = False

    @property
    def shown(self) -> str:
        """The text as a reader of the events has it."""
        return "".join(self._shown)

    def show(
        self, form: Hashable, pieces: Sequence[str], changed_from: int = 0, *, final: bool = False
    ) -> Iterator[Event]:
        """Yield what is new in a text.

        Parameters
        ----------
        form : hashable
            Which form of the text this is; another form may cut the same text otherwise.
        pieces : sequence of str
            All of it; not blank, or it would take the place of a text.
        changed_from : int
            Index of the first piece that changed since this form was last shown.
        final : bool
            Whether a text that is shorter than what was given out is meant to be so. While it
            is written, it is only late.
        """
        at = min(changed_from, self._aligned) if form == self._form else 0
        self._form = form
        old, new = _joined(self._given[at:]), _joined(pieces[at:])
        self._aligned = at
        if new.startswith(old):
            self._settle(at, pieces)
            yield from self._say(new[len(old) :])
        elif final or not old.startswith(new):
            self._settle(0, pieces)
            yield from self._replace(_joined(pieces))

    def flush(self) -> Iterator[Event]:
        """Yield what was held back, at the end of the stream."""
        if self._half:
            half, self._half = self._half, ""
            yield from self._noted(self._splitter.feed(values.clean(half)))
        yield from self._noted(self._splitter.flush())

    def _settle(self, at: int, pieces: Sequence[str]) -> None:
        self._given[at:] = pieces[at:]
        self._aligned = len(self._given)

    def _say(self, text: str) -> Iterator[Event]:
        text = self._half + text
        # Half a character: JSON can cut one in two, and the other half is in the next chunk.
        cut = len(text) - 1 if "\ud800" <= text[-1:] <= "\udbff" else len(text)
        text, self._half = text[:cut], text[cut:]
        if text:
            yield from self._noted(self._splitter.feed(values.clean(text)))

    def _replace(self, whole: str) -> Iterator[Event]:
        self._splitter, self._half = ThinkSplitter(), ""
        had_text, had_thought = bool(self._shown), self._has_thought
        self._shown = []
        events = list(self._say(whole))
        if not had_thought:
            yield from (event for event in events if isinstance(event, ReasoningDelta))
        text = self.shown
        if had_text:
            yield TextReplaced(text)
        elif text:
            yield TextDelta(text)

    def _noted(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, TextDelta):
                self._shown.append(event.text)
            self._has_thought = self._has_thought or isinstance(event, ReasoningDelta)
            yield event


def _joined(pieces: Sequence[str]) -> str:
    try:
        return "".join(pieces)
    except TypeError:  # the service may send anything
        return "".join(piece for piece in pieces if isinstance(piece, str))
