"""A value of a table as people read it, to be put into a question."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from ipyperplexity.markup.terminal import strip_controls
from ipyperplexity.tabular.cells import clean_text

_FORMATTED_AS_SUCH = (int, float, Decimal, dt.date, dt.time)
#: Whole floats from here on are written with an exponent.
_LARGE = 1e21
#: What ends a line in other programs, such as Excel's cells.
_LINE_ENDS = str.maketrans(dict.fromkeys("\x0b\x0c\x85\u2028\u2029", "\n"))


def value_text(value: Any) -> str:
    r"""Return a value in words.

    Parameters
    ----------
    value : object
        A plain Python value (:func:`ipyperplexity.tabular.plain_values.plain_value`). Within
        lists and dicts, what is missing is left out.

    Returns
    -------
    str
        Without control characters; line ends are ``\n``.

    Raises
    ------
    Exception
        Whatever the value's own ``str()`` raises; UnicodeDecodeError for bytes that are no text.

    Examples
    --------
    >>> import datetime as dt
    >>> [value_text(value) for value in (3.0, True, dt.date(2024, 3, 1), ["a", None, 2.5])]
    ['3', 'yes', '2024-03-01', 'a, 2.5']
    """
    return _printable(_text(value, nested=False))


def formatted(value: Any, spec: str) -> str:
    """Return a value written by a format specification; text and lists are formatted as text.

    Raises
    ------
    ValueError
        The specification is not one for such a value.

    Examples
    --------
    >>> formatted(2, ".2f"), formatted("Montana", ".3")
    ('2.00', 'Mon')
    """
    as_text = isinstance(value, bool) or not isinstance(value, _FORMATTED_AS_SUCH)
    return _printable(format(value_text(value) if as_text else value, spec))


def _printable(text: str) -> str:
    return strip_controls(clean_text(text).translate(_LINE_ENDS))


def _text(value: Any, *, nested: bool) -> str:
    for kind, write in _WRITERS:
        if isinstance(value, kind):
            return write(value)
    if isinstance(value, Mapping):
        pairs = (
            f"{_text(name, nested=True)}: {_text(item, nested=True)}"
            for name, item in value.items()
            if item is not None
        )
        text = ", ".join(pairs)
        return f"{{{text}}}" if nested else text
    if isinstance(value, list | tuple):
        text = ", ".join(_text(item, nested=True) for item in value if item is not None)
        return f"[{text}]" if nested else text
    return str(value)


def _float(value: float) -> str:
    if value.is_integer() and abs(value) < _LARGE:
        return str(int(value))
    return f"{value:.15g}"  # 0.1 + 0.2 is 0.3


def _decimal(value: Decimal) -> str:
    # A digit for each power of ten, unless that makes a text of its own.
    return f"{value:f}" if value.is_finite() and abs(value.adjusted()) < 50 else str(value)


def _datetime(value: dt.datetime) -> str:
    if value.tzinfo is None and value.time() == dt.time():
        return value.date().isoformat()  # pandas has no other dates
    return value.isoformat(sep=" ")


#: Kind -> how it is written. A bool is an int, and a datetime a date: the special ones come first.
_WRITERS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (str, str),
    (bool, lambda value: "yes" if value else "no"),
    (int, str),
    (float, _float),
    (Decimal, _decimal),
    (dt.datetime, _datetime),
    (dt.date, dt.date.isoformat),
    (bytes, bytes.decode),
)
