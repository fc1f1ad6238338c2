"""What is known of a job without asking anybody."""

from __future__ import annotations

import datetime as dt
from html import escape

from ipyperplexity.jobs.kept import Kept
from ipyperplexity.store.job_store import JobRecord


class JobFacts:
    """The facts of a job, as of the last look at it; none of them asks the service."""

    _kept: Kept

    @property
    def record(self) -> JobRecord:
        """What is kept of it on disk."""
        return self._kept.record

    @property
    def id(self) -> str:
        """The service's id of the run."""
        return self.record.id

    @property
    def question(self) -> str:
        """What was asked."""
        return self.record.question

    @property
    def model(self) -> str | None:
        """The preset or model that was asked; of a finished job the model that answered."""
        return self.record.model

    @property
    def backend(self) -> str:
        """Which backend it was sent to."""
        return self.record.backend

    @property
    def base_url(self) -> str:
        """The address that it was sent to, the only one that it is fetched from."""
        return self.record.base_url

    @property
    def notebook(self) -> str:
        """The notebook that asked, or ``""``."""
        return self.record.notebook

    @property
    def created(self) -> dt.datetime:
        """When it was asked; aware, UTC."""
        return self.record.created

    @property
    def status(self) -> str:
        """How far it is.

        ``queued``, ``in_progress``, ``completed``, ``incomplete``, ``failed``, ``cancelled``, or
        ``unknown`` when the service does not know it (any more).
        """
        return self.record.status

    @property
    def done(self) -> bool:
        """Whether the run has ended, one way or another."""
        return self._kept.is_over

    @property
    def cost_usd(self) -> float | None:
        """What it cost in US dollars, once it has ended."""
        return self.record.cost_usd

    @property
    def elapsed(self) -> float:
        """Seconds since it was asked; of a finished job until its end was seen."""
        until = self.record.updated if self.done else dt.datetime.now(dt.UTC)
        return max(0.0, (until - self.created).total_seconds())

    def __repr__(self) -> str:
        asked = " ".join(self.question.split())
        asked = asked if len(asked) <= 60 else asked[:57] + "..."
        return f"Job({self.id!r}, {asked!r}, status={self.status!r})"

    def _repr_html_(self) -> str:
        from ipyperplexity.markup import page

        asked = " ".join(self.question.split())
        line = f"{self.status} \u00b7 {self.model or self.backend} \u00b7 {self.id}"
        line += "" if self.done else " \u00b7 .wait() gives its answer"
        return page.wrap(f"<p>{escape(asked)}</p>\n{page.status_line(line)}")
