"""A stream of perplexity.ai is read to its true end, and what it says beside the text is kept."""

from __future__ import annotations

import json

import pytest

from ipyperplexity import errors
from ipyperplexity.events import (
    Started,
)
from tests.wire.consumer_streams import (
    Record,
    completed,
    failed,
    frames,
    page,
    pending,
    pieces_of,
    read,
    read_bytes,
    source_block,
    text_block,
    urls,
)

# --- framing (pi-perplexity's stream tests) --------------------------------------------------------

FIXTURE = (
    b'data: {"status":"IN_PROGRESS","display_model":"glm_5_2","uuid":"u-1",\n'
    b'data: "blocks":[{"intended_usage":"ask_text_0_markdown","markdown_block":'
    b'{"chunks":["Hello ","wor"],"chunk_starting_offset":0}}]}\n\n'
    b'data: {"status":"COMPLETED","final":true,"blocks":[{"intended_usage":"ask_text_0_markdown",'
    b'"markdown_block":{"chunks":["world"],"chunk_starting_offset":1}}]}\n\n'
    b"data: [DONE]\n\n"
    b'data: {"text":"never read"}\n\n'
)


@pytest.mark.parametrize("size", [1, 5, 11, 4096])
def test_a_record_over_several_lines_is_joined_however_it_is_cut(size: int) -> None:
    seen = read_bytes(FIXTURE[at : at + size] for at in range(0, len(FIXTURE), size))
    assert seen.text == "Hello world" and seen.error is None
    assert seen.end.model == "glm_5_2" and seen.end.id == "u-1"
    (block,) = seen.end.raw["blocks"]
    assert block["markdown_block"]["chunks"] == ["Hello ", "world"]


@pytest.mark.parametrize("end", [True, False])
def test_neither_done_nor_end_of_stream_is_needed(end: bool) -> None:
    body = frames([completed(text_block(answer="Yes"))], end=end)
    assert read_bytes([body]).text == "Yes"


@pytest.mark.parametrize("marker", ["data: [DONE]\n\n", "event: end_of_stream\ndata: {}\n\n"])
def test_either_marker_ends_a_stream_that_says_nothing_else(marker: str) -> None:
    body = frames([pending(text_block(["Yes"], 0))], end=False) + marker.encode()
    seen = read_bytes([body])
    assert seen.error is None and seen.text == "Yes" and seen.end.status == "completed"


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x1c"])
def test_f24_a_line_separator_inside_the_json_stays_in_the_text(separator: str) -> None:
    escaped = {"\x1c": "\\u001c"}.get(separator, separator)
    body = f'data: {{"status":"COMPLETED","text":"a{escaped}b"}}\n\n'.encode()
    assert read_bytes(pieces_of(body, largest=3)).text == f"a{separator}b"


def test_a_record_without_its_blank_line_still_counts() -> None:
    body = frames([completed(text_block(answer="Yes"))], end=False).rstrip()
    assert read_bytes([body]).text == "Yes"


def test_a_character_cut_in_two_by_the_json_is_whole_again() -> None:
    records = [
        pending(text_block(["a\ud83d"], 0)),
        pending(text_block(["\ude00b"], 1)),
        pending(text_block(["c\ud83d"], 2)),
        completed(),
    ]
    seen = read(records)
    assert seen.text == "a😀bc\ufffd"
    json.dumps(seen.end.raw, ensure_ascii=False).encode()


# --- the end (consumer-web 2.3) --------------------------------------------------------------------


def test_a_pending_record_that_says_final_is_not_the_end() -> None:
    records = [
        pending(text_block(["He"], 0)),
        pending(final=True, final_sse_message=False, text_completed=True),
        completed(text_block(answer="Hello"), source_block(page("https://a.test"))),
    ]
    seen = read(records, end=True)
    assert seen.text == "Hello" and urls(seen) == [(1, "https://a.test")]


def test_it_is_an_end_when_nothing_follows() -> None:
    records = [pending(text_block(["He"], 0)), pending(final=True, final_sse_message=False)]
    seen = read(records)
    assert seen.error is None and seen.text == "He" and seen.end.status == "completed"


@pytest.mark.parametrize(
    "last",
    [
        {"status": "COMPLETED"},
        {"status": "completed"},
        {"final_sse_message": True},
        {"final": True},
        {"status": "PENDING", "final": True, "final_sse_message": True},
    ],
)
def test_nothing_is_read_after_the_last_record(last: Record) -> None:
    seen = read([pending(text_block(["Yes"], 0)), last, completed(text_block(answer="No"))])
    assert seen.error is None and seen.text == "Yes"


@pytest.mark.parametrize(
    "status", ["PENDING", "IN_PROGRESS", "STAGED", "REWRITING", "RESUMING", None]
)
def test_a_stream_that_breaks_off_is_a_failure_that_keeps_its_text(status: str | None) -> None:
    record = {"status": status, "backend_uuid": "b-1", "blocks": [text_block(["Part"], 0)]}
    seen = read([record])
    error = failed(seen, errors.StreamError)
    assert error.message == "The stream ended before the answer did." and error.request_id == "b-1"
    assert seen.text == "Part"


def test_a_run_that_was_stopped_is_incomplete() -> None:
    seen = read([
        pending(text_block(["Part"], 0), text_completed=False),
        completed(text_completed=False),
    ])  # fmt: skip
    assert seen.text == "Part" and seen.end.status == "incomplete"
    assert seen.end.finish_reason == "terminated"
    assert "before it was complete" in seen.end.warnings[0]


def test_text_completed_only_counts_in_the_last_record() -> None:
    seen = read([pending(text_block(["All"], 0), text_completed=False), completed()])
    assert seen.end.status == "completed" and seen.end.warnings == ()


# --- models ----------------------------------------------------------------------------------------


def test_f17_turbo_is_not_reported_but_warned_of() -> None:
    record = {
        "status": "COMPLETED",
        "final": True,
        "text": "x",
        "display_model": "turbo",
        "user_selected_model": "turbo",
    }
    seen = read([record], model="glm_5_2")
    assert seen.end.model == "glm_5_2"
    (warning,) = seen.end.warnings
    assert "turbo" in warning and "glm_5_2" in warning and "not logged in" in warning


@pytest.mark.parametrize(
    ("user", "display", "model"),
    [
        ("gpt54", "glm_5_2", "gpt54"),
        ("turbo", "glm_5_2", "glm_5_2"),
        ("gpt54", "turbo", "gpt54"),
        (None, "glm_5_2", "glm_5_2"),
        (None, None, "asked"),
    ],
)
def test_the_reported_model_is_the_first_named_that_is_not_turbo(
    user: str | None, display: str | None, model: str
) -> None:
    seen = read(
        [completed(text="x", user_selected_model=user, display_model=display)], model="asked"
    )
    assert seen.end.model == model and seen.end.warnings == ()


def test_turbo_is_no_surprise_to_who_asked_for_it() -> None:
    seen = read([completed(text="x", display_model="turbo")], model="turbo")
    assert seen.end.model == "turbo" and seen.end.warnings == ()


# --- what comes with it ----------------------------------------------------------------------------


def test_ids_come_on_several_records_and_the_last_that_is_not_empty_counts() -> None:
    seen = read([
        pending(uuid="u-1"),
        pending(backend_uuid="b-1", context_uuid="c-1", read_write_token="secret-token"),
        pending(backend_uuid="", read_write_token=None, thread_url_slug="why-xyz"),
        completed(text="x", related_queries=["And?", "And?", {"text": "Or?"}]),
    ])  # fmt: skip
    assert [event.id for event in seen.of(Started)] == ["u-1", "b-1"]
    assert seen.end.id == "b-1" and seen.end.stored
    assert seen.end.related == ("And?", "Or?")
    assert seen.end.thread == {
        "last_backend_uuid": "b-1",
        "read_write_token": "secret-token",
        "context_uuid": "c-1",
        "thread_url_slug": "why-xyz",
    }


def test_the_token_of_the_thread_shows_nowhere() -> None:
    block = {
        "intended_usage": "canvas",
        "canvas_block": {"read_write_token": "secret-token", "a": 1},
    }
    seen = read([completed(block, text="x", backend_uuid="b", read_write_token="secret-token")])
    assert "secret-token" not in repr(seen.events) + json.dumps(seen.end.raw)
    assert seen.end.raw["backend_uuid"] == "b" and seen.end.raw["blocks"][0]["canvas_block"] == {
        "a": 1
    }


def test_without_a_token_a_thread_cannot_be_gone_on_with() -> None:
    seen = read([completed(text="x", backend_uuid="b")])
    assert seen.end.thread == {} and not seen.end.stored


def test_follow_ups_are_found_in_all_their_places() -> None:
    block = {
        "intended_usage": "pending_followups",
        "pending_followups_block": {"followups": [{"text": "C?"}]},
    }
    seen = read(
        [completed(block, text="x", related_queries=["A?"], related_query_items=[{"text": "B?"}])]
    )
    assert seen.end.related == ("A?", "B?", "C?")


def test_the_raw_record_is_the_merged_one() -> None:
    seen = read([
        pending(text_block(["a"], 0), thread_title="T"),
        completed(text_block(["b"], 1), search_mode="SEARCH"),
    ])  # fmt: skip
    assert seen.end.raw["thread_title"] == "T" and seen.end.raw["search_mode"] == "SEARCH"
    assert seen.end.raw["status"] == "COMPLETED"
    assert seen.end.raw["blocks"][0]["markdown_block"]["chunks"] == ["a", "b"]
