"""Plain values as a table of HTML: the display of anything that is a table of its own.

Invariant: every cell, heading and remark is escaped here, once.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from html import escape

from .links import one_line
from .pieces import cut, fold, note, wrap

#: Rows beyond which a table is folded.
FOLD_TABLE = 20
_CELL_LIMIT = 200
_SENTENCE = 30


def data_table(
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    total: int | None = None,
    label: str = "",
    row_heads: bool = False,
    notes: Sequence[str] = (),
    folded: bool = True,
) -> str:
    """Return plain values as a table: the display of anything that is a table of its own.

    Parameters
    ----------
    heads : sequence of str
        Names of the columns.
    rows : iterable of sequences
        Cells: text (cut to 200 characters), numbers (to the right), bools, times (those of the
        clock on the wall here), None (empty).
    total : int, optional
        How many rows there are in all, if more than those that are shown.
    label : str
        What the table holds, in a few words: stands below it, or on the fold of a long one.
    row_heads : bool
        Whether the first cell names its row.
    notes : sequence of str
        Remarks below, one line each.
    folded : bool
        Whether a long table starts folded.

    Examples
    --------
    >>> '<td class="pplx-right">1,200</td>' in data_table(["words"], [[1200]])
    True
    """
    body = [list(row) for row in rows]
    right = [
        any(_is_number(row[i]) for row in body)
        and all(row[i] is None or _is_number(row[i]) for row in body)
        for i in range(len(heads))
    ]
    side = [' class="pplx-right"' if is_right else "" for is_right in right]
    head = "".join(
        f'<th scope="col"{at}>{escape(one_line(name))}</th>'
        for name, at in zip(heads, side, strict=True)
    )
    lines = []
    for row in body:
        cells = [
            f"<td{_at(cell, at)}>{_cell(cell)}</td>" for cell, at in zip(row, side, strict=True)
        ]
        if row_heads:
            cells[0] = f'<th scope="row"{side[0]}>{_cell(row[0])}</th>'
        lines.append(f"<tr>{''.join(cells)}</tr>\n")
    table = (
        f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(lines)}</tbody>\n</table>\n"
    )
    is_long = len(body) > FOLD_TABLE
    hidden = (len(body) if total is None else total) - len(body)
    remarks = [
        *([f"... and {hidden:,} more; to_pandas() has all"] if hidden > 0 else []),
        *([label] if label and not is_long else []),
        *notes,
    ]
    if is_long:
        table = fold(table, one_line(label) or f"{len(body)} rows", folded=folded)
    return wrap(table + "".join(map(note, remarks)))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _at(value: object, side: str) -> str:
    if isinstance(value, dt.datetime):
        return ' class="pplx-day"'
    # Between short columns a sentence would be squeezed to a word a line.
    is_sentence = isinstance(value, str) and len(value) > _SENTENCE
    return ' class="pplx-sentence"' if is_sentence else side


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dt.datetime):
        return f"{value.astimezone():%Y-%m-%d %H:%M}"
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return escape(cut(one_line(text), _CELL_LIMIT))
