"""The official SDK's files and batches on the embedded engine, beside our own use of them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ipyperplexity import Answer, Client
from ipyperplexity.batch.server_mode import cancel_server_batch, run_on_server
from ipyperplexity.emulator import Behavior, EmulatorServer
from ipyperplexity.jobs import Pace
from ipyperplexity.question import Question
from ipyperplexity.store.batch_store import BatchStore

from .conftest import KEY, OTHER_QUESTION, QUESTION, assert_is_wholly_typed

perplexity = pytest.importorskip("perplexity", reason="the peer perplexityai is not installed")
ENDED = ("completed", "failed", "expired", "cancelled")


@pytest.fixture(scope="module")
def sdk(engine: EmulatorServer) -> Any:
    with perplexity.Perplexity(api_key=KEY, base_url=engine.url, max_retries=0) as client:
        yield client


def jsonl(*questions: str) -> bytes:
    lines = [
        {
            "custom_id": f"row-{n}",
            "method": "POST",
            "url": "/v1/responses",
            "body": {"preset": "low", "input": question},
        }
        for n, question in enumerate(questions)
    ]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def uploaded(sdk: Any, *questions: str) -> Any:
    file = sdk.files.create(file=("in.jsonl", jsonl(*questions)), purpose="batch")
    assert_is_wholly_typed(file)
    return file


def ended(sdk: Any, batch: Any) -> Any:
    until = time.monotonic() + 20
    while batch.status not in ENDED and time.monotonic() < until:
        batch = sdk.batches.retrieve(batch.id)
        assert_is_wholly_typed(batch)
    return batch


def lines(sdk: Any, file_id: str) -> dict[str, Any]:
    text = sdk.files.content(file_id).read().decode()
    return {line["custom_id"]: line for line in map(json.loads, text.splitlines())}


def test_it_uploads_creates_polls_and_fetches_what_our_client_gets(
    sdk: Any, answer: Answer
) -> None:
    file = uploaded(sdk, QUESTION, OTHER_QUESTION)
    created = sdk.batches.create(
        endpoint="/v1/responses", input_file_id=file.id, completion_window="24h"
    )
    assert_is_wholly_typed(created)
    batch = ended(sdk, created)
    assert (batch.status, batch.request_counts.completed) == ("completed", 2)
    found = lines(sdk, batch.output_file_id)
    body = found["row-0"]["response"]["body"]
    response = perplexity.types.ResponseCreateResponse.model_validate(body)
    assert response.output_text == answer.text
    assert batch.usage.total_tokens == sum(
        line["response"]["body"]["usage"]["total_tokens"] for line in found.values()
    )
    kept = sdk.files.retrieve(batch.output_file_id)
    assert_is_wholly_typed(kept)
    assert kept.purpose == "batch_output"


def test_the_same_key_makes_one_batch_and_lists_are_typed(sdk: Any) -> None:
    file = uploaded(sdk, QUESTION)
    asked = {"endpoint": "/v1/responses", "input_file_id": file.id, "idempotency_key": file.id}
    first, again = (sdk.batches.create(**asked) for _ in range(2))
    assert first.id == again.id
    for page in (sdk.batches.list(limit=1), sdk.files.list(limit=1, purpose="batch")):
        assert_is_wholly_typed(page)
        assert len(page.data) == 1
    deleted = sdk.files.delete(file.id)
    assert_is_wholly_typed(deleted)
    with pytest.raises(perplexity.NotFoundError):
        sdk.files.retrieve(file.id)


def test_it_can_cancel(sdk: Any, engine: EmulatorServer) -> None:
    file = uploaded(sdk, QUESTION, OTHER_QUESTION)
    engine.next(Behavior(queued_polls=10**6))
    batch = sdk.batches.create(endpoint="/v1/responses", input_file_id=file.id)
    cancelled = sdk.batches.cancel(batch.id)
    assert_is_wholly_typed(cancelled)
    batch = ended(sdk, cancelled)
    assert (batch.status, batch.request_counts.failed) == ("cancelled", 2)
    assert set(lines(sdk, batch.error_file_id)) == {"row-0", "row-1"}


def test_a_file_that_cannot_be_asked_is_refused(sdk: Any) -> None:
    with pytest.raises(perplexity.BadRequestError, match="line 1"):
        sdk.files.create(file=("in.jsonl", b"{}\n"), purpose="batch")


def test_a_failed_validation_is_typed_too(sdk: Any, engine: EmulatorServer) -> None:
    file = uploaded(sdk, QUESTION)
    engine.next(Behavior(batch="invalid"))
    batch = ended(sdk, sdk.batches.create(endpoint="/v1/responses", input_file_id=file.id))
    assert (batch.status, batch.errors.data[0].line) == ("failed", 1)


def test_the_sdk_sees_and_reads_the_batch_that_our_client_made(
    sdk: Any, ours: Client, tmp_path: Path
) -> None:
    service = ours._service(ours._settings())
    store = BatchStore(tmp_path / "batches.db")
    questions = [Question(QUESTION, model="low"), Question(OTHER_QUESTION, model="low")]
    outcomes = run_on_server(service, questions, poll=Pace(0.02, 0.05), store=store)
    (record,) = store.all()
    store.close()
    batch = sdk.batches.retrieve(record.batch_id)
    texts = {
        perplexity.types.ResponseCreateResponse.model_validate(line["response"]["body"]).output_text
        for line in lines(sdk, batch.output_file_id).values()
    }
    assert texts == {outcome.text for outcome in outcomes if isinstance(outcome, Answer)}
    assert len(texts) == 2
    with pytest.raises(Exception, match="already completed"):
        cancel_server_batch(service, batch.id)
