"""The columns of questions that were left to the service, on disk: which batch holds which line.

Invariant: what has been paid for is found again. A record is committed before its batch is asked
for, so a process that ends at any moment leaves enough to go on from: the key under which the
service knows the batch, and the digests of its lines. Lines are crossed off one by one as their
results are kept elsewhere. Neither a question nor a key is ever in a record.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from ipyperplexity.store.database import Database
from ipyperplexity.store.folders import state_dir

FILE_NAME = "batches.db"
#: The service forgets files and results after 30 days (docs/agent-api/batch).
MAX_AGE = dt.timedelta(days=30)
#: Parameters of one statement; older sqlite takes 999.
_MOST = 900


@dataclass(frozen=True)
class BatchRecord:
    """A batch that was left to the service, or is about to be.

    Attributes
    ----------
    key : str
        The ``Idempotency-Key`` with which it was made.
    base_url : str
        Where it is.
    fingerprint : str
        Digest of its lines.
    file_id : str
        The service's id of the input file.
    batch_id : str or None
        The service's id of the batch; None until the service has told it.
    n_lines : int
    created, updated : datetime.datetime
        When it was made, and last looked at; aware, UTC.
    status : str
        The batch's, or ``placing`` until it has one.
    """

    key: str
    base_url: str
    fingerprint: str
    file_id: str
    batch_id: str | None = None
    n_lines: int = 0
    created: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))
    updated: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))
    status: str = "placing"


_PLAIN = ("key", "base_url", "fingerprint", "file_id", "batch_id", "n_lines", "status")
_TIMES = ("created", "updated")
_COLUMNS = (*_PLAIN, *_TIMES)
_CHANGES = ("file_id", "batch_id", "status", "updated")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS batches (
    key TEXT PRIMARY KEY, base_url TEXT NOT NULL, fingerprint TEXT NOT NULL,
    file_id TEXT NOT NULL, batch_id TEXT, n_lines INTEGER NOT NULL, status TEXT NOT NULL,
    created TEXT NOT NULL, updated TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS lines (
    key TEXT NOT NULL, number INTEGER NOT NULL, custom_id TEXT NOT NULL,
    PRIMARY KEY (key, custom_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS lines_by_id ON lines (custom_id);
"""
_PUT = (
    f"INSERT INTO batches ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))}) "
    "ON CONFLICT (key) DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in _CHANGES)
)


class BatchStore:
    """The records of this machine's batches, shared by all processes.

    Parameters
    ----------
    path : Path, optional
        The database; ``batches.db`` in the folder of this user's state if not given.

    Examples
    --------
    >>> import tempfile
    >>> store = BatchStore(Path(tempfile.mkdtemp()) / "batches.db")
    >>> record = BatchRecord("k1", "https://api.perplexity.ai", "f1", "file_1", n_lines=2)
    >>> store.put(record, ["a", "b"])
    >>> store.cross_off("k1", ["a"])
    >>> [(found.key, lines) for found, lines in store.holding(record.base_url, ["a", "b"])]
    [('k1', {'b': 2})]
    >>> store.close()
    """

    def __init__(self, path: Path | None = None) -> None:
        self._database = Database(path or state_dir() / FILE_NAME, _SCHEMA)

    @property
    def path(self) -> Path:
        """The file."""
        return self._database.path

    def put(self, record: BatchRecord, custom_ids: Sequence[str] = ()) -> None:
        """Write what is known of a batch now, and which lines it holds if it is new.

        Parameters
        ----------
        record : BatchRecord
        custom_ids : sequence of str
            Its lines in the order of the file.

        Raises
        ------
        ConfigurationError
            If it cannot be written.
        """
        lines = [(record.key, number, name) for number, name in enumerate(custom_ids, 1)]
        with self._database.transaction() as connection:
            connection.execute(_PUT, _row(record))
            connection.executemany("INSERT OR IGNORE INTO lines VALUES (?, ?, ?)", lines)

    def holding(
        self, base_url: str, custom_ids: Iterable[str], now: dt.datetime | None = None
    ) -> list[tuple[BatchRecord, dict[str, int]]]:
        """Return the batches that hold any of these lines, oldest first; forget those too old.

        Parameters
        ----------
        base_url : str
        custom_ids : iterable of str
        now : datetime.datetime, optional
            Aware.

        Returns
        -------
        list of (BatchRecord, dict)
            With the number of each such line in its file. A line that several batches hold is
            told of the first one only.

        Raises
        ------
        ConfigurationError
            If the file cannot be used.
        """
        self._forget_before((now or dt.datetime.now(dt.UTC)) - MAX_AGE)
        records = {record.key: record for record in self.all() if record.base_url == base_url}
        held: dict[str, dict[str, int]] = {}
        taken: dict[str, tuple[str, int]] = {}
        order = {key: place for place, key in enumerate(reversed(records))}
        for some in _chunks(custom_ids):
            query = f"SELECT key, number, custom_id FROM lines WHERE custom_id IN ({_marks(some)})"
            for key, number, name in self._database.rows(query, tuple(some)):
                known = taken.get(str(name))
                if key in order and (known is None or order[str(key)] < order[known[0]]):
                    taken[str(name)] = str(key), int(str(number))
        for name, (key, number) in taken.items():
            held.setdefault(key, {})[name] = number
        return [(records[key], held[key]) for key in order if key in held]

    def cross_off(self, key: str, custom_ids: Iterable[str]) -> None:
        """Take lines out whose results are kept elsewhere now.

        Raises
        ------
        ConfigurationError
            If it cannot be written.
        """
        pairs = [(key, name) for name in custom_ids]
        with self._database.transaction() as connection:
            connection.executemany("DELETE FROM lines WHERE key = ? AND custom_id = ?", pairs)

    def count(self, base_url: str, fingerprint: str) -> int:
        """Return how many batches of exactly these lines were made there before.

        Raises
        ------
        ConfigurationError
            If the file cannot be read.
        """
        query = "SELECT count(*) FROM batches WHERE base_url = ? AND fingerprint = ?"
        rows = self._database.rows(query, (base_url, fingerprint))
        return int(str(rows[0][0])) if rows else 0

    def all(self) -> list[BatchRecord]:
        """Return the records of all batches, newest first.

        Raises
        ------
        ConfigurationError
            If the file cannot be read.
        """
        query = f"SELECT {', '.join(_COLUMNS)} FROM batches ORDER BY created DESC, rowid DESC"
        return [_record(row) for row in self._database.rows(query)]

    def forget(self, name: str) -> bool:
        """Take a batch out, by its id or key; return whether there was one.

        The service's own is left alone.

        Raises
        ------
        ConfigurationError
            If it cannot be written.
        """
        with self._database.transaction() as connection:
            found = "SELECT key FROM batches WHERE batch_id = ? OR key = ?"
            connection.execute(f"DELETE FROM lines WHERE key IN ({found})", (name, name))
            gone = connection.execute(
                "DELETE FROM batches WHERE batch_id = ? OR key = ?", (name, name)
            )
            return bool(gone.rowcount)

    def close(self) -> None:
        """Close the file; the store can be used again."""
        self._database.close()

    def _forget_before(self, time: dt.datetime) -> None:
        moment = _written(time)
        if not self._database.rows("SELECT 1 FROM batches WHERE created < ? LIMIT 1", (moment,)):
            return
        with self._database.transaction() as connection:
            connection.execute(
                "DELETE FROM lines WHERE key IN (SELECT key FROM batches WHERE created < ?)",
                (moment,),
            )
            connection.execute("DELETE FROM batches WHERE created < ?", (moment,))


def _chunks(names: Iterable[str]) -> Iterator[list[str]]:
    left = iter(names)
    while some := list(islice(left, _MOST)):
        yield some


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _written(time: dt.datetime) -> str:
    return time.astimezone(dt.UTC).isoformat(timespec="microseconds")


def _row(record: BatchRecord) -> tuple[object, ...]:
    times = tuple(_written(getattr(record, name)) for name in _TIMES)
    return (*(getattr(record, name) for name in _PLAIN), *times)


def _record(row: tuple[Any, ...]) -> BatchRecord:
    known = dict(zip(_COLUMNS, row, strict=True))
    for name in _TIMES:
        known[name] = dt.datetime.fromisoformat(known[name])
    return BatchRecord(**known)


_stores: dict[Path, BatchStore] = {}
_guard = threading.Lock()


def shared_store() -> BatchStore:
    """Return the store in the folder of this user's state: one for each place."""
    path = state_dir() / FILE_NAME
    with _guard:
        return _stores.setdefault(path, BatchStore(path))
