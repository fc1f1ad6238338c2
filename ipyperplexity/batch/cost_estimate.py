"""What a batch would cost, told from a few of its rows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ipyperplexity.answer_parts import format_cost
from ipyperplexity.batch.outcome import RowOutcome
from ipyperplexity.batch.pacer import SHARE


@dataclass(frozen=True, repr=False)
class CostEstimate:
    """What a batch would cost and take, with a range.

    The range is the 90 % confidence interval of a row's mean cost (Student's t), widened to the
    cheapest and the dearest row that was asked, and never below 0. Of one row there is no range.

    Attributes
    ----------
    rows : int
        Rows in all.
    unique : int
        Different questions among them; each is asked once.
    cached : int
        Of these, how many had an answer already, which costs nothing.
    sampled : int
        Rows that it is told from. They are part of the total.
    mean_usd, low_usd, high_usd : float or None
        US dollars for a question; None if no row that was asked has a known cost.
    total_usd, total_low_usd, total_high_usd : float or None
        US dollars for all.
    seconds : float or None
        Time for all; None if unknown.

    Examples
    --------
    >>> asked = [RowOutcome(n, "", "ok", asked_usd=usd, elapsed_s=2.0)
    ...          for n, usd in enumerate([0.004, 0.0041, 0.0042])]
    >>> CostEstimate.of(asked, rows=1000, unique=1000, cached=0, concurrency=8, rpm=None)
    1,000 rows: about $4.10 ($3.93 to $4.27), about 4 min
    """

    rows: int
    unique: int
    cached: int
    sampled: int
    mean_usd: float | None
    low_usd: float | None
    high_usd: float | None
    total_usd: float | None
    total_low_usd: float | None
    total_high_usd: float | None
    seconds: float | None

    @classmethod
    def of(
        cls,
        samples: Sequence[RowOutcome],
        *,
        rows: int,
        unique: int,
        cached: int,
        concurrency: int,
        rpm: float | None,
    ) -> CostEstimate:
        """Extrapolate from rows that were asked; those that failed tell nothing.

        Parameters
        ----------
        samples : sequence of RowOutcome
            What became of them.
        rows, unique, cached : int
            As of the class.
        concurrency : int
            Questions at once.
        rpm : float or None
            Requests a minute that the service allows, if known.
        """
        good = [sample for sample in samples if sample.status == "ok"]
        costs = [cost for sample in good if (cost := _cost(sample)) is not None]
        to_ask = max(0, unique - cached)
        mean, low, high = _range(costs) if costs else (None, None, None)
        times = [time for sample in good if (time := _seconds(sample)) is not None]
        return cls(
            rows=rows,
            unique=unique,
            cached=cached,
            sampled=len(costs),
            mean_usd=mean,
            low_usd=low,
            high_usd=high,
            total_usd=_times(mean, to_ask),
            total_low_usd=_times(low, to_ask),
            total_high_usd=_times(high, to_ask),
            seconds=_duration(times, to_ask, concurrency, rpm),
        )

    def __repr__(self) -> str:
        rows = f"{self.rows:,} row{'' if self.rows == 1 else 's'}"
        facts = [self._cost_words()]
        if self.seconds and self.unique > self.cached:
            facts.append(_time_words(self.seconds))
        return f"{rows}: {', '.join(facts)}"

    def _cost_words(self) -> str:
        if self.total_usd is None or self.total_low_usd is None or self.total_high_usd is None:
            return "cost unknown, as no row that was asked tells it"
        if self.unique <= self.cached:
            return "nothing to pay"
        about = f"about {format_cost(self.total_usd)}"
        low, high = format_cost(self.total_low_usd), format_cost(self.total_high_usd)
        if low != high:
            return f"{about} ({low} to {high})"
        return f"{about} (told from one row)" if self.sampled == 1 < self.unique else about

    def details(self) -> str:
        """Return how many questions are asked, and why not all; empty if all are.

        Examples
        --------
        >>> CostEstimate.of([], rows=9, unique=7, cached=2, concurrency=1, rpm=None).details()
        '5 questions to ask · 2 rows repeat another · 2 answers in the cache'
        """
        repeated = self.rows - self.unique
        facts = [
            f"{repeated:,} {'row repeats' if repeated == 1 else 'rows repeat'} another"
            if repeated > 0
            else "",
            f"{self.cached:,} answer{'' if self.cached == 1 else 's'} in the cache"
            if self.cached
            else "",
        ]
        if not any(facts):
            return ""
        to_ask = max(0, self.unique - self.cached)
        asked = f"{to_ask:,} question{'' if to_ask == 1 else 's'} to ask"
        return " · ".join([asked, *filter(None, facts)])

    def _repr_pretty_(self, printer: object, cycle: bool) -> None:
        printer.text("\n".join(filter(None, (repr(self), self.details()))))  # type: ignore[attr-defined]

    def _repr_html_(self) -> str:
        from ipyperplexity.markup.pieces import note, wrap

        details = note(self.details()) if self.details() else ""
        return wrap(f"<p>{escape(repr(self))}</p>\n{details}")


def _cost(sample: RowOutcome) -> float | None:
    if sample.asked_usd is not None:
        return sample.asked_usd
    # What was paid for an answer from the cache says nothing of its price.
    return None if sample.cached else sample.cost_usd


def _seconds(sample: RowOutcome) -> float | None:
    if not sample.cached:
        return sample.elapsed_s
    return (sample.answer.elapsed or None) if sample.answer is not None else None


def _times(usd: float | None, questions: int) -> float | None:
    return 0.0 if questions == 0 else None if usd is None else usd * questions


def _range(costs: Sequence[float]) -> tuple[float, float, float]:
    """Return mean, low and high end of the mean cost."""
    mean = statistics.fmean(costs)
    if len(costs) == 1:
        return mean, mean, mean
    margin = student_t(len(costs) - 1) * statistics.stdev(costs) / math.sqrt(len(costs))
    return mean, max(0.0, min(mean - margin, *costs)), max(mean + margin, *costs)


_T_OF_FEW = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812)


def student_t(degrees: int) -> float:
    """Return the 95 % quantile of Student's t: 90 % of it is between that and its negative.

    Parameters
    ----------
    degrees : int
        Degrees of freedom, from 1.

    Examples
    --------
    >>> student_t(2), round(student_t(30), 3)
    (2.92, 1.697)
    """
    if degrees <= len(_T_OF_FEW):
        return _T_OF_FEW[degrees - 1]
    z = statistics.NormalDist().inv_cdf(0.95)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / degrees + second / degrees**2  # exact to 0.001 from 11 degrees on


def _duration(
    times: Sequence[float], questions: int, concurrency: int, rpm: float | None
) -> float | None:
    """Return the seconds for all: what the answers take, or the pace, whichever is longer."""
    if questions == 0:
        return 0.0
    if not times:
        return None
    one = statistics.fmean(times)
    answering = one * max(1.0, questions / max(1, concurrency))
    paced = one + (questions - 1) * 60 / (SHARE * rpm) if rpm else 0.0
    return max(answering, paced)


def _time_words(seconds: float) -> str:
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"about {round(seconds / 60)} min"
    return f"about {seconds / 3600:.1f} h"
