"""The request field that each form becomes."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Literal

import pytest

from ipyperplexity.schema import Schema
from tests.schema.examples import Company, Grade, Size, Tree, sent


def test_the_short_form_becomes_a_strict_schema_with_descriptions():
    form = {"name": str, "founded": (int, "year it was founded"), "hq": "city, country"}
    assert Schema.of(form).response_format() == {
        "type": "json_schema",
        "json_schema": {
            "name": "answer",
            "strict": True,
            "schema": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "founded": {"type": "integer", "description": "year it was founded"},
                    "hq": {"type": "string", "description": "city, country"},
                },
                "required": ["name", "founded", "hq"],
                "additionalProperties": False,
            },
        },
    }


@pytest.mark.parametrize(
    ("form", "schema"),
    [
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (dt.date, {"type": "string", "format": "date"}),
        (dt.datetime, {"type": "string", "format": "date-time"}),
        (str | None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ((int | None, "a"), {"anyOf": [{"type": "integer"}, {"type": "null"}], "description": "a"}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (
            Literal["a", None],
            {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]},
        ),
        (Size, {"type": "string", "enum": ["small", "large"]}),
        (Grade, {"type": "integer", "enum": [1, 2], "description": "1 = LOW, 2 = HIGH"}),
        (["a city"], {"type": "array", "items": {"type": "string", "description": "a city"}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (Annotated[int, "years"], {"type": "integer", "description": "years"}),
        ("date", {"type": "string", "format": "date"}),
        ("integer", {"type": "integer"}),
        ("date of birth", {"type": "string", "description": "date of birth"}),
        ({"type": "string", "maxLength": 3}, {"type": "string", "maxLength": 3}),
    ],
    ids=str,
)
def test_each_form_of_a_field_has_its_json_schema(form, schema):
    assert sent({"field": form})["schema"]["properties"]["field"] == schema


def test_a_dataclass_names_nested_classes_once_and_describes_its_fields():
    whole = sent({"first": Company, "second": (Company, "the rival")})
    schema = whole["schema"]
    assert whole["strict"] is True
    assert set(schema["$defs"]) == {"Company", "Place"}
    assert schema["properties"]["first"] == {"$ref": "#/$defs/Company"}
    # A $ref with a neighbor is refused by strict structured outputs.
    assert schema["properties"]["second"] == {
        "anyOf": [{"$ref": "#/$defs/Company"}],
        "description": "the rival",
    }
    assert schema["$defs"]["Place"]["description"] == "Where a company sits."
    company = schema["$defs"]["Company"]
    assert company["required"] == ["name", "founded", "hq", "size", "listed_on", "tags"]
    assert company["properties"]["tags"]["description"] == "fields of business"
    assert {"type": "null"} in company["properties"]["size"]["anyOf"]
    assert "description" not in company


def test_a_dataclass_root_is_sent_as_the_object_itself():
    schema = sent(Company)["schema"]
    assert schema["type"] == "object"
    assert set(schema["$defs"]) == {"Place"}


def test_a_recursive_dataclass_keeps_its_own_definition():
    schema = sent(Tree)["schema"]
    assert schema["type"] == "object"
    assert schema["$defs"]["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}


@pytest.mark.parametrize(
    ("spec", "key"),
    [
        (list[Company], "items"),
        ([{"name": str}], "items"),
        (list[str], "items"),
        (int, "answer"),
        (Company | None, "answer"),
        ({"type": "array", "items": {"type": "string"}}, "items"),
        ({"enum": ["yes", "no"]}, "answer"),
    ],
    ids=str,
)
def test_a_root_that_is_no_object_is_wrapped_in_one(spec, key):
    schema = sent(spec)["schema"]
    assert schema["type"] == "object"
    assert schema["required"] == [key]


def test_a_json_schema_with_an_object_root_is_sent_as_it_is():
    raw = {"type": "object", "properties": {"n": {"type": "integer", "x-unit": "kg"}}}
    assert sent(raw)["schema"] == raw


def test_strict_is_claimed_only_for_a_json_schema_that_keeps_its_rules():
    loose = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tight = {**loose, "required": ["n"], "additionalProperties": False}
    assert sent(loose)["strict"] is False
    assert sent(tight)["strict"] is True


def test_a_whole_response_format_is_taken_with_its_name():
    tight = {"type": "object", "properties": {}, "additionalProperties": False}
    given = {"type": "json_schema", "json_schema": {"name": "mine", "schema": tight}}
    assert Schema.of(given).response_format() == {
        "type": "json_schema",
        "json_schema": {"name": "mine", "schema": tight, "strict": True},
    }


@pytest.mark.parametrize(
    "form",
    [
        {"type": str},
        {"type": "kind of company"},
        {"type": "date"},
        {"type": "string", "founded": "integer"},
        {"properties": {"a": str}},
        {"enum": [str]},
        {"items": [str]},
        {"title": "of the film", "description": "of the film"},
    ],
    ids=str,
)
def test_a_field_named_like_a_json_schema_keyword_is_still_a_field(form):
    assert set(sent(form)["schema"]["properties"]) == set(form)


@pytest.mark.parametrize(
    "raw",
    [
        {"type": "object"},
        {"type": "object", "note": "own keyword", "properties": {}},
        {"properties": {"a": {"type": "string"}}},
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object"}}},
        {"type": ["object", "null"], "title": "T"},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
    ],
    ids=str,
)
def test_a_json_schema_is_recognized(raw):
    assert "type" not in sent(raw)["schema"].get("properties", {})


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (Company, "Company"),
        (list[Company], "Company"),
        ([Company], "Company"),
        ({"a": int}, "answer"),
        ({"type": "object", "title": "Größe & Gewicht"}, "Gr_e_Gewicht"),
        ({"type": "object", "title": "x" * 80}, "x" * 64),
        ({"type": "object", "title": "会社"}, "answer"),
    ],
    ids=str,
)
def test_the_name_is_one_that_the_service_takes(spec, name):
    assert sent(spec)["name"] == name


def test_what_is_sent_cannot_be_changed_from_outside():
    raw = {"type": "object", "properties": {"n": {"type": "integer"}}}
    schema = Schema.of(raw)
    raw["properties"]["n"]["type"] = "string"
    schema.response_format()["json_schema"]["schema"]["properties"].clear()
    schema.json_schema.clear()
    assert schema.json_schema["properties"] == {"n": {"type": "integer"}}
