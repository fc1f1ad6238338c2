"""Columns to pandas and polars, with exact dtypes at any number of rows.

Invariant: each kind of column has one entry in each library's table, and nothing else decides a
dtype. A missing library is an ``ImportError`` that names the extra to install.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ipyperplexity.errors import MissingLibrary
from ipyperplexity.tabular.cells import Kind, days_since_epoch, microseconds_since_epoch

if TYPE_CHECKING:
    import pandas
    import polars

    from ipyperplexity.tabular.columns import Columns

# What numpy stores for "not a time".
_NOT_A_TIME = -(2**63)


def require(module: str, purpose: str, *, install: str) -> Any:
    """Import an optional library, or say how to install it.

    Raises
    ------
    ImportError
        The library is missing or does not load; the message names `install`.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingLibrary(
            f"{purpose} needs {module} ({error}). Install it: pip install {install}", name=module
        ) from error


# --- pandas ------------------------------------------------------------------------------------


def pandas_frame(columns: Columns) -> pandas.DataFrame:
    """See :meth:`Columns.to_pandas`."""
    pd = require("pandas", "to_pandas()", install='"ipyperplexity[pandas]"')
    arrays = {
        c.name: _PANDAS[c.kind](pd, columns.values[c.name], c.nullable) for c in columns.schema
    }
    index = pd.RangeIndex(columns.num_rows)
    frame: pandas.DataFrame = pd.DataFrame(arrays, index=index, copy=False)
    return frame


def _whole_numbers(dtype: str) -> Callable[[Any, Sequence[Any], bool], Any]:
    def build(pd: Any, cells: Sequence[Any], nullable: bool) -> Any:
        import numpy as np

        if not nullable:
            return np.array(cells, dtype=dtype)
        mask = [cell is None for cell in cells]
        numbers = [0 if cell is None else cell for cell in cells]
        return pd.arrays.IntegerArray(np.array(numbers, dtype=dtype), np.array(mask, dtype=bool))

    return build


def _numbers(_pd: Any, cells: Sequence[Any], _nullable: bool) -> Any:
    import numpy as np

    return np.array(cells, dtype="float64")  # numpy reads None as not-a-number


def _bools(pd: Any, cells: Sequence[Any], nullable: bool) -> Any:
    import numpy as np

    if not nullable:
        return np.array(cells, dtype=bool)
    mask = [cell is None for cell in cells]
    return pd.arrays.BooleanArray(np.array(cells, dtype=bool), np.array(mask, dtype=bool))


def _texts(pd: Any, cells: Sequence[Any], _nullable: bool) -> Any:
    if int(pd.__version__.partition(".")[0]) < 3:
        return _objects(pd, cells, _nullable)
    # pandas 3 keeps text in Arrow where pyarrow is installed, and loads it then; built as such, a
    # column takes half the time.
    pa = sys.modules.get("pyarrow")
    texts = list(cells) if pa is None else pa.array(cells, pa.large_string())
    return pd.array(texts, dtype="str")


def _objects(_pd: Any, cells: Sequence[Any], _nullable: bool) -> Any:
    import numpy as np

    # Filled afterwards: numpy would take lists of one length apart into a second dimension.
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array


def _lists(pd: Any, cells: Sequence[Any], nullable: bool) -> Any:
    import numpy as np

    array = np.empty(len(cells), dtype=object)
    for row, cell in enumerate(cells):
        array[row] = None if cell is None else list(cell)
    return array


def _dates(_pd: Any, cells: Sequence[Any], _nullable: bool) -> Any:
    import numpy as np

    pa = sys.modules.get("pyarrow")
    if pa is not None:  # a third of the time
        return pa.array(cells, pa.date32()).to_numpy(zero_copy_only=False).astype("datetime64[us]")
    days = np.array(days_since_epoch(cells, _NOT_A_TIME), dtype="int64")
    return days.view("datetime64[D]").astype("datetime64[us]")


def _timestamps(pd: Any, cells: Sequence[Any], _nullable: bool) -> Any:
    import numpy as np

    instants = np.array(microseconds_since_epoch(cells, _NOT_A_TIME), dtype="int64")
    return pd.DatetimeIndex(instants.view("datetime64[us]")).tz_localize("UTC")


_PANDAS: dict[Kind, Callable[[Any, Sequence[Any], bool], Any]] = {
    "int32": _whole_numbers("int32"),
    "int64": _whole_numbers("int64"),
    "float64": _numbers,
    "bool": _bools,
    "str": _texts,
    "date": _dates,
    "timestamp": _timestamps,
    "str_list": _lists,
    "int32_list": _lists,
}


# --- polars ------------------------------------------------------------------------------------


def polars_frame(columns: Columns) -> polars.DataFrame:
    """See :meth:`Columns.to_polars`."""
    pl = require("polars", "to_polars()", install='"ipyperplexity[polars]"')
    series = []
    for column in columns.schema:
        stored, final, prepare = _POLARS[column.kind](pl)
        made = pl.Series(column.name, prepare(columns.values[column.name]), dtype=stored)
        series.append(made if stored is final else made.cast(final))
    frame: polars.DataFrame = pl.DataFrame(series)
    return frame


# For each kind: the dtype to build from plain values, the dtype to end with, and what to build
# from. Dates and times go in as whole numbers: faster, and free of time zone look-ups.
_POLARS: dict[Kind, Callable[[Any], tuple[Any, Any, Callable[[Sequence[Any]], Sequence[Any]]]]] = {
    "int32": lambda pl: (pl.Int32, pl.Int32, list),
    "int64": lambda pl: (pl.Int64, pl.Int64, list),
    "float64": lambda pl: (pl.Float64, pl.Float64, list),
    "bool": lambda pl: (pl.Boolean, pl.Boolean, list),
    "str": lambda pl: (pl.String, pl.String, list),
    "date": lambda pl: (pl.Int32, pl.Date, days_since_epoch),
    "timestamp": lambda pl: (pl.Int64, pl.Datetime("us", "UTC"), microseconds_since_epoch),
    "str_list": lambda pl: _same(pl.List(pl.String)),
    "int32_list": lambda pl: _same(pl.List(pl.Int32)),
}


def _same(dtype: Any) -> tuple[Any, Any, Callable[[Sequence[Any]], Sequence[Any]]]:
    return dtype, dtype, list
