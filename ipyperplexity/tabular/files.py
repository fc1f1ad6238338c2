"""Columns as a file: CSV, JSON and Parquet, and files that are written whole or not at all.

Invariant: every cell comes from the checked columns, so that a file says what the frames say; no
cell of a CSV starts a formula when a spreadsheet opens it; whoever looks at a path while it is
written, or after that failed, finds what was there before. A file gets the permissions that the
user's umask gives a document, and keeps those of the file whose place it takes.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ipyperplexity.errors import MissingLibrary
from ipyperplexity.tabular.arrow import pyarrow_table
from ipyperplexity.tabular.cells import Kind, clean_text
from ipyperplexity.tabular.frames import polars_frame, require

if TYPE_CHECKING:
    from ipyperplexity.tabular.columns import Columns

_T = TypeVar("_T")
FilePath: TypeAlias = "str | os.PathLike[str]"


@contextmanager
def replacing(path: FilePath) -> Iterator[Path]:
    """Give a new path to write to; when that has gone well, the file takes the place of `path`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     (Path(folder) / "a.txt").read_text()
    'whole'
    """
    given = Path(path).expanduser()
    if given.exists() and not given.is_file():
        yield given  # a pipe or a terminal cannot be replaced; a folder says so itself
        return
    target = given.resolve()  # a link stays a link, to a new file
    temporary = target.with_name(f".{os.urandom(6).hex()}.part")
    try:
        yield temporary
        if target.exists():
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: FilePath, text: str) -> None:
    """Write a file in UTF-8, its line breaks as they are, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(clean_text(text), encoding="utf-8", newline="")


def hand_over(text: str, path: FilePath | None) -> str | None:
    """Write the text to a file, or return it where no path is given."""
    if path is None:
        return text
    write_text(path, text)
    return None


# --- CSV ---------------------------------------------------------------------------------------

# Full-width signs start a formula in East Asian editions; blanks and marks before one do not help.
_FORMULA = re.compile(r"[\s\x00-\x1f\u200b-\u200f\ufeff]*[=+\-@＝＋－＠]|[\t\r\n]")
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
# A blank at either end is dropped by some readers.
_TO_QUOTE = re.compile(r'[",\r\n]|^\s|\s$')


def safe_cell(value: _T) -> _T | str:
    r"""Return a value that a spreadsheet will not run as a formula when it opens the CSV.

    Parameters
    ----------
    value : object
        Text that a spreadsheet could take for a formula gets an apostrophe in front. Numbers, also
        as text (``"-5"``), and all else stay as they are.

    Examples
    --------
    >>> safe_cell("=HYPERLINK(A1)"), safe_cell("-5.2"), safe_cell(-5.2)
    ("'=HYPERLINK(A1)", '-5.2', -5.2)
    """
    if not isinstance(value, str) or not _FORMULA.match(value) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"


def _csv_text(text: str) -> str:
    cell = str(safe_cell(text))
    # Quoted when empty, so that a reader can tell it from a missing value.
    return '"' + cell.replace('"', '""') + '"' if not cell or _TO_QUOTE.search(cell) else cell


def _json_list(items: tuple[Any, ...]) -> str:
    return _csv_text(json.dumps(items, ensure_ascii=False))


_CSV: dict[Kind, Callable[[Any], str]] = {
    "int32": str,
    "int64": str,
    "float64": repr,
    "bool": lambda flag: "true" if flag else "false",
    "str": _csv_text,
    "date": lambda day: str(day.isoformat()),
    "timestamp": lambda instant: str(instant.isoformat()),
    "str_list": _json_list,
    "int32_list": _json_list,
}


def csv_text(columns: Columns) -> str:
    r"""Return the table as CSV: RFC 4180 with ``\n`` line breaks, dates as ISO 8601.

    A missing value is empty, empty text is ``""``; bools are ``true`` and ``false``, lists JSON.

    Examples
    --------
    >>> from ipyperplexity.tabular.columns import Column, Columns
    >>> csv_text(Columns([Column("id", "int32"), Column("title", "str")],
    ...                  {"id": [1, None], "title": ["Salt, sand", "=A1"]}))
    'id,title\n1,"Salt, sand"\n,\'=A1\n'
    """
    written = [
        ["" if cell is None else _CSV[c.kind](cell) for cell in columns.values[c.name]]
        for c in columns.schema
    ]
    lines = [[_csv_text(name) for name in columns.names], *zip(*written, strict=True)]
    # Readers pass over a blank line: the one empty cell of a row has to be seen.
    return "".join(f"{','.join(line) or _BLANK_ROW}\n" for line in lines if line)


_BLANK_ROW = '""'


# --- JSON --------------------------------------------------------------------------------------


def json_text(columns: Columns) -> str:
    r"""Return the table as a JSON list of objects, one a line; dates as ISO 8601.

    Numbers that JSON does not have (not-a-number, infinities) are null.

    Examples
    --------
    >>> from ipyperplexity.tabular.columns import Column, Columns
    >>> json_text(Columns([Column("id", "int32")], {"id": [1, None]}))
    '[\n{"id": 1},\n{"id": null}\n]\n'
    """
    rows = [
        json.dumps({name: _finite(cell) for name, cell in row.items()}, **_JSON)
        for row in columns.to_dicts()
    ]
    return "[\n" + ",\n".join(rows) + "\n]\n" if rows else "[]\n"


_JSON: dict[str, Any] = {"ensure_ascii": False, "default": lambda day: day.isoformat()}


def _finite(cell: Any) -> Any:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


# --- Parquet -----------------------------------------------------------------------------------


def write_parquet(columns: Columns, path: FilePath) -> None:
    """Write the table as a Parquet file, with the column types of :meth:`Columns.to_arrow`.

    Raises
    ------
    ImportError
        Neither pyarrow nor polars is installed.
    """
    loaded = [write for module, write in _PARQUET.items() if module in sys.modules]
    with replacing(path) as temporary:
        for write in (*loaded, *_PARQUET.values()):
            try:
                return write(columns, temporary)
            except ImportError:
                continue
        raise MissingLibrary(
            "to_parquet() needs pyarrow or polars. Install one: "
            'pip install "ipyperplexity[polars]", or pip install pyarrow',
            name="pyarrow",
        )


def _by_pyarrow(columns: Columns, path: Path) -> None:
    parquet = require("pyarrow.parquet", "to_parquet()", install="pyarrow")
    parquet.write_table(pyarrow_table(columns), path)


def _by_polars(columns: Columns, path: Path) -> None:
    polars_frame(columns).write_parquet(path)


_PARQUET: dict[str, Callable[[Columns, Path], None]] = {
    "pyarrow": _by_pyarrow,
    "polars": _by_polars,
}
