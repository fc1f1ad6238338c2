"""The checked value in an answer's text, or the place where it does not fit."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from typing import Literal

import pytest

from ipyperplexity.schema import Schema, SchemaMismatch
from tests.schema.examples import COMPANY, Company, Film, Grade, Place, Positive, Size, Tree


def test_a_dataclass_comes_back_with_all_its_types():
    assert Schema.of(Company).parse(json.dumps(COMPANY)) == Company(
        "Dune Inc.",
        1965,
        Place("Arrakeen", None),
        Size.LARGE,
        dt.date(1984, 12, 14),
        ["spice"],
    )


def test_a_field_with_a_default_may_be_null_or_left_out():
    value = {"name": "A", "founded": 1, "hq": {"city": "B"}, "size": None}
    assert Schema.of(Company).parse(json.dumps(value)) == Company("A", 1, Place("B", None))


def test_a_typed_dict_stays_a_dict_and_a_null_optional_key_is_left_out():
    schema = Schema.of(list[Film])
    assert schema.parse('{"items": [{"title": "Dune", "year": null}]}') == [{"title": "Dune"}]


def test_a_recursive_dataclass_comes_back_as_a_tree():
    text = '{"value": 1, "children": [{"value": 2, "children": []}]}'
    assert Schema.of(Tree).parse(text) == Tree(1, [Tree(2, [])])


@pytest.mark.parametrize(
    ("form", "given", "value"),
    [
        (int, "1965.0", 1965),
        (float, "2", 2.0),
        (dt.date, '"2025-03-02T00:00:00Z"', dt.date(2025, 3, 2)),
        (dt.datetime, '"2025-03-02T10:00:00Z"', dt.datetime(2025, 3, 2, 10, tzinfo=dt.UTC)),
        (dt.datetime, '"2025-03-02"', dt.datetime(2025, 3, 2)),
        (Grade, "2", Grade.HIGH),
        (Literal[1, True], "true", True),
        (int | str, '"1"', "1"),
        (int | float, "2.5", 2.5),
        (str | None, "null", None),
        (tuple[int, ...], "[1, 2]", (1, 2)),
        ([Size], '["small"]', [Size.SMALL]),
        (None, "null", None),
    ],
    ids=str,
)
def test_a_value_has_the_type_that_was_asked_for(form, given, value):
    found = Schema.of({"field": form}).parse(f'{{"field": {given}}}')["field"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        '{"n": 1}',
        '\ufeff{"n": 1}',
        '```json\n{"n": 1}\n```',
        'Here it is:\n\n```\n{"n": 1}\n```\nIt comes from [1].',
        'As [1] and [2, 3] say in [0, 1): {"n": 1}',
        '{"n": 1}[1][web:2]',
        '{"n": 1}\n\nSources: [1] {"n": 2}',
        '<think>\nMaybe {"n": 7}?\n</think>\n\n{"n": 1}',
        '<think>a</think>  <think>b {"n": 7}</think>{"n": 1}',
        'The set {a, b} and {{name}} and {"x": "}"}: {"n": 1}',
        '{"m": 3} is not it, {"n": 1} is',
        '{"n": bad} then {"n": 1}',
    ],
)
def test_what_stands_around_the_json_is_passed_over(text):
    assert Schema.of({"n": int}).parse(text) == {"n": 1}


def test_the_text_of_a_real_structured_answer_parses():
    text = '{"city":"Paris","population":2050000}'  # as the service sent it
    found = Schema.of({"city": str, "population": int}).parse(text)
    assert found == {"city": "Paris", "population": 2050000}


@pytest.mark.parametrize(
    ("spec", "text", "value"),
    [
        (list[int], "[4, 5] [1]", [4, 5]),
        (list[int], "```json\n[4, 5]\n```", [4, 5]),
        (list[int], 'See [1]: {"items": [4, 5]}', [4, 5]),
        (int, "42 [1]", 42),
        (str, '"Paris"', "Paris"),
        (Company | None, json.dumps(COMPANY), Schema.of(Company).parse(json.dumps(COMPANY))),
        (bool, "true\n", True),
    ],
    ids=str,
)
def test_a_wrapped_root_may_come_without_its_wrapper(spec, text, value):
    assert Schema.of(spec).parse(text) == value


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (int, "42 million"),
        (list[int], "According to [1], they are 4 and 5."),
        (str, "Paris"),
        (Tree, '{"value": 1, "children": [{"value": 2, "children": []}, {"val'),
        (Tree, '{"value": 1,, "children": [{"value": 2, "children": []}]}'),
        ({"n": int}, '<think>{"n": 1}'),
        ({"n": float}, '{"n": NaN}'),
        ({"n": float}, '{"n": 1e999}'),
        ({"type": "object"}, '{"n": NaN}'),
        ({"n": int}, '{"n": 9223372036854775808}'),
        ({"n": int}, '{"n": ' + "1" * 6000 + "}"),
        ({"n": int}, '{"n": true}'),
        ({"n": Literal[1]}, '{"n": true}'),
        ({"n": dt.date}, '{"n": "2025-03-02T10:30:00"}'),
        ({"n": dt.date}, '{"n": "March 2025"}'),
        ({"n": int}, ""),
        ({"n": int}, "[" * 100_000),
        ({"n": int}, '{"n":' * 50_000),
        (Tree, '{"value":1,"children":[' * 3000 + "]}" * 3000),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_not_the_answer_never_passes_for_it(spec, text):
    with pytest.raises(SchemaMismatch) as caught:
        Schema.of(spec).parse(text)
    assert caught.value.text == text


@pytest.mark.parametrize(
    ("damage", "path", "reason"),
    [
        ({"founded": "1998-ish"}, "companies[1].founded", 'found "1998-ish"'),
        ({"founded": 19.5}, "companies[1].founded", "expected a whole number"),
        ({"size": "huge"}, "companies[1].size", 'expected one of "small", "large", found "huge"'),
        ({"hq": None}, "companies[1].hq", "expected an object, found null"),
        ({"hq": {"city": 5}}, "companies[1].hq.city", "expected a string, found 5"),
        ({"listed_on": "soon"}, "companies[1].listed_on", "ISO date"),
        ({"tags": ["a", 5]}, "companies[1].tags[1]", "expected a string, found 5"),
        ({"note": 1}, "companies[1].note", "unknown key; expected name, founded"),
        ({"a b": 1}, 'companies[1]["a b"]', "unknown key"),
        ({"name": "x" * 500, "founded": "y" * 500}, "companies[1].founded", "yyy…"),
    ],
    ids=str,
)
def test_a_misfit_is_named_with_its_place_and_what_was_found(damage, path, reason):
    text = json.dumps({"companies": [COMPANY, {**COMPANY, **damage}]})
    with pytest.raises(SchemaMismatch) as caught:
        Schema.of({"companies": [Company]}).parse(f"Of these [1]: {text}")
    assert caught.value.path == path
    assert reason in caught.value.reason
    assert str(caught.value) == f"{path}: {caught.value.reason}"
    assert len(caught.value.reason) < 200


def test_a_missing_field_is_named():
    with pytest.raises(SchemaMismatch, match=r"^founded: is missing$"):
        Schema.of(Company).parse('{"name": "A", "hq": {"city": "B"}}')


def test_an_answer_that_was_cut_off_says_so():
    with pytest.raises(SchemaMismatch, match="cut off"):
        Schema.of({"n": int}).parse('{"n": 1')


def test_no_alternative_fits_and_all_are_named():
    with pytest.raises(SchemaMismatch, match="a number or true or false, found"):
        Schema.of({"n": float | bool}).parse('{"n": "x"}')


def test_a_check_of_the_users_own_class_is_a_misfit_with_its_words():
    with pytest.raises(SchemaMismatch, match=r"^ps\[0\]: Positive refuses it: n must be positive"):
        Schema.of({"ps": [Positive]}).parse('{"ps": [{"n": 0}]}')


def test_a_mismatch_can_be_pickled():
    error = pickle.loads(pickle.dumps(SchemaMismatch("a[0]", "expected b", "text")))
    assert (error.path, error.reason, error.text) == ("a[0]", "expected b", "text")


def test_brackets_by_the_hundred_thousand_take_no_long_time():
    # Quadratic scanning would take minutes here; the timeout of the suite is the judge.
    schema = Schema.of({"n": int})
    for hostile in ("{", "[1,", '{"a":[', '"\\"', '{"', "[[", '{"a":"\\', "<think>", "{a}", "[1]"):
        with pytest.raises(SchemaMismatch):
            schema.parse(hostile * 100_000)
