"""The official SDK (perplexityai) on the embedded engine: it reads what our own client reads."""

from __future__ import annotations

import json
import typing
from collections.abc import Callable
from typing import Any

import pytest

from ipyperplexity import Answer, Client
from ipyperplexity.emulator import Behavior, EmulatorServer
from ipyperplexity.errors import AuthenticationError, InvalidRequestError, ServerError

from .conftest import KEY, QUESTION

perplexity = pytest.importorskip("perplexity", reason="the peer perplexityai is not installed")

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "year": {"type": "integer"}},
    "required": ["name", "year"],
    "additionalProperties": False,
}


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


def assert_is_wholly_typed(model: Any) -> None:
    """Check a parsed reply again: the SDK itself takes what does not fit without a word."""
    type(model).model_validate(model.to_dict())


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


REFUSED: list[tuple[str, str, Callable[[Any], Any]]] = [
    (
        "BadRequestError",
        "nope",
        lambda sdk: sdk.responses.create(preset="low", input="Why?", extra_body={"nope": 1}),
    ),
    (
        "BadRequestError",
        "model",
        lambda sdk: sdk.responses.create(model="sonar", input="Why?"),
    ),
    ("NotFoundError", "", lambda sdk: sdk.responses.retrieve("resp_nobody")),
    (
        "AuthenticationError",
        "",
        lambda sdk: sdk.with_options(api_key="pplx-wrong").responses.create(
            preset="low", input="Why?"
        ),
    ),
]


@pytest.mark.parametrize(("kind", "param", "call"), REFUSED, ids=["field", "model", "id", "key"])
def test_a_refusal_arrives_as_the_error_that_it_is(
    sdk: Any, kind: str, param: str, call: Callable[[Any], Any]
) -> None:
    with pytest.raises(getattr(perplexity, kind)) as caught:
        call(sdk)
    assert caught.value.body["error"].get("param", "") == param
    assert caught.value.body["error"]["message"]


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


def test_search_results_and_models_are_typed(sdk: Any) -> None:
    found = sdk.search.create(query="with statement", max_results=3)
    assert_is_wholly_typed(found)
    assert len(found.results) == 3
    assert all(result.url.startswith("https://") for result in found.results)
    models = sdk.models.list()
    assert_is_wholly_typed(models)
    assert models.data
