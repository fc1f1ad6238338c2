"""Several rounds of one answer, told as one: its usage, its sources, its text.

The service numbers the sources of each round by itself, from 1. The last round keeps its numbers,
as it has most of the text and the model's own record; a source of an earlier round whose number is
taken gets one above all, and the markers in that round's text follow it. Numbers that nobody else
has stay. Invariant: every marker means the page that it meant when its round was written.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, replace
from typing import Any

from ipyperplexity.answer import Image, Usage
from ipyperplexity.citations import find_citations
from ipyperplexity.markup.markers import MAX_ID
from ipyperplexity.sources import Source, Sources
from ipyperplexity.wire.renumbering import renumbered


@dataclass(frozen=True)
class _Round:
    text: str
    sources: Sources
    cited: frozenset[int]


class Rounds:
    """The rounds before the one that runs.

    Attributes
    ----------
    count : int
        How many there are.
    usage : Usage
        What they took together.
    images : tuple of Image
        All that they found.
    start : int
        Where in the whole text that of the running round begins, in code points.

    Examples
    --------
    >>> rounds = Rounds()
    >>> one = Sources([Source(1, "A", "https://a.example")])
    >>> rounds.end("It is A.[1]", one, (), Usage(total_tokens=10))
    >>> two = Sources([Source(1, "B", "https://b.example")])
    >>> [source.title for source in rounds.sources(two)]
    ['B', 'A']
    >>> rounds.settle("It is A.[1] And B.[1]", two)
    'It is A.[2] And B.[1]'
    """

    def __init__(self) -> None:
        self.usage = Usage()
        self.images: tuple[Image, ...] = ()
        self._earlier: list[_Round] = []
        self._is_settled = False
        self.start = 0

    @property
    def count(self) -> int:
        return len(self._earlier)

    def end(self, whole: str, sources: Sources, images: tuple[Image, ...], usage: Usage) -> None:
        """End a round: all text so far, its own sources and images, and what it took."""
        text, self.start = whole[self.start :], len(whole)
        cited = frozenset(c.id for c in find_citations(text, sources) if c.id is not None)
        self._earlier.append(_Round(text, sources, cited))
        self.images = self.all_images(images)
        self.usage = self.total(usage)

    def total(self, usage: Usage) -> Usage:
        """Return what all rounds took, given what the last one did."""
        sums: dict[str, Any] = {
            field.name: _sum(getattr(self.usage, field.name), getattr(usage, field.name))
            for field in dataclasses.fields(Usage)
        }
        return Usage(**sums)

    def all_images(self, images: tuple[Image, ...]) -> tuple[Image, ...]:
        """Return the images of all rounds, given those of the last one."""
        return tuple({image.url: image for image in (*self.images, *images)}.values())

    def sources(self, last: Sources) -> Sources:
        """Return the sources of all rounds, given those of the last one."""
        return self._placed(last)[0] if self._earlier else last

    def settle(self, whole: str, last: Sources) -> str:
        """Return the whole text with its markers numbered as :meth:`sources` is, once and for all.

        Parameters
        ----------
        whole : str
            All text as it came.
        last : Sources
            The last round's own.
        """
        if not self._earlier or self._is_settled:
            return whole
        self._is_settled = True
        moves = self._placed(last)[1]
        texts: list[str] = []
        n_fetched = [len(last._fetched)]
        for earlier in reversed(self._earlier):
            n_fetched.append(n_fetched[-1] + len(earlier.sources._fetched))
        for index, earlier in enumerate(self._earlier):
            shift = n_fetched[len(self._earlier) - 1 - index]
            texts.append(renumbered(earlier.text, moves[index], shift))
        rest, self.start = whole[self.start :], sum(map(len, texts))
        return "".join((*texts, rest))

    def _placed(self, last: Sources) -> tuple[Sources, list[dict[int, int]]]:
        """Return all sources, and for each earlier round the numbers that changed."""
        table = {source.id: source for source in last}
        homes = {source.url: source.id for source in reversed(list(last)) if source.url}
        unnumbered, fetched = set(last._unnumbered), [*last._fetched]
        moves: list[dict[int, int]] = []
        free = _FreeNumbers([last, *(earlier.sources for earlier in self._earlier)])
        # The later a round is, the more right it has to its numbers.
        for earlier in reversed(self._earlier):
            moved = _place(earlier, table, homes, unnumbered, free)
            moves.insert(0, moved)
            fetched += [moved.get(id, id) for id in earlier.sources._fetched]
        items = [table[id] for id in sorted(table)]
        return Sources(items, fetched=fetched, unnumbered=unnumbered), moves


class _FreeNumbers:
    """Counts on from the highest number that a marker can have."""

    def __init__(self, tables: list[Sources]) -> None:
        self._taken = {source.id for table in tables for source in table}
        self._last = max((id for id in self._taken if id <= MAX_ID), default=0)

    def take(self) -> int:
        self._last += 1
        while self._last in self._taken:
            self._last += 1
        return self._last


def _place(
    earlier: _Round,
    table: dict[int, Source],
    homes: dict[str, int],
    unnumbered: set[int],
    free: _FreeNumbers,
) -> dict[int, int]:
    moved: dict[int, int] = {}
    for source in earlier.sources:
        there = table.get(source.id)
        if there is not None and (there.url or there.title) == (source.url or source.title):
            continue
        id = source.id
        if there is not None:
            id = homes.get(source.url) or free.take()
            moved[source.id] = id
        if id not in table:
            table[id] = replace(source, id=id)
            if source.url:
                homes.setdefault(source.url, id)
            # A number of ours that no text of its round has is meant by no marker.
            if source.id in earlier.sources._unnumbered or (
                id != source.id and source.id not in earlier.cited
            ):
                unnumbered.add(id)
    return moved


def _sum(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return one if other is None else other
    return one + other
