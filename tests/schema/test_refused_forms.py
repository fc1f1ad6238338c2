"""The forms that cannot be sent, and what the user is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.schema import Schema
from tests.schema.examples import Company, Place


class Unreadable:
    pass


@dataclass
class Dangling:
    other: Nowhere  # noqa: F821


@dataclass
class Fieldless:
    pass


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        ({}, "empty short form"),
        (object(), "object"),
        ("name and year", "name and year"),
        (Unreadable, "Unreadable"),
        ({"a": Unreadable}, "schema.a: Unreadable"),
        ({"a": [{"b": dict[str, int]}]}, "schema.a[].b: dict[str, int]"),
        ({"a": set[int]}, "schema.a: set[int]"),
        ({"a": list}, "schema.a: list"),
        ({"a": Any}, "schema.a: Any"),
        ({"a": tuple[int, str]}, "schema.a: tuple[int, str]"),
        ({"a": (int, 3)}, "schema.a: (<class 'int'>, 3)"),
        ({"a": [int, str]}, "schema.a: ["),
        ({"a": 3}, "schema.a: 3"),
        ({3: int}, "field name 3"),
        (Literal[b"x"], "Literal"),
        (Dangling, "Nowhere"),
        (Fieldless, "no fields"),
        (Company("a", 1, Place("b", None)), "Company("),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, "type: 'text'"),
        ({"type": "object", "required": "a"}, "required: 'a'"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}, "#/$defs/A"),
        ({"type": "array", "items": {"$ref": "https://a.example/s"}}, "https://a.example/s"),
        ({"type": "object", "properties": {"a": {"minimum": "low"}}}, "minimum: 'low'"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_form_that_cannot_be_sent_is_refused_with_its_place_and_what_is_allowed(spec, named):
    with pytest.raises(InvalidRequestError) as caught:
        Schema.of(spec)
    assert named in str(caught.value)
    assert "allowed: a dataclass" in str(caught.value)
    assert caught.value.field == "schema"


def test_a_form_that_contains_itself_is_refused():
    form: dict[str, Any] = {"a": int}
    form["self"] = form
    with pytest.raises(InvalidRequestError, match="contains itself"):
        Schema.of(form)
