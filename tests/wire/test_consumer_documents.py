"""Chunks, snapshots and patches of a perplexity.ai stream add up to the text that was meant."""

from __future__ import annotations

import copy
import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.wire.consumer_documents import MAX_GAP, UNCHANGED, Document, Documents, splice
from tests.wire.consumer_streams import (
    Record,
    completed,
    diff_block,
    patch,
    pending,
    read,
    text_block,
)

# --- the table of consumer-web 2.6 ----------------------------------------------------------------

TABLE: dict[str, tuple[list[Record], str, list[str] | None]] = {
    "1 append": ([text_block(["a", "b"], 0), text_block(["c"], 2)], "abc", ["a", "b", "c"]),
    "2 the last chunk grows": (
        [text_block(["Hello ", "wor"], 0), text_block(["world"], 1)], "Hello world", ["Hello ", "world"]),
    "3 a shorter overlap cuts the tail": (
        [text_block(["a", "b", "c"], 0), text_block(["X"], 1)], "aX", ["a", "X"]),
    "4 reset": ([text_block(["a", "b"], 0), text_block(["n"], 0)], "n", ["n"]),
    "5 no offset replaces": ([text_block(["a", "b"]), text_block(["n"])], "n", ["n"]),
    "6 a negative offset replaces": ([text_block(["a", "b"]), text_block(["n"], -3)], "n", ["n"]),
    "7 a gap keeps its place": (
        [text_block(["a"], 0), text_block(["z"], 5)], "az", ["a", "", "", "", "", "z"]),
    "8 out of order, the end is authoritative": (
        [text_block(["a"], 0), text_block(["c"], 2), text_block(["b"], 1), text_block(answer="abc")],
        "abc", ["a", "b"]),
    "9 a frame sent again": (
        [text_block(["a", "b"], 0), text_block(["b"], 1), text_block(["b"], 1)], "ab", ["a", "b"]),
    "10 an empty list with an offset cuts": (
        [text_block(["a", "b"]), text_block([], 1)], "a", ["a"]),
    "11 only an answer": ([text_block(["a", "b"]), text_block(answer="FULL")], "FULL", ["a", "b"]),
    "12 an answer of null is none": (
        [text_block(["a"]), text_block(["b"], 1, None)], "ab", ["a", "b"]),
    "13 chunks of null are none": ([text_block(["a"]), text_block(None, answer="A")], "A", ["a"]),
    "14 a stray chunk after the answer": (
        [text_block(answer="long authoritative"), text_block(["tail"], 3)], "long authoritative", None),
    "14 but from 0 on it is begun anew": (
        [text_block(answer="long authoritative"), text_block(["tail"], 0)], "tail", ["tail"]),
    "14 and chunks that outgrow it count": (
        [text_block(["He"], 0, "He"), text_block(["llo"], 1)], "Hello", ["He", "llo"]),
    "15 characters beyond 16 bits": (
        [text_block(["😀", "b"], 0), text_block(["X"], 1)], "😀X", ["😀", "X"]),
    "16 an offset with a fraction": (
        [text_block(["a", "b", "c"]), text_block(["Q"], 1.5)], "aQ", ["a", "Q"]),
    "16 a truth value is no offset": ([text_block(["a", "b"]), text_block(["Q"], True)], "Q", ["Q"]),
    "16 not a number is no offset": (
        [text_block(["a", "b"]), text_block(["Q"], math.nan)], "Q", ["Q"]),
    "an empty answer is none": ([text_block(["a"]), text_block([], answer="")], "a", ["a"]),
    "what is no text keeps its place": ([text_block(["a", 5, None, "b"], 0)], "ab", ["a", "", "", "b"]),
}  # fmt: skip


@pytest.mark.parametrize(("blocks", "text", "chunks"), TABLE.values(), ids=TABLE)
def test_the_splice_rule_row_by_row(
    blocks: list[Record], text: str, chunks: list[str] | None
) -> None:
    documents = Documents()
    for block in copy.deepcopy(blocks):
        documents.take([block])
    found = documents.named("ask_text")
    assert found is not None
    if chunks is not None:
        assert found.fields["markdown_block"]["chunks"] == chunks
    seen = read([*map(pending, blocks), completed()])
    assert seen.error is None and seen.text == text


@pytest.mark.parametrize("offset", [10**6, 10**30, 1e300])
def test_an_absurd_offset_does_not_fill_the_memory(offset: float) -> None:
    chunks = ["a"]
    splice(chunks, ["z"], offset)
    assert chunks == ["a", "z"]


def slow_splice(chunks: list[str], pieces: list[str], offset: int | None) -> list[str]:
    """Say the same rule anew, place by place."""
    start = offset if offset is not None and offset > 0 else 0
    result = [chunks[n] if n < len(chunks) else "" for n in range(start)]
    for piece in pieces:
        result.append(piece)
    return result


CHUNKS = st.lists(st.text("ab ", max_size=2), max_size=6)


@settings(max_examples=300, deadline=None)
@given(CHUNKS, CHUNKS, st.none() | st.integers(-3, 12))
def test_a_splice_is_what_a_slow_model_says(
    have: list[str], pieces: list[str], offset: int | None
) -> None:
    chunks = list(have)
    first = splice(chunks, pieces, offset)
    assert chunks == slow_splice(have, pieces, offset)
    assert chunks[:first] == have[:first]
    assert first <= max(len(have), len(chunks))
    if chunks != have and first < len(chunks):
        assert have[first : first + 1] != chunks[first : first + 1]


# --- patches --------------------------------------------------------------------------------------

BASE = patch(
    "", {"chunks": ["Oslo "], "chunk_starting_offset": 0, "progress": "IN_PROGRESS"}, "replace"
)


def markdown(*patches: Any, base: bool = True) -> dict[str, Any]:
    document = Document("ask_text")
    document.take(diff_block(*([copy.deepcopy(BASE)] if base else []), *patches))
    return dict(document.fields["markdown_block"])


def test_the_example_of_the_notes() -> None:
    first = diff_block(BASE)
    second = diff_block(
        patch("/chunks/1", "is in "),
        patch("/chunks/-", "Norway."),
        patch("/progress", "DONE", "replace"),
    )
    seen = read([pending(first), pending(second), completed()])
    assert seen.text == "Oslo is in Norway."


PATCHES: dict[str, tuple[list[Any], list[str]]] = {
    "appending by index": ([patch("/chunks/1", "x")], ["Oslo ", "x"]),
    "appending by dash": ([patch("/chunks/-", "x")], ["Oslo ", "x"]),
    "inserting": ([patch("/chunks/0", "x")], ["x", "Oslo "]),
    "replacing": ([patch("/chunks/0", "x", "replace")], ["x"]),
    "removing": ([patch("/chunks/0", op="remove")], []),
    "all chunks at once": ([patch("/chunks", ["p", "q"], "replace")], ["p", "q"]),
    "no word for what to do": ([patch("/chunks/0", "x", None)], ["x"]),
    "no word, at the end": ([patch("/chunks/1", "x", None)], ["Oslo ", "x"]),
    "the field's own name in front": ([patch("/markdown_block/chunks/-", "x")], ["Oslo ", "x"]),
    "moving": ([patch("/chunks/-", "x"), {"op": "move", "from": "/chunks/0", "path": "/chunks/1"}], ["x", "Oslo "]),
    "copying": ([{"op": "copy", "from": "/chunks/0", "path": "/chunks/-"}], ["Oslo ", "Oslo "]),
    "an unknown word": ([patch("/chunks/0", "x", "frobnicate"), patch("/chunks/-", "y")], ["Oslo ", "y"]),
    "a path that leads nowhere": ([patch("/a/b/c", 1, "replace"), patch("/chunks/-", "y")], ["Oslo ", "y"]),
    "a path that is none": ([patch("chunks", 1), patch("/chunks/-", "y")], ["Oslo ", "y"]),
    "a path of null": ([{"op": "add", "path": None, "value": 1}, patch("/chunks/-", "y")], ["Oslo ", "y"]),
    "a chunk far behind the end": ([patch(f"/chunks/{MAX_GAP * 9}", "x"), patch("/chunks/-", "y")], ["Oslo ", "y"]),
    "a gap keeps its place": ([patch("/chunks/3", "x")], ["Oslo ", "", "", "x"]),
    "removing what is not there": ([patch("/chunks/7", op="remove"), patch("/chunks/-", "y")], ["Oslo ", "y"]),
    "a test that fails": ([patch("/chunks/0", "z", "test"), patch("/chunks/-", "y")], ["Oslo ", "y"]),
    "a move whose goal is wrong": (
        [{"op": "move", "from": "/chunks/0", "path": "/no/where"}, patch("/chunks/-", "y")], ["Oslo ", "y"]),
    "removing all": ([patch("", op="remove"), patch("/chunks/-", "y")], ["Oslo ", "y"]),
    "patches that are none": ([None, 5, [], {}, "add", patch("/chunks/-", "y")], ["Oslo ", "y"]),
    "a chunk that is no text": ([patch("/chunks/-", {"a": 1}), patch("/chunks/-", "y")], ["Oslo ", "", "y"]),
    "a part with its own offset": (
        [patch("", {"chunks": ["is"], "chunk_starting_offset": 1}, "replace")], ["Oslo ", "is"]),
    "wrapped in the field's name": (
        [patch("", {"markdown_block": {"chunks": ["n"]}}, "replace")], ["n"]),
}  # fmt: skip


@pytest.mark.parametrize(("patches", "chunks"), PATCHES.values(), ids=PATCHES)
def test_a_patch_does_what_it_says_or_nothing(patches: list[Any], chunks: list[str]) -> None:
    assert markdown(*copy.deepcopy(patches))["chunks"] == chunks


def test_patches_without_a_document_begin_one() -> None:
    made = markdown(patch("/chunks/0", "a"), patch("/chunks/-", "b"), base=False)
    assert made["chunks"] == ["a", "b"]
    late = markdown(patch("/chunks/2", "c"), base=False)
    assert late["chunks"] == ["", "", "c"]


def test_escaped_names_are_unescaped() -> None:
    made = markdown(patch("/a~1b", 1), patch("/m~0n", 2))
    assert made["a/b"] == 1 and made["m~n"] == 2


def test_a_growing_answer_as_a_whole_value() -> None:
    records = [
        pending(diff_block(patch("", {"answer": text}, op)))
        for text, op in (("He", "replace"), ("Hello", None), ("Hello you", "add"))
    ]
    seen = read([*records, completed()])
    assert seen.text == "Hello you" and len(seen.events) == 5


def test_lists_of_sources_and_steps_are_patched_too() -> None:
    document = Document("web_results")
    first = patch("", {"web_results": [{"url": "u"}]}, "replace")
    document.take(
        diff_block(first, patch("/web_results/1", {"url": "v"}), block="web_result_block")
    )
    document.take(diff_block(patch("/web_results/0/name", "N"), block="web_result_block"))
    assert document.fields["web_result_block"]["web_results"] == [
        {"url": "u", "name": "N"},
        {"url": "v"},
    ]


def test_the_same_patches_for_two_usages_do_not_double_the_text() -> None:
    steps = [BASE, patch("/chunks/1", "is "), patch("/chunks/2", "it.")]
    records = [
        pending(
            diff_block(copy.deepcopy(step), usage="ask_text"),
            diff_block(copy.deepcopy(step), usage="ask_text_0_markdown"),
        )
        for step in steps
    ]
    seen = read([*records, completed()])
    assert seen.text == "Oslo is it." and len(seen.events) == 5


@pytest.mark.parametrize(
    "block",
    [
        {"intended_usage": "ask_text", "diff_block": None},
        {"intended_usage": "ask_text", "diff_block": {"field": None, "patches": [patch("/a", 1)]}},
        {"intended_usage": "ask_text", "diff_block": {"field": "markdown_block", "patches": {}}},
        {"intended_usage": "ask_text", "markdown_block": "text"},
        {"intended_usage": 5, "markdown_block": {"chunks": "no list"}},
    ],
)
def test_a_malformed_block_does_not_disturb_the_others(block: Record) -> None:
    seen = read([pending(text_block(["a"], 0)), pending(block, text_block(["b"], 1)), completed()])
    assert seen.error is None and seen.text == "ab"


def test_a_later_list_takes_the_place_of_an_earlier_one_and_null_does_not() -> None:
    documents = Documents()
    for value in ([{"url": "a"}], [{"url": "b"}], None):
        documents.take(
            [{"intended_usage": "web_results", "web_result_block": {"web_results": value}}]
        )
    assert documents.blocks() == [
        {"intended_usage": "web_results", "web_result_block": {"web_results": [{"url": "b"}]}}
    ]


# --- patches and snapshots agree --------------------------------------------------------------------


@st.composite
def cut_answers(draw: st.DrawFn) -> tuple[list[list[str]], str]:
    """Draw an answer's chunks in records as they come, and its final answer or none."""
    word = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
    records = draw(st.lists(st.lists(word, max_size=4), min_size=1, max_size=8))
    whole = "".join(chunk for record in records for chunk in record)
    return records, draw(st.sampled_from(["", whole, f"{whole}[2]", "other"]))


def as_snapshots(records: list[list[str]], answer: str) -> list[Record]:
    made, at = [], 0
    for chunks in records:
        made.append(pending(text_block(chunks, at, usage="ask_text_0_markdown")))
        at += len(chunks)
    last = [text_block(answer=answer, usage="ask_text_0_markdown")] if answer else []
    return [*made, completed(*last)]


def as_patches(records: list[list[str]], answer: str, dash: bool) -> list[Record]:
    made, at = [], 0
    for chunks in records:
        patches = (
            [patch("", {"chunks": [], "progress": "IN_PROGRESS"}, "replace")] if not made else []
        )
        for chunk in chunks:
            patches.append(patch("/chunks/-" if dash else f"/chunks/{at}", chunk))
            at += 1
        made.append(pending(diff_block(*patches, patch("/progress", at, "replace"))))
    last = [diff_block(patch("/answer", answer))] if answer else []
    return [*made, completed(*last)]


@settings(max_examples=150, deadline=None)
@given(cut_answers(), st.booleans())
def test_patches_give_what_snapshots_give_at_every_record(
    made: tuple[list[list[str]], str], dash: bool
) -> None:
    snapshots, patches = as_snapshots(*made), as_patches(*made, dash)
    for count in range(1, len(snapshots) + 1):
        whole, patched = read(snapshots[:count]), read(patches[:count])
        assert whole.text == patched.text
        assert type(whole.error) is type(patched.error)
        assert [type(event) for event in whole.events] == [type(event) for event in patched.events]


@settings(max_examples=150, deadline=None)
@given(cut_answers(), st.booleans(), st.data())
def test_a_stream_may_change_from_one_form_to_the_other(
    made: tuple[list[list[str]], str], dash: bool, data: st.DataObject
) -> None:
    snapshots, patches = as_snapshots(*made), as_patches(*made, dash)
    mixed = [snapshots[0]]
    for whole, patched in zip(snapshots[1:], patches[1:], strict=True):
        mixed.append(data.draw(st.sampled_from([whole, patched])))
    if not made[0][0]:  # an empty first record begins nothing that could be patched
        return
    assert read(mixed).text == read(snapshots).text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
PATHS = st.sampled_from([
    "", "/", "/chunks", "/chunks/0", "/chunks/-", "/chunks/-1", "/chunks/01", "/chunks/0/0", "/answer", "//", "x",
    "/markdown_block", "/markdown_block/chunks/0", "/a/0", "/a/-", "/a/b/c", "/~", "/~2", "/chunks/99999999999999999999",
]) | st.text(max_size=4)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "op": st.sampled_from(
                    ["add", "replace", "remove", "move", "copy", "test", "x", None, 5, []]
                ),
                "path": PATHS | JSON,
                "from": PATHS | JSON,
                "value": JSON,
            },
        ),
        max_size=8,
    ),
    st.sampled_from(["markdown_block", "workflow_block", "", "a"]),
)
def test_no_patch_can_break_the_reader(patches: list[Any], block: str) -> None:
    made = diff_block(*patches, usage="ask_text", block=block)
    seen = read(
        [pending(text_block(["a"], 0)), pending(made), pending(text_block(["b"], 1)), completed()]
    )
    assert seen.error is None


# --- work -----------------------------------------------------------------------------------------


def test_what_changed_is_told_exactly() -> None:
    document = Document("ask_text")
    document.take(text_block(["a", "b"], 0))
    assert document.looked_at() == 0 and document.looked_at() == UNCHANGED
    document.take(text_block(["c"], 2))
    assert document.looked_at() == 2
    document.take(text_block(["a", "b", "c", "d"], 0))
    assert document.looked_at() == 3
    document.take(text_block(["a", "b", "c", "d"], 0))
    assert document.looked_at() == 4
    document.take(diff_block(patch("/chunks/4", "e"), patch("/progress", "DONE")))
    assert document.looked_at() == 4
    document.take(diff_block(patch("/chunks/-", "f")))
    assert document.looked_at() == 5
    document.take(diff_block(patch("/chunks/1", "B", "replace")))
    assert document.looked_at() == 1


def test_patches_are_applied_by_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    import jsonpatch

    applied: list[str] = []
    original = jsonpatch.JsonPatch.apply

    def counting(self: Any, *arguments: Any, **options: Any) -> Any:
        applied.append(str(self))
        return original(self, *arguments, **options)

    monkeypatch.setattr(jsonpatch.JsonPatch, "apply", counting)
    assert markdown(patch("/chunks/-", "x"))["chunks"] == ["Oslo ", "x"]
    assert len(applied) == 1


def test_a_stream_without_patches_does_not_load_the_library() -> None:
    script = """
import sys
from ipyperplexity.question import Question
from ipyperplexity.wire.consumer import WIRE
from ipyperplexity.wire.sse import Frame
frame = Frame("", '{"status": "COMPLETED", "text": "x"}')
list(WIRE.fold([frame], WIRE.request(Question("Why?"))))
sys.exit("jsonpatch" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0
