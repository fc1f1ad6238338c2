"""A ``<think>`` block at the start of an answer's text becomes reasoning, on any wire.

Models that show their thinking put it there, and a stream may cut the tag anywhere. A literal
``<think>`` later in the text is text. Nothing is ever dropped but the two tags and the blanks
around them.
"""

from __future__ import annotations

from ipyperplexity.events import Event, ReasoningDelta, TextDelta

_OPEN = "<think>"
_CLOSE = "</think>"


class ThinkSplitter:
    """Splits a growing text into reasoning and answer.

    Examples
    --------
    >>> splitter = ThinkSplitter()
    >>> splitter.feed("<thi"), splitter.feed("nk>Hm.</think>Yes")
    ([], [ReasoningDelta(text='Hm.'), TextDelta(text='Yes')])
    """

    def __init__(self) -> None:
        self._held = ""
        self._state = "start"
        #: True once all further text is answer, so that a caller may skip :meth:`feed`.
        self.passthrough = False

    def feed(self, text: str) -> list[Event]:
        """Take the next piece of text and return what can be said for sure."""
        if self.passthrough:
            return [TextDelta(text)] if text else []
        self._held += text
        events: list[Event] = []
        if self._state == "start":
            opening = self._held.lstrip()
            if opening.startswith(_OPEN):
                self._state, self._held = "thinking", opening[len(_OPEN) :].lstrip()
            elif _OPEN.startswith(opening):
                return events  # blanks, or the beginning of a tag: wait
            else:
                return self._as_text(self._held)
        if self._state == "thinking":
            thought, closed, rest = self._held.partition(_CLOSE)
            if not closed:
                keep = _overlap(self._held, _CLOSE)
                cut = len(self._held) - keep
                thought, self._held = self._held[:cut], self._held[cut:]
            if thought:
                events.append(ReasoningDelta(thought))
            if not closed:
                return events
            self._state, self._held = "after", rest
        text = self._held.lstrip()
        return events + (self._as_text(text) if text else [])

    def flush(self) -> list[Event]:
        """Return what was held back, at the end of the stream."""
        held, self._held = self._held, ""
        if not held or (self._state == "after" and not held.strip()):
            return []
        return [ReasoningDelta(held) if self._state == "thinking" else TextDelta(held)]

    def _as_text(self, text: str) -> list[Event]:
        self.passthrough, self._held = True, ""
        return [TextDelta(text)]


def _overlap(text: str, tag: str) -> int:
    """Length of the longest end of ``text`` that may be the beginning of ``tag``."""
    for size in range(min(len(text), len(tag) - 1), 0, -1):
        if tag.startswith(text[-size:]):
            return size
    return 0
