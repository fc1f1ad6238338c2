"""The service's list of models, with the presets that it does not list."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipyperplexity.errors import AuthenticationError, PerplexityError, StreamError
from ipyperplexity.models_table import ModelInfo, Models
from ipyperplexity.question import Question
from ipyperplexity.wire import agent
from ipyperplexity.wire.models import UNIT, presets, read, request

LUNA = {
    "id": "openai/gpt-6-luna",
    "object": "model",
    "created": 1_767_225_600,
    "owned_by": "openai",
    "pricing": {"input": 0.1, "output": 1, "cache_read": 0.01, "unit": UNIT},
}


def models_of(*entries: Any) -> tuple[ModelInfo, ...]:
    return read({"object": "list", "data": list(entries)}, with_presets=False)


def test_the_list_is_asked_for_without_a_body() -> None:
    made = request()
    assert (made.method, made.path, made.body) == ("GET", "/v1/models", None)


def test_a_model_has_its_maker_its_prices_and_its_day() -> None:
    assert models_of(LUNA) == (
        ModelInfo(
            "openai/gpt-6-luna",
            "model",
            "openai",
            0.1,
            1.0,
            0.01,
            None,
            dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        ),
    )


def test_presets_come_first_and_each_can_be_asked() -> None:
    infos = read({"data": [LUNA]})
    assert [info.name for info in infos] == [
        *("fast", "low", "medium", "high", "xhigh", "wide-research"),
        "openai/gpt-6-luna",
    ]
    assert [info.kind for info in infos] == ["preset"] * 6 + ["model"]
    for preset in presets():
        assert preset.input_usd_per_1m is preset.output_usd_per_1m is None
        assert agent.request(Question("Why?", model=preset.name)).body["preset"] == preset.name  # type: ignore[index]


@pytest.mark.parametrize("unit", [None, "usd_per_token", "eur_per_1m_tokens", 5])
def test_a_price_in_another_unit_is_no_price(unit: Any) -> None:
    (info,) = models_of({**LUNA, "pricing": {**LUNA["pricing"], "unit": unit}})  # type: ignore[dict-item]
    assert info.input_usd_per_1m is info.output_usd_per_1m is info.cache_read_usd_per_1m is None


@pytest.mark.parametrize("price", [None, "0.1", -1, float("nan"), float("inf"), True, 10**400, []])
def test_a_price_that_is_none_is_left_out_and_the_others_stay(price: Any) -> None:
    (info,) = models_of({**LUNA, "pricing": {**LUNA["pricing"], "input": price}})  # type: ignore[dict-item]
    assert (info.input_usd_per_1m, info.output_usd_per_1m) == (None, 1.0)


@pytest.mark.parametrize("created", [None, 0, -5, "2026", float("nan"), 10**30, True, 10**400])
def test_a_time_that_is_none_is_left_out(created: Any) -> None:
    assert models_of({**LUNA, "created": created})[0].created is None


def test_what_names_no_model_is_skipped() -> None:
    assert models_of(None, "x", {}, {"id": " "}, {"id": 5}, {"id": "local", "owned_by": 3}) == (
        ModelInfo("local"),
    )
    assert read([{"id": "local"}], with_presets=False) == (ModelInfo("local"),)


@pytest.mark.parametrize("reply", [None, {}, {"data": None}, {"data": {}}, "data", 3])
def test_something_else_than_a_list_is_an_error(reply: Any) -> None:
    with pytest.raises(StreamError, match="no list of models"):
        read(reply)


def test_a_failure_inside_a_good_reply_is_that_failure() -> None:
    with pytest.raises(AuthenticationError):
        read({"error": {"message": "no", "type": "invalid_api_key"}})


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.sampled_from(
                ["data", "id", "created", "owned_by", "pricing", "unit", "input", UNIT]
            ),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=20,
)


@given(JSON)
def test_whatever_comes_is_a_table_or_one_of_our_errors(reply: Any) -> None:
    for value in (reply, {"data": reply}, {"data": [reply]}):
        try:
            infos = read(value)
        except PerplexityError:
            continue
        assert len(Models(infos).to_dicts()) >= 6
