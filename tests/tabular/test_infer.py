"""How the texts of a column become numbers and dates, and when they stay text."""

from __future__ import annotations

from calendar import month_name
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.tabular.infer import infer_column


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1,234", "5"], [1234, 5]),
        (["1 234", "10\u202f000"], [1234, 10_000]),
        (["1'234'567"], [1_234_567]),
        (["12,34,567"], [1_234_567]),
        (["1.234.567"], [1_234_567]),
        (["-5", "\u22125", "\u20135", "+5", "(5)"], [-5, -5, -5, 5, -5]),
        (
            ["5k", "1.5M", "2 bn", "3 million", "1.2 billion"],
            [5000, 1_500_000, 2 * 10**9, 3 * 10**6, 12 * 10**8],
        ),
        (["2019", "2020"], [2019, 2020]),
        (["9223372036854775807"], [2**63 - 1]),
        (["1", "n/a", "N/A", "-", "\u2014", "", " ", "None"], [1, *[None] * 7]),
    ],
)
def test_whole_numbers_are_int64(cells, values):
    column = infer_column(cells)
    assert (column.kind, column.values, column.unit) == ("int64", values, None)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["1.0", "2"], [1.0, 2.0]),
        (["1,234.5", "7"], [1234.5, 7.0]),
        (["1.234,5", "7"], [1234.5, 7.0]),
        (["1 234,5"], [1234.5]),
        (["0,5", "12"], [0.5, 12.0]),
        ([".5"], [0.5]),
        (["1e5", "2.5E-3"], [100_000.0, 0.0025]),
        (["1.234"], [1.234]),
    ],
)
def test_other_numbers_are_float64(cells, values):
    column = infer_column(cells)
    assert (column.kind, column.values, column.unit) == ("float64", values, None)


@pytest.mark.parametrize(
    ("cells", "values", "unit"),
    [
        (["45%", "3.5 %"], [45.0, 3.5], "%"),
        (["1,5 %", "12 %"], [1.5, 12.0], "%"),
        (["$1,234", "$0.5M", "$5m", "0"], [1234, 500_000, 5_000_000, 0], "$"),
        (["($1.5M)", "-$2", "$-2", "$(2)"], [-1_500_000, -2, -2, -2], "$"),
        (["€ 5", "€7"], [5, 7], "€"),
        (["5 EUR", "7EUR"], [5, 7], "EUR"),
        (["USD 5", "USD7bn"], [5, 7 * 10**9], "USD"),
        (["US$5"], [5], "US$"),
        (["12,50 €", "1.234,00 €"], [12.5, 1234.0], "€"),
    ],
)
def test_the_unit_that_all_numbers_carry_is_set_aside(cells, values, unit):
    column = infer_column(cells)
    assert (column.values, column.unit) == (values, unit)
    assert column.kind in ("int64", "float64")


@pytest.mark.parametrize(
    "cells",
    [
        ["5-7"],
        ["2019\u20132021"],
        ["007"],
        ["02139"],
        ["12345678901234567890"],
        ["1e999"],
        ["1.234,5", "1.5"],
        ["1,5"],
        ["1,234,56"],
        ["1 2"],
        ["$5", "€5"],
        ["$5", "5%"],
        ["$5", "7"],
        ["5 m", "7"],
        ["5 km"],
        ["~5"],
        ["--5"],
        ["(-5)"],
        ["(5"],
        ["5."],
        ["$"],
        ["$5 USD"],
        ["1", "two"],
        ["03/04/2024"],
        ["February 30, 2024"],
        ["March 2024"],
        ["2024-03-03", "soon"],
    ],
)
def test_one_doubtful_cell_leaves_the_column_as_text(cells):
    column = infer_column(cells)
    assert (column.kind, column.values, column.unit) == ("str", cells, None)


def test_versions_stay_as_they_are_written():
    assert infer_column(["3.8", "3.9", "3.10"]).values == ["3.8", "3.9", "3.10"]
    assert infer_column(["3.8", "3.9", "3.11"]).kind == "float64", "nobody can tell"
    assert infer_column(["1.5", "2.25", "3.10"]).values == [1.5, 2.25, 3.1]
    assert infer_column(["3.50", "3.10"]).values == [3.5, 3.1]


def test_common_english_and_iso_dates_are_dates():
    cells = [
        "2024-03-04",
        "March 4, 2024",
        "Mar. 4th 2024",
        "4 March 2024",
        "4 mar 2024",
        "Monday, March 4, 2024",
        "n/a",
    ]
    column = infer_column(cells)
    assert column.kind == "date"
    assert column.values == [date(2024, 3, 4)] * 6 + [None]
    assert infer_column(["Sept 4, 2024", "May 4, 2024"]).values == [
        date(2024, 9, 4),
        date(2024, 5, 4),
    ]


def test_words_stay_words_and_only_clear_gaps_are_missing():
    assert infer_column(["NA", "Null", "n/a", "", "\u2014"]).values == [
        "NA",
        "Null",
        None,
        None,
        None,
    ]


def test_a_column_without_a_value_is_text():
    assert infer_column(["-", ""]).kind == "str"
    assert infer_column([]).values == []


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=12), max_size=4))
def test_any_cells_give_as_many_values(cells):
    assert len(infer_column(cells).values) == len(cells)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text("0123456789.,-()$€%kMbn e\u202f'", max_size=10), max_size=3))
def test_anything_like_a_number_gives_as_many_values(cells):
    assert len(infer_column(cells).values) == len(cells)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5))
def test_whole_numbers_come_back_with_and_without_thousands_separators(numbers):
    assert infer_column([str(n) for n in numbers]).values == numbers
    assert infer_column([f"{n:,}" for n in numbers]).values == numbers
    assert infer_column(
        [f"$ {n:_}".replace("_", " ") for n in map(abs, numbers) if n < 2**63]
    ).kind in ("int64", "str")


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_floats_come_back_as_python_writes_them(numbers):
    assert infer_column([repr(x) for x in numbers]).values == numbers


@given(st.lists(st.dates(), min_size=1, max_size=5))
def test_dates_come_back_from_every_style(days):
    long = [f"{month_name[d.month]} {d.day}, {d.year:04}" for d in days]
    short = [f"{d.day} {month_name[d.month][:3]} {d.year:04}" for d in days]
    for cells in ([d.isoformat() for d in days], long, short):
        assert infer_column(cells).values == days


@pytest.mark.parametrize(
    "cell", ["1" * 200_000, "1 " * 100_000, "1," * 100_000, "1" + "a" * 200_000, "(" * 200_000]
)
def test_a_huge_cell_takes_no_time_to_speak_of(cell):
    assert infer_column([cell]).kind == "str"
