"""What became of a row that was asked again."""

from __future__ import annotations

import dataclasses

from ipyperplexity.batch.outcome import RowOutcome


def after(first: RowOutcome, second: RowOutcome | None) -> RowOutcome:
    """Return what became of a row in both runs: what it was paid and its attempts add up.

    Parameters
    ----------
    first : RowOutcome
        Of the run before.
    second : RowOutcome or None
        Of asking again; None if it was not reached.

    Examples
    --------
    >>> twice = after(RowOutcome(0, "Why?", "error", attempts=2, cost_usd=0.25),
    ...               RowOutcome(0, "Why?", "ok", attempts=1, cost_usd=0.5))
    >>> twice.status, twice.attempts, twice.cost_usd
    ('ok', 3, 0.75)
    """
    if second is None:
        return first
    paid = [o.cost_usd for o in (first, second) if o.cost_usd is not None]
    kept = second.answer if second.answer is not None else first.answer
    # A row that was not reached again keeps the reason why it failed.
    untried = second.attempts == 0 and second.status in ("cancelled", "skipped")
    return dataclasses.replace(
        first if untried and first.error is not None else second,
        answer=kept,
        attempts=first.attempts + second.attempts,
        cost_usd=sum(paid) if paid else None,
    )
