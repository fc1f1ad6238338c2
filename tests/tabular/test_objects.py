"""The objects that a user holds, in every frame library that is installed."""

from __future__ import annotations

import datetime as dt
from importlib.util import find_spec

import pytest

from ipyperplexity.answer import Answer, Usage
from ipyperplexity.batch.answer_table import answers
from ipyperplexity.sources import Source, Sources
from ipyperplexity.tabular.markdown import find_tables

SOURCES = Sources(
    [
        Source(
            3,
            "Straße 😀",
            "https://d.example",
            "d.example",
            dt.date(2025, 3, 2),
            cited=True,
            n_cited=1,
        ),
        Source(1, "Sea", "https://s.example", "s.example", snippet="x"),
    ]
)
TEXT = "Pilat.[3]\n\n| City | People |\n|---|---|\n| Bonn | 336,000 [3] |"
ANSWER = Answer("Which?", TEXT, sources=SOURCES, usage=Usage(total_tokens=3))
NONE = Answer("Which?", "")

FULL = {
    "sources": SOURCES,
    "answer": ANSWER,
    "claims": ANSWER.claims,
    "answer table": answers([ANSWER, NONE]),
    "all sources": answers([ANSWER, NONE]).sources,
    "markdown table": find_tables(TEXT)[0],
}
EMPTY = {
    "sources": Sources(),
    "answer": NONE,
    "claims": NONE.claims,
    "answer table": answers([]),
    "all sources": answers([]).sources,
}
PAIRS = pytest.mark.parametrize(
    ("full", "empty"), [(FULL[name], EMPTY[name]) for name in EMPTY], ids=list(EMPTY)
)
OBJECTS = pytest.mark.parametrize("table", FULL.values(), ids=list(FULL))


@OBJECTS
def test_an_object_gives_its_rows_with_no_frame_library_at_all(table):
    rows = table.to_dicts()
    assert rows and all(isinstance(row, dict) for row in rows)


@OBJECTS
def test_a_missing_library_is_an_import_error_that_says_what_to_install(table):
    for module, call in (("pandas", "to_pandas"), ("polars", "to_polars"), ("pyarrow", "to_arrow")):
        if not find_spec(module):
            with pytest.raises(ImportError, match=r"pip install \"ipyperplexity\["):
                getattr(table, call)()
    if not any(map(find_spec, ("pyarrow", "polars", "nanoarrow"))):
        with pytest.raises(ImportError, match="needs nanoarrow, pyarrow or polars"):
            table.__arrow_c_stream__()


@PAIRS
def test_pandas_types_are_the_same_without_rows(full, empty):
    pytest.importorskip("pandas")
    assert full.to_pandas().dtypes.astype(str).to_dict() == (
        empty.to_pandas().dtypes.astype(str).to_dict()
    )
    assert len(empty.to_pandas()) == 0 < len(full.to_pandas())


@PAIRS
def test_polars_takes_the_object_itself_with_the_types_of_to_polars(full, empty):
    pl = pytest.importorskip("polars")
    assert pl.DataFrame(full).schema == full.to_polars().schema == pl.DataFrame(empty).schema
    assert pl.DataFrame(full).to_dicts() == full.to_dicts()
    assert pl.DataFrame(empty).height == 0


@OBJECTS
def test_polars_asks_for_the_types_and_does_not_guess_them(table):
    pl = pytest.importorskip("polars")
    assert pl.DataFrame(table).schema == table.to_polars().schema


@PAIRS
def test_arrow_takes_the_object_itself_with_the_types_of_to_arrow(full, empty):
    pa = pytest.importorskip("pyarrow")
    assert pa.table(full).schema == full.to_arrow().schema == pa.table(empty).schema
    assert pa.table(full).to_pylist() == full.to_dicts()


@PAIRS
def test_duckdb_queries_the_object_by_its_name(full, empty):
    duckdb = pytest.importorskip("duckdb")
    if duckdb.__version__ < "2":
        pytest.importorskip("pyarrow")  # older ones read Arrow through it
    elif not any(map(find_spec, ("pyarrow", "polars", "nanoarrow"))):
        pytest.skip("nothing to make an Arrow stream with")
    rows, no_rows = full, empty
    connection = duckdb.connect()
    found = connection.sql("from rows")
    assert found.columns == list(rows.to_dicts()[0])
    assert connection.sql("select count(*) from rows").fetchall() == [(len(rows.to_dicts()),)]
    nothing = connection.sql("from no_rows limit 5")
    assert no_rows.to_dicts() == []
    assert nothing.fetchall() == []
    assert list(map(str, nothing.types)) == list(map(str, found.types))


@PAIRS
def test_ibis_takes_the_object_itself(full, empty):
    ibis = pytest.importorskip("ibis")
    pytest.importorskip("pyarrow")
    made, without = ibis.memtable(full), ibis.memtable(empty)
    assert made.schema() == without.schema()
    assert made.count().execute() == len(full.to_dicts())
    assert without.count().execute() == 0


def test_narwhals_takes_frames_and_the_stream():
    nw = pytest.importorskip("narwhals")
    if find_spec("pandas"):
        frame = nw.from_native(SOURCES.to_pandas())
        assert frame.schema["id"] == nw.Int32 and frame.schema["published"] == nw.Datetime("us")
        assert frame.filter(nw.col("cited"))["title"].to_list() == ["Straße 😀"]
    backends = [name for name in ("polars", "pyarrow") if find_spec(name)]
    for backend in backends:
        frame = nw.from_arrow(SOURCES, backend=backend)
        assert frame.schema["published"] == nw.Date and frame.schema["n_cited"] == nw.Int32
        assert frame["id"].to_list() == [3, 1]


def test_spark_makes_its_table_from_the_pandas_frame():
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    try:
        frame = spark.createDataFrame(SOURCES.to_pandas())
        types = dict(frame.dtypes)
        assert (types["id"], types["cited"], types["url"]) == ("int", "boolean", "string")
        assert types["published"].startswith("timestamp")
        rows = frame.orderBy("id").collect()
        assert [row["id"] for row in rows] == [1, 3]
        assert rows[1]["published"] == dt.datetime(2025, 3, 2) and rows[0]["published"] is None
        wide = spark.createDataFrame(answers([ANSWER, NONE]).to_pandas())
        assert wide.count() == 2
    finally:
        spark.stop()
