"""The openai SDK on the embedded engine: the service promises that it can be used so.

Perplexity's own events and output items are unknown to it; what both know has to fit.
"""

from __future__ import annotations

import typing
from typing import Any

import pytest

from ipyperplexity import Answer
from ipyperplexity.emulator import Behavior, EmulatorServer

from .conftest import KEY, QUESTION

openai = pytest.importorskip("openai", reason="the peer openai is not installed")

MODEL = "openai/gpt-6-luna"
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
