"""Values out of the service's JSON are what they should be, or nothing."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipyperplexity.wire import values


@pytest.mark.parametrize(("value", "number"), [
    (3, 3), (0, 0), (-2, -2), (3.0, 3), (3.5, None), (True, None), ("3", None), (None, None),
    (2**63, None), (2**63 - 1, 2**63 - 1), (10**400, None), (math.inf, None), (math.nan, None),
    (1e300, None), ([], None),
])  # fmt: skip
def test_a_whole_number_fits_a_column_or_is_none(value: Any, number: int | None) -> None:
    assert values.whole(value) == number


@pytest.mark.parametrize(("value", "number"), [
    (3, 3.0), (0.25, 0.25), (True, None), ("3", None), (None, None), (10**400, None),
    (math.inf, None), (math.nan, None), ({}, None),
])  # fmt: skip
def test_an_amount_is_finite_or_none(value: Any, number: float | None) -> None:
    assert values.amount(value) == number


def test_a_pair_of_surrogates_is_one_character_and_a_half_is_none() -> None:
    assert values.parse(r'{"\ud800": ["\ud83d\ude00", "é", {"a": "\udc00b"}]}') == {
        "\ufffd": ["😀", "é", {"a": "\ufffdb"}]
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_clean_values_are_not_changed(value: Any) -> None:
    assert values.clean(value) == value == values.parse(json.dumps(value))


@pytest.mark.parametrize("text", ["", "{", "nul", "[" * 100_000, '{"a": 1} x', "9" * 5000])
def test_what_is_no_json_is_none(text: str) -> None:
    assert values.parse(text) is None
