"""What a user may ask, and what is refused before anything is sent or paid for."""

from __future__ import annotations

import dataclasses
import datetime as dt
import itertools
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity import option_checks
from ipyperplexity.answer import Answer
from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.question import OPTIONS, SEARCH_OPTIONS, Option, Question

LOOP: list[Any] = []
LOOP.append(LOOP)
DEEP: Any = []
for _ in range(100_000):
    DEEP = [DEEP]


def refusal(**options: Any) -> InvalidRequestError:
    with pytest.raises(InvalidRequestError) as caught:
        Question.make(**{"text": "Why?", **options})
    return caught.value


# option, what is given, words of the message: what was given and what is allowed
REFUSED: list[tuple[str, Any, tuple[str, ...]]] = [
    ("model", "two words", ("'two words'", "without blanks")),
    ("model", "a\x1b[31mb", ("without blanks",)),
    ("model", 5, ("5", "text")),
    ("system", ["be brief"], ("type list", "text")),
    ("recency", "mont", ("'mont'", "hour, day, week, month, year", "did you mean 'month'")),
    ("recency", 7, ("7", "hour, day")),
    ("recency", np.array(["day", "week"]), ("type ndarray", "hour, day")),
    ("context", "hgih", ("'hgih'", "low, medium, high", "did you mean 'high'")),
    ("reasoning", "hard", ("'hard'", "none, minimal, low")),
    ("after", "yesterday", ("'yesterday'", "YYYY-MM-DD")),
    ("after", "2025-02-30", ("'2025-02-30'", "YYYY-MM-DD")),
    ("before", 20250101, ("20250101", "YYYY-MM-DD")),
    ("before", pd.NaT, ("YYYY-MM-DD",)),
    ("after", np.datetime64("NaT"), ("YYYY-MM-DD",)),
    ("domains", "https://python.org", ("'https://python.org'", "without https://")),
    ("domains", ["python.org", 3], ("3", "python.org")),
    ("domains", {"python.org": 1}, ("type dict", "python.org")),
    ("domains", b"python.org", ("type bytes",)),
    ("domains", [np.array(["a.b", "c.d"])], ("type ndarray",)),
    ("domains", "-", ("'-'",)),
    ("domains", ["a" * 250 + ".org"], ("python.org",)),
    ("domains", [f"s{n}.org" for n in range(21)], ("21 sites", "at most 20")),
    ("domains", 1.5, ("1.5",)),
    ("country", "Belgium", ("'Belgium'", "two letters")),
    ("language", "n1", ("'n1'", "two letters")),
    ("language", 4, ("4", "two letters")),
    ("limit", 0, ("0", "from 1 to 50")),
    ("limit", 51, ("51", "from 1 to 50")),
    ("limit", True, ("True", "from 1 to 50")),
    ("limit", "x", ("'x'", "from 1 to 50")),
    ("limit", 2.5, ("2.5", "from 1 to 50")),
    ("limit", np.int64(99), ("99", "from 1 to 50")),
    ("limit", 10**5000, ("bits", "from 1 to 50")),
    ("limit", "9" * 5000, ("from 1 to 50",)),
    ("limit", pd.NA, ("from 1 to 50",)),
    ("search", "maybe", ("'maybe'", "yes, no, force")),
    ("search", 1, ("1", "True, False")),
    ("max_tokens", 0, ("0", "from 1 up")),
    ("max_tokens", 10**5000, ("bits",)),
    ("max_steps", 101, ("101", "from 1 to 100")),
    ("temperature", 2.1, ("2.1", "from 0 to 2")),
    ("temperature", -0.1, ("-0.1", "from 0 to 2")),
    ("temperature", float("nan"), ("nan", "from 0 to 2")),
    ("temperature", "warm", ("'warm'", "from 0 to 2")),
    ("temperature", True, ("True",)),
    ("temperature", b"1", ("type bytes",)),
    ("temperature", 10**400, ("bits",)),
    ("timeout", 0, ("0", "above 0")),
    ("timeout", float("nan"), ("nan", "above 0")),
    ("timeout", float("inf"), ("inf", "at most a week")),
    ("timeout", 1e12, ("at most a week",)),
    ("schema", object(), ("object",)),
    ("images", "/no/such/picture.png", ("/no/such/picture.png", "path", "https:")),
    ("tools", "web_serch", ("'web_serch'", "fetch_url", "did you mean 'web_search'")),
    ("tools", [3], ("3", "web_search")),
    ("tools", [{"type": "rocket"}], ("'rocket'", "web_search")),
    ("tools", [{"no": "type"}], ("None", "web_search")),
    ("tools", [{"type": "function", "parameters": {1, 2}}], ("JSON",)),
    ("tools", b"sandbox", ("type bytes",)),
    ("follow", "an answer", ("'an answer'", "an Answer")),
    ("follow", pd.DataFrame({"text": [1], "id": [2]}), ("type DataFrame", "an Answer")),
    ("follow", Answer("Why?", ""), ("without text",)),
    ("extra", ["a"], ("type list", "text keys")),
    ("extra", {1: "a"}, ("type dict", "text keys")),
    ("extra", {"when": dt.date(2025, 1, 1)}, ("JSON",)),
    ("extra", {"n": float("nan")}, ("JSON",)),
    ("extra", {"loop": LOOP}, ("JSON",)),
    ("extra", {"deep": DEEP}, ("nested too deeply",)),
    ("extra", {"stream": True}, ("'stream'", "use stream()")),
    ("extra", {"background": True}, ("'background'", "use submit()")),
    ("extra", {"input": "x"}, ("'input'", "question's text")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "words"),
    REFUSED,
    ids=[f"{name}-{number}" for number, (name, _, _) in enumerate(REFUSED)],
)
def test_a_bad_value_is_refused_by_its_name_with_what_was_given_and_what_is_allowed(
    name: str, value: Any, words: tuple[str, ...]
) -> None:
    error = refusal(**{name: value})
    assert error.field == name
    assert name in error.message
    for word in words:
        assert word in error.message
    assert len(error.message) < 1000
    assert error.message.isprintable()
    assert error.__context__ is None
    assert error.__cause__ is None


@pytest.mark.parametrize(
    "text", ["", " \n\t", None, 3, b"Why?", ["Why?"], pd.DataFrame({"a": [1]})]
)
def test_a_question_is_text_that_is_not_blank(text: Any) -> None:
    error = refusal(text=text)
    assert error.field == "question"
    assert "text that is not blank" in error.message


def test_no_message_shows_the_inside_of_bytes_or_of_a_dict_with_a_secret() -> None:
    secret = "pplx-0123456789"
    for name in OPTIONS.keys() - {"schema"}:
        for value in (secret.encode(), {"type": "mcp", "authorization": secret, "x": object()}):
            try:
                Question.make("Why?", **{name: value})
            except InvalidRequestError as error:
                assert secret not in str(error), name


def test_an_unknown_option_is_refused_and_the_nearest_is_named() -> None:
    error = refusal(domain="python.org")
    assert error.field == "domain"
    assert "did you mean 'domains'" in error.message
    assert "recency" in str(error.hint)
    assert "did you mean" not in refusal(zzzz=1).message


@pytest.mark.parametrize("name", ["after", "before"])
def test_recency_and_a_date_exclude_each_other(name: str) -> None:
    error = refusal(recency="day", **{name: "2025-01-01"})
    assert error.field == "recency"
    assert name in error.message


def test_a_period_has_to_end_after_it_begins() -> None:
    error = refusal(after="2025-03-02", before="2025-03-01")
    assert error.field == "after"
    assert "2025-03-02" in error.message and "2025-03-01" in error.message
    assert Question("Why?", after="2025-03-01", before="2025-03-01").before == dt.date(2025, 3, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    list(
        zip(
            SEARCH_OPTIONS,
            ("day", "2025-01-01", "2025-01-01", "x.org", "low", "BE", 3),
            strict=True,
        )
    ),
)
def test_an_option_of_searching_is_refused_while_search_is_off(name: str, value: Any) -> None:
    error = refusal(search=False, **{name: value})
    assert error.field == name
    assert "while search is off" in error.message


DATES = [
    "2025-03-02",
    " 2025-03-02 ",
    "2025-3-2",
    "2025-03-02T10:30:00Z",
    dt.date(2025, 3, 2),
    dt.datetime(2025, 3, 2, 23, 59),
    pd.Timestamp("2025-03-02 10:00", tz="UTC"),
    np.datetime64("2025-03-02"),
    np.datetime64("2025-03-02T10:00:00.000000000", "us"),
]


@pytest.mark.parametrize("value", DATES, ids=[f"{v!r}" for v in DATES])
def test_a_date_may_be_given_in_any_usual_form(value: Any) -> None:
    assert type(Question("Why?", after=value).after) is dt.date
    assert Question("Why?", after=value).after == dt.date(2025, 3, 2)


ACCEPTED: list[tuple[str, Any, Any]] = [
    ("model", " low ", "low"),
    ("model", "", None),
    ("recency", "MONTH ", "month"),
    ("recency", np.str_("day"), "day"),
    ("domains", "python.org,-x.com docs.python.org/3", ("python.org", "-x.com", "docs.python.org/3")),
    ("domains", ["python.org", "python.org"], ("python.org",)),
    ("domains", pd.Series(["python.org"]), ("python.org",)),
    ("domains", "müller.example", ("müller.example",)),
    ("domains", "", ()),
    ("domains", None, ()),
    ("country", "be", "BE"),
    ("language", "NL", "nl"),
    ("limit", np.int64(7), 7),
    ("limit", "7", 7),
    ("max_tokens", np.uint8(200), 200),
    ("temperature", np.float64(0.5), 0.5),
    ("temperature", Decimal("0.5"), 0.5),
    ("temperature", "0.5", 0.5),
    ("timeout", 30, 30.0),
    ("search", "no", False),
    ("search", "YES", True),
    ("search", np.bool_(False), False),
    ("search", None, True),
    ("search", "force", "force"),
    ("tools", "fetch_url", ({"type": "fetch_url"},)),
    ("tools", {"type": "mcp", "server_label": "a"}, ({"type": "mcp", "server_label": "a"},)),
    ("extra", {"metadata": {"run": 7}}, {"metadata": {"run": 7}}),
    ("extra", None, {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "held"), ACCEPTED, ids=[f"{n}-{i}" for i, (n, _, _) in enumerate(ACCEPTED)]
)
def test_a_good_value_is_held_in_its_one_plain_form(name: str, value: Any, held: Any) -> None:
    found = getattr(Question("Why?", **{name: value}), name)
    assert found == held
    assert type(found) is type(held)


def test_a_question_does_not_change_when_the_dicts_it_was_given_do() -> None:
    nested = {"metadata": {"run": 1}}
    tool = {"type": "mcp", "headers": {"a": "b"}}
    question = Question("Why?", extra=nested, tools=[tool])
    nested["metadata"]["run"] = 2
    tool["headers"]["a"] = "c"  # type: ignore[index]
    assert question.extra == {"metadata": {"run": 1}}
    assert question.tools[0]["headers"] == {"a": "b"}


def test_text_that_utf8_cannot_carry_is_mended() -> None:
    question = Question("a\ud83d\ude00b\ud83d", system="\udfff")
    assert question.text == "a😀b�"
    assert question.system == "�"


def test_given_names_what_differs_from_the_defaults_in_values_that_json_holds() -> None:
    question = Question(
        "Why?", domains="a.org", after="2025-01-02", limit=3, search="force", extra={"k": "v"}
    )
    assert question.given() == {
        "domains": ["a.org"],
        "after": "2025-01-02",
        "limit": 3,
        "search": "force",
    }
    assert Question("Why?").given() == {}


def test_its_repr_is_short_and_tells_the_options() -> None:
    shown = repr(Question("Why? " * 1000, limit=3, system="Be brief. " * 1000))
    assert len(shown) < 250
    assert "limit=3" in shown


def test_a_question_stays_as_it_was_made_and_can_be_pickled() -> None:
    question = Question("Why?", recency="day", domains="a.org")
    with pytest.raises(dataclasses.FrozenInstanceError):
        question.recency = "week"  # type: ignore[misc]
    copy = pickle.loads(pickle.dumps(question))
    assert copy.given() == question.given()


def test_every_option_says_how_it_shows_and_no_flag_is_spelled_twice() -> None:
    names = {field.name for field in dataclasses.fields(Question)} - {"text"}
    assert set(OPTIONS) == names
    flags = [flag for option in OPTIONS.values() for flag in option.flags]
    assert len(flags) == len(set(flags))
    for name, option in OPTIONS.items():
        assert isinstance(option, Option)
        assert option.help.endswith("."), name
        assert not option.flags or option.metavar, name
        for choice in (*option.choices, *option.suggestions):
            Question("Why?", **{name: choice})


class Hostile:
    """An object that answers no question put to it."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise RuntimeError("no truth")


class Drawing:
    """Looks like a picture, and is none."""

    def save(self, file: Any, **details: Any) -> None:
        raise OSError("no ink")


JUNK = [
    Hostile(), Hostile, Drawing(), itertools.count(), [Hostile()], {"type": Hostile()}, LOOP, DEEP, (), [], {}, set(),
    b"", b"\xff", bytearray(5), memoryview(b"abc"), 1j, 10**5000, -(10**400), float("inf"),
    "\x00", "~nobody/x", "\ud800", "a" * 100_000, "https://", "data:image/", "://", "https://[",
    np.array([1, 2]), np.array(5), np.array("day"), np.array([["a.b"]]), np.float64("nan"), pd.NA,
    pd.NaT, pd.Series([1]), pd.DataFrame({"text": [1]}), pd.Timestamp(0), dt.timedelta(1), dt.time(1),
    Path("/"), Path("/dev/zero"), Path("/nowhere"), print, int, lambda: 1, iter([]), range(3),
    Answer("Why?", "So."), Question("Why?"), Exception("x"),
]  # fmt: skip
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.decimals()
    | st.complex_numbers()
    | st.sampled_from([w for option in OPTIONS.values() for w in option.choices]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner)
        | st.dictionaries(st.text() | st.sampled_from(["type", "properties", "$ref"]), inner)
    ),
    max_leaves=8,
)


def make_or_refuse(text: Any, options: dict[str, Any]) -> None:
    try:
        question = Question.make(text, **options)
    except InvalidRequestError as error:
        assert error.field
        assert error.__context__ is None or error.__suppress_context__
    else:
        assert repr(question)
        assert isinstance(question.given(), dict)


@pytest.mark.parametrize("name", ["text", *OPTIONS])
def test_whatever_is_given_makes_a_question_or_is_refused_cleanly(name: str) -> None:
    for junk in JUNK:
        if name == "schema" and isinstance(junk, int):
            continue  # Python itself refuses to print a number of 5,000 digits
        if name == "text":
            make_or_refuse(junk, {})
        else:
            make_or_refuse("Why?", {name: junk})


@given(name=st.sampled_from(["text", *OPTIONS]), value=ANYTHING)
@settings(max_examples=400, deadline=None)
def test_any_value_makes_a_question_or_is_refused_cleanly(name: str, value: Any) -> None:
    if name == "text":
        make_or_refuse(value, {})
    else:
        make_or_refuse("Why?", {name: value})


def test_a_date_that_two_countries_read_differently_is_refused() -> None:
    error = refusal(after="1/2/2023")
    assert error.field == "after" and "YYYY-MM-DD" in error.message


def test_several_sites_may_stand_in_one_text() -> None:
    assert Question("Why?", domains=["a.org, -b.org", "c.org"]).domains == (
        "a.org", "-b.org", "c.org",
    )  # fmt: skip


def test_options_of_a_question_and_of_a_search_are_described_by_one_class() -> None:
    assert Option is option_checks.Option


def test_the_help_says_where_functions_run_and_what_bounds_them() -> None:
    assert "notebook" in OPTIONS["tools"].help
    assert "rounds" in OPTIONS["max_steps"].help and "functions" in OPTIONS["max_steps"].help


def test_two_tools_of_one_name_are_refused_however_they_are_declared() -> None:
    def mine() -> int:
        return 1

    nested = {"type": "function", "function": {"name": "mine"}}
    assert "another name" in refusal(tools=[mine, nested]).message
