"""Calling a service again as long as what went wrong may pass, until somebody stops it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from ipyperplexity.errors import AbortedError, PerplexityError
from ipyperplexity.jobs.pace import Pace, passes
from ipyperplexity.net.transport import TICK

_T = TypeVar("_T")


class Patience:
    """Waits, and tries again.

    Parameters
    ----------
    pace : Pace
        Seconds between two tries.
    stopped : threading.Event
        Ends each wait.
    tell : callable
        Called when there is a problem.

    Attributes
    ----------
    problem : str
        Why the last call failed; empty if it did not.

    Examples
    --------
    >>> patience = Patience(Pace(), threading.Event(), lambda: None)
    >>> patience.call(lambda: "good", 3), patience.problem
    ('good', '')
    """

    def __init__(self, pace: Pace, stopped: threading.Event, tell: Callable[[], object]) -> None:
        self._pace, self._stopped, self._tell = pace, stopped, tell
        self.problem = ""

    def call(self, call: Callable[[], _T], tries: int) -> _T:
        """Return what ``call()`` returns; after a failure that may pass ``tries`` times more.

        Raises
        ------
        AbortedError
            If it was stopped.
        PerplexityError
            The failure that does not pass.
        """
        failures = 0
        while True:
            failure: PerplexityError | None = None
            try:
                result = call()
            except PerplexityError as error:
                failure = error.with_traceback(None)
            if failure is None:
                self.problem = ""
                return result
            self._check()
            failures += 1
            if not passes(failure) or failures > tries:
                raise failure
            self.problem = failure.message
            self._tell()
            self.pause(self._pace.delay(failures - 1, failure.retry_after))

    def pause(self, seconds: float) -> None:
        """Wait.

        Raises
        ------
        AbortedError
            If it was stopped.
        """
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self._stopped.wait(min(TICK, left)):
                break
        self._check()

    def _check(self) -> None:
        if self._stopped.is_set():
            raise AbortedError("The waiting was stopped.")
