"""The questions that were left to the service, on disk: what they are, and how they ended.

Invariant: what has been paid for is not lost. A record is committed before anybody waits for it,
and a finished answer is kept here when the service has forgotten it; it is written once, and no
later look at the run takes it back. No key is ever in a record.
"""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ipyperplexity.secret_patterns import hide_secrets, hide_secrets_in
from ipyperplexity.store.database import Database
from ipyperplexity.store.folders import state_dir

FILE_NAME = "jobs.db"


@dataclass(frozen=True)
class JobRecord:
    """A question that was left to the service.

    Attributes
    ----------
    id : str
        The service's id of the run.
    backend, base_url : str
        Where it runs.
    question : str
        What was asked.
    model : str or None
        What was asked for; of a finished run the model that answered.
    created, updated : datetime.datetime
        When it was asked, and last looked at; aware, UTC.
    status : str
        The run's, or ``unknown`` when the service does not know it.
    notebook : str
        Path of the notebook that asked, or ``""``.
    options : dict
        As ``Question.given`` has them.
    schema : dict or None
        The ``response_format`` that was sent.
    turns : tuple of (str, str)
        Questions and answers before this question.
    notices : tuple of str
        What was said about how the question was translated.
    cost_usd : float or None
        US dollars, when it is known.
    """

    id: str
    backend: str
    base_url: str
    question: str
    model: str | None = None
    created: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))
    updated: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))
    status: str = "queued"
    notebook: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    schema: dict[str, Any] | None = None
    turns: tuple[tuple[str, str], ...] = ()
    notices: tuple[str, ...] = ()
    cost_usd: float | None = None


_PLAIN = ("id", "backend", "base_url", "question", "model", "status", "notebook", "cost_usd")
_TIMES = ("created", "updated")
_JSON = ("options", "schema", "turns", "notices")
_COLUMNS = (*_PLAIN, *_TIMES, *_JSON)
#: What an answer settles: a later look at the run that knows less does not change it.
_SETTLED = ("model", "status", "updated", "cost_usd")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY, backend TEXT NOT NULL, base_url TEXT NOT NULL, question TEXT NOT NULL,
    model TEXT, status TEXT NOT NULL, notebook TEXT NOT NULL, cost_usd REAL,
    created TEXT NOT NULL, updated TEXT NOT NULL,
    options TEXT NOT NULL, schema TEXT NOT NULL, turns TEXT NOT NULL, notices TEXT NOT NULL,
    answer TEXT
);
"""
_PUT = (
    f"INSERT INTO jobs ({', '.join(_COLUMNS)}, answer) "
    f"VALUES ({', '.join('?' * len(_COLUMNS))}, ?) ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _SETTLED)
    + ", answer = excluded.answer WHERE jobs.answer IS NULL"
)


class JobStore:
    """The records of this machine's jobs, shared by all processes.

    Parameters
    ----------
    path : Path, optional
        The database; ``jobs.db`` in the folder of this user's state if not given.

    Examples
    --------
    >>> import tempfile
    >>> store = JobStore(Path(tempfile.mkdtemp()) / "jobs.db")
    >>> store.put(JobRecord("resp_1", "agent", "https://api.perplexity.ai", "Why?"))
    False
    >>> [record.question for record in store.all()]
    ['Why?']
    >>> store.close()
    """

    def __init__(self, path: Path | None = None) -> None:
        self._database = Database(path or state_dir() / FILE_NAME, _SCHEMA)

    @property
    def path(self) -> Path:
        """The file."""
        return self._database.path

    def put(self, record: JobRecord, answer: str | None = None) -> bool:
        """Write what is known of a job now; return whether ``answer`` is the first that it has.

        Parameters
        ----------
        record : JobRecord
        answer : str, optional
            The finished answer, as a JSON document. The first is kept, with its status.

        Raises
        ------
        ConfigurationError
            If it cannot be written.
        """
        row = (*_row(record), None if answer is None else hide_secrets(answer))
        with self._database.transaction() as connection:
            changed = connection.execute(_PUT, row).rowcount
        return bool(changed) and answer is not None

    def get(self, id: str) -> JobRecord | None:
        """Return a job's record, or None.

        Raises
        ------
        ConfigurationError
            If the file cannot be read.
        """
        return next(iter(self._records("WHERE id = ?", (id,))), None)

    def answer(self, id: str) -> str | None:
        """Return a job's finished answer as a JSON document, or None.

        Raises
        ------
        ConfigurationError
            If the file cannot be read.
        """
        rows = self._database.rows("SELECT answer FROM jobs WHERE id = ?", (id,))
        found = rows[0][0] if rows else None
        return found if isinstance(found, str) else None

    def all(self) -> list[JobRecord]:
        """Return the records of all jobs, newest first.

        Raises
        ------
        ConfigurationError
            If the file cannot be read.
        """
        return self._records("ORDER BY created DESC, rowid DESC")

    def forget(self, ids: Iterable[str]) -> int:
        """Take jobs out; return how many there were. The service's own runs are left alone.

        Raises
        ------
        ConfigurationError
            If it cannot be written.
        """
        with self._database.transaction() as connection:
            return sum(
                connection.execute("DELETE FROM jobs WHERE id = ?", (id,)).rowcount for id in ids
            )

    def close(self) -> None:
        """Close the file; the store can be used again."""
        self._database.close()

    def _records(self, rest: str, parameters: tuple[object, ...] = ()) -> list[JobRecord]:
        rows = self._database.rows(f"SELECT {', '.join(_COLUMNS)} FROM jobs {rest}", parameters)
        return [_record(row) for row in rows]


def _row(record: JobRecord) -> tuple[object, ...]:
    values: list[object] = []
    for name in _COLUMNS:
        value = getattr(record, name)
        if name in _TIMES:
            value = value.astimezone(dt.UTC).isoformat(timespec="microseconds")
        elif name in _JSON:
            plain = json.loads(json.dumps(value, default=str))
            value = json.dumps(hide_secrets_in(plain))
        elif isinstance(value, str) and name != "id":
            value = hide_secrets(value)
        # Half of a surrogate pair fits into no file.
        values.append(
            value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
        )
    return tuple(values)


def _record(row: tuple[Any, ...]) -> JobRecord:
    known = dict(zip(_COLUMNS, row, strict=True))
    for name in _TIMES:
        known[name] = dt.datetime.fromisoformat(known[name])
    for name in _JSON:
        known[name] = json.loads(known[name])
    known["turns"] = tuple((question, text) for question, text in known["turns"])
    known["notices"] = tuple(known["notices"])
    return JobRecord(**known)


_stores: dict[Path, JobStore] = {}
_guard = threading.Lock()


def shared_store() -> JobStore:
    """Return the store in the folder of this user's state: one for each place."""
    path = state_dir() / FILE_NAME
    with _guard:
        return _stores.setdefault(path, JobStore(path))
