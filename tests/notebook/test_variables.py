"""``{{name}}``: what a variable becomes inside a question."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.notebook.interpolate import MAX_CHARACTERS, interpolate
from ipyperplexity.tabular.excerpt import excerpt
from tests.notebook.conftest import Session
from tests.notebook.test_asking import asked


class Company:
    name = "Lego"

    class home:
        town = "Billund"


def test_a_name_becomes_its_value_and_everything_else_stays() -> None:
    names = {"x": 5, "company": Company, "été": "summer", "_": "last"}
    text = "{{x}} {{ x }} {x} $x {{company.name}} {{company.home.town}} {{été}} {{_}} }}{{"
    assert interpolate(text, names) == "5 5 {x} $x Lego Billund summer last }}{{"


def test_a_value_that_holds_braces_is_not_looked_into_again() -> None:
    assert interpolate("{{a}}{{b}}", {"a": "{{b}}", "b": "{{a}}"}) == "{{b}}{{a}}"


def test_nothing_is_called_or_indexed() -> None:
    text = "{{f()}} {{a[0]}} {{a.b()}} {{a.}} {{.a}} {{a b}} {{1}}"
    assert interpolate(text, {"f": print, "a": [1]}) == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{{compny}}", "{{compny}}: there is no variable 'compny'. Did you mean 'company'?"),
        ("{{company.nam}}", "{{company.nam}}: 'company' has no attribute 'nam'."),
        ("{{nothing}}", "--no-vars"),
    ],
)
def test_an_unknown_name_is_refused_before_anything_is_sent(
    session: Session, server: EmulatorServer, text: str, says: str
) -> None:
    session.shell.user_ns["company"] = Company
    ran = session.run(f"%%perplexity\nWhat about {text}?")
    assert isinstance(ran.error, InvalidRequestError) and says in ran.out
    assert not server.requests


def test_no_vars_sends_the_braces(session: Session, server: EmulatorServer) -> None:
    session.good("x = 5")
    session.good("%%perplexity --no-vars\nWhat does {{x}} and {{y}} mean in Jinja?")
    assert asked(server) == "What does {{x}} and {{y}} mean in Jinja?"


def test_an_answer_becomes_its_text(session: Session, server: EmulatorServer) -> None:
    session.good("a = %perplexity -q What is a lambda?")
    session.good("%perplexity -q Shorten this: {{a}} and {{a.question}}")
    assert asked(server) == f"Shorten this: {session['a'].text} and What is a lambda?"


def test_variables_that_are_far_too_long_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="over 200,000 characters"):
        interpolate("{{a}}{{a}}", {"a": "x" * (MAX_CHARACTERS // 2 + 1)})


FRAMES = {
    "pandas": pd.DataFrame({"city": ["Ghent", "Liège"], "people": [265_086, 195_278]}),
    "polars": pl.DataFrame({"city": ["Ghent", "Liège"], "people": [265_086, 195_278]}),
    "pyarrow": pa.table({"city": ["Ghent", "Liège"], "people": [265_086, 195_278]}),
    "pyarrow batch": pa.record_batch({"city": ["Ghent", "Liège"], "people": [265_086, 195_278]}),
}


@pytest.mark.parametrize("library", FRAMES)
def test_a_frame_becomes_a_markdown_table_with_its_shape_and_dtypes(
    session: Session, server: EmulatorServer, library: str
) -> None:
    session.shell.user_ns["df"] = FRAMES[library]
    session.good("%%perplexity\nWhich is larger?\n\n{{df}}")
    lines = asked(server).splitlines()
    assert lines[:2] == ["Which is larger?", ""]
    assert lines[2] == "Table of 2 rows x 2 columns:"
    assert lines[4].startswith("| city (") and "int64" in lines[4].lower()
    assert lines[5:] == ["| --- | --- |", "| Ghent | 265086 |", "| Liège | 195278 |"]


def test_what_the_rows_are_about_is_told_also_when_it_is_the_index() -> None:
    frame = pd.DataFrame({"people": [1, 2]}, index=pd.Index(["Ghent", "Liège"], name="city"))
    assert "| city (index, str) | people (int64) |" in (excerpt(frame) or "")
    assert "| Ghent | 1 |" in (excerpt(frame) or "")
    years = pd.MultiIndex.from_tuples([("Ghent", 2020), ("Liège", 2021)], names=["city", None])
    text = excerpt(pd.DataFrame({"people": [1, 2]}, index=years)) or ""
    assert "| city (index, str) | index (index, int64) | people (int64) |" in text
    assert "| Liège | 2021 | 2 |" in text
    assert "| Liège | 2021 | 2 |" in (excerpt(pd.Series([1, 2], index=years)) or "")


def test_series_of_both_libraries_become_tables() -> None:
    assert "| people (int64) |" in (excerpt(pd.Series([1, 2], name="people")) or "")
    assert "| value (int64) |" in (excerpt(pd.Series([1, 2])) or "")
    assert "| people (Int64) |" in (excerpt(pl.Series("people", [1, 2])) or "")


def test_columns_of_the_same_name_are_all_shown() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    frame = pd.DataFrame([[1, 2]], columns=["x", "x"])
    for value in (table, frame):
        assert "| 1 | 2 |" in (excerpt(value) or "")


def test_a_pivoted_frame_becomes_a_table() -> None:
    long = pd.DataFrame(
        {"city": pd.Categorical(["A", "B"]), "year": pd.Categorical([1, 2]), "n": [3.0, 4.0]}
    )
    text = excerpt(long.pivot(index="city", columns="year", values="n")) or ""
    assert "| A | 3.0 | nan |" in text
    grouped = long.groupby("city", observed=True).agg({"n": ["min", "max"]})
    assert "n min (float64)" in (excerpt(grouped) or "")


def test_a_large_frame_is_shortened_and_says_so() -> None:
    frame = pd.DataFrame({f"c{n}": range(3000) for n in range(30)})
    text = excerpt(frame) or ""
    assert "Table of 3,000 rows x 30 columns" in text
    assert "2,980 more rows and 10 more columns left out" in text
    assert text.count("\n| ") == 22 and len(text) < 5000


def test_a_cell_cannot_break_the_table() -> None:
    text = excerpt(pd.DataFrame({"a|b": ["x|y\nz", "long " * 100]})) or ""
    rows = text.splitlines()[2:]
    assert rows[2] == "| x\\|y z |" and len(rows[3]) < 90 and len(rows) == 4


def test_an_empty_frame_is_a_table_without_rows() -> None:
    for frame in (pd.DataFrame({"a": []}), pl.DataFrame({"a": []}), pa.table({"a": pa.array([])})):
        assert "Table of 0 rows x 1 column:" in (excerpt(frame) or "")
    assert excerpt(pd.DataFrame()) is not None


def test_other_values_are_no_frames() -> None:
    for value in ("text", 5, None, [1, 2], {"a": 1}, pd, object()):
        assert excerpt(value) is None
