"""What the service says of a failure, read without trust."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from requests.structures import CaseInsensitiveDict

from ipyperplexity import errors
from ipyperplexity.wire import problems

NOW = 1_796_000_000.0
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["error", "message", "type", "code", "param", "detail", "loc", "msg", "text", "error_code"]), inner, max_size=4
    ),
)  # fmt: skip
HEADERS = st.dictionaries(
    st.sampled_from(["Retry-After", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-remaining",
                     "x-request-id", "Content-Type", "cf-mitigated"]),
    st.text(st.characters(max_codepoint=255), max_size=30) | st.integers(-5, 10**12).map(str)
    | st.sampled_from(["0", "Wed, 21 Oct 2015 07:28:00 GMT", "Thu, 99 Foo 0000 99:99:99 XYZ", "text/html"]),
)  # fmt: skip


@given(st.integers(300, 599), HEADERS, JSON.map(json.dumps).map(str.encode) | st.binary())
def test_any_reply_gives_an_error_with_a_message(
    status: int, headers: dict[str, str], body: bytes
) -> None:
    error = problems.from_http(status, CaseInsensitiveDict(headers), body, NOW)
    assert isinstance(error, errors.PerplexityError)
    assert error.message.isprintable() and 0 < len(error.message) < 700
    assert error.status_code == status
    assert error.retry_after is None or error.retry_after >= 0


@given(JSON)
def test_any_failed_run_gives_an_error_with_a_message(error: Any) -> None:
    failure = problems.from_run(error, request_id="resp_1")
    assert failure.message.isprintable() and 0 < len(failure.message) < 700
    assert failure.request_id == "resp_1"


@pytest.mark.parametrize(("status", "kind"), [
    (500, errors.ServerError), (501, errors.ServerError), (599, errors.ServerError),
    (451, errors.InvalidRequestError), (499, errors.InvalidRequestError),
])  # fmt: skip
def test_a_status_without_a_line_of_its_own_goes_by_its_hundred(
    status: int, kind: type[errors.PerplexityError]
) -> None:
    assert type(problems.from_http(status, {}, b"", NOW)) is kind


def test_the_word_of_the_service_says_more_than_the_status() -> None:
    body = json.dumps({"error": {"message": "no", "type": "invalid_model"}}).encode()
    assert type(problems.from_http(500, {}, body, NOW)) is errors.InvalidRequestError
    body = json.dumps(
        {"error": {"message": "no", "type": "error", "code": "rate_limit_exceeded"}}
    ).encode()
    assert type(problems.from_http(400, {}, body, NOW)) is errors.RateLimitError


@pytest.mark.parametrize("text", [
    "You have run out of credits", "insufficient quota", "Billing hard limit reached",
    "Your balance is too low", "payment required",
])  # fmt: skip
@pytest.mark.parametrize("status", [401, 403, 429])
def test_words_about_money_make_it_a_question_of_quota(text: str, status: int) -> None:
    body = json.dumps({"error": {"message": text}}).encode()
    assert type(problems.from_http(status, {}, body, NOW)) is errors.QuotaError


def test_a_page_of_prose_about_attention_is_no_bot_check_unless_it_is_html() -> None:
    body = json.dumps({"error": {"message": "Just a moment, attention required"}}).encode()
    assert not problems.is_challenge({"content-type": "application/json"}, body)
    assert problems.is_challenge({"content-type": "text/html"}, b"<title>Just a moment...</title>")
    assert problems.is_challenge({}, b"  <html><script src='/cdn-cgi/challenge-platform/x'>")
    assert problems.is_challenge({"cf-mitigated": "challenge"}, b"")
    assert problems.is_challenge({}, b"<html>Please Enable JavaScript and cookies to go on")
    assert problems.is_challenge({}, b"<div class='cf-browser-verification'>")


@pytest.mark.parametrize(("body", "words", "field"), [
    ({"detail": [{"loc": ["body", "tools", 0, "FunctionTool", "name"], "msg": "Field required"}]},
     "tools.0.FunctionTool.name: Field required", "tools"),
    ({"detail": [{"loc": ["body", "top_k"], "type": "extra_forbidden"}]}, "top_k: extra_forbidden", "top_k"),
    ({"detail": [{"loc": ["body", "top_k"]}]}, "top_k", "top_k"),
    ({"detail": [{"loc": ["body"], "msg": "Input should be an object"}]}, "Input should be an object", None),
    ({"detail": ["too many", None, {"msg": "and more"}]}, "too many; and more", None),
    ({"detail": {"loc": ["body", "model"], "msg": "unknown"}}, "model: unknown", "model"),
    ({"detail": {"message": "no such thing", "param": "model"}}, "no such thing", "model"),
    ({"detail": {"error": "no such thing"}}, "no such thing", None),
    ({"error": "no such thing", "message": "other"}, "no such thing", None),
    ({"message": "no such thing", "type": "odd", "param": "model"}, "no such thing", "model"),
    ({"text": "The code is wrong.", "error_code": "INVALID_OTP"}, "The code is wrong.", None),
    ({"error_code": "INVALID_OTP"}, "INVALID_OTP", None),
    ({"error_message": "try later", "error_code": "X"}, "try later", None),
])  # fmt: skip
def test_a_refusal_is_read_in_each_of_its_shapes(body: Any, words: str, field: str | None) -> None:
    error = problems.from_http(422, {}, json.dumps(body).encode(), NOW)
    assert type(error) is errors.InvalidRequestError
    assert error.message == f"The service refused the request: {words}"
    assert error.field == field


def test_an_error_code_of_the_web_endpoint_is_a_word_like_any_other() -> None:
    body = json.dumps({"text": "Slow down.", "error_code": "RATE_LIMIT_EXCEEDED"}).encode()
    assert type(problems.from_http(400, {}, body, NOW)) is errors.RateLimitError


@given(st.sampled_from([400, 401, 403, 418, 429, 500]), st.text(max_size=30))
def test_the_services_own_words_can_be_taken_out_again(status: int, text: str) -> None:
    body = json.dumps({"error": {"message": text}}).encode()
    error = problems.from_http(status, {}, body, NOW)
    said = problems.own_words(error)
    assert said == "" or error.message.endswith(f": {said}")
    assert said == " ".join("".join(c if c.isprintable() else " " for c in text).split())
