"""The official SDK (perplexityai) on the embedded engine: it reads what our own client reads."""

from __future__ import annotations

import asyncio
import json
import typing
from typing import Any

import pytest

from ipyperplexity import Answer, Client
from ipyperplexity.emulator import Behavior, EmulatorServer
from ipyperplexity.errors import AuthenticationError, InvalidRequestError, ServerError

from .conftest import KEY, OFFERED, QUESTION, SCHEMA, assert_is_wholly_typed

perplexity = pytest.importorskip("perplexity", reason="the peer perplexityai is not installed")


@pytest.fixture(scope="module")
def sdk(engine: EmulatorServer) -> Any:
    with perplexity.Perplexity(api_key=KEY, base_url=engine.url, max_retries=0) as client:
        yield client


def sources_of(response: Any) -> list[tuple[int, str, str]]:
    return sorted(
        {
            (result.id, result.url, result.title)
            for item in response.output
            if item.type == "search_results"
            for result in item.results
        }
    )


def test_a_whole_reply_reads_as_ours(sdk: Any, answer: Answer) -> None:
    response = sdk.responses.create(preset="low", input=QUESTION)
    assert_is_wholly_typed(response)
    assert response.status == "completed"
    assert response.output_text == answer.text
    assert response.model == answer.model
    assert sources_of(response) == [(s.id, s.url, s.title) for s in answer.sources]
    usage = response.usage
    assert usage.input_tokens == answer.usage.input_tokens
    assert usage.output_tokens == answer.usage.output_tokens
    assert usage.total_tokens == answer.usage.total_tokens
    assert usage.cost.total_cost == answer.usage.cost_usd
    assert usage.tool_calls_details["search_web"].invocation == answer.usage.searches


def test_every_event_of_a_stream_is_of_the_class_that_its_type_names(
    sdk: Any, answer: Answer
) -> None:
    events = list(sdk.responses.create(preset="low", input=QUESTION, stream=True))
    for event in events:
        assert_is_wholly_typed(event)
        assert event.type in typing.get_args(type(event).model_fields["type"].annotation)
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == answer.text
    assert len(deltas) > 1
    queries = [
        query
        for event in events
        if event.type == "response.reasoning.search_queries"
        for query in event.queries
    ]
    assert tuple(dict.fromkeys(queries)) == answer.searches
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.output_text == answer.text
    assert sources_of(last.response) == [(s.id, s.url, s.title) for s in answer.sources]
    numbers = [event.sequence_number for event in events]
    assert numbers == list(range(len(events)))


def test_events_of_fetched_pages_are_typed_too(sdk: Any, ours: Client) -> None:
    url = "https://docs.python.org/3/reference/compound_stmts.html#with"
    tools = [{"type": "web_search"}, {"type": "fetch_url"}]
    asked = {"preset": "low", "input": f"Read {url}", "tools": tools}
    kinds = set()
    for event in sdk.responses.create(**asked, stream=True):
        assert_is_wholly_typed(event)
        assert event.type in typing.get_args(type(event).model_fields["type"].annotation)
        kinds.add(event.type)
    assert {"response.reasoning.fetch_url_queries", "response.reasoning.fetch_url_results"} <= kinds
    answer = ours.ask(f"Read {url}", model="low", tools=["fetch_url"])
    assert answer.text == last_text(event)
    assert url in answer.sources["url"]


def last_text(event: Any) -> str:
    return str(event.response.output_text)


def test_what_one_client_asked_the_other_can_fetch(sdk: Any, ours: Client, answer: Answer) -> None:
    kept = sdk.responses.retrieve(answer.id)
    assert_is_wholly_typed(kept)
    assert (kept.status, kept.output_text) == ("completed", answer.text)
    followed = sdk.responses.create(
        preset="low", input="And a context manager?", previous_response_id=answer.id
    )
    assert followed.output_text == answer.follow_up("And a context manager?").text


def test_a_structured_answer_is_the_same_data(sdk: Any, ours: Client) -> None:
    question = "Which statement wraps a block, and since when?"
    form = {"type": "json_schema", "json_schema": {"name": "item", "schema": SCHEMA}}
    response = sdk.responses.create(preset="low", input=question, response_format=form)
    assert_is_wholly_typed(response)
    assert json.loads(response.output_text) == ours.ask(question, model="low", schema=SCHEMA).data


def test_a_background_run_is_polled_to_its_end(sdk: Any, answer: Answer) -> None:
    run = sdk.responses.create(preset="low", input=QUESTION, background=True)
    assert run.status in ("queued", "in_progress")
    with sdk.responses.retrieve(run.id, stream=True, starting_after=0) as events:
        *_, last = events
    assert last.type == "response.completed"
    ended = sdk.responses.retrieve(run.id)
    assert_is_wholly_typed(ended)
    assert (ended.status, ended.output_text) == ("completed", answer.text)


def test_a_background_run_can_be_cancelled(sdk: Any, engine: EmulatorServer) -> None:
    engine.next(Behavior(pace=30))
    run = sdk.responses.create(preset="low", input=QUESTION, background=True)
    cancelled = sdk.responses.cancel(run.id)
    assert_is_wholly_typed(cancelled)
    assert cancelled.status in ("cancelling", "cancelled")
    with pytest.raises(perplexity.BadRequestError):
        for _ in range(1000):  # once it is over, there is nothing left to cancel
            sdk.responses.cancel(run.id)
    assert sdk.responses.retrieve(run.id).status == "cancelled"


def test_our_client_is_refused_for_the_same_reasons(engine: EmulatorServer, ours: Client) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        ours.ask("Why?", extra={"nope": 1})
    assert (caught.value.status_code, caught.value.field) == (400, "nope")
    with pytest.raises(AuthenticationError) as refused:
        Client(api_key="pplx-wrong", base_url=engine.url).ask("Why?")
    assert refused.value.status_code == 401


def test_a_failed_run_is_a_failure_to_both(sdk: Any, ours: Client, engine: EmulatorServer) -> None:
    engine.next(Behavior(terminal="failed-event"))
    *_, last = sdk.responses.create(preset="low", input=QUESTION, stream=True)
    assert_is_wholly_typed(last)
    assert last.type == "response.failed"
    engine.next(Behavior(terminal="failed-event"))
    with pytest.raises(ServerError, match=last.error.message):
        ours.ask(QUESTION, model="low")
    engine.next(Behavior(terminal="error"))
    with pytest.raises(perplexity.APIError):
        list(sdk.responses.create(preset="low", input=QUESTION, stream=True))


def test_the_background_run_of_a_stream_is_read_again_from_where_it_was_left(sdk: Any) -> None:
    with sdk.responses.create(
        preset="low", input=QUESTION, background=True, stream=True
    ) as first_half:
        begun = [next(first_half) for _ in range(8)]
    run, last = begun[0].response.id, begun[-1].sequence_number
    rest = list(sdk.responses.retrieve(run, stream=True, starting_after=last))
    assert rest[0].sequence_number == last + 1
    text = "".join(e.delta for e in [*begun, *rest] if e.type == "response.output_text.delta")
    assert text == sdk.responses.retrieve(run).output_text != ""


@pytest.mark.parametrize("by_id", [True, False], ids=["by id", "by items"])
def test_a_function_is_called_and_its_result_is_used(
    sdk: Any, engine: EmulatorServer, by_id: bool
) -> None:
    asked = {"model": "openai/gpt-6-luna", "tools": [{"type": "function", **OFFERED}]}
    engine.next(Behavior(tool_rounds=1, tool_calls=2))
    called = sdk.responses.create(**asked, input="What are 2 and 3?")
    assert_is_wholly_typed(called)
    calls = [item for item in called.output if item.type == "function_call"]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [
        ("add", {"a": 2, "b": 3})
    ] * 2
    results = [
        {"type": "function_call_output", "call_id": call.call_id, "output": "five"}
        for call in calls
    ]
    if by_id:
        answered = sdk.responses.create(**asked, input=results, previous_response_id=called.id)
    else:
        turn = {"role": "user", "content": "What are 2 and 3?"}
        made = [call.model_dump(include={"type", "call_id", "name", "arguments"}) for call in calls]
        answered = sdk.responses.create(**asked, input=[turn, *made, *results])
    assert_is_wholly_typed(answered)
    assert answered.output_text.count("five") == 2


def test_a_function_call_is_whole_in_the_stream(sdk: Any, engine: EmulatorServer) -> None:
    engine.next(Behavior(tool_rounds=1))
    events = list(
        sdk.responses.create(
            model="openai/gpt-6-luna",
            input="What are 2 and 3?",
            tools=[{"type": "function", **OFFERED}],
            stream=True,
        )
    )
    items = [event.item for event in events if event.type == "response.output_item.done"]
    assert [json.loads(item.arguments) for item in items] == [{"a": 2, "b": 3}]
    assert events[-1].response.output[0].call_id == items[0].call_id


def test_a_run_of_the_engine_has_no_files(sdk: Any, answer: Answer) -> None:
    files = sdk.responses.files.list(answer.id)
    assert_is_wholly_typed(files)
    assert files.data == []
    with pytest.raises(perplexity.NotFoundError):
        sdk.responses.files.list("resp_nobody")


def test_the_headers_name_the_run_and_count_the_requests(sdk: Any) -> None:
    raw = sdk.responses.with_raw_response.create(preset="low", input=QUESTION)
    assert raw.headers["x-request-id"] == raw.parse().id.removeprefix("resp_")
    limit, left, used = (
        int(raw.headers[f"x-ratelimit-{name}"]) for name in ("limit", "remaining", "used")
    )
    assert limit == left + used


def test_the_models_are_typed(sdk: Any) -> None:
    models = sdk.models.list()
    assert_is_wholly_typed(models)
    assert {"perplexity/sonar", "openai/gpt-6-luna"} <= {model.id for model in models.data}


def test_it_can_ask_without_blocking(engine: EmulatorServer, answer: Answer) -> None:
    async def ask() -> tuple[str, str]:
        async with perplexity.AsyncPerplexity(api_key=KEY, base_url=engine.url) as client:
            whole = await client.responses.create(preset="low", input=QUESTION)
            events = await client.responses.create(preset="low", input=QUESTION, stream=True)
            deltas = [
                event.delta async for event in events if event.type == "response.output_text.delta"
            ]
            return whole.output_text, "".join(deltas)

    assert asyncio.run(ask()) == (answer.text, answer.text)
