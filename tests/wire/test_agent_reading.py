"""Whatever happens to the events of a stream, reading them is safe, and text given out stays."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity import errors
from ipyperplexity.events import (
    Event,
    Finished,
    ImagesFound,
    ReasoningDelta,
    Searching,
    SourcesFound,
    TextDelta,
    ToolCalled,
)
from ipyperplexity.wire.agent import fold, fold_body
from ipyperplexity.wire.sse import Frame
from tests.support.raw_server import agent_events

TEXT = "<think>Hm.</think>It is so.[1] And more é🐍.[2]"
SOURCES = [{"url": "https://a.example"}, {"url": "https://b.example", "date": "2026-01-02"}]


def stream() -> list[dict[str, Any]]:
    """Return a stream with every kind of event."""
    page = {"url": "https://p.example", "title": "P", "snippet": "s"}
    image = {"image_url": "https://i.example/x.png", "origin_url": "https://i.example", "width": 3}
    begin, *events = agent_events(TEXT, SOURCES, queries=["q"])
    second = {"item_id": "msg_2", "output_index": 2, "content_index": 0}
    extra: list[dict[str, Any]] = [
        {"type": "response.reasoning.fetch_url_queries", "urls": [page["url"]], "thought": "T"},
        {"type": "response.reasoning.fetch_url_results", "contents": [page]},
        {"type": "response.reasoning.image_search_results", "results": [image], "call_id": "c"},
        {"type": "response.output_item.done", "output_index": 0,
         "item": {"type": "fetch_url_results", "contents": [page]}},
        {"type": "response.output_item.done", "output_index": 0,
         "item": {"type": "finance_results", "results": [{"sources": [page, "https://f.example"]}]}},
        {"type": "response.output_text.delta", **second, "delta": "Post"},
        {"type": "response.output_text.done", **second, "text": "Postscript."},
        *call_events(dict(CALL), 3),
    ]  # fmt: skip
    end = events.pop()
    end["response"]["output"].append({
        "type": "message", "id": "msg_2", "content": [
            {"type": "output_text", "text": "Postscript.",
             "annotations": [{"type": "url_citation", "url": "https://n.example", "title": "N"}]}],
    })  # fmt: skip
    return [begin, *events[:4], *extra[:3], *events[4:], *extra[3:], end]


CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "add",
    "arguments": '{"a": 1}',
}


def call_events(call: dict[str, Any], index: int) -> list[dict[str, Any]]:
    """Return every event that a call may come with, and its arguments in pieces."""
    arguments = call["arguments"]
    begun = {**call, "arguments": "", "status": "in_progress"}
    where = {"item_id": call.get("id"), "output_index": index}
    named = "response.function_call_arguments"
    return [
        {"type": "response.output_item.added", "output_index": index, "item": begun},
        *({"type": f"{named}.delta", **where, "delta": char} for char in arguments),
        {"type": f"{named}.done", **where, "arguments": arguments},
        {"type": "response.output_item.done", "output_index": index, "item": call},
    ]


def frames(events: list[Any]) -> list[Frame]:
    return [Frame("", json.dumps(event)) for event in events]


def read(made: list[Frame]) -> tuple[list[Event], errors.PerplexityError | None]:
    """Fold; any error that is not one of ours comes through and fails the test."""
    events: list[Event] = []
    try:
        events.extend(fold(made))
    except errors.PerplexityError as error:
        return events, error
    return events, None


def calls_of(events: list[Event]) -> list[tuple[str, str, str]]:
    return [(e.call_id, e.name, e.arguments) for e in events if isinstance(e, ToolCalled)]


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def test_the_whole_stream_is_understood() -> None:
    events, failure = read(frames(stream()))
    assert failure is None
    assert text_of(events) == "It is so.[1] And more é🐍.[2]Postscript."
    assert "".join(e.text for e in events if isinstance(e, ReasoningDelta)) == "THm."
    last = next(event for event in reversed(events) if isinstance(event, SourcesFound))
    assert [(s.id, s.domain, s.kind) for s in last.sources] == [
        (1, "a.example", "search"),
        (2, "b.example", "search"),
        (3, "p.example", "fetch"),
        (4, "f.example", "annotation"),
        (5, "n.example", "annotation"),
    ]
    assert [e.queries for e in events if isinstance(e, Searching)] == [("q",)]
    assert [len(e.images) for e in events if isinstance(e, ImagesFound)] == [1]
    assert calls_of(events) == [("c1", "add", '{"a": 1}')]
    assert isinstance(events[-1], Finished) and events[-1].warnings == ()


def test_a_whole_reply_gives_the_same_as_a_stream() -> None:
    whole = stream()[-1]["response"]
    events = list(fold_body(whole))
    assert text_of(events) == "It is so.[1] And more é🐍.[2]Postscript."
    assert isinstance(events[-1], Finished)


# --- damage ---------------------------------------------------------------------------------------

JUNK = st.sampled_from([
    None, True, False, 0, -1, 1.5, 10**400, float("nan"), float("inf"), "", "x", "\ud800", "1",
    [], {}, [None], [[]], [{}], {"": None}, {"type": None}, ["a", 1], {"message": 5}, [1, {"a": []}],
])  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, ...]] = [path] if path else []
    pairs: Any = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in pairs:
        inner += places(item, (*path, key))
    return inner


PLACES = places(stream())


def damage(events: list[Any], path: tuple[Any, ...], value: Any, how: str) -> None:
    *way, last = path
    target: Any = events
    try:
        for step in way:
            target = target[step]
        if how == "set":
            target[last] = copy.deepcopy(value)  # junk set into itself is no JSON
        elif how == "delete":
            del target[last]
    except (KeyError, IndexError, TypeError):
        return  # an earlier damage took it away


@st.composite
def damaged(draw: st.DrawFn) -> list[Any]:
    events: list[Any] = stream()
    wounds = st.tuples(st.sampled_from(PLACES), JUNK, st.sampled_from(["set", "set", "delete"]))
    for wound in draw(st.lists(wounds, max_size=12)):
        damage(events, *wound)
    order = draw(st.sampled_from(["kept", "shuffled", "picked"]))
    if order == "shuffled":
        events = draw(st.permutations(events))
    elif order == "picked":
        chosen = draw(st.lists(st.integers(0, max(0, len(events) - 1)), max_size=40))
        events = [copy.deepcopy(events[n]) for n in chosen if n < len(events)]
    return events


@settings(max_examples=400, deadline=None)
@given(damaged())
def test_no_damage_makes_reading_fail_in_any_other_way_than_ours(events: list[Any]) -> None:
    made = frames(events)
    given_out, failure = read(made)
    assert (failure is None) is any(isinstance(event, Finished) for event in given_out)
    text = text_of(given_out)
    text.encode()
    # What a part of the stream gave out, all of it gives out too: nothing is taken back.
    for cut in range(0, len(made), 5):
        before, _ = read(made[:cut])
        assert text.startswith(text_of(before)) or is_held_back(before, text)


def is_held_back(before: list[Event], text: str) -> bool:
    """Whether the text ends in what may still become a ``<think>`` tag: shown only at an end."""
    shown = text_of(before)
    return shown.isspace() or "<think>".startswith(shown.strip())


@settings(max_examples=200, deadline=None)
@given(damaged())
def test_no_damage_makes_a_whole_reply_fail_in_any_other_way_than_ours(events: list[Any]) -> None:
    reply = events[-1].get("response") if events and isinstance(events[-1], dict) else events
    try:
        list(fold_body(reply))
    except errors.PerplexityError as error:
        assert error.message


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_losing_and_repeating_whole_events_never_doubles_or_loses_the_text(
    data: st.DataObject,
) -> None:
    events = stream()
    *middle, end = events
    kept = [
        e for e in middle if not e["type"].endswith(("delta", "done")) or data.draw(st.booleans())
    ]
    repeated = [
        again
        for event in kept
        for again in [event]
        * (2 if not event["type"].endswith("delta") and data.draw(st.booleans()) else 1)
    ]
    given_out, failure = read(frames([*repeated, end]))
    assert failure is None
    (finished,) = [event for event in given_out if isinstance(event, Finished)]
    text, whole = text_of(given_out), "It is so.[1] And more é🐍.[2]Postscript."
    if text != whole:  # deltas lost in the middle: never silently
        assert finished.warnings


@pytest.mark.parametrize("depth", [50, 500, 900, 980, 995, 5000])
@pytest.mark.parametrize("place", [
    lambda nest: {"type": "response.output_text.delta", "delta": "x", "item_id": nest},
    lambda nest: {"type": "response.completed", "response": {"output": [nest], "usage": nest}},
    lambda nest: {"type": "response.completed", "response": nest},
    lambda nest: {"type": nest},
    lambda nest: nest,
])  # fmt: skip
def test_deep_nesting_does_no_harm(depth: int, place: Callable[[Any], Any]) -> None:
    template = json.dumps(place("NEST"))
    data = template.replace('"NEST"', '{"a":[' * depth + "]}" * depth)
    twice = template.replace('"NEST"', '{"a":[' * depth + "1" + "]}" * depth)
    events, failure = read([Frame("", data), Frame("", twice), *frames(stream()[-1:])])
    if failure is None:
        assert isinstance(events[-1], Finished)


@pytest.mark.parametrize(
    "data", ['{"a": NaN}', " {} ", '{"type":"x"} junk', "[DONE] ", "\ufeff{}", "9" * 5000]
)
def test_odd_data_does_not_end_a_stream_by_accident(data: str) -> None:
    _, failure = read([Frame("", data), *frames(stream())])
    assert (failure is None) is ("DONE" not in data)


def test_json_with_blanks_around_it_counts() -> None:
    made = [Frame("", f" {frame.data}\n") for frame in frames(stream())]
    assert read(made) == read(frames(stream()))


def test_the_same_warning_is_given_once() -> None:
    events = stream()
    events[-1]["response"] |= {
        "status": "incomplete",
        "incomplete_details": {"reason": "max_steps"},
    }
    given_out, _ = read(frames(events))
    finished = given_out[-1]
    assert isinstance(finished, Finished)
    assert (finished.status, finished.finish_reason, len(finished.warnings)) == (
        "incomplete",
        "max_steps",
        1,
    )
    assert not finished.stored


def test_an_error_without_a_type_is_told_with_its_own_words() -> None:
    begin = stream()[0]
    broken = {"error": {"message": "quota gone", "type": "insufficient_quota"}}
    _, failure = read(frames([begin, broken]))
    assert isinstance(failure, errors.QuotaError) and "quota gone" in failure.message


def test_an_error_event_of_bare_text_is_told() -> None:
    _, failure = read([Frame("error", "the engine is on fire")])
    assert failure is not None and "on fire" in failure.message


def test_a_numeric_code_of_a_failed_run_says_what_kind_it_is() -> None:
    _, failure = read(frames([{"type": "error", "error": {"message": "slow down", "code": 429}}]))
    assert isinstance(failure, errors.RateLimitError)


def test_two_parts_with_the_same_words_are_both_given() -> None:
    where = {"type": "response.output_text.done"}
    events = [
        {**where, "item_id": "a", "output_index": 0, "content_index": 0, "text": " The"},
        {**where, "item_id": "b", "output_index": 1, "content_index": 0, "text": " The"},
        {**where, "item_id": "b", "output_index": 1, "content_index": 1, "text": " end"},
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
    ]
    found, failure = read(frames(events))
    assert failure is None and text_of(found) == " The The end"


def test_a_run_that_waits_for_a_tool_is_an_incomplete_answer() -> None:
    record = {"status": "requires_action", "output": []}
    found, failure = read(frames([{"type": "response.completed", "response": record}]))
    assert failure is None and isinstance(found[-1], Finished)
    assert found[-1].status == "incomplete" and "tool" in found[-1].warnings[0]


# --- function calls -------------------------------------------------------------------------------

FIRST = {**CALL, "thought_signature": "s"}
SECOND = {**CALL, "id": "fc_2", "call_id": "c2", "arguments": '{"b": 2}'}


def ending(*output: Any, status: str = "completed") -> dict[str, Any]:
    return {"type": "response.completed", "response": {"status": status, "output": [*output]}}


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_call_is_told_once_wherever_it_comes(data: st.DataObject) -> None:
    """Any of its places may be missing, as long as one has the whole of it."""
    labels = data.draw(st.sampled_from([("id", "call_id"), ("id",), ("call_id",), ()]))
    calls = [
        {k: v for k, v in call.items() if k in labels or k not in ("id", "call_id")}
        for call in (FIRST, SECOND)
    ]
    made: list[dict[str, Any]] = []
    for index, call in enumerate(calls):
        added, *pieces, whole, done = call_events(call, index)
        with_arguments = [
            [whole],
            [done],
            [done, whole],
            [added, *pieces] if "id" in labels or not labels else [done],
        ]
        chosen = data.draw(st.sampled_from(with_arguments))
        made += ([] if added in chosen or not data.draw(st.booleans()) else [added]) + chosen
    listed = data.draw(st.booleans()) or not all(
        any((e.get("item") or {}).get("name") and e.get("output_index") == n for e in made)
        for n in (0, 1)
    )
    found, failure = read(frames([*made, ending(*(calls if listed else []))]))
    assert failure is None
    assert [call[1:] for call in calls_of(found)] == [("add", '{"a": 1}'), ("add", '{"b": 2}')]
    assert len({call[0] for call in calls_of(found)}) == 2
    assert isinstance(found[-1], Finished)
    (kept,) = list(fold_body(ending(FIRST)["response"]))[:1]
    assert isinstance(kept, ToolCalled) and kept.signature == "s"  # type: ignore[attr-defined]


def test_a_call_in_a_whole_reply_comes_before_its_end() -> None:
    for status in ("completed", "requires_action"):
        calls_and_end = list(fold_body(ending(CALL, SECOND, status=status)["response"]))
        assert [type(event).__name__ for event in calls_and_end] == [
            "FunctionCall",
            "FunctionCall",
            "Finished",
        ]


def test_calls_of_a_run_that_failed_are_not_told() -> None:
    error = {"message": "broken"}
    failed = {
        "type": "response.failed",
        "response": {"status": "failed", "error": error, "output": [CALL]},
    }
    found, failure = read(frames([*call_events(CALL, 0), failed]))
    assert isinstance(failure, errors.ServerError) and calls_of(found) == []


def test_arguments_may_come_as_an_object_and_a_name_must_be_there() -> None:
    odd = {**CALL, "arguments": {"a": 1}}
    nameless = {**SECOND, "name": None}
    empty = {**SECOND, "call_id": "c3", "id": "fc_3", "arguments": None}
    found = list(fold_body(ending(odd, nameless, empty, "junk")["response"]))
    assert calls_of(found) == [("c1", "add", '{"a": 1}'), ("c3", "add", "")]
