"""Any form, any damage, and any JSON schema beside the reference library."""

from __future__ import annotations

import datetime as dt
import enum
import json
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.schema import Schema, SchemaMismatch
from tests.schema.examples import COMPANY, Company, Grade, Size

NAMES = st.text(min_size=1, max_size=6)
LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (str, st.text()),
    (int, st.integers(-(2**63), 2**63 - 1)),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (bool, st.booleans()),
    (dt.date, st.dates()),
    (dt.datetime, st.datetimes(timezones=st.none() | st.just(dt.UTC))),
    (Size, st.sampled_from(Size)),
    (Grade, st.sampled_from(Grade)),
    (Literal["a", "b"], st.sampled_from(["a", "b"])),
]


@st.composite
def forms(draw: st.DrawFn, depth: int = 3) -> tuple[Any, st.SearchStrategy[Any]]:
    """A form of a field, and a strategy for the values that it describes."""
    choice = draw(st.integers(0, 5)) if depth else 0
    if choice == 1:
        form, values = draw(forms(depth - 1))
        return [form], st.lists(values, max_size=3)
    if choice == 2:
        members = draw(st.dictionaries(NAMES, forms(depth - 1), min_size=1, max_size=3))
        form = {name: member for name, (member, _) in members.items()}
        return form, st.fixed_dictionaries({n: values for n, (_, values) in members.items()})
    if choice == 3:
        form, values = draw(st.sampled_from(LEAVES))
        return form | None, st.none() | values
    if choice == 4:
        form, values = draw(forms(depth - 1))
        return (form, draw(st.text(max_size=5))), values
    return draw(st.sampled_from(LEAVES))


def plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    return value.isoformat()


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value, default=plain))


@given(forms(), st.data())
@settings(max_examples=150, deadline=None)
def test_what_fits_a_form_comes_back_as_it_was(form, data):
    spec, values = form
    value = data.draw(values)
    schema = Schema.of(spec)
    keys = list(schema.json_schema["properties"])
    wrapped = value if isinstance(spec, dict) or inner_is_object(spec) else {keys[0]: value}
    text = json.dumps(wrapped, default=plain, indent=data.draw(st.sampled_from([None, 2])))
    assert schema.parse(f"Found this [1]:\n```json\n{text}\n```\n[2]") == value
    for row in schema.rows(value):
        assert list(row) == [name for name, _, _ in schema.columns()]


def inner_is_object(spec: Any) -> bool:
    # (form, "") describes nothing and is the form itself; described objects are objects too.
    return isinstance(spec, tuple) and (isinstance(spec[0], dict) or inner_is_object(spec[0]))


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_damaged_text_gives_a_fitting_value_or_a_mismatch(data):
    text = json.dumps({"companies": [COMPANY]})
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        upto = min(len(text), at + data.draw(st.integers(0, 12)))
        text = (
            text[:at] + data.draw(st.text(alphabet='{}[]",:\\ a1-.tn<`', max_size=4)) + text[upto:]
        )
    schema = Schema.of({"companies": [Company]})
    try:
        value = schema.parse(text)
    except SchemaMismatch as error:
        assert error.text == text
    else:
        again = as_json({"companies": [vars(c) | {"hq": vars(c.hq)} for c in value["companies"]]})
        assert schema.parse(json.dumps(again)) == value


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abn"), inner, max_size=3)
    ),
    max_leaves=8,
)

RULES = {
    "type": st.sampled_from(["object", "array", "string", "integer", "number", "null"]),
    "enum": st.lists(st.none() | st.booleans() | st.integers(-2, 2), min_size=1, max_size=3),
    "required": st.lists(st.sampled_from("abn"), max_size=2, unique=True),
    "minimum": st.integers(-3, 3),
    "exclusiveMaximum": st.integers(-3, 3),
    "minLength": st.integers(0, 3),
    "maxItems": st.integers(0, 3),
    "additionalProperties": st.booleans(),
    "pattern": st.sampled_from(["^a", "b$", "."]),
}
RAW_SCHEMAS = st.recursive(
    st.fixed_dictionaries({}, optional=RULES),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            **RULES,
            "properties": st.dictionaries(st.sampled_from("abn"), inner, max_size=2),
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
        },
    ),
    max_leaves=5,
)


@given(RAW_SCHEMAS, st.dictionaries(st.sampled_from("abn"), JSON_VALUES, max_size=3))
@settings(max_examples=300, deadline=None)
def test_a_json_schema_is_checked_as_the_reference_library_does(raw, value):
    jsonschema = pytest.importorskip("jsonschema")
    raw = {**raw, "type": "object"}
    if "NaN" in (text := json.dumps(value)) or "Infinity" in text:
        return
    expected = jsonschema.Draft202012Validator(raw).is_valid(value)
    try:
        found = Schema.of(raw).parse(text)
    except SchemaMismatch:
        assert not expected
    else:
        assert expected
        assert found == value
