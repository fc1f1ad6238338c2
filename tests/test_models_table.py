"""Presets and models as a table: prices, and what each cost last."""

from __future__ import annotations

import collections.abc
import datetime as dt
import pickle

import pandas as pd
import pytest

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.models_table import MODEL_SCHEMA, SHOWN_ROWS, ModelInfo, Models
from tests.markup.html_reading import Dom

DAY = dt.datetime(2026, 10, 9, 12, 30, tzinfo=dt.UTC)
LOW = ModelInfo("low", "preset", "perplexity")
LUNA = ModelInfo("openai/gpt-6-luna", "model", "openai", 0.1, 0.5, 0.01, None, DAY)
SOL = ModelInfo("openai/gpt-6-sol", "model", "openai", 2.0, 10.0)
MODELS = Models(
    [LOW, LUNA, SOL], {"low": (0.0041, DAY), "retired": (1.0, DAY), SOL.name: (None, DAY)}
)
EMPTY = Models()
NAMES = [
    "name", "kind", "owner", "input_usd_per_1m", "output_usd_per_1m", "cache_read_usd_per_1m",
    "cache_write_usd_per_1m", "created", "last_cost_usd", "last_asked", "label",
]  # fmt: skip


def test_what_each_cost_last_stands_beside_its_price() -> None:
    assert MODELS["last_cost_usd"] == [0.0041, None, None]
    assert MODELS["last_asked"] == [DAY, None, DAY]
    assert MODELS["input_usd_per_1m"] == [None, 0.1, 2.0]
    assert LOW.last_cost_usd is None
    assert "retired" not in MODELS["name"]


def test_a_position_gives_a_model_a_slice_a_table_and_a_name_a_column() -> None:
    assert MODELS[1] is LUNA and MODELS[-1].name == SOL.name
    assert isinstance(MODELS[:2], Models) and len(MODELS[:2]) == 2
    assert MODELS[:1]["last_cost_usd"] == [0.0041]
    assert MODELS.get(LUNA.name) is LUNA and MODELS.get("nobody") is None
    assert MODELS.presets["name"] == ["low"]
    with pytest.raises(KeyError, match="no column 'price'; there are name, kind"):
        MODELS["price"]
    assert not isinstance(MODELS, collections.abc.Sequence)


def test_of_a_name_that_comes_twice_the_first_is_kept() -> None:
    assert list(Models([LUNA, ModelInfo(LUNA.name, owner="other")])) == [LUNA]


@pytest.mark.parametrize("models", [MODELS, EMPTY], ids=["3 rows", "0 rows"])
def test_every_frame_library_gets_the_same_types_at_any_number_of_rows(models: Models) -> None:
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    frame = models.to_pandas()
    assert list(frame.columns) == NAMES == [column.name for column in MODEL_SCHEMA]
    assert list(frame.dtypes) == list(MODELS.to_pandas().dtypes)
    assert str(frame["input_usd_per_1m"].dtype) == "float64"
    assert str(frame["last_asked"].dtype) == "datetime64[us, UTC]"
    assert pl.DataFrame(models).schema["created"] == pl.Datetime("us", "UTC")
    assert pa.table(models).to_pylist() == models.to_dicts()
    assert duckdb.sql("from models").columns == NAMES
    assert len(frame) == len(models)


def test_pandas_takes_the_table_itself() -> None:
    frame = pd.DataFrame(MODELS)
    assert list(frame.columns) == NAMES
    assert frame["name"].tolist() == ["low", LUNA.name, SOL.name]


def test_it_is_equal_to_its_copy_and_never_a_key() -> None:
    assert pickle.loads(pickle.dumps(MODELS)) == MODELS != EMPTY
    with pytest.raises(TypeError):
        hash(MODELS)
    with pytest.raises(InvalidRequestError, match="type str; allowed: ModelInfo"):
        Models(["low"])  # type: ignore[list-item]


def test_the_display_shows_prices_and_the_last_cost_with_their_unit() -> None:
    lines = repr(MODELS).splitlines()
    assert lines[0] == "Models(1 preset, 2 models; prices in USD per million tokens)"
    assert lines[1].split() == ["name", "kind", "input", "output", "last", "cost", "last", "asked"]
    asked = f"{DAY.astimezone():%Y-%m-%d %H:%M}"
    assert lines[2].split() == ["low", "preset", "0.0041", *asked.split()]
    assert lines[3].split() == ["openai/gpt-6-luna", "model", "0.1", "0.5"]
    text = Dom(MODELS._repr_html_()).text
    for shown in (
        "openai/gpt-6-sol",
        "0.0041",
        asked,
        "prices in USD per million tokens",
    ):
        assert shown in text
    assert repr(EMPTY) == "Models(0 presets, 0 models; prices in USD per million tokens)"


def test_a_long_list_is_cut_in_sight_and_says_so() -> None:
    many = Models(ModelInfo(f"m/{n}") for n in range(1000))
    for shown in (repr(many), many._repr_html_()):
        assert shown.count("m/") == SHOWN_ROWS
        assert "800 more; to_pandas() has all" in shown


def test_a_hostile_name_is_inert_wherever_it_is_shown() -> None:
    hostile = '</td><script>alert(1)</script> "\x1b[31m\u202e\n'
    models = Models([ModelInfo(hostile, hostile)])
    assert "<script" not in models._repr_html_()
    for shown in (models._repr_html_(), repr(models)):
        assert "\x1b" not in shown and "\u202e" not in shown
    assert len(repr(models).splitlines()) == 3
