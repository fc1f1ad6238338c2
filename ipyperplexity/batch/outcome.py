"""What became of one row of a batch.

Invariant: an outcome is data alone, and can be pickled: no connection, no key, no callback.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipyperplexity.secret_patterns import hide_secrets

if TYPE_CHECKING:
    from ipyperplexity.answer import Answer
    from ipyperplexity.errors import PerplexityError


@dataclass(frozen=True)
class RowOutcome:
    """What became of one row: its answer, or why it has none, and what it took.

    Attributes
    ----------
    row : int
        Position in the data, from 0.
    question : str
        What was asked, or would have been.
    status : str
        ``"ok"``, ``"error"``, ``"cancelled"`` or ``"skipped"``.
    answer : Answer or None
        Whole, or what had arrived before an error.
    error : PerplexityError or None
        What went wrong at last.
    attempts : int
        How often it was asked.
    elapsed_s : float or None
        Seconds.
    cost_usd : float or None
        What was paid for this row now, in US dollars: 0.0 for an answer from the cache and for a
        question that another row asks; None if the service does not say.
    asked_usd : float or None
        What its answer cost when it was asked for.
    cached : bool
        Whether the answer came from the cache or a checkpoint.
    reason : str
        Why it was skipped or cancelled.

    Examples
    --------
    >>> RowOutcome(3, "Why?", "skipped", reason="the budget is used up").problem
    'the budget is used up'
    """

    row: int
    question: str
    status: str
    answer: Answer | None = None
    error: PerplexityError | None = None
    attempts: int = 0
    elapsed_s: float | None = None
    cost_usd: float | None = None
    asked_usd: float | None = None
    cached: bool = False
    reason: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether there is a whole answer."""
        return self.status == "ok" and self.answer is not None

    @property
    def error_type(self) -> str | None:
        """Name of the error's class, if there is an error."""
        return type(self.error).__name__ if self.error else None

    @property
    def problem(self) -> str | None:
        """Why there is no answer, in words; None where nothing is wrong."""
        if self.is_ok:
            return None
        message = self.error.message if self.error else self.reason
        return hide_secrets(message) or self.status
