"""A column of answers beside the data: types, index, errors, costs, asking again, displays."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime as dt
import enum
import json
import pickle
import time
import warnings
from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest

from ipyperplexity.answer import Answer
from ipyperplexity.batch.enriched_table import EnrichedTable
from ipyperplexity.batch.outcome import RowOutcome
from ipyperplexity.errors import (
    InvalidRequestError,
    PerplexityWarning,
    RateLimitError,
    StreamError,
)
from ipyperplexity.schema import Schema
from ipyperplexity.sources import Source, Sources

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
duckdb = pytest.importorskip("duckdb")


class Size(enum.Enum):
    SMALL = "small"


@dataclasses.dataclass
class Place:
    city: str


@dataclasses.dataclass
class Company:
    founder: str
    year: int
    share: float | None
    listed: dt.date | None
    seen: dt.datetime | None
    active: bool
    tags: list[str]
    hq: Place
    size: Size = Size.SMALL


COMPANY = Company(
    "Ole", 1932, 0.5, dt.date(2025, 3, 2), None, True, ["toys", "bricks"], Place("Billund")
)
PAGE = Source(1, "Lego", "https://lego.example", "lego.example", n_cited=1, cited=True)
FIXED = [
    "answer", "status", "error_type", "error", "attempts", "elapsed_s", "cost_usd", "cached",
]  # fmt: skip


def ok(row: int, text: str = "Ole.[1]", data: Any = None, **facts: Any) -> RowOutcome:
    answer = Answer(f"Who {row}?", text, sources=Sources([PAGE]), data=data)
    facts = {"attempts": 1, "elapsed_s": 1.5, "cost_usd": 0.004, "asked_usd": 0.004, **facts}
    return RowOutcome(row, f"Who {row}?", "ok", answer, **facts)


def failed(row: int, **facts: Any) -> RowOutcome:
    facts = {"error": RateLimitError("slow down"), "attempts": 6, "cost_usd": 0.0, **facts}
    return RowOutcome(row, f"Who {row}?", "error", **facts)


def skipped(row: int) -> RowOutcome:
    return RowOutcome(row, f"Who {row}?", "skipped", reason="the budget is used up")


MIXED = [ok(0, data=COMPANY), failed(1), skipped(2), ok(3, data=COMPANY, cached=True, cost_usd=0.0)]


# --- columns --------------------------------------------------------------------------------------


def test_there_is_one_row_a_question_in_the_order_of_the_data() -> None:
    table = EnrichedTable(reversed(MIXED))
    frame = table.to_pandas()
    assert list(frame.columns) == FIXED
    assert frame["status"].tolist() == ["ok", "error", "skipped", "ok"]
    assert table["answer"] == ["Ole.[1]", None, None, "Ole.[1]"]
    assert table["error_type"] == [None, "RateLimitError", None, None]
    assert table["error"] == [None, "slow down", "the budget is used up", None]
    assert table["attempts"] == [1, 6, 0, 1]
    assert table["cost_usd"] == [0.004, 0.0, None, 0.0]
    assert table["cached"] == [False, False, False, True]
    assert table.to_dicts() == list(table)
    assert not isinstance(table, collections.abc.Sequence)


def test_the_fields_of_the_schema_are_typed_columns_between_answer_and_status() -> None:
    frame = EnrichedTable(MIXED, schema=Company).to_pandas()
    fields = [field.name for field in dataclasses.fields(Company)]
    assert list(frame.columns) == ["answer", *fields, *FIXED[1:]]
    assert {name: str(frame[name].dtype) for name in fields} == {
        "founder": str(pd.array(["a"], dtype="str").dtype),
        "year": "Int64",
        "share": "float64",
        "listed": "datetime64[us]",
        "seen": "datetime64[us, UTC]",
        "active": "boolean",
        "tags": "object",
        "hq": str(pd.array(["a"], dtype="str").dtype),
        "size": str(pd.array(["a"], dtype="str").dtype),
    }
    assert frame["year"].tolist() == [1932, pd.NA, pd.NA, 1932]
    assert frame["tags"][0] == ["toys", "bricks"]
    assert json.loads(frame["hq"][0]) == {"city": "Billund"}
    assert frame["size"][0] == "small"


def test_values_that_were_kept_as_json_give_the_same_cells() -> None:
    kept = json.loads(
        json.dumps(dataclasses.asdict(COMPANY) | {"size": "small"}, default=lambda v: v.isoformat())
    )
    fresh = EnrichedTable([ok(0, data=COMPANY)], schema=Company)
    assert EnrichedTable([ok(0, data=kept)], schema=Company).to_dicts() == fresh.to_dicts()


ROWS = {
    "none": [],
    "all failed": [failed(0), skipped(1)],
    "mixed": MIXED,
    "all ok": [ok(0, data=COMPANY)],
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
@pytest.mark.parametrize("schema", [None, Company, list[Place]], ids=["text", "record", "list"])
def test_every_frame_library_gets_the_same_types_whatever_came(
    rows: list[RowOutcome], schema: Any
) -> None:
    if schema == list[Place]:
        rows = [
            dataclasses.replace(row, answer=Answer("", "", data=[Place("Bonn")]))
            if row.answer
            else row
            for row in rows
        ]
    table, model = EnrichedTable(rows, schema=schema), EnrichedTable([], schema=schema)
    assert list(table.to_pandas().dtypes.items()) == list(model.to_pandas().dtypes.items())
    assert pl.DataFrame(table).schema == pl.DataFrame(model).schema == table.to_polars().schema
    assert pa.table(table).schema.equals(pa.table(model).schema)
    asked = table  # a name that SQL does not mean otherwise
    assert duckdb.sql("from asked").types == duckdb.sql("from model").types
    assert duckdb.sql("select count(*) from asked").fetchall() == [(len(asked),)]
    assert len(pd.DataFrame(table)) == len(table) == len(rows)
    assert table.errors.to_pandas().dtypes.equals(model.errors.to_pandas().dtypes)
    assert table.sources.to_pandas().dtypes.equals(model.sources.to_pandas().dtypes)
    assert table.records.to_pandas().dtypes.equals(model.records.to_pandas().dtypes)


def test_a_field_named_as_another_column_gets_an_underscore() -> None:
    schema = {"status": str, "cached": bool, "status_": str, "error": int}
    value = {"status": "open", "cached": True, "status_": "other", "error": 3}
    (row,) = EnrichedTable([ok(0, data=value)], schema=schema).to_dicts()
    assert (row["status"], row["status__"], row["status_"]) == ("ok", "open", "other")
    assert (row["cached"], row["cached_"]) == (False, True)
    assert (row["error"], row["error_"]) == (None, 3)


def test_a_schema_of_one_scalar_stands_beside_the_text() -> None:
    table = EnrichedTable([ok(0, "It is 42.", data=42)], schema=int)
    assert (table["answer"], table["answer_"]) == (["It is 42."], [42])


@pytest.mark.parametrize(
    ("schema", "value", "name", "cell"),
    [
        (list[str], ["a", "b"], "items", ["a", "b"]),
        (list[int], [1, 2], "items", "[1, 2]"),
        (list[Place], [Place("Bonn")], "items", '[{"city": "Bonn"}]'),
        ({"places": [{"city": str}]}, {"places": [{"city": "Bonn"}]}, "places", '[{"city": "Bonn"}]'),
        ({"answer": [{"city": str}]}, {"answer": []}, "answer_", "[]"),
        (list[dt.date], [dt.date(2025, 1, 2)], "items", '["2025-01-02"]'),
    ],
)  # fmt: skip
def test_an_answer_that_is_a_list_is_one_cell(
    schema: Any, value: Any, name: str, cell: Any
) -> None:
    table = EnrichedTable([ok(0, data=value), failed(1)], schema=schema)
    assert table[name] == [cell, None]
    assert len(table.to_polars()) == 2


def test_the_records_of_all_lists_are_one_long_table() -> None:
    value = {"places": [{"city": "Bonn", "people": 3}, {"city": "Ulm", "people": 1}]}
    rows = [failed(0), ok(1, data=value), ok(2, data={"places": []}), ok(3, data=value)]
    records = EnrichedTable(rows, schema={"places": [{"city": str, "people": int}]}).records
    assert records.column("row") == [1, 1, 3, 3]
    assert records.column("city") == ["Bonn", "Ulm"] * 2
    assert str(records.to_pandas()["people"].dtype) == "Int64"


def test_the_records_may_have_a_field_that_is_called_row() -> None:
    table = EnrichedTable([ok(4, data={"row": "front"})], schema={"row": str})
    assert table.records.to_dicts() == [{"row": 4, "row_": "front"}]


@pytest.mark.parametrize("bad", [{"year": 10**30}, {"year": "soon"}, ["no record"], 7])
def test_a_value_that_does_not_fit_costs_its_cell_and_not_the_table(bad: Any) -> None:
    rows = [ok(5, data={"year": 1}), ok(6, data=bad), ok(7, data={"year": 3})]
    table = EnrichedTable(rows, schema={"year": int})
    with pytest.warns(PerplexityWarning, match="Row 6: a value does not fit"):
        assert table["year"] == [1, None, 3]
    answer = table[1]
    assert answer is not None and answer.data == bad


def test_what_had_arrived_of_a_failed_answer_never_looks_like_an_answer() -> None:
    part = Answer("Who 0?", "Ole and", sources=Sources([PAGE]), data={"year": 1}, status="failed")
    table = EnrichedTable(
        [failed(0, answer=part, error=StreamError("broke off"))], schema={"year": int}
    )
    assert table["answer"] == table["year"] == [None]
    assert table.sources.num_rows == table.records.num_rows == 0
    assert table.answers == (part,) and table[0] is part


# --- beside the data ------------------------------------------------------------------------------

INDEXES = {
    "numbers": pd.Index([30, 10, 20, 5], name="id"),
    "texts": pd.Index(["d", "a", "b", "c"]),
    "two levels": pd.MultiIndex.from_tuples(
        [("b", 1), ("a", 1), ("b", 2), ("a", 2)], names=["group", "n"]
    ),
    "dates": pd.date_range("2025-01-01", periods=4),
    "missing label": pd.Index([1.0, float("nan"), 2.0, 3.0]),
}


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES)
def test_it_joins_back_by_the_index(index: Any) -> None:
    df = pd.DataFrame({"company": ["a", "b", "c", "d"]}, index=index)
    table = EnrichedTable(MIXED, index=df.index, schema=Company)
    joined = df.join(table.to_pandas())
    assert joined.index.equals(index) and joined.index.names == index.names
    assert joined["company"].tolist() == ["a", "b", "c", "d"]
    assert joined["status"].tolist() == ["ok", "error", "skipped", "ok"]


@pytest.mark.parametrize(
    "index",
    [
        pd.Index([3, 1, 3, 2]),
        pd.MultiIndex.from_tuples([("b", 1), ("a", 1), ("b", 1), ("b", 1)]),
    ],
    ids=["one level", "two levels"],
)
def test_repeated_labels_are_warned_of_and_concat_puts_the_rows_side_by_side(index: Any) -> None:
    df = pd.DataFrame({"company": ["a", "b", "c", "d"]}, index=index)
    with pytest.warns(PerplexityWarning, match=r"pd.concat\(\[df, table.to_pandas\(\)\], axis=1\)"):
        frame = EnrichedTable(MIXED, index=df.index).to_pandas()
    assert frame.index.equals(index)
    both = pd.concat([df, frame], axis=1)
    assert both["company"].tolist() == ["a", "b", "c", "d"]
    assert both["status"].tolist() == ["ok", "error", "skipped", "ok"]


def test_an_index_without_repeats_gives_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EnrichedTable(MIXED, index=INDEXES["texts"]).to_pandas()


def test_changing_the_frame_leaves_the_data_and_the_table_as_they_are() -> None:
    index = pd.Index([1, 2, 3, 4], name="id")
    table = EnrichedTable(MIXED, index=index)
    table.to_pandas().index.name = "changed"
    assert index.name == table.to_pandas().index.name == "id"
    index.name = "changed later"
    assert table.to_pandas().index.name == "id"


def test_an_index_of_another_length_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="got 3 labels for 4 rows") as caught:
        EnrichedTable(MIXED, index=pd.Index([1, 2, 3]))
    assert caught.value.field == "index"


def test_the_sources_say_by_position_whose_they_are() -> None:
    frame = EnrichedTable(MIXED, index=INDEXES["texts"]).sources.to_pandas()
    assert frame["row"].tolist() == [0, 3]
    assert frame["title"].tolist() == ["Lego", "Lego"]
    assert frame.index.tolist() == [0, 1]


def test_a_slice_keeps_positions_labels_and_who_can_ask() -> None:
    asked: list[Sequence[int]] = []

    def rerun(rows: Sequence[int], changes: dict[str, Any]) -> list[RowOutcome]:
        asked.append(rows)
        return [ok(row) for row in rows]

    table = EnrichedTable(MIXED, index=INDEXES["texts"], schema=Company, rerun=rerun)
    part = table[1:]
    assert isinstance(part, EnrichedTable) and len(part) == 3
    assert part.to_pandas().index.tolist() == ["a", "b", "c"]
    assert part.sources.column("row") == [3]
    assert part.errors["row"] == [1, 2]
    assert part.retry()["status"] == ["ok"] * 3 and asked == [[1, 2]]
    assert table[::-1]["status"] == ["ok", "skipped", "error", "ok"]
    assert table[::-1].to_pandas().index.tolist() == ["c", "b", "a", "d"]
    assert len(table[:0].to_pandas()) == 0


def test_a_position_gives_the_answer_or_none() -> None:
    table = EnrichedTable(MIXED)
    first = table[0]
    assert first is not None and first.text == "Ole.[1]"
    assert table[1] is None and table[-1] is MIXED[3].answer
    assert table.answers == (first, None, None, MIXED[3].answer)
    assert table.outcomes == tuple(MIXED)
    with pytest.raises(KeyError, match="no column 'founder'; there are answer, status"):
        table["founder"]


@pytest.mark.parametrize(
    ("given", "words"),
    [([ok(0), "text"], "type str; allowed: RowOutcome"), ([ok(1), failed(1)], "row 1 twice")],
)
def test_only_outcomes_of_different_rows_are_taken(given: Any, words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words) as caught:
        EnrichedTable(given)
    assert caught.value.field == "outcomes"


# --- errors and asking again ----------------------------------------------------------------------


def test_the_errors_are_a_table_of_the_rows_that_are_not_ok() -> None:
    stopped = RowOutcome(4, "Who 4?", "cancelled", reason="stopped")
    errors = EnrichedTable([*MIXED, stopped]).errors
    assert errors.to_dicts() == [
        {
            "row": 1,
            "question": "Who 1?",
            "status": "error",
            "error_type": "RateLimitError",
            "error": "slow down",
            "attempts": 6,
        },
        {
            "row": 2,
            "question": "Who 2?",
            "status": "skipped",
            "error_type": None,
            "error": "the budget is used up",
            "attempts": 0,
        },
        {
            "row": 4,
            "question": "Who 4?",
            "status": "cancelled",
            "error_type": None,
            "error": "stopped",
            "attempts": 0,
        },
    ]
    assert errors[0] is MIXED[1] and len(errors[1:]) == 2
    assert "slow down" in repr(errors) and "slow down" in errors._repr_html_()
    assert len(EnrichedTable([ok(0)]).errors) == 0
    assert repr(EnrichedTable([]).errors) == "RowErrors(0 rows)"


def test_retry_asks_what_is_not_ok_and_nothing_else() -> None:
    calls: list[tuple[Sequence[int], dict[str, Any]]] = []

    def rerun(rows: Sequence[int], changes: dict[str, Any]) -> list[RowOutcome]:
        calls.append((list(rows), changes))
        return [ok(1, "New.", data=COMPANY), dataclasses.replace(skipped(2))]

    table = EnrichedTable(MIXED, index=INDEXES["texts"], schema=Company, rerun=rerun)
    again = table.retry(model="pro", retries=9)
    assert calls == [([1, 2], {"model": "pro", "retries": 9})]
    assert again["status"] == ["ok", "ok", "skipped", "ok"]
    assert again["year"] == [1932, 1932, None, 1932]
    assert again[0] is table[0]
    assert again.to_pandas().index.equals(INDEXES["texts"])
    assert table["status"] == ["ok", "error", "skipped", "ok"]  # as it was
    again.retry()
    assert calls[1] == ([2], {})


def test_what_was_paid_for_attempts_that_failed_is_not_forgotten() -> None:
    table = EnrichedTable(
        [failed(0, attempts=2, cost_usd=0.25)],
        rerun=lambda rows, changes: [ok(0, attempts=3, cost_usd=0.5, asked_usd=0.5)],
    )
    again = table.retry()
    assert (again["attempts"], again["cost_usd"]) == ([5], [0.75])
    assert (again.cost_usd, again.asked_usd) == (0.75, 0.5)


def test_a_row_that_was_not_reached_again_keeps_its_error() -> None:
    for rerun in (lambda rows, changes: [], lambda rows, changes: [skipped(0)]):
        again = EnrichedTable([failed(0)], rerun=rerun).retry()
        assert again["error"] == ["slow down"] and again["attempts"] == [6]


def test_with_nothing_to_ask_again_nothing_is_asked() -> None:
    def rerun(rows: Sequence[int], changes: dict[str, Any]) -> list[RowOutcome]:
        raise AssertionError("asked")

    table = EnrichedTable([ok(0)], rerun=rerun)
    assert table.retry().to_dicts() == table.to_dicts()


def test_another_schema_cannot_be_asked_for_in_the_same_table() -> None:
    table = EnrichedTable(MIXED, schema=Company, rerun=lambda rows, changes: [])
    with pytest.raises(InvalidRequestError, match="schema") as caught:
        table.retry(schema=Place)
    assert caught.value.field == "schema"


def test_a_table_that_was_loaded_is_the_same_but_asks_nobody() -> None:
    @dataclasses.dataclass
    class Local:  # a class that no other process could import
        year: int

    table = EnrichedTable(
        [ok(0, data={"year": 1}), failed(1)],
        index=INDEXES["texts"][:2],
        schema=Local,
        rerun=lambda rows, changes: [ok(1)],
    )
    assert table["year"] == [1, None]
    twin = pickle.loads(pickle.dumps(table))
    assert twin.to_dicts() == table.to_dicts()
    assert twin.to_pandas().equals(table.to_pandas())
    assert twin.summary() == table.summary() and repr(twin) == repr(table)
    assert twin.outcomes[1].error.code == "RATE_LIMIT"
    with pytest.raises(InvalidRequestError, match="belongs to no client"):
        twin.retry()
    assert table.retry()["status"] == ["ok", "ok"]


# --- costs and displays ---------------------------------------------------------------------------


def test_paid_and_asked_for_are_told_apart() -> None:
    rows = [ok(n, cost_usd=0.004, asked_usd=0.004) for n in range(83)]
    rows += [ok(n, cost_usd=0.0, asked_usd=0.006, cached=True) for n in range(83, 95)]
    rows += [failed(n) for n in range(95, 98)] + [skipped(98), skipped(99)]
    table = EnrichedTable(rows)
    assert table.cost_usd == pytest.approx(0.332)
    assert table.asked_usd == pytest.approx(0.404)
    assert table.summary() == (
        "100 rows: 95 ok, 3 errors, 2 skipped · $0.33 paid, $0.40 asked for · 12 from the cache"
    )


@pytest.mark.parametrize(
    ("rows", "summary"),
    [
        ([], "0 rows"),
        ([failed(0, cost_usd=None)], "1 row: 1 error"),
        ([ok(0, cost_usd=None, asked_usd=None)], "1 row: 1 ok"),
        (
            [ok(0), ok(1, cost_usd=None, asked_usd=None)],
            "2 rows: 2 ok · $0.0040 paid, $0.0040 asked for, 1 without a known cost",
        ),
        ([RowOutcome(0, "", "cancelled")], "1 row: 1 cancelled"),
    ],
)
def test_the_summary_says_what_is_known(rows: list[RowOutcome], summary: str) -> None:
    assert EnrichedTable(rows).summary() == summary


def test_displays_show_answers_and_errors_in_words() -> None:
    table = EnrichedTable(MIXED, index=INDEXES["two levels"], schema={"founder": str, "year": int})
    for shown in (repr(table), table._repr_html_()):
        assert "RateLimitError: slow down" in shown
        assert "the budget is used up" in shown
        assert "Ole" in shown and "1932" in shown
        assert "b, 1" in shown
        assert table.summary() in shown
        assert "table.errors lists the 2 rows that are not ok" in shown
    fine = EnrichedTable([ok(0)])
    assert "error" not in repr(fine) and "error" not in fine._repr_html_().partition("<table>")[2]
    assert repr(EnrichedTable([])) == "EnrichedTable(0 rows)"
    assert "0 rows" in EnrichedTable([])._repr_html_()


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\x1b[31m\u202e"


def test_displays_are_inert_short_and_say_what_they_leave_out() -> None:
    rows = [
        ok(n, HOSTILE * 50, data={HOSTILE: HOSTILE})
        if n % 2
        else failed(n, error=RateLimitError(HOSTILE))
        for n in range(30)
    ]
    rows = [dataclasses.replace(row, question=HOSTILE) for row in rows]
    index = pd.Index([f"{HOSTILE}{n}" for n in range(30)])
    for table in (
        EnrichedTable(rows, index=index),
        EnrichedTable(rows, schema={HOSTILE: str}),
        EnrichedTable(rows).errors,
    ):
        html = table._repr_html_()
        assert "<script" not in html and "<img" not in html
        for shown in (html, repr(table)):
            assert "\x1b" not in shown and "\u202e" not in shown
            assert shown is html or "[31m" not in shown
            if isinstance(table, EnrichedTable):
                assert "... and 10 more; to_pandas() has all" in shown
        assert html.count("<tr>") <= 21
        assert len(repr(table)) < 8000


def test_a_wide_schema_shows_its_first_fields_and_says_so() -> None:
    table = EnrichedTable([ok(0)], schema={f"f{n}": str for n in range(9)})
    for shown in (repr(table), table._repr_html_()):
        assert "f5" in shown and "f6" not in shown
        assert "3 more columns; to_pandas() has all" in shown


def test_what_looks_like_a_key_is_nowhere() -> None:
    key = "pplx-" + "k" * 40

    def rerun(rows: Sequence[int], changes: dict[str, Any], secret: str = key) -> list[RowOutcome]:
        return []

    table = EnrichedTable([failed(0, error=RateLimitError(f"bad {key}"))], rerun=rerun)
    for shown in (repr(table), table._repr_html_(), repr(table.errors), str(table.to_dicts())):
        assert key not in shown and "bad ***" in shown


def test_20_000_rows_are_a_frame_and_a_display_takes_no_longer_for_them() -> None:
    rows = [ok(n, data=COMPANY, cached=n % 7 == 0) if n % 10 else failed(n) for n in range(20_000)]
    schema = Schema.of(Company)
    table = EnrichedTable(rows, index=pd.RangeIndex(20_000), schema=schema)
    started = time.process_time()
    frame = table.to_pandas()
    took = time.process_time() - started
    assert len(frame) == 20_000 and frame["year"].count() == 18_000
    print(f"to_pandas(): {took:.2f} s")
    fresh = EnrichedTable(rows, schema=schema)
    assert "19,980 more" in repr(fresh) and "19,980 more" in fresh._repr_html_()
    assert "_table" not in vars(fresh)  # no column was made whole for it
