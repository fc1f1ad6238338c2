"""Which schemas are the same, also in another process."""

from __future__ import annotations

import pickle
from typing import Literal

import pytest

from ipyperplexity.schema import Schema
from tests.schema.examples import RAW, Company, Film, Size, Tree


@pytest.mark.parametrize(
    "spec",
    [Company, list[Company], Film, {"a": int | None, "b": Literal["x"]}, RAW, Size, [Tree]],
    ids=str,
)
def test_a_schema_survives_pickling(spec):
    schema = Schema.of(spec)
    again = pickle.loads(pickle.dumps(schema))
    assert again == schema
    assert again.fingerprint() == schema.fingerprint()


def test_schemas_are_equal_when_what_they_send_is():
    assert Schema.of({"a": int}) == Schema.of({"a": "int"})
    assert len({Schema.of({"a": int}), Schema.of({"a": int}), Schema.of({"a": str})}) == 2
    assert Schema.of({"a": int}) != {"a": int}
    assert Schema.of(Schema.of(Company)) == Schema.of(Company)
    assert "Company" in repr(Schema.of(Company))
