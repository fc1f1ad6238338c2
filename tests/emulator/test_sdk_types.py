"""What the types of the SDKs ask of the engine; tests/peers asks the same with the SDKs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ipyperplexity.emulator import FAULTS, Behavior, EmulatorServer

from .http_help import Reply, ask, call, parse_events, text_of

QUESTION = "What is a lambda?"


def chat(server: EmulatorServer, /, **fields: Any) -> Reply:
    turns = [{"role": "user", "content": QUESTION}]
    return call(
        server, "POST", "/chat/completions", {"model": "sonar", "messages": turns, **fields}
    )


def chunks(server: EmulatorServer, /, **fields: Any) -> list[dict[str, Any]]:
    frames = chat(server, stream=True, **fields).body.decode().split("\n\n")[:-1]
    return [json.loads(frame.removeprefix("data: ")) for frame in frames]


def test_a_plain_completion_has_both_halves_of_a_choice(server: EmulatorServer) -> None:
    choice = chat(server).json()["choices"][0]
    assert choice["delta"] == {"role": "assistant", "content": ""}
    assert choice["message"]["content"]


def test_each_delta_has_its_role_where_each_chunk_has_its_message(server: EmulatorServer) -> None:
    server.behavior = Behavior(chat_message=True)
    for mode in ("full", "concise"):
        for one in chunks(server, stream_mode=mode):
            choice = one["choices"][0]
            assert choice["delta"]["role"] == choice["message"]["role"] == "assistant"


@pytest.mark.parametrize("mode", ["full", "concise"])
def test_the_cost_is_zero_until_a_stream_has_ended(server: EmulatorServer, mode: str) -> None:
    *interim, last = (one["usage"] for one in chunks(server, stream_mode=mode) if "usage" in one)
    skeleton = {"input_tokens_cost": 0, "output_tokens_cost": 0, "total_cost": 0}
    assert interim and all(usage["cost"] == skeleton for usage in interim)
    assert last["cost"]["request_cost"] > 0 and last == chat(server).json()["usage"]
    server.next(Behavior(chat_cost="number"))
    costs = [one["usage"]["cost"] for one in chunks(server)]
    assert set(costs[:-1]) == {0} and costs[-1] == last["cost"]["total_cost"]


@pytest.mark.parametrize("behavior", [Behavior(nulls=True), Behavior(tool_rounds=1)])
def test_sources_and_usage_are_on_each_chunk_of_full_mode(
    server: EmulatorServer, behavior: Behavior
) -> None:
    server.next(behavior)
    tools = [{"type": "function", "function": {"name": "clock"}}]
    fields = {} if behavior.nulls else {"tools": tools}
    assert all(
        {"citations", "search_results", "usage"} <= one.keys() for one in chunks(server, **fields)
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"country": "BE", "latitude": 51.0, "longitude": 3.7},
        {"num_search_results": 3, "safe_search": True, "logprobs": True, "top_logprobs": 2},
        {"response_formatting_locale": "nl-BE", "use_threads": False, "thread_id": "t"},
        {"web_search_options": {"image_search_relevance_enhanced": True}},
        {"response_format": {"type": "regex", "regex": {"regex": "a+", "name": "n", "strict": True}}},
    ],
    ids=lambda fields: next(iter(fields)),
)  # fmt: skip
def test_a_field_of_the_sdk_is_taken(server: EmulatorServer, fields: dict[str, Any]) -> None:
    assert chat(server, **fields).status == 200


@pytest.mark.parametrize("field", ["country", "latitude", "num_search_results", "top_logprobs"])
def test_its_value_is_checked_all_the_same(server: EmulatorServer, field: str) -> None:
    reply = chat(server, **{field: "nowhere"})
    assert (reply.status, reply.json()["detail"][0]["loc"]) == (422, ["body", field])


def test_pictures_are_asked_for_in_two_ways_and_counted(server: EmulatorServer) -> None:
    media = {"overrides": {"return_images": True, "return_videos": False}}
    several = chat(server, return_images=True).json()["images"]
    assert len(several) > 1
    assert chat(server, media_response=media).json()["images"] == several
    assert chat(server, media_response=media, num_images=1).json()["images"] == several[:1]
    assert "images" not in chat(server, num_images=1).json()


def test_parts_are_announced_only_where_that_is_wanted(server: EmulatorServer) -> None:
    server.next(Behavior(parts=3, content_parts=True))
    events = parse_events(ask(server, stream=True).body)
    kinds = [event["type"].removeprefix("response.") for event in events]
    around = [kind for kind in dict.fromkeys(kinds) if kind.startswith(("content_", "output_text"))]
    assert around == [
        "content_part.added", "output_text.delta", "output_text.done", "content_part.done",
    ]  # fmt: skip
    assert kinds.count("content_part.added") == kinds.count("content_part.done") == 3
    closed = [event["part"]["text"] for event in events if event["type"].endswith("part.done")]
    assert "".join(closed) == text_of(events[-1]["response"])
    plain = parse_events(ask(server, stream=True).body)
    assert not any("content_part" in event["type"] for event in plain)
    assert FAULTS["announced-parts"].content_parts


def test_a_run_has_no_files(server: EmulatorServer) -> None:
    name = ask(server).json()["id"]
    for path in ("responses", "agent"):
        listed = call(server, "GET", f"/v1/{path}/{name}/files")
        assert (listed.status, listed.json()) == (200, {"object": "list", "data": []})
    assert call(server, "GET", "/v1/responses/resp_nobody/files").status == 404
    assert call(server, "GET", f"/v1/responses/{name}/files/file_1/content").status == 404


def test_an_approval_may_name_its_connector(server: EmulatorServer) -> None:
    item = {"id": "m", "name": "f", "server_label": "s", "arguments": "{}", "connector_id": "c"}
    turn = {"role": "user", "content": QUESTION}
    for kind in ("mcp_call", "mcp_approval_request"):
        assert ask(server, input=[{"type": kind, **item}, turn]).status == 200
