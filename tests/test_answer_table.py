"""Several answers as one table: one row an answer, or one row a source."""

from __future__ import annotations

import collections.abc
import datetime as dt
import pickle
from typing import Any

import pandas as pd
import pytest

import ipyperplexity as pplx
from ipyperplexity.answer import Answer, Usage
from ipyperplexity.batch.answer_table import ROW_SCHEMA, AnswerTable
from ipyperplexity.errors import InvalidRequestError, ServerError
from ipyperplexity.sources import Source, Sources

A = Answer(
    "Which dune?",
    "Pilat.[1]",
    sources=Sources([Source(1, "Dune", "https://d.example", n_cited=1, cited=True)]),
    usage=Usage(total_tokens=30, cost_usd=0.5),
    model="m/1",
    first_text=0.1,
    created=dt.datetime(2026, 1, 5, 12, tzinfo=dt.UTC),
)
B = Answer("Which sea?", "", status="failed", error=ServerError("down"))
TABLE = pplx.answers([A, B])
EMPTY = pplx.answers([])
NAMES = [column.name for column in ROW_SCHEMA]
BOTH = pytest.mark.parametrize("table", [TABLE, EMPTY], ids=["2 rows", "0 rows"])


def test_a_list_of_answers_gives_one_row_an_answer() -> None:
    frame = TABLE.to_pandas()
    assert frame["question"].tolist() == ["Which dune?", "Which sea?"]
    assert frame["n_sources"].tolist() == [1, 0]
    assert frame["error"].isna().tolist() == [True, False]
    assert frame["total_tokens"][0] == 30
    assert list(A.row()) == NAMES == list(frame.columns)


@BOTH
def test_every_frame_library_gets_the_same_types_at_any_number_of_rows(table: AnswerTable) -> None:
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    frame = table.to_pandas()
    assert list(frame.columns) == NAMES
    assert list(frame.dtypes) == list(TABLE.to_pandas().dtypes)
    assert str(frame["created"].dtype) == "datetime64[us, UTC]"
    assert str(frame["total_tokens"].dtype) == "Int64"
    assert str(frame["n_cited"].dtype) == "int32"
    assert pl.DataFrame(table).schema["created"] == pl.Datetime("us", "UTC")
    assert str(pa.table(table).schema.field("created").type) == "timestamp[us, tz=UTC]"
    rows = table
    assert duckdb.sql("from rows").columns == NAMES
    assert len(rows.to_dicts()) == len(table)


def test_pandas_takes_the_table_itself() -> None:
    frame = pd.DataFrame(TABLE)
    assert list(frame.columns) == NAMES
    assert frame["text"].tolist() == ["Pilat.[1]", ""]


def test_a_position_gives_the_answer_a_slice_a_table_and_a_name_a_column() -> None:
    assert TABLE[0] is A and TABLE[-1] is B
    assert isinstance(TABLE[:1], AnswerTable)
    assert TABLE[1:].answers == (B,)
    assert TABLE["status"] == ["completed", "failed"]
    assert len(TABLE) == 2
    with pytest.raises(KeyError, match="no column 'cost'; there are question, text"):
        TABLE["cost"]
    assert not isinstance(TABLE, collections.abc.Sequence)


def test_all_sources_are_one_long_table_that_says_whose_they_are() -> None:
    frame = pplx.answers([B, A, A]).sources.to_pandas()
    assert frame["row"].tolist() == [1, 2]
    assert frame["title"].tolist() == ["Dune", "Dune"]
    assert list(EMPTY.sources.to_pandas().columns) == list(frame.columns)


@pytest.mark.parametrize("given", [A, 3, None, [A, "text"], [A, A.sources[0]], A.sources])
def test_only_answers_are_taken_and_the_message_says_what_came(given: Any) -> None:
    with pytest.raises(InvalidRequestError, match=r"allowed: (a list of )?Answers") as e:
        pplx.answers(given)
    assert e.value.field == "answers"


def test_a_table_can_be_pickled() -> None:
    twin = pickle.loads(pickle.dumps(TABLE))
    assert twin.to_dicts() == TABLE.to_dicts()
    assert twin[1].error.code == "SERVER"


def test_displays_are_short_inert_and_say_what_they_leave_out() -> None:
    hostile = Answer("<script>alert(1)</script>", "<img src=x onerror=alert(1)>\x1b[31m\u202e" * 99)
    many = pplx.answers([hostile] * 30)
    html = many._repr_html_()
    assert "<script" not in html and "<img" not in html
    assert html.count("<tr>") == 21
    for shown in (html, repr(many)):
        assert "\x1b" not in shown and "\u202e" not in shown
        assert "10 more; to_pandas() has all" in shown
    assert len(repr(many)) < 5000
    assert "more" not in repr(TABLE)
    assert "$" in TABLE._repr_html_() or "0.5" in TABLE._repr_html_()
    assert "AnswerTable(0 answers)" in repr(EMPTY)
