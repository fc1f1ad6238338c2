"""The openai SDK on chat completions, in each form that gateways and the old service sent."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import BaseModel

from ipyperplexity import Answer
from ipyperplexity.emulator import Behavior, EmulatorServer

from .conftest import KEY, OFFERED, messages

openai = pytest.importorskip("openai", reason="the peer openai is not installed")

TOOLS: Any = [{"type": "function", "function": OFFERED}]
FORMS = {
    "deltas": Behavior(),
    "deltas and all so far": Behavior(chat_message=True),
    "nulls": Behavior(nulls=True),
    "end mark": Behavior(done_marker=True),
    "named events": Behavior(event_names=True),
    "comments": Behavior(keepalives=True),
    "CRLF": Behavior(newline="\r\n"),
    "cost as a number": Behavior(chat_cost="number"),
    "no cost": Behavior(chat_cost="none"),
    "not chunked": Behavior(framing="close"),
    "compressed": Behavior(framing="gzip"),
    "with a length": Behavior(framing="length"),
    "in small pieces": Behavior(piece_bytes=7, chunk_chars=400),
}


class Item(BaseModel):
    name: str
    year: int


@pytest.fixture(scope="module")
def sdk(engine: EmulatorServer) -> Any:
    with openai.OpenAI(api_key=KEY, base_url=engine.url, max_retries=0) as client:
        yield client


def ask(sdk: Any, **fields: Any) -> Any:
    return sdk.chat.completions.create(**{"model": "sonar", "messages": messages(), **fields})


def said(chunks: list[Any]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


def cost_of(reply: Any) -> Any:
    """Return the cost in USD, for which the SDK has no type."""
    cost = getattr(reply.usage, "cost", None)
    return cost["total_cost"] if isinstance(cost, dict) else cost


def test_a_whole_reply_reads_as_ours(sdk: Any, chat_answer: Answer) -> None:
    reply = ask(sdk)
    assert reply.choices[0].message.content == chat_answer.text
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage.total_tokens == chat_answer.usage.total_tokens
    # What it has no type for is there all the same.
    assert reply.citations == list(chat_answer.sources["url"])
    assert [one["url"] for one in reply.search_results] == reply.citations
    assert cost_of(reply) == chat_answer.usage.cost_usd
    assert reply._request_id == reply.id


@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_stream_reads_the_same_in_each_form(
    sdk: Any, engine: EmulatorServer, chat_answer: Answer, form: str
) -> None:
    engine.next(FORMS[form])
    chunks = list(ask(sdk, stream=True, stream_options={"include_usage": True}))
    assert said(chunks) == chat_answer.text
    reasons = [chunk.choices[0].finish_reason for chunk in chunks]
    assert [reason for reason in reasons if reason] == ["stop"]
    assert chunks[-1].citations == list(chat_answer.sources["url"])
    assert chunks[-1].usage.total_tokens == chat_answer.usage.total_tokens
    assert cost_of(chunks[-1]) == (None if form == "no cost" else chat_answer.usage.cost_usd)


@pytest.mark.parametrize("cost", ["object", "number", "none"])
def test_a_whole_reply_reads_the_same_with_each_form_of_cost(
    sdk: Any, engine: EmulatorServer, chat_answer: Answer, cost: str
) -> None:
    engine.next(Behavior(chat_cost=cost))
    assert cost_of(ask(sdk)) == (None if cost == "none" else chat_answer.usage.cost_usd)


def test_all_so_far_is_the_sum_of_the_pieces(sdk: Any, engine: EmulatorServer) -> None:
    engine.next(Behavior(chat_message=True))
    chunks = list(ask(sdk, stream=True))
    for at, chunk in enumerate(chunks):
        assert chunk.choices[0].message["content"] == said(chunks[: at + 1])


def test_its_helper_gathers_a_stream(sdk: Any, chat_answer: Answer) -> None:
    with sdk.chat.completions.stream(model="sonar", messages=messages()) as stream:
        pieces = [event.delta for event in stream if event.type == "content.delta"]
        final = stream.get_final_completion()
    assert "".join(pieces) == final.choices[0].message.content == chat_answer.text


@pytest.mark.parametrize("stream", [False, True])
def test_a_function_is_called_and_its_result_is_used(
    sdk: Any, engine: EmulatorServer, stream: bool
) -> None:
    asked = {"model": "sonar", "tools": TOOLS, "messages": messages("What are 2 and 3?")}
    engine.next(Behavior(tool_rounds=1, tool_calls=2))
    if stream:
        with sdk.chat.completions.stream(**asked) as events:
            called = events.get_final_completion()
    else:
        called = sdk.chat.completions.create(**asked)
    (choice,) = called.choices
    # Its helper passes over the last chunk of a stream, for its kind "chat.completion.done".
    assert choice.finish_reason == (None if stream else "tool_calls")
    calls = choice.message.tool_calls
    assert [(call.function.name, json.loads(call.function.arguments)) for call in calls] == [
        ("add", {"a": 2, "b": 3})
    ] * 2
    made = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.function.name, "arguments": call.function.arguments},
        }
        for call in calls
    ]
    asked["messages"] += [{"role": "assistant", "tool_calls": made}]
    asked["messages"] += [
        {"role": "tool", "tool_call_id": call.id, "content": "five"} for call in calls
    ]
    answered = sdk.chat.completions.create(**asked).choices[0]
    assert (answered.finish_reason, answered.message.content.count("five")) == ("stop", 2)


def test_a_structured_answer_is_parsed(sdk: Any) -> None:
    reply = sdk.chat.completions.parse(model="sonar", messages=messages(), response_format=Item)
    assert isinstance(reply.choices[0].message.parsed, Item)


def test_thoughts_stand_before_the_answer(sdk: Any, chat_answer: Answer) -> None:
    text = ask(sdk, model="sonar-reasoning-pro").choices[0].message.content
    thoughts, _, rest = text.partition("</think>\n\n")
    assert thoughts.startswith("<think>") and rest == chat_answer.text


def test_an_answer_that_was_cut_says_why(sdk: Any) -> None:
    reply = ask(sdk, max_completion_tokens=5)
    assert reply.choices[0].finish_reason == "length"
    *_, last = ask(sdk, max_tokens=5, stream=True)
    assert last.choices[0].finish_reason == "length"
    assert "." not in ask(sdk, stop=["."]).choices[0].message.content


def test_the_fields_of_the_service_go_by_the_extra_body(sdk: Any) -> None:
    fields = {"search_domain_filter": ["example.edu"], "return_related_questions": True}
    assert ask(sdk, extra_body=fields).citations == []
    assert ask(sdk, extra_body={"disable_search": True}).citations == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", ["chat_completions_not_available", "agent_api_migration_required"])
def test_a_retired_service_denies_it(
    sdk: Any, engine: EmulatorServer, kind: str, stream: bool
) -> None:
    engine.next(Behavior(retired=kind))
    with pytest.raises(openai.PermissionDeniedError) as caught:
        ask(sdk, stream=stream)
    assert (caught.value.type, caught.value.status_code) == (kind, 403)


def test_a_run_that_fails_on_its_way_is_an_error(sdk: Any, engine: EmulatorServer) -> None:
    engine.next(Behavior(terminal="error"))
    read = []
    with pytest.raises(openai.APIError, match="internal error"):
        for chunk in ask(sdk, stream=True):
            read.append(chunk)
    assert said(read)
    engine.next(Behavior(terminal="error"))
    with pytest.raises(openai.InternalServerError):
        ask(sdk)


def test_it_can_ask_without_blocking(engine: EmulatorServer, chat_answer: Answer) -> None:
    async def stream() -> str:
        async with openai.AsyncOpenAI(api_key=KEY, base_url=engine.url) as client:
            return said([chunk async for chunk in await ask(client, stream=True)])

    assert asyncio.run(stream()) == chat_answer.text
