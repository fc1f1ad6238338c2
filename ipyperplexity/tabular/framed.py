"""What every object with a table in it can do: the frame conversions, once.

A class says what its table is (``_columns``); the rest follows. Such a class is deliberately not
an ``abc.Sequence`` and has no ``__dataframe__``: frame libraries then take it through the Arrow
stream, with exact types, also when it is empty.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING, Any, overload

from ipyperplexity.tabular import files
from ipyperplexity.tabular.columns import Columns, arrow_stream
from ipyperplexity.tabular.files import FilePath

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Framed:
    """Mixin for objects that are a table: pandas, polars, Arrow, duckdb and ibis take them."""

    def _columns(self) -> Columns:
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas frame: same columns and dtypes at any number of rows.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return self._columns().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return a polars frame.

        Raises
        ------
        ImportError
            If polars is not installed.
        """
        return self._columns().to_polars()

    def to_arrow(self) -> pyarrow.Table:
        """Return a pyarrow table.

        Raises
        ------
        ImportError
            If pyarrow is not installed.
        """
        return self._columns().to_arrow()

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dict a row."""
        return self._columns().to_dicts()

    @overload
    def to_csv(self, path: None = None) -> str: ...
    @overload
    def to_csv(self, path: FilePath) -> None: ...
    def to_csv(self, path: FilePath | None = None) -> str | None:
        """Return the table as CSV in UTF-8, or write it to a file.

        Dates are ISO 8601, lists are JSON, a missing value is empty. Text that a spreadsheet would
        run as a formula gets an apostrophe in front.

        Parameters
        ----------
        path : path, optional
            File to write, whole or not at all; without one the text is returned.
        """
        return files.hand_over(files.csv_text(self._columns()), path)

    @overload
    def to_json(self, path: None = None) -> str: ...
    @overload
    def to_json(self, path: FilePath) -> None: ...
    def to_json(self, path: FilePath | None = None) -> str | None:
        """Return the table as a JSON list with one object a row, or write it to a file.

        Parameters
        ----------
        path : path, optional
            File to write, whole or not at all; without one the text is returned.
        """
        return files.hand_over(files.json_text(self._columns()), path)

    def to_parquet(self, path: FilePath) -> None:
        """Write the table to a Parquet file; reading it back gives the column types of to_arrow().

        Raises
        ------
        ImportError
            If neither pyarrow nor polars is installed.
        """
        files.write_parquet(self._columns(), path)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Give the table to any Arrow consumer (the Arrow PyCapsule interface)."""
        return arrow_stream(self._columns(), requested_schema)


# polars 1 iterates over what is not Sized, before it looks for an Arrow stream, and so would guess
# the types. Those of these objects that have no len() are only registered: nothing else asks.
Sized.register(Framed)
