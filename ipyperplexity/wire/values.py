"""Values out of JSON that may hold anything: each is read as what it should be, or as nothing.

Python's JSON reader lets through what nothing else can hold: halves of surrogate pairs (which no
file and no notebook can store), infinite numbers, and integers beyond every table's columns.
"""

from __future__ import annotations

import json
import math
from typing import Any

_INT64 = 2**63


def parse(text: str) -> Any:
    """Return the JSON value in ``text``; None if it is no JSON, or nested too deep."""
    try:
        return clean(json.loads(text))
    except (ValueError, RecursionError):
        return None


def clean(value: Any) -> Any:
    """Return a JSON value with a replacement character for each half of a surrogate pair."""
    if isinstance(value, str):
        if value.isascii():
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [clean(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    return value


def items(value: Any) -> list[Any]:
    """Return a list as it is, and an empty one for anything else."""
    return value if isinstance(value, list) else []


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list."""
    return [item for item in items(value) if isinstance(item, dict)]


def text(value: Any) -> str:
    """Return a text as it is, and an empty one for anything else."""
    return value if isinstance(value, str) else ""


def whole(value: Any, below: int = _INT64) -> int | None:
    """Return a whole number of less than ``below``, or None."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -below < value < below:
        return None
    return value


def amount(value: Any) -> float | None:
    """Return a finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
