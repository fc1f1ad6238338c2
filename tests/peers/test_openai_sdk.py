"""The openai SDK on the embedded engine: the service promises that it can be used so.

Perplexity's own events and output items are unknown to it; what both know has to fit.
"""

from __future__ import annotations

import asyncio
import json
import typing
import warnings
from typing import Any

import pytest

from ipyperplexity import Answer
from ipyperplexity.emulator import Behavior, EmulatorServer

from .conftest import KEY, MODEL, OFFERED, QUESTION

openai = pytest.importorskip("openai", reason="the peer openai is not installed")

SEARCH: Any = [{"type": "web_search"}]


@pytest.fixture(scope="module")
def sdk(engine: EmulatorServer) -> Any:
    with openai.OpenAI(api_key=KEY, base_url=f"{engine.url}/v1", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def same(engine: EmulatorServer, ours: Any) -> Answer:
    return ours.ask(QUESTION, model=MODEL)  # type: ignore[no-any-return]


def test_a_whole_reply_has_the_same_text_and_tokens(sdk: Any, same: Answer) -> None:
    response = sdk.responses.create(model=MODEL, input=QUESTION, tools=SEARCH)
    assert response.status == "completed"
    assert response.output_text == same.text
    assert response.usage.input_tokens == same.usage.input_tokens
    assert response.usage.output_tokens == same.usage.output_tokens
    assert response.usage.total_tokens == same.usage.total_tokens
    assert response.usage.cost["total_cost"] == same.usage.cost_usd


def test_its_sources_can_be_read_from_the_untyped_items(sdk: Any, same: Answer) -> None:
    response = sdk.responses.create(model=MODEL, input=QUESTION, tools=SEARCH)
    found = {
        (result["id"], result["url"])
        for item in response.output
        if item.type == "search_results"
        for result in item.results
    }
    assert sorted(found) == [(source.id, source.url) for source in same.sources]


def known_types() -> dict[str, type]:
    """Return the event types that the SDK knows, each with its class."""
    from openai.types.responses import ResponseStreamEvent

    union = typing.get_args(ResponseStreamEvent)[0]
    return {
        name: kind
        for kind in typing.get_args(union)
        for name in typing.get_args(kind.model_fields["type"].annotation)
    }


def test_every_event_that_it_knows_is_of_its_class_and_the_text_is_ours(
    sdk: Any, same: Answer
) -> None:
    events = list(sdk.responses.create(model=MODEL, input=QUESTION, tools=SEARCH, stream=True))
    known = known_types()
    for event in events:
        if event.type in known:
            assert type(event) is known[event.type]
        else:
            assert event.type.startswith("response.reasoning.")
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == same.text
    assert events[-1].type == "response.completed"
    assert events[-1].response.output_text == same.text
    assert {event.type for event in events} >= {
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.output_item.done",
    }


def test_a_reply_is_kept_and_can_be_fetched_and_followed(sdk: Any, same: Answer) -> None:
    assert sdk.responses.retrieve(same.id).output_text == same.text
    followed = sdk.responses.create(
        model=MODEL, input="And a context manager?", tools=SEARCH, previous_response_id=same.id
    )
    assert followed.status == "completed"
    assert followed.previous_response_id == same.id


def test_a_background_run_can_be_cancelled(sdk: Any, engine: EmulatorServer) -> None:
    engine.next(Behavior(pace=30))
    run = sdk.responses.create(model=MODEL, input=QUESTION, background=True)
    assert run.status in ("queued", "in_progress")
    assert sdk.responses.cancel(run.id).status in ("cancelling", "cancelled")


def test_refusals_arrive_as_the_errors_that_they_are(sdk: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.responses.create(model=MODEL, input="Why?", extra_body={"nope": 1})
    assert caught.value.param == "nope"
    assert caught.value.type == "invalid_request"
    with pytest.raises(openai.NotFoundError):
        sdk.responses.retrieve("resp_nobody")
    with pytest.raises(openai.AuthenticationError):
        sdk.with_options(api_key="pplx-wrong").responses.create(model=MODEL, input="Why?")


def test_its_structured_outputs_go_by_the_services_own_field(sdk: Any) -> None:
    # text.format, which the SDK's parse() sends, is refused by the service too.
    form = {
        "type": "json_schema",
        "json_schema": {
            "name": "item",
            "schema": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
                "additionalProperties": False,
            },
        },
    }
    response = sdk.responses.create(model=MODEL, input="Why?", extra_body={"response_format": form})
    assert response.output_text.startswith("{")
    with pytest.raises(openai.BadRequestError) as caught:
        sdk.responses.create(model=MODEL, input="Why?", text={"format": {"type": "text"}})
    assert "format" in str(caught.value)


def test_a_failed_run_is_an_error_in_its_stream(sdk: Any, engine: EmulatorServer) -> None:
    for terminal in ("failed-event", "error"):
        engine.next(Behavior(terminal=terminal))
        with pytest.raises(openai.APIError):
            list(sdk.responses.create(model=MODEL, input=QUESTION, stream=True))


def test_a_background_run_is_followed_from_where_it_was_left(sdk: Any, same: Answer) -> None:
    asked = {"model": MODEL, "input": QUESTION, "tools": SEARCH}
    with sdk.responses.create(**asked, background=True, stream=True) as first_half:
        begun = [next(first_half) for _ in range(8)]
    run, last = begun[0].response.id, begun[-1].sequence_number
    rest = list(sdk.responses.retrieve(run, stream=True, starting_after=last))
    assert rest[0].sequence_number == last + 1
    assert rest[-1].response.output_text == same.text
    kept = sdk.responses.retrieve(run)
    assert (kept.status, kept.background, kept.output_text) == ("completed", True, same.text)


def test_a_run_that_is_over_cannot_be_cancelled(sdk: Any, same: Answer) -> None:
    with pytest.raises(openai.BadRequestError, match="already terminal"):
        sdk.responses.cancel(same.id)


@pytest.mark.parametrize("by_id", [True, False], ids=["by id", "by items"])
def test_a_function_is_called_and_its_result_is_used(
    sdk: Any, engine: EmulatorServer, by_id: bool
) -> None:
    asked = {"model": MODEL, "tools": [{"type": "function", **OFFERED, "strict": True}]}
    turn = {"role": "user", "content": "What are 2 and 3?"}
    engine.next(Behavior(tool_rounds=1, tool_calls=2))
    called = sdk.responses.create(**asked, input=[turn], parallel_tool_calls=True)
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
        made = [call.to_dict() for call in calls]
        answered = sdk.responses.create(**asked, input=[turn, *made, *results])
    assert answered.output_text.count("five") == 2


def test_a_forced_function_is_called_in_a_stream(sdk: Any) -> None:
    events = sdk.responses.create(
        model=MODEL,
        input="What are 2 and 3?",
        tools=[{"type": "function", **OFFERED}],
        tool_choice={"type": "function", "name": "add"},
        stream=True,
    )
    items = [event.item for event in events if event.type == "response.output_item.done"]
    assert [(item.type, item.name) for item in items] == [("function_call", "add")]


def test_a_picture_is_taken_and_not_seen(sdk: Any) -> None:
    parts = [
        {"type": "input_text", "text": QUESTION},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="},
    ]
    asked = [{"role": "user", "content": parts}]
    response = sdk.responses.create(model=MODEL, input=asked, tools=SEARCH)
    assert "cannot see pictures" in response.output_text


def test_an_answer_that_was_cut_says_why(sdk: Any) -> None:
    response = sdk.responses.create(model=MODEL, input=QUESTION, tools=SEARCH, max_output_tokens=16)
    assert response.status == "incomplete"
    assert response.incomplete_details.reason == "max_output_tokens"
    assert response.output_text


def test_its_helper_for_streams_needs_events_that_only_some_services_send(
    sdk: Any, engine: EmulatorServer, ours: Any, same: Answer
) -> None:
    # The service's own list has no content_part events (official-api 4.2); without them the
    # helper of openai 3.57 breaks at the first delta, whoever sends it.
    engine.next(Behavior(content_parts=True))
    with (
        warnings.catch_warnings(action="ignore", category=UserWarning),
        sdk.responses.stream(model=MODEL, input=QUESTION, tools=SEARCH) as stream,
    ):
        deltas = [event for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    assert deltas[-1].snapshot == final.output_text == same.text
    engine.next(Behavior(content_parts=True))
    assert ours.ask(QUESTION, model=MODEL).text == same.text


def test_it_can_ask_without_blocking(engine: EmulatorServer, same: Answer) -> None:
    async def ask() -> tuple[str, str]:
        asked: Any = {"model": MODEL, "input": QUESTION, "tools": SEARCH}
        async with openai.AsyncOpenAI(api_key=KEY, base_url=f"{engine.url}/v1") as client:
            whole = await client.responses.create(**asked)
            events = await client.responses.create(**asked, stream=True)
            deltas = [
                event.delta async for event in events if event.type == "response.output_text.delta"
            ]
            return whole.output_text, "".join(deltas)

    assert asyncio.run(ask()) == (same.text, same.text)


def test_the_models_can_be_listed(sdk: Any) -> None:
    models = {model.id: model for model in sdk.models.list()}
    assert models[MODEL].owned_by == "openai"
    assert models[MODEL].pricing["unit"] == "usd_per_1m_tokens"
