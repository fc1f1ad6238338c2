"""Chat completions, as Sonar spoke them and as gateways still do."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from ipyperplexity.emulator import FAULTS, Behavior, EmulatorServer

from .http_help import Reply, call, text_of
from .http_help import ask as ask_agent

QUESTION = "What is a lambda?"
PATHS = ["/chat/completions", "/v1/chat/completions", "/v1/sonar"]


def user(text: Any = QUESTION) -> dict[str, Any]:
    return {"role": "user", "content": text}


def ask(server: EmulatorServer, path: str = PATHS[0], /, **fields: Any) -> Reply:
    return call(server, "POST", path, {"model": "sonar", "messages": [user()], **fields})


def chunks(server: EmulatorServer, /, **fields: Any) -> list[dict[str, Any]]:
    reply = ask(server, stream=True, **fields)
    assert reply.status == 200, reply.body
    lines = reply.body.decode().split("\n\n")
    assert all(line.startswith("data: ") for line in lines[:-1]) and lines[-1] == ""
    return [json.loads(line[6:]) for line in lines[:-1] if line != "data: [DONE]"]


def said(found: list[dict[str, Any]]) -> str:
    return "".join(one["choices"][0]["delta"].get("content") or "" for one in found)


def content_of(reply: Reply) -> str:
    text: str = reply.json()["choices"][0]["message"]["content"]
    return text


@pytest.mark.parametrize("path", PATHS)
def test_a_plain_reply_has_its_sources_twice_and_its_cost(
    server: EmulatorServer, path: str
) -> None:
    reply = ask(server, path).json()
    assert reply["object"] == "chat.completion" and reply["model"] == "sonar"
    results = reply["search_results"]
    assert reply["citations"] == [result["url"] for result in results] != []
    assert sorted(results[0]) == ["date", "last_updated", "snippet", "source", "title", "url"]
    choice = reply["choices"][0]
    assert (choice["index"], choice["finish_reason"]) == (0, "stop")
    assert choice["message"]["role"] == "assistant"
    cited = {int(number) for number in re.findall(r"\[(\d+)\]", choice["message"]["content"])}
    assert cited and cited <= set(range(1, len(results) + 1))
    usage = reply["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    cost = usage["cost"]
    parts = ("input_tokens_cost", "output_tokens_cost", "request_cost")
    assert cost["total_cost"] == pytest.approx(sum(cost[name] for name in parts))
    assert "images" not in reply and "related_questions" not in reply


def test_a_stream_says_what_the_plain_reply_says(server: EmulatorServer) -> None:
    plain = ask(server)
    found = chunks(server)
    assert said(found) == content_of(plain)
    assert found[-1]["usage"] == plain.json()["usage"]
    assert [one["object"] for one in found] == ["chat.completion.chunk"] * (len(found) - 1) + [
        "chat.completion.done"
    ]
    last = found[-1]["choices"][0]
    assert (last["delta"], last["finish_reason"]) == ({}, "stop")
    assert found[0]["choices"][0]["delta"]["role"] == "assistant"
    assert all("role" not in one["choices"][0]["delta"] for one in found[1:])
    assert all(one["choices"][0]["finish_reason"] is None for one in found[:-1])


def test_in_full_mode_sources_and_a_growing_usage_ride_on_every_chunk(
    server: EmulatorServer,
) -> None:
    found = chunks(server)
    assert {json.dumps(one["citations"]) for one in found} == {json.dumps(found[-1]["citations"])}
    assert all(one["search_results"] for one in found)
    counts = [one["usage"]["completion_tokens"] for one in found]
    assert counts == sorted(counts) and counts[0] < counts[-1]


def test_in_concise_mode_only_the_done_kinds_have_sources_and_usage(
    server: EmulatorServer,
) -> None:
    found = chunks(server, stream_mode="concise")
    kinds = [one["object"] for one in found]
    assert list(dict.fromkeys(kinds)) == [
        "chat.reasoning", "chat.reasoning.done", "chat.completion.chunk", "chat.completion.done",
    ]  # fmt: skip
    for one in found:
        done = one["object"].endswith(".done")
        assert ("citations" in one, "search_results" in one, "usage" in one) == (done,) * 3
    step = found[0]["choices"][0]["delta"]["reasoning_steps"][0]
    assert step["web_search"]["search_keywords"] == [QUESTION]
    assert said(found) == content_of(ask(server))


def test_thoughts_stand_in_the_content_and_their_tags_are_split(server: EmulatorServer) -> None:
    plain = content_of(ask(server, model="sonar-reasoning-pro"))
    assert re.match(r"<think>\n.+\n</think>\n\n\S", plain)
    assert plain.partition("</think>\n\n")[2] == content_of(ask(server))
    found = chunks(server, model="sonar-reasoning-pro")
    assert said(found) == plain
    pieces = [one["choices"][0]["delta"].get("content", "") for one in found]
    assert not any("<think>" in piece or "</think>" in piece for piece in pieces)
    assert found[-1]["usage"]["reasoning_tokens"] > 0


def test_the_answer_is_that_of_the_agent_api(server: EmulatorServer) -> None:
    tool = {"type": "web_search", "max_results": 4}
    agent = ask_agent(server, input=QUESTION, tools=[tool]).json()
    assert content_of(ask(server)) == text_of(agent)


def test_the_end_mark_comes_when_it_is_asked_for(server: EmulatorServer) -> None:
    server.next(Behavior(done_marker=True), Behavior())
    marked, plain = ask(server, stream=True).body, ask(server, stream=True).body
    assert marked.endswith(b"data: [DONE]\n\n") and b"[DONE]" not in plain
    assert b"event:" not in marked


def test_the_message_can_repeat_all_that_was_said(server: EmulatorServer) -> None:
    server.next(Behavior(chat_message=True))
    found = chunks(server)
    for at, one in enumerate(found):
        assert one["choices"][0]["message"]["content"] == said(found[: at + 1])
    assert "message" not in chunks(server)[0]["choices"][0]


def test_the_cost_can_be_a_number_or_missing(server: EmulatorServer) -> None:
    whole = ask(server).json()["usage"]["cost"]["total_cost"]
    server.next(Behavior(chat_cost="number"), Behavior(chat_cost="none"))
    assert ask(server).json()["usage"]["cost"] == whole
    assert "cost" not in ask(server).json()["usage"]


def test_images_and_related_questions_come_late_and_when_asked_for(server: EmulatorServer) -> None:
    wanted = {"return_images": True, "return_related_questions": True}
    found = chunks(server, **wanted)
    assert not any("images" in one or "related_questions" in one for one in found[:-1])
    image = found[-1]["images"][0]
    assert sorted(image) == ["height", "image_url", "origin_url", "title", "width"]
    assert image["origin_url"] in found[-1]["citations"]
    plain = ask(server, **wanted).json()
    assert plain["related_questions"] == found[-1]["related_questions"] != []


def test_the_first_delta_can_be_null(server: EmulatorServer) -> None:
    server.next(Behavior(nulls=True))
    found = chunks(server)
    assert found[0]["choices"][0]["delta"]["content"] is None
    assert said(found) == content_of(ask(server))


LOOK_UP = {
    "type": "function",
    "function": {
        "name": "look_up",
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string"}},
            "required": ["word"],
        },
    },
}
CLOCK = {"type": "function", "function": {"name": "clock"}}


def test_a_function_is_called_in_pieces_and_then_its_result_is_told(server: EmulatorServer) -> None:
    found = chunks(server, tools=[LOOK_UP])
    deltas = [one["choices"][0]["delta"] for one in found]
    pieces = [piece for delta in deltas for piece in delta.get("tool_calls", [])]
    assert found[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert said(found) == ""
    assert pieces[0]["function"] == {"name": "look_up", "arguments": ""}
    arguments = "".join(piece["function"]["arguments"] for piece in pieces)
    assert json.loads(arguments) == {"word": QUESTION}
    assert len(pieces) == 3 and "id" not in pieces[1]

    plain = ask(server, tools=[LOOK_UP]).json()["choices"][0]
    assert plain["message"]["content"] is None
    call_ = plain["message"]["tool_calls"][0]
    assert call_["function"] == {"name": "look_up", "arguments": arguments}
    turns = [user(), plain["message"], result(call_["id"], "a small function")]
    answer = ask(server, messages=turns, tools=[LOOK_UP]).json()["choices"][0]
    assert answer["finish_reason"] == "stop"
    assert answer["message"]["content"].startswith("`look_up` gave: a small function\n\n")
    turns += [answer["message"], user("What does the with statement do?")]
    again = ask(server, messages=turns, tools=[LOOK_UP]).json()["choices"][0]
    assert again["finish_reason"] == "tool_calls"
    later = ask(server, messages=turns, tools=[LOOK_UP], tool_choice="none")
    assert "gave:" not in content_of(later)


def result(name: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": text}


def test_functions_can_be_called_in_parallel_and_over_rounds(server: EmulatorServer) -> None:
    server.behavior = Behavior(tool_calls=2, tool_rounds=2)
    tools = [LOOK_UP, CLOCK]
    turns: list[dict[str, Any]] = [user()]
    for turn in range(2):
        message = ask(server, messages=turns, tools=tools).json()["choices"][0]["message"]
        calls = message["tool_calls"]
        assert [one["function"]["name"] for one in calls] == ["look_up", "clock"]
        turns += [message, *(result(one["id"], f"r{turn}") for one in calls)]
    answer = ask(server, messages=turns, tools=tools).json()["choices"][0]["message"]
    assert answer["content"].count("gave: r0") == answer["content"].count("gave: r1") == 2
    indexes = [
        piece["index"]
        for one in chunks(server, tools=tools)
        for piece in one["choices"][0]["delta"].get("tool_calls", [])
    ]
    assert indexes == [0, 0, 0, 1, 1, 1]
    alone = ask(server, tools=tools, parallel_tool_calls=False).json()["choices"][0]["message"]
    assert len(alone["tool_calls"]) == 1


def test_the_choice_of_a_tool_counts(server: EmulatorServer) -> None:
    tools = [LOOK_UP, CLOCK]
    none = ask(server, tools=tools, tool_choice="none").json()["choices"][0]
    assert none["finish_reason"] == "stop"
    choice = {"type": "function", "function": {"name": "clock"}}
    message = ask(server, tools=tools, tool_choice=choice).json()["choices"][0]["message"]
    assert [one["function"]["name"] for one in message["tool_calls"]] == ["clock"]
    server.behavior = Behavior(tool_rounds=0)
    assert ask(server, tools=tools).json()["choices"][0]["finish_reason"] == "stop"
    forced = ask(server, tools=tools, tool_choice="required").json()["choices"][0]
    assert forced["finish_reason"] == "tool_calls"


def test_a_schema_is_filled_also_after_thoughts(server: EmulatorServer) -> None:
    shape = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
    wanted = {"type": "json_schema", "json_schema": {"schema": shape}}
    plain = content_of(ask(server, response_format=wanted))
    assert json.loads(plain)["word"]
    thought = content_of(ask(server, response_format=wanted, model="sonar-reasoning-pro"))
    assert thought.partition("</think>\n\n")[2] == plain


def test_an_answer_ends_at_a_stop_word_or_at_its_budget(server: EmulatorServer) -> None:
    whole = content_of(ask(server))
    assert content_of(ask(server, stop=["no such word", "yields"])) == whole.partition("yields")[0]
    cut = ask(server, max_tokens=5).json()["choices"][0]
    assert (cut["finish_reason"], cut["message"]["content"]) == ("length", whole[:20])
    assert chunks(server, max_tokens=5)[-1]["choices"][0]["finish_reason"] == "length"


def test_no_search_means_no_sources_and_no_fee(server: EmulatorServer) -> None:
    reply = ask(server, disable_search=True).json()
    assert reply["citations"] == reply["search_results"] == []
    assert reply["usage"]["cost"]["request_cost"] == 0
    assert "no search" in reply["choices"][0]["message"]["content"]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"search_domain_filter": ["example.org"]}, False),
        ({"search_domain_filter": ["python.org"]}, True),
        ({"search_recency_filter": "hour"}, False),
        ({"search_after_date_filter": "01/01/2000"}, True),
        ({"search_before_date_filter": "01/01/2000"}, False),
        ({"search_language_filter": ["de"]}, False),
        ({"search_language_filter": ["de", "en"]}, True),
        ({"search_mode": "academic"}, False),
        ({"search_mode": "web"}, True),
    ],
)
def test_filters_count(server: EmulatorServer, fields: dict[str, Any], found: bool) -> None:
    reply = ask(server, **fields)
    assert bool(reply.json()["citations"]) is found
    assert ("nothing that fits the filters" in content_of(reply)) is not found


def test_the_context_size_decides_how_much_is_found_and_what_it_costs(
    server: EmulatorServer,
) -> None:
    turns = [user("What does the with statement do?")]
    low, high = (
        ask(
            server,
            messages=turns,
            web_search_options={"search_context_size": size, "search_type": "fast"},
        ).json()
        for size in ("low", "high")
    )
    assert (len(low["citations"]), low["usage"]["cost"]["request_cost"]) == (4, 0.005)
    assert (len(high["citations"]), high["usage"]["cost"]["request_cost"]) == (8, 0.012)


def test_earlier_turns_give_a_short_question_its_subject(server: EmulatorServer) -> None:
    turns = [
        {"role": "system", "content": "Be brief."},
        user("How do I write a generator?"),
        {"role": "assistant", "content": "With yield."},
        user([{"type": "text", "text": "Can you show more of it?"}]),
    ]
    assert any("yield" in url for url in ask(server, messages=turns).json()["citations"])


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"model": ""}, ["model"]),
        ({"model": None}, ["model"]),
        ({"messages": []}, ["messages"]),
        ({"messages": "hi"}, ["messages"]),
        ({"messages": [{"role": "robot", "content": "x"}]}, ["messages", 0, "role"]),
        ({"messages": [{"role": "user"}]}, ["messages", 0, "content"]),
        ({"messages": [user([{"type": "input_text", "text": "x"}])]}, ["messages", 0, "content", 0]),
        ({"messages": [user(), {"role": "tool", "content": "x"}]}, ["messages", 1, "tool_call_id"]),
        ({"max_tokens": 128_001}, ["max_tokens"]),
        ({"max_tokens": 0}, ["max_tokens"]),
        ({"temperature": 2.1}, ["temperature"]),
        ({"top_p": -1}, ["top_p"]),
        ({"stream": "yes"}, ["stream"]),
        ({"stream_mode": "terse"}, ["stream_mode"]),
        ({"search_mode": "news"}, ["search_mode"]),
        ({"search_recency_filter": "decade"}, ["search_recency_filter"]),
        ({"search_domain_filter": ["https://a.org"]}, ["search_domain_filter", 0]),
        ({"search_domain_filter": ["a.org"] * 21}, ["search_domain_filter"]),
        ({"search_language_filter": ["german"]}, ["search_language_filter", 0]),
        ({"search_after_date_filter": "31/12/2024"}, ["search_after_date_filter"]),
        ({"reasoning_effort": "huge"}, ["reasoning_effort"]),
        ({"return_images": 1}, ["return_images"]),
        ({"response_format": {"type": "xml"}}, ["response_format"]),
        ({"web_search_options": {"search_context_size": "huge"}}, ["web_search_options", "search_context_size"]),
        ({"web_search_options": {"max_results": 3}}, ["max_results"]),
        ({"tools": [{"type": "web_search"}]}, ["tools", 0]),
        ({"tools": [{"type": "function", "name": "f"}]}, ["name"]),
        ({"tool_choice": "always"}, ["tool_choice"]),
        ({"input": "x"}, ["input"]),
        ({"instructions": "x"}, ["instructions"]),
    ],
)  # fmt: skip
def test_a_field_that_does_not_fit_is_unprocessable(
    server: EmulatorServer, fields: dict[str, Any], where: list[Any]
) -> None:
    reply = ask(server, **fields)
    assert reply.status == 422
    assert reply.json()["detail"][0]["loc"] == ["body", *where]


@pytest.mark.parametrize(
    "fields",
    [
        {"search_recency_filter": "day", "search_after_date_filter": "01/01/2024"},
        {"messages": [{"role": "system", "content": "x"}]},
        {"messages": [user(), result("call_none", "x")]},
        {"response_format": {"type": "regex", "regex": {"regex": "("}}},
    ],
)
def test_fields_that_do_not_go_together_are_a_bad_request(
    server: EmulatorServer, fields: dict[str, Any]
) -> None:
    reply = ask(server, **fields)
    assert (reply.status, reply.json()["error"]["type"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "llama3.3:70b"},
        {"temperature": 0, "top_p": 1, "top_k": 3, "seed": 1, "user": None},
        {"response_format": {"type": "regex", "regex": {"regex": r"\d+"}}},
        {"messages": [user([{"type": "image_url", "image_url": {"url": "data:image/png;base64,x"}}])]},
        {"image_domain_filter": ["-a.org"], "image_format_filter": ["png"]},
        {"web_search_options": {"user_location": {"country": "BE"}}, "language_preference": "nl"},
        {"stream_options": {"include_usage": True}, "reasoning_effort": "minimal"},
        {"enable_search_classifier": True, "stop": "x"},
    ],
)  # fmt: skip
def test_what_the_service_took_is_taken(server: EmulatorServer, fields: dict[str, Any]) -> None:
    assert ask(server, **fields).status == 200


def test_the_retirement_can_be_asked_for_one_request_at_a_time(server: EmulatorServer) -> None:
    kinds = ("chat_completions_not_available", "agent_api_migration_required")
    server.next(*(Behavior(retired=kind) for kind in kinds))
    for kind in kinds:
        reply = ask(server)
        assert (reply.status, reply.json()["error"]["type"]) == (403, kind)
    assert ask(server).status == 200
    with pytest.raises(ValueError, match="chat"):
        EmulatorServer(chat="maybe")


def test_a_key_is_asked_for_here_too() -> None:
    with EmulatorServer(pace=0, api_key="pplx-right") as server:
        assert ask(server).status == 401


@pytest.mark.parametrize("name", ["failed", "failed-response", "error-event", "cancelled"])
def test_a_stream_can_fail_in_the_middle_of_its_text(server: EmulatorServer, name: str) -> None:
    server.next(FAULTS[name], FAULTS[name])
    found = chunks(server)
    assert list(found[-1]) == ["error"]
    assert ask(server).status == 500
    good = content_of(ask(server))
    text = said(found[:-1])
    assert good.startswith(text) and text not in ("", good)


def test_a_stream_can_end_without_its_last_chunk(server: EmulatorServer) -> None:
    server.next(FAULTS["no-terminal"])
    found = chunks(server)
    assert all(one["choices"][0]["finish_reason"] is None for one in found)
    assert found[-1]["object"] == "chat.completion.chunk"
    server.next(FAULTS["incomplete"])
    assert chunks(server)[-1]["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_json_is_a_bad_request(server: EmulatorServer, body: bytes) -> None:
    assert call(server, "POST", PATHS[0], body).status == 400


@pytest.mark.parametrize("body", [b"[]", b'"x"', b"null", b"3"])
def test_a_body_that_is_no_object_is_unprocessable(server: EmulatorServer, body: bytes) -> None:
    assert call(server, "POST", PATHS[0], body).status == 422


def test_the_pace_makes_a_stream_take_its_time() -> None:
    with EmulatorServer(pace=0.004, chunk_chars=20) as server:
        start = time.monotonic()
        found = chunks(server)
        assert time.monotonic() - start >= 0.004 * len(found)
        assert all(len(said([one])) <= 20 for one in found)
