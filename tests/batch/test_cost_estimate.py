"""What a batch would cost, told from a few of its rows."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipyperplexity.answer import Answer
from ipyperplexity.batch.cost_estimate import CostEstimate, student_t
from ipyperplexity.batch.outcome import RowOutcome
from ipyperplexity.errors import ServerError


def asked(*costs: float | None, elapsed: float = 2.0) -> list[RowOutcome]:
    return [
        RowOutcome(n, "Why?", "ok", Answer("Why?", "So."), elapsed_s=elapsed, asked_usd=cost)
        for n, cost in enumerate(costs)
    ]


def estimate(samples: list[RowOutcome], **facts: Any) -> CostEstimate:
    unique = facts.get("unique", facts.get("rows", 1000))
    known = {"rows": 1000, "unique": unique, "cached": 0, "concurrency": 8, "rpm": None}
    return CostEstimate.of(samples, **{**known, **facts})


def test_three_rows_tell_the_cost_of_all_with_a_range() -> None:
    told = estimate(asked(0.004, 0.0041, 0.0042))
    margin = 2.920 * 0.0001 / math.sqrt(3)  # Student's t for 2 degrees of freedom, 90 %
    assert told.mean_usd == pytest.approx(0.0041)
    assert told.total_usd == pytest.approx(4.1)
    assert told.total_low_usd == pytest.approx(1000 * (0.0041 - margin))
    assert told.total_high_usd == pytest.approx(1000 * (0.0041 + margin))
    assert told.sampled == 3
    assert repr(told) == "1,000 rows: about $4.10 ($3.93 to $4.27), about 4 min"


def test_the_range_is_never_below_nothing_and_holds_all_that_was_seen() -> None:
    told = estimate(asked(0.001, 0.001, 0.1))
    assert told.low_usd == 0.0
    many = estimate(asked(*[0.004] * 50, 0.001, 0.009))
    assert (many.low_usd, many.high_usd) == (0.001, 0.009)


@given(
    costs=st.lists(st.floats(0, 10), min_size=1, max_size=40),
    rows=st.integers(1, 10**6),
    data=st.data(),
)
def test_low_is_below_the_mean_and_high_above_it_whatever_it_costs(
    costs: list[float], rows: int, data: st.DataObject
) -> None:
    unique = data.draw(st.integers(1, rows))
    cached = data.draw(st.integers(0, unique))
    told = estimate(asked(*costs), rows=rows, unique=unique, cached=cached)
    assert told.mean_usd is not None and told.low_usd is not None and told.high_usd is not None
    assert told.total_usd is not None and told.total_low_usd is not None
    slack = 1e-9 * (1 + max(costs))
    assert 0 <= told.low_usd <= min(costs) + slack and told.high_usd >= max(costs) - slack
    assert told.low_usd - slack <= told.mean_usd <= told.high_usd + slack
    assert told.total_usd == pytest.approx(told.mean_usd * (unique - cached))
    assert told.total_low_usd <= told.total_usd + slack * rows
    assert repr(told) and told._repr_html_()


def test_only_questions_that_have_to_be_asked_are_counted() -> None:
    told = estimate(asked(0.01, 0.01), rows=1000, unique=600, cached=100)
    assert told.total_usd == pytest.approx(5.0)
    assert repr(told) == "1,000 rows: about $5.00, about 2 min"
    assert told.details() == (
        "500 questions to ask · 400 rows repeat another · 100 answers in the cache"
    )
    assert told.details() in told._repr_html_()
    assert estimate(asked(0.01)).details() == ""


def test_with_all_answers_in_the_cache_there_is_nothing_to_pay() -> None:
    told = estimate([], rows=20, unique=7, cached=7)
    assert (told.total_usd, told.total_low_usd, told.total_high_usd) == (0.0, 0.0, 0.0)
    assert told.seconds == 0.0
    assert repr(told) == "20 rows: nothing to pay"
    assert repr(estimate([], rows=0)) == "0 rows: nothing to pay"


def test_one_row_tells_no_range_and_says_so() -> None:
    told = estimate(asked(0.004))
    assert told.low_usd == told.high_usd == 0.004
    assert repr(told) == "1,000 rows: about $4.00 (told from one row), about 4 min"
    assert repr(estimate(asked(0.004), rows=1)) == "1 row: about $0.0040, about 2 s"


def test_rows_that_failed_or_do_not_tell_their_cost_are_left_out() -> None:
    failed = RowOutcome(9, "Why?", "error", error=ServerError("down"), cost_usd=0.0, elapsed_s=60)
    assert estimate([*asked(0.004, 0.004, None), failed]).sampled == 2
    nothing = estimate([failed])
    assert nothing.mean_usd is None and nothing.total_usd is None and nothing.seconds is None
    assert repr(nothing) == "1,000 rows: cost unknown, as no row that was asked tells it"


def test_an_answer_from_the_cache_counts_with_what_it_cost_and_took_when_it_was_asked_for() -> None:
    answer = Answer("Why?", "So.", elapsed=8.0)
    kept = RowOutcome(
        0, "", "ok", answer, cached=True, cost_usd=0.0, asked_usd=0.5, elapsed_s=0.001
    )
    told = estimate([kept], rows=80)
    assert told.mean_usd == 0.5
    assert told.seconds == pytest.approx(80)
    untold = RowOutcome(0, "", "ok", answer, cached=True, cost_usd=0.0)
    assert estimate([untold]).mean_usd is None


@pytest.mark.parametrize(
    ("rows", "concurrency", "rpm", "seconds", "words"),
    [
        (4, 8, None, 2.0, "about 2 s"),  # all at once
        (1000, 8, None, 250.0, "about 4 min"),
        (1000, 64, 60, 2 + 999 * 60 / 58.2, "about 17 min"),  # the pace holds it up
        (1000, 1, 2000, 2000.0, "about 33 min"),  # the answers do
        (50_000, 8, 50, 2 + 49_999 * 60 / 48.5, "about 17.2 h"),
    ],
)
def test_the_time_is_that_of_the_answers_or_of_the_pace(
    rows: int, concurrency: int, rpm: float | None, seconds: float, words: str
) -> None:
    told = estimate(asked(0.004, 0.005), rows=rows, concurrency=concurrency, rpm=rpm)
    assert told.seconds == pytest.approx(seconds)
    assert repr(told).endswith(words)


def test_the_quantiles_are_those_of_the_tables() -> None:
    # 95 % quantiles as printed in every table of the t distribution
    printed = {
        1: 6.314,
        2: 2.920,
        10: 1.812,
        11: 1.796,
        15: 1.753,
        20: 1.725,
        30: 1.697,
        120: 1.658,
    }
    for degrees, quantile in printed.items():
        assert student_t(degrees) == pytest.approx(quantile, abs=0.001)
    assert student_t(10**6) == pytest.approx(statistics.NormalDist().inv_cdf(0.95), abs=1e-5)
    values = [student_t(n) for n in range(1, 40)]
    assert values == sorted(values, reverse=True)


def test_displays_are_html_and_text_of_the_same_words() -> None:
    from IPython.lib.pretty import pretty

    told = estimate(asked(0.004, 0.005), rows=9, unique=8)
    assert repr(told) in told._repr_html_().replace("&#x27;", "'")
    assert pretty(told) == f"{told!r}\n{told.details()}"
    assert "<script" not in told._repr_html_()
