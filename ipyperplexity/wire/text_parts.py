"""Which text of an answer has been given out: each content part once, in whatever form it comes.

A part's text may come in pieces, whole (when the part is done, when its message is done, in the
final record), or both; its labels may be missing, null, or change on the way (official-api 4.3).
Labels decide where they agree. Where they do not, the text itself does: a whole text that begins
with all that still waits to be confirmed is that text, not a second one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ipyperplexity.wire import values

_Label = tuple[str | None, int | None, int | None]


class _Part:
    """One content part of one message."""

    __slots__ = ("confirmed", "content", "id", "index", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.confirmed = False  # its whole text has been seen
        self.id: str | None = None
        self.index: int | None = None
        self.content: int | None = None

    def is_other_than(self, label: _Label) -> bool:
        """Whether a label cannot be this part's, however labels change on the way."""
        id, index, content = label
        if id is not None and self.id is not None and id != self.id:
            return index is None or index != self.index  # at the same place it was renamed
        if index is not None and self.index is not None and index != self.index:
            return id is None
        return content is not None and self.content is not None and content != self.content

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class TextParts:
    """Keeps account of the text that was given out.

    Attributes
    ----------
    differs : bool
        Whether the service's whole text is another than what was given out.

    Examples
    --------
    >>> parts = TextParts()
    >>> parts.pieces({"item_id": "m"}).append("It ")
    >>> parts.rest({"item_id": "m"}, "It is."), parts.rest({"item_id": "m"}, "It is.")
    ('is.', '')
    """

    def __init__(self) -> None:
        self.differs = False
        self._parts: list[_Part] = []
        self._by_id: dict[tuple[str, int], _Part] = {}
        self._by_index: dict[tuple[int, int], _Part] = {}
        self._key: tuple[Any, Any, Any] | None = None
        self._current = _Part()
        self._disordered = False

    def pieces(self, message: Mapping[str, Any]) -> list[str]:
        """Return the list of pieces that a delta belongs to; append it there."""
        get = message.get
        key = (get("item_id"), get("output_index"), get("content_index"))
        if key != self._key:
            label = _label(message)
            part = self._labelled(label) or self._new()
            self._name(part, label)
            self._in_order(part)
            self._key, self._current = key, part
        return self._current.pieces

    def rest(self, message: Mapping[str, Any], text: str) -> str:
        """Return what of a part's whole text is new; it counts as given out from now on."""
        label = _label(message)
        part = self._labelled(label) or self._alike(text, label) or self._new()
        self._name(part, label)
        return self._tail(part, text)

    def final_rest(self, whole: Iterable[tuple[Mapping[str, Any], str]]) -> list[str]:
        """Return what is new in the final record, given each part's label and text, in order."""
        parts = list(whole)
        final = "".join(text for _, text in parts)
        given = "".join(part.text for part in self._parts)
        if not final:
            return []
        self.differs = self._disordered
        if not self._disordered:
            # The usual case, and safe however the parts are labelled: only the end is new.
            if final.startswith(given):
                return [final[len(given) :]]
            if given.startswith(final):
                return []
        self.differs = True
        rests: list[str] = []
        is_known = False
        for message, text in parts:
            label = _label(message)
            part = self._labelled(label) or self._alike(text, label)
            is_known = is_known or part is not None
            rests.append(self._tail(part, text) if part else text)
        self.differs = True
        # When nothing of it is known, it is most likely the same answer, told differently.
        return rests if is_known else []

    def _labelled(self, label: _Label) -> _Part | None:
        id, index, content = label
        if id is None and index is None:  # nothing says which: the one that is being written
            last = self._parts[-1] if self._parts else None
            return last if last and content in (None, last.content or 0) else None
        part = self._by_id.get((id, content or 0)) if id is not None else None
        if part is None and index is not None:
            part = self._by_index.get((index, content or 0))
            if part is not None and id is not None and part.id not in (None, id):
                return None
        return part

    def _alike(self, text: str, label: _Label) -> _Part | None:
        waiting = [part for part in self._parts if not part.confirmed]
        pending = "".join(part.text for part in waiting)
        if pending and (text.startswith(pending) or pending.startswith(text)):
            first, *others = waiting
            if self._parts[-len(waiting) :] == waiting:
                first.pieces = [pending]
                del self._parts[len(self._parts) - len(others) :]
                self._by_id = {k: first if p in others else p for k, p in self._by_id.items()}
                self._by_index = {k: first if p in others else p for k, p in self._by_index.items()}
                if self._current in others:
                    self._current = first
                return first
        same = (part for part in self._parts if part.confirmed and part.text == text)
        return next((part for part in same if not part.is_other_than(label)), None)

    def _new(self) -> _Part:
        part = _Part()
        self._parts.append(part)
        return part

    def _name(self, part: _Part, label: _Label) -> None:
        id, index, content = label
        part.content = content if part.content is None else part.content
        part.index = index if part.index is None else part.index
        if id is not None:
            self._by_id[id, content or 0] = part
            part.id = part.id or id
        if index is not None:
            self._by_index.setdefault((index, content or 0), part)

    def _tail(self, part: _Part, text: str) -> str:
        sent = part.text
        part.confirmed = True
        if text.startswith(sent):
            part.pieces = [text]
            if tail := text[len(sent) :]:
                self._in_order(part)
                return tail
        elif not sent.startswith(text):
            self.differs = True
        return ""

    def _in_order(self, part: _Part) -> None:
        if part is not self._parts[-1]:
            self._disordered = True


def _label(message: Mapping[str, Any]) -> _Label:
    id, index, content = (message.get(n) for n in ("item_id", "output_index", "content_index"))
    return (id if isinstance(id, str) and id else None, values.whole(index), values.whole(content))
