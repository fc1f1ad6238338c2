"""An attribute of our own on the frames and series of pandas and polars."""

from __future__ import annotations

import sys
from typing import Any


def register_accessor(name: str, accessor: type) -> None:
    """Make ``frame.NAME`` return ``accessor(frame)``, for the libraries that are loaded.

    Registering again does nothing.

    Parameters
    ----------
    name : str
    accessor : type
        Called with the frame or series.
    """
    for library, register in (("pandas", _on_pandas), ("polars", _on_polars)):
        if library in sys.modules:
            register(sys.modules[library], name, accessor)


def _on_pandas(pd: Any, name: str, accessor: type) -> None:
    for kind, register in (
        (pd.DataFrame, pd.api.extensions.register_dataframe_accessor),
        (pd.Series, pd.api.extensions.register_series_accessor),
    ):
        if not hasattr(kind, name):
            register(name)(accessor)


def _on_polars(pl: Any, name: str, accessor: type) -> None:
    for kind, register in (
        (pl.DataFrame, pl.api.register_dataframe_namespace),
        (pl.Series, pl.api.register_series_namespace),
    ):
        if not hasattr(kind, name):
            register(name)(accessor)
