"""What a function returned, as the text that the model reads."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
from collections.abc import Iterator, Mapping, Set
from itertools import islice
from typing import Any

from ipyperplexity.tabular.cells import clean_text
from ipyperplexity.tabular.excerpt import excerpt

#: Characters of one result: it is sent again in every further round, and paid for.
MAX_OUTPUT = 100_000
#: Items that are taken of a generator, which may have no end.
MAX_ITEMS = 10_000


def to_text(value: Any) -> str:
    """Return a function's result as text: JSON where it can be, a short table of a frame.

    Parameters
    ----------
    value : object
        Text is taken as it is, None is ``null``, an Answer its text with its sources; what JSON
        has nothing for is its ``str``.

    Returns
    -------
    str
        At most ``MAX_OUTPUT`` characters, and a note where more were cut off.

    Examples
    --------
    >>> to_text("as it is"), to_text(None), to_text({"day": dt.date(2026, 1, 5)})
    ('as it is', 'null', '{"day": "2026-01-05"}')
    """
    return capped(clean_text(_text(value)))


def capped(text: str) -> str:
    """Return a text of at most ``MAX_OUTPUT`` characters, with a note if it was cut."""
    if len(text) <= MAX_OUTPUT:
        return text
    return f"{text[:MAX_OUTPUT]}\n[cut here: {MAX_OUTPUT:,} of {len(text):,} characters]"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    if (document := _document(value)) is not None:
        return document
    if isinstance(value, Iterator):
        value = list(islice(value, MAX_ITEMS))
    if not isinstance(value, _JSON_TYPES):
        value = _simpler(value)
        if isinstance(value, str):
            return value
    try:
        return json.dumps(_with_text_keys(value), ensure_ascii=False, default=_simpler)
    except (TypeError, ValueError, RecursionError):  # it holds itself, or keys that are no text
        return str(value)


_JSON_TYPES = (dict, list, tuple, int, float, type(None))


def _document(value: Any) -> str | None:
    """Return a frame or an Answer as Markdown; None for all else."""
    if (table := excerpt(value)) is not None:
        return table
    is_ours = type(value).__module__.partition(".")[0] == "ipyperplexity"
    return str(value.to_markdown()) if is_ours and hasattr(value, "to_markdown") else None


def _with_text_keys(value: Any) -> Any:
    # A date or a tuple as a key is common in counts and groups, and no reason to give up on JSON.
    if type(value) is dict and not all(isinstance(key, str) for key in value):
        return {
            key if isinstance(key, str | int) else str(key): item for key, item in value.items()
        }
    return value


def _simpler(value: Any) -> Any:
    """Return what JSON can hold in place of a value, one level deep."""
    if (document := _document(value)) is not None:
        return document
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, type):
        return str(value)
    for method in _PLAIN_METHODS:
        if callable(plain := getattr(value, method, None)):
            return plain()
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return list(value)
    return str(value)


#: Of pydantic models, numpy's arrays and numbers, and our own tables.
_PLAIN_METHODS = ("model_dump", "tolist", "to_dicts")
