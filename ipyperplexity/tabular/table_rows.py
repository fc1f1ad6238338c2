"""Any table or list as rows: one mapping of plain Python values each.

Invariant: all rows of a table have the same names, and hold values as
:mod:`ipyperplexity.tabular.plain_values` makes them, whatever library they come from.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.tabular.columns import Columns
from ipyperplexity.tabular.framed import Framed
from ipyperplexity.tabular.library_columns import VALUE, Ways, find_columns, later, refusal
from ipyperplexity.tabular.plain_values import plain_column, plain_value


class Row(Mapping[str, Any]):
    """One row: a mapping that cannot be changed, and takes half of a dict's memory."""

    __slots__ = ("_places", "_values")

    def __init__(self, places: Mapping[str, int], values: tuple[Any, ...]) -> None:
        self._places = places  # one mapping for all rows
        self._values = values

    def __getitem__(self, name: str) -> Any:
        return self._values[self._places[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return repr(dict(self))


@dataclass(frozen=True, eq=False)
class TableRows:
    """A table held by rows.

    Attributes
    ----------
    rows : tuple of mappings
        One mapping a row, all with the same names; what is missing is None.
    columns : tuple of str
        Names in order; after those of a pandas object the names of its index levels.
    index : pandas.Index or None
        Of a pandas object: what to join back by.
    kind : str
        ``"pandas"``, ``"polars"``, ``"arrow"``, ``"narwhals"`` or ``"items"``.
    """

    rows: tuple[Mapping[str, Any], ...] = field(repr=False)
    columns: tuple[str, ...]
    index: Any = field(default=None, repr=False)
    kind: str = "items"

    def __len__(self) -> int:
        return len(self.rows)


def read_rows(data: Any) -> TableRows:
    """Return the rows of a table or of a list.

    Parameters
    ----------
    data : frame, Series, array or iterable
        Of pandas (the named levels of its index count as columns), polars, Arrow, duckdb, numpy
        (one dimension), of a library that narwhals reads if that is installed, or a table of this
        package. Of an iterable each item is a row: a dict, a dataclass, a tuple (columns ``"0"``,
        ``"1"`` ..., or its field names), or any other value (column ``"value"``). Items may
        differ: what one has not is None. It is read once, to its end.

    Returns
    -------
    TableRows

    Raises
    ------
    InvalidRequestError
        It is no table or list, it is lazy, or two columns share a name.
    ImportError
        It can only be read as an Arrow stream, and no library is installed that reads one.

    Examples
    --------
    >>> table = read_rows([{"company": "Lego", "year": 1932}, {"company": "Bosch"}])
    >>> table.columns
    ('company', 'year')
    >>> table.rows[1]
    {'company': 'Bosch', 'year': None}
    """
    if isinstance(data, Framed):
        data = data._columns()
    if isinstance(data, Columns):
        return _table("items", [(name, later(data.column, name)) for name in data.names])
    found = find_columns(data)
    if found is None:
        return _from_items(data)
    return _table(found.kind, found.columns, found.n_rows, found.index)


def _table(
    kind: str, columns: Sequence[tuple[str, Ways]], n_rows: int = 0, index: Any = None
) -> TableRows:
    names = tuple(name for name, _ in columns)
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InvalidRequestError(
            f"data: more than one column is named {', '.join(map(repr, twice[:5]))}.",
            field="data",
            hint="Rename one of them, or leave it out.",
        )
    cells = [_cells(name, ways) for name, ways in columns]
    places = {name: place for place, name in enumerate(names)}
    values: Iterable[tuple[Any, ...]] = zip(*cells, strict=True) if cells else ((),) * n_rows
    return TableRows(tuple(Row(places, row) for row in values), names, index, kind)


def _cells(name: str, ways: Ways) -> Sequence[Any]:
    problem = ""
    for way in ways:
        try:
            return plain_column(way())
        except Exception as error:
            problem = problem or f"{type(error).__name__}: {str(error)[:200]}"
    raise InvalidRequestError(
        f"data: column {name!r} cannot be read ({problem}).",
        field="data",
        hint="Turn it into text or numbers, or leave it out.",
    )


# --- iterables -----------------------------------------------------------------------------------


def _from_items(data: Any) -> TableRows:
    if isinstance(data, str | bytes | bytearray | memoryview):
        what = "one text" if isinstance(data, str) else "bytes"
        raise refusal(what, "Put one text into a list; ask() asks a single question.")
    if isinstance(data, Mapping):
        raise refusal(
            "one dict",
            "Put one row into a list; make a table of columns a frame: pandas.DataFrame(data).",
        )
    items: Iterator[Any] | None = None
    with contextlib.suppress(TypeError):
        items = iter(data)
    if items is None:
        raise refusal(f"a value of type {type(data).__name__}")
    if isinstance(data, io.TextIOBase):
        items = (line.rstrip("\r\n") for line in items)
    records = [_record(item) for item in items]
    names = dict.fromkeys(chain.from_iterable(r for r in records if r is not None))
    if not names and any(record is None for record in records):
        names = {VALUE: None}
    columns = [(name, later(_column_of, records, name)) for name in names]
    return _table("items", columns, len(records))


def _column_of(records: Sequence[Mapping[str, Any] | None], name: str) -> list[Any]:
    return [None if record is None else record.get(name) for record in records]


def _record(item: Any) -> Mapping[str, Any] | None:
    """Return the columns of an item; None if it is missing."""
    if isinstance(item, str):
        return {VALUE: item}
    if isinstance(item, Mapping):
        return _with_text_keys(item)
    if isinstance(item, Sequence) and (fields := getattr(item, "_fields", None)):
        return dict(zip(fields, item, strict=True))  # a namedtuple, a row of a database
    if isinstance(item, tuple | list):
        return {str(place): value for place, value in enumerate(item)}
    if isinstance(fields := getattr(type(item), "model_fields", None), Mapping):
        return {name: getattr(item, name) for name in fields}  # a model of pydantic
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return {f.name: getattr(item, f.name) for f in dataclasses.fields(item)}
    if callable(getattr(type(item), "keys", None)):  # sqlite3.Row
        return {str(name): item[name] for name in item.keys()}  # noqa: SIM118
    value = plain_value(item)
    if isinstance(value, dict):  # a record of numpy, a struct of Arrow
        return value
    return None if value is None else {VALUE: value}


def _with_text_keys(item: Mapping[Any, Any]) -> Mapping[str, Any]:
    if set(map(type, item)) <= {str}:
        return item
    named = {str(name): value for name, value in item.items()}
    if len(named) < len(item):
        twice = next(n for n, times in Counter(map(str, item)).items() if times > 1)
        raise InvalidRequestError(
            f"data: a row has more than one value for {twice!r}.", field="data"
        )
    return named
