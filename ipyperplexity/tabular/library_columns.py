"""Columns of the objects of other libraries: pandas, polars, duckdb, pyarrow, numpy, Arrow streams.

Invariant: nothing is converted here, and no library is imported for an object that is not its own;
an Arrow stream is read by one that is loaded already, if there is one.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ipyperplexity.errors import InvalidRequestError, MissingLibrary
from ipyperplexity.tabular.plain_values import numpy_cells

#: The column of data that has none, such as a list of texts.
VALUE = "value"
#: How to get a column's cells: the first way that works counts.
Ways = tuple[Callable[[], Sequence[Any]], ...]


@dataclass(frozen=True)
class FoundColumns:
    """The columns of some table, not yet read.

    Attributes
    ----------
    kind : str
        See :class:`ipyperplexity.tabular.table_rows.TableRows`.
    columns : sequence of pairs
        Name and how to read it; names may occur twice.
    n_rows : int, optional
        Needed only where there are no columns.
    index : pandas.Index, optional
    """

    kind: str
    columns: Sequence[tuple[str, Ways]]
    n_rows: int = 0
    index: Any = None


def find_columns(data: Any) -> FoundColumns | None:
    """Return the columns of a library's table, or None if it is none.

    Raises
    ------
    InvalidRequestError
        It is lazy, of two dimensions without names, or of a library that is not known.
    ImportError
        It can only be read as an Arrow stream, and no library is installed that reads one.

    Examples
    --------
    >>> find_columns(["no table"]) is None
    True
    """
    if type(data).__module__.startswith("narwhals."):
        return find_columns(data.to_native())
    for module, read in _LIBRARIES:
        library = sys.modules.get(module)
        found = read(library, data) if library is not None else None
        if found is not None:
            return found
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return _from_arrow(data)
    return _from_narwhals(data)


def refusal(given: str, hint: str | None = None) -> InvalidRequestError:
    """Return the error that says what was given as data, and what is allowed."""
    return InvalidRequestError(
        f"data: got {given}; allowed: a frame, a Series, or a list of texts, dicts or tuples.",
        field="data",
        hint=hint,
    )


def later(call: Callable[..., Sequence[Any]], *arguments: Any) -> Ways:
    """Return the one way to read a column: this call."""
    return (lambda: call(*arguments),)


def column_name(name: Any) -> str:
    """Return a column's name as text; one of several levels becomes one of several words."""
    return " ".join(map(str, name)).strip() if isinstance(name, tuple) else str(name)


# --- libraries, by their own objects -------------------------------------------------------------


def _from_pandas(pd: Any, data: Any) -> FoundColumns | None:
    if isinstance(data, pd.Series):
        name = VALUE if data.name is None else column_name(data.name)
        columns = [(name, later(_pandas_cells, data))]
    elif isinstance(data, pd.DataFrame):
        columns = [(column_name(name), later(_pandas_cells, c)) for name, c in data.items()]
    else:
        return None
    taken = {name for name, _ in columns}
    for level, name in enumerate(data.index.names):
        # What the rows are about is often in the index: after groupby, pivot, set_index.
        if name is not None and column_name(name) not in taken:
            labels = data.index.get_level_values(level)
            columns.append((column_name(name), later(_pandas_cells, labels)))
    return FoundColumns("pandas", columns, n_rows=len(data), index=data.index)


def _pandas_cells(column: Any) -> Sequence[Any]:
    if type(column.dtype).__module__.startswith("numpy"):
        return numpy_cells(column.to_numpy())
    if str(column.dtype) == "Float32":
        return numpy_cells(column.to_numpy("float32", na_value=float("nan")))
    cells: list[Any] = column.tolist()
    return cells


def _from_polars(pl: Any, data: Any) -> FoundColumns | None:
    if isinstance(data, pl.LazyFrame):
        raise refusal("a polars LazyFrame", "Collect it first: data.collect().")
    if isinstance(data, pl.Series):
        return FoundColumns("polars", [(data.name or VALUE, _polars_ways(pl, data))])
    if not isinstance(data, pl.DataFrame):
        return None
    columns = [(column.name, _polars_ways(pl, column)) for column in data.get_columns()]
    return FoundColumns("polars", columns, n_rows=data.height)


def _polars_ways(pl: Any, column: Any) -> Ways:
    if column.dtype == pl.Float32:  # 0.1, not 0.10000000149
        return later(lambda: column.cast(pl.String).cast(pl.Float64).to_list())
    # As text, a time that Python cannot hold can still be read.
    return (column.to_list, lambda: column.cast(pl.String).to_list())


def _from_duckdb(duckdb: Any, data: Any) -> FoundColumns | None:
    if not isinstance(data, duckdb.DuckDBPyRelation):
        return None
    # Not its Arrow stream: these are Python's values, and need no library that reads one.
    rows = data.fetchall()
    cells = zip(*rows, strict=True) if rows else ((),) * len(data.columns)
    columns = [(name, later(list, c)) for name, c in zip(data.columns, cells, strict=True)]
    return FoundColumns("items", columns)


def _from_numpy(np: Any, data: Any) -> FoundColumns | None:
    if not isinstance(data, np.ndarray):
        return None
    if data.ndim != 1:
        hint = "Name its columns: pandas.DataFrame(array, columns=[...])."
        raise refusal(f"an array of {data.ndim} dimensions", hint if data.ndim == 2 else None)
    arrays = {name: data[name] for name in data.dtype.names or ()} or {VALUE: data}
    return FoundColumns("items", [(name, later(numpy_cells, a)) for name, a in arrays.items()])


def _from_pyarrow(pa: Any, data: Any) -> FoundColumns | None:
    if isinstance(data, pa.Array | pa.ChunkedArray):
        return FoundColumns("arrow", [(VALUE, _arrow_ways(pa, data))])
    if not isinstance(data, pa.Table | pa.RecordBatch):
        return None
    pairs = zip(data.schema.names, data.columns, strict=True)
    columns = [(name, _arrow_ways(pa, column)) for name, column in pairs]
    return FoundColumns("arrow", columns, n_rows=data.num_rows)


def _arrow_ways(pa: Any, column: Any) -> Ways:
    of = column.type
    if pa.types.is_float32(of):
        return later(lambda: column.cast(pa.string()).cast(pa.float64()).to_pylist())
    for is_kind, coarser in _ARROW_TIMES:
        if getattr(pa.types, is_kind)(of) and of.unit == "ns":
            # Without pandas, pyarrow refuses to lose the nanoseconds.
            return later(_cast_to_list, column, coarser(pa, of))
    return (column.to_pylist, lambda: [_if_readable(scalar) for scalar in column])


def _if_readable(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        return None  # a time that Python cannot hold


def _cast_to_list(column: Any, to: Any) -> list[Any]:
    cells: list[Any] = column.cast(to, safe=False).to_pylist()
    return cells


#: Types of Arrow that may be finer than Python's, and what they are read as.
_ARROW_TIMES: tuple[tuple[str, Callable[[Any, Any], Any]], ...] = (
    ("is_timestamp", lambda pa, of: pa.timestamp("us", tz=of.tz)),
    ("is_duration", lambda pa, of: pa.duration("us")),
    ("is_time64", lambda pa, of: pa.time64("us")),
)
_LIBRARIES: tuple[tuple[str, Callable[[Any, Any], FoundColumns | None]], ...] = (
    ("pandas", _from_pandas),
    ("polars", _from_polars),
    ("duckdb", _from_duckdb),
    ("pyarrow", _from_pyarrow),
    ("numpy", _from_numpy),
)


# --- objects of other libraries ------------------------------------------------------------------


def _from_arrow(data: Any) -> FoundColumns:
    for module in sorted(_STREAM_READERS, key=lambda module: module not in sys.modules):
        try:
            library = importlib.import_module(module)
        except ImportError:
            continue
        try:
            return _STREAM_READERS[module](library, data)
        except Exception as error:
            problem = f"{type(error).__name__}: {str(error)[:200]}"
        raise refusal(f"an Arrow stream that is no table ({problem})")
    raise MissingLibrary(
        "reading an Arrow stream needs pyarrow, polars or nanoarrow. "
        'Install the smallest: pip install "ipyperplexity[arrow]"',
        name="nanoarrow",
    )


def _stream_by_pyarrow(pa: Any, data: Any) -> FoundColumns:
    found = _from_pyarrow(pa, pa.table(data))
    assert found is not None
    return found


def _stream_by_polars(pl: Any, data: Any) -> FoundColumns:
    found = _from_polars(pl, pl.DataFrame(data))
    assert found is not None
    return dataclasses.replace(found, kind="arrow")


def _stream_by_nanoarrow(na: Any, data: Any) -> FoundColumns:
    array = na.ArrayStream(data).read_all()
    columns = [
        (child.name, later(array.child(place).to_pylist))
        for place, child in enumerate(array.schema.fields)
    ]
    return FoundColumns("arrow", columns, n_rows=len(array))


_STREAM_READERS: dict[str, Callable[[Any, Any], FoundColumns]] = {
    "pyarrow": _stream_by_pyarrow,
    "polars": _stream_by_polars,
    "nanoarrow": _stream_by_nanoarrow,
}


def _from_narwhals(data: Any) -> FoundColumns | None:
    columns = getattr(data, "columns", None)
    is_frame = columns is not None and not callable(columns)  # a method of what a database gives
    if not is_frame and not hasattr(data, "dtype"):
        return None
    try:
        nw: Any = importlib.import_module("narwhals")
        frame = nw.from_native(data, pass_through=True, allow_series=True)
    except ImportError:
        frame = data
    given = f"a {type(data).__name__} of {type(data).__module__.partition('.')[0]}"
    if frame is data:
        if not is_frame:
            return None  # an array, which can be iterated over
        raise refusal(given, "Turn it into a pandas or polars frame, or into a list.")
    if isinstance(frame, nw.LazyFrame):
        raise refusal(given, "Collect it first, with its collect() or compute().")
    if isinstance(frame, nw.Series):
        return FoundColumns("narwhals", [(frame.name or VALUE, later(frame.to_list))])
    return FoundColumns(
        "narwhals",
        [(name, later(frame[name].to_list)) for name in frame.columns],
        n_rows=len(frame),
    )
