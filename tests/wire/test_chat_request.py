"""Every option of a question reaches the field of chat-completions that is meant for it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity import Answer, errors
from ipyperplexity.emulator.chat_checks import check_chat
from ipyperplexity.events import ToolCalled, ToolReturned
from ipyperplexity.question import Question
from ipyperplexity.wire.base import WireRequest
from ipyperplexity.wire.chat import WIRE, request
from ipyperplexity.wire.chat_calls import ChatCall, give_results

USER = {"role": "user", "content": "Why?"}
STREAMED = {"stream": True, "stream_options": {"include_usage": True}}
PIXEL = "data:image/png;base64,iVBORw0KGgo="


def city(name: str) -> str:
    """Look up a city."""
    return name


CITY = {
    "name": "city", "description": "Look up a city.", "strict": True,
    "parameters": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": False},
}  # fmt: skip
FLAT = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
NESTED = {"type": "function", "function": {"name": "f", "parameters": FLAT["parameters"]}}


@dataclass
class City:
    name: str
    people: int


def body_of(*, stream: bool = False, **options: Any) -> dict[str, Any]:
    """Return the body for a question; the embedded engine's strict rules must accept it."""
    made = request(Question.make("Why?", **options), stream=stream)
    assert (made.path, made.method, made.continues) == ("/chat/completions", "POST", False)
    assert made.body is not None
    check_chat(made.body)
    return made.body


def plain(**fields: Any) -> dict[str, Any]:
    return {"model": "sonar", "messages": [USER], **fields}


BODIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, plain()),
    "any model, as it is": ({"model": "llama3.2:3b-Instruct_Q4"}, plain(model="llama3.2:3b-Instruct_Q4")),
    "a preset's word is a model's name here": ({"model": "fast"}, plain(model="fast")),
    "a gateway's name": ({"model": "perplexity/sonar-pro"}, plain(model="perplexity/sonar-pro")),
    "system": ({"system": "Be brief."}, plain(messages=[{"role": "system", "content": "Be brief."}, USER])),
    "recency": ({"recency": "day"}, plain(search_recency_filter="day")),
    "after": ({"after": "2026-03-09"}, plain(search_after_date_filter="03/09/2026")),
    "before": ({"before": dt.date(2026, 12, 1)}, plain(search_before_date_filter="12/01/2026")),
    "an old date": ({"after": dt.date(987, 6, 5)}, plain(search_after_date_filter="06/05/0987")),
    "domains": ({"domains": "a.org,-b.com"}, plain(search_domain_filter=["a.org", "-b.com"])),
    "context": ({"context": "high"}, plain(web_search_options={"search_context_size": "high"})),
    "country": ({"country": "be"}, plain(web_search_options={"user_location": {"country": "BE"}})),
    "context and country": (
        {"context": "low", "country": "NL"},
        plain(web_search_options={"search_context_size": "low", "user_location": {"country": "NL"}})),
    "language": ({"language": "NL"}, plain(language_preference="nl")),
    "limit is cut here": ({"limit": 3}, plain()),
    "no search": ({"search": False}, plain(disable_search=True)),
    "a search": ({"search": True}, plain()),
    "max_tokens": ({"max_tokens": 99}, plain(max_tokens=99)),
    "max_steps is counted here": ({"max_steps": 3}, plain()),
    "reasoning": ({"reasoning": "high"}, plain(reasoning_effort="high")),
    "temperature": ({"temperature": 0}, plain(temperature=0.0)),
    "timeout is no field": ({"timeout": 5}, plain()),
    "a function of the notebook": ({"tools": city}, plain(tools=[{"type": "function", "function": CITY}])),
    "a function as the Agent API has it": ({"tools": FLAT}, plain(tools=[NESTED])),
    "a function as it is here": ({"tools": NESTED}, plain(tools=[NESTED])),
    "images": ({"images": [PIXEL, "https://a.example/x.png"]}, plain(messages=[{"role": "user", "content": [
        {"type": "text", "text": "Why?"},
        {"type": "image_url", "image_url": {"url": PIXEL}},
        {"type": "image_url", "image_url": {"url": "https://a.example/x.png"}}]}])),
    "extra wins": ({"max_tokens": 5, "extra": {"max_tokens": 7, "top_p": 0.5}}, plain(max_tokens=7, top_p=0.5)),
}  # fmt: skip


@pytest.mark.parametrize(("options", "body"), BODIES.values(), ids=BODIES)
def test_each_option_has_its_place_and_nothing_else_is_sent(
    options: dict[str, Any], body: dict[str, Any]
) -> None:
    assert body_of(**options) == body
    assert body_of(stream=True, **options) == {**body, **STREAMED}


def test_a_schema_is_sent_as_a_response_format() -> None:
    format_ = body_of(schema=City)["response_format"]
    assert format_["type"] == "json_schema"
    assert format_["json_schema"]["schema"]["required"] == ["name", "people"]


def test_the_request_knows_which_model_was_asked() -> None:
    assert request(Question("Why?")).model == "sonar"
    assert request(Question("Why?", model="llama3")).model == "llama3"
    assert request(Question("Why?", extra={"model": "m"})).model == "m"


def test_a_list_of_models_replaces_the_default_model() -> None:
    made = request(Question("Why?", extra={"models": ["a/b", "c/d"]}), stream=False)
    assert made.body == {"messages": [USER], "models": ["a/b", "c/d"]}
    assert made.model is None


def test_that_a_search_cannot_be_forced_is_said_and_the_question_is_asked_all_the_same() -> None:
    made = request(Question("Why?", search="force"), stream=False)
    assert made.body == plain()
    (notice,) = made.notices
    assert "force" in notice
    assert request(Question("Why?")).notices == ()


@pytest.mark.parametrize("tool", ["web_search", "fetch_url", {"type": "mcp", "server_label": "x"}])
def test_a_tool_of_the_service_is_refused_before_anything_is_sent(tool: Any) -> None:
    with pytest.raises(errors.InvalidRequestError, match="tools: got") as raised:
        request(Question("Why?", tools=tool))
    assert raised.value.field == "tools"
    assert "agent" in (raised.value.hint or "")


def test_a_tool_that_is_a_dict_is_not_changed() -> None:
    question = Question("Why?", tools=FLAT)
    request(question)
    assert question.tools == (FLAT,)


# --- following an earlier answer ------------------------------------------------------------------


@pytest.mark.parametrize("resume", [True, False])
def test_a_follow_up_brings_the_conversation_whatever_the_service_keeps(resume: bool) -> None:
    first = Answer("First?", "One.[1]")
    second = Answer("Second?", "Two.", id="c-2", stored=True, turns=first.conversation())
    made = request(
        Question("Why?", follow=second, system="S"), stream=False, resume=resume
    )  # fmt: skip
    assert made.body == plain(messages=[
        {"role": "system", "content": "S"},
        {"role": "user", "content": "First?"},
        {"role": "assistant", "content": "One.[1]"},
        {"role": "user", "content": "Second?"},
        {"role": "assistant", "content": "Two."},
        USER,
    ])  # fmt: skip
    assert not made.continues


def test_users_and_assistants_take_turns_also_after_a_question_without_an_answer() -> None:
    first = Answer("First?", "One.")
    stopped = Answer("Second?", "", id="c-2", turns=first.conversation())
    assert body_of(follow=stopped)["messages"] == [
        {"role": "user", "content": "First?"},
        {"role": "assistant", "content": "One."},
        {"role": "user", "content": "Second?\n\nWhy?"},
    ]


# --- giving a function's results ------------------------------------------------------------------

CALL = ChatCall("c1", "city", '{"name": "Ghent"}', {"extra_content": {"s": 1}}, "Let me see.", "Hm")
BARE = ToolCalled("c2", "city", "")
RESULTS = [ToolReturned("c1", "city", "Ghent"), ToolReturned("c2", "city", "null")]


def going_on(calls: list[ToolCalled], **options: Any) -> WireRequest:
    first = request(Question("Why?", tools=city, search="force", **options), stream=False)
    made = give_results(
        first, calls, [r for r in RESULTS if r.call_id in {c.call_id for c in calls}]
    )
    assert first.body is not None and len(first.body["messages"]) == 1, "the first stays as it was"
    assert made.notices == ()
    return made


def test_results_go_back_behind_the_calls_with_all_that_the_service_gave() -> None:
    made = going_on([CALL, BARE])
    assert made.body is not None
    assert made.body["messages"] == [
        USER,
        {"role": "assistant", "content": "Let me see.", "reasoning_content": "Hm", "tool_calls": [
            {"id": "c1", "type": "function", "extra_content": {"s": 1},
             "function": {"name": "city", "arguments": '{"name": "Ghent"}'}},
            {"id": "c2", "type": "function", "function": {"name": "city", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "Ghent"},
        {"role": "tool", "tool_call_id": "c2", "content": "null"},
    ]  # fmt: skip
    assert WIRE.give_results is give_results


def test_a_call_without_words_before_it_has_no_content() -> None:
    made = going_on([BARE])
    assert made.body is not None
    check_chat(made.body)
    assert made.body["messages"][1]["content"] is None
    assert "reasoning_content" not in made.body["messages"][1]


@pytest.mark.parametrize("choice", ["required", {"type": "function"}, "auto", "none", None])
def test_only_a_choice_that_forces_nothing_holds_on(choice: Any) -> None:
    extra = {"tool_choice": choice} if choice is not None else {}
    made = going_on([BARE], extra=extra)
    assert made.body is not None
    assert made.body.get("tool_choice") == (choice if choice in ("auto", "none") else None)


# --- any valid question ---------------------------------------------------------------------------

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40).filter(str.strip)
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "model": st.sampled_from(["fast", "sonar", "llama3:8b", "a/b"]),
    "system": WORDS,
    "language": st.sampled_from(["nl", "EN"]),
    "max_tokens": st.integers(1, 128_000),
    "max_steps": st.integers(1, 100),
    "reasoning": st.sampled_from(["minimal", "low", "medium", "high"]),
    "temperature": st.floats(0, 2),
    "schema": st.sampled_from([City, list[City], int]),
    "images": st.lists(st.just(PIXEL), max_size=2),
    "follow": st.builds(Answer, WORDS, st.just("") | WORDS, id=st.just("c-1")),
    "tools": st.sampled_from([city, FLAT, [city, FLAT]]),
}
SEARCH_OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "before": st.dates(),
    "domains": st.sampled_from(["a.org", "a.org,-b.com"]),
    "context": st.sampled_from(["low", "medium", "high"]),
    "country": st.sampled_from(["be", "US"]),
    "limit": st.integers(1, 50),
}


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_the_embedded_engine_accepts_every_valid_question(data: st.DataObject) -> None:
    options = data.draw(st.fixed_dictionaries({}, optional=OPTIONS))
    options["search"] = data.draw(st.sampled_from([True, False, "force"]))
    if options["search"]:
        options |= data.draw(st.fixed_dictionaries({}, optional=SEARCH_OPTIONS))
    question = Question.make(data.draw(WORDS), **options)
    made = request(question, stream=data.draw(st.booleans()), resume=data.draw(st.booleans()))
    assert made.body is not None
    assert check_chat(made.body) == made.body, "no field is sent empty"
    roles = [message["role"] for message in made.body["messages"] if message["role"] != "system"]
    assert all(role == ("user", "assistant")[at % 2] for at, role in enumerate(roles))
    assert len(roles) % 2
    last = made.body["messages"][-1]["content"]
    assert question.text in (last if isinstance(last, str) else last[0]["text"])
