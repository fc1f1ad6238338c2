"""A user's own JSON schema, as the root and inside other forms."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ipyperplexity.schema import Schema, SchemaMismatch
from tests.schema.examples import RAW


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"books": [{"title": "Dune", "pages": 412, "next": {"title": "Emma"}}]}, None),
        ({"books": [{"title": "Dune", "more": 1}], "mood": None, "kind": "list"}, None),
        ({"books": []}, "books"),
        ({"books": [{}]}, "books[0].title"),
        ({"books": [{"title": "Dune Messiah"}]}, "books[0].title"),
        ({"books": [{"title": "dune"}]}, "books[0].title"),
        ({"books": [{"title": "Dune", "pages": 0}]}, "books[0].pages"),
        ({"books": [{"title": "Dune", "pages": 1000}]}, "books[0].pages"),
        ({"books": [{"title": "Dune", "out": "soon"}]}, "books[0].out"),
        ({"books": [{"title": "Dune", "id": []}]}, "books[0].id"),
        ({"books": [{"title": "Dune", "next": {"title": ""}}]}, "books[0].next.title"),
        ({"books": [{"title": "Dune"}], "mood": "odd"}, "mood"),
        ({"books": [{"title": "Dune"}], "kind": "set"}, "kind"),
        ({"books": [{"title": "Dune"}], "extra": 1}, "extra"),
    ],
    ids=str,
)
@pytest.mark.parametrize("place", ["root", "list", "field"])
def test_a_json_schema_is_checked_wherever_it_stands(value, path, place):
    spec, given, prefix = {
        "root": (RAW, value, ""),
        "list": ([RAW], {"items": [value]}, "items[0]."),
        "field": ({"it": RAW}, {"it": value}, "it."),
    }[place]
    schema = Schema.of(spec)
    if path is None:
        found = schema.parse(json.dumps(given))
        assert found == {"root": value, "list": [value], "field": {"it": value}}[place]
        return
    with pytest.raises(SchemaMismatch) as caught:
        schema.parse(json.dumps(given))
    assert caught.value.path == prefix + path


@pytest.mark.parametrize("ref", ["#", "#/properties/left"])
def test_a_reference_into_an_embedded_json_schema_still_leads_there(ref):
    raw = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "left": {"type": ["object", "null"]}},
    }
    raw["properties"]["right"] = {"$ref": ref}  # type: ignore[index]
    schema = Schema.of([raw])
    value = [{"n": 1, "right": {"left": None}}]
    assert schema.parse(json.dumps({"items": value})) == value
    with pytest.raises(SchemaMismatch, match=r"items\[0\]\.right: expected an object"):
        schema.parse('{"items": [{"right": 5}]}')


def test_two_embedded_json_schemas_may_use_one_name_for_different_things():
    def holding(kind: str) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"v": {"$ref": "#/$defs/v"}},
            "$defs": {"v": {"type": kind}},
        }

    schema = Schema.of({"a": holding("integer"), "b": holding("string")})
    assert schema.parse('{"a": {"v": 1}, "b": {"v": "x"}}') == {"a": {"v": 1}, "b": {"v": "x"}}
    with pytest.raises(SchemaMismatch, match=r"^b\.v: "):
        schema.parse('{"a": {"v": 1}, "b": {"v": 1}}')
