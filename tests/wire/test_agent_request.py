"""Every option of a question reaches the place where the service looks for it, and nothing else."""

from __future__ import annotations

import contextlib
import datetime as dt
import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity import Answer, Client, errors
from ipyperplexity.emulator import Behavior, EmulatorServer
from ipyperplexity.emulator.checks import check_request
from ipyperplexity.events import ToolCalled, ToolReturned
from ipyperplexity.question import Question
from ipyperplexity.wire.agent import ANTHROPIC_MAX_TOKENS, give_results, request
from ipyperplexity.wire.agent_calls import FunctionCall
from ipyperplexity.wire.base import WireRequest

SEARCH = {"type": "web_search"}
USER = {"role": "user", "content": "Why?"}


def body_of(
    text: str = "Why?", *, stream: bool = False, resume: bool = True, **options: Any
) -> dict[str, Any]:
    """Return the body for a question; the embedded engine's strict rules must accept it."""
    made = request(Question.make(text, **options), stream=stream, resume=resume)
    assert made.path == "/v1/responses"
    check_request(made.body)
    return made.body


def plain(**fields: Any) -> dict[str, Any]:
    return {"preset": "low", "input": [USER], **fields}


def searching(*, filters: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return plain(tools=[SEARCH | fields | ({"filters": filters} if filters else {})])


@dataclass
class City:
    name: str
    people: int


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def city(name: str) -> str:
    """Look up a city."""
    return name


CITY = {
    "type": "function", "name": "city", "description": "Look up a city.", "strict": True,
    "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": False},
}  # fmt: skip
FUNCTION = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}

BODIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, plain()),
    "a preset": ({"model": "high"}, {"preset": "high", "input": [USER]}),
    "an older preset": ({"model": "pro-search"}, {"preset": "pro-search", "input": [USER]}),
    "a model searches too": (
        {"model": "openai/gpt-6-luna"}, {"model": "openai/gpt-6-luna", "input": [USER], "tools": [SEARCH]}),
    "recency": ({"recency": "month"}, searching(filters={"search_recency_filter": "month"})),
    "after": ({"after": "2026-03-09"}, searching(filters={"search_after_date_filter": "03/09/2026"})),
    "before": ({"before": dt.date(2026, 12, 1)}, searching(filters={"search_before_date_filter": "12/01/2026"})),
    "an old date": ({"after": dt.date(987, 6, 5)}, searching(filters={"search_after_date_filter": "06/05/0987"})),
    "domains": ({"domains": ["a.org", "-b.com"]}, searching(filters={"search_domain_filter": ["a.org", "-b.com"]})),
    "context": ({"context": "low"}, searching(search_context_size="low")),
    "country": ({"country": "be"}, searching(user_location={"country": "BE"})),
    "limit": ({"limit": 7}, searching(max_results=7)),
    "language": ({"language": "NL"}, plain(language_preference="nl")),
    "max_tokens": ({"max_tokens": 99}, plain(max_output_tokens=99)),
    "max_steps": ({"max_steps": 3}, plain(max_steps=3)),
    "reasoning": ({"reasoning": "high"}, plain(reasoning={"effort": "high"})),
    "temperature": ({"temperature": 0}, plain(temperature=0.0)),
    "timeout is no field": ({"timeout": 5}, plain()),
    "system with a preset": (
        {"system": "Be brief."}, plain(input=[{"role": "system", "content": "Be brief."}, USER])),
    "system with a model": (
        {"system": "Be brief.", "model": "openai/gpt-6-luna"},
        {"model": "openai/gpt-6-luna", "input": [USER], "instructions": "Be brief.", "tools": [SEARCH]}),
    "no search with a preset": ({"search": False}, plain(tool_choice="none")),
    "no search with a model": (
        {"search": False, "model": "openai/gpt-6-luna"}, {"model": "openai/gpt-6-luna", "input": [USER]}),
    "no search, another tool": (
        {"search": False, "tools": "fetch_url"}, plain(tools=[{"type": "fetch_url"}])),
    "forced search": ({"search": "force"}, plain(tools=[SEARCH], tool_choice=SEARCH)),
    "forced search with a model": (
        {"search": "force", "model": "openai/gpt-6-luna"},
        {"model": "openai/gpt-6-luna", "input": [USER], "tools": [SEARCH], "tool_choice": SEARCH}),
    "a tool beside the search": ({"tools": ["fetch_url"]}, plain(tools=[SEARCH, {"type": "fetch_url"}])),
    "a function": ({"tools": FUNCTION}, plain(tools=[SEARCH, FUNCTION])),
    "a function of the notebook": ({"tools": city}, plain(tools=[SEARCH, CITY])),
    "a function beside others": ({"tools": [FUNCTION, city, "fetch_url"]}, plain(tools=[SEARCH, FUNCTION, CITY, {"type": "fetch_url"}])),
    "a function with a model": (
        {"model": "openai/gpt-6-luna", "tools": city},
        {"model": "openai/gpt-6-luna", "input": [USER], "tools": [SEARCH, CITY]}),
    "a function without a search": ({"search": False, "tools": city}, plain(tools=[CITY])),
    "a function and a forced search": (
        {"search": "force", "tools": city}, plain(tools=[SEARCH, CITY], tool_choice=SEARCH)),
    "web_search by name": ({"tools": "web_search"}, plain(tools=[SEARCH])),
    "a search tool of one's own": (
        {"tools": {"type": "web_search", "search_type": "fast", "max_results": 3}, "limit": 9, "country": "BE"},
        searching(search_type="fast", max_results=3, user_location={"country": "BE"})),
    "filters of one's own": (
        {"tools": {"type": "web_search", "filters": {"last_updated_after_filter": "01/02/2026"}}, "domains": "a.org"},
        searching(filters={"last_updated_after_filter": "01/02/2026", "search_domain_filter": ["a.org"]})),
    "filters of null": ({"tools": {"type": "web_search", "filters": None}}, plain(tools=[{**SEARCH, "filters": None}])),
    "filters of null and an option": (
        {"tools": {"type": "web_search", "filters": None}, "domains": "a.org"},
        searching(filters={"search_domain_filter": ["a.org"]})),
    "an image": ({"images": PIXEL}, plain(input=[{"role": "user", "content": [
        {"type": "input_text", "text": "Why?"}, {"type": "input_image", "image_url": PIXEL}]}])),
    "anthropic needs a limit": (
        {"model": "anthropic/claude-x", "search": False},
        {"model": "anthropic/claude-x", "input": [USER], "max_output_tokens": ANTHROPIC_MAX_TOKENS}),
    "anthropic with a limit": (
        {"model": "anthropic/claude-x", "search": False, "max_tokens": 50},
        {"model": "anthropic/claude-x", "input": [USER], "max_output_tokens": 50}),
    "anthropic as an extra": (
        {"search": False, "extra": {"model": "anthropic/claude-x"}},
        {"model": "anthropic/claude-x", "input": [USER], "max_output_tokens": ANTHROPIC_MAX_TOKENS}),
    "anthropic among several": (
        {"search": False, "extra": {"models": ["openai/a", "anthropic/claude-x"]}},
        {"models": ["openai/a", "anthropic/claude-x"], "input": [USER], "max_output_tokens": ANTHROPIC_MAX_TOKENS}),
    "a model as an extra is a bare model": (
        {"system": "S", "extra": {"model": "openai/gpt-6-luna"}},
        {"model": "openai/gpt-6-luna", "input": [USER], "instructions": "S", "tools": [SEARCH]}),
    "effort as an extra": ({"extra": {"effort": "high"}}, {"effort": "high", "input": [USER]}),
    "extra wins": (
        {"max_tokens": 5, "extra": {"max_output_tokens": 7, "metadata": {"a": "b"}}},
        plain(max_output_tokens=7, metadata={"a": "b"})),
}  # fmt: skip


@pytest.mark.parametrize(("options", "body"), BODIES.values(), ids=BODIES)
def test_each_option_has_its_place(options: dict[str, Any], body: dict[str, Any]) -> None:
    assert body_of(**options) == body
    assert body_of(stream=True, **options) == {**body, "stream": True}


def test_all_filters_together() -> None:
    options = {
        "recency": "week",
        "domains": "a.org",
        "context": "high",
        "country": "NL",
        "limit": 3,
    }
    (tool,) = body_of(**options)["tools"]
    assert tool == {
        "type": "web_search",
        "max_results": 3,
        "search_context_size": "high",
        "user_location": {"country": "NL"},
        "filters": {"search_domain_filter": ["a.org"], "search_recency_filter": "week"},
    }


def test_tools_given_are_not_changed() -> None:
    tool = {"type": "web_search", "filters": {"search_domain_filter": ["a.org"]}}
    body_of(tools=tool, country="BE", recency="day")
    assert tool == {"type": "web_search", "filters": {"search_domain_filter": ["a.org"]}}


@pytest.mark.parametrize(
    "name", ["fetch_url", "people_search", "finance_search", "image_search", "sandbox"]
)
def test_a_preset_with_tools_still_searches(name: str) -> None:
    assert [tool["type"] for tool in body_of(tools=name)["tools"]] == ["web_search", name]


def test_web_search_with_the_search_off_is_refused() -> None:
    with pytest.raises(errors.InvalidRequestError, match="search is off"):
        body_of(search=False, tools="web_search")


@pytest.mark.parametrize(("old", "new"), [
    ("sonar", "fast"), ("sonar-pro", "low"), ("sonar-reasoning", "medium"),
    ("sonar-reasoning-pro", "medium"), ("sonar-deep-research", "high"),
])  # fmt: skip
def test_an_old_model_is_mapped_and_that_is_said(old: str, new: str) -> None:
    made = request(Question("Why?", model=old))
    assert made.body["preset"] == new
    (notice,) = made.notices
    assert old in notice and new in notice


@pytest.mark.parametrize("model", ["hihg", "gpt-6", "openai/", "/x", "/", "Low", "sonar-prro"])
def test_a_model_that_is_neither_preset_nor_slug_is_refused_before_anything_is_sent(
    model: str,
) -> None:
    with pytest.raises(errors.InvalidRequestError, match="provider/name") as raised:
        request(Question("Why?", model=model))
    assert raised.value.field == "model"


@pytest.mark.parametrize("form", [City, list[City], {"name": str}, int, Mood, list[str]])
def test_a_schema_is_sent_as_a_response_format(form: Any) -> None:
    format_ = body_of(schema=form)["response_format"]
    assert format_["type"] == "json_schema"
    assert format_["json_schema"]["schema"]["type"] == "object"


# --- giving a function's results --------------------------------------------------------------------

CALLED = ToolCalled("c1", "city", '{"name": "Ghent"}')
SIGNED = FunctionCall("c2", "city", "", "c2lnbmVk", "Let me see.")
CALL_ITEM = {
    "type": "function_call",
    "call_id": "c1",
    "name": "city",
    "arguments": '{"name": "Ghent"}',
}
RETURNED = ToolReturned("c1", "city", "Ghent")


def going_on(calls: list[ToolCalled], results: list[ToolReturned], **options: Any) -> WireRequest:
    first = request(Question("Why?", tools=city, **options))
    made = give_results(first, calls, results)
    check_request(made.body)
    assert made.path == first.path
    return made


def test_results_are_given_with_the_whole_input() -> None:
    made = going_on([CALLED], [RETURNED], max_tokens=5)
    output = {"type": "function_call_output", "call_id": "c1", "output": "Ghent"}
    assert made.body == plain(tools=[SEARCH, CITY], max_output_tokens=5, stream=True) | {
        "input": [USER, CALL_ITEM, output]
    }


def test_what_was_written_before_a_call_and_its_signature_are_given_back() -> None:
    made = going_on([SIGNED, CALLED], [ToolReturned("c2", "city", "null"), RETURNED])
    assert made.body is not None
    assert made.body["input"][1:4] == [
        {"role": "assistant", "content": "Let me see."},
        {"type": "function_call", "call_id": "c2", "name": "city", "arguments": "{}", "thought_signature": "c2lnbmVk"},
        CALL_ITEM,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "choice", ["required", {"name": "city"}, {"type": "web_search"}, "auto", "none", None]
)
def test_only_a_choice_that_forces_nothing_holds_on(choice: Any) -> None:
    extra = {"tool_choice": choice} if choice is not None else {}
    made = going_on([CALLED], [RETURNED], extra=extra)
    assert made.body is not None
    assert made.body.get("tool_choice") == (choice if choice in ("auto", "none") else None)


def test_a_follow_up_goes_on_from_the_same_answer_and_is_not_asked_afresh() -> None:
    made = going_on([CALLED], [RETURNED], follow=earlier())
    assert made.body is not None and made.body["previous_response_id"] == "resp_9"
    assert not made.continues and made.notices == ()


# --- following an earlier answer ------------------------------------------------------------------


def earlier(**fields: Any) -> Answer:
    return Answer("What is it?", "A thing.[1]", id="resp_9", stored=True, **fields)


def test_a_follow_up_names_the_answer_that_the_service_keeps() -> None:
    assert body_of(follow=earlier()) == plain(previous_response_id="resp_9")


CONVERSATION = [
    {"role": "user", "content": "What is it?"},
    {"role": "assistant", "content": "A thing.[1]"},
    USER,
]


@pytest.mark.parametrize("answer", [
    Answer("What is it?", "A thing.[1]", id="resp_9", stored=False),
    Answer("What is it?", "A thing.[1]", id=None, stored=True),
], ids=["not kept", "no id"])  # fmt: skip
def test_a_follow_up_of_an_answer_that_is_not_kept_brings_the_conversation(answer: Answer) -> None:
    assert body_of(follow=answer) == plain(input=CONVERSATION)
    assert not request(Question("Why?", follow=answer)).continues


def test_a_follow_up_can_be_made_to_bring_the_conversation() -> None:
    first = Answer("First?", "Yes.")
    second = Answer("Second?", "", id="resp_9", stored=True, turns=first.conversation())
    items = body_of(follow=second, resume=False, system="S")["input"]
    assert [(item["role"], item["content"]) for item in items] == [
        ("system", "S"), ("user", "First?"), ("assistant", "Yes."), ("user", "Second?"), ("user", "Why?"),
    ]  # fmt: skip


def test_a_follow_up_goes_on_at_the_service_and_falls_back_when_it_has_forgotten() -> None:
    with EmulatorServer(pace=0) as server, Client("k", base_url=server.url) as client:
        first = client.ask("What is a lambda?")
        second = first.follow_up("And a closure?")
        assert server.requests[-1].json()["previous_response_id"] == first.id
        server.runs.stop()
        with EmulatorServer(pace=0) as other:
            third = Client("k", base_url=other.url).ask("And a coroutine?", follow=second)
            refused, accepted = (entry.json() for entry in other.requests)
    assert refused["previous_response_id"] == second.id
    assert "previous_response_id" not in accepted
    assert [item["content"] for item in accepted["input"] if item["role"] == "user"] == [
        "What is a lambda?", "And a closure?", "And a coroutine?",
    ]  # fmt: skip
    assert third.status == "completed"
    assert [turn.question for turn in third.turns] == ["What is a lambda?", "And a closure?"]


def test_a_refusal_that_is_not_about_the_earlier_answer_is_told() -> None:
    with EmulatorServer(pace=0, behavior=Behavior(status=400)) as server:
        with pytest.raises(errors.InvalidRequestError):
            Client("k", base_url=server.url).ask("Why?", follow=earlier())
        assert len(server.requests) == 1


def test_an_answer_of_another_backend_is_followed_by_its_text() -> None:
    with EmulatorServer(pace=0) as server:
        Client("k", base_url=server.url).ask("Why?", follow=earlier(backend="demo"))
        assert server.requests[0].json()["input"][:2] == CONVERSATION[:2]


# --- any valid question ---------------------------------------------------------------------------

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40).filter(str.strip)
DATES = st.dates()
SEARCH_OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "recency": st.sampled_from(["hour", "day", "week", "month", "year"]),
    "after": DATES,
    "domains": st.lists(
        st.from_regex(r"-?[a-z0-9]{1,9}(\.[a-z]{2,5}){1,2}(/[a-z]{1,5})?", fullmatch=True),
        max_size=20,
    ),
    "context": st.sampled_from(["low", "medium", "high"]),
    "country": st.from_regex(r"[A-Za-z]{2}", fullmatch=True),
    "limit": st.integers(1, 50),
}
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "model": st.sampled_from([
        *("fast", "low", "wide-research", "deep-research", "sonar", "sonar-deep-research"),
        *("openai/gpt-6-luna", "anthropic/claude-x", "perplexity/sonar"),
    ]),
    "system": WORDS,
    "language": st.from_regex(r"[A-Za-z]{2}", fullmatch=True),
    "max_tokens": st.integers(1, 10**6),
    "max_steps": st.integers(1, 100),
    "reasoning": st.sampled_from(["none", "minimal", "low", "medium", "high", "xhigh"]),
    "temperature": st.floats(0, 2),
    "schema": st.sampled_from([City, list[City], int, Mood]),
    "images": st.lists(st.sampled_from([PIXEL, "https://a.example/x.png"]), max_size=3),
    "follow": st.builds(
        Answer, WORDS, WORDS, id=st.none() | st.just("resp_1"), stored=st.booleans(),
    ),
    "timeout": st.floats(0.1, 6e5),
    "extra": st.fixed_dictionaries({}, optional={
        "metadata": st.just({"a": "b"}), "store": st.booleans(), "top_p": st.floats(0, 1),
        "service_tier": st.just("flex"), "parallel_tool_calls": st.booleans(),
    }),
}  # fmt: skip
TOOLS = st.lists(
    st.sampled_from(["fetch_url", "people_search", "sandbox", FUNCTION, {"type": "fetch_url", "max_urls": 3}]),
    max_size=3,
)  # fmt: skip


@st.composite
def questions(draw: st.DrawFn) -> Question:
    options = draw(st.fixed_dictionaries({}, optional={**OPTIONS, "tools": TOOLS}))
    options["search"] = draw(st.sampled_from([True, False, "force"]))
    if options["search"]:
        options |= draw(st.fixed_dictionaries({}, optional=SEARCH_OPTIONS))
        if "web" in draw(st.sampled_from(["web", ""])):
            options["tools"] = [*options.get("tools", []), "web_search"]
        if options.get("after"):
            options.pop("recency", None)
    return Question.make(draw(WORDS), **options)


@settings(max_examples=150, deadline=None)
@given(questions(), st.booleans(), st.booleans())
def test_the_embedded_engine_accepts_every_valid_question(
    question: Question, stream: bool, resume: bool
) -> None:
    made = request(question, stream=stream, resume=resume)
    given_fields = check_request(made.body)
    assert given_fields == made.body, "no field is sent empty"
    assert made.body.get("stream", False) is stream
    assert made.body["input"][-1]["role"] == "user"
    tools = [tool["type"] for tool in made.body.get("tools", [])]
    if question.search is False:
        assert "web_search" not in tools
    elif tools or "model" in made.body:
        assert tools.count("web_search") == 1
    assert made.continues is ("previous_response_id" in made.body)


@pytest.fixture(scope="module")
def engine() -> Iterator[EmulatorServer]:
    with EmulatorServer(pace=0, chunk_chars=200) as server:
        yield server


@settings(max_examples=15, deadline=None)
@given(question=questions())
def test_the_embedded_engine_answers_every_valid_question(
    engine: EmulatorServer, question: Question
) -> None:
    stream = Client("k", base_url=engine.url, max_retries=0).stream(question)
    # A limit of 16 tokens cuts its JSON; filters may leave nothing to find.
    with contextlib.suppress(errors.StreamError, errors.EmptyAnswerError):
        list(stream)
    refused = stream.answer.error and stream.answer.error.status_code
    assert refused is None
