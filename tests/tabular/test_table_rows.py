"""What a batch is asked about: any table or list becomes rows of plain Python values."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import gc
import math
import pickle
import sqlite3
import sys
import tracemalloc
from collections import namedtuple
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipyperplexity.answer import Answer
from ipyperplexity.batch.answer_table import AnswerTable
from ipyperplexity.errors import InvalidRequestError, MissingLibrary
from ipyperplexity.tabular.columns import Column, Columns
from ipyperplexity.tabular.table_rows import TableRows, read_rows

NAN = float("nan")
NOON = dt.datetime(2024, 3, 1, 12, 30)


def read(data: object) -> tuple[str, tuple[str, ...], list[dict[str, object]]]:
    table = read_rows(data)
    return table.kind, table.columns, [dict(row) for row in table.rows]


def only_column(data: object) -> list[object]:
    table = read_rows(data)
    (name,) = table.columns
    return [row[name] for row in table.rows]


def refusal(data: object) -> InvalidRequestError:
    with pytest.raises(InvalidRequestError) as caught:
        read_rows(data)
    assert caught.value.field == "data"
    assert caught.value.__context__ is None
    return caught.value


# --- lists and other iterables -------------------------------------------------------------------


def test_a_list_of_texts_has_the_column_value():
    assert read(["Who?", "Why?"]) == ("items", ("value",), [{"value": "Who?"}, {"value": "Why?"}])


def test_generators_files_and_ranges_are_read_to_their_end(tmp_path: Path):
    file = tmp_path / "questions.txt"
    file.write_bytes(b"Who?\r\nWhy?\n")
    assert only_column(text for text in ("a", "b")) == ["a", "b"]
    assert only_column(range(2)) == [0, 1]
    with file.open(encoding="utf-8") as lines:
        assert only_column(lines) == ["Who?", "Why?"]


def test_dicts_give_all_their_keys_in_order_and_none_where_there_is_no_value():
    rows = [{"company": "Lego"}, {"year": 1932, "company": None}]
    assert read(rows)[1:] == (
        ("company", "year"),
        [{"company": "Lego", "year": None}, {"company": None, "year": 1932}],
    )


def test_tuples_and_lists_have_numbered_columns_and_namedtuples_their_fields():
    Company = namedtuple("Company", "name year")
    assert read([("Lego", 1932), ("Bosch",)])[1:] == (
        ("0", "1"),
        [{"0": "Lego", "1": 1932}, {"0": "Bosch", "1": None}],
    )
    assert read([["Lego", 1932]])[1] == ("0", "1")
    assert read([Company("Lego", 1932)])[1:] == (
        ("name", "year"),
        [{"name": "Lego", "year": 1932}],
    )


def test_dataclasses_database_rows_and_models_have_their_fields():
    @dataclasses.dataclass
    class Company:
        name: str
        founders: list[str]

    db = sqlite3.connect(":memory:")
    db.row_factory = sqlite3.Row
    expected = {"name": "Lego", "year": 1932}
    assert read([Company("Lego", ["Ole"])])[2] == [{"name": "Lego", "founders": ["Ole"]}]
    assert read(db.execute("select 'Lego' as name, 1932 as year"))[2] == [expected]
    db.close()


def test_models_of_pydantic_have_their_fields():
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Company", name=(str, ...), year=(int, ...))
    assert read([model(name="Lego", year=1932)])[2] == [{"name": "Lego", "year": 1932}]


def test_items_of_different_kinds_each_have_their_own_columns():
    assert read(["a", {"x": 1}, None])[1:] == (
        ("value", "x"),
        [{"value": "a", "x": None}, {"value": None, "x": 1}, {"value": None, "x": None}],
    )


def test_missing_items_are_rows_without_a_value_and_make_no_column_of_their_own():
    assert only_column(["a", None, NAN, Decimal("nan"), Decimal("sNaN")]) == ["a"] + [None] * 4
    assert read([None, {"x": 1}])[1] == ("x",)
    assert read([None])[1:] == (("value",), [{"value": None}])


def test_a_list_of_nothing_has_no_rows_and_no_columns():
    assert read([]) == ("items", (), [])
    assert len(read_rows([])) == 0


def test_keys_that_are_no_text_become_text_unless_two_become_the_same():
    assert read([{1: "a", None: "b"}])[2] == [{"1": "a", "None": "b"}]
    assert "'1'" in refusal([{1: "a", "1": "b"}]).message


def test_values_are_pythons_own_whatever_they_were():
    class Color(enum.Enum):
        RED = "red"

    class Level(enum.IntEnum):
        HIGH = 3

    class Name(str):
        def __str__(self) -> str:
            return "another"

    values = only_column([Color.RED, Level.HIGH, Name("Lego"), 2**200, True, 1.5, b"x", NOON])
    assert values == ["red", 3, "Lego", 2**200, True, 1.5, b"x", NOON]
    assert list(map(type, values)) == [str, int, str, int, bool, float, bytes, dt.datetime]


def test_nested_values_are_plain_too_and_a_set_has_one_order():
    nested = {"a": (1, NAN), 2: {"z", "b", "a"}}
    assert read([{"x": nested}])[2] == [{"x": {"a": [1, None], "2": ["a", "b", "z"]}}]


def test_a_list_within_itself_ends():
    inside: list[object] = []
    inside.append(inside)
    assert "..." in str(read_rows([{"x": inside}]).rows[0])


@pytest.mark.parametrize(
    ("data", "given", "next_step"),
    [
        ("Who?", "one text", "into a list"),
        (b"Who?", "bytes", "into a list"),
        ({"company": ["Lego"]}, "one dict", "DataFrame"),
        (None, "NoneType", ""),
        (3, "int", ""),
        (len, "builtin_function_or_method", ""),
        (str, "type", ""),
    ],
)
def test_what_is_no_table_is_refused_with_what_to_do(data: object, given: str, next_step: str):
    error = refusal(data)
    assert given in error.message
    assert next_step in (error.hint or "")


def test_an_iterable_that_fails_says_so_itself():
    def failing():
        yield "a"
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        read_rows(failing())


@given(st.lists(st.dictionaries(st.text(max_size=3), st.integers() | st.text(), max_size=4)))
def test_every_row_of_dicts_comes_back_with_none_for_what_it_had_not(rows):
    table = read_rows(rows)
    assert len(table) == len(rows)
    assert set(table.columns) == {name for row in rows for name in row}
    for got, row in zip(table.rows, rows, strict=True):
        assert got == {name: row.get(name) for name in table.columns}


# --- rows ----------------------------------------------------------------------------------------


def test_a_row_is_a_mapping_that_cannot_be_changed_and_can_be_pickled():
    row = read_rows([{"company": "Lego", "year": 1932}]).rows[0]
    assert row == {"company": "Lego", "year": 1932}
    assert {**row}["year"] == 1932 and row.get("city") is None and "company" in row
    assert repr(row) == "{'company': 'Lego', 'year': 1932}"
    assert pickle.loads(pickle.dumps(row)) == row
    with pytest.raises(TypeError):
        row["year"] = 1  # type: ignore[index]
    with pytest.raises(KeyError):
        row["city"]


def test_the_repr_of_a_table_does_not_hold_its_rows():
    assert repr(read_rows(["private"])) == "TableRows(columns=('value',), kind='items')"


def test_twenty_thousand_rows_take_less_than_thirty_megabytes():
    rows = [{f"column {n}": row * n + 0.5 for n in range(20)} for row in range(20_000)]
    gc.collect()
    tracemalloc.start()
    table = read_rows(rows)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(table) == 20_000
    assert most < 30e6


# --- tables of this package ----------------------------------------------------------------------


def test_our_own_tables_are_read_without_any_library(monkeypatch: pytest.MonkeyPatch):
    for name in ("pandas", "polars", "pyarrow", "nanoarrow", "duckdb", "numpy"):
        monkeypatch.setitem(sys.modules, name, None)
    answers = AnswerTable([Answer("Why?", "So."), Answer("How?", "Thus.")])
    assert [row["text"] for row in read_rows(answers).rows] == ["So.", "Thus."]
    columns = Columns([Column("tags", "str_list")], {"tags": [["a"], None]})
    assert read(columns) == ("items", ("tags",), [{"tags": ["a"]}, {"tags": None}])
    assert len(read_rows(AnswerTable([]))) == 0


# --- pandas --------------------------------------------------------------------------------------


def test_a_pandas_frame_keeps_its_index_as_it_is():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"company": ["Lego", "Bosch", "Ikea"]}, index=[7, 7, 3])
    table = read_rows(frame)
    assert table.kind == "pandas" and table.columns == ("company",)
    assert table.index is frame.index
    assert [row["company"] for row in table.rows] == ["Lego", "Bosch", "Ikea"]


def test_named_levels_of_a_pandas_index_can_be_asked_about():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"company": ["Lego", "Lego"], "year": [1, 2], "sales": [3, 4]})
    assert read(frame.groupby("company")["sales"].sum())[1:] == (
        ("sales", "company"),
        [{"sales": 7, "company": "Lego"}],
    )
    table = read_rows(frame.set_index(["company", "year"]).assign(year="own"))
    assert table.columns == ("sales", "year", "company")
    assert dict(table.rows[0]) == {"sales": 3, "year": "own", "company": "Lego"}
    assert table.index.nlevels == 2
    unnamed = pd.DataFrame({"a": [1]}, index=pd.MultiIndex.from_tuples([("x", 1)]))
    assert read_rows(unnamed).columns == ("a",)


def test_every_pandas_dtype_gives_plain_values_and_none_for_what_is_missing():
    pd = pytest.importorskip("pandas")
    np = pytest.importorskip("numpy")
    brussels = ZoneInfo("Europe/Brussels")
    frame = pd.DataFrame(
        {
            "int": np.array([1, 2], "int8"),
            "float": [3.0, None],
            "float32": np.array([0.1, NAN], "float32"),
            "Float32": pd.array([0.1, None], "Float32"),
            "Int64": pd.array([2**60, None], "Int64"),
            "boolean": pd.array([True, None], "boolean"),
            "string": pd.array(["a", None], "string"),
            "category": pd.Categorical(["a", None]),
            "time": pd.to_datetime([f"{NOON}.123456789", None]),
            "zoned": pd.to_datetime([NOON, None]).tz_localize("Europe/Brussels"),
            "delta": pd.to_timedelta(["1 day", None]),
            "object": [Decimal("1.50"), pd.NaT],
            "mixed": ["a", 1.5],
            "nested": [[1, NAN], {"a": np.int64(3)}],
        }
    )
    first, second = map(dict, read_rows(frame).rows)
    assert first == {
        "int": 1,
        "float": 3.0,
        "float32": 0.1,
        "Float32": 0.1,
        "Int64": 2**60,
        "boolean": True,
        "string": "a",
        "category": "a",
        "time": NOON.replace(microsecond=123456),
        "zoned": NOON.replace(tzinfo=brussels),
        "delta": dt.timedelta(days=1),
        "object": Decimal("1.50"),
        "mixed": "a",
        "nested": [1, None],
    }
    assert {name for name, value in second.items() if value is None} == {*first} - {
        "int",
        "mixed",
        "nested",
    }
    assert second["mixed"] == 1.5 and second["nested"] == {"a": 3}
    assert type(first["time"]) is type(first["zoned"]) is dt.datetime
    assert type(second["nested"]["a"]) is type(first["int"]) is int


def test_pandas_dtypes_of_arrow_give_plain_values():
    pd = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    dates = pd.array([dt.date(2024, 3, 1), None], dtype=pd.ArrowDtype(pa.date32()))
    times = pd.array([NOON, None], dtype=pd.ArrowDtype(pa.timestamp("ns")))
    rows = read_rows(pd.DataFrame({"date": dates, "time": times})).rows
    assert [dict(row) for row in rows] == [
        {"date": dt.date(2024, 3, 1), "time": NOON},
        {"date": None, "time": None},
    ]
    assert type(rows[0]["time"]) is dt.datetime


def test_a_pandas_frame_without_rows_has_its_columns():
    pd = pytest.importorskip("pandas")
    assert read(pd.DataFrame({"a": [], "b": []})) == ("pandas", ("a", "b"), [])
    assert read(pd.DataFrame()) == ("pandas", (), [])
    assert read(pd.DataFrame(index=[1, 2]))[2] == [{}, {}]


def test_a_pandas_series_has_its_name_or_value():
    pd = pytest.importorskip("pandas")
    series = pd.Series(["a", None], index=[5, 5], name="company")
    assert read(series) == ("pandas", ("company",), [{"company": "a"}, {"company": None}])
    assert read_rows(series).index is series.index
    assert read(pd.Series([1]))[1] == ("value",)


def test_two_columns_of_one_name_are_refused_by_that_name():
    pd = pytest.importorskip("pandas")
    assert "'a'" in refusal(pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"])).message
    assert "'1'" in refusal(pd.DataFrame([[1, 2]], columns=[1, "1"])).message


def test_column_names_that_are_no_text_become_text():
    pd = pytest.importorskip("pandas")
    levels = pd.MultiIndex.from_tuples([("price", "mean"), ("price", "")])
    assert read(pd.DataFrame([[1, 2]], columns=[2024, 2025]))[1] == ("2024", "2025")
    assert read(pd.DataFrame([[1, 2]], columns=levels))[1] == ("price mean", "price")


def test_a_subclass_of_a_pandas_frame_is_one():
    pd = pytest.importorskip("pandas")
    kind = type("Geo", (pd.DataFrame,), {"__module__": "elsewhere"})
    assert read(kind({"a": [1]}))[0] == "pandas"


def test_an_index_and_rows_of_iterrows_are_items():
    pd = pytest.importorskip("pandas")
    assert only_column(pd.Index(["a", "b"])) == ["a", "b"]
    rows = (row for _, row in pd.DataFrame({"a": [1], "b": ["x"]}).iterrows())
    assert read(rows)[1:] == (("a", "b"), [{"a": 1, "b": "x"}])


# --- polars --------------------------------------------------------------------------------------


def test_a_polars_frame_gives_plain_values():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {
            "text": ["a", None],
            "float": [NAN, 3.0],
            "float32": pl.Series([0.1, None], dtype=pl.Float32),
            "category": pl.Series(["x", None], dtype=pl.Categorical),
            "time": pl.Series([NOON, None], dtype=pl.Datetime("ns", "Europe/Brussels")),
            "date": [dt.date(2024, 3, 1), None],
            "struct": [{"a": [1.0, NAN]}, {"a": None}],
            "decimal": [Decimal("1.50"), None],
        }
    )
    kind, columns, (first, second) = read(frame)
    assert kind == "polars" and columns == tuple(frame.columns)
    assert first["time"].utcoffset() == dt.timedelta(hours=1)
    del first["time"], second["time"]
    assert first == {
        "text": "a",
        "float": None,
        "float32": 0.1,
        "category": "x",
        "date": dt.date(2024, 3, 1),
        "struct": {"a": [1.0, None]},
        "decimal": Decimal("1.50"),
    }
    assert second["float"] == 3.0 and second["struct"] == {"a": None}
    assert read(frame.clear())[1:] == (tuple(frame.columns), [])


def test_a_polars_series_has_its_name_or_value():
    pl = pytest.importorskip("polars")
    assert read(pl.Series("company", ["a"])) == ("polars", ("company",), [{"company": "a"}])
    assert read(pl.Series(["a"]))[1] == ("value",)


def test_a_lazy_polars_frame_is_refused_until_it_is_collected():
    pl = pytest.importorskip("polars")
    error = refusal(pl.LazyFrame({"a": [1]}))
    assert "LazyFrame" in error.message and "collect()" in error.hint


# --- Arrow, duckdb, narwhals -----------------------------------------------------------------------


class OnlyAStream:
    """What Arrow libraries have in common."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def test_arrow_tables_batches_readers_and_arrays_are_read():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": [1, None], "b": ["x", "y"]})
    expected = ("arrow", ("a", "b"), [{"a": 1, "b": "x"}, {"a": None, "b": "y"}])
    assert read(table) == read(table.to_batches()[0]) == read(table.to_reader()) == expected
    assert read(OnlyAStream(table)) == expected
    assert read(table.slice(0, 0)) == ("arrow", ("a", "b"), [])
    assert read(table["b"])[1:] == (("value",), [{"value": "x"}, {"value": "y"}])
    assert only_column(pa.array(["x", None]).dictionary_encode()) == ["x", None]


def test_arrow_values_are_plain_also_where_arrow_is_finer_than_python():
    pa = pytest.importorskip("pyarrow")
    ticks = pa.array([1_500, None], pa.int64())
    columns = {
        "time": ticks.cast(pa.timestamp("ns")),
        "zoned": ticks.cast(pa.timestamp("ns", tz="UTC")),
        "duration": ticks.cast(pa.duration("ns")),
        "clock": ticks.cast(pa.time64("ns")),
        "float32": pa.array([0.1, None], pa.float32()),
        "decimal": pa.array([Decimal("1.50"), None]),
        "far": pa.array([2**40, 0], pa.int64()).cast(pa.timestamp("s")),
    }
    first, second = map(dict, read_rows(pa.table(columns)).rows)
    epoch = dt.datetime(1970, 1, 1)
    assert first.pop("zoned") == epoch.replace(microsecond=1, tzinfo=dt.UTC)
    assert first == {
        "time": epoch.replace(microsecond=1),
        "duration": dt.timedelta(microseconds=1),
        "clock": dt.time(0, 0, 0, 1),
        "float32": 0.1,
        "decimal": Decimal("1.50"),
        "far": None,
    }
    assert second.pop("far") == epoch
    assert set(second.values()) == {None}


def test_two_arrow_columns_of_one_name_are_refused():
    pa = pytest.importorskip("pyarrow")
    assert "'a'" in refusal(pa.table([[1], [2]], names=["a", "a"])).message


@pytest.mark.parametrize("maker", ["pyarrow", "polars"])
@pytest.mark.parametrize("reader", ["pyarrow", "polars", "nanoarrow"])
def test_an_arrow_stream_is_read_by_whichever_library_there_is(
    reader: str, maker: str, monkeypatch: pytest.MonkeyPatch
):
    make = pytest.importorskip(maker)
    pytest.importorskip(reader)
    values = {"a": [1, None], "b": ["x", "y"], "c": [[1], []]}
    stream = OnlyAStream(make.table(values) if maker == "pyarrow" else make.DataFrame(values))
    for other in {"pyarrow", "polars", "nanoarrow", "pandas"} - {reader}:
        monkeypatch.setitem(sys.modules, other, None)
    rows = [{"a": 1, "b": "x", "c": [1]}, {"a": None, "b": "y", "c": []}]
    assert read(stream) == ("arrow", ("a", "b", "c"), rows)


def test_an_arrow_stream_without_a_library_names_the_one_to_install(
    monkeypatch: pytest.MonkeyPatch,
):
    for name in ("pyarrow", "polars", "nanoarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingLibrary, match=r"ipyperplexity\[arrow\]"):
        read_rows(OnlyAStream(None))


def test_an_arrow_stream_that_is_no_table_is_refused():
    pa = pytest.importorskip("pyarrow")
    assert "no table" in refusal(OnlyAStream(pa.chunked_array([[1, 2]]))).message


def test_a_duckdb_relation_is_read():
    duckdb = pytest.importorskip("duckdb")
    db = duckdb.connect()
    rows = "select * from (values (1, [1, null], date '2024-03-01', 'nan'::float)) t(a, b, c, d)"
    relation = db.sql(rows)
    expected = [{"a": 1, "b": [1, None], "c": dt.date(2024, 3, 1), "d": None}]
    assert read(relation)[1:] == (("a", "b", "c", "d"), expected)
    assert read(relation)[2] == expected  # it is not used up
    assert read(db.sql(f"{rows} where a > 1"))[1:] == (("a", "b", "c", "d"), [])
    db.close()


def test_what_narwhals_wraps_is_read_as_what_it_is():
    nw = pytest.importorskip("narwhals")
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1]}, index=[5])
    table = read_rows(nw.from_native(frame))
    assert table.kind == "pandas" and list(table.index) == [5]


def test_frames_that_only_narwhals_knows_are_read_through_it():
    pytest.importorskip("narwhals")
    pd = pytest.importorskip("modin.pandas")
    assert read(pd.DataFrame({"a": [1]}))[0] == "narwhals"


class UnknownFrame:
    """A frame of a library that nobody here knows: iterating gives the names of its columns."""

    columns = ("a", "b")

    def __iter__(self):
        return iter(self.columns)


def test_a_frame_of_a_kind_that_is_not_known_is_not_taken_for_the_names_of_its_columns():
    assert "UnknownFrame" in refusal(UnknownFrame()).message


def test_a_result_of_a_database_that_has_a_method_columns_is_read_by_its_rows():
    class Result(list):
        def columns(self, *names):
            raise AssertionError

    assert read(Result([("Lego", 1932)]))[2] == [{"0": "Lego", "1": 1932}]


def test_a_dask_frame_is_refused_until_it_is_computed():
    pytest.importorskip("narwhals")
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    assert "compute()" in refusal(dd.from_pandas(pd.DataFrame({"a": [1]}), npartitions=1)).hint


# --- numpy ---------------------------------------------------------------------------------------


def test_a_numpy_array_of_one_dimension_gives_plain_values():
    np = pytest.importorskip("numpy")
    assert only_column(np.array([1, 2], "int16")) == [1, 2]
    assert only_column(np.array(["a", None, 3, np.float64(NAN)], object)) == ["a", None, 3, None]
    assert only_column(np.array([0.1, NAN], "float32")) == [0.1, None]
    assert only_column(np.array([0.5], "longdouble")) == [0.5]
    assert only_column(np.ma.array([1, 2], mask=[False, True])) == [1, None]
    assert only_column(np.array([f"{NOON:%Y-%m-%dT%H:%M}", "NaT"], "M8[ns]")) == [NOON, None]
    assert only_column(np.array(["2024-03-01"], "M8[D]")) == [dt.date(2024, 3, 1)]
    assert only_column(np.array(["20000-01-01"], "M8[D]")) == ["20000-01-01"]
    records = np.array([(1, "x")], dtype=[("a", "i4"), ("b", "U3")])
    assert read(records)[1:] == (("a", "b"), [{"a": 1, "b": "x"}])


def test_numpys_numbers_in_a_list_become_pythons():
    np = pytest.importorskip("numpy")
    given = [np.int8(3), np.float32(0.1), np.str_("s"), np.bool_(True), np.float64(NAN)]
    values = only_column([*given, np.datetime64(NOON, "ns"), np.datetime64("NaT"), np.ma.masked])
    assert values == [3, 0.1, "s", True, None, NOON, None, None]
    assert list(map(type, values[:4])) == [int, float, str, bool]


def test_an_array_of_two_dimensions_is_refused_with_what_to_do():
    np = pytest.importorskip("numpy")
    assert "DataFrame" in (refusal(np.zeros((2, 2))).hint or "")
    refusal(np.array(5))


def test_a_large_pandas_frame_is_read_into_little_memory():
    pd = pytest.importorskip("pandas")
    n = 20_000
    frame = pd.DataFrame({f"f{k}": [row + k / 7 for row in range(n)] for k in range(8)})
    frame["text"] = [f"company {row}" for row in range(n)]
    frame["time"] = pd.date_range("2000", periods=n, freq="h", tz="UTC")
    gc.collect()
    tracemalloc.start()
    table = read_rows(frame)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(table, TableRows) and len(table) == n
    assert math.isclose(table.rows[-1]["f7"], n)
    assert most < 30e6
