"""Markers of a text that follow their sources when those get other numbers."""

from __future__ import annotations

from collections.abc import Mapping

from ipyperplexity.markup.markers import find_markers


def renumbered(text: str, numbers: Mapping[int, int], shift: int = 0) -> str:
    """Return a text whose markers name the same sources by their new numbers.

    Parameters
    ----------
    text : str
    numbers : mapping
        Old number -> new one; a number that is not in it stays.
    shift : int
        By how much the places of fetched pages (``[web:0]``) grow.

    Examples
    --------
    >>> renumbered("One.[2] Two.[1, 2, 3] Read.[web:0]", {2: 1}, 4)
    'One.[1] Two.[1, 3] Read.[web:4]'
    """
    if not numbers and not shift:
        return text
    pieces: list[str] = []
    at = 0
    for marker in find_markers(text):
        if marker.web is not None and shift:
            new = f"[web:{marker.web + shift}]"
        elif any(id in numbers for id in marker.ids):
            # Two numbers of one page become one.
            ids = dict.fromkeys(numbers.get(id, id) for id in marker.ids)
            new = f"[{', '.join(map(str, ids))}]"
        else:
            continue
        pieces += [text[at : marker.start], new]
        at = marker.end
    return "".join((*pieces, text[at:]))
