"""When a request is sent again, and after how long. It knows no clock: it says, others wait.

Only before the first byte of an answer's body, and only for causes that may pass: the connection
could not be made, 408, 409, 429, 5xx. Never for a refusal (400, 401, 402, 403, 404, 422), and never
after text: that would be paid for twice. A request that was sent and got no reply at all is not
repeated either, since it may be running, and billed (official-api 7).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from ipyperplexity.errors import ChallengeError, PerplexityError, QuotaError
from ipyperplexity.wire.problems import MAX_RETRY_AFTER

_RETRIED_STATUS = {408, 409, 429}


@dataclass
class RetryPolicy:
    """How often to try again, and the waits in between.

    Attributes
    ----------
    max_retries : int
        0 for never.
    base, cap : float
        Seconds: the wait doubles from ``base`` up to ``cap``, with jitter of up to a quarter.
    """

    max_retries: int = 2
    base: float = 0.5
    cap: float = 8.0
    jitter: random.Random = field(default_factory=random.Random, repr=False)

    def delay(self, error: PerplexityError, attempt: int, *, unsent: bool = False) -> float | None:
        """Return the seconds to wait before trying again, or None for not at all.

        Parameters
        ----------
        error : PerplexityError
            What went wrong.
        attempt : int
            How many retries there were before.
        unsent : bool
            Whether the request never reached the service.
        """
        if attempt >= self.max_retries or isinstance(error, QuotaError | ChallengeError):
            return None
        status = error.status_code or 0
        if not (unsent or status in _RETRIED_STATUS or status >= 500):
            return None
        wait = error.retry_after
        if wait is not None:
            # A longer wait is the user's decision: the error says how long.
            return wait if wait <= MAX_RETRY_AFTER else None
        return float(min(self.base * 2**attempt, self.cap) * (1 - self.jitter.random() / 4))
