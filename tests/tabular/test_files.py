"""What a user finds in the files that a table is written to, and in the readers of others."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
import sys
from datetime import UTC, date, datetime
from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.sources import Source, Sources
from ipyperplexity.tabular import files
from ipyperplexity.tabular.columns import Column, Columns

SCHEMA = (
    Column("id", "int32", nullable=False),
    Column("n", "int64"),
    Column("score", "float64"),
    Column("seen", "bool"),
    Column("title", "str"),
    Column("published", "date"),
    Column("created", "timestamp"),
    Column("tags", "str_list"),
    Column("sources", "int32_list"),
)
TABLE = Columns(
    SCHEMA,
    {
        "id": [1, 2],
        "n": [2**40, None],
        "score": [-0.5, None],
        "seen": [True, None],
        "title": ['a "b",\r\nç 😀', None],
        "published": [date(2024, 3, 3), None],
        "created": [datetime(2024, 3, 3, 12, 0, 0, 5, tzinfo=UTC), None],
        "tags": [["x", 'y"'], None],
        "sources": [[1, 3], []],
    },
)
EMPTY = Columns(SCHEMA, {column.name: [] for column in SCHEMA})
BOTH = pytest.mark.parametrize("table", [TABLE, EMPTY], ids=["2 rows", "0 rows"])
PAGES = Sources(
    [Source(1, "=cmd()|' /C calc'!A0", "https://d.example", published=date(2025, 3, 2))]
)


def texts(*cells):
    return Columns([Column("text", "str")], {"text": cells})


def read_csv(text):
    return list(csv.reader(io.StringIO(text, newline="")))


# --- CSV ---------------------------------------------------------------------------------------


def test_a_csv_has_iso_dates_json_lists_and_nothing_where_a_value_is_missing():
    header, first, second = read_csv(files.csv_text(TABLE))
    assert header == list(TABLE.names)
    assert first[:4] == ["1", "1099511627776", "-0.5", "true"]
    assert first[4] == 'a "b",\r\nç 😀'
    assert first[5:7] == ["2024-03-03", "2024-03-03T12:00:00.000005+00:00"]
    assert [json.loads(cell) for cell in first[7:]] == [["x", 'y"'], [1, 3]]
    assert second == ["2", "", "", "", "", "", "", "", "[]"]
    assert read_csv(files.csv_text(EMPTY)) == [list(TABLE.names)]


def test_empty_text_and_no_text_differ_and_no_row_is_blank():
    assert files.csv_text(texts("", None, "x")) == 'text\n""\n""\nx\n'
    two = Columns([Column("a", "str"), Column("b", "str")], {"a": ["", None], "b": [None, ""]})
    assert files.csv_text(two) == 'a,b\n"",\n,""\n'
    assert files.csv_text(Columns([], {})) == ""


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=6))
@settings(max_examples=200, deadline=None)
def test_any_text_comes_back_from_a_csv_except_that_formulas_have_an_apostrophe(cells):
    _, *rows = read_csv(files.csv_text(texts(*cells)))
    assert [row[0] for row in rows] == [files.safe_cell(cell) for cell in cells]


@pytest.mark.parametrize("text", ["=1+1", "+a", "-a", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1"])
def test_neither_a_cell_nor_a_column_name_starts_a_formula(text):
    table = Columns([Column(text, "str")], {text: [text]})
    assert read_csv(files.csv_text(table)) == [[f"'{text}"], [f"'{text}"]]
    assert PAGES.to_csv().splitlines()[1].startswith("1,'=cmd()")


def test_pandas_polars_and_duckdb_read_the_same_from_a_csv(tmp_path):
    path = tmp_path / "table.csv"
    files.write_text(path, files.csv_text(TABLE))
    title = 'a "b",\r\nç 😀'
    if find_spec("pandas"):
        import pandas as pd

        frame = pd.read_csv(path, parse_dates=["published", "created"])
        # pandas may take a line break in a cell for its own kind.
        assert frame["title"].tolist()[0].replace("\r\n", "\n") == title.replace("\r\n", "\n")
        assert frame["id"].tolist() == [1, 2] and frame["published"][0] == pd.Timestamp(2024, 3, 3)
        assert frame["seen"][0] in (True, "True")
    if find_spec("polars"):
        import polars as pl

        frame = pl.read_csv(path, try_parse_dates=True)
        assert frame["title"].to_list() == [title, None]
        assert frame["published"].to_list() == [date(2024, 3, 3), None]
        assert frame["seen"].to_list() == [True, None]
    if find_spec("duckdb"):
        import duckdb

        query = f"select id, n, seen, title, published from read_csv('{path}')"
        assert duckdb.sql(query).fetchall()[0] == (1, 2**40, True, title, date(2024, 3, 3))


# --- JSON --------------------------------------------------------------------------------------


def test_json_is_a_list_of_objects_with_iso_dates_and_nulls():
    first, second = json.loads(files.json_text(TABLE))
    assert first == {
        "id": 1,
        "n": 2**40,
        "score": -0.5,
        "seen": True,
        "title": 'a "b",\r\nç 😀',
        "published": "2024-03-03",
        "created": "2024-03-03T12:00:00.000005+00:00",
        "tags": ["x", 'y"'],
        "sources": [1, 3],
    }
    assert second["published"] is None
    assert json.loads(files.json_text(EMPTY)) == []


def test_numbers_that_json_does_not_have_are_null():
    table = Columns([Column("x", "float64")], {"x": [float("nan"), float("inf"), 1.5]})
    assert json.loads(files.json_text(table)) == [{"x": None}, {"x": None}, {"x": 1.5}]


# --- Parquet -----------------------------------------------------------------------------------

WRITERS = pytest.mark.parametrize("library", ["pyarrow", "polars"])


def write_by(library, table, path, monkeypatch):
    pytest.importorskip(library)
    monkeypatch.setattr(files, "_PARQUET", {library: files._PARQUET[library]})
    files.write_parquet(table, path)


@WRITERS
@BOTH
def test_parquet_gives_back_exact_types_and_values(table, library, tmp_path, monkeypatch):
    path = tmp_path / "table.parquet"
    write_by(library, table, path, monkeypatch)
    if find_spec("polars"):
        import polars as pl

        assert pl.read_parquet(path).schema == table.to_polars().schema
        assert pl.read_parquet(path).to_dicts() == table.to_dicts()
    if find_spec("pyarrow"):
        import pyarrow.parquet as pq

        read = pq.read_table(path)
        if library == "pyarrow":
            assert read.schema == table.to_arrow().schema
        assert read.to_pylist() == table.to_dicts()
        assert str(read.schema.field("published").type) == "date32[day]"
        assert str(read.schema.field("id").type) == "int32"
    if find_spec("duckdb"):
        import duckdb

        read = duckdb.sql(f"from '{path}'")
        types = dict(zip(read.columns, map(str, read.types), strict=True))
        assert types["id"] == "INTEGER" and types["n"] == "BIGINT"
        assert types["published"] == "DATE" and types["tags"] == "VARCHAR[]"
        assert types["created"] == "TIMESTAMP WITH TIME ZONE"


@WRITERS
def test_pandas_reads_the_parquet(library, tmp_path, monkeypatch):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "table.parquet"
    write_by(library, TABLE, path, monkeypatch)
    frame = pd.read_parquet(path)
    assert str(frame["id"].dtype) == "int32"
    assert str(frame["created"].dtype) == "datetime64[us, UTC]"
    assert frame["title"][0] == 'a "b",\r\nç 😀'


def test_without_a_library_for_parquet_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"pip install \"ipyperplexity\[polars\]\""):
        files.write_parquet(TABLE, tmp_path / "t.parquet")
    assert list(tmp_path.iterdir()) == []


# --- files -------------------------------------------------------------------------------------


def test_with_a_path_nothing_is_returned_and_the_file_holds_the_text(tmp_path):
    for name, text in (("csv", PAGES.to_csv()), ("json", PAGES.to_json())):
        path = tmp_path / f"pages.{name}"
        assert getattr(PAGES, f"to_{name}")(path) is None
        assert path.read_bytes() == text.encode()
        assert getattr(PAGES, f"to_{name}")(str(path)) is None


def test_a_file_that_cannot_be_written_whole_leaves_the_old_one(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), files.replacing(path) as temporary:
        temporary.write_text("ne")
        1 / 0  # noqa: B018
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_new_file_has_the_users_permissions_and_an_old_one_keeps_its_own(tmp_path):
    path, plain = tmp_path / "a.txt", tmp_path / "plain.txt"
    plain.write_text("")
    files.write_text(path, "one")
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o600)
    files.write_text(path, "two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    link = tmp_path / "link"
    link.symlink_to(path)
    files.write_text(link, "three")
    assert link.is_symlink() and path.read_text() == "three"


def test_half_a_character_is_replaced_and_line_breaks_stay(tmp_path):
    path = tmp_path / "a.txt"
    files.write_text(path, "a\r\n\ud83d\n")
    assert path.read_bytes() == "a\r\n\ufffd\n".encode()


def test_a_folder_in_place_of_a_file_is_an_error_of_the_system(tmp_path):
    with pytest.raises(OSError):
        PAGES.to_csv(tmp_path)
