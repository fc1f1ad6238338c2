"""Whatever perplexity.ai sends, in whatever cuts, reading it is safe and its work is linear."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity import errors
from ipyperplexity.events import (
    ReasoningDelta,
    SourcesFound,
    TextDelta,
    TextReplaced,
)
from ipyperplexity.wire import consumer_text
from tests.wire.consumer_streams import (
    Outcome,
    Record,
    completed,
    diff_block,
    frames,
    page,
    patch,
    pending,
    pieces_of,
    read,
    read_body,
    read_bytes,
    source_block,
    step,
    steps,
    text_block,
    urls,
    workflow,
)

# --- any stream, any cut ---------------------------------------------------------------------------

WHOLE = [
    pending(backend_uuid="b-1", read_write_token="t", display_model="gpt54"),
    pending(source_block(page("https://a.test"), page("https://b.test/é"))),
    pending(
        text_block(["Is é", "🐍 "], 0), text_block(["Is é", "🐍 "], 0, usage="ask_text_0_markdown")
    ),
    pending(
        diff_block(patch("/chunks/2", "so [2]")), text=steps(step("SEARCH_WEB", queries=["q"]))
    ),
    pending(final=True, final_sse_message=False),
    completed(
        text_block(answer="Is é🐍 so [1]", usage="ask_text_0_markdown"), related_queries=["?"]
    ),
]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 2, 7, 100, 5000]))
def test_the_cuts_between_bytes_change_nothing(seed: int, largest: int) -> None:
    seen = read_bytes(pieces_of(frames(WHOLE), seed, largest))
    assert seen.events == read_bytes([frames(WHOLE)]).events
    assert seen.text == "Is é🐍 so [1]" and seen.end.model == "gpt54"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=3)
    | st.sampled_from(["COMPLETED", "ask_text", "\ud800", 10**400, '[{"step_type": "FINAL"}]', "turbo", "answer"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from([
            "status", "final", "final_sse_message", "text_completed", "blocks", "intended_usage", "markdown_block", "chunks",
            "chunk_starting_offset", "answer", "diff_block", "field", "patches", "op", "path", "value", "from", "text",
            "web_result_block", "web_results", "sources_mode_block", "sources_list", "url", "name", "timestamp", "workflow_block",
            "steps", "items", "payload", "text_payload", "variant", "plan_block", "goals", "description", "id", "step_type", "content",
            "queries", "questions", "research_report", "source_content", "backend_uuid", "read_write_token", "display_model",
            "related_queries", "followups", "error_code", "detail", "x",
        ]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
BLOCKS = st.lists(
    st.dictionaries(
        st.sampled_from(["intended_usage", "markdown_block", "diff_block", "web_result_block", "workflow_block",
                         "plan_block", "sources_mode_block", "unified_assets_block"]), VALUES, max_size=3), max_size=3)  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(
    st.lists(
        VALUES
        | st.fixed_dictionaries(
            {}, optional={"blocks": BLOCKS, "text": VALUES, "sources_list": VALUES}
        ),
        max_size=6,
    )
)
def test_no_record_breaks_the_reader_with_anything_but_its_own_errors(records: list[Any]) -> None:
    seen = read_bytes([frames([json.dumps(record) for record in records])])
    for record in records:
        read_body(record)
    for event in seen.events:
        repr(event)
        if isinstance(event, TextDelta | TextReplaced | ReasoningDelta):
            event.text.encode()
    if seen.error is None:
        json.dumps(seen.end.raw, ensure_ascii=False).encode()


def test_records_that_are_nested_too_deep_are_a_failure_or_nothing() -> None:
    deep = (
        '{"status":"PENDING","blocks":[{"intended_usage":"u","x_block":'
        + '{"a":' * 900
        + "1"
        + "}" * 900
        + "}]}"
    )
    seen = read([deep, completed(text="x")])
    assert seen.error is None or isinstance(seen.error, errors.StreamError)
    bottomless = '{"blocks":' + "[" * 100_000
    assert read([bottomless, completed(text="x")]).text == "x"


# --- work ------------------------------------------------------------------------------------------


def counted_characters(
    records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, Outcome]:
    """Return how many pieces are joined while a stream is read."""
    count = 0
    joined = consumer_text._joined

    def counting(pieces: Any) -> str:
        nonlocal count
        count += len(pieces)
        return joined(pieces)

    monkeypatch.setattr(consumer_text, "_joined", counting)
    seen = read_bytes([frames(records)])
    monkeypatch.undo()
    return count, seen


N = 2000


@pytest.mark.parametrize("form", ["snapshots", "patches", "growing chunks", "workflow"])
def test_the_work_is_linear_in_the_chunks(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/steps/1/items/0/payload/text_payload/chunks"
    makers = {
        "snapshots": lambda n: text_block([f"{n} "], n),
        "patches": lambda n: diff_block(patch(f"/chunks/{n}", f"{n} ")),
        "growing chunks": lambda n: text_block([f"{n - 1} ", f"{n} "][n == 0 :], max(0, n - 1)),
        "workflow": lambda n: diff_block(
            patch(f"{path}/{n}", f"{n} "), patch("/progress", n), usage="workflow_root", block="workflow_block"
        ),
    }  # fmt: skip
    begin = [pending(workflow(chunks=[], is_streaming=True))] if form == "workflow" else []
    records = [*begin, *(pending(makers[form](n)) for n in range(N)), completed()]
    count, seen = counted_characters(records, monkeypatch)
    assert seen.text == "".join(f"{n} " for n in range(N)) and len(seen.of(TextDelta)) == N
    assert count <= 6 * N


def test_whole_snapshots_are_looked_at_but_not_joined_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chunks = [f"{n} " for n in range(300)]
    records = [*(pending(text_block(chunks[: n + 1], 0)) for n in range(300)), completed()]
    count, seen = counted_characters(records, monkeypatch)
    assert seen.text == "".join(chunks) and count <= 6 * 300


def test_a_source_list_that_is_sent_again_with_every_record_stays_small() -> None:
    entries = [page(f"https://{n}.test") for n in range(20)]
    records = [{"status": "PENDING", "sources_list": entries[: 1 + n % 20]} for n in range(500)]
    seen = read([*records, completed(text="x")])
    assert urls(seen) == [(n + 1, f"https://{n}.test") for n in range(20)]
    assert len(seen.of(SourcesFound)) == 20
