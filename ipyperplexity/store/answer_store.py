"""Finished answers on disk, by what was asked: the checkpoint of a batch, and the cache.

Invariant: a row is there whole or not at all, and from the moment that ``put`` returns it outlives
the process, however that ends. A checkpoint that cannot be kept is an error, since paid work would
be lost; a cache that cannot be kept costs one warning, and never an answer.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from ipyperplexity.errors import ConfigurationError, PerplexityWarning
from ipyperplexity.secret_patterns import hide_secrets
from ipyperplexity.store.database import BUSY_TIMEOUT, Database
from ipyperplexity.store.file_kind import kind_of_another
from ipyperplexity.store.folders import cache_dir

FILE_NAME = "answers.db"
#: Seconds that a cache is waited for, which only saves money; a checkpoint is worth more.
_CACHE_PATIENCE = 2.0
#: What is left of the largest size after a clean-up, so that not every row needs one.
_ROOM_AFTER_PRUNING = 0.9
#: Keys in one query; sqlite takes at least 999 values.
_KEYS_AT_ONCE = 500

# Totals are kept beside the rows: to add them up at each put would take longer and longer.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS perplexity_answers (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, at INTEGER NOT NULL, size INTEGER NOT NULL,
    document TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS perplexity_answers_by_time ON perplexity_answers (at);
CREATE TABLE IF NOT EXISTS totals (
    one INTEGER PRIMARY KEY CHECK (one = 1), rows INTEGER NOT NULL, bytes INTEGER NOT NULL
);
"""
_INSERT = "INSERT INTO perplexity_answers (key, at, size, document) VALUES (?, ?, ?, ?)"
_ADD_TO_TOTALS = (
    "INSERT INTO totals VALUES (1, ?, ?) ON CONFLICT (one) DO UPDATE "
    "SET rows = rows + excluded.rows, bytes = bytes + excluded.bytes"
)
_INFO = (
    "SELECT (SELECT rows FROM totals), (SELECT bytes FROM totals), "
    "(SELECT MIN(at) FROM perplexity_answers), (SELECT MAX(at) FROM perplexity_answers)"
)


@dataclass(frozen=True)
class StoreInfo:
    """What a store holds.

    Attributes
    ----------
    path : Path
        The file.
    rows : int
        Answers, those that are too old to be given out among them.
    bytes : int
        Of their documents; the file has some more.
    oldest, newest : datetime.datetime or None
        When the first and the last of them were put; aware, UTC.
    """

    path: Path
    rows: int = 0
    bytes: int = 0
    oldest: dt.datetime | None = None
    newest: dt.datetime | None = None


class AnswerStore:
    """Answers as JSON documents, by key; safe for several threads and processes at once.

    Parameters
    ----------
    path : Path, optional
        The database; ``answers.db`` in the folder of caches if not given.
    max_age : datetime.timedelta, optional
        Older answers are not given out, and are deleted as others are put.
    max_bytes : int, optional
        Of all documents: beyond it the oldest go first, down to nine tenths of it. A document that
        is larger by itself is not kept.
    strict : bool, optional
        Whether a file that cannot be used is an error (a checkpoint) or one warning, after which
        nothing is found or kept (the cache); if not given, an error where a ``path`` is given.
    clock : callable
        Seconds since the epoch.

    Raises
    ------
    ConfigurationError
        If ``IPYPERPLEXITY_HOME`` cannot be a folder.

    Examples
    --------
    >>> import tempfile
    >>> store = AnswerStore(Path(tempfile.mkdtemp()) / "companies.db")
    >>> store.check()
    >>> store.put("key of a question", '{"text": "An answer."}')
    >>> store.get("key of a question"), store.get("another")
    ('{"text": "An answer."}', None)
    >>> store.info().rows
    1
    >>> store.close()
    """

    def __init__(
        self,
        path: Path | None = None,
        *,
        max_age: dt.timedelta | None = None,
        max_bytes: int | None = None,
        strict: bool | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._strict = path is not None if strict is None else strict
        self._database = Database(
            cache_dir() / FILE_NAME if path is None else path.absolute(),
            _SCHEMA,
            timeout=BUSY_TIMEOUT if self._strict else _CACHE_PATIENCE,
        )
        self._max_age = max_age
        self._max_bytes = max_bytes
        self._clock = clock
        self._is_checked = False
        self._is_given_up = False

    @property
    def path(self) -> Path:
        """The file."""
        return self._database.path

    def check(self) -> None:
        """Find out now whether answers can be kept: before anything is asked and paid for.

        Raises
        ------
        ConfigurationError
            Of a strict store, if the file cannot be written, or is something else than a
            checkpoint; such a file is left as it is.
        """

        def write() -> None:
            with self._database.transaction():
                pass

        self._on_disk(write)

    def get(self, key: str) -> str | None:
        """Return the document of an answer, if there is one that is not too old.

        Raises
        ------
        ConfigurationError
            Of a strict store, if the file cannot be read.
        """
        return self.get_many((key,)).get(key)

    def get_many(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the documents that there are, by key, and not too old.

        Raises
        ------
        ConfigurationError
            Of a strict store, if the file cannot be read.
        """
        wanted = list(dict.fromkeys(keys))
        found: dict[str, str] = {}

        def read() -> None:
            for start in range(0, len(wanted), _KEYS_AT_ONCE):
                some = wanted[start : start + _KEYS_AT_ONCE]
                # The plus keeps sqlite from going through the times instead of the keys.
                query = (
                    "SELECT key, document FROM perplexity_answers WHERE +at >= ? "
                    f"AND key IN ({', '.join('?' * len(some))})"
                )
                rows = self._database.rows(query, (self._oldest_good(), *some))
                found.update((str(key), str(document)) for key, document in rows)

        self._on_disk(read)
        return found

    def put(self, key: str, document: str) -> None:
        """Keep an answer; see :meth:`put_many`."""
        self.put_many([(key, document)])

    def put_many(self, documents: Iterable[tuple[str, str]]) -> None:
        """Keep answers, in place of earlier ones; they are committed when this returns.

        It is then there whatever becomes of this process. (If the whole machine loses power, the
        last moments before may be lost, and the file is still good.)

        Parameters
        ----------
        documents : iterable of (str, str)
            Keys, and JSON as ``answer_record.dumps`` writes it. What looks like a key or a login
            in it is masked.

        Raises
        ------
        ConfigurationError
            Of a strict store, if they cannot be written.
        """
        rows = []
        for key, document in documents:
            # Half of a surrogate pair fits into no file.
            text = hide_secrets(document).encode("utf-8", "replace")
            if self._max_bytes is None or len(text) <= self._max_bytes:
                rows.append((key, self._now(), len(text), text.decode()))
        if not rows:
            return

        def insert() -> None:
            with self._database.transaction() as connection:
                for row in rows:
                    _delete(connection, "key = ?", row[0])
                    newest = connection.execute(_INSERT, row).lastrowid
                    connection.execute(_ADD_TO_TOTALS, (1, row[2]))
                self._prune(connection, newest)

        def write() -> None:
            try:
                return insert()
            except ConfigurationError:
                if self._is_there():
                    raise
            insert()  # a damaged file was moved out of the way: this row begins the new one

        self._on_disk(write)

    def clear(self, *, older_than: dt.timedelta | None = None) -> int:
        """Delete all answers, or those older than that, and give their space back.

        Returns
        -------
        int
            How many there were.

        Raises
        ------
        ConfigurationError
            If the file cannot be written, also where the store is not strict.
        """
        if not self._is_there():
            return 0
        self._refuse_foreign_file()
        with self._database.transaction() as connection:
            if older_than is None:
                count = _delete(connection, "1")
            else:
                count = _delete(connection, "at < ?", self._before(older_than))
        if count:
            # Others may be reading just now: then the space is used for what comes.
            with contextlib.suppress(ConfigurationError):
                self._database.rows("VACUUM")
                self._database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
        return count

    def info(self) -> StoreInfo:
        """Say what is there.

        Raises
        ------
        ConfigurationError
            If the file cannot be read, also where the store is not strict.
        """
        if not self._is_there():
            return StoreInfo(self.path)
        self._refuse_foreign_file()
        ((rows, size, oldest, newest),) = self._database.rows(_INFO) or [(0, 0, None, None)]
        return StoreInfo(
            self.path,
            rows if isinstance(rows, int) else 0,
            size if isinstance(size, int) else 0,
            _time(oldest),
            _time(newest),
        )

    def close(self) -> None:
        """Close the file; the store can be used again."""
        self._database.close()

    # --- within -----------------------------------------------------------------------------------

    def _is_there(self) -> bool:
        return os.path.exists(self.path)  # noqa: PTH110 - unlike the method it raises nothing

    def _now(self) -> int:
        return int(self._clock() * 1_000_000)

    def _before(self, span: dt.timedelta) -> int:
        return max(0, self._now() - span // dt.timedelta(microseconds=1))

    def _oldest_good(self) -> int:
        return 0 if self._max_age is None else self._before(self._max_age)

    def _prune(self, connection: sqlite3.Connection, newest: int | None) -> None:
        """Delete what is too old, and then the oldest of what is too much.

        Rows are in the order in which they were put, whatever the machine's clock did.
        """
        if self._max_age is not None:
            _delete(connection, "at < ?", self._oldest_good())
        if self._max_bytes is None:
            return
        (total,) = connection.execute("SELECT bytes FROM totals").fetchone()
        if total <= self._max_bytes:
            return
        excess = total - int(self._max_bytes * _ROOM_AFTER_PRUNING)
        query = "SELECT id, size FROM perplexity_answers WHERE id < ? ORDER BY id"
        last = 0
        for id, size in connection.execute(query, (newest,)):
            last = id
            excess -= size
            if excess <= 0:
                break
        _delete(connection, "id <= ?", last)

    def _on_disk(self, use: Callable[[], None]) -> None:
        """Use the database; if it fails, say so, or do without from now on."""
        if self._is_given_up:
            return
        problem = ""
        try:
            self._refuse_foreign_file()
            use()
        except ConfigurationError as error:
            if self._strict:
                raise
            problem = error.message
        if problem:
            self._is_given_up = True
            warnings.warn(
                f"Answers are neither taken from the cache nor kept there: {problem}",
                PerplexityWarning,
                stacklevel=4,
            )

    def _refuse_foreign_file(self) -> None:
        """Raise if a user's path leads to a file of another kind: it is not ours to move."""
        if self._is_checked:
            return
        other = kind_of_another(self.path, "perplexity_answers") if self._strict else ""
        if other:
            raise ConfigurationError(
                f"checkpoint: {self.path} is {other}; allowed: a new file, or an earlier "
                "checkpoint.",
                field="checkpoint",
                hint="Nothing was changed. Give another path, or move that file away.",
            )
        self._is_checked = True


def _delete(connection: sqlite3.Connection, condition: str, *values: object) -> int:
    """Delete rows and take them off the totals; return how many there were."""
    where = f"FROM perplexity_answers WHERE {condition}"
    rows, size = connection.execute(f"SELECT COUNT(*), SUM(size) {where}", values).fetchone()
    if rows:
        connection.execute(f"DELETE {where}", values)
        connection.execute(_ADD_TO_TOTALS, (-rows, -size))
    return int(rows)


def _time(at: object) -> dt.datetime | None:
    if not isinstance(at, int):
        return None
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=at)
