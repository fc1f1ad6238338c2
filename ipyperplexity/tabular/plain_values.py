"""Cells of any library to plain Python values, for those who read a table row by row.

Invariant: what is missing (NaN, NaT, NA, masked) is ``None``; numbers, texts, dates, times and
lists are those of Python, also within lists and dicts; what has no such form (a period, a UUID)
stays as it is. No library is imported: their values are recognized by what they can do.
"""

from __future__ import annotations

import datetime as dt
import enum
import operator
from collections import deque
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

#: Levels of lists within lists that are looked into; a list may even hold itself.
_MAX_DEPTH = 20
_MISSING = frozenset({"NAType", "NaTType", "MaskedConstant"})
_PLAIN = frozenset({type(None), str, int, bool, bytes, dt.date, dt.datetime, dt.time, dt.timedelta})
#: Units of numpy that are finer than the microseconds of Python.
_FINER = frozenset({"ns", "ps", "fs", "as"})


def plain_column(cells: Sequence[Any]) -> Sequence[Any]:
    """Return all values of a column in their plain form.

    Examples
    --------
    >>> plain_column([1.5, float("nan"), None])
    [1.5, None, None]
    """
    kinds = set(map(type, cells))
    # Nearly every column holds plain values already: one pass at C speed tells.
    if kinds <= _PLAIN:
        return cells
    if kinds <= _PLAIN | {float}:
        return [None if cell != cell else cell for cell in cells]
    return [plain_value(cell) for cell in cells]


def plain_value(value: Any, _depth: int = 0) -> Any:
    """Return a value in its plain form.

    Parameters
    ----------
    value : object
        Of numpy, pandas, Arrow or Python. Times lose what is finer than a microsecond; a set
        becomes a list in one order, whatever the process.

    Returns
    -------
    object
        ``None`` if it is missing.

    Examples
    --------
    >>> plain_value((1, float("nan"), {"b", "a"}))
    [1, None, ['a', 'b']]
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, enum.Enum):
        return plain_value(value.value, _depth + 1)
    if type(value).__name__ in _MISSING:
        return None
    if getattr(value, "ndim", None) == 0 and hasattr(value, "dtype") and hasattr(value, "item"):
        return _of_numpy(value, _depth)
    if isinstance(value, str | int | float | Decimal):
        return _scalar(value)
    if isinstance(value, dt.datetime | dt.timedelta):
        return _of_pandas(value)
    if callable(as_py := getattr(value, "as_py", None)):  # Arrow's
        return plain_value(as_py(), _depth + 1)
    items = _items(value)
    if items is None:
        return value
    if _depth >= _MAX_DEPTH:
        return "..."
    if isinstance(items, Mapping):
        return {str(name): plain_value(item, _depth + 1) for name, item in items.items()}
    return [plain_value(item, _depth + 1) for item in items]


def numpy_cells(array: Any) -> Sequence[Any]:
    """Return the values of a numpy array of one dimension; missing ones may be NaN.

    Numbers of 32 bits become the decimal that they are written as: 0.1, not 0.10000000149.
    """
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "f" and size < 8:
        cells: list[Any] = array.astype(str).astype(float).tolist()
    elif kind == "f" and size > 8:
        cells = array.astype(float).tolist()
    elif kind in "Mm":
        array = _in_microseconds(array)
        cells = array.tolist()
        if int in set(map(type, cells)):  # what Python's own dates cannot hold
            cells = [
                str(array[row]) if type(cell) is int else cell for row, cell in enumerate(cells)
            ]
    else:
        cells = array.tolist()
    return cells


def _in_microseconds(times: Any) -> Any:
    unit = times.dtype.str[3:].strip("[]").lstrip("0123456789")
    return times.astype(f"{times.dtype.kind}8[us]") if unit in _FINER else times


def _of_numpy(value: Any, depth: int) -> Any:
    kind = getattr(value.dtype, "kind", "")
    if kind in ("M", "m"):
        value = _in_microseconds(value)
        plain = value.item()
        return str(value) if type(plain) is int else plain
    if kind == "f":
        # numpy's own str() is the shortest decimal of a number of 32 bits.
        return _scalar(float(str(value)))
    names = getattr(value.dtype, "names", None)
    plain = value.item()
    if names:
        plain = dict(zip(names, plain, strict=True))
    # A number that Python has none for, such as numpy.clongdouble, gives itself.
    return value if type(plain) is type(value) else plain_value(plain, depth + 1)


def _of_pandas(value: Any) -> Any:
    """Return a Timestamp or Timedelta as Python's; other subclasses of those stay."""
    try:
        if hasattr(value, "to_pydatetime"):
            return value.to_pydatetime(warn=False)  # not of the nanoseconds, which get lost
        return value.to_pytimedelta() if hasattr(value, "to_pytimedelta") else value
    except (ValueError, OverflowError):
        return str(value)  # a year that Python has not


def _scalar(value: Any) -> Any:
    """Return a number or text, also of a subclass, as Python's own."""
    if isinstance(value, str):
        # A subclass may print itself differently from what it holds.
        return str.__str__(value)
    if isinstance(value, int):
        return operator.index(value)
    if isinstance(value, Decimal):
        return None if value.is_nan() else value
    return None if value != value else float(value)


def _items(value: Any) -> Mapping[Any, Any] | Sequence[Any] | None:
    if isinstance(value, Mapping | list | tuple | deque):
        return value
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    # Arrays and series within cells; a frame would give the names of its columns.
    if hasattr(value, "__array__") and hasattr(value, "__iter__") and not hasattr(value, "columns"):
        return list(value)
    return None
