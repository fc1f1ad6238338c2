"""What may be searched for, and what is refused before anything is sent or paid for."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.question import OPTIONS
from ipyperplexity.search_query import (
    OTHER_NAMES,
    SEARCH_CHECKS,
    SEARCH_OPTIONS,
    SearchQuery,
)


def refusal(query: Any = "dunes", **options: Any) -> InvalidRequestError:
    with pytest.raises(InvalidRequestError) as caught:
        SearchQuery.make(query, **options)
    assert caught.value.__context__ is None
    return caught.value


# --- queries -------------------------------------------------------------------------------------


def test_one_query_stays_text_and_a_list_stays_a_list_also_of_one() -> None:
    assert SearchQuery(" dunes\n").query == "dunes"
    assert not SearchQuery("dunes").several and SearchQuery("dunes").queries == ("dunes",)
    assert SearchQuery(["dunes"]).several and SearchQuery(["dunes"]).queries == ("dunes",)


@pytest.mark.parametrize(
    "given",
    [
        ["dunes", " sand ", "dunes "],
        ("dunes", "sand"),
        pd.Series(["dunes", "sand"]),
        np.array(["dunes", "sand"]),
        (word for word in ("dunes", "sand")),
        {"dunes": 1, "sand": 2}.keys(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_list_of_texts_is_taken_and_of_two_alike_one_is_kept(given: Any) -> None:
    query = SearchQuery(given)
    assert query.query == ("dunes", "sand")
    assert all(type(text) is str for text in query.queries)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "text that is not blank"),
        (" \n", "text that is not blank"),
        (None, "a list of 1 to 5 texts"),
        (5, "got 5; allowed: text, or a list of 1 to 5 texts"),
        ([], "got 0 queries; allowed: 1 to 5"),
        (["dunes", " "], "text that is not blank"),
        (["dunes", 3], "got 3"),
        (["dunes", ["sand"]], "type list"),
        (list("abcdef"), "got 6 queries; allowed: 1 to 5"),
        ({"dunes": 1}, "type dict"),
        (b"dunes", "type bytes"),
        (pd.DataFrame({"dunes": ["a"]}), "type DataFrame"),
    ],
)
def test_a_query_that_cannot_be_searched_for_is_refused(given: Any, words: str) -> None:
    error = refusal(given)
    assert error.field == "query"
    assert words in error.message


def test_six_queries_of_which_two_are_alike_are_five() -> None:
    assert len(SearchQuery([*"abcde", "a"]).queries) == 5


def test_each_query_can_be_searched_for_alone_with_the_same_options() -> None:
    query = SearchQuery(["dunes", "sand"], recency="day", extra={"new": 1})
    alone = query.singly()
    assert [each.query for each in alone] == ["dunes", "sand"]
    assert all(each.recency == "day" and each.extra == {"new": 1} for each in alone)
    assert [each.query for each in SearchQuery("dunes").singly()] == ["dunes"]


# --- options -------------------------------------------------------------------------------------

TAKEN: list[tuple[str, Any, Any]] = [
    ("max_results", "20", 20),
    ("max_results", np.int64(3), 3),
    ("domains", "python.org, -x.com", ("python.org", "-x.com")),
    ("recency", " Month ", "month"),
    ("after", "2026-03-09", dt.date(2026, 3, 9)),
    ("updated_before", dt.datetime(2026, 3, 9, 12), dt.date(2026, 3, 9)),
    ("country", "be", "BE"),
    ("languages", "NL", ("nl",)),
    ("languages", "nl, fr en", ("nl", "fr", "en")),
    ("languages", ["nl", "nl", "fr"], ("nl", "fr")),
    ("languages", None, ()),
    ("context", "low", "low"),
    ("max_tokens", 1_000_000, 1_000_000),
    ("max_tokens_per_page", "256", 256),
    ("mode", "SEC", "sec"),
    ("search_type", "fast", "fast"),
    ("timeout", 5, 5.0),
    ("extra", {"display_server_time": True}, {"display_server_time": True}),
]
REFUSED: list[tuple[str, Any, str]] = [
    ("max_results", 0, "a whole number from 1 to 50"),
    ("max_results", True, "a whole number from 1 to 50"),
    ("max_results", 51, "a whole number from 1 to 50"),
    ("max_results", 21, "1 to 20, or to 50 with search_type='people'"),
    ("domains", "https://python.org", "without https://"),
    ("recency", "mont", "did you mean 'month'"),
    ("updated_after", "yesterday", "YYYY-MM-DD"),
    ("country", "Belgium", "two letters (ISO 3166)"),
    ("languages", "dutch", "two letters (ISO 639-1)"),
    ("languages", ["nl", 3], "two letters (ISO 639-1)"),
    ("languages", ["nl", None], "two letters (ISO 639-1)"),
    ("languages", 5, "two letters (ISO 639-1)"),
    ("languages", [np.array(["nl", "fr"])], "type ndarray"),
    ("languages", [a + b for a in "abc" for b in "abcdefg"], "got '21 languages'; allowed: at most 20"),
    ("context", "hgih", "did you mean 'high'"),
    ("max_tokens", 0, "from 1 to 1000000"),
    ("max_tokens_per_page", 1_000_001, "from 1 to 1000000"),
    ("mode", "acadmic", "web, academic, sec (did you mean 'academic'?)"),
    ("search_type", "slow", "web, fast, people"),
    ("timeout", 0, "seconds, above 0"),
    ("extra", {"query": "sand"}, "it is the first argument"),
    ("extra", {"a": object()}, "JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "kept"), TAKEN)
def test_an_option_is_brought_to_its_one_form(name: str, value: Any, kept: Any) -> None:
    assert getattr(SearchQuery.make("dunes", **{name: value}), name) == kept


@pytest.mark.parametrize(("name", "value", "words"), REFUSED)
def test_an_option_that_is_not_allowed_is_refused_by_name(
    name: str, value: Any, words: str
) -> None:
    error = refusal(**{name: value})
    assert error.field == name
    assert error.message.startswith(f"{name}: got ") and words in error.message


def test_fifty_results_are_allowed_of_people_only() -> None:
    assert SearchQuery("Ada", max_results=50, search_type="people").max_results == 50
    assert refusal(max_results=50, search_type="fast").field == "max_results"


@pytest.mark.parametrize("date", ["after", "before", "updated_after", "updated_before"])
def test_a_period_is_given_in_one_way_or_the_other(date: str) -> None:
    error = refusal(recency="day", **{date: "2026-01-01"})
    assert error.field == "recency"
    assert f"nothing beside {date}" in error.message


@pytest.mark.parametrize("prefix", ["", "updated_"])
def test_a_period_must_not_end_before_it_begins(prefix: str) -> None:
    first, last = f"{prefix}after", f"{prefix}before"
    error = refusal(**{first: "2026-02-02", last: "2026-02-01"})
    assert error.field == first
    assert f"a date not past {last}=2026-02-01" in error.message
    same = SearchQuery.make("dunes", **{first: "2026-02-02", last: "2026-02-02"})
    assert getattr(same, first) == getattr(same, last)


def test_a_page_may_be_published_after_one_day_and_changed_before_another() -> None:
    SearchQuery("dunes", after="2026-02-02", updated_before="2026-02-01")  # type: ignore[arg-type]


@pytest.mark.parametrize("budget", ["max_tokens", "max_tokens_per_page"])
def test_how_much_text_comes_along_is_said_in_one_way_or_the_other(budget: str) -> None:
    error = refusal(context="low", **{budget: 100})
    assert error.field == "context"
    assert f"nothing beside {budget}" in error.message


def test_an_option_that_does_not_exist_is_refused_with_the_nearest_and_the_list() -> None:
    error = refusal(max_result=5)
    assert error.message == "max_result: a search has no such option (did you mean 'max_results'?)."
    assert error.field == "max_result"
    assert error.hint is not None and "max_tokens_per_page" in error.hint
    assert "did you mean" not in refusal(zzz=1).message
    assert refusal(model="low").field == "model"
    assert refusal(query_="x").field == "query_"


def test_a_question_s_names_for_an_option_are_taken_but_not_beside_the_search_s_own() -> None:
    query = SearchQuery.make("dunes", limit=3, language="nl")
    assert (query.max_results, query.languages) == (3, ("nl",))
    for error in (refusal(limit=3, max_results=4), refusal(max_results=4, limit=3)):
        assert error.message == "max_results: limit is given as well; they are the same."
        assert error.field == "max_results"
    assert refusal(limit=0).field == "max_results"


# --- what it says of itself ----------------------------------------------------------------------


def test_what_was_given_can_be_kept_as_json_without_raw_fields() -> None:
    query = SearchQuery.make(
        ["dunes", "sand"], after="2026-01-02", domains="a.org", limit=3, extra={"secret": "x"}
    )
    assert query.given() == {"max_results": 3, "domains": ["a.org"], "after": "2026-01-02"}
    json.dumps(query.given())
    assert SearchQuery("dunes").given() == {}
    assert repr(query) == (
        "SearchQuery(['dunes', 'sand'], max_results=3, domains=['a.org'], after='2026-01-02')"
    )
    assert repr(SearchQuery("a" * 9999)).count("a") < 70


def test_it_cannot_be_changed_and_survives_pickling() -> None:
    query = SearchQuery(["dunes"], recency="day")
    with pytest.raises(dataclasses.FrozenInstanceError):
        query.recency = "week"  # type: ignore[misc]
    copy = pickle.loads(pickle.dumps(query))
    assert copy.query == ("dunes",) and copy.given() == {"recency": "day"}


def test_every_option_has_a_check_and_shows_on_the_command_line_with_help() -> None:
    assert list(SEARCH_OPTIONS) == [name for name in SEARCH_CHECKS if name != "query"]
    for name, option in SEARCH_OPTIONS.items():
        assert option.help.endswith(".")
        assert bool(option.flags) == (name != "extra")
    spelled = [flag for option in SEARCH_OPTIONS.values() for flag in option.flags]
    assert len(set(spelled)) == len(spelled)


def test_a_flag_that_a_question_has_too_is_repeated_and_chosen_from_in_the_same_way() -> None:
    of_questions = {
        flag: (name, option) for name, option in OPTIONS.items() for flag in option.flags
    }
    shared = 0
    for name, option in SEARCH_OPTIONS.items():
        for flag in option.flags:
            if flag in of_questions:
                other, theirs = of_questions[flag]
                assert OTHER_NAMES.get(other, other) == name
                assert option.choices == theirs.choices
                shared += 1
    assert shared >= 9


@given(
    st.one_of(st.text(), st.lists(st.one_of(st.text(), st.integers()), max_size=8), st.none()),
    st.dictionaries(
        st.sampled_from([*SEARCH_OPTIONS, *OTHER_NAMES, "model"]),
        st.one_of(
            st.none(),
            st.text(max_size=4),
            st.integers(),
            st.floats(),
            st.lists(st.text(max_size=3)),
        ),
        max_size=4,
    ),
)
def test_whatever_is_given_there_is_a_good_query_or_a_refusal(
    query: Any, options: dict[str, Any]
) -> None:
    try:
        made = SearchQuery.make(query, **options)
    except InvalidRequestError as error:
        assert error.field
    else:
        assert 1 <= len(made.queries) <= 5
        assert all(text.strip() == text != "" for text in made.queries)
        json.dumps(made.given())
