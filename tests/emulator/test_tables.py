from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.emulator import Corpus
from ipyperplexity.emulator.engine import Engine
from ipyperplexity.emulator.tables import Table, take_tables
from ipyperplexity.tabular.markdown import find_tables

NOTE = r"""# Results

We fitted models to the housing data.

## Models

| model  | r2   | note   |
|--------|-----:|--------|
| ridge  | 0.83 | a \| b |
| lasso  | 0.80 |        |
| forest | 0.91 | slow   |
"""


@pytest.fixture
def notes(tmp_path: Path) -> Engine:
    (tmp_path / "results.md").write_text(NOTE, encoding="utf-8")
    (tmp_path / "dunes.md").write_text("# Dunes\n\nA dune is a hill of sand.\n", encoding="utf-8")
    return Engine(Corpus.from_folder(tmp_path))


@pytest.mark.parametrize(
    "question",
    [
        "ridge",
        "What is the r2 of ridge?",
        "Compare models in a table",
        "Show the models as a table",
    ],
)
def test_a_table_of_a_note_is_found_and_shown(notes: Engine, question: str) -> None:
    plan = notes.answer(question)
    (table,) = find_tables(plan.text)
    assert table.to_dicts() == [
        {"model": "ridge", "r2": 0.83, "note": "a | b", "sources": [1]},
        {"model": "lasso", "r2": 0.80, "note": None, "sources": [1]},
        {"model": "forest", "r2": 0.91, "note": "slow", "sources": [1]},
    ]
    assert plan.results[0].title == "Models — Results"
    assert "ridge — r2: 0.83" in plan.results[0].snippet


def test_the_row_that_is_asked_for_comes_first_in_words(notes: Engine) -> None:
    plan = notes.answer("What is the r2 of ridge?")
    assert plan.text.startswith("model ridge — r2: 0.83; note: a | b.[1]\n\n| model |")
    follow = notes.answer("and of lasso?", history=["What is the r2 of ridge?"])
    assert follow.text == "model lasso — r2: 0.80.[1]"


def test_operator_precedence_is_answered_with_its_table() -> None:
    plan = Engine(Corpus.builtin()).answer("What is the operator precedence in Python?")
    assert plan.text.startswith("The following table summarizes the operator precedence")
    (table,) = find_tables(plan.text)
    assert table.header == ("Operator", "Description")
    assert table.rows[0][1].startswith("Binding or parenthesized expression")
    assert ("|", "Bitwise OR") in table.rows
    assert table.rows[-1] == (":=", "Assignment expression")
    assert set(table.markers) == {(1,)}
    assert plan.results[0].url.endswith("#operator-summary")


def test_every_table_of_the_reference_is_read_whole() -> None:
    tables = [table for passage in Corpus.builtin().passages for table in passage.tables]
    assert len(tables) >= 12
    for table in tables:
        (read,) = find_tables(table.markdown(1))
        assert len(read.rows) == len(table.rows)
        assert len(read.header) == len(table.header)
        assert not any(re.search(r"\[\d+\]", cell) for row in table.rows for cell in row)


@pytest.mark.parametrize(
    ("written", "rows"),
    [
        ("| a | b |\n|---|---|\n| 1 | 2 |", ["a 1 — b: 2."]),
        ("Sizes:\n| a | b |\n|:-:|---|\n| 1 | 2 |\nAfter.", ["a 1 — b: 2."]),
        ("a | b\n--- | ---\n1 | 2\n3 |", ["a 1 — b: 2.", "a 3."]),
        ("| a |\n|---|\n| 1 |", ["a 1."]),
        ("| `x | y` |\n|---|\n| 1 |", []),
        (r"| a | b |" + "\n|---|---|\n" + r"| `x \| y` | **2** [3] |", ["a `x | y` — b: 2."]),
        ("+---+---+\n| a | b |\n+===+===+\n| 1 | x |\n|   | y |\n+---+---+", ["a 1 — b: x y."]),
        ("+---+---+\n| 1 | b |\n+---+---+\n| c | d |\n+---+---+", ["1 — b.", "c — d."]),
        ("+---+---+\n| a | b |\n+---+---+\n| wide  |\n+---+---+", []),
        ("===  =====\na    b\n===  =====\n1    one\n     more\n2    two\n===  =====", ["a 1 — b: one more.", "a 2 — b: two."]),
        ("```\n| a | b |\n|---|---|\n| 1 | 2 |\n```", []),
        ("a | b\n\nc", []),
        ("| a | b |\n|---|---|", []),
    ],
)  # fmt: skip
def test_each_kind_of_table_is_read_row_by_row(written: str, rows: list[str]) -> None:
    rest, tables = take_tables(written)
    assert [sentence for table in tables for sentence in table.sentences] == rows
    assert ("1" in rest) == (not rows and "1" in written)
    assert ("Sizes:" in rest) == ("Sizes:" in written)


def test_of_a_long_table_only_the_rows_that_matter_are_shown(tmp_path: Path) -> None:
    lines = [f"| city{at} | {at} |" for at in range(100)]
    text = "\n".join(["# Cities", "", "| name | people |", "|---|---|", *lines, ""])
    (tmp_path / "cities.md").write_text(text, encoding="utf-8")
    engine = Engine(Corpus.from_folder(tmp_path))
    (table,) = find_tables(engine.answer("city42").text)
    assert table.rows == (("city42", "42"),)
    assert "1 of its 100 rows" in engine.answer("city42").text
    assert "24 of its 100 rows" in engine.answer("cities").text


CELLS = st.text(alphabet="ab|\\`*[]1 .-=+\t<é💥", max_size=8)


@settings(max_examples=200, deadline=None)
@given(rows=st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=4))
def test_whatever_a_cell_holds_the_table_keeps_its_shape(rows: list[list[str]]) -> None:
    tidy = tuple(tuple(" ".join(cell.split()) for cell in row) for row in rows)
    (table,) = find_tables(Table(("x", "y"), tidy).markdown(1))
    assert len(table.rows) == len(rows)
    assert table.header == ("x", "y")


@settings(max_examples=200, deadline=None)
@given(text=st.text(alphabet=st.sampled_from("ab |\n\n-=+:`\\ "), max_size=120))
def test_no_text_breaks_the_reading_of_tables(text: str) -> None:
    _, tables = take_tables(text)
    for table in tables:
        assert all(len(row) == len(table.header) for row in table.rows)
        assert len(table.sentences) == len(table.rows)
