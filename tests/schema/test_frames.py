"""The columns and rows of a value."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from ipyperplexity.schema import Schema
from tests.schema.examples import COMPANY, RAW, Company, Grade, Place, Size, Tree


def test_an_object_is_one_row_with_typed_columns():
    schema = Schema.of(Company)
    assert schema.columns() == [
        ("name", "str", False),
        ("founded", "int64", False),
        ("hq", "str", False),
        ("size", "str", True),
        ("listed_on", "date", True),
        ("tags", "str_list", True),
    ]
    assert schema.rows(schema.parse(json.dumps(COMPANY))) == [
        {
            "name": "Dune Inc.",
            "founded": 1965,
            "hq": '{"city": "Arrakeen", "country": null}',
            "size": "large",
            "listed_on": dt.date(1984, 12, 14),
            "tags": ["spice"],
        }
    ]


@pytest.mark.parametrize(
    ("spec", "value", "columns", "rows"),
    [
        ([{"a": int}], [{"a": 1}, {"a": 2}], [("a", "int64", False)], [{"a": 1}, {"a": 2}]),
        ({"all": [{"a": int}]}, {"all": [{"a": 1}]}, [("a", "int64", False)], [{"a": 1}]),
        ({"all": [{"a": int}]}, {"all": []}, [("a", "int64", False)], []),
        (list[Size], [Size.SMALL], [("item", "str", False)], [{"item": "small"}]),
        (int | None, None, [("answer", "int64", True)], [{"answer": None}]),
        (int | float, 1, [("answer", "float64", False)], [{"answer": 1.0}]),
        (int | str, 5, [("answer", "str", False)], [{"answer": "5"}]),
        (Grade, Grade.HIGH, [("answer", "int64", False)], [{"answer": 2}]),
        (
            {"a": list[int], "b": bool, "c": dt.datetime, "d": list[Size]},
            {"a": [1], "b": True, "c": dt.datetime(2025, 1, 1), "d": [Size.LARGE]},
            [
                ("a", "str", False),
                ("b", "bool", False),
                ("c", "timestamp", False),
                ("d", "str_list", False),
            ],
            [{"a": "[1]", "b": True, "c": dt.datetime(2025, 1, 1), "d": ["large"]}],
        ),
        (list[Place | None], [None], [("city", "str", True), ("country", "str", True)], None),
        (RAW, {"books": []}, None, [{"books": "[]", "kind": None, "mood": None}]),
        ({"type": "object"}, {"a": 1}, [("answer", "str", False)], [{"answer": '{"a": 1}'}]),
        (Tree, Tree(1, []), None, [{"value": 1, "children": "[]"}]),
    ],
    ids=lambda value: str(value)[:30],
)
def test_each_value_has_rows_for_its_columns(spec, value, columns, rows):
    schema = Schema.of(spec)
    if columns is not None:
        assert schema.columns() == columns
    found = schema.rows(value)
    if rows is not None:
        assert found == rows
    assert all(list(row) == [name for name, _, _ in schema.columns()] for row in found)


def test_dates_in_the_text_of_a_json_schema_become_dates_in_the_frame():
    raw = {"type": "object", "properties": {"d": {"type": "string", "format": "date"}}}
    schema = Schema.of(raw)
    assert schema.columns() == [("d", "date", True)]
    assert schema.rows({"d": "2025-03-02"}) == [{"d": dt.date(2025, 3, 2)}]
