"""What questions cost: the table of this notebook's requests, and the budget that holds them.

Invariant: a question is sent only if what was spent, what the running questions may cost and what
it may cost itself fit into the budget together. So ten at once cannot pass it either. What a
question may cost is an estimate, and one that costs more than any before it can still pass it.
"""

from __future__ import annotations

import datetime as dt
import math
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

from ipyperplexity.answer_parts import format_cost
from ipyperplexity.errors import BudgetError, ConfigurationError, PerplexityError
from ipyperplexity.option_checks import shown
from ipyperplexity.prices import Estimate, estimate_cost, token_cost
from ipyperplexity.store.ledger import Ledger, ledger
from ipyperplexity.store.ledger_entry import SESSION, LedgerEntry, notebook_name
from ipyperplexity.tapes import deck
from ipyperplexity.usage_table import UsageTable

if TYPE_CHECKING:
    from ipyperplexity.answer import Answer

__all__ = [
    "Estimate", "Reservation", "UsageTable", "check_amount", "check_budget", "estimate_cost",
    "is_unbilled", "ledger", "record", "reserve", "spent", "usage",
]  # fmt: skip

#: Backends whose questions are not billed one by one.
FREE_BACKENDS = ("demo", "web")
#: Failures of which the service bills nothing: the request was refused or did not arrive.
_UNBILLED = (
    *("AUTH", "RETIRED", "QUOTA", "RATE_LIMIT", "INVALID_REQUEST", "CHALLENGE", "NETWORK"),
    *("MISCONFIGURED", "MISSING_CREDENTIAL", "BUDGET"),
)


class Reservation:
    """The part of a budget that is set aside for one running question.

    It counts as spent until it is settled. One that is dropped unsettled is given back.

    Attributes
    ----------
    asked_model : str
        Preset or model that was asked for.
    usd : float
        What is set aside, in US dollars; 0 without a budget.

    Examples
    --------
    >>> before = spent()
    >>> with reserve(100.0, "low") as reserved:
    ...     reserved.settle(0.25)
    >>> round(spent() - before, 6)
    0.25
    """

    def __init__(self, asked_model: str, usd: float) -> None:
        self.asked_model = asked_model
        self.usd = usd
        self._settled = False

    def settle(self, cost_usd: float | None) -> None:
        """Count what the question cost in place of what was set aside; only the first time.

        Parameters
        ----------
        cost_usd : float or None
            US dollars; None where it may have cost something and nobody knows: then what was set
            aside counts.
        """
        _account.settle(self, self.usd if cost_usd is None else cost_usd)

    def finish(self, answer: Answer, kind: str = "ask") -> None:
        """Settle by an answer, and record it in the ledger.

        What the service did not tell the cost of (a stopped answer) counts by its tokens if they
        are known, else by the estimate; a request that was refused counts nothing.
        """
        if deck.replaying() is not None:  # nothing is asked, and nothing paid
            _account.settle(self, 0.0)
            return
        _account.settle(self, _charge(answer, self))
        record(answer, self.asked_model, kind)

    def finish_entry(self, entry: LedgerEntry) -> None:
        """Settle by what was no answer, such as a search, and record it."""
        if deck.replaying() is not None:
            _account.settle(self, 0.0)
            return
        cost = 0.0 if entry.backend in FREE_BACKENDS else entry.cost_usd
        _account.settle(self, self._estimate() if cost is None else cost)
        ledger().record(entry)

    def hold(self) -> None:
        """Count as running until settled, though nobody holds it: what it is for runs elsewhere."""
        _account.hold(self)

    def _estimate(self) -> float:
        return self.usd or estimate_cost(self.asked_model, ledger()).usd

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *exception: object) -> None:
        """Give back what was not settled: nothing was sent, or it cost nothing."""
        self.settle(0.0)


class _Account:
    """What this process has spent, and what is set aside."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent = 0.0
        # Weakly: a question that nobody holds any more is over.
        self._running: weakref.WeakSet[Reservation] = weakref.WeakSet()
        # A job runs on at the service whether or not somebody holds it here.
        self._held: set[Reservation] = set()

    def hold(self, reservation: Reservation) -> None:
        with self._lock:
            if not reservation._settled:
                self._held.add(reservation)

    def spent(self) -> float:
        with self._lock:
            return self._spent

    def reserve(self, budget: float | None, asked_model: str, price: float | None) -> Reservation:
        if budget is None:
            return Reservation(asked_model, 0.0)
        if price is None:
            estimate = estimate_cost(asked_model, ledger())  # before the lock: it looks on the disk
        else:
            estimate = Estimate(price, "its documented price")
        with self._lock:
            running = sum(other.usd for other in list(self._running) if not other._settled)
            _check(budget, self._spent, running, asked_model, estimate)
            reservation = Reservation(asked_model, estimate.usd)
            self._running.add(reservation)
            return reservation

    def settle(self, reservation: Reservation, cost_usd: float) -> None:
        with self._lock:
            if reservation._settled:
                return
            reservation._settled = True
            self._running.discard(reservation)
            self._held.discard(reservation)
            if 0 < cost_usd < math.inf:
                self._spent += cost_usd

    def after_fork(self) -> None:
        # What the parent has spent counts on; its running questions are the parent's.
        self._lock = threading.Lock()
        self._running = weakref.WeakSet()
        self._held = set()


_account = _Account()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_account.after_fork)


def spent() -> float:
    """Return what this process has spent, over all clients, in US dollars."""
    return _account.spent()


def reserve(budget: float | None, asked_model: str, *, price: float | None = None) -> Reservation:
    """Set aside what a question may cost.

    Parameters
    ----------
    budget : float or None
        US dollars that this process may spend in all; None for no limit.
    asked_model : str
        Preset or model that is asked.
    price : float, optional
        US dollars that it costs, where that is known; else it is estimated.

    Raises
    ------
    BudgetError
        If it would pass the budget, together with what was spent and what is running.
    """
    # Who replays a tape pays nothing.
    return _account.reserve(None if deck.replaying() else budget, asked_model, price)


def check_budget(
    budget_usd: float | None, spent_usd: float, asked_model: str, ledger: Ledger
) -> None:
    """Refuse a question that would pass the budget.

    Raises
    ------
    BudgetError
        Saying what was spent, what the question may cost and why that is thought, and how to
        raise the budget.

    Examples
    --------
    >>> check_budget(1.0, 0.0, "low", ledger())
    """
    if budget_usd is not None:
        _check(budget_usd, spent_usd, 0.0, asked_model, estimate_cost(asked_model, ledger))


def _check(
    budget: float, spent_usd: float, running: float, asked_model: str, estimate: Estimate
) -> None:
    # A billionth of a dollar for the rounding of sums.
    if spent_usd + running + estimate.usd <= budget + 1e-9:
        return
    busy = f", {format_cost(running)} more is set aside for running questions" if running else ""
    raise BudgetError(
        f"budget: a question to {asked_model} may cost {format_cost(estimate.usd)} "
        f"({estimate.why}); {format_cost(spent_usd)} of {format_cost(budget)} is spent{busy}. "
        "It was not sent.",
        field="budget",
        hint=(
            "Ask a lighter preset, or raise the budget: %config PerplexityMagics.budget = "
            f"{_enough(spent_usd + running + estimate.usd)} in this notebook, "
            "%perplexity config budget=... for all, in Python Client(budget=...)."
        ),
    )


def _enough(usd: float) -> str:
    """Return a round sum that is enough for this question and some more."""
    return f"{max(1.0, math.ceil(2 * usd)):.1f}"


def check_amount(value: Any, name: str) -> float | None:
    """Return a sum of US dollars, or None for none.

    Raises
    ------
    ConfigurationError
        If it is no number from 0 up.

    Examples
    --------
    >>> check_amount(2, "budget")
    2.0
    """
    if value is None:
        return None
    number = math.nan
    if not isinstance(value, bool | str | bytes):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
    if not 0 <= number < math.inf:
        raise ConfigurationError(
            f"{name}: got {shown(value)}; allowed: US dollars, from 0 up, or None.", field=name
        )
    return number


def record(answer: Answer, asked_model: str, kind: str = "ask") -> None:
    """Record an answer in the ledger; one from the cache was not asked for, and is left out."""
    if not answer.cached:
        ledger().record(LedgerEntry.of_answer(answer, kind, asked_model))


def usage(*, everything: bool = False, since: dt.datetime | None = None) -> UsageTable:
    """Return the requests of this notebook as a table, with their tokens and costs.

    Parameters
    ----------
    everything : bool
        Those of all notebooks and programs of this user instead.
    since : datetime, optional
        Only those asked at that time or later.

    Returns
    -------
    UsageTable
        Oldest first. A notebook's are those of its kernel, and those of its earlier kernels where
        Jupyter tells the notebook's name.
    """
    if everything:
        return UsageTable(ledger().entries(since=since))
    mine = ledger().entries(session=SESSION, notebook=notebook_name() or None, since=since)
    return UsageTable(mine)


def is_unbilled(failure: PerplexityError) -> bool:
    """Whether nothing is billed for a request that failed so: it was refused or did not arrive.

    Examples
    --------
    >>> from ipyperplexity.errors import RateLimitError, RequestTimeout
    >>> is_unbilled(RateLimitError("slow down")), is_unbilled(RequestTimeout("too late"))
    (True, False)
    """
    is_refusal = failure.code == "SERVER" and failure.status_code is not None
    return failure.code in _UNBILLED or is_refusal


def _charge(answer: Answer, reservation: Reservation) -> float:
    """Return what an answer counts, in US dollars."""
    if answer.cached or answer.backend in FREE_BACKENDS:
        return 0.0
    if answer.usage.cost_usd is not None:
        return answer.usage.cost_usd
    if answer.error is not None and is_unbilled(answer.error) and not answer.text:
        return 0.0
    by_tokens = token_cost(answer.model or "", answer.usage)
    if by_tokens is not None:
        return by_tokens
    return reservation._estimate()
