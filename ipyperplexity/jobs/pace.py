"""When to look at a run again, and which failures pass. It knows no clock: it says, others wait.

The service names no interval; 2 s growing to 10 s is kind (official-api 6). A run is not lost
because the network is: looking costs nothing and changes nothing, so it is tried again for long.
"""

from __future__ import annotations

from dataclasses import dataclass

from ipyperplexity.errors import (
    ChallengeError,
    NetworkError,
    PerplexityError,
    RateLimitError,
    ServerError,
    StreamError,
)


@dataclass(frozen=True)
class Pace:
    """The waits between looks.

    Attributes
    ----------
    first, most : float
        Seconds before the second look, and at most.
    growth : float
        How much longer each wait is than the one before.
    patience : int
        Looks in a row that may fail; at the usual pace that is about ten minutes.
    """

    first: float = 2.0
    most: float = 10.0
    growth: float = 1.25
    patience: int = 60

    def delay(self, n: int, asked: float | None = None) -> float:
        """Return the seconds to wait after look ``n``, counted from 0.

        Parameters
        ----------
        n : int
        asked : float, optional
            Seconds that the service asked to wait: a longer wait is granted, up to a minute.

        Examples
        --------
        >>> pace = Pace()
        >>> [round(pace.delay(n), 1) for n in (0, 1, 2, 7, 8, 10_000)]
        [2.0, 2.5, 3.1, 9.5, 10.0, 10.0]
        """
        wait = self.first
        for _ in range(n):
            if wait >= self.most or self.growth <= 1:
                break
            wait *= self.growth
        return max(min(wait, self.most), min(asked or 0.0, 60.0))


_PASSING = (NetworkError, ServerError, RateLimitError, StreamError, ChallengeError)


def passes(failure: PerplexityError) -> bool:
    """Whether looking again may help: the run itself is untouched by the failure of a look.

    Examples
    --------
    >>> passes(NetworkError("no route to host")), passes(NetworkError("moved", status_code=302))
    (True, False)
    """
    is_redirect = 300 <= (failure.status_code or 0) < 400
    return isinstance(failure, _PASSING) and not is_redirect
