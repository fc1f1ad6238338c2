"""A small immutable table held by columns, and its way into every frame library.

Invariant: the dtypes of every frame follow from the schema alone, never from the values, so that a
table of 0 rows has the same columns of the same types as one of a million. Frames are built from
whole columns, never row by row. pandas, polars and Arrow are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.tabular.arrow import arrow_stream, pyarrow_table
from ipyperplexity.tabular.cells import Kind, clean_column, clean_text
from ipyperplexity.tabular.frames import pandas_frame, polars_frame

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Column", "Columns", "Kind", "arrow_stream"]


@dataclass(frozen=True)
class Column:
    """Name and type of one column.

    Attributes
    ----------
    name : str
        Unique within a table.
    kind : Kind
        ``int32``, ``int64``, ``float64``, ``bool``, ``str``, ``date``, ``timestamp`` (aware UTC,
        microseconds), ``str_list`` or ``int32_list``.
    nullable : bool
        Whether values may be missing. Decides the pandas dtype of whole numbers and bools:
        ``Int32`` and ``boolean`` if so, ``int32`` and ``bool`` if not.

    Examples
    --------
    >>> Column("id", "int32", nullable=False)
    Column(name='id', kind='int32', nullable=False)
    """

    name: str
    kind: Kind
    nullable: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", clean_text(self.name))


@dataclass(frozen=True, init=False)
class Columns:
    """A table held by columns.

    Parameters
    ----------
    schema : iterable of Column
        The columns, in their order.
    values : mapping of str to iterable
        For each column its values; all of one length.

    Raises
    ------
    InvalidRequestError
        Two columns share a name, a column has no values, lengths differ, or a value does not fit
        its column.

    Examples
    --------
    >>> table = Columns([Column("id", "int32", nullable=False), Column("url", "str")],
    ...                 {"id": [1, 2], "url": ["https://a.org", None]})
    >>> table.num_rows
    2
    >>> table.to_dicts()[1]
    {'id': 2, 'url': None}
    """

    schema: tuple[Column, ...]
    values: dict[str, tuple[Any, ...]] = field(repr=False)

    def __init__(self, schema: Iterable[Column], values: Mapping[str, Iterable[Any]]) -> None:
        columns = tuple(schema)
        given = {clean_text(name): cells for name, cells in values.items()}
        names = [column.name for column in columns]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidRequestError(f"two columns are named {twice!r}", field=twice)
        if set(names) != set(given):
            odd = min(set(names) ^ set(given))
            raise InvalidRequestError(
                f"column {odd!r} is in {'the schema' if odd in names else 'the values'} only",
                field=odd,
            )
        cleaned = {
            c.name: clean_column(c.name, c.kind, given[c.name], nullable=c.nullable)
            for c in columns
        }
        lengths = {name: len(cells) for name, cells in cleaned.items()}
        if len(set(lengths.values())) > 1:
            raise InvalidRequestError(f"columns differ in length: {lengths}", field=names[-1])
        object.__setattr__(self, "schema", columns)
        object.__setattr__(self, "values", cleaned)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.values.values()), ()))

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.schema)

    def column(self, name: str) -> list[Any]:
        """All values of one column, as a new list.

        Raises
        ------
        KeyError
            There is no such column; the message lists those there are.
        """
        if name not in self.values:
            raise KeyError(f"no column {name!r}; there are {', '.join(self.names)}")
        return _python_values(self.values[name])

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dict a row, of plain Python values."""
        names = self.names
        columns = [_python_values(cells) for cells in self.values.values()]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas DataFrame.

        Dates are ``datetime64[us]`` (so that ``.dt`` works), times ``datetime64[us, UTC]``, text
        ``str`` (pandas 3) or ``object`` (pandas 2), lists ``object``.

        Raises
        ------
        ImportError
            pandas is not installed.
        """
        return pandas_frame(self)

    def to_polars(self) -> polars.DataFrame:
        """A polars DataFrame, with ``Int32``, ``Date``, ``Datetime("us", "UTC")``, ``List``.

        Raises
        ------
        ImportError
            polars is not installed.
        """
        return polars_frame(self)

    def to_arrow(self) -> pyarrow.Table:
        """A ``pyarrow.Table``; other Arrow libraries take the table itself, without pyarrow.

        Raises
        ------
        ImportError
            pyarrow is not installed.
        """
        return pyarrow_table(self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule stream, which polars, pyarrow, duckdb, ibis ... read."""
        return arrow_stream(self, requested_schema)


def _python_values(cells: tuple[Any, ...]) -> list[Any]:
    # Lists are kept as tuples here, so that nobody changes the table by changing a frame.
    return [list(cell) if isinstance(cell, tuple) else cell for cell in cells]
