"""Whether a file that a user names is one of ours: what is not is neither written nor moved."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

_MAGIC = b"SQLite format 3\0"


def kind_of_another(path: Path, table: str) -> str:
    """Say what a file is that has nothing to do with us; nothing for one that can be used.

    Parameters
    ----------
    path : Path
        Of a file, which need not exist.
    table : str
        Name of a table that every database of ours has. A damaged database may be ours.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "companies.csv"
    >>> kind_of_another(path, "answers")
    ''
    >>> path.write_text("name,city")
    9
    >>> kind_of_another(path, "answers")
    'no database'
    """
    code = 0
    try:
        if not path.is_file() or not path.stat().st_size:
            return ""
        # Through sqlite: closing the file by other means drops the locks that this process has
        # on it (POSIX), and another one would take the last rows away.
        uri = f"{path.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
            query = "SELECT name FROM sqlite_master WHERE type = 'table'"
            tables = {name for (name,) in connection.execute(query)}
        return "a database of something else" if tables and table not in tables else ""
    except OSError:  # it cannot be looked at: whoever wants to use it will say so
        return ""
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0)
    if code != sqlite3.SQLITE_NOTADB:
        return ""
    with path.open("rb") as file:
        return "" if file.read(len(_MAGIC)) == _MAGIC else "no database"
