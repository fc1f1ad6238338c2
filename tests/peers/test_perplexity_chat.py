"""Chat completions by the official SDK: its types are those of the retired Sonar service."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from ipyperplexity import Answer
from ipyperplexity.emulator import Behavior, EmulatorServer

from .conftest import KEY, QUESTION, SCHEMA, assert_is_wholly_typed, messages

perplexity = pytest.importorskip("perplexity", reason="the peer perplexityai is not installed")


@pytest.fixture(scope="module")
def sdk(engine: EmulatorServer) -> Any:
    with perplexity.Perplexity(api_key=KEY, base_url=engine.url, max_retries=0) as client:
        yield client


def ask(sdk: Any, **fields: Any) -> Any:
    return sdk.chat.completions.create(**{"model": "sonar", "messages": messages(), **fields})


def said(chunks: list[Any]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


def test_a_whole_reply_reads_as_ours(sdk: Any, chat_answer: Answer) -> None:
    reply = ask(sdk)
    assert_is_wholly_typed(reply)
    (choice,) = reply.choices
    assert (choice.message.role, choice.message.content) == ("assistant", chat_answer.text)
    assert (choice.delta.content, choice.finish_reason) == ("", "stop")
    assert reply.citations == list(chat_answer.sources["url"])
    assert [result.title for result in reply.search_results] == list(chat_answer.sources["title"])
    usage = reply.usage
    assert usage.prompt_tokens == chat_answer.usage.input_tokens
    assert usage.completion_tokens == chat_answer.usage.output_tokens
    assert usage.cost.total_cost == chat_answer.usage.cost_usd
    assert usage.cost.total_cost == pytest.approx(
        usage.cost.input_tokens_cost + usage.cost.output_tokens_cost + usage.cost.request_cost
    )


def test_each_chunk_of_a_stream_has_both_halves_that_its_types_want(
    sdk: Any, engine: EmulatorServer, chat_answer: Answer
) -> None:
    engine.next(Behavior(chat_message=True))
    chunks = list(ask(sdk, stream=True))
    assert len(chunks) > 2
    for at, chunk in enumerate(chunks):
        assert_is_wholly_typed(chunk)
        assert chunk.choices[0].message.content == said(chunks[: at + 1])
        assert chunk.citations == list(chat_answer.sources["url"])
    assert said(chunks) == chat_answer.text
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_a_stream_of_deltas_alone_reads_the_same(sdk: Any, chat_answer: Answer) -> None:
    chunks = list(ask(sdk, stream=True))
    assert said(chunks) == chat_answer.text
    assert chunks[-1].choices[0].message.content == chat_answer.text


def test_the_cost_of_a_stream_is_told_when_it_has_ended(sdk: Any, chat_answer: Answer) -> None:
    *interim, last = (chunk.usage.cost for chunk in ask(sdk, stream=True))
    assert {(cost.total_cost, cost.request_cost) for cost in interim} == {(0, None)}
    assert last.total_cost == chat_answer.usage.cost_usd > last.request_cost > 0


def test_the_steps_of_concise_mode_are_typed(sdk: Any, engine: EmulatorServer) -> None:
    engine.next(Behavior(chat_message=True))
    chunks = list(ask(sdk, stream=True, stream_mode="concise"))
    for chunk in chunks:
        assert_is_wholly_typed(chunk)
    step = chunks[0].choices[0].delta.reasoning_steps[0]
    assert step.web_search.search_keywords == [QUESTION]
    assert {result.url for result in step.web_search.search_results} <= set(chunks[-1].citations)
    assert [chunk.object for chunk in chunks if chunk.citations] == [
        "chat.reasoning.done",
        "chat.completion.done",
    ]


def test_what_is_asked_for_besides_is_there_beside_its_types(sdk: Any) -> None:
    reply = ask(sdk, return_images=True, num_images=1, return_related_questions=True)
    assert [image["origin_url"] for image in reply.images] == reply.citations[:1]
    assert all(question.endswith("?") for question in reply.related_questions)


def test_a_structured_answer_is_data(sdk: Any) -> None:
    form = {"type": "json_schema", "json_schema": {"schema": SCHEMA}}
    data = json.loads(ask(sdk, response_format=form).choices[0].message.content)
    assert sorted(data) == ["name", "year"]


@pytest.mark.parametrize("kind", ["chat_completions_not_available", "agent_api_migration_required"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_retired_service_denies_it(
    sdk: Any, engine: EmulatorServer, kind: str, stream: bool
) -> None:
    engine.next(Behavior(retired=kind))
    with pytest.raises(perplexity.PermissionDeniedError) as caught:
        ask(sdk, stream=stream)
    assert caught.value.body["error"]["type"] == kind
    assert "/v1/responses" in str(caught.value)


def test_the_asynchronous_service_is_gone_for_good(sdk: Any) -> None:
    with pytest.raises(perplexity.PermissionDeniedError):
        sdk.async_.chat.completions.list()
    with pytest.raises(perplexity.PermissionDeniedError):
        sdk.async_.chat.completions.create(request={"model": "sonar", "messages": messages()})


def test_a_field_that_it_does_not_have_is_refused_by_name(sdk: Any) -> None:
    with pytest.raises(perplexity.UnprocessableEntityError) as caught:
        ask(sdk, extra_body={"nope": 1})
    assert caught.value.body["detail"][0]["loc"] == ["body", "nope"]


def test_it_can_ask_without_blocking(engine: EmulatorServer, chat_answer: Answer) -> None:
    async def stream() -> str:
        async with perplexity.AsyncPerplexity(api_key=KEY, base_url=engine.url) as client:
            chunks = await ask(client, stream=True)
            return said([chunk async for chunk in chunks])

    assert asyncio.run(stream()) == chat_answer.text
