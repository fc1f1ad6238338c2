"""What was left to the service from this machine, as one table: a row a job, newest first."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, overload

from ipyperplexity.errors import InvalidRequestError, PerplexityError, PerplexityWarning
from ipyperplexity.jobs.following import ServiceOf
from ipyperplexity.jobs.job import Job
from ipyperplexity.jobs.kept import HandOver, nobody
from ipyperplexity.jobs.pace import Pace
from ipyperplexity.jobs.progress import duration
from ipyperplexity.markup.links import one_line
from ipyperplexity.store.job_store import JobStore, shared_store
from ipyperplexity.tabular.columns import Column, Columns
from ipyperplexity.tabular.framed import Framed

JOB_SCHEMA = (
    Column("id", "str", nullable=False),
    Column("question", "str", nullable=False),
    Column("model", "str"),
    Column("status", "str", nullable=False),
    Column("created", "timestamp", nullable=False),
    Column("elapsed", "float64", nullable=False),
    Column("backend", "str", nullable=False),
    Column("cost_usd", "float64"),
)
#: Rows that a display shows; frames have all.
_SHOWN_ROWS = 20
_HEADS = ("", "question", "model", "status", "asked", "time", "cost (USD)", "id")
#: Columns of a terminal for each of them.
_WIDTHS = (4, 36, 20, 12, 16, 14, 10, 14)


class Jobs(Framed):
    """Jobs as a table that frame libraries take as it is: one row each.

    ``[0]`` is the first Job, ``["resp_1"]`` the one of that id, ``[:3]`` a table of the first
    three, ``["status"]`` a column's list. Iterating gives the jobs. Columns: ``id``, ``question``,
    ``model``, ``status``, ``created``, ``elapsed`` (seconds since it was asked; of a finished job
    until its end was seen), ``backend``, ``cost_usd``.

    Parameters
    ----------
    jobs : iterable of Job
        In the order in which to list them.

    Examples
    --------
    >>> len(Jobs()), Jobs().to_dicts()
    (0, [])
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        self._jobs = tuple(jobs)
        for job in self._jobs:
            if not isinstance(job, Job):
                raise InvalidRequestError(
                    f"jobs: got a value of type {type(job).__name__}; allowed: Jobs.", field="jobs"
                )

    @classmethod
    def load(
        cls,
        service_of: ServiceOf,
        *,
        store: JobStore | None = None,
        hand_over: HandOver = nobody,
        pace: Pace | None = None,
    ) -> Jobs:
        """Return all jobs of this machine, newest first, also those of other processes.

        Parameters
        ----------
        service_of, store, hand_over, pace
            As of :class:`Job`.

        Raises
        ------
        ConfigurationError
            If the list cannot be read.
        """
        store = store or shared_store()
        return cls(
            Job(record, service_of, store=store, hand_over=hand_over, pace=pace)
            for record in store.all()
        )

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._jobs)

    @overload
    def __getitem__(self, key: int) -> Job: ...
    @overload
    def __getitem__(self, key: slice) -> Jobs: ...
    @overload
    def __getitem__(self, key: str) -> Any: ...
    def __getitem__(self, key: int | slice | str) -> Any:
        """``[0]`` is the first Job, ``["resp_1"]`` that Job, ``["status"]`` a column's list.

        Raises
        ------
        KeyError
            If there is no such job and no such column.
        """
        if isinstance(key, slice):
            return Jobs(self._jobs[key])
        if not isinstance(key, str):
            return self._jobs[key]
        job = self.get(key)
        if job is not None:
            return job
        if key in {column.name for column in JOB_SCHEMA}:
            return self._columns().column(key)
        names = ", ".join(column.name for column in JOB_SCHEMA)
        raise KeyError(f"no job with the id {key!r} among these {len(self)}; columns: {names}")

    def get(self, id: str) -> Job | None:
        """Return the job of that id, or None."""
        return next((job for job in self._jobs if job.id == id), None)

    @property
    def running(self) -> Jobs:
        """Those that had not ended at the last look."""
        return Jobs(job for job in self._jobs if not job.done)

    def refresh(self) -> Jobs:
        """Look at each job that has not ended; return the table itself.

        A job that cannot be looked at stays as it is, with a warning.
        """
        for job in self.running:
            problem = ""
            try:
                job.refresh()
            except PerplexityError as error:
                problem = error.message
            if problem:
                warnings.warn(f"{job.id}: {problem}", PerplexityWarning, stacklevel=2)
        return self

    def _columns(self) -> Columns:
        return Columns(
            JOB_SCHEMA,
            {column.name: [getattr(job, column.name) for job in self] for column in JOB_SCHEMA},
        )

    def _summary(self) -> str:
        n_running = len(self.running)
        jobs = f"{len(self):,} job{'' if len(self) == 1 else 's'}"
        return f"{jobs}, {n_running:,} running" if n_running else jobs

    def _rows(self) -> list[tuple[Any, ...]]:
        return [
            (
                position,
                job.question,
                job.model,
                job.status,
                job.created,
                duration(job.elapsed),
                job.cost_usd,
                _short(job.id),
            )
            for position, job in enumerate(self._jobs[:_SHOWN_ROWS])
        ]

    def __repr__(self) -> str:
        from ipyperplexity.markup import terminal

        rows = [_HEADS, *self._rows()] if self._jobs else []
        table = [
            [
                terminal.fit(one_line(terminal.strip_controls(_text(cell))), most)
                for cell, most in zip(row, _WIDTHS, strict=True)
            ]
            for row in rows
        ]
        widths = [max(map(terminal.display_width, cells)) for cells in zip(*table, strict=True)]
        lines = [
            "  ".join(
                cell + " " * (width - terminal.display_width(cell))
                for cell, width in zip(row, widths, strict=True)
            ).rstrip()
            for row in table
        ]
        more = len(self) - _SHOWN_ROWS
        hidden = [f"... and {more:,} more; to_pandas() has all"] if more > 0 else []
        return "\n".join([f"Jobs({self._summary()})", *lines, *hidden])

    def _repr_html_(self) -> str:
        from ipyperplexity.markup import page

        return page.data_table(
            _HEADS,
            self._rows(),
            total=len(self),
            row_heads=True,
            label=self._summary(),
            folded=False,
        )


def _short(id: str) -> str:
    """Return the beginning of an id, which tells jobs apart; ``job.id`` has all of it."""
    return id if len(id) <= _WIDTHS[-1] else id[: _WIDTHS[-1] - 1] + "\u2026"


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, dt.datetime):
        return f"{cell.astimezone():%Y-%m-%d %H:%M}"  # as the clock on the wall here shows it
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
