"""A frame as a short Markdown table for a prompt: its shape, its dtypes, its first rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

MAX_ROWS = 20
MAX_COLUMNS = 20
MAX_CELL = 80


@dataclass(frozen=True)
class _Head:
    """The first rows of a table of ``shape`` rows and columns; an index comes as columns, too."""

    shape: tuple[int, int]
    columns: list[tuple[str, str]]  # names and dtypes
    rows: list[tuple[Any, ...]]


def excerpt(value: Any) -> str | None:
    """Return a capped Markdown table of a frame or series, or None if ``value`` is neither.

    pandas, polars and pyarrow objects are known by their faces; none of them is imported.

    Examples
    --------
    >>> excerpt("no frame") is None
    True
    """
    read = _READERS.get(type(value).__module__.partition(".")[0])
    head = read(value) if read else None
    return _table(head) if head is not None else None


def _pandas(value: Any) -> _Head | None:
    if hasattr(value, "to_frame") and not hasattr(value, "columns"):
        value = value.to_frame(value.name if value.name is not None else "value")
    if not hasattr(value, "itertuples"):
        return None
    head = value.head(MAX_ROWS)
    columns = [(_name(name), str(dtype)) for name, dtype in zip(head, head.dtypes, strict=True)]
    rows = list(head.itertuples(index=False, name=None))
    if not _counts_rows(value.index):
        # What the rows are about is often in the index: after groupby, pivot, set_index.
        levels = [head.index.get_level_values(n) for n in range(head.index.nlevels)]
        names = ["index" if level.name is None else str(level.name) for level in levels]
        dtypes = [f"index, {level.dtype}" for level in levels]
        columns = [*zip(names, dtypes, strict=True), *columns]
        rows = [(*labels, *row) for *labels, row in zip(*levels, rows, strict=True)]
    return _Head(value.shape, columns, rows)


def _name(name: Any) -> str:
    return " ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _counts_rows(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex" and index.name is None


def _polars(value: Any) -> _Head | None:
    if hasattr(value, "to_frame") and not hasattr(value, "columns"):
        value = value.to_frame()
    if not hasattr(value, "iter_rows"):
        return None
    dtypes = map(str, value.dtypes)
    return _Head(
        value.shape, list(zip(value.columns, dtypes, strict=True)), value.head(MAX_ROWS).rows()
    )


def _pyarrow(value: Any) -> _Head | None:
    if not (hasattr(value, "schema") and hasattr(value, "num_columns")):
        return None
    # By column, not `to_pylist()`: a dict holds only one of two columns of the same name.
    columns = [column.to_pylist() for column in value.slice(0, MAX_ROWS).columns]
    return _Head(
        (value.num_rows, value.num_columns),
        [(field.name, str(field.type)) for field in value.schema],
        list(zip(*columns, strict=True)),
    )


_READERS: dict[str, Callable[[Any], _Head | None]] = {
    "pandas": _pandas,
    "geopandas": _pandas,
    "polars": _polars,
    "pyarrow": _pyarrow,
}


def _table(head: _Head) -> str:
    n_rows, n_columns = head.shape
    n_shown = min(len(head.columns), MAX_COLUMNS)
    names = [f"{_cell(name)} ({dtype})" for name, dtype in head.columns[:n_shown]]
    title = f"Table of {_count(n_rows, 'row')} x {_count(n_columns, 'column')}"
    n_left_out = {"more row": n_rows - len(head.rows), "more column": len(head.columns) - n_shown}
    left_out = [_count(n, what) for what, n in n_left_out.items() if n > 0]
    if left_out:
        title += f" (the first of them; {' and '.join(left_out)} left out)"
    lines = [
        _row(names),
        "|" + " --- |" * n_shown,
        *(_row(_cell(cell) for cell in row[:n_shown]) for row in head.rows),
    ]
    return "\n".join([f"{title}:", "", *lines])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _cell(value: Any) -> str:
    text = " ".join(str(value).split()).replace("|", "\\|")
    return text if len(text) <= MAX_CELL else text[: MAX_CELL - 3] + "..."
