"""A failure that perplexity.ai reports inside a good reply is a failure, and keeps what came."""

from __future__ import annotations

from typing import Any

import pytest

from ipyperplexity import errors
from tests.wire.consumer_streams import (
    Record,
    completed,
    failed,
    page,
    pending,
    read,
    read_body,
    source_block,
    text_block,
)


def test_f6_an_error_sentence_is_an_error_and_never_an_answer() -> None:
    seen = read([{"status": "FAILED", "final": True, "text": "Error in processing query."}])
    assert "Error in processing query" in failed(seen, errors.StreamError).message
    assert seen.text == ""
    seen = read([completed(text="Error in processing query.")])
    assert failed(seen, errors.StreamError) and seen.text == ""


def test_f8_a_failure_inside_a_good_reply_keeps_the_text_before_it() -> None:
    records = [
        pending(text_block(["Part"], 0)),
        {"status": "FAILED", "error_code": "GENERIC_FAILED_RESPONSE", "error_message": "try later"},
    ]
    seen = read(records)
    assert "try later" in failed(seen, errors.StreamError).message and seen.text == "Part"


@pytest.mark.parametrize(
    ("record", "kind", "words"),
    [
        (
            {"error_code": "FREE_TIER_RATE_LIMITED", "status": "failed"},
            errors.RateLimitError,
            "FREE_TIER",
        ),
        (
            {"error_code": "SOME_RATE_LIMIT_X", "error_message": "slow"},
            errors.RateLimitError,
            "slow",
        ),
        ({"error_code": "quota_exhausted"}, errors.RateLimitError, "quota_exhausted"),
        ({"error_code": "UNAUTHORIZED"}, errors.AuthenticationError, "login"),
        ({"error_code": "GENERIC_FAILED_RESPONSE"}, errors.StreamError, "GENERIC"),
        ({"error_code": "NEW_IN_2031"}, errors.StreamError, "NEW_IN_2031"),
        ({"error_code": 17}, errors.StreamError, "17"),
        ({"error_message": "odd"}, errors.StreamError, "odd"),
        ({"status": "FAILED"}, errors.StreamError, "failed"),
        ({"status": "failed", "text": "Half"}, errors.StreamError, "failed"),
        ({"status": "BLOCKED"}, errors.StreamError, "blocked"),
        ({"status": "COMPLETED", "error_message": "late"}, errors.StreamError, "late"),
        ({"error": "no such thread"}, errors.StreamError, "no such thread"),
        ({"error": {"code": "RATE_LIMITED", "message": "m"}}, errors.RateLimitError, "m"),
        ({"detail": "not allowed"}, errors.StreamError, "not allowed"),
        ({"detail": [{"loc": ["body"], "msg": "bad field"}]}, errors.StreamError, "bad field"),
    ],
)
def test_each_failure_has_its_error_and_keeps_what_came(
    record: Record, kind: type[errors.PerplexityError], words: str
) -> None:
    seen = read([pending(text_block(["Part"], 0)), record, completed()])
    error = failed(seen, kind)
    assert words in error.message and seen.text == "Part" and error.hint
    assert words in failed(read_body(record), kind).message


def test_f22_a_failure_names_the_model_that_was_asked_for() -> None:
    seen = read([{"status": "FAILED", "error_code": "GENERIC_FAILED_RESPONSE"}], model="gpt56_sol")
    error = failed(seen, errors.StreamError)
    assert "gpt56_sol" in error.message and error.hint is not None and "plan" in error.hint


def test_what_is_null_is_no_failure() -> None:
    nothing = dict.fromkeys(
        ("error_code", "error_message", "error", "detail", "blocks", "sources_list")
    )
    assert read([completed(text="Yes", **{**nothing, "blocks": None})]).error is None


def test_a_bad_record_is_skipped_counted_and_told() -> None:
    records = [
        pending(text_block(["a"], 0)),
        '{"status": ',
        "[1]",
        '"x"',
        pending(text_block(["c"], 2)),
        completed(),
    ]
    seen = read(records)
    assert seen.text == "ac" and seen.error is None
    assert seen.end.warnings == (
        "3 records of the stream made no sense; the text may lack a piece.",
    )


@pytest.mark.parametrize("records", [[], ["nonsense"], ["{}"], ["[]", "5"]])
@pytest.mark.parametrize("end", [True, False])
def test_a_stream_with_nothing_in_it_is_a_failure(records: list[str], end: bool) -> None:
    assert "nothing that can be read" in failed(read(records, end=end), errors.StreamError).message


@pytest.mark.parametrize("reply", [None, [], "text", 5, {}, {"hello": 1}])
def test_a_reply_that_is_no_answer_is_a_failure(reply: Any) -> None:
    assert "not an answer" in failed(read_body(reply), errors.StreamError).message


def test_a_whole_reply_is_read_like_a_stream() -> None:
    seen = read_body(completed(text_block(answer="Yes [1]"), source_block(page("https://a.test"))))
    assert seen.text == "Yes [1]" and len(seen.sources) == 1 and seen.end.status == "completed"
    failed(read_body(pending(text_block(["Part"], 0))), errors.StreamError)
