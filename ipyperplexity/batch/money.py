"""What a batch may still spend: the user's cap for it, kept before each question is sent."""

from __future__ import annotations

import math


class CostCap:
    """Holds a batch to its ``max_cost``.

    A question is sent only if what was paid, what runs and what it may cost itself fit together.
    What one may cost is the mean of those that were paid, or an estimate until the first one is.

    Parameters
    ----------
    cap : float or None
        US dollars; None for no limit.
    estimate : float
        US dollars for a question, until one has been paid.

    Examples
    --------
    >>> cap = CostCap(0.10, 0.04)
    >>> cap.fits(running=1), cap.fits(running=2)
    (True, False)
    >>> cap.paid(0.01)
    >>> cap.fits(running=2)
    True
    """

    def __init__(self, cap: float | None, estimate: float) -> None:
        self.spent = 0.0
        self._cap = math.inf if cap is None else cap
        self._estimate = estimate
        self._count = 0

    def fits(self, running: int) -> bool:
        """Whether one more may be sent beside those that run."""
        each = self.spent / self._count if self._count else self._estimate
        # A billionth of a dollar for the rounding of sums.
        return self.spent + (running + 1) * each <= self._cap + 1e-9

    def paid(self, cost_usd: float | None) -> None:
        """Count an answer; one whose cost nobody knows counts as estimated."""
        self.spent += self._estimate if cost_usd is None else cost_usd
        self._count += 1
