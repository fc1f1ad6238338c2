"""Lines of a batch file out, lines of two files back, in whatever state they come."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipyperplexity.answer import Answer
from ipyperplexity.errors import (
    AbortedError,
    AuthenticationError,
    InvalidRequestError,
    PerplexityError,
    RateLimitError,
    RequestTimeout,
    ServerError,
    StreamError,
)
from ipyperplexity.question import Question
from ipyperplexity.wire import agent, batch_results, batches

REPLY = {"id": "resp_1", "status": "completed", "output": []}


def sent(question: Question) -> dict[str, Any]:
    line = batches.line(question)
    assert line.data.endswith(b"\n") and line.data.count(b"\n") == 1
    made: dict[str, Any] = json.loads(line.data)
    assert made["custom_id"] == line.custom_id
    return made


def good(custom_id: str = "a", reply: Any = None, status: int = 200) -> bytes:
    response = {"status_code": status, "request_id": "r-1", "body": reply or REPLY}
    return json.dumps({"custom_id": custom_id, "response": response, "error": None}).encode()


def bad(custom_id: str = "a", code: str = "internal_error") -> bytes:
    error = {"code": code, "message": "it broke"}
    return json.dumps({"custom_id": custom_id, "response": None, "error": error}).encode()


def read(*lines: bytes, wanted: tuple[str, ...] = ("a",), why: Any = None) -> dict[str, Any]:
    found = list(batch_results.read_results(lines, wanted, why))
    assert len({result.custom_id for result in found}) == len(found), "each once"
    return {result.custom_id: result.error or result.reply for result in found}


# --- what is sent --------------------------------------------------------------------------------


def test_a_line_asks_what_a_live_question_asks_but_for_the_stream() -> None:
    question = Question("Who?", model="high", recency="year", domains=["x.org"], max_tokens=50)
    made = sent(question)
    assert (made["method"], made["url"]) == ("POST", "/v1/responses")
    assert made["body"] == agent.request(question, stream=False).body
    assert "stream" not in made["body"]


def test_raw_fields_are_sent_but_for_those_of_a_stream() -> None:
    extra = {"stream_options": {"include_usage": True}, "top_p": 0.5}
    body = sent(Question("Who?", extra=extra))["body"]
    assert body["top_p"] == 0.5
    assert "stream_options" not in body


def test_a_follow_up_brings_its_conversation() -> None:
    earlier = Answer("Who?", "She.", id="resp_0", backend="agent", stored=True)
    body = sent(Question("When?", follow=earlier))["body"]
    assert "previous_response_id" not in body
    assert [item["content"] for item in body["input"]] == ["Who?", "She.", "When?"]


def test_functions_are_refused_since_a_batch_cannot_call_them() -> None:
    def clock() -> str:
        """Tell the time."""
        return ""

    with pytest.raises(InvalidRequestError, match="functions") as raised:
        batches.line(Question("When?", tools=[clock]))
    assert raised.value.field == "tools"


def test_a_question_has_the_same_id_everywhere_and_another_has_another() -> None:
    ids = [batches.line(Question(text, timeout=limit)).custom_id for text, limit in (
        ("Who?", None), ("Who?", 5), ("When?", None),
    )]  # fmt: skip
    assert ids[0] == ids[1] != ids[2]
    assert len(ids[0]) == 32


@given(st.text(min_size=1).filter(lambda text: text.strip()))
def test_any_text_stays_on_one_line_for_every_reader(text: str) -> None:
    line = batches.line(Question(text))
    assert len(line.data.decode().splitlines()) == 1
    assert (
        json.loads(line.data)["body"]["input"][-1]["content"]
        == Question(text).text.encode("utf-8", "replace").decode()
    )


def test_requests_name_ids_keys_and_the_window() -> None:
    made = batches.create("file_1", "k")
    assert (made.method, made.path, made.headers) == (
        "POST",
        "/v1/batches",
        {"Idempotency-Key": "k"},
    )
    assert made.body == {
        "input_file_id": "file_1", "endpoint": "/v1/responses", "completion_window": "24h",
    }  # fmt: skip
    assert batches.cancel("batch_1").path == "/v1/batches/batch_1/cancel"
    fetched = batches.content("file-1")
    assert (fetched.method, fetched.path) == ("GET", "/v1/files/file-1/content")


@pytest.mark.parametrize("id", ["", "a/b", "../x", "a?b", "x" * 201, "é", None])
def test_nothing_but_an_id_goes_into_an_address(id: Any) -> None:
    for make in (batches.look, batches.cancel, batches.content, lambda id: batches.create(id, "k")):
        with pytest.raises(InvalidRequestError):
            make(id)


# --- how far a batch is --------------------------------------------------------------------------


def batch(**fields: Any) -> batches.BatchState:
    return batches.read_batch({"id": "batch_1", "status": "completed", **fields})


def test_a_batch_is_read_field_by_field() -> None:
    state = batch(
        request_counts={"total": 3, "completed": 2, "failed": 1},
        output_file_id="file_o",
        error_file_id="file_e",
        errors={
            "object": "list",
            "data": [{"code": "c", "line": 2, "message": "m"}, {"code": "d"}],
        },
    )
    assert state == batches.BatchState(
        "batch_1", "completed", 3, 2, 1, "file_o", "file_e", ((2, "m"), (None, "d"))
    )
    assert state.is_over


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"status": "validating"}, "validating"),
        ({"status": "canceled"}, "cancelled"),
        ({"status": "expired"}, "expired"),
        ({"status": "archived", "completed_at": 5}, "completed"),
        ({"status": "paused", "completed_at": None}, "in_progress"),
    ],
)
def test_a_status_means_that_it_runs_or_has_ended(fields: dict[str, Any], status: str) -> None:
    assert batch(**fields).status == status


def test_odd_values_are_no_reason_to_lose_a_batch() -> None:
    state = batch(request_counts=[1], output_file_id="../x", error_file_id=7, errors="no")
    assert (state.total, state.output_file_id, state.error_file_id, state.errors) == (
        0,
        None,
        None,
        (),
    )
    assert batch(request_counts={"total": -1, "completed": "2"}).completed == 0


@pytest.mark.parametrize("reply", [None, [], {}, {"id": "batch_1"}, {"status": "x"}, {"id": 7}])
def test_what_is_no_batch_is_an_error(reply: Any) -> None:
    for read_it in (batches.read_batch, batches.read_file):
        if read_it is batches.read_file and reply == {"id": "batch_1"}:
            continue
        with pytest.raises(StreamError, match="Batch API"):
            read_it(reply)


def test_an_error_in_a_good_reply_is_that_error() -> None:
    with pytest.raises(RateLimitError):
        batches.read_batch({"error": {"type": "rate_limit_error", "message": "slow"}})


def test_why_a_line_is_missing_depends_on_the_end() -> None:
    assert isinstance(batch(status="expired").why_missing(1), RequestTimeout)
    assert isinstance(batch(status="cancelled").why_missing(1), AbortedError)
    assert isinstance(batch().why_missing(1), StreamError)
    failed = batch(status="failed", errors={"data": [{"line": 2, "message": "no such model"}]})
    own, other = failed.why_missing(2), failed.why_missing(1)
    assert isinstance(own, InvalidRequestError) and "no such model" in own.message
    assert "line 2: no such model" in other.message and "whole batch" in other.message
    assert "does not say why" in batch(status="failed").why_missing().message


@pytest.mark.parametrize(
    ("message", "status", "number"),
    [
        ("The service refused the request: line 12: body: input", 400, 12),
        ("Line 3 is not valid JSON", 422, 3),
        ("invalid line: 7", 400, 7),
        ("line 3: too large", 413, None),
        ("deadline 3 passed", 400, None),
        ("line 0: what", 400, None),
        ("it is not valid", 400, None),
    ],
)
def test_a_refusal_may_name_the_line_to_blame(
    message: str, status: int, number: int | None
) -> None:
    assert batches.refused_line(InvalidRequestError(message, status_code=status)) == number
    assert batches.refused_line(ServerError(message, status_code=status)) is None


# --- results -------------------------------------------------------------------------------------


def test_a_reply_comes_back_as_the_service_wrote_it() -> None:
    assert read(good()) == {"a": REPLY}


def test_lines_may_come_in_any_order_twice_and_for_others() -> None:
    other = {**REPLY, "id": "resp_2"}
    lines = (good("b"), good("z"), good("a"), good("a", other), b"", b"[]", b'{"x": 1}')
    assert read(*lines, wanted=("a", "b")) == {"b": REPLY, "a": REPLY}


@pytest.mark.parametrize("lines", [(bad(), good()), (good(), bad()), (good()[:-9], good())])
def test_a_reply_counts_more_than_an_error_wherever_it_stands(lines: tuple[bytes, ...]) -> None:
    assert read(*lines) == {"a": REPLY}


def test_a_damaged_line_is_the_error_of_its_row() -> None:
    error = read(good()[:-20])["a"]
    assert isinstance(error, StreamError) and "damaged" in error.message


def test_a_row_without_a_line_is_told_why_if_that_is_known() -> None:
    why = StreamError("lost")
    assert read(good("b"), wanted=("a", "b"), why=why) == {"b": REPLY, "a": why}
    assert read() == {}


@pytest.mark.parametrize(
    ("line", "kind", "says"),
    [
        (bad(code="batch_expired"), RequestTimeout, "expired"),
        (bad(code="batch_cancelled"), AbortedError, "cancelled"),
        (bad(), ServerError, "it broke"),
        (bad(code="rate_limit_exceeded"), RateLimitError, "it broke"),
        (good(status=400, reply={"error": {"message": "no model"}}), InvalidRequestError, "no model"),
        (good(status=401, reply={"error": {"message": "bad"}}), AuthenticationError, "bad"),
        (good(status=500, reply={"detail": "oops"}), ServerError, "oops"),
        (b'{"custom_id": "a", "response": {"status_code": 200, "body": "?"}}', StreamError, "damaged"),
        (b'{"custom_id": "a"}', StreamError, "damaged"),
        (b'{"custom_id": "a", "error": "broken"}', ServerError, "broken"),
    ],
)  # fmt: skip
def test_an_error_line_is_the_error_that_it_would_be_live(
    line: bytes, kind: type[PerplexityError], says: str
) -> None:
    error = read(line)["a"]
    assert type(error) is kind and says in error.message


def test_an_http_error_of_a_line_keeps_its_request_id() -> None:
    assert read(good(status=500, reply={"x": 1}))["a"].request_id == "r-1"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(
    st.lists(
        st.binary()
        | st.fixed_dictionaries(
            {"custom_id": st.sampled_from(["a", "b"]) | JSON},
            optional={"response": JSON | st.fixed_dictionaries({"status_code": JSON, "body": JSON}), "error": JSON},
        ).map(lambda value: json.dumps(value).encode())
    )
)  # fmt: skip
def test_whatever_stands_in_the_files_each_row_has_one_result(lines: list[bytes]) -> None:
    found = read(*lines, wanted=("a", "b"), why=StreamError("missing"))
    assert set(found) == {"a", "b"}
    assert all(isinstance(value, dict | PerplexityError) for value in found.values())


@given(JSON)
def test_whatever_a_batch_looks_like_it_is_read_or_refused(value: Any) -> None:
    for reply in (
        value,
        {"id": "batch_1", "status": "x", "errors": value, "request_counts": value},
    ):
        try:
            state = batches.read_batch(reply)
        except PerplexityError:
            continue
        assert state.status in (*batches.RUNNING, *batches.ENDED)
