"""Columns to Arrow: a ``pyarrow.Table``, and the PyCapsule stream by whichever library is there.

Invariant: all makers give the same fields, types and values. Text is ``string`` and lists are
``list``, except that polars writes its own layouts of the same (``string_view``, ``large_list``);
every field is nullable. A library that is loaded already is preferred to one that is not, since
importing pyarrow costs 100 ms.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

from ipyperplexity.errors import MissingLibrary
from ipyperplexity.tabular.cells import Kind, days_since_epoch, microseconds_since_epoch
from ipyperplexity.tabular.frames import polars_frame, require

if TYPE_CHECKING:
    import pyarrow

    from ipyperplexity.tabular.columns import Columns

_INSTALL = '"ipyperplexity[arrow]"'


def arrow_stream(columns: Columns, requested_schema: object | None = None) -> object:
    """The table as an Arrow C stream in a PyCapsule.

    Parameters
    ----------
    columns : Columns
        The table.
    requested_schema : PyCapsule, optional
        An Arrow schema that the consumer would like; followed where the maker can cast.

    Returns
    -------
    PyCapsule
        Named ``arrow_array_stream``; good for one reading.

    Raises
    ------
    ImportError
        None of pyarrow, polars and nanoarrow is installed.

    Examples
    --------
    >>> import polars as pl
    >>> from ipyperplexity.tabular.columns import Column, Columns
    >>> pl.DataFrame(Columns([Column("id", "int32")], {"id": [1]})).dtypes
    [Int32]
    """
    loaded = [maker for module, maker in _IF_LOADED if module in sys.modules]
    for maker in (*loaded, _by_nanoarrow, _by_pyarrow, _by_polars):
        try:
            return maker(columns, requested_schema)
        except ImportError:
            continue
    raise MissingLibrary(
        "an Arrow stream needs nanoarrow, pyarrow or polars. "
        f"Install the smallest: pip install {_INSTALL}",
        name="nanoarrow",
    )


def _by_pyarrow(columns: Columns, requested_schema: object | None) -> object:
    return pyarrow_table(columns).__arrow_c_stream__(requested_schema)


def _by_polars(columns: Columns, requested_schema: object | None) -> object:
    return polars_frame(columns).__arrow_c_stream__(requested_schema)


def _by_nanoarrow(columns: Columns, requested_schema: object | None) -> object:
    # nanoarrow casts nothing; by the PyCapsule rules a consumer checks what it gets.
    na = require("nanoarrow", "an Arrow stream", install=_INSTALL)
    return na.c_array_stream(_nanoarrow_struct(na, columns)).__arrow_c_stream__()


_IF_LOADED: tuple[tuple[str, Callable[[Columns, object | None], object]], ...] = (
    ("pyarrow", _by_pyarrow),
    ("polars", _by_polars),
)


# --- pyarrow -----------------------------------------------------------------------------------


def pyarrow_table(columns: Columns) -> pyarrow.Table:
    """See :meth:`Columns.to_arrow`."""
    pa = require("pyarrow", "to_arrow()", install=f"{_INSTALL} pyarrow")
    types = {c.name: _PYARROW[c.kind](pa) for c in columns.schema}
    arrays = [_pyarrow_array(pa, columns.values[c.name], types[c.name]) for c in columns.schema]
    return pa.Table.from_arrays(arrays, schema=pa.schema(types.items()))


def _pyarrow_array(pa: Any, cells: Sequence[Any], type_: Any) -> Any:
    if pa.types.is_timestamp(type_):
        return pa.array(microseconds_since_epoch(cells), pa.int64()).cast(type_)
    return pa.array(cells, type_)


_PYARROW: dict[Kind, Callable[[Any], Any]] = {
    "int32": lambda pa: pa.int32(),
    "int64": lambda pa: pa.int64(),
    "float64": lambda pa: pa.float64(),
    "bool": lambda pa: pa.bool_(),
    "str": lambda pa: pa.string(),
    "date": lambda pa: pa.date32(),
    "timestamp": lambda pa: pa.timestamp("us", tz="UTC"),
    "str_list": lambda pa: pa.list_(pa.string()),
    "int32_list": lambda pa: pa.list_(pa.int32()),
}


# --- nanoarrow: the buffers of the Arrow columnar format, made here ------------------------------


def _nanoarrow_struct(na: Any, columns: Columns) -> Any:
    children = {c.name: _NANOARROW[c.kind](na, columns.values[c.name]) for c in columns.schema}
    schema = na.struct({name: child.schema for name, child in children.items()})
    return na.c_array_from_buffers(
        schema, columns.num_rows, [None], null_count=0, children=children.values()
    )


def _bitmap(flags: Sequence[bool]) -> bytes:
    # Least significant bit first, in whole bytes; one conversion instead of a loop over bits.
    digits = "".join("1" if flag else "0" for flag in reversed(flags))
    return int(digits or "0", 2).to_bytes((len(flags) + 7) // 8, "little")


def _validity(cells: Sequence[Any]) -> tuple[bytes | None, int]:
    missing = sum(cell is None for cell in cells)
    return (_bitmap([cell is not None for cell in cells]) if missing else None), missing


def _fixed_width(
    type_of: Callable[[Any], Any], code: str, numbers: Callable[[Sequence[Any]], Sequence[Any]]
) -> Callable[[Any, Sequence[Any]], Any]:
    def build(na: Any, cells: Sequence[Any]) -> Any:
        validity, missing = _validity(cells)
        data = array(code, (0 if number is None else number for number in numbers(cells)))
        return na.c_array_from_buffers(type_of(na), len(cells), [validity, data], missing)

    return build


def _bits(na: Any, cells: Sequence[Any]) -> Any:
    validity, missing = _validity(cells)
    return na.c_array_from_buffers(na.bool_(), len(cells), [validity, _bitmap(cells)], missing)


def _offsets(lengths: Sequence[int]) -> array[int]:
    return array("i", chain((0,), accumulate(lengths)))


def _strings(na: Any, cells: Sequence[Any]) -> Any:
    validity, missing = _validity(cells)
    encoded = [b"" if cell is None else cell.encode() for cell in cells]
    offsets = _offsets([len(piece) for piece in encoded])
    buffers = [validity, offsets, b"".join(encoded)]
    return na.c_array_from_buffers(na.string(), len(cells), buffers, missing)


def _lists(
    item_type: Callable[[Any], Any], build_items: Callable[[Any, Sequence[Any]], Any]
) -> Callable[[Any, Sequence[Any]], Any]:
    def build(na: Any, cells: Sequence[Any]) -> Any:
        validity, missing = _validity(cells)
        items = build_items(na, tuple(chain.from_iterable(cell or () for cell in cells)))
        offsets = _offsets([len(cell or ()) for cell in cells])
        return na.c_array_from_buffers(
            na.list_(item_type(na)), len(cells), [validity, offsets], missing, children=[items]
        )

    return build


_int32 = _fixed_width(lambda na: na.int32(), "i", list)

_NANOARROW: dict[Kind, Callable[[Any, Sequence[Any]], Any]] = {
    "int32": _int32,
    "int64": _fixed_width(lambda na: na.int64(), "q", list),
    "float64": _fixed_width(lambda na: na.float64(), "d", list),
    "bool": _bits,
    "str": _strings,
    "date": _fixed_width(lambda na: na.date32(), "i", days_since_epoch),
    "timestamp": _fixed_width(
        lambda na: na.timestamp("us", timezone="UTC"), "q", microseconds_since_epoch
    ),
    "str_list": _lists(lambda na: na.string(), _strings),
    "int32_list": _lists(lambda na: na.int32(), _int32),
}
