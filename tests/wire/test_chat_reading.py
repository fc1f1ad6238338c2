"""Whatever form a chat completion comes in, its text, sources and ending are read right, once."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity import errors
from ipyperplexity.answer_parts import Image, Usage
from ipyperplexity.events import (
    Event,
    Fetching,
    Finished,
    ImagesFound,
    ReasoningDelta,
    Searching,
    SourcesFound,
    Started,
    TextDelta,
    TextReplaced,
    ToolCalled,
)
from ipyperplexity.sources import Sources
from ipyperplexity.wire.base import WireRequest
from ipyperplexity.wire.chat import WIRE, fold, fold_body
from ipyperplexity.wire.chat_calls import ChatCall
from ipyperplexity.wire.sse import Frame

ASKED = WireRequest("/chat/completions", {}, model="sonar")
DONE = Frame("", "[DONE]")
RESULTS = [
    {"title": "A", "url": "https://a.example/one", "date": "2026-01-02", "snippet": "It is."},
    {"title": "B", "url": "https://b.example", "date": None, "last_updated": "2026-02-03"},
]
END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def chunk(text: Any = None, **fields: Any) -> dict[str, Any]:
    """Return a chunk with a piece of text, and members of its choice and of its own."""
    choice = {name: fields.pop(name) for name in ("message", "finish_reason") if name in fields}
    delta = fields.pop("delta", {} if text is None else {"content": text})
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, **choice}], **fields}


def frames(chunks: Iterable[Any]) -> list[Frame]:
    return [c if isinstance(c, Frame) else Frame("", json.dumps(c)) for c in chunks]


def read(*chunks: Any) -> tuple[list[Event], errors.PerplexityError | None]:
    """Fold; any error that is not one of ours comes through and fails the test."""
    events: list[Event] = []
    try:
        events.extend(fold(frames(chunks), ASKED))
    except errors.PerplexityError as error:
        return events, error
    return events, None


def well(*chunks: Any) -> list[Event]:
    events, failure = read(*chunks)
    assert failure is None
    return events


def whole(**fields: Any) -> list[Event]:
    return list(fold_body({"choices": [{"message": {"content": "It."}}], **fields}, ASKED))


def text_of(events: Iterable[Event]) -> str:
    text = ""
    for event in events:
        if isinstance(event, TextDelta):
            text += event.text
        elif isinstance(event, TextReplaced):
            text = event.text
    return text


def thoughts_of(events: Iterable[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReasoningDelta))


def ending(events: list[Event]) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


def sources_of(events: Iterable[Event]) -> Sources:
    found = [event.sources for event in events if isinstance(event, SourcesFound)]
    return found[-1] if found else Sources()


# --- text -----------------------------------------------------------------------------------------

CONTENTS: dict[str, tuple[list[Any], str]] = {
    "pieces": ([chunk("It "), chunk("is.")], "It is."),
    "the whole each time": ([chunk(message={"content": "It "}), chunk(message={"content": "It is."})], "It is."),
    "both": ([chunk("It ", message={"content": "It "}), chunk("is.", message={"content": "It is."})], "It is."),
    "pieces, and the whole at the end": ([chunk("It "), chunk("is."), chunk(message={"content": "It is."})], "It is."),
    "the piece twice": ([chunk("It ", message={"content": "It "}), chunk("is.", message={"content": "is."})], "It is."),
    "the whole one step late": ([chunk("It ", message={"content": ""}), chunk("is.", message={"content": "It "})], "It is."),
    "an empty whole at the end": ([chunk("It is."), chunk("", message={"content": ""})], "It is."),
    "a whole that is shorter": ([chunk("It is."), chunk(message={"content": "It"})], "It is."),
    "the same letters": ([chunk("a", message={"content": "a"}), chunk("a", message={"content": "aa"}), chunk("a")], "aaa"),
    "null": ([chunk(delta={"role": "assistant", "content": None}), chunk("It is.")], "It is."),
    "no delta": ([{"choices": [{"index": 0}]}, {"choices": [{"delta": None}]}, chunk("It is.")], "It is."),
    "parts": ([chunk([{"type": "text", "text": "It "}, "is", {"type": "image"}, 5]), chunk(".")], "It is."),
    "a refusal": ([chunk(delta={"content": None, "refusal": "I "}), chunk(delta={"refusal": "won't."})], "I won't."),
    "no index": ([{"choices": [{"delta": {"content": "It is."}}, {"delta": {"content": "Other"}}]}], "It is."),
    "only the first choice": (
        [{"choices": [{"index": 1, "delta": {"content": "No"}}, {"index": 0, "delta": {"content": "It is."}}]},
         {"choices": [{"index": 1, "delta": {"content": "No"}}]}], "It is."),
    "half characters": ([chunk("\ud83d"), chunk("\udc0d."), chunk(" \ud83d")], "🐍. \ufffd"),
    "a literal tag later": ([chunk("Use <think>"), chunk("x</think>.")], "Use <think>x</think>."),
    "blanks first": ([chunk("\n"), chunk(" It is.")], "\n It is."),
}  # fmt: skip


@pytest.mark.parametrize(("chunks", "text"), CONTENTS.values(), ids=CONTENTS)
def test_the_text_is_right_in_whatever_form_it_comes(chunks: list[Any], text: str) -> None:
    events = well(*chunks, END)
    assert text_of(events) == text
    assert not any(isinstance(event, TextReplaced) for event in events)
    assert ending(events).status == "completed"


def test_a_whole_text_that_contradicts_the_pieces_is_right() -> None:
    events = well(chunk("It was"), chunk(message={"content": "It is"}), chunk(" so."), END)
    assert TextReplaced("It is") in events
    assert text_of(events) == "It is so."


def test_a_last_text_without_its_thoughts_is_no_other_text() -> None:
    events = well(
        chunk("<think>Hm.</think>It is."),
        chunk(message={"content": "It is."}, finish_reason="stop"),
    )
    assert (thoughts_of(events), text_of(events)) == ("Hm.", "It is.")
    assert not any(isinstance(event, TextReplaced) for event in events)


TEXTS = st.text(st.sampled_from("ab <>[1]é🐍\n"), min_size=1, max_size=24)


@st.composite
def cut_streams(draw: st.DrawFn) -> tuple[str, str, list[Any]]:
    """Return thoughts, a text, and chunks that bring them in any mixture of forms."""
    text = draw(TEXTS.filter(lambda t: t.strip() and not t.lstrip().startswith("<")))
    thoughts = draw(st.just("") | TEXTS.filter(lambda t: "</" not in t and t.strip() == t))
    content = f"<think>{thoughts}</think>{text.lstrip()}" if thoughts else text
    form = draw(st.sampled_from(["beside", "inside"])) if thoughts else "inside"
    chunks: list[Any] = []
    if form == "beside":
        content = text
        name = draw(st.sampled_from(["reasoning_content", "reasoning"]))
        chunks += [chunk(delta={name: piece}) for piece in pieces(draw, thoughts)]
    before = ""
    for piece in pieces(draw, content):
        before += piece
        form = draw(st.sampled_from(["delta", "message", "both", "parts"]))
        shown = [{"type": "text", "text": piece}] if form == "parts" else piece
        message = {"message": {"content": before}} if form in ("message", "both") else {}
        chunks.append(chunk(None if form == "message" else shown, **message))
        if draw(st.booleans()):
            chunks.append({"choices": [], "usage": None})
    if draw(st.booleans()):
        chunks.append(chunk(message={"role": "assistant", "content": before}))
    return thoughts, content.rpartition("</think>")[2], chunks


def pieces(draw: st.DrawFn, text: str) -> Iterator[str]:
    edges = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=6))})
    for start, end in itertools.pairwise(edges):
        yield text[start:end]


@settings(max_examples=400, deadline=None)
@given(cut_streams())
def test_any_mixture_of_pieces_wholes_and_thoughts_gives_the_same_text(
    made: tuple[str, str, list[Any]],
) -> None:
    thoughts, text, chunks = made
    events = well(*chunks, END)
    assert text_of(events) == text
    assert thoughts_of(events) == thoughts
    assert not any(isinstance(event, TextReplaced) for event in events)


# --- thoughts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [
    {"reasoning_content": "Hm.", "content": None},
    {"reasoning": "Hm.", "content": ""},
    {"reasoning": "Hm.", "reasoning_content": "Hm."},
    {"reasoning": None, "reasoning_details": [{"type": "reasoning.text", "text": "Hm."}, {"data": "x"}]},
    {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]},
    {"content": "<think>Hm.</think>"},
], ids=["DeepSeek", "OpenRouter", "vLLM", "details", "Mistral", "in the text"])  # fmt: skip
def test_thoughts_are_told_apart_wherever_a_server_puts_them(delta: dict[str, Any]) -> None:
    events = well(chunk(delta=delta), chunk("It is."), END)
    assert (thoughts_of(events), text_of(events)) == ("Hm.", "It is.")
    message = {"choices": [{"message": {**delta, "refusal": "It is."}}]}
    events = list(fold_body(message, ASKED))
    assert (thoughts_of(events), text_of(events)) == ("Hm.", "It is.")


def test_parts_of_plain_text_are_no_thoughts() -> None:
    events = well(chunk(["It ", {"type": "text", "text": "is."}]), END)
    assert (thoughts_of(events), text_of(events)) == ("", "It is.")


def test_thoughts_that_come_whole_after_their_pieces_are_not_doubled() -> None:
    message = {"reasoning_content": "Hm. So.", "content": "It."}
    events = well(
        chunk(delta={"reasoning_content": "Hm."}),
        chunk(delta={"reasoning_content": " So."}),
        chunk("It.", message=message),
        END,
    )
    assert (thoughts_of(events), text_of(events)) == ("Hm. So.", "It.")


def test_a_character_cut_in_two_among_the_thoughts_is_one() -> None:
    events = well(
        chunk(delta={"reasoning": "\ud83d"}), chunk(delta={"reasoning": "\udc0d"}), END
    )  # fmt: skip
    assert thoughts_of(events) == "🐍"


def test_the_steps_of_a_pro_search_are_told() -> None:
    search = {
        "thought": "Look.",
        "type": "web_search",
        "web_search": {"search_keywords": ["q", "r"]},
    }
    fetch = {
        "thought": "Read.",
        "fetch_url_content": {"contents": [{"url": "https://a.example"}, {"title": "x"}]},
    }
    events = well(
        chunk(delta={"reasoning_steps": [search]}, object="chat.reasoning"),
        chunk(delta={"reasoning_steps": [fetch, None]}, object="chat.reasoning"),
        chunk(delta={"content": ""}, object="chat.reasoning.done", search_results=RESULTS),
        chunk("It.[1]", message={"reasoning_steps": [search, fetch]}),
        chunk(object="chat.completion.done", usage={"total_tokens": 3}),
    )
    assert [e.queries for e in events if isinstance(e, Searching)] == [("q", "r")]
    assert [e.urls for e in events if isinstance(e, Fetching)] == [("https://a.example",)]
    assert thoughts_of(events) == "Look.\nRead."
    assert [s.id for s in sources_of(events)] == [1, 2]
    assert ending(events).usage.total_tokens == 3


# --- sources --------------------------------------------------------------------------------------


def test_search_results_are_the_sources_by_their_place() -> None:
    found = sources_of(whole(search_results=RESULTS, citations=["https://other.example"]))
    assert [(s.id, s.title, s.url, s.domain, str(s.published), str(s.updated)) for s in found] == [
        (1, "A", "https://a.example/one", "a.example", "2026-01-02", "None"),
        (2, "B", "https://b.example", "b.example", "None", "2026-02-03"),
    ]
    assert found[0].snippet == "It is."


@pytest.mark.parametrize(("fields", "urls"), [
    ({}, ["https://c.example"]),
    ({"search_results": None}, ["https://c.example"]),
    ({"search_results": []}, []),
    ({"search_results": RESULTS[:1]}, ["https://a.example/one"]),
], ids=["absent", "null", "empty", "there"])  # fmt: skip
def test_citations_count_only_where_search_results_are_absent(
    fields: dict[str, Any], urls: list[str]
) -> None:
    citations = ["https://c.example"]
    assert [s.url for s in sources_of(whole(citations=citations, **fields))] == urls
    events = well(chunk("It.", citations=citations), chunk(citations=citations, **fields), END)
    assert [s.url for s in sources_of(events)] == urls


def test_citations_may_be_addresses_or_objects_and_keep_their_places() -> None:
    citations: list[Any] = [
        "https://a.example", {"url": "https://b.example", "title": "B"}, None, "",
        {"type": "url_citation", "url_citation": {"url": "https://e.example", "title": "E"}},
    ]  # fmt: skip
    found = sources_of(whole(citations=citations))
    assert [(s.id, s.title) for s in found] == [(1, "a.example"), (2, "B"), (5, "E")]


def test_sources_may_grow_and_a_shorter_list_takes_nothing_away() -> None:
    events = well(
        chunk("It", search_results=RESULTS[:1]),
        chunk(" is", search_results=RESULTS),
        chunk(".", search_results=[]),
        chunk("", search_results=RESULTS[:1], finish_reason="stop"),
    )
    found = [e.sources for e in events if isinstance(e, SourcesFound)]
    assert [len(sources) for sources in found] == [1, 2]
    urls = ["https://a.example", "https://b.example"]
    events = well(chunk("It.", citations=urls), chunk("", citations=urls[:1]), END)
    assert [s.url for s in sources_of(events)] == urls


def test_a_newer_list_says_what_a_number_means_and_keeps_what_was_found() -> None:
    other = {"title": "C", "url": "https://c.example"}
    found = sources_of(well(
        chunk("It", search_results=RESULTS), chunk("", search_results=[other, RESULTS[0]]), END
    ))  # fmt: skip
    assert [(s.id, s.title) for s in found] == [(1, "C"), (2, "A"), (3, "B")]


def test_the_same_list_on_every_chunk_is_told_once() -> None:
    events = well(*[chunk("x", search_results=copy.deepcopy(RESULTS)) for _ in range(5)], END)
    assert sum(isinstance(event, SourcesFound) for event in events) == 1


def test_two_places_of_one_page_stay_two_sources() -> None:
    assert [s.id for s in sources_of(whole(search_results=[RESULTS[0], RESULTS[0]]))] == [1, 2]


def test_annotations_of_a_gateway_are_sources_and_give_citations_their_titles() -> None:
    notes = [
        {"type": "url_citation", "url_citation": {"url": "https://a.example", "title": "A"}},
        {"type": "url_citation", "url_citation": {"url": "https://b.example", "title": "B"}},
        {"type": "url_citation"}, None,
    ]  # fmt: skip
    found = sources_of(well(chunk(delta={"content": "It.[1]", "annotations": notes}), END))
    assert [(s.id, s.title, s.kind) for s in found] == [
        (1, "A", "annotation"),
        (2, "B", "annotation"),
    ]
    found = sources_of(well(
        chunk(delta={"content": "It.[1]", "annotations": notes}, citations=["https://b.example"]), END
    ))  # fmt: skip
    assert [(s.id, s.title) for s in found] == [(1, "B"), (2, "A")]


@pytest.mark.parametrize("odd", ["x", {"a": 1}, 5, True])
@pytest.mark.parametrize("name", ["search_results", "citations"])
def test_sources_of_another_shape_leave_the_text_and_are_warned_of(name: str, odd: Any) -> None:
    events = whole(**{name: odd})
    assert text_of(events) == "It."
    (warning,) = ending(events).warnings
    assert "sources" in warning


# --- usage, images, questions ---------------------------------------------------------------------


def test_usage_is_the_last_that_came_not_a_sum() -> None:
    events = well(
        chunk("It", usage={"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}),
        chunk(" is.", usage={
            "prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7, "num_search_queries": 3,
            "reasoning_tokens": 4, "cost": {"request_cost": 0.005, "total_cost": 0.0051}}),
        END | {"usage": None},
    )  # fmt: skip
    assert ending(events).usage == Usage(5, 2, 7, 4, 3, 0.0051)


@pytest.mark.parametrize(("usage", "read_as"), [
    ({"cost": 0.002}, Usage(cost_usd=0.002)),
    ({"cost": {"total_cost": 0.002}}, Usage(cost_usd=0.002)),
    ({"completion_tokens_details": {"reasoning_tokens": 9}}, Usage(reasoning_tokens=9)),
    ({"completion_tokens_details": None, "cost": None, "prompt_tokens": "5"}, Usage()),
    ({"input_tokens": 0, "prompt_tokens": 5}, Usage(input_tokens=0)),
    ("x", Usage()),
])  # fmt: skip
def test_usage_is_read_in_each_form(usage: Any, read_as: Usage) -> None:
    assert ending(whole(usage=usage)).usage == read_as


def test_usage_may_come_after_the_end_in_a_chunk_without_choices() -> None:
    events = well(chunk("It."), END, {"choices": [], "usage": {"total_tokens": 9}}, DONE)
    assert ending(events).usage.total_tokens == 9
    assert ending(events).raw["choices"] == END["choices"]


def test_images_and_related_questions_come_late() -> None:
    image = {"image_url": "https://i.example/x.png", "origin_url": "https://i.example",
             "title": "X", "width": 3, "height": 4}  # fmt: skip
    late = {"images": [image, "https://i.example/y.png", {"image_url": {"url": "https://z.example"}}, None],
            "related_questions": ["And B?", {"question": "And C?"}, "", 5]}  # fmt: skip
    for events in (well(chunk("It."), END | late), whole(**late)):
        (found,) = (event.images for event in events if isinstance(event, ImagesFound))
        assert found[0] == Image("https://i.example/x.png", "https://i.example", "X", 3, 4)
        assert [image.url for image in found[1:]] == [
            "https://i.example/y.png",
            "https://z.example",
        ]
        assert ending(events).related == ("And B?", "And C?")


def test_who_answers_is_told_at_the_beginning_and_nothing_is_kept_at_the_service() -> None:
    events = well(chunk("It."), END)
    assert events[0] == Started("c1", "m")
    assert sum(isinstance(event, Started) for event in events) == 1
    assert (ending(events).id, ending(events).model, ending(events).stored) == ("c1", "m", False)


def test_the_record_of_a_whole_reply_is_kept_as_it_is() -> None:
    events = whole(id="c9", search_results=[], usage={"x": 1})
    assert ending(events).raw == {
        "choices": [{"message": {"content": "It."}}], "id": "c9", "search_results": [], "usage": {"x": 1},
    }  # fmt: skip


# --- the end --------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [
    [END], [END, DONE], [DONE], [Frame("", " [DONE]\n")], [Frame("", "[DONE]", "", False)],
    [chunk(object="chat.completion.done")], [chunk(".", finish_reason="stop")],
    [END, {"choices": [], "usage": {}}], [END, Frame("", '{"cut', "", False)],
], ids=["reason", "both", "done", "blanks", "no blank line", "kind", "with text", "usage", "cut"])  # fmt: skip
def test_each_kind_of_end_is_an_end(end: list[Any]) -> None:
    events = well(chunk("It is"), *end)
    assert ending(events).status == "completed"
    assert ending(events).warnings == ()


@pytest.mark.parametrize("rest", [
    [], [chunk("", finish_reason=None)], [chunk("", finish_reason="")], [{"choices": [], "usage": {}}],
    [chunk(object="chat.reasoning.done")], [{"choices": [{"index": 1, "finish_reason": "stop"}]}],
], ids=["nothing", "null", "empty", "usage", "reasoning", "another choice"])  # fmt: skip
def test_a_stream_without_an_end_is_broken_and_its_text_is_given(rest: list[Any]) -> None:
    events, failure = read(chunk("It is <th"), *rest)
    assert type(failure) is errors.StreamError
    assert failure.message == "The stream ended before the answer did."
    assert failure.request_id == "c1"
    assert text_of(events) == "It is <th"


def test_what_was_held_back_is_given_when_a_stream_breaks() -> None:
    events, failure = read(chunk("<thi"))
    assert isinstance(failure, errors.StreamError) and text_of(events) == "<thi"


@pytest.mark.parametrize(("reason", "words"), [
    ("length", "max_tokens"), ("max_tokens", "max_tokens"), ("content_filter", "filter"), ("abort", "stopped"),
])  # fmt: skip
def test_an_answer_that_was_cut_is_incomplete_and_says_why(reason: str, words: str) -> None:
    for events in (
        well(chunk("It", finish_reason=reason), DONE),
        list(fold_body(chunk(message={"content": "It"}, finish_reason=reason), ASKED)),
    ):
        finished = ending(events)
        assert (finished.status, finished.finish_reason) == ("incomplete", reason)
        (warning,) = finished.warnings
        assert words in warning


@pytest.mark.parametrize("failure", [
    errors.StreamError("The connection broke"), errors.NetworkError("reset"), errors.RequestTimeout("late"),
])  # fmt: skip
def test_a_connection_that_breaks_after_the_last_word_breaks_nothing(
    failure: errors.PerplexityError,
) -> None:
    def breaking(*chunks: Any) -> Iterator[Frame]:
        yield from frames(chunks)
        raise failure

    assert ending(list(fold(breaking(chunk("It."), END), ASKED))).status == "completed"
    with pytest.raises(type(failure)):
        list(fold(breaking(chunk("It.")), ASKED))


def test_a_stop_is_a_stop_also_after_the_last_word() -> None:
    def stopped() -> Iterator[Frame]:
        yield from frames([chunk("It."), END])
        raise errors.AbortedError("stopped")

    with pytest.raises(errors.AbortedError):
        list(fold(stopped(), ASKED))


def test_chunks_that_are_no_json_are_counted_not_hidden() -> None:
    events = well(
        chunk("It"), Frame("", '{"choices": [{"delta"'), Frame("", "ping"), chunk("."), END
    )
    assert text_of(events) == "It."
    (warning,) = ending(events).warnings
    assert warning.startswith("1 records")


# --- failures inside a 200 ------------------------------------------------------------------------

ERRORS: dict[str, tuple[Any, type[errors.PerplexityError], str]] = {
    "text": ({"error": "engine on fire"}, errors.ServerError, "engine on fire"),
    "object": ({"error": {"message": "slow down", "code": 429}}, errors.RateLimitError, "slow down"),
    "LiteLLM": ({"error": {"message": "slow down", "type": "None", "param": "None", "code": "429"}}, errors.RateLimitError, "slow down"),
    "OpenRouter": (
        {"id": "g", "error": {"code": 502, "message": "Provider returned error", "metadata": {"raw": "overloaded"}},
         "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]},
        errors.ServerError, "Provider returned error: overloaded"),
    "in the choice": (
        {"choices": [{"index": 0, "error": {"message": "gone"}, "finish_reason": "error"}]}, errors.ServerError, "gone"),
    "vLLM": (
        {"object": "error", "message": "too long", "type": "BadRequestError", "code": 400}, errors.InvalidRequestError, "too long"),
    "only a reason": (chunk(finish_reason="error"), errors.ServerError, "without saying why"),
    "retired": (
        {"error": {"message": "Sonar is now the Agent API", "type": "agent_api_migration_required", "code": 403}},
        errors.EndpointRetiredError, "Agent API"),
    "half a character": ({"error": {"message": "bad \ud83d"}}, errors.ServerError, "bad"),
}  # fmt: skip


@pytest.mark.parametrize(("error", "kind", "words"), ERRORS.values(), ids=ERRORS)
def test_a_failure_inside_a_200_is_told_in_its_own_words_and_the_text_stays(
    error: Any, kind: type[errors.PerplexityError], words: str
) -> None:
    events, failure = read(chunk("It is"), error, DONE)
    assert type(failure) is kind and words in failure.message
    assert text_of(events) == "It is"
    with pytest.raises(kind, match=words):
        list(fold_body(error, ASKED))


@pytest.mark.parametrize(("data", "words"), [
    ("the engine is on fire", "on fire"), ('{"message": "on fire"}', "on fire"),
    ('{"error": {"message": "on fire"}}', "on fire"), ('{"error": null}', "without saying why"),
])  # fmt: skip
def test_an_event_named_error_is_one(data: str, words: str) -> None:
    _, failure = read(chunk("It"), Frame("error", data), END)
    assert type(failure) is errors.ServerError and words in failure.message


@pytest.mark.parametrize(("reply", "words"), [
    ({"message": "no such route", "code": 500}, "no such route"), ({"detail": "Not Found"}, "Not Found"),
])  # fmt: skip
def test_a_reply_that_is_only_a_message_is_told(reply: Any, words: str) -> None:
    with pytest.raises(errors.ServerError, match=words):
        list(fold_body(reply, ASKED))


@pytest.mark.parametrize("reply", [
    [], [{"choices": []}], "x", 5, None, {}, {"choices": []}, {"choices": None}, {"choices": "x"},
    {"choices": {"0": {}}}, {"choices": [None]}, {"choices": [{"index": 1}]}, {"search_results": None},
    {"error": None}, {"output": []},
])  # fmt: skip
def test_a_reply_that_is_no_completion_is_a_stream_error(reply: Any) -> None:
    with pytest.raises(errors.StreamError, match="not a chat completion") as raised:
        list(fold_body(reply, ASKED))
    assert "PERPLEXITY_BASE_URL" in (raised.value.hint or "")


@pytest.mark.parametrize("odd", ["x", {"a": 1}, 5, True])
def test_choices_of_another_shape_end_a_stream_and_its_text_stays(odd: Any) -> None:
    events, failure = read(chunk("It"), {"choices": odd}, END)
    assert type(failure) is errors.StreamError and text_of(events) == "It"


def test_a_stream_of_something_else_is_a_stream_error() -> None:
    _, failure = read({"type": "response.created"}, {"type": "response.completed"}, DONE)
    assert type(failure) is errors.StreamError and "not a chat completion" in failure.message


@pytest.mark.parametrize("message", [None, {}, {"content": None}, {"content": ""}, "x", []])
def test_an_answer_without_text_keeps_its_sources(message: Any) -> None:
    events = list(
        fold_body({"choices": [{"message": message}], "search_results": RESULTS}, ASKED)
    )  # fmt: skip
    assert text_of(events) == "" and len(sources_of(events)) == 2
    assert ending(events).status == "completed"


# --- function calls -------------------------------------------------------------------------------


def calling(*fragments: Any, **fields: Any) -> dict[str, Any]:
    return chunk(delta={"tool_calls": [*fragments]}, **fields)


def part(arguments: Any = "", name: str | None = None, **labels: Any) -> dict[str, Any]:
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {**labels, "type": "function", "function": function}


ONE, TWO = ("add", '{"a": 1}'), ("add", '{"b": 2}')
CALLS: dict[str, tuple[list[Any], list[tuple[str, str]]]] = {
    "OpenAI": (
        [calling(part("", "add", index=0, id="c1")), calling(part('{"a"', index=0)), calling(part(": 1}", index=0)),
         calling(part("", "add", index=1, id="c2")), calling(part('{"b": 2}', index=1))], [ONE, TWO]),
    "both in one chunk": ([calling(part(ONE[1], "add", index=0, id="c1"), part(TWO[1], "add", index=1, id="c2"))], [ONE, TWO]),
    "fragments mixed": (
        [calling(part("", "add", index=0, id="c1"), part("", "add", index=1, id="c2")),
         calling(part('{"b"', index=1), part('{"a"', index=0)), calling(part(": 2}", index=1), part(": 1}", index=0))], [ONE, TWO]),
    "the id with each": (
        [calling(part('{"a"', "add", index=0, id="c1")), calling(part(": 1}", index=0, id="c1"))], [ONE]),
    "a new id with each": (
        [calling(part('{"a"', "add", index=0, id="x1")), calling(part(": 1", "add", index=0, id="x2")), calling(part("}", index=0, id="x3"))], [ONE]),
    "all of index 0": (
        [calling(part("", "add", index=0, id="c1")), calling(part(ONE[1], index=0, id="")),
         calling(part("", "add", index=0, id="c2")), calling(part(TWO[1], index=0, id=""))], [ONE, TWO]),
    "whole ones of index 0": ([calling(part(ONE[1], "add", index=0, id="c1")), calling(part(TWO[1], "add", index=0, id="c2"))], [ONE, TWO]),
    "without arguments, all of index 0": (
        [calling(part("", "now", index=0, id="c1")), calling(part("", "today", index=0, id="c2"))], [("now", ""), ("today", "")]),
    "no labels": ([calling(part(ONE[1], "add"), part(TWO[1], "add"))], [ONE, TWO]),
    "no labels, in fragments": ([calling(part('{"a"', "add")), calling(part(": 1}"))], [ONE]),
    "arguments as an object": ([calling(part({"a": 1}, "add", index=0, id="c1"))], [ONE]),
    "in a message": ([chunk(message={"tool_calls": [part(ONE[1], "add", id="c1"), part(TWO[1], "add", id="c2")]})], [ONE, TWO]),
    "in both": (
        [calling(part("", "add", index=0, id="c1")), calling(part(ONE[1], index=0)),
         chunk(message={"tool_calls": [part(ONE[1], "add", id="c1"), part(TWO[1], "add", id="c2")]})], [ONE, TWO]),
    "in a message without labels": (
        [calling(part(ONE[1], "add", index=0)), chunk(message={"tool_calls": [part(ONE[1], "add")]})], [ONE]),
    "nothing with a name": ([calling(part("{}", index=0)), calling(None, {"function": None}, {})], []),
}  # fmt: skip


@pytest.mark.parametrize(("chunks", "calls"), CALLS.values(), ids=CALLS)
def test_a_call_is_told_once_with_all_its_arguments_before_the_end(
    chunks: list[Any], calls: list[tuple[str, str]]
) -> None:
    events = well(*chunks, chunk(finish_reason="tool_calls"), DONE)
    found = [event for event in events if isinstance(event, ToolCalled)]
    assert [(call.name, call.arguments) for call in found] == calls
    assert len({call.call_id for call in found}) == len(found)
    assert events[len(events) - len(found) - 1 : -1] == found
    assert ending(events).status == "completed"


def test_what_has_to_go_back_beside_a_result_is_kept() -> None:
    call = part("{}", "add", index=0, id="c1") | {"extra_content": {"google": {"s": "x"}}}
    events = well(
        chunk(delta={"reasoning_content": "Hm."}), chunk("Let me see."), calling(call), END
    )
    (found,) = (event for event in events if isinstance(event, ChatCall))
    assert found == ChatCall(
        "c1", "add", "{}", {"extra_content": {"google": {"s": "x"}}}, "Let me see.", "Hm."
    )
    events = well(chunk(delta={"reasoning": "Hm."}), calling(call), END)
    (found,) = (event for event in events if isinstance(event, ChatCall))
    assert found.thoughts == "", "only a server that has the field is given it"


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_calls_cut_anywhere_are_whole(data: st.DataObject) -> None:
    made: list[Any] = []
    for index, (name, arguments) in enumerate((ONE, TWO)):
        made.append(calling(part("", name, index=index, id=f"c{index}")))
        made += [calling(part(piece, index=index)) for piece in pieces(data.draw, arguments)]
    events = well(*made, END)
    assert [(e.name, e.arguments) for e in events if isinstance(e, ToolCalled)] == [ONE, TWO]


# --- damage ---------------------------------------------------------------------------------------

JUNK = st.sampled_from([
    None, True, 0, -1, 1.5, 10**400, float("nan"), "", "x", "\ud800", "stop", "error", [], {}, [None], [[]], [{}],
    {"": None}, {"url": 5}, ["a", 1], {"content": "It"}, [1, {"a": []}], {"message": {"content": []}},
])  # fmt: skip


def stream() -> list[Any]:
    """Return a stream with everything in it."""
    step = {
        "thought": "T",
        "web_search": {"search_keywords": ["q"]},
        "fetch_url_content": {"contents": [{"url": "u"}]},
    }
    note = {"type": "url_citation", "url_citation": {"url": "https://n.example", "title": "N"}}
    return [
        chunk(delta={"role": "assistant", "content": None, "reasoning_steps": [step]}, object="chat.reasoning"),
        chunk(delta={"reasoning_content": "Hm.", "reasoning_details": [{"text": "Hm."}]}),
        chunk("It ", citations=["https://a.example"], usage={"total_tokens": 1, "cost": 0.1}),
        chunk("is", message={"role": "assistant", "content": "It is"}, search_results=copy.deepcopy(RESULTS)),
        chunk([{"type": "text", "text": " so"}], search_results=copy.deepcopy(RESULTS)),
        calling(part("{", "add", index=0, id="c1")), calling(part("}", index=0)),
        chunk(delta={"annotations": [note]}),
        chunk(".[1]", finish_reason="stop", images=[{"image_url": "https://i.example", "width": 3}],
              related_questions=["R?"], usage={"prompt_tokens": 1, "completion_tokens_details": {"reasoning_tokens": 2}}),
        {"choices": [], "usage": {"total_tokens": 9, "cost": {"total_cost": 0.1}}},
    ]  # fmt: skip


def test_the_whole_stream_is_understood() -> None:
    events = well(*stream(), DONE)
    assert text_of(events) == "It is so.[1]"
    assert thoughts_of(events) == "THm."
    assert [s.id for s in sources_of(events)] == [1, 2, 3]
    assert ending(events).usage == Usage(total_tokens=9, cost_usd=0.1)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, ...]] = [path] if path else []
    pairs: Any = ()
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in pairs:
        inner += places(item, (*path, key))
    return inner


def damage(chunks: list[Any], path: tuple[Any, ...], value: Any, how: str) -> None:
    *way, last = path
    target: Any = chunks
    try:
        for step in way:
            target = target[step]
        if how == "set":
            target[last] = copy.deepcopy(value)
        else:
            del target[last]
    except (KeyError, IndexError, TypeError):
        return  # an earlier damage took it away


WOUNDS = st.tuples(
    st.sampled_from(places(stream())), JUNK, st.sampled_from(["set", "set", "delete"])
)


@settings(max_examples=400, deadline=None)
@given(st.lists(WOUNDS, max_size=12), st.randoms(use_true_random=False), st.booleans())
def test_no_damage_makes_reading_fail_in_any_other_way_than_ours(
    wounds: list[Any], random: Any, is_shuffled: bool
) -> None:
    chunks: list[Any] = stream()
    for wound in wounds:
        damage(chunks, *wound)
    if is_shuffled:
        random.shuffle(chunks)
    events, failure = read(*chunks)
    assert (failure is None) is any(isinstance(event, Finished) for event in events)
    json.dumps([text_of(events), thoughts_of(events), *map(repr, events)]).encode()
    text_of(events).encode()
    thoughts_of(events).encode()
    for reply in chunks:
        try:
            list(WIRE.fold_body(reply, ASKED))
        except errors.PerplexityError as error:
            assert error.message


@pytest.mark.parametrize("depth", [500, 900, 5000])
@pytest.mark.parametrize(
    "template",
    ['{"choices": NEST}', '{"choices": [{"delta": {"content": NEST}}]}', '{"usage": NEST}', "NEST"],
)
def test_deep_nesting_does_no_harm(template: str, depth: int) -> None:
    data = template.replace("NEST", '{"a":[' * depth + "]}" * depth)
    events, failure = read(Frame("", data), chunk("It."), END)
    assert failure is not None or text_of(events) == "It."
