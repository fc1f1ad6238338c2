"""Pydantic models, if the user brings the library."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path

import pytest

from ipyperplexity.schema import Schema, SchemaMismatch
from tests.schema.examples import sent


def test_pydantic_is_not_imported_unless_the_user_did():
    program = (
        "import sys; from ipyperplexity.schema import Schema; Schema.of({'a': int});"
        "print([m for m in ('pydantic', 'jsonschema', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.strip() == "[]"


def test_a_pydantic_model_is_sent_strict_and_comes_back_as_itself():
    pydantic = pytest.importorskip("pydantic")
    Inner = pydantic.create_model("Inner", when=(dt.date, ...), __config__={"strict": True})
    Outer = pydantic.create_model(
        "Outer",
        name=(str, pydantic.Field(alias="fullName", description="first and last")),
        parts=(list[Inner], ...),
        note=(str | None, None),
    )
    whole = sent(Outer)
    schema = whole["schema"]
    assert (whole["name"], whole["strict"]) == ("Outer", True)
    assert schema["required"] == ["fullName", "parts", "note"]
    assert schema["$defs"]["Inner"]["additionalProperties"] is False
    assert "default" not in json.dumps(schema)

    text = '{"fullName": "Ada", "parts": [{"when": "2025-03-02"}], "note": null}'
    value = Schema.of(Outer).parse(text)
    assert isinstance(value, Outer)
    assert value.parts[0].when == dt.date(2025, 3, 2)
    assert Schema.of([Outer]).parse(f'{{"items": [{text}]}}') == [value]
    assert Schema.of([Outer]).rows([value]) == [
        {"fullName": "Ada", "parts": '[{"when": "2025-03-02"}]', "note": None}
    ]
    with pytest.raises(SchemaMismatch) as caught:
        Schema.of([Outer]).parse('{"items": [{"fullName": "Ada", "parts": [{"when": "soon"}]}]}')
    assert caught.value.path == "items[0].parts[0].when"


def test_a_recursive_pydantic_model_has_an_object_root():
    pydantic = pytest.importorskip("pydantic")

    class Node(pydantic.BaseModel):
        value: int
        below: list[Node]

    Node.model_rebuild(_types_namespace={"Node": Node})
    schema = Schema.of(Node)
    assert schema.json_schema["type"] == "object"
    text = '{"value": 1, "below": [{"value": 2, "below": []}]}'
    assert schema.parse(text).below[0].value == 2
