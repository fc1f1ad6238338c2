"""A saved answer comes back as it was, holds no key, and says what is wrong with its file."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import pickle
from pathlib import Path
from typing import Any, TypedDict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipyperplexity import errors
from ipyperplexity.answer import Answer, Image, Turn, Usage
from ipyperplexity.citations import count_citations
from ipyperplexity.errors import InvalidRequestError, PerplexityError, ServerError
from ipyperplexity.schema import Schema
from ipyperplexity.secret_patterns import hide_secrets
from ipyperplexity.sources import Source, Sources
from ipyperplexity.tools import ToolCall

CREATED = dt.datetime(2026, 1, 5, 12, 30, 15, 123456, tzinfo=dt.UTC)
SOURCES = Sources(
    [
        Source(3, "Dune", "https://d.example", "d.example", dt.date(2025, 3, 2), None, True, 1),
        Source(1, "Sea", "https://s.example", "s.example", None, dt.date(2025, 3, 3), snippet="x"),
        Source(9, "Read", "https://r.example", "r.example", kind="fetch"),
    ],
    fetched=[9],
)
FULL = Answer(
    "Which dune?",
    "Pilat is tall.[3] Read it.[web:0] No.[7]",
    reasoning="Hm.",
    sources=SOURCES,
    searches=("tall dune",),
    images=(Image("https://i.example/p.png", "https://i.example", "A dune", 10, None),),
    related=("Why?",),
    usage=Usage(10, 20, 30, None, 1, 0.0123),
    model="m/1",
    id="resp_1",
    status="incomplete",
    finish_reason="max_output_tokens",
    truncated=True,
    created=CREATED,
    elapsed=2.345678901234,
    first_text=0.1,
    cached=True,
    raw={"a": [1, None, 1.5, {"ü": "\u2028"}]},
    turns=(Turn("What?", "That."),),
    options={"model": "low", "domains": ["a.example"]},
    warnings=("cut",),
    tool_calls=(
        ToolCall("add", '{"a": 1}', "2", elapsed=0.25),
        ToolCall("fail", "{}", "Error: E", "E", 0.5, "Traceback"),
    ),
    stored=True,
)
FIELDS = [field.name for field in dataclasses.fields(Answer)]


def saved(answer: Answer, folder: Path, **options: Any) -> Answer:
    path = folder / "answer.json"
    answer.save(path)
    return Answer.load(path, **options)


def assert_same(found: Answer, answer: Answer) -> None:
    for name in FIELDS:
        if name != "error":
            assert getattr(found, name) == getattr(answer, name), name
            assert type(getattr(found, name)) is type(getattr(answer, name)), name


# --- the way there and back --------------------------------------------------------------------


def test_every_field_comes_back_as_it_was(tmp_path: Path) -> None:
    found = saved(FULL, tmp_path)
    assert_same(found, FULL)
    assert found.citations == FULL.citations
    assert [c.source.title for c in found.citations if c.source] == ["Dune", "Read"]
    assert found.sources.get(9) is None, "a page that the service did not number stays so"
    assert found.created == CREATED and found.created.tzinfo is not None
    assert found.to_dicts() == FULL.to_dicts()
    with pytest.raises(errors.ConfigurationError, match="belongs to no client"):
        found.follow_up("And then?")


def test_counts_that_wait_for_a_reader_are_saved_counted(tmp_path: Path) -> None:
    plain = Sources([Source(1, "Dune", "https://d.example")])
    answer = Answer("Why?", "So.[1][1]", sources=count_citations("So.[1][1]", plain))
    assert saved(answer, tmp_path).sources[0].n_cited == 2


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
#: What looks like a key comes back as ``***``, which is another test's matter.
TEXT = st.text(max_size=20).filter(lambda text: hide_secrets(text) == text)
DAYS = st.none() | st.dates()
SOURCE = st.builds(
    Source,
    id=st.integers(1, 999),
    title=TEXT,
    url=TEXT,
    domain=TEXT,
    published=DAYS,
    updated=DAYS,
    cited=st.booleans(),
    n_cited=st.integers(0, 9),
    snippet=st.none() | TEXT,
    kind=st.sampled_from(["search", "fetch", "annotation"]),
)
COUNT = st.none() | st.integers(0, 2**40)
ANSWER = st.builds(
    Answer,
    question=TEXT,
    text=TEXT,
    reasoning=TEXT,
    sources=st.builds(
        Sources, st.lists(SOURCE, max_size=3), fetched=st.lists(st.integers(1, 9), max_size=2)
    ),
    searches=st.lists(TEXT, max_size=2).map(tuple),
    images=st.lists(st.builds(Image, url=TEXT, width=COUNT), max_size=2).map(tuple),
    related=st.lists(TEXT, max_size=2).map(tuple),
    data=JSON,
    usage=st.builds(Usage, input_tokens=COUNT, cost_usd=st.none() | st.floats(0, 9)),
    model=st.none() | TEXT,
    status=st.sampled_from(["completed", "incomplete", "stopped", "failed"]),
    created=st.datetimes(timezones=st.just(dt.UTC)),
    elapsed=st.floats(0, 1e6),
    first_text=st.none() | st.floats(0, 1e6),
    raw=st.dictionaries(TEXT, JSON, max_size=3),
    turns=st.lists(st.builds(Turn, TEXT, TEXT), max_size=2).map(tuple),
    options=st.dictionaries(TEXT, JSON, max_size=3),
    tool_calls=st.lists(
        st.builds(
            ToolCall, TEXT, TEXT, TEXT, st.none() | TEXT, st.floats(0, 1e6), st.none() | TEXT
        ),
        max_size=2,
    ).map(tuple),
)


@given(ANSWER)
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_answer_comes_back_as_it_was(tmp_path: Path, answer: Answer) -> None:
    assert_same(saved(answer, tmp_path), answer)


@pytest.mark.parametrize(
    "kind", [PerplexityError, *PerplexityError.__subclasses__(), errors.RequestTimeout]
)
def test_an_error_comes_back_in_its_class_with_its_hint_and_its_answer(
    tmp_path: Path, kind: type[PerplexityError]
) -> None:
    error = kind("down", field="x", status_code=503, request_id="r-1", retry_after=1.5)
    found = saved(dataclasses.replace(FULL, status="failed", error=error), tmp_path).error
    assert type(found) is kind
    assert str(found) == str(error) and found.args == error.args
    facts = ("field", "status_code", "request_id", "retry_after", "hint", "message")
    assert [getattr(found, name) for name in facts] == [getattr(error, name) for name in facts]
    assert found.answer.text == FULL.text and found.answer.error is found


def test_half_a_character_is_kept(tmp_path: Path) -> None:
    assert saved(Answer("Why?", "a\ud83d"), tmp_path).text == "a\ud83d"


# --- structured answers ------------------------------------------------------------------------


@dataclasses.dataclass
class Company:
    name: str
    founded: int
    listed: dt.date | None = None


class Film(TypedDict):
    title: str


def structured(spec: Any, text: str) -> Answer:
    schema = Schema.of(spec)
    return Answer("Q", text, data=schema.parse(text), data_layout=schema.layout)


LEGO = '{"name": "Lego", "founded": 1932, "listed": "1950-02-03"}'


def test_data_comes_back_as_plain_json_with_the_same_frame(tmp_path: Path) -> None:
    answer = structured(list[Company], f'{{"items": [{LEGO}]}}')
    found = saved(answer, tmp_path)
    assert found.data == [json.loads(LEGO)]
    row = {"name": "Lego", "founded": 1932, "listed": dt.date(1950, 2, 3)}
    assert found.to_dicts("data") == answer.to_dicts("data") == [row]


def test_with_its_schema_the_data_is_of_the_users_own_class_again(tmp_path: Path) -> None:
    answer = structured(Company, LEGO)
    found = saved(answer, tmp_path, schema=Company)
    assert found.data == Company("Lego", 1932, dt.date(1950, 2, 3))
    assert found.to_dicts("data") == answer.to_dicts("data")
    plain = Answer("Q", LEGO)
    assert saved(plain, tmp_path, schema=Company).data.founded == 1932
    with pytest.raises(
        InvalidRequestError, match="does not fit the schema: name: unknown"
    ) as caught:
        saved(answer, tmp_path, schema=Film)
    assert caught.value.field == "name"


def test_a_pickled_answer_keeps_its_frame() -> None:
    answer = structured({"a": int, "b": [str]}, '{"a": 1, "b": ["x"]}')
    twin = pickle.loads(pickle.dumps(answer))
    assert twin.to_dicts("data") == [{"a": 1, "b": ["x"]}]


# --- the file ----------------------------------------------------------------------------------


def test_the_file_is_readable_json_with_its_format_and_version(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    dataclasses.replace(FULL, text="Straße\n").save(str(path))
    text = path.read_text("utf-8")
    whole = json.loads(text)
    assert (whole["format"], whole["version"]) == ("ipyperplexity answer", 1)
    assert "Straße" in text and list(whole["answer"])[:2] == ["question", "text"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["answer.json"]


def test_no_key_is_in_the_file(tmp_path: Path) -> None:
    key = "pplx-0123456789abcdef"
    answer = dataclasses.replace(
        FULL,
        text=f"my key is {key}",
        error=ServerError(f"bad {key}"),
        raw={"h": {key: ["Authorization: Bearer abcdefghijkl"]}},
        options={"system": key},
        warnings=(key,),
        data={"k": key},
        tool_calls=(ToolCall("f", f'{{"a": "{key}"}}', key, key, 0.0, key),),
        thread={"read_write_token": "rwt-55e1d0"},
    )
    found = saved(answer, tmp_path)
    text = (tmp_path / "answer.json").read_text("utf-8")
    assert "0123456789abcdef" not in text and "abcdefghijkl" not in text
    assert "rwt-55e1d0" not in text and "thread" not in text and not found.thread
    assert found.text == "my key is ***"
    assert found.tool_calls == (ToolCall("f", '{"a": "***"}', "***", "***", 0.0, "***"),)


def test_what_json_cannot_hold_is_refused_by_its_field_and_no_file_is_left(tmp_path: Path) -> None:
    for name, value in (("raw", {"a": b"bytes"}), ("data", {1, 2}), ("options", {"a": object()})):
        with pytest.raises(InvalidRequestError, match=f"{name}: this answer cannot be saved") as e:
            dataclasses.replace(FULL, **{name: value}).save(tmp_path / "a.json")
        assert e.value.field == name
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_older_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    FULL.save(path)
    before = path.read_bytes()
    with pytest.raises(InvalidRequestError):
        dataclasses.replace(FULL, raw={"a": b""}).save(path)
    assert path.read_bytes() == before


# --- files that are not as they should be ------------------------------------------------------


def changed(folder: Path, **changes: Any) -> Path:
    path = folder / "answer.json"
    FULL.save(path)
    whole = json.loads(path.read_text("utf-8"))
    for name, value in changes.items():
        part, *names = [whole if name in ("version", "format") else whole["answer"]], name
        part[0][names[0]] = value
    path.write_text(json.dumps(whole))
    return path


def test_fields_of_a_later_version_are_passed_over_and_absent_ones_have_defaults(
    tmp_path: Path,
) -> None:
    path = changed(tmp_path, mood="good", usage={"searches": 3, "moons": 2}, images=[{"url": "u"}])
    found = Answer.load(path)
    assert found.usage == Usage(searches=3)
    assert found.images == (Image("u"),)
    bare = {
        "format": "ipyperplexity answer",
        "version": 1,
        "answer": {"question": "Q", "text": "A"},
    }
    path.write_text(json.dumps(bare))
    assert Answer.load(path).text == "A"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(bare).encode())
    assert Answer.load(path).text == "A"


def test_an_error_of_a_later_version_is_an_error(tmp_path: Path) -> None:
    path = changed(tmp_path, error={"code": "LUNAR", "message": "no moon"})
    assert type(Answer.load(path).error) is PerplexityError


def test_a_file_of_a_newer_format_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="newer ipyperplexity: its format version is 2"):
        Answer.load(changed(tmp_path, version=2))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Expecting value at line 1, column 1"),
        (b'{"format": "ipyperplexity answer",\n "vers', "at line 2, column 2"),
        (b'{\n"a": "\xff"}', r"line 2 \(byte 8\) is not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[1]", "is no saved answer: its format is not"),
        (b'{"nbformat": 4}', "is no saved answer: its format is not"),
        (b'{"format": "ipyperplexity answer"}', "version is null"),
        (b'{"format": "ipyperplexity answer", "version": true}', "version is true"),
        (
            b'{"format": "ipyperplexity answer", "version": 1}',
            "answer should be an object, and is null",
        ),
        (
            b'{"format": "ipyperplexity answer", "version": 1, "answer": {}}',
            "answer.question should be there",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_damaged_file_says_where(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(InvalidRequestError, match=message) as caught:
        Answer.load(path)
    assert "broken.json" in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("text", 5, "answer.text should be text, and is 5"),
        ("elapsed", True, "answer.elapsed should be a number, and is true"),
        ("created", "soon", 'answer.created should be a date and time in ISO 8601, and is "soon"'),
        ("sources", {"pages": [{"id": "1"}]}, r"answer.sources.pages\[0\].title should be there"),
        (
            "sources",
            {"pages": [{"id": 1, "title": "", "url": "", "published": "May"}]},
            r"pages\[0\].published should be a date such as 2026-01-05, or null",
        ),
        ("searches", "one", "answer.searches should be a list"),
        ("turns", [{"question": "Q"}], r"answer.turns\[0\].text should be there"),
        ("error", {"code": "SERVER"}, "answer.error.message should be there"),
        ("tool_calls", [{"name": "f"}], r"answer.tool_calls\[0\].arguments should be there"),
        (
            "data_layout",
            {"key": None, "many": False, "scalar": False, "columns": [["a", "complex", True]]},
            r"answer.data_layout.columns\[0\] should be \[name, kind, nullable\]",
        ),
    ],
)
def test_a_field_of_another_kind_is_named(
    tmp_path: Path, field: str, value: Any, message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        Answer.load(changed(tmp_path, **{field: value}))


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_bytes_raise_anything_else(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any.json"
    path.write_bytes(content)
    with pytest.raises(InvalidRequestError):
        Answer.load(path)


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Answer.load(tmp_path / "none.json")
