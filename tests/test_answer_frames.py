"""The tables of an answer: structured data with its types, citations, claims; and their files."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import pytest

import ipyperplexity as pplx
from ipyperplexity.answer import Answer
from ipyperplexity.answer_frames import CITATION_SCHEMA
from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.schema import Schema
from ipyperplexity.sources import Source, Sources

DAY = dt.date(2025, 3, 2)
SOURCES = Sources([Source(1, "Dune", "https://d.example/x", "d.example", DAY)])
ANSWER = Answer("Which dune?", "Pilat is tall.[1] It sings.[7] Why not?", sources=SOURCES)


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


@dataclass
class Place:
    city: str


@dataclass
class Company:
    name: str
    founded: int
    hq: Place
    size: Size = Size.SMALL
    share: float | None = None
    listed: dt.date | None = None
    seen: dt.datetime | None = None
    active: bool = True
    tags: list[str] = dataclasses.field(default_factory=list)


class Film(TypedDict):
    title: str
    year: NotRequired[int]


LEGO = {
    "name": "Lego",
    "founded": 1932,
    "hq": {"city": "Billund"},
    "size": "large",
    "share": None,
    "listed": "1950-02-03",
    "seen": "2026-01-05T12:00:00Z",
    "active": True,
    "tags": ["toys"],
}


def structured(spec: Any, value: Any) -> Answer:
    """An answer as the client makes it of a reply that holds this value."""
    text, schema = json.dumps(value), Schema.of(spec)
    return Answer("Q", text, data=schema.parse(text), data_layout=schema.layout)


# --- structured data ---------------------------------------------------------------------------


def test_a_structured_answer_is_a_frame_with_the_types_of_its_schema() -> None:
    pd = pytest.importorskip("pandas")
    for value, rows in (([LEGO, LEGO], 2), ([], 0)):
        frame = structured(list[Company], {"items": value}).to_pandas("data")
        text = "str" if int(pd.__version__.split(".")[0]) >= 3 else "object"
        assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == {
            "name": text,
            "founded": "int64",
            "hq": text,
            "size": text,
            "share": "float64",
            "listed": "datetime64[us]",
            "seen": "datetime64[us, UTC]",
            "active": "boolean",
            "tags": "object",
        }
        assert len(frame) == rows


def test_polars_and_arrow_give_the_same_data() -> None:
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    full, empty = (structured(list[Company], {"items": items}) for items in ([LEGO], []))
    assert full.to_polars("data").schema == empty.to_polars("data").schema
    assert full.to_polars("data").schema["listed"] == pl.Date
    assert full.to_arrow("data").schema.field("listed").type == pa.date32()
    assert full.to_arrow("data").to_pylist() == full.to_dicts("data")


@pytest.mark.parametrize(
    ("spec", "value", "rows"),
    [
        ({"name": str, "founded": int}, {"name": "a", "founded": 1}, [{"name": "a", "founded": 1}]),
        ([{"a": int}], {"items": [{"a": 1}, {"a": 2}]}, [{"a": 1}, {"a": 2}]),
        ({"films": [Film]}, {"films": [{"title": "x"}]}, [{"title": "x", "year": None}]),
        (Film, {"title": "x", "year": 5}, [{"title": "x", "year": 5}]),
        (int, {"answer": 42}, [{"answer": 42}]),
        (int | None, {"answer": None}, [{"answer": None}]),
        (list[str], {"items": ["a"]}, [{"item": "a"}]),
        (list[str], {"items": []}, []),
        ({"hq": {"city": str}}, {"hq": {"city": "x"}}, [{"hq": '{"city": "x"}'}]),
        (
            {"type": "object", "properties": {"d": {"type": "string", "format": "date"}}},
            {"d": "2025-03-02"},
            [{"d": DAY}],
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_each_form_of_schema_has_its_rows(
    spec: Any, value: Any, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    answer = structured(spec, value)
    answer.save(tmp_path / "a.json")
    for found in (answer, pickle.loads(pickle.dumps(answer)), Answer.load(tmp_path / "a.json")):
        assert found.to_dicts("data") == rows
        assert found._columns("data").schema == answer._columns("data").schema


def test_a_pydantic_model_is_a_row_also_when_it_was_saved(tmp_path: Path) -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model(
        "Company", name=(str, ...), listed=(dt.date, ...), size=(Size, ...), hq=(Place, ...)
    )
    value = {"name": "Lego", "listed": "1950-02-03", "size": "large", "hq": {"city": "x"}}
    answer = structured(list[model], {"items": [value]})  # type: ignore[valid-type]
    row = {"name": "Lego", "listed": dt.date(1950, 2, 3), "size": "large", "hq": '{"city": "x"}'}
    assert answer.to_dicts("data") == [row]
    answer.save(tmp_path / "a.json")
    assert Answer.load(tmp_path / "a.json").to_dicts("data") == [row]
    again = Answer.load(tmp_path / "a.json", schema=list[model])  # type: ignore[valid-type]
    assert again.data[0].name == "Lego"


def test_an_answer_that_was_asked_with_a_schema_has_its_frame() -> None:
    answer = pplx.demo().ask("What is a lambda?", schema={"name": str, "year": int})
    assert answer.to_dicts("data") == [answer.data]
    assert [column.kind for column in answer._columns("data").schema] == ["str", "int64"]


def test_without_data_the_error_says_how_to_ask_for_it() -> None:
    with pytest.raises(InvalidRequestError, match="no data: it was asked without a schema") as e:
        ANSWER.to_pandas("data")
    assert "schema=" in str(e.value.hint)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"n": 10**30, "x": 1.0}, "column 'n' holds whole numbers of 64 bits; row 0 has 1000"),
        ({"n": 1, "x": 10**400}, "the value does not fit its columns"),
        ("text", "the value does not fit its columns"),
    ],
)
def test_a_value_that_no_column_holds_is_refused_and_stays_in_data(data: Any, message: str) -> None:
    answer = dataclasses.replace(structured({"n": int, "x": float}, {"n": 1, "x": 1}), data=data)
    with pytest.raises(InvalidRequestError, match=message):
        answer.to_dicts("data")
    assert answer.data == data


# --- citations and claims ----------------------------------------------------------------------


def test_citations_are_a_table_in_which_unknown_ids_are_flagged() -> None:
    first, second = ANSWER.to_dicts("citations")
    assert (first["id"], first["known"], first["url"]) == (1, True, "https://d.example/x")
    assert (first["sentence"], first["published"]) == ("Pilat is tall.[1]", DAY)
    assert ANSWER.text[first["start"] : first["end"]] == "[1]"
    assert (second["id"], second["known"], second["url"]) == (7, False, None)
    web = Answer("Q", "So.[web:0]").to_dicts("citations")[0]
    assert (web["id"], web["known"], web["by_position"]) == (None, False, True)


def test_claims_are_a_table_with_the_sentences_that_no_source_supports() -> None:
    rows = ANSWER.to_dicts("claims")
    assert [row["supported"] for row in rows] == [True, False]
    assert ANSWER.claims.unsupported["sentence"] == ["It sings."]
    assert ANSWER.claims is ANSWER.claims


@pytest.mark.parametrize("what", ["sources", "citations", "claims"])
def test_an_empty_answer_has_the_same_types_in_every_table(what: Any) -> None:
    pytest.importorskip("pandas")
    empty = Answer("Q", "")
    assert list(empty.to_pandas(what).dtypes) == list(ANSWER.to_pandas(what).dtypes)
    assert len(empty.to_pandas(what)) == 0
    assert [c.name for c in CITATION_SCHEMA] == list(empty._columns("citations").names)


def test_an_answer_draws_where_it_cites() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    from matplotlib import pyplot

    _, axes = pyplot.subplots()
    assert ANSWER.plot_citations(ax=axes) is axes
    empty = Answer("Q", "").plot_citations(ax=pyplot.subplots()[1])
    assert empty.get_title(loc="left") == axes.get_title(loc="left") != ""
    pyplot.close("all")


# --- files -------------------------------------------------------------------------------------


def test_every_table_can_be_written_to_a_file(tmp_path: Path) -> None:
    for what in ("sources", "citations", "claims"):
        path = tmp_path / f"{what}.csv"
        assert ANSWER.to_csv(path, what=what) is None  # type: ignore[func-returns-value]
        assert path.read_text("utf-8") == ANSWER.to_csv(what=what)
        rows = json.loads(ANSWER.to_json(what=what))
        assert len(rows) == len(ANSWER.to_dicts(what))
    assert ANSWER.to_csv() == SOURCES.to_csv()
    pq = pytest.importorskip("pyarrow.parquet")
    ANSWER.to_parquet(tmp_path / "c.parquet", what="citations")
    assert pq.read_table(tmp_path / "c.parquet").to_pylist() == ANSWER.to_dicts("citations")


def test_the_name_of_a_table_is_not_taken_for_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for write in (ANSWER.to_csv, ANSWER.to_json, ANSWER.to_parquet):
        with pytest.raises(InvalidRequestError, match="'citations' is the name of a table") as e:
            write("citations")
        assert "what='citations'" in str(e.value.hint)
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_it_does_not_have_is_refused_with_those_it_has() -> None:
    with pytest.raises(InvalidRequestError, match="allowed: sources, data, citations, claims"):
        ANSWER.to_pandas("rows")  # type: ignore[arg-type]


def test_documents_can_be_written_to_files_too(tmp_path: Path) -> None:
    answer = dataclasses.replace(ANSWER, created=dt.datetime(2026, 1, 5, tzinfo=dt.UTC))
    for name in ("markdown", "bibtex", "csl_json"):
        make, path = getattr(answer, f"to_{name}"), tmp_path / name
        assert make(path) is None
        assert path.read_text("utf-8") == make()
        assert "https://d.example/x" in make()
    (item,) = json.loads(answer.to_csl_json())
    assert item["accessed"] == {"date-parts": [[2026, 1, 5]]}
    assert item["issued"] == {"date-parts": [[2025, 3, 2]]}
    assert json.loads(Answer("Q", "A").to_csl_json()) == []
