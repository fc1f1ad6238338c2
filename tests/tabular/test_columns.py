"""What a user gets from a table held by columns, in every frame library that is installed."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.tabular.columns import Column, Columns

ROOT = Path(__file__).parents[2]

SCHEMA = (
    Column("id", "int32", nullable=False),
    Column("n", "int64"),
    Column("score", "float64"),
    Column("cited", "bool", nullable=False),
    Column("seen", "bool"),
    Column("title", "str"),
    Column("published", "date"),
    Column("created", "timestamp"),
    Column("tags", "str_list"),
    Column("sources", "int32_list"),
)
NOON = datetime(2024, 3, 3, 12, 0, 0, 123456, tzinfo=UTC)
VALUES = {
    "id": [1, 2, 3],
    "n": [2**40, None, -1],
    "score": [0.5, None, -1.5],
    "cited": [True, False, True],
    "seen": [True, None, False],
    "title": ["Straße 😀", None, "a\0b"],
    "published": [date(2024, 3, 3), None, date(1899, 12, 31)],
    "created": [NOON, None, datetime(1960, 1, 1, tzinfo=UTC)],
    "tags": [["a", "b"], None, []],
    "sources": [[1, 3], [], None],
}
FULL = Columns(SCHEMA, VALUES)
EMPTY = Columns(SCHEMA, {name: [] for name in VALUES})
BOTH = pytest.mark.parametrize("table", [FULL, EMPTY], ids=["3 rows", "0 rows"])


# --- pandas ------------------------------------------------------------------------------------


@BOTH
def test_pandas_dtypes_are_exact_and_the_same_without_rows(table):
    pd = pytest.importorskip("pandas")
    text = "str" if int(pd.__version__.split(".")[0]) >= 3 else "object"
    assert {name: str(dtype) for name, dtype in table.to_pandas().dtypes.items()} == {
        "id": "int32",
        "n": "Int64",
        "score": "float64",
        "cited": "bool",
        "seen": "boolean",
        "title": text,
        "published": "datetime64[us]",
        "created": "datetime64[us, UTC]",
        "tags": "object",
        "sources": "object",
    }
    assert len(table.to_pandas()) == table.num_rows


def test_pandas_dates_have_dt_and_missing_ones_are_nat():
    pd = pytest.importorskip("pandas")
    frame = FULL.to_pandas()
    assert frame["published"].dt.year.tolist()[0] == 2024
    assert frame["published"].isna().tolist() == [False, True, False]
    assert frame["published"][2] == pd.Timestamp("1899-12-31")
    assert frame["created"][0].to_pydatetime() == NOON
    assert frame["created"][1] is pd.NaT


def test_pandas_keeps_every_value():
    pytest.importorskip("pandas")
    frame = FULL.to_pandas()
    assert frame["n"].dropna().tolist() == [2**40, -1]
    assert frame["score"].dropna().tolist() == [0.5, -1.5]
    assert frame["seen"].isna().tolist() == [False, True, False]
    assert frame["title"].dropna().tolist() == ["Straße 😀", "a\0b"]
    assert frame["tags"].tolist() == [["a", "b"], None, []]
    assert frame["sources"].tolist() == [[1, 3], [], None]


def test_lists_of_one_length_stay_one_column_in_pandas():
    pytest.importorskip("pandas")
    table = Columns([Column("ids", "int32_list")], {"ids": [[1, 2], [3, 4]]})
    assert table.to_pandas()["ids"].tolist() == [[1, 2], [3, 4]]


def test_changing_a_frame_does_not_change_the_table():
    pytest.importorskip("pandas")
    table = Columns(SCHEMA, VALUES)
    frame = table.to_pandas()
    frame["tags"][0].append("changed")
    frame.loc[0, "id"] = 99
    table.to_dicts()[0]["tags"].append("changed")
    table.column("sources")[0].append(99)
    assert table.to_dicts() == FULL.to_dicts()
    assert table.to_pandas()["id"].tolist() == [1, 2, 3]


# --- polars and Arrow ----------------------------------------------------------------------------


@BOTH
def test_polars_dtypes_are_exact_and_the_same_without_rows(table):
    pl = pytest.importorskip("polars")
    assert dict(table.to_polars().schema) == {
        "id": pl.Int32,
        "n": pl.Int64,
        "score": pl.Float64,
        "cited": pl.Boolean,
        "seen": pl.Boolean,
        "title": pl.String,
        "published": pl.Date,
        "created": pl.Datetime("us", "UTC"),
        "tags": pl.List(pl.String),
        "sources": pl.List(pl.Int32),
    }
    assert table.to_polars().height == table.num_rows


def test_polars_keeps_every_value():
    pytest.importorskip("polars")
    assert FULL.to_polars().to_dicts() == FULL.to_dicts()


@BOTH
def test_arrow_types_are_exact_and_the_same_without_rows(table):
    pa = pytest.importorskip("pyarrow")
    made = table.to_arrow()
    assert isinstance(made, pa.Table)
    assert {field.name: str(field.type) for field in made.schema} == ARROW_TYPES
    assert made.to_pylist() == table.to_dicts()


def test_a_consumer_may_ask_arrow_for_another_type():
    pa = pytest.importorskip("pyarrow")
    table = Columns([Column("id", "int32")], {"id": [1, None]})
    wanted = pa.schema({"id": pa.int64()})
    got = pa.RecordBatchReader.from_stream(table, schema=wanted).read_all()
    assert got.schema.field("id").type == pa.int64()
    assert got.column("id").to_pylist() == [1, None]


def test_narwhals_takes_the_table_as_it_is():
    nw = pytest.importorskip("narwhals")
    pytest.importorskip("polars")
    frame = nw.from_arrow(FULL, backend="polars")
    assert frame.shape == (3, 10)
    assert frame["published"].dtype == nw.Date


def test_ibis_takes_the_table_as_it_is():
    ibis = pytest.importorskip("ibis")
    pytest.importorskip("pyarrow")
    table = Columns([Column("id", "int32"), Column("day", "date")], {"id": [1], "day": [NOON]})
    schema = ibis.memtable(table).schema()
    assert schema["id"].is_int32()
    assert schema["day"].is_date()


ARROW_TYPES = {
    "id": "int32",
    "n": "int64",
    "score": "double",
    "cited": "bool",
    "seen": "bool",
    "title": "string",
    "published": "date32[day]",
    "created": "timestamp[us, tz=UTC]",
    "tags": "list<item: string>",
    "sources": "list<item: int32>",
}

# Makes the stream with the libraries named first, and only then imports the consumer.
CHILD = """
import json, sys
maker, consumer, block, rows = sys.argv[1:]
for name in filter(None, block.split(",")):
    sys.modules[name] = None
if maker != "nanoarrow":
    __import__(maker)
from tests.tabular.test_columns import EMPTY, FULL
table = facts = FULL if rows == "full" else EMPTY

class Made:
    def __init__(self):
        self.capsule = table.__arrow_c_stream__()
    def __arrow_c_stream__(self, requested_schema=None):
        return self.capsule

before = set(sys.modules)
made = Made()
loaded = sorted({"pyarrow", "polars", "nanoarrow", "pandas"} & (set(sys.modules) - before))
if consumer == "pyarrow":
    import pyarrow as pa
    got = pa.table(made)
    types = {f.name: str(f.type) for f in got.schema}
    nullable = all(f.nullable for f in got.schema)
    values = got.to_pylist()
elif consumer == "polars":
    import polars as pl
    got = pl.DataFrame(made)
    types, nullable, values = {k: str(v) for k, v in got.schema.items()}, True, got.to_dicts()
else:
    import duckdb
    # As a number: duckdb needs yet another library to give times with a time zone.
    relation = duckdb.sql("from facts")
    types = dict(zip(relation.columns, map(str, relation.types)))
    rows = duckdb.sql("select * replace (epoch_us(created) as created) from facts").fetchall()
    nullable, values = True, [dict(zip(relation.columns, row)) for row in rows]
print(json.dumps([types, nullable, values, loaded], default=str))
"""

AS_JSON = json.loads(json.dumps(FULL.to_dicts(), default=str))


def in_child(maker: str, consumer: str, *, block: str = "", rows: str = "full"):
    done = subprocess.run(
        [sys.executable, "-c", CHILD, maker, consumer, block, rows],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("rows", ["full", "empty"])
@pytest.mark.parametrize("maker", ["pyarrow", "polars", "nanoarrow"])
def test_every_maker_gives_pyarrow_the_same_types_and_values(maker, rows):
    pytest.importorskip("pyarrow")
    pytest.importorskip(maker)
    types, nullable, values, loaded = in_child(maker, "pyarrow", rows=rows)
    # polars has its own layouts of text and lists; they are the same types to a reader.
    plain = {k: t.replace("string_view", "string").replace("large_", "") for k, t in types.items()}
    assert plain == ARROW_TYPES
    assert nullable
    assert values == (AS_JSON if rows == "full" else [])
    assert set(loaded) - {"pandas"} == ({"nanoarrow"} if maker == "nanoarrow" else set())


@pytest.mark.parametrize("maker", ["pyarrow", "nanoarrow"])
def test_every_maker_gives_polars_the_same_types_and_values(maker):
    pytest.importorskip("polars")
    pytest.importorskip(maker)
    types, _, values, _ = in_child(maker, "polars")
    assert types == {k: str(v) for k, v in FULL.to_polars().schema.items()}
    assert values == AS_JSON


@pytest.mark.parametrize(
    ("maker", "block"),
    [("pyarrow", ""), ("polars", "pyarrow"), ("nanoarrow", "pyarrow,polars")],
)
def test_duckdb_reads_the_table_by_its_name(maker, block):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip(maker)
    if block and tuple(map(int, duckdb.__version__.split(".")[:2])) < DUCKDB_WITHOUT_PYARROW:
        pytest.skip("this duckdb reads Arrow streams only through pyarrow")
    types, _, values, _ = in_child(maker, "duckdb", block=block)
    assert types == {
        "id": "INTEGER",
        "n": "BIGINT",
        "score": "DOUBLE",
        "cited": "BOOLEAN",
        "seen": "BOOLEAN",
        "title": "VARCHAR",
        "published": "DATE",
        "created": "TIMESTAMP WITH TIME ZONE",
        "tags": "VARCHAR[]",
        "sources": "INTEGER[]",
    }
    instants = [row.pop("created") for row in values]
    assert instants == [int(NOON.timestamp() * 1_000_000), None, -315_619_200_000_000]
    assert values == [{k: v for k, v in row.items() if k != "created"} for row in AS_JSON]


DUCKDB_WITHOUT_PYARROW = (2, 0)


def test_without_any_arrow_library_the_error_names_the_extra():
    script = (
        "import sys\n"
        "for name in ('pyarrow', 'polars', 'nanoarrow', 'pandas'): sys.modules[name] = None\n"
        "from tests.tabular.test_columns import FULL\n"
        "for make in (FULL.__arrow_c_stream__, FULL.to_pandas, FULL.to_polars, FULL.to_arrow):\n"
        "    try: make()\n"
        "    except ImportError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=100
    )
    extras = [line.partition("pip install ")[2] for line in done.stdout.splitlines()]
    assert extras == [
        '"ipyperplexity[arrow]"',
        '"ipyperplexity[pandas]"',
        '"ipyperplexity[polars]"',
        '"ipyperplexity[arrow]" pyarrow',
    ], done.stderr


def test_importing_the_module_loads_no_frame_library():
    script = (
        "import sys, ipyperplexity.tabular.columns, ipyperplexity.tabular.markdown\n"
        "print(sorted({'numpy','pandas','polars','pyarrow','nanoarrow','markdown_it'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=100
    )
    assert done.stdout.strip() == "[]", done.stderr


# --- text in every frame -------------------------------------------------------------------------


def texts_in_every_frame(texts):
    table = Columns([Column("text", "str")], {"text": texts})
    found = {"dicts": table.column("text")}
    if find_spec("pandas"):
        found["pandas"] = table.to_pandas()["text"].tolist()
    if find_spec("polars"):
        found["polars"] = table.to_polars()["text"].to_list()
    if find_spec("pyarrow"):
        found["pyarrow"] = table.to_arrow()["text"].to_pylist()
    return found


def test_a_lone_surrogate_is_replaced_alike_in_every_frame():
    for texts in texts_in_every_frame(["a\ud83d", "\ude00b", "\ud83d\ude00", "plain"]).values():
        assert texts == ["a\ufffd", "\ufffdb", "😀", "plain"]


def test_a_column_name_with_a_lone_surrogate_works_in_every_frame():
    table = Columns([Column("a\ud83d", "str")], {"a\ud83d": ["x"]})
    assert table.to_dicts() == [{"a\ufffd": "x"}]
    if find_spec("polars"):
        assert table.to_polars().columns == ["a\ufffd"]


def test_a_megabyte_of_text_in_a_cell_survives_in_every_frame():
    long = "wide 文字 " * 150_000
    assert all(texts == [long] for texts in texts_in_every_frame([long]).values())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.characters(), max_size=12), max_size=6))
def test_any_text_is_the_same_in_every_frame(texts):
    found = texts_in_every_frame(texts)
    assert all(frame == found["dicts"] for frame in found.values())
    valid = [
        "".join(t).encode("utf-16", "surrogatepass").decode("utf-16", "replace") for t in texts
    ]
    assert found["dicts"] == valid


# --- values that are nearly right ----------------------------------------------------------------


def test_values_of_numpy_and_pandas_are_taken_for_what_they_are():
    np = pytest.importorskip("numpy")
    pd = pytest.importorskip("pandas")
    table = Columns(
        SCHEMA,
        {
            "id": np.array([1, 2], dtype="int64"),
            "n": [np.int8(4), np.float64("nan")],
            "score": [np.float32(0.5), pd.NA],
            "cited": [np.bool_(True), False],
            "seen": [pd.NA, np.bool_(False)],
            "title": [np.str_("x"), pd.NA],
            "published": [np.datetime64("2024-03-03T10:00:00.000000001"), np.datetime64("NaT")],
            "created": [pd.Timestamp("2024-03-03 12:00:00.123456789", tz="UTC"), pd.NaT],
            "tags": [np.array(["a"]), ("b",)],
            "sources": [np.array([1, 2]), {3: None}.keys()],
        },
    )
    first, second = table.to_dicts()
    assert first == {
        "id": 1,
        "n": 4,
        "score": 0.5,
        "cited": True,
        "seen": None,
        "title": "x",
        "published": date(2024, 3, 3),
        "created": NOON,
        "tags": ["a"],
        "sources": [1, 2],
    }
    assert {type(value).__module__ for value in first.values()} <= {"builtins", "datetime"}
    assert second["n"] is second["score"] is second["published"] is second["created"] is None
    assert second["sources"] == [3]


def test_a_datetime_in_a_date_column_is_its_day_and_a_date_in_a_time_column_midnight():
    east = timezone(timedelta(hours=9))
    table = Columns(
        [Column("day", "date"), Column("at", "timestamp")],
        {
            "day": [datetime(2024, 3, 3, 23, tzinfo=east), NOON],
            "at": [date(2024, 3, 3), datetime(2024, 3, 3, 9, tzinfo=east)],
        },
    )
    midnight = datetime(2024, 3, 3, tzinfo=UTC)
    assert table.column("day") == [date(2024, 3, 3)] * 2
    assert table.column("at") == [midnight, midnight]
    assert table.column("at")[1].tzinfo is UTC


def test_the_first_and_the_last_day_of_the_calendar_survive_in_every_frame():
    days = [date.min, date.max]
    table = Columns([Column("day", "date")], {"day": days})
    if find_spec("polars"):
        assert table.to_polars()["day"].to_list() == days
    if find_spec("pandas"):
        assert table.to_pandas()["day"].dt.year.tolist() == [1, 9999]


@pytest.mark.parametrize(
    ("kind", "value", "allowed"),
    [
        ("int32", 2**31, "whole numbers of 32 bits"),
        ("int64", -(2**63) - 1, "whole numbers of 64 bits"),
        ("int32", 1.5, "whole numbers"),
        ("int32", "1", "whole numbers"),
        ("float64", "1.5", "numbers"),
        ("bool", 1, "True and False"),
        ("str", b"bytes", "text"),
        ("date", "2024-03-03", "dates"),
        ("timestamp", 0, "dates with a time"),
        ("str_list", "text", "lists of text"),
        ("int32_list", [2**31], "lists of whole numbers"),
        ("int32_list", 5, "lists of whole numbers"),
    ],
)
def test_a_wrong_value_is_refused_with_its_column_row_and_what_is_allowed(kind, value, allowed):
    with pytest.raises(InvalidRequestError, match=rf"column 'c' holds {allowed}.*; row 1 has") as e:
        Columns([Column("c", kind)], {"c": [None, value]})
    assert e.value.field == "c"


def test_a_missing_value_is_refused_where_none_may_be():
    with pytest.raises(InvalidRequestError, match="row 1 has nothing"):
        Columns([Column("id", "int32", nullable=False)], {"id": [1, None]})


@pytest.mark.parametrize(
    ("schema", "values", "message"),
    [
        (["a", "a"], {"a": []}, "two columns are named 'a'"),
        (["a"], {"a": [], "b": []}, "'b' is in the values only"),
        (["a", "b"], {"a": []}, "'b' is in the schema only"),
        (["a", "b"], {"a": ["x"], "b": []}, "differ in length"),
    ],
)
def test_schema_and_values_must_agree(schema, values, message):
    with pytest.raises(InvalidRequestError, match=message):
        Columns([Column(name, "str") for name in schema], values)


def test_an_unknown_column_is_a_key_error_that_lists_the_columns():
    with pytest.raises(KeyError, match="there are id, n, score"):
        FULL.column("url")


def test_a_table_survives_pickling():
    assert pickle.loads(pickle.dumps(FULL)) == FULL


def test_a_table_without_columns_works_in_every_frame():
    table = Columns([], {})
    assert table.num_rows == 0
    assert table.to_dicts() == []
    if find_spec("pandas"):
        assert table.to_pandas().shape == (0, 0)
    if find_spec("polars"):
        assert table.to_polars().shape == (0, 0)
    if find_spec("pyarrow"):
        assert table.to_arrow().num_columns == 0
