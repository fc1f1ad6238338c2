"""Cells as aligned lines of text, for a terminal."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence

from ipyperplexity.markup.links import one_line

#: Columns of a terminal that a line takes at most.
MAX_WIDTH = 180


def aligned(
    heads: Sequence[str], rows: Iterable[Sequence[object]], widths: Sequence[int]
) -> list[str]:
    r"""Return a line for the heads and one for each row; no control character is in them.

    Parameters
    ----------
    heads : sequence of str
        Names of the columns.
    rows : iterable of sequences
        Cells; None is empty.
    widths : sequence of int
        For each column, how many columns of a terminal it has at most; what is longer is cut.

    Examples
    --------
    >>> aligned(["row", "error"], [[12, "too\nslow"]], [6, 6])
    ['row  error', '12   too s…']
    """
    from ipyperplexity.markup import terminal

    table = [
        [
            terminal.fit(one_line(terminal.strip_controls(cell_text(cell))), most)
            for cell, most in zip(row, widths, strict=True)
        ]
        for row in (heads, *rows)
    ]
    taken = [max(map(terminal.display_width, cells)) for cells in zip(*table, strict=True)]
    return [
        terminal.fit(
            "  ".join(
                cell + " " * (width - terminal.display_width(cell))
                for cell, width in zip(row, taken, strict=True)
            ).rstrip(),
            MAX_WIDTH,
        )
        for row in table
    ]


def cell_text(cell: object) -> str:
    """Return a value in words, for people.

    Examples
    --------
    >>> [cell_text(cell) for cell in (None, True, 1932, 0.004, ("a", "b"))]
    ['', 'yes', '1932', '0.004', 'a, b']
    """
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, tuple | list):
        return ", ".join(map(cell_text, cell))
    if isinstance(cell, dt.datetime):
        return f"{cell.astimezone():%Y-%m-%d %H:%M}"  # as the clock on the wall here shows it
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
