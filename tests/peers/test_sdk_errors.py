"""What goes wrong reaches the users of both SDKs as the exception that they wait for."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from ipyperplexity.emulator import FAULTS, Behavior, EmulatorServer

from .conftest import KEY, MODEL, QUESTION, messages

STATUSES = {
    400: ("BadRequestError", "invalid_request"),
    401: ("AuthenticationError", "invalid_api_key"),
    403: ("PermissionDeniedError", "forbidden"),
    404: ("NotFoundError", "not_found"),
    409: ("ConflictError", "conflict"),
    429: ("RateLimitError", "request_rate_limit_exceeded"),
    500: ("InternalServerError", "internal_error"),
    503: ("InternalServerError", "service_unavailable"),
}
Call = Callable[[Any], Any]
CALLS: dict[str, Call] = {
    "responses": lambda sdk: sdk.responses.create(model=MODEL, input=QUESTION),
    "responses, streamed": lambda sdk: sdk.responses.create(
        model=MODEL, input=QUESTION, stream=True
    ),
    "retrieve": lambda sdk: sdk.responses.retrieve("resp_nobody"),
    "chat": lambda sdk: sdk.chat.completions.create(model="sonar", messages=messages()),
    "chat, streamed": lambda sdk: sdk.chat.completions.create(
        model="sonar", messages=messages(), stream=True
    ),
    "models": lambda sdk: sdk.models.list(),
}


@pytest.fixture(params=["openai", "perplexity"])
def library(request: pytest.FixtureRequest) -> ModuleType:
    return pytest.importorskip(request.param, reason=f"the peer {request.param} is not installed")


@pytest.fixture
def sdk(library: ModuleType, engine: EmulatorServer) -> Any:
    if library.__name__ == "openai":
        client = library.OpenAI(api_key=KEY, base_url=f"{engine.url}/v1", max_retries=0)
    else:
        client = library.Perplexity(api_key=KEY, base_url=engine.url, max_retries=0)
    with client:
        yield client


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("call", CALLS)
def test_a_status_is_the_error_of_its_name(
    library: ModuleType, sdk: Any, engine: EmulatorServer, call: str, status: int
) -> None:
    name, kind = STATUSES[status]
    engine.next(Behavior(status=status))
    with pytest.raises(getattr(library, name)) as caught:
        CALLS[call](sdk)
    assert caught.value.status_code == status
    told = caught.value.body
    assert told.get("error", told)["type"] == kind
    assert caught.value.response.headers["x-request-id"]


@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_key_is_refused_everywhere(library: ModuleType, sdk: Any, call: str) -> None:
    with pytest.raises(library.AuthenticationError):
        CALLS[call](sdk.with_options(api_key="pplx-wrong"))


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"model": MODEL, "input": "Why?", "extra_body": {"nope": 1}}, "nope"),
        ({"model": "sonar", "input": "Why?"}, "model"),
        ({"model": MODEL, "input": ""}, "input"),
        ({"model": MODEL, "input": "Why?", "previous_response_id": "resp_no"}, "previous_response_id"),
        ({"model": MODEL, "input": "Why?", "temperature": 3}, "temperature"),
        ({"model": MODEL, "input": "Why?", "max_output_tokens": 0}, "max_output_tokens"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_bad_request_names_its_field(
    library: ModuleType, sdk: Any, asked: dict[str, Any], param: str
) -> None:
    with pytest.raises(library.BadRequestError) as caught:
        sdk.responses.create(**asked)
    told = caught.value.body
    assert told.get("error", told)["param"] == param


@pytest.mark.parametrize("fault", ["unauthorized-html", "bad-gateway-html", "cloudflare-403"])
def test_a_page_in_place_of_an_error_is_told_by_its_status(
    library: ModuleType, sdk: Any, engine: EmulatorServer, fault: str
) -> None:
    engine.next(FAULTS[fault])
    with pytest.raises(library.APIStatusError) as caught:
        CALLS["responses"](sdk)
    assert caught.value.status_code == FAULTS[fault].status


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_it_tries_again_when_it_is_told_to(sdk: Any, engine: EmulatorServer, status: int) -> None:
    before = engine.used_requests
    engine.next(Behavior(status=status, headers={"retry-after-ms": "1"}))
    response = CALLS["responses"](sdk.with_options(max_retries=1))
    assert response.status == "completed"
    assert engine.used_requests == before + 2
    assert engine.requests[-1].headers["x-stainless-retry-count"] == "1"


def test_a_late_answer_is_a_timeout(library: ModuleType, sdk: Any, engine: EmulatorServer) -> None:
    engine.next(Behavior(delay=30))
    with pytest.raises(library.APITimeoutError):
        CALLS["responses"](sdk.with_options(timeout=0.05))


def test_a_reply_that_breaks_off_is_a_broken_connection(
    library: ModuleType, sdk: Any, engine: EmulatorServer
) -> None:
    engine.next(Behavior(cut_after=1))
    with pytest.raises(library.APIConnectionError):
        CALLS["responses"](sdk)


def test_the_text_that_came_before_a_stream_broke_is_not_lost(
    library: ModuleType, sdk: Any, engine: EmulatorServer
) -> None:
    engine.next(Behavior(cut_after=20))
    read = []
    # perplexityai lets the error of its transport through.
    transport = importlib.import_module("httpx").TransportError
    with pytest.raises((library.APIConnectionError, transport)):
        for event in sdk.responses.create(
            model=MODEL, input=QUESTION, tools=[{"type": "web_search"}], stream=True
        ):
            read.append(event)
    assert [event.sequence_number for event in read] == list(range(len(read)))
    assert "response.output_text.delta" in {event.type for event in read}


@pytest.mark.parametrize("terminal", ["failed-event", "failed-response", "failed-both"])
def test_a_failed_run_tells_its_error_where_it_is_looked_for(
    sdk: Any, engine: EmulatorServer, terminal: str
) -> None:
    engine.next(Behavior(terminal=terminal))
    run = sdk.responses.create(model=MODEL, input=QUESTION)
    assert (run.status, run.error.code) == ("failed", "internal_error")
    assert run.error.message == sdk.responses.retrieve(run.id).error.message
