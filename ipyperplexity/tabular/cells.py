"""Cell values of a column: checked, and brought to the one form that every frame library takes.

Invariant: what :func:`clean_column` returns holds only ``None`` and plain Python values of the
column's kind (``int``, ``float``, ``bool``, ``str`` without lone surrogates, ``date``, ``datetime``
in UTC, tuples). Every frame and every Arrow stream is built from these, so none can differ from
another. Nothing is imported here: values of numpy and pandas are recognized by what they can do.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, time
from typing import Any, Literal

from ipyperplexity.errors import InvalidRequestError

Kind = Literal[
    "int32", "int64", "float64", "bool", "str", "date", "timestamp", "str_list", "int32_list"
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


def clean_text(text: str) -> str:
    r"""Text that UTF-8 can carry.

    Two surrogates that make a pair become their character (a stream may cut between them), a lone
    one becomes U+FFFD. Everything else, also NUL, stays.

    Examples
    --------
    >>> clean_text("a\ud83d\ude00b\ud83d")
    'a😀b�'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_column(
    name: str, kind: Kind, values: Iterable[Any], *, nullable: bool
) -> tuple[Any, ...]:
    """Check all values of a column and bring them to their plain Python form.

    Parameters
    ----------
    name : str
        Name of the column, for messages.
    kind : Kind
        What the column holds.
    values : iterable
        ``None`` and the missing values of numpy and pandas become ``None``.
    nullable : bool
        Whether a value may be missing.

    Returns
    -------
    tuple
        As many values as were given.

    Raises
    ------
    InvalidRequestError
        A value is of another kind, does not fit in 32 or 64 bits, or is missing and may not be.

    Examples
    --------
    >>> clean_column("id", "int32", [1, 2.0, None], nullable=True)
    (1, 2, None)
    """
    cells = tuple(values)
    present = set(map(type, cells))
    if not nullable and type(None) in present:
        raise _refusal(name, cells.index(None), None, kind)
    # Nearly every column holds plain values already: one pass at C speed tells.
    if present <= _PLAIN.get(kind, _NEVER_PLAIN) and _WITHIN_BOUNDS[kind](cells):
        return cells
    clean = _CLEANERS[kind]
    result: list[Any] = []
    for row, value in enumerate(cells):
        try:
            cell = None if _is_missing(value, kind) else clean(value)
        except (TypeError, ValueError, OverflowError):
            raise _refusal(name, row, value, kind) from None
        if cell is None and not nullable:
            raise _refusal(name, row, value, kind)
        result.append(cell)
    return tuple(result)


def days_since_epoch(values: Iterable[date | None], missing: int | None = None) -> list[Any]:
    """Whole days since 1970-01-01 of each date; `missing` where there is none."""
    return [missing if v is None else v.toordinal() - _EPOCH_ORDINAL for v in values]


def microseconds_since_epoch(
    values: Iterable[datetime | None], missing: int | None = None
) -> list[Any]:
    """Microseconds since 1970-01-01T00:00Z of each aware time; `missing` where there is none."""
    result: list[Any] = []
    for value in values:
        if value is None:
            result.append(missing)
        else:
            since = value - _EPOCH
            result.append((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)
    return result


# --- one cell ----------------------------------------------------------------------------------


def _integer(bits: int) -> Callable[[Any], int]:
    lowest, highest = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def clean(value: Any) -> int:
        whole = int(value) if hasattr(value, "is_integer") and value.is_integer() else value
        number = int(operator.index(whole))
        if not lowest <= number <= highest:
            raise OverflowError(number)
        return number

    return clean


def _float(value: Any) -> float:
    if isinstance(value, (str, bytes, bytearray)):
        raise TypeError("text is not a number")
    return float(value)


def _bool(value: Any) -> bool:
    if isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b":
        return bool(value)
    raise TypeError("not a bool")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    # A subclass (numpy's, an enum's) may print itself differently from what it holds.
    return clean_text(value if type(value) is str else str.__str__(value))


def _date(value: Any) -> date:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return date(value.year, value.month, value.day)
    day = value.astype("datetime64[D]").item() if hasattr(value, "astype") else value
    if not isinstance(day, date):
        raise TypeError("not a date")
    return day


def _timestamp(value: Any) -> datetime:
    if hasattr(value, "astype"):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime):
        aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        if type(aware) is datetime:
            return aware
        # A pandas Timestamp is a datetime with nanoseconds.
        return datetime.combine(aware.date(), aware.time(), UTC)
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    raise TypeError("not a time")


def _list_of(clean: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    def clean_list(value: Any) -> tuple[Any, ...]:
        if isinstance(value, (str, bytes)):
            raise TypeError("text is not a list")
        return tuple(None if item is None else clean(item) for item in value)

    return clean_list


_CLEANERS: dict[Kind, Callable[[Any], Any]] = {
    "int32": _integer(32),
    "int64": _integer(64),
    "float64": _float,
    "bool": _bool,
    "str": _text,
    "date": _date,
    "timestamp": _timestamp,
    "str_list": _list_of(_text),
    "int32_list": _list_of(_integer(32)),
}


def _is_missing(value: Any, kind: Kind) -> bool:
    if value is None:
        return True
    name = type(value).__name__
    if name in {"NAType", "NaTType"}:
        return True
    if kind == "float64":
        return False  # there, not-a-number is a value
    return name.startswith(("float", "datetime64")) and bool(value != value)


# --- a whole column at once ----------------------------------------------------------------------


def _all_within(bits: int) -> Callable[[Sequence[Any]], bool]:
    bound = 2 ** (bits - 1)

    def within(cells: Sequence[Any]) -> bool:
        try:
            return not cells or (-bound <= min(cells) and max(cells) < bound)
        except TypeError:  # None is among them
            numbers = [cell for cell in cells if cell is not None]
            return not numbers or (-bound <= min(numbers) and max(numbers) < bound)

    return within


def _all_encodable(cells: Sequence[Any]) -> bool:
    text = "".join(filter(None, cells))
    try:
        # Most columns are ASCII, and that is known without encoding them.
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _always(_cells: Sequence[Any]) -> bool:
    return True


_NEVER_PLAIN: frozenset[type] = frozenset()
_PLAIN: dict[Kind, frozenset[type]] = {
    "int32": frozenset({int, type(None)}),
    "int64": frozenset({int, type(None)}),
    "float64": frozenset({float, type(None)}),
    "bool": frozenset({bool, type(None)}),
    "str": frozenset({str, type(None)}),
    "date": frozenset({date, type(None)}),
}
_WITHIN_BOUNDS: dict[Kind, Callable[[Sequence[Any]], bool]] = {
    "int32": _all_within(32),
    "int64": _all_within(64),
    "float64": _always,
    "bool": _always,
    "str": _all_encodable,
    "date": _always,
    "timestamp": _always,
    "str_list": _always,
    "int32_list": _always,
}
_ALLOWED: dict[Kind, str] = {
    "int32": "whole numbers of 32 bits",
    "int64": "whole numbers of 64 bits",
    "float64": "numbers",
    "bool": "True and False",
    "str": "text",
    "date": "dates",
    "timestamp": "dates with a time",
    "str_list": "lists of text",
    "int32_list": "lists of whole numbers of 32 bits",
}


def _refusal(name: str, row: int, value: Any, kind: Kind) -> InvalidRequestError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    given = "nothing" if value is None else shown
    return InvalidRequestError(
        f"column {name!r} holds {_ALLOWED[kind]}; row {row} has {given}", field=name
    )
