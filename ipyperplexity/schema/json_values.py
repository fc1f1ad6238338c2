"""What a JSON value is: its types, the formats of its strings, and the choice among loaders.

Invariant: a number that passes here is finite, and a whole number has at most 64 bits, so that it
fits its column in a frame; true is no number.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from ipyperplexity.schema.mismatch import SchemaMismatch, closest, misfit, shown

Load = Callable[[Any, str], Any]  # (JSON value, path) -> Python value, or SchemaMismatch


# --- types -------------------------------------------------------------------------------------


def is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def is_integer(value: Any) -> bool:
    return is_number(value) and value == int(value) and -(2**63) <= value < 2**63


class JsonType(NamedTuple):
    phrase: str
    fits: Callable[[Any], bool]


TYPES: dict[str, JsonType] = {
    "string": JsonType("a string", lambda value: isinstance(value, str)),
    "integer": JsonType("a whole number of at most 64 bits", is_integer),
    "number": JsonType("a number", is_number),
    "boolean": JsonType("true or false", lambda value: isinstance(value, bool)),
    "null": JsonType("null", lambda value: value is None),
    "array": JsonType("a list", lambda value: isinstance(value, list)),
    "object": JsonType("an object", lambda value: isinstance(value, dict)),
}


def type_name(value: Any) -> str:
    """Return the name of the narrowest type of a JSON value."""
    return next(name for name, json_type in TYPES.items() if json_type.fits(value))


def require_type(name: str, value: Any, path: str) -> None:
    if not TYPES[name].fits(value):
        misfit(path, TYPES[name].phrase, value)


# --- formats of strings ------------------------------------------------------------------------


def to_date(text: str) -> dt.date:
    """Read an ISO date, also one that is written as its midnight."""
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        moment = dt.datetime.fromisoformat(text)
    if moment.time() != dt.time():
        raise ValueError("a time of day would be lost")
    return moment.date()


class StringFormat(NamedTuple):
    phrase: str
    convert: Callable[[str], Any]  # raises ValueError


FORMATS: dict[str, StringFormat] = {
    "date": StringFormat("an ISO date (YYYY-MM-DD)", to_date),
    "date-time": StringFormat("an ISO date and time", dt.datetime.fromisoformat),
}


def load_format(name: str, value: str, path: str) -> Any:
    try:
        return FORMATS[name].convert(value)
    except ValueError:
        misfit(path, FORMATS[name].phrase, value)


# --- choices -----------------------------------------------------------------------------------


def index_of(value: Any, choices: Sequence[Any], path: str) -> int:
    """Return which of the choices a value is."""
    for index, choice in enumerate(choices):
        # Python holds True == 1; JSON does not.
        if isinstance(value, bool) == isinstance(choice, bool) and value == choice:
            return index
    misfit(path, f"one of {', '.join(map(shown, choices))}", value)


def first_fit(loads: Iterable[Load], value: Any, path: str) -> Any:
    """Return what the first loader that takes the value makes of it."""
    misfits: list[SchemaMismatch] = []
    for load in loads:
        try:
            return load(value, path)
        except SchemaMismatch as error:
            misfits.append(error)
    best = closest(misfits)
    if best.path != path:
        raise best
    expected = " or ".join(m.reason.removeprefix("expected ").split(", found ")[0] for m in misfits)
    misfit(path, expected, value)
