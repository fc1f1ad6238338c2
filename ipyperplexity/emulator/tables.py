"""The tables of a text: found, read, and written again as Markdown.

Invariant: every row of a table has as many cells as its header, a cell is one tidy line, and what
is written is a GFM table whatever the cells hold.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .prose import tidy

__all__ = ["Table", "take_tables"]

Cells = list[str]


@dataclass(frozen=True)
class Table:
    """A table with its header.

    Attributes
    ----------
    header
        Names of the columns; ``""`` for one without a name.
    rows
        The cells, row by row.

    Examples
    --------
    >>> Table(("model", "r2"), (("ridge", "0.83"),)).sentences
    ('model ridge — r2: 0.83.',)
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """Each row in words, with the names of its columns: what a search can find."""
        return tuple(self._in_words(row) for row in self.rows)

    @property
    def text(self) -> str:
        """All rows in words, one on a line."""
        return "\n".join(self.sentences)

    def _in_words(self, row: Sequence[str]) -> str:
        first = f"{self.header[0]} {row[0]}".strip()
        rest = [
            (f"{name}: {cell}" if name else cell).rstrip(".")
            for name, cell in zip(self.header[1:], row[1:], strict=True)
            if cell
        ]
        words = " — ".join(part for part in (first, "; ".join(rest)) if part)
        return words if words.endswith((".", "!", "?")) else f"{words}."

    def markdown(self, number: int, rows: Iterable[int] | None = None) -> str:
        r"""Write a GFM table whose rows end with the marker ``[number]``.

        Parameters
        ----------
        number
            Id of the source.
        rows
            Which rows to write, by position; None for all.

        Examples
        --------
        >>> print(Table(("sign", "name"), (("`|`", "or"),)).markdown(2))
        | sign | name |
        | --- | --- |
        | `\|` | or [2] |
        """
        chosen = range(len(self.rows)) if rows is None else rows
        lines = [_line(self.header), _line(["---"] * len(self.header))]
        for at in chosen:
            *before, last = self.rows[at]
            lines.append(_line([*before, f"{last} [{number}]".strip()]))
        return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    escaped = (cell.replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def take_tables(text: str, *, quotes_are_code: bool = False) -> tuple[str, tuple[Table, ...]]:
    """Take the tables out of plain text or Markdown: with pipes, reST grids, simple reST tables.

    Parameters
    ----------
    text
        The body of one section.
    quotes_are_code
        See :func:`~ipyperplexity.emulator.prose.tidy`.

    Returns
    -------
    tuple
        The text without them, and the tables in their order.
    """
    lines = text.splitlines()
    kept: list[str] = []
    tables: list[Table] = []
    fenced = False
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.lstrip().startswith(("```", "~~~")) and set(line.strip()) != {"~"}:
            fenced = not fenced
        found = None if fenced else _read(lines, at)
        table = found and _table(found[0], quotes_are_code)
        if found and table:
            tables.append(table)
            # A rule in its place ends the paragraph or example before it, and is no prose.
            kept += ["", line[: len(line) - len(line.lstrip())] + "|", ""]
            at = found[1]
        else:
            kept.append(line)
            at += 1
    return "\n".join(kept), tuple(tables)


def _read(lines: Sequence[str], at: int) -> tuple[list[Cells], int] | None:
    """Return the raw rows of the table that starts at a line, and where it ends."""
    for reader in _READERS:
        found = reader(lines, at)
        if found is not None:
            return found
    return None


_NOTE = re.compile(r"(?:\([\d,]+\))*")
_NUMBERED = re.compile(r"\[(\d[\d, –-]*)\](?!\()")


def _table(rows: list[Cells], quotes_are_code: bool) -> Table | None:
    width = len(rows[0])
    tidied = [
        [_cell(cell, quotes_are_code) for cell in [*row, *[""] * width][:width]] for row in rows
    ]
    body = [row for row in tidied[1:] if any(row)]
    # A column of nothing but references to notes says nothing without them.
    keep = [
        column
        for column in range(width)
        if not all(_NOTE.fullmatch(row[column].replace(" ", "")) for row in body)
    ]
    if not body or not keep:
        return None
    header, *cells = (tuple(row[column] for column in keep) for row in [tidied[0], *body])
    return Table(header, tuple(cells))


def _cell(written: str, quotes_are_code: bool) -> str:
    text = tidy(written, quotes_are_code=quotes_are_code)
    # A number in brackets would be read as a marker of the answer.
    return text if "`" in text else _NUMBERED.sub(r"(\1)", text)


_DELIMITER = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")


def _pipe_cells(line: str) -> Cells:
    line = line.strip().removeprefix("|")
    if line.endswith("|") and not line.endswith("\\|"):
        line = line[:-1]
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)]


def _read_pipes(lines: Sequence[str], at: int) -> tuple[list[Cells], int] | None:
    below = lines[at + 1] if at + 1 < len(lines) else ""
    if "|" not in lines[at] or "|" not in below or not _DELIMITER.fullmatch(below):
        return None
    rows = [_pipe_cells(lines[at])]
    if len(rows[0]) != len(_pipe_cells(below)):
        return None
    end = at + 2
    while end < len(lines) and "|" in lines[end]:
        rows.append(_pipe_cells(lines[end]))
        end += 1
    return rows, end


_GRID = re.compile(r"\s*\+(?:-+\+)+\s*")
_RULE = frozenset("+|-=")


def _read_grid(lines: Sequence[str], at: int) -> tuple[list[Cells], int] | None:
    if not _GRID.fullmatch(lines[at]):
        return None
    edges = [place for place, sign in enumerate(lines[at]) if sign == "+"]
    rows: list[Cells] = []
    held: list[Cells] = []
    headed = False
    end = at + 1
    while end < len(lines) and lines[end].lstrip()[:1] in ("+", "|"):
        line = lines[end].rstrip()
        if set(line.strip()) <= _RULE and len(line.strip()) > 2:
            if held:
                rows.append([" ".join(parts).strip() for parts in zip(*held, strict=True)])
            held = []
            headed = headed or "=" in line
        elif all(line[edge : edge + 1] == "|" for edge in edges):
            pairs = itertools.pairwise(edges)
            held.append([line[left + 1 : right].strip() for left, right in pairs])
        else:
            # A cell over several columns or rows: no table of equal rows.
            return None
        end += 1
    if held or not rows:
        return None
    # Without a rule of "=" a grid has no header.
    return (rows if headed else [[""] * len(rows[0]), *rows]), end


_SIMPLE = re.compile(r"\s*=+(?: +=+)+\s*")


def _read_simple(lines: Sequence[str], at: int) -> tuple[list[Cells], int] | None:
    if not _SIMPLE.fullmatch(lines[at]):
        return None
    starts = [run.start() for run in re.finditer("=+", lines[at])]
    rows: list[Cells] = []
    rules = 1
    end = at + 1
    while end < len(lines) and lines[end].strip():
        line = lines[end]
        end += 1
        if _SIMPLE.fullmatch(line):
            rules += 1
            if rules == 3 or end == len(lines) or not lines[end].strip():
                return (rows, end) if len(rows) > 1 else None
            continue
        ends = [*starts[1:], len(line)]
        cells = [line[left:right].strip() for left, right in zip(starts, ends, strict=True)]
        if cells[0] or not rows:
            rows.append(cells)
        else:
            # A blank first cell goes on with the row above.
            rows[-1] = [f"{old} {new}".strip() for old, new in zip(rows[-1], cells, strict=True)]
    return None


_READERS: tuple[Callable[[Sequence[str], int], tuple[list[Cells], int] | None], ...] = (
    _read_grid,
    _read_pipes,
    _read_simple,
)
