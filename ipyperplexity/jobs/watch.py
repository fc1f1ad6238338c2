"""Who waits for a job: is told how far it is, and does not wait for longer than was meant."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

from ipyperplexity.jobs.job_stream import JobStream
from ipyperplexity.jobs.progress import Progress

#: Seconds between two words when there is no news: the seconds themselves are.
TELL_EVERY = 1.0


class Watch:
    """Tells how far a job is, and when somebody has waited long enough.

    Parameters
    ----------
    stream : JobStream
        The job, as it is followed.
    timeout : float or None
        Seconds to wait at most; then the stream is stopped.
    on_progress : callable or None
        Is given a Progress at each news, and about once a second.

    Attributes
    ----------
    is_late : bool
        Whether ``timeout`` has passed.
    """

    def __init__(
        self,
        stream: JobStream,
        timeout: float | None,
        on_progress: Callable[[Progress], object] | None,
    ) -> None:
        self.is_late = False
        self._stream, self._timeout, self._on_progress = stream, timeout, on_progress
        self._began = time.monotonic()
        self._told: tuple[Any, ...] = ()

    def look(self) -> None:
        """Look at the clock, and tell what is new; called often."""
        waited = time.monotonic() - self._began
        if self._timeout is not None and waited > self._timeout:
            self.is_late = True
            self._stream.cancel()
        if self._on_progress is None:
            return
        progress = self._stream.progress
        news = (dataclasses.replace(progress, seconds=0.0), waited // TELL_EVERY)
        if news != self._told:
            self._told = news
            self._on_progress(progress)
