"""What was asked and what it cost: one row for each request that was sent and has ended.

The rows of this process are in memory, whatever the disk does; on disk are those of all kernels.
A ledger that cannot be written costs one warning, and never an answer.
"""

from __future__ import annotations

import datetime as dt
import os
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipyperplexity.errors import PerplexityWarning
from ipyperplexity.store.folders import state_dir
from ipyperplexity.store.ledger_entry import (
    AMOUNTS,
    COLUMNS,
    COUNTS,
    LedgerEntry,
    amount,
    from_row,
    microseconds,
    time_of,
    to_row,
)

if TYPE_CHECKING:
    from ipyperplexity.store.database import Database

NAME = "ledger.db"
#: ``0`` keeps the rows in memory only.
LEDGER_VARIABLE = "IPYPERPLEXITY_LEDGER"
_OFF = ("0", "no", "off", "false")
#: Seconds to wait for another kernel that is writing, which takes less than a millisecond.
_PATIENCE = 2.0

_TYPES = {**dict.fromkeys(COUNTS, "INTEGER"), **dict.fromkeys(AMOUNTS, "REAL"), "at": "INTEGER"}
_TABLE = ", ".join(f'"{name}" {_TYPES.get(name, "TEXT")}' for name in COLUMNS)
_NAMES = ", ".join(f'"{name}"' for name in COLUMNS)
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS requests ({_TABLE});
CREATE INDEX IF NOT EXISTS requests_by_model ON requests (asked_model, "at");
CREATE INDEX IF NOT EXISTS requests_by_session ON requests (session, "at");
CREATE INDEX IF NOT EXISTS requests_by_notebook ON requests (notebook, "at");
"""
_INSERT = f"INSERT INTO requests ({_NAMES}) VALUES ({', '.join('?' for _ in COLUMNS)})"
#: Rows that tell a price: not the demo's, also where it is served on its own.
_COSTS = (
    "asked_model <> '' AND cost_usd IS NOT NULL AND backend <> 'demo' AND model NOT LIKE 'demo/%'"
)


class Ledger:
    """The rows of all on disk, and those of this process that could not go there.

    Safe to use from several threads and by several processes at once.

    Parameters
    ----------
    path : Path, optional
        Of the database; else ``ledger.db`` in the folder of state, wherever that is at the moment.

    Examples
    --------
    >>> import tempfile
    >>> ledger = Ledger(Path(tempfile.mkdtemp()) / "ledger.db")
    >>> ledger.record(LedgerEntry("ask", asked_model="low", cost_usd=0.004))
    >>> [(entry.asked_model, entry.cost_usd) for entry in ledger.entries()]
    [('low', 0.004)]
    >>> ledger.last_costs()["low"][0]
    0.004
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._guard = threading.Lock()
        #: What is not on disk: a column of questions may have a hundred thousand rows.
        self._own: list[LedgerEntry] = []
        self._database: Database | None = None
        self._unusable: Path | None = None
        self._warned = False

    def record(self, entry: LedgerEntry) -> None:
        """Add a row; raises nothing, and takes well under a millisecond.

        A row of the demo costs nothing and is remembered by this process only.
        """
        written = False

        def write(database: Database) -> None:
            nonlocal written
            with database.transaction() as connection:
                connection.execute(_INSERT, to_row(entry))
            written = True

        try:
            if entry.backend != "demo":
                self._on_disk(write)
        finally:
            if not written:
                self._own.append(entry)  # atomic

    def entries(
        self,
        *,
        session: str | None = None,
        notebook: str | None = None,
        since: dt.datetime | None = None,
    ) -> list[LedgerEntry]:
        """Return rows, oldest first.

        Parameters
        ----------
        session, notebook : str, optional
            Only those of one session, of one notebook; given both, those of either: the rows of
            this notebook are those of this kernel, and those of the notebook's earlier kernels.
        since : datetime, optional
            Only those asked at that time or later; local time if it names no zone.
        """
        since_us = None if since is None else microseconds(since)
        of = {"session": session, "notebook": notebook}
        wanted = {name: value for name, value in of.items() if value is not None}

        def fits(entry: LedgerEntry) -> bool:
            mine = not wanted or any(getattr(entry, n) == value for n, value in wanted.items())
            return mine and (since_us is None or microseconds(entry.at) >= since_us)

        conditions = [" OR ".join(f"{name} = ?" for name in wanted)] if wanted else []
        parameters: list[object] = list(wanted.values())
        if since_us is not None:
            conditions.append('"at" >= ?')
            parameters.append(since_us)
        where = f" WHERE {' AND '.join(f'({c})' for c in conditions)}" if conditions else ""
        own = {entry.uid: entry for entry in list(self._own)}
        rows = self._rows(f"SELECT {_NAMES} FROM requests{where}", tuple(parameters))
        found = [entry for entry in map(from_row, rows) if entry.uid not in own]
        found += filter(fits, own.values())
        return sorted(found, key=lambda entry: entry.at)

    def last_costs(self) -> dict[str, tuple[float, dt.datetime]]:
        """Return for each preset or model that was asked for what the newest cost, and when.

        In US dollars. The demo, and what the service did not tell the cost of, do not count.
        """
        # sqlite takes the bare columns from the row that has the maximum.
        newest = _costs(
            self._rows(
                f'SELECT asked_model, cost_usd, MAX("at") FROM requests WHERE {_COSTS} '
                "GROUP BY asked_model"
            )
        )
        for entry in list(self._own):
            cost = _cost(entry)
            known = newest.get(entry.asked_model)
            if cost is not None and entry.asked_model and (known is None or entry.at >= known[1]):
                newest[entry.asked_model] = (cost, entry.at)
        return newest

    def recent_costs(self, asked_model: str, count: int = 5) -> list[float]:
        """Return the costs of the newest requests to a preset or model, newest first, in USD."""
        found = _costs(
            self._rows(
                f'SELECT uid, cost_usd, "at" FROM requests WHERE asked_model = ? AND {_COSTS} '
                'ORDER BY "at" DESC LIMIT ?',
                (asked_model, count),
            )
        )
        for entry in list(self._own):
            cost = _cost(entry)
            if cost is not None and entry.asked_model == asked_model:
                found[entry.uid] = (cost, entry.at)
        newest = sorted(found.values(), key=lambda pair: pair[1], reverse=True)
        return [cost for cost, _ in newest[:count]]

    def close(self) -> None:
        """Let go of the file; the ledger can be used again."""
        with self._guard:
            database, self._database = self._database, None
        if database is not None:
            database.close()

    # --- the disk, which may fail -----------------------------------------------------------------

    def _rows(self, query: str, parameters: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        self._on_disk(lambda database: rows.extend(database.rows(query, parameters)))
        return rows

    def _on_disk(self, use: Callable[[Database], None]) -> None:
        """Use the database, if there is one to use; if it fails, do without from now on."""
        if os.environ.get(LEDGER_VARIABLE, "").strip().lower() in _OFF:
            return
        problem = ""
        path: Path | None = None
        try:
            path = self._path or state_dir() / NAME
            if path == self._unusable:
                return
            use(self._database_at(path))
        except PerplexityWarning:  # the user has made warnings errors
            raise
        except Exception as error:  # whatever it is, the answer is worth more
            problem = str(getattr(error, "message", None) or error)
        if problem:
            self._unusable = path
            self._warn(problem)

    def _database_at(self, path: Path) -> Database:
        from ipyperplexity.store.database import Database

        with self._guard:
            if self._database is None or self._database.path != path:
                self._database = Database(path, _SCHEMA, timeout=_PATIENCE)
            return self._database

    def _warn(self, problem: str) -> None:
        with self._guard:
            warned, self._warned = self._warned, True
        if not warned:
            warnings.warn(
                f"What is asked from now on is only remembered until this kernel ends: {problem} "
                f"({LEDGER_VARIABLE}=0 keeps it so on purpose.)",
                PerplexityWarning,
                stacklevel=4,
            )

    def _forget_locks(self) -> None:
        self._guard = threading.Lock()


def _costs(rows: list[tuple[Any, ...]]) -> dict[str, tuple[float, dt.datetime]]:
    return {
        str(name): (cost, time_of(at))
        for name, value, at in rows
        if (cost := amount(value)) is not None
    }


def _cost(entry: LedgerEntry) -> float | None:
    is_demo = entry.backend == "demo" or entry.model.startswith("demo/")
    return None if is_demo else entry.cost_usd


_ledger = Ledger()


def ledger() -> Ledger:
    """Return the ledger of this process, at ``ledger.db`` in the folder of state."""
    return _ledger


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _ledger._forget_locks())
