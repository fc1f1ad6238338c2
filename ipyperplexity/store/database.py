"""A sqlite database on disk that several kernels use at once.

WAL, and one connection a process, made when it is needed and used by one thread at a time. It is
closed before a fork: sqlite's own tables of locks would go to the child, and the locks would not.
A damaged file is set aside with a warning and a new one begun: what is kept here must never stop
a question.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path

from ipyperplexity.errors import ConfigurationError, PerplexityWarning
from ipyperplexity.store.private_files import (
    FILE_MODE,
    is_open_to_others,
    locked,
    make_private,
    make_private_folder,
    set_aside,
)

#: Seconds to wait for another process, or thread, that is writing.
BUSY_TIMEOUT = 10.0


class Database:
    """A database file with a schema.

    Parameters
    ----------
    path : Path
        The file; it and its folder are made when they are first used, for the owner alone.
    schema : str
        ``CREATE ... IF NOT EXISTS`` statements, run at each opening.
    version : int
        Of the schema. A file of another version is set aside, and not read wrongly.
    timeout : float
        Seconds to wait for somebody else who is writing.

    Examples
    --------
    >>> import tempfile
    >>> database = Database(Path(tempfile.mkdtemp()) / "x.db", "CREATE TABLE IF NOT EXISTS t (a)")
    >>> with database.transaction() as connection:
    ...     _ = connection.execute("INSERT INTO t VALUES (1)")
    >>> database.rows("SELECT a FROM t")
    [(1,)]
    >>> database.close()
    """

    def __init__(
        self, path: Path, schema: str, version: int = 1, *, timeout: float = BUSY_TIMEOUT
    ) -> None:
        self.path = path
        self._schema = schema
        self._version = version
        self._timeout = timeout
        self._lock = threading.RLock()
        #: One connection or none; in a list, to be closed with the process or with this object.
        self._held: list[sqlite3.Connection] = []
        weakref.finalize(self, _close, self._held)
        _databases.add(self)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection inside a transaction that others see whole or not at all.

        Raises
        ------
        ConfigurationError
            If the database cannot be used.
        """
        problem: sqlite3.Error | None = None
        with self._alone():
            connection = self._connection()
            if connection.in_transaction:
                raise ConfigurationError(f"{self.path}: a transaction within a transaction.")
            try:
                # IMMEDIATE: a transaction that reads first and writes later cannot wait for others.
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.commit()
            except sqlite3.Error as error:
                problem = error
            finally:
                # Also after a commit that failed, or an interrupt at any moment.
                with contextlib.suppress(sqlite3.Error):
                    connection.rollback()
            if problem is not None and _is_damage(problem):
                self._begin_anew(str(problem))
        if problem is not None:
            raise ConfigurationError(f"{self.path} cannot be written: {problem}.")

    def rows(self, query: str, parameters: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        """Return the rows of a query; none if the file is damaged and had to be begun anew.

        Raises
        ------
        ConfigurationError
            If the database cannot be used.
        """
        problem = ""
        with self._alone():
            for attempt in (1, 2):
                try:
                    return list(self._connection().execute(query, parameters))
                except sqlite3.Error as error:
                    problem = str(error)
                    damaged = _is_damage(error) and attempt == 1
                if not damaged:
                    break
                self._begin_anew(problem)
        raise ConfigurationError(f"{self.path} cannot be read: {problem}.")

    def close(self) -> None:
        """Close the connection; the database can be used again."""
        with self._alone():
            _close(self._held)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._lock.acquire(timeout=self._timeout):
            raise ConfigurationError(
                f"{self.path} cannot be used: another thread has kept it busy for "
                f"{self._timeout:g} s."
            )
        try:
            yield
        finally:
            self._lock.release()

    def _connection(self) -> sqlite3.Connection:
        if not self._held:
            self._held.append(self._opened())
        return self._held[0]

    def _opened(self) -> sqlite3.Connection:
        make_private_folder(self.path.parent)
        with contextlib.suppress(_Damaged):
            return self._usable()
        # One process at a time: another may have begun the new file while this one looked.
        problem = ""
        with locked(self.path):
            try:
                return self._usable()
            except _Damaged as damaged:
                problem = str(damaged)
            self._set_aside(problem)
            return self._usable()

    def _begin_anew(self, problem: str) -> None:
        """Set a file aside that turned out to be damaged while it was used."""
        used = _identity(self.path)
        _close(self._held)
        with locked(self.path):
            # Unless another process has done so meanwhile, and this is the new one.
            if used is not None and _identity(self.path) == used:
                self._set_aside(problem)

    def _set_aside(self, problem: str) -> None:
        aside = set_aside(self.path)
        # What was committed last may still be in the -wal beside it.
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(OSError):
                beside = self.path.with_name(self.path.name + suffix)
                beside.rename(aside.with_name(aside.name + suffix))
        warnings.warn(
            f"{self.path.name} could not be used ({problem}). It was set aside as "
            f"{aside.name}, and a new one begun.",
            PerplexityWarning,
            stacklevel=2,
        )

    def _usable(self) -> sqlite3.Connection:
        """Open the file.

        Raises
        ------
        _Damaged
            If it is no such database.
        ConfigurationError
            If it may be one, and cannot be used now.
        """
        problem, until = "", time.monotonic() + self._timeout
        while True:
            try:
                return self._try_open()
            except sqlite3.OperationalError as error:
                # Two processes that both switch a new file to WAL: sqlite does not wait by itself.
                busy = "locked" in str(error) and time.monotonic() < until
                problem = "" if busy else str(error)
            except OSError as error:
                problem = error.strerror or str(error)
            if problem:
                raise ConfigurationError(f"{self.path} cannot be used: {problem}.")
            time.sleep(0.02)

    def _try_open(self) -> sqlite3.Connection:
        # Made with its mode before sqlite sees it; the -wal and -shm beside it take over the mode.
        # Only a new one: closing a file drops what sqlite has locked of it in this process (POSIX),
        # and another process could then delete the -wal that a second Database writes to.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, FILE_MODE))
        if self.path.is_dir():  # sqlite would only say that it is unable to open it
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not os.access(self.path, os.R_OK | os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if is_open_to_others(self.path):
            make_private(self.path)
        connection = sqlite3.connect(
            self.path, timeout=self._timeout, isolation_level=None, check_same_thread=False
        )
        damage: str | None = None
        try:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, self._version):
                damage = f"it is of version {version}, this program of {self._version}"
            else:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=NORMAL")
                connection.executescript(self._schema)
                if version == 0:
                    connection.execute(f"PRAGMA user_version={self._version:d}")
                return connection
        except sqlite3.Error as error:
            connection.close()
            if not _is_damage(error):
                raise
            damage = str(error)
        except BaseException:
            connection.close()
            raise
        connection.close()
        raise _Damaged(damage)


class _Damaged(Exception):
    """The file is no database, or one of another version of this program."""


def _is_damage(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", None)  # none for what never came to sqlite
    return code is not None and code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _identity(path: Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        status = path.stat()
        return status.st_ino, status.st_size
    return None


def _close(held: list[sqlite3.Connection]) -> None:
    while held:
        with contextlib.suppress(sqlite3.Error):
            held.pop().close()


# --- forks ----------------------------------------------------------------------------------------

_databases: weakref.WeakSet[Database] = weakref.WeakSet()
_forking: list[Database] = []
#: Of a transaction that was open when its own thread forked: in the child not even to be closed.
_abandoned: list[sqlite3.Connection] = []


def _before_fork() -> None:
    for database in list(_databases):
        if database._lock.acquire(timeout=database._timeout):
            _forking.append(database)
            if not (database._held and database._held[0].in_transaction):
                _close(database._held)


def _after_fork_in_parent() -> None:
    while _forking:
        _forking.pop()._lock.release()


def _after_fork_in_child() -> None:
    _forking.clear()
    for database in list(_databases):
        database._lock = threading.RLock()
        _abandoned.extend(database._held)
        database._held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
