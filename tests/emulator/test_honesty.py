from __future__ import annotations

import json
import warnings
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ipyperplexity.emulator import Corpus
from ipyperplexity.emulator.corpus import Passage
from ipyperplexity.emulator.engine import Engine, Filters
from ipyperplexity.emulator.prose import Block
from ipyperplexity.emulator.structured import fill

from .http_help import ask, text_of

PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
BLIND = "This offline demo cannot see pictures"


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def words(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def test_the_demo_says_that_it_cannot_see_the_pictures_of_a_question(shared_server: Any) -> None:
    asked = user(words("What is a lambda?"), PICTURE)
    plain = text_of(ask(shared_server, input="What is a lambda?").json())
    seen = text_of(ask(shared_server, input=[asked]).json())
    first, _, rest = seen.partition("\n\n")
    assert first.startswith(BLIND) and first.count(".") == 1
    assert rest == plain
    assert text_of(ask(shared_server, input=[user(PICTURE)]).json()).startswith(BLIND)


def test_a_picture_of_an_earlier_turn_is_not_spoken_of_again(shared_server: Any) -> None:
    turns = [
        user(words("What is a lambda?"), PICTURE),
        {"role": "assistant", "content": "A small function."},
        user(words("And a class?")),
    ]
    assert BLIND not in text_of(ask(shared_server, input=turns).json())


def test_a_structured_answer_with_pictures_is_still_one_json_document(shared_server: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    reply = ask(
        shared_server,
        input=[user(words("What is a lambda?"), PICTURE)],
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    )
    assert json.loads(text_of(reply.json()))["a"].startswith("Lambda expressions")


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "founder": {"type": "string"},
        "title": {"type": "string"},
        "url": {"type": "string"},
        "year": {"type": "integer"},
        "share": {"type": "number"},
        "old": {"type": "boolean"},
        "day": {"type": "string", "format": "date"},
        "places": {"type": "array", "items": {"type": "string"}},
        "pair": {"type": "array", "items": {"type": "integer"}, "minItems": 2},
        "maybe": {"type": ["string", "null"]},
        "other": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "more": {"type": "object", "additionalProperties": {"type": "string"}},
        "least": {"type": "integer", "minimum": 3},
    },
    "required": ["founder", "year"],
}


def test_a_structured_answer_on_nothing_has_nothing_that_looks_like_a_fact(
    shared_server: Any,
) -> None:
    reply = ask(
        shared_server,
        input="Who founded Lego?",
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}},
    )
    value = json.loads(text_of(reply.json()))
    assert value == {
        "founder": "", "title": "", "url": "", "year": 0, "share": 0, "old": False,
        "day": "0001-01-01", "places": [], "pair": [0, 0], "maybe": None, "other": None,
        "more": {}, "least": 3,
    }  # fmt: skip
    pytest.importorskip("jsonschema").validate(value, SCHEMA)


def test_pages_alone_are_no_facts_either() -> None:
    assert fill(SCHEMA, [], ["A title"], ["https://x.example"])["title"] == ""


def page(host: str, day: date | None) -> Passage:
    return Passage(
        "Rivers", f"https://{host}/", (Block("para", "Rivers flow to the sea."),), "", day
    )


DATED = Corpus("notes", (page("a.example", date(2023, 1, 2)), page("b.example", date(2023, 10, 2))))


@pytest.mark.parametrize(
    ("filters", "says"),
    [
        ({"recency": "month"}, "Nothing from the last month: this corpus is dated 2023-01-02 to 2023-10-02."),
        ({"after": date(2024, 1, 1)}, "Nothing published after 2024-01-01: this corpus is dated"),
        ({"before": date(2020, 1, 1)}, "Nothing published before 2020-01-01: this corpus is dated"),
        ({"updated_after": date(2024, 1, 1)}, "Nothing updated after 2024-01-01: this"),
        ({"domains": ("arxiv.org",)}, "Nothing on `arxiv.org`: this corpus is on `a.example` or `b.example`."),
        ({"domains": ("-a.example", "-b.example")}, "Nothing outside `a.example` or `b.example`: this"),
        (
            {"domains": ("a.example",), "after": date(2023, 5, 1)},
            "Nothing published after 2023-05-01 and on `a.example`: this corpus is dated",
        ),
    ],
)  # fmt: skip
def test_filters_that_leave_nothing_over_are_named(filters: dict[str, Any], says: str) -> None:
    plan = Engine(DATED).answer("rivers", filters=Filters(**filters), today=date(2026, 11, 1))
    assert says in plan.text
    assert "nothing that fits the filters" in plan.text
    assert plan.results == ()


def test_only_the_filter_that_is_to_blame_is_named() -> None:
    filters = Filters(domains=("a.example",), recency="week")
    text = Engine(DATED).answer("rivers", filters=filters, today=date(2026, 11, 1)).text
    assert "from the last week" in text and "a.example" not in text


def test_pages_without_a_date_are_said_to_have_none() -> None:
    engine = Engine(Corpus("notes", (page("a.example", None),)))
    text = engine.answer("rivers", filters=Filters(recency="year"), today=date(2026, 1, 1)).text
    assert "Nothing from the last year: this corpus has no date." in text


def test_a_broken_note_is_named_in_one_clean_line(tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_bytes(b"\xff\xfe\x00bad")
    (tmp_path / "good.md").write_text("# Good\n\nText.\n", encoding="utf-8")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Corpus.from_folder(tmp_path)
    assert [str(warning.message) for warning in caught] == [
        "left out of the corpus: bad.md: it is not UTF-8 text"
    ]


def test_a_structured_answer_from_a_page_alone_is_filled_from_that_page(shared_server: Any) -> None:
    url = "https://docs.python.org/3/reference/compound_stmts.html#with"
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    reply = ask(
        shared_server,
        input=f"What does {url} say about with?",
        tools=[{"type": "fetch_url"}],
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema}},
    )
    assert json.loads(text_of(reply.json()))["a"].startswith("The `with` statement is used to wrap")
