"""What a user gets from the tables in an answer's text."""

from __future__ import annotations

import pickle
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.tabular.markdown import MarkdownTable, find_tables

CITIES = """\
Here is what I found:

| City | People | Share | Founded | Note |
|:-----|-------:|:-----:|---------|------|
| **Bonn** | 336,000 [1][3] | 0.4% | March 3, 2024 | see [the site](https://b.example) |
| `Köln` | 1.1 million [1, 3] | 1.3 % | 2024-03-04 | n/a [2] |
| Aachen | \u2014 | 0% | | a \\| b [4-6] |

And that is all.
"""


def only(text: str) -> MarkdownTable:
    (table,) = find_tables(text)
    return table


# --- a good table --------------------------------------------------------------------------------


def test_a_table_comes_as_typed_rows_with_the_sources_of_each():
    assert list(only(CITIES)) == [
        {
            "City": "Bonn",
            "People": 336_000,
            "Share": 0.4,
            "Founded": date(2024, 3, 3),
            "Note": "see the site",
            "sources": [1, 3],
        },
        {
            "City": "Köln",
            "People": 1_100_000,
            "Share": 1.3,
            "Founded": date(2024, 3, 4),
            "Note": None,
            "sources": [1, 3, 2],
        },
        {
            "City": "Aachen",
            "People": None,
            "Share": 0.0,
            "Founded": None,
            "Note": "a | b",
            "sources": [4, 5, 6],
        },
    ]


def test_cells_are_kept_as_text_without_markup_and_markers():
    table = only(CITIES)
    assert table.header == ("City", "People", "Share", "Founded", "Note")
    assert table.rows[1] == ("Köln", "1.1 million", "1.3 %", "2024-03-04", "n/a")
    assert table.markers == ((1, 3), (1, 3, 2), (4, 5, 6))
    assert table.units == {"Share": "%"}
    assert table.warnings == ()


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_offsets_are_code_points_of_the_text_whatever_ends_its_lines(newline):
    text = ("😀 intro\n" + CITIES).replace("\n", newline)
    table = only(text)
    found = text[table.start : table.end]
    assert found.startswith("| City |")
    assert found.endswith("[4-6] |")


def test_a_table_at_the_very_end_needs_no_newline():
    text = "| a | b |\n|---|---|\n| 1 | 2 |"
    table = only(text)
    assert (table.start, table.end) == (0, len(text))


def test_every_table_is_found_also_in_lists_and_quotes():
    text = (
        "| a |\n|---|\n| 1 |\n\n"
        "- item\n\n  | b |\n  |---|\n  | 2 |\n\n"
        "> | c | d |\n> |---|---|\n> | 3 | 4 | 5 |\n\n"
        "e | f\n--- | ---\n5 | 6\n"
    )
    assert [t.header for t in find_tables(text)] == [("a",), ("b",), ("c", "d"), ("e", "f")]
    assert [t.rows[0][-1] for t in find_tables(text)] == ["1", "2", "4 | 5", "6"]


def test_frames_have_exact_types():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    table = only(CITIES)
    assert [str(t) for t in table.to_pandas().dtypes.drop("City").drop("Note")] == [
        "Int64",
        "float64",
        "datetime64[us]",
        "object",
    ]
    assert table.to_polars().schema["sources"] == pl.List(pl.Int32)
    assert pl.DataFrame(table).equals(table.to_polars())
    assert list(pd.DataFrame(table).columns) == list(table.to_pandas().columns)


def test_a_list_of_tables_stays_a_list_for_numpy():
    np = pytest.importorskip("numpy")
    tables = find_tables(CITIES + "\n" + CITIES)
    assert np.array(tables, dtype=object).shape == (2,)


def test_a_table_survives_pickling():
    table = only(CITIES)
    table.to_dicts()
    assert pickle.loads(pickle.dumps(table)) == table


# --- what is a table -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no table | here",
        "```\n| a |\n|---|\n| 1 |\n```",
        "~~~\n| a |\n|---|\n| 1 |",
        "    | a |\n    |---|\n    | 1 |",
        "| a | b |",
        "| a | b |\n|---|",
        "| a | b |\n| 1 | 2 |",
    ],
)
def test_code_and_half_a_header_are_not_tables(text):
    assert find_tables(text) == ()


def test_a_table_whose_rows_have_not_arrived_has_no_rows():
    table = only("text\n\n| a | b |\n|---|---|")
    assert (table.header, table.rows) == (("a", "b"), ())
    assert table.to_dicts() == []


def test_a_table_of_no_rows_has_its_columns_in_every_frame():
    pytest.importorskip("pandas")
    assert list(only("| a | b |\n|---|---|").to_pandas().columns) == ["a", "b", "sources"]


def test_every_beginning_of_a_streamed_text_is_read_without_error():
    seen = [len(t.rows) for n in range(len(CITIES)) for t in find_tables(CITIES[:n])]
    assert seen == sorted(seen)
    assert seen[-1] == 3


# --- mended tables -------------------------------------------------------------------------------


def test_a_short_row_is_padded_and_warned_of():
    table = only("| a | b | c |\n|---|---|---|\n| 1 |\n| 1 | 2 | 3 |")
    assert table.rows == (("1", "", ""), ("1", "2", "3"))
    assert table.warnings == ("row 1 has 1 cells for 3 columns; the missing ones are empty",)


def test_of_a_long_row_the_excess_is_kept_in_the_last_cell_and_warned_of():
    table = only("| a | b |\n|---|---|\n| 1 | **2** | 3 [7] |")
    assert table.rows == (("1", "2 | 3"),)
    assert table.markers == ((7,),)
    assert "the excess is kept in the last one" in table.warnings[0]


def test_a_pipe_in_code_does_not_break_the_row():
    table = only("| a | b |\n|---|---|\n| `x \\| y` | 1 |\n| `x | y` | 2 |")
    assert table.rows == (("x | y", "1"), ("x | y", "2"))
    assert table.warnings == ("row 2 has a pipe in code without a backslash; it was kept as code",)


def test_blank_and_repeated_column_names_are_made_unique():
    table = only("| | a | a | |\n|---|---|---|---|\n| 1 | 2 | 3 | 4 |")
    assert table.header == ("column_1", "a", "a_2", "column_4")
    assert table.warnings == ("column names occur more than once: a",)


def test_a_column_named_sources_keeps_its_name_and_the_companion_gets_another():
    assert only("| sources |\n|---|\n| x [2] |").to_dicts() == [{"sources": "x", "sources_2": [2]}]


def test_code_is_kept_as_written_and_is_no_citation():
    table = only("| a |\n|---|\n| `x[1]` **b** <br> c |")
    assert table.rows == (("x[1] b \n c",),)
    assert table.markers == ((),)


def test_an_address_is_kept_as_the_words_that_link_to_it():
    table = only("| a |\n|---|\n| [Dune](https://d.example/x) and ~~not~~ *this* |")
    assert table.rows == (("Dune and not this",),)


def test_lone_surrogates_and_nul_are_replaced_and_offsets_hold():
    text = "a\ud83d\n\n| x\ud83d |\n|---|\n| y\0 |\n"
    table = only(text)
    assert table.header == ("x\ufffd",)
    assert table.rows == (("y\ufffd",),)
    assert text[table.start] == "|"


# --- any text ------------------------------------------------------------------------------------

NOISE = st.text(st.sampled_from("|-: \n\r\t>*_`[]()!1,a$%\\#<&\0\ud83d~"), max_size=120)
ANYTHING = st.text(st.characters(exclude_categories=()), max_size=80)


@settings(max_examples=400, deadline=None)
@given(st.one_of(NOISE, ANYTHING, NOISE.map(lambda t: f"|a|b|\n|-|-|\n{t}")))
def test_no_text_raises_and_every_table_is_whole(text):
    for table in find_tables(text):
        assert 0 <= table.start < table.end <= len(text)
        assert len(set(table.header)) == len(table.header)
        assert all(len(row) == len(table.header) for row in table.rows)
        assert len(table.markers) == len(table.rows) == len(table.to_dicts())


WORDS = st.text(
    st.characters(categories=["L", "Nd", "Zs", "Po"], exclude_characters="`*_~[]<>&!$\\:"),
    max_size=12,
)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_table_written_from_cells_comes_back(data):
    width = data.draw(st.integers(1, 4))
    row = st.lists(WORDS.map(lambda w: w.strip()), min_size=width, max_size=width)
    header = data.draw(row.filter(lambda r: len(set(r)) == width and all(r)))
    rows = data.draw(st.lists(row, max_size=4))
    lines = [header, ["---"] * width, *rows]
    written = "\n".join(
        "| " + " | ".join(c.replace("|", "\\|") for c in line) + " |" for line in lines
    )
    table = only(f"before\n\n{written}\n\nafter")
    assert table.header == tuple(header)
    assert table.rows == tuple(map(tuple, rows))
    assert table.warnings == ()
