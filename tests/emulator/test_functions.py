"""Functions that a request of the Agent API offers are called, and their results are told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ipyperplexity.emulator import Behavior, EmulatorServer

from .http_help import ask, sources_of, stream, text_of

LOOK_UP = {
    "type": "function",
    "name": "look_up",
    "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
}  # fmt: skip
CLOCK = {"type": "function", "name": "clock"}
SEARCH = {"type": "web_search"}
QUESTION = {"role": "user", "content": "What does the with statement do?"}


def calls_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for item in answer["output"] if item["type"] == "function_call"]


def results(calls: list[dict[str, Any]], text: Any = "12:05") -> list[dict[str, Any]]:
    return [
        {"type": "function_call_output", "call_id": one["call_id"], "output": text} for one in calls
    ]


def test_an_offered_function_is_called_and_then_its_result_is_in_the_answer(
    server: EmulatorServer,
) -> None:
    asked = {"tools": [SEARCH, LOOK_UP], "input": [QUESTION]}
    first = ask(server, **asked).json()
    (call_,) = calls_of(first)
    assert first["status"] == "completed" and text_of(first) == ""
    assert json.loads(call_["arguments"]) == {"word": QUESTION["content"]}
    turns = [QUESTION, call_, *results([call_])]
    answer = ask(server, **{**asked, "input": turns}).json()
    assert not calls_of(answer)
    assert text_of(answer).startswith("`look_up` gave: 12:05\n\n")
    # The search goes by the question, which stands before the calls.
    assert sources_of(answer) == sources_of(ask(server, tools=[SEARCH]).json())


def test_a_previous_response_knows_its_calls_and_its_question(server: EmulatorServer) -> None:
    asked = {"tools": [SEARCH, LOOK_UP]}
    first = ask(server, **asked).json()
    given = {"input": results(calls_of(first)), "previous_response_id": first["id"]}
    answer = ask(server, **asked, **given).json()
    assert text_of(answer).startswith("`look_up` gave: 12:05\n\n")
    assert sources_of(answer)
    follow = ask(server, input="Is that all of it?", previous_response_id=answer["id"]).json()
    assert any("with" in source["url"] for source in sources_of(follow))
    assert "12:05" not in text_of(follow)


def test_without_a_search_the_answer_is_the_result_alone(server: EmulatorServer) -> None:
    first = ask(server, tools=[CLOCK]).json()
    turns = [QUESTION, *calls_of(first), *results(calls_of(first))]
    answer = ask(server, tools=[CLOCK], input=turns).json()
    assert text_of(answer) == "`clock` gave: 12:05"


@pytest.mark.parametrize("by_id", [True, False])
def test_several_rounds_of_parallel_calls_come_before_the_answer(
    server: EmulatorServer, by_id: bool
) -> None:
    server.behavior = Behavior(tool_calls=3, tool_rounds=2)
    tools = [LOOK_UP, CLOCK]
    fields: dict[str, Any] = {"input": [QUESTION]}
    for turn in range(2):
        run = ask(server, tools=tools, **fields).json()
        calls = calls_of(run)
        assert [one["name"] for one in calls] == ["look_up", "clock", "look_up"]
        assert len({one["call_id"] for one in calls}) == 3
        assert json.loads(calls[0]["arguments"]) == {"word": QUESTION["content"]}
        outputs = results(calls, f"r{turn}")
        # Call by call: a reader must not take each pair for a round of its own.
        pairs = [item for pair in zip(calls, outputs, strict=True) for item in pair]
        if by_id:
            fields = {"input": outputs, "previous_response_id": run["id"]}
        else:
            fields = {"input": [*fields["input"], *pairs]}
    answer = ask(server, tools=tools, **fields).json()
    assert text_of(answer).count("gave: r0") == text_of(answer).count("gave: r1") == 3


def test_one_call_at_a_time_when_parallel_calls_are_not_wanted(server: EmulatorServer) -> None:
    server.behavior = Behavior(tool_calls=3)
    answer = ask(server, tools=[LOOK_UP, CLOCK], parallel_tool_calls=False).json()
    assert [one["name"] for one in calls_of(answer)] == ["look_up"]


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("auto", ["look_up"]),
        ("required", ["look_up"]),
        ({"type": "required"}, ["look_up"]),
        ({"name": "clock"}, ["clock"]),
        ({"type": "function", "name": "clock"}, ["clock"]),
        ("none", []),
        ({"type": "web_search"}, []),
    ],
)
def test_the_choice_of_a_tool_counts(server: EmulatorServer, choice: Any, names: list[str]) -> None:
    answer = ask(server, tools=[SEARCH, LOOK_UP, CLOCK], tool_choice=choice).json()
    assert [one["name"] for one in calls_of(answer)] == names


def test_only_a_forced_function_is_called_when_no_round_is_wanted(server: EmulatorServer) -> None:
    server.behavior = Behavior(tool_rounds=0)
    assert not calls_of(ask(server, tools=[SEARCH, CLOCK]).json())
    assert calls_of(ask(server, tools=[SEARCH, CLOCK], tool_choice={"name": "clock"}).json())


def test_a_stream_tells_a_call_whole_when_it_is_added_and_when_it_is_done(
    server: EmulatorServer,
) -> None:
    events = stream(server, tools=[LOOK_UP])
    kinds = [e["type"] for e in events]
    assert kinds[-3:] == [
        "response.output_item.added", "response.output_item.done", "response.completed",
    ]  # fmt: skip
    assert events[-3]["item"] == events[-2]["item"] == calls_of(events[-1]["response"])[0]


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "a\nb"),
        ({"degrees": 21}, '{"degrees": 21}'),
        ("", ""),
    ],
)
def test_a_result_may_be_parts_or_data(server: EmulatorServer, output: Any, shown: str) -> None:
    first = ask(server, tools=[CLOCK]).json()
    turns = [QUESTION, *calls_of(first), *results(calls_of(first), output)]
    answer = ask(server, tools=[CLOCK], input=turns).json()
    assert text_of(answer) == f"`clock` gave: {shown}"


def test_a_result_of_no_call_is_refused(server: EmulatorServer) -> None:
    reply = ask(server, input=[QUESTION, *results([{"call_id": "call_none"}])])
    assert (reply.status, reply.json()["error"]["param"]) == (400, "input")
    assert "call_none" in reply.json()["error"]["message"]


def test_a_new_question_starts_the_calls_anew(server: EmulatorServer) -> None:
    first = ask(server, tools=[CLOCK]).json()
    turns = [QUESTION, *calls_of(first), *results(calls_of(first)), QUESTION]
    assert calls_of(ask(server, tools=[CLOCK], input=turns).json())


def test_a_schema_is_filled_from_what_a_function_gave(server: EmulatorServer) -> None:
    shape = {"type": "object", "properties": {"time": {"type": "string"}}, "required": ["time"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "t", "schema": shape}}
    first = ask(server, tools=[CLOCK]).json()
    turns = [QUESTION, *calls_of(first), *results(calls_of(first))]
    answer = ask(server, tools=[CLOCK], input=turns, response_format=wanted).json()
    assert json.loads(text_of(answer)) == {"time": "12:05"}
