"""A stream reaches the user whole, whatever form it has on its way."""

from __future__ import annotations

import json
import threading

import pytest

from ipyperplexity.emulator import FAULTS, EmulatorServer
from ipyperplexity.errors import PerplexityError
from ipyperplexity.events import (
    Fetching,
    Finished,
    Searching,
    SourcesFound,
    Started,
    TextDelta,
)
from tests.net.asking import (
    SOURCES,
    client_for,
    completed,
    delta,
    item_done,
    message,
    read_events,
    read_frames,
    readers,
    results,
    stream_from,
    text_done,
)
from tests.support.raw_server import (
    FRAMINGS,
    Close,
    Framing,
    HoldOpen,
    Pause,
    RawServer,
    Reset,
    agent_events,
    agent_stream,
    http_response,
    sse_frames,
    sse_response,
)

TEXT = "Ångström é 漢字 🐍\u2028line\u2029para\u0085next \x85 says it.[1]\n\nAnd more.[2][11]"


# --- framing ------------------------------------------------------------------------------------


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("piece", [None, 1, 7])
def test_the_answer_is_the_same_in_every_framing(framing: Framing, piece: int | None) -> None:
    events, answer = read_frames(agent_stream(TEXT, SOURCES), framing=framing, piece=piece)
    assert (answer.text, answer.status, answer.error) == (TEXT, "completed", None)
    assert [source.id for source in answer.sources] == [1, 2, 11]
    assert [citation.id for citation in answer.citations] == [1, 2, 11]
    assert (answer.id, answer.model, answer.finish_reason) == (
        "resp_1",
        "openai/gpt-6-luna",
        "stop",
    )
    assert (answer.usage.cost_usd, answer.usage.searches) == (0.00125, 1)
    assert isinstance(events[0], Started) and isinstance(events[-1], Finished)
    assert not answer.warnings


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("done", [True, False])
def test_line_ends_names_and_end_markers_do_not_matter(
    newline: bytes, named: bool, done: bool
) -> None:
    frames = agent_stream(TEXT, SOURCES, newline=newline, named=named, done=done)
    for piece in (None, 1):
        assert read_frames([b"\xef\xbb\xbf", *frames], piece=piece)[1].text == TEXT


def test_the_type_may_stand_in_the_event_line_alone() -> None:
    frames = [
        f"event: {event.pop('type')}\ndata: {json.dumps(event)}\n\n".encode()
        for event in agent_events(TEXT, SOURCES)
    ]
    assert read_frames(frames)[1].text == TEXT


def test_comments_keepalives_and_unknown_events_are_passed_over() -> None:
    noise = [
        b": keep-alive\n\n",
        b'event: response.keepalive\ndata: {"type":"response.keepalive","delta":null}\n\n',
        b'data: {"type":"response.brand.new","text":"not text"}\n\n',
        b"data: not json\n\n",
        b"data: [1, 2]\n\n",
        b"data:\n\n",
        b'data: {"type":["response.output_text.delta"],"delta":"x"}\n\n',
        b'id: 3\nretry: 10\ndata: {"type":null}\n\n',
    ]
    frames = [piece for frame in agent_stream(TEXT, SOURCES) for piece in (*noise, frame)]
    assert read_frames(frames)[1].text == TEXT


def test_a_last_frame_without_its_blank_line_counts() -> None:
    *frames, last = agent_stream(TEXT, SOURCES)
    answer = read_frames([*frames, last.rstrip(b"\n")], framing="close")[1]
    assert (answer.text, answer.status) == (TEXT, "completed")


def test_half_a_frame_at_the_end_is_a_broken_answer_that_keeps_its_text() -> None:
    *frames, last = agent_stream(TEXT, SOURCES)
    answer = read_frames([*frames, last[: len(last) // 2]], framing="close")[1]
    assert (answer.text, answer.status) == (TEXT, "failed")
    assert answer.error is not None and answer.error.code == "STREAM"
    assert [source.id for source in answer.sources] == [1, 2, 11]


@pytest.mark.parametrize("name", [
    *("text-only-at-end", "text-only-done", "text-only-item", "text-only-delta", "nulls"),
    *("keepalives", "data-only", "done-marker", "crlf", "cr", "mixed-newlines", "byte-by-byte"),
    *("gzip", "unchunked", "odd-characters", "many-parts", "keep-open"),
])  # fmt: skip
def test_the_embedded_engine_is_understood_in_all_its_moods(name: str) -> None:
    question = "What does the with statement do?"
    with EmulatorServer(pace=0) as server, client_for(server) as client:
        plain = client.ask(question)
        server.next(FAULTS[name])
        answer = client.ask(question)
    assert answer.text == plain.text + FAULTS[name].extra_text
    assert answer.sources["url"] == plain.sources["url"]
    assert answer.status == "completed" and not answer.warnings


def test_events_come_as_they_are_sent_not_at_the_end() -> None:
    gate = threading.Event()
    for framing in FRAMINGS:
        gate.clear()
        steps = sse_response(agent_stream("one two three", SOURCES), framing)
        end = next(n for n, step in enumerate(steps) if isinstance(step, bytes) and b'"two ' in step) if framing != "gzip" else 11  # fmt: skip
        steps.insert(end, Pause(gate))
        with RawServer(steps) as server, client_for(server).stream("Why?") as stream:
            seen = next(event.text for event in stream if isinstance(event, TextDelta))
            assert not gate.is_set()
            gate.set()
            assert seen == "one " and stream.answer.text == "one two three"


# --- where the text stands ----------------------------------------------------------------------

BOTH = [message("Hello ", "there"), message("you.", id="msg_2")]
DELTAS = [
    *(delta("Hel"), delta("lo "), delta("the", content_index=1), delta("re", content_index=1)),
    *(delta("yo", item_id="msg_2", output_index=2), delta("u.", item_id="msg_2", output_index=2)),
]
DONES = [
    *(text_done("Hello "), text_done("there", content_index=1)),
    text_done("you.", item_id="msg_2", output_index=2),
]
ITEMS = [item_done(BOTH[0], 1), item_done(BOTH[1], 2)]


@pytest.mark.parametrize("places", range(1, 16))
def test_text_in_several_parts_and_messages_comes_once_wherever_it_stands(places: int) -> None:
    deltas, dones, items, end = (bool(places & bit) for bit in (1, 2, 4, 8))
    events: list[dict[str, object]] = []
    for n in range(3):  # one content part after the other, as the service does
        events += DELTAS[2 * n : 2 * n + 2] if deltas else []
        events += [DONES[n]] if dones else []
        events += ITEMS[n - 1 : n] if items and n else []
    answer = read_events([*events, completed(*(BOTH if end else []))])
    assert answer.text == "Hello thereyou."
    assert not answer.warnings


STRANGE = {
    "no ids": {"item_id": None},
    "no indexes": {"output_index": None, "content_index": None},
    "neither": {"item_id": None, "output_index": None, "content_index": None},
    "another id than the item's": {"item_id": "chunk_77"},
    "another index than the item's": {"output_index": 5},
    "nonsense": {"item_id": 7, "output_index": "1", "content_index": [0]},
    "objects": {"item_id": {}, "output_index": [], "content_index": {"a": 1}},
}


@pytest.mark.parametrize("where", STRANGE.values(), ids=STRANGE)
@pytest.mark.parametrize("whole", ["done", "item", "both", "neither"])
def test_text_is_never_doubled_however_its_deltas_are_labelled(
    where: dict[str, object], whole: str
) -> None:
    events = [delta("One "), delta("two.")]
    events = [{**event, **where} for event in events]
    if whole in ("done", "both"):
        events.append(text_done("One two.", **where))
    if whole in ("item", "both"):
        events.append(item_done(message("One two.")))
    answer = read_events([*events, completed(message("One two."))])
    assert (answer.text, answer.warnings) == ("One two.", ())


def test_text_is_never_doubled_by_a_gateway_that_renames_the_message_in_every_event() -> None:
    events = [delta(text, item_id=f"msg_{n}") for n, text in enumerate(("One ", "two ", "three."))]
    whole = "One two three."
    answer = read_events([
        *events,
        text_done(whole, item_id="msg_x"),
        item_done(message(whole, id="msg_y")),
        completed(message(whole, id="msg_z")),
    ])  # fmt: skip
    assert (answer.text, answer.warnings) == (whole, ())


def test_only_the_missing_tail_is_added() -> None:
    answer = read_events(
        [delta("One "), text_done("One two "), completed(message("One two three"))]
    )
    assert (answer.text, answer.warnings) == ("One two three", ())


def test_an_empty_final_record_takes_no_text_away() -> None:
    assert read_events([delta("One two"), text_done(""), completed()]).text == "One two"


def test_a_final_text_that_differs_is_said_and_kept_but_not_shown_twice() -> None:
    for final in (message("Hello world"), message("Hello world", id="other"), message("Hello world", id=None)):  # fmt: skip
        answer = read_events([delta("Hello wrold"), text_done("Hello wrold"), completed(final)])
        assert answer.text == "Hello wrold"
        assert ["differs" in warning for warning in answer.warnings] == [True]
        assert answer.raw["output"][0]["content"][0]["text"] == "Hello world"


def test_a_part_that_was_lost_on_the_way_comes_from_the_final_record() -> None:
    first, second = message("First. ", id="a"), message("Second.", id="b")
    answer = read_events([delta("First. ", item_id="a", output_index=0), completed(first, second)])
    assert answer.text == "First. Second."


def test_text_out_of_its_order_is_kept_and_said() -> None:
    first, second = message("First. ", id="a"), message("Second.", id="b")
    answer = read_events([delta("Second.", item_id="b", output_index=1), completed(first, second)])
    assert answer.text.startswith("Second.")
    assert answer.warnings


def test_pieces_of_two_messages_that_alternate_are_kept_in_the_order_shown() -> None:
    a, b = {"item_id": "a", "output_index": 0}, {"item_id": "b", "output_index": 1}
    events = [delta("A1", **a), delta("B1", **b), delta("A2", **a), delta("B2", **b)]
    answer = read_events([*events, completed(message("A1A2", id="a"), message("B1B2", id="b"))])
    assert answer.text == "A1B1A2B2"
    assert answer.warnings


def test_nulls_where_text_and_lists_belong_do_no_harm() -> None:
    nulls = [
        {"type": "response.created", "response": None},
        {"type": "response.reasoning.search_queries", "queries": None, "thought": None},
        {"type": "response.reasoning.search_results", "results": None, "usage": None},
        {"type": "response.reasoning.fetch_url_results", "contents": None, "thought": "0 URLs"},
        {"type": "response.reasoning.search_results", "results": [None, {"id": None, "url": None}]},
        item_done(None),
        item_done({"type": "message", "id": None, "content": None}),
        item_done({"type": None}),
        item_done({"type": "message", "content": [None, {"type": "output_text", "text": None}]}),
        item_done({"type": "search_results", "results": None, "queries": None}),
        item_done({"type": "image_search_results", "results": [None, {"image_url": None}]}),
        item_done({"type": "finance_results", "results": [{"sources": None}, None]}),
        delta(None),
        text_done(None),
    ]
    end = completed(None, message(None), usage=None, model=None, incomplete_details=None)
    answer = read_events([*nulls, delta("Text"), *nulls, end])
    assert (answer.text, answer.status, answer.reasoning) == ("Text", "completed", "0 URLs")
    assert answer.usage.total_tokens is None and answer.model is None


def test_characters_that_utf8_cannot_hold_are_replaced() -> None:
    frames = sse_frames([delta("DELTA"), completed(message("DELTA"))])
    frames = [frame.replace(b"DELTA", rb"a\ud83d\ude00b\ud800c\uDFFFd") for frame in frames]
    answer = read_frames(frames)[1]
    assert answer.text == "a😀b\ufffdc\ufffdd"
    assert json.dumps(answer.raw, ensure_ascii=False).encode()


def test_half_a_pair_is_replaced_in_either_spelling() -> None:
    for half in (rb"\ud800", rb"\uDC00"):
        frames = sse_frames([delta("DELTA"), completed(message("DELTA"))])
        answer = read_frames([frame.replace(b"DELTA", b"a" + half) for frame in frames])[1]
        assert (answer.text, answer.warnings) == ("a\ufffd", ())


def test_what_was_held_back_is_shown_before_a_failure() -> None:
    for end in ([], [{"type": "response.failed"}], [{"type": "error"}]):
        assert read_events([delta("<thi"), *end]).text == "<thi"


def test_reasoning_in_front_of_the_text_is_not_text() -> None:
    whole = "<think>Hm, two.</think>\n\nTwo."
    pieces = ["<thi", "nk>Hm, ", "two.</th", "ink>", "\n\nTwo", "."]
    for events in ([delta(piece) for piece in pieces], [text_done(whole)], []):
        answer = read_events([*events, completed(message(whole))])
        assert (answer.text, answer.reasoning) == ("Two.", "Hm, two.")


# --- sources ------------------------------------------------------------------------------------


def test_sources_of_several_searches_keep_their_numbers() -> None:
    first = results(SOURCES[1], SOURCES[0], queries=["one"])
    second = results(SOURCES[2], queries=["two", "one"])
    answer = read_events([
        {"type": "response.reasoning.search_queries", "queries": ["one"]},
        {"type": "response.reasoning.search_results", "results": first["results"]},
        item_done(first, 0),
        item_done(second, 1),
        delta("So.[11][2]", output_index=2),
        completed(first, second, message("So.[11][2]")),
    ])  # fmt: skip
    assert [(s.id, s.url, s.cited) for s in answer.sources] == [
        (1, "https://a.example/one", False),
        (2, "https://b.example/two", True),
        (11, "https://c.example/eleven", True),
    ]
    assert answer.searches == ("one", "two")


def test_one_page_under_two_numbers_stays_two_sources() -> None:
    found = [{"id": 3, "url": "https://a.example"}, {"id": 7, "url": "https://a.example"}]
    answer = read_events([completed(results(*found), message("So.[3] And so.[7]"))])
    assert [citation.source.id for citation in answer.citations if citation.source] == [3, 7]


def test_fetched_pages_are_what_web_markers_mean_and_are_flagged_as_found_by_position() -> None:
    pages = [{"url": f"https://p.example/{n}", "title": f"P{n}", "snippet": "s"} for n in (0, 1)]
    fetched = {"type": "fetch_url_results", "contents": pages}
    events, answer = read_frames(sse_frames([
        {"type": "response.reasoning.fetch_url_queries", "urls": [p["url"] for p in pages]},
        {"type": "response.reasoning.fetch_url_results", "contents": pages, "thought": "Read 2."},
        item_done(fetched, 0),
        delta("It is.[web:1] Is it?[web:5] See [1].", output_index=1),
        completed(results(SOURCES[0]), fetched, message("It is.[web:1] Is it?[web:5] See [1].")),
    ]))  # fmt: skip
    first, second, third = answer.citations
    assert first.source is not None and first.by_position
    assert (first.source.url, first.source.kind) == ("https://p.example/1", "fetch")
    assert second.source is None
    assert third.source is not None and third.source.url == "https://a.example/one"
    assert [e.urls for e in events if isinstance(e, Fetching)] == [tuple(p["url"] for p in pages)]
    assert answer.reasoning == "Read 2."


def test_pages_named_in_annotations_are_sources() -> None:
    note = {"type": "url_citation", "url": "https://n.example", "title": "N", "start_index": 0}
    item = message("So.")
    item["content"][0]["annotations"] = [note, None, {"type": "url_citation", "url": None}]
    for events in ([item_done(item)], []):
        answer = read_events([*events, completed(item)])
        assert [(s.title, s.url, s.kind) for s in answer.sources] == [
            ("N", "https://n.example", "annotation")
        ]


def test_sources_and_searches_show_as_they_come() -> None:
    events, _ = read_frames(agent_stream("So.[1]", SOURCES, queries=["why so"]))
    kinds = [type(event) for event in events]
    assert kinds.index(Searching) < kinds.index(SourcesFound) < kinds.index(TextDelta)
    assert kinds.count(SourcesFound) == kinds.count(Searching) == 1


def test_numbers_that_no_table_can_hold_are_left_out() -> None:
    big = 10**400
    answer = read_events([
        delta("So."),
        completed(
            results({"id": 2**40, "url": "https://a.example"}),
            message("So."),
            usage={
                "input_tokens": big, "output_tokens": 1.5, "total_tokens": True,
                "cost": {"total_cost": big}, "tool_calls_details": {"search_web": {"invocation": big}},
            },
        ),
    ])  # fmt: skip
    assert (answer.usage.input_tokens, answer.usage.cost_usd) == (None, None)
    assert answer.sources["id"] == [1]
    assert len(answer.to_pandas()) == 1


# --- how it ends --------------------------------------------------------------------------------

FAILED = {"message": "the model fell over", "type": "server_error", "code": "internal_error"}
ENDS = {
    "on the event": {"type": "response.failed", "error": FAILED},
    "nested": {"type": "response.failed", "response": {"status": "failed", "error": FAILED}},
    "on both": {"type": "response.failed", "error": FAILED, "response": {"error": FAILED}},
    "completed, yet failed": {"type": "response.completed", "response": {"status": "failed", "error": FAILED}},
    "an error event": {"type": "error", "error": FAILED},
    "an error event, bare": {"type": "error", **FAILED, "code": None, "param": None} | {"type": "error"},
    "an error in words": {"type": "error", "error": "the model fell over"},
    "response.error": {"type": "response.error", "error": FAILED},
}  # fmt: skip


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_failed_run_is_an_error_that_says_why_and_keeps_the_text(end: dict[str, object]) -> None:
    answer = read_events([item_done(results(*SOURCES), 0), delta("So far "), end])
    assert answer.error is not None
    assert (answer.status, answer.error.code) == ("failed", "SERVER")
    assert "the model fell over" in answer.error.message
    assert (answer.text, len(answer.sources)) == ("So far ", 3)


@pytest.mark.parametrize("end", [
    {"type": "response.failed"},
    {"type": "response.failed", "error": None, "response": None},
    {"type": "response.failed", "error": {"message": None}},
    {"type": "response.failed", "error": {"message": 5, "type": [], "code": {}}},
    {"type": "response.failed", "response": {"status": "failed", "error": []}},
    {"type": "error"},
])  # fmt: skip
def test_a_failed_run_without_a_message_is_an_error_all_the_same(end: dict[str, object]) -> None:
    answer = read_events([delta("So far"), end])
    assert answer.error is not None
    assert (answer.status, answer.error.code, answer.text) == ("failed", "SERVER", "So far")
    assert "without saying why" in answer.error.message


@pytest.mark.parametrize(("word", "code"), [
    ("invalid_request", "INVALID_REQUEST"), ("request_rate_limit_exceeded", "RATE_LIMIT"),
    ("insufficient_quota", "QUOTA"), ("gateway_timeout", "TIMEOUT"), ("invalid_api_key", "AUTH"),
])  # fmt: skip
def test_a_failed_run_is_named_by_its_cause(word: str, code: str) -> None:
    for error in ({"message": "no", "type": word}, {"message": "no", "code": word}):
        answer = read_events([{"type": "response.failed", "error": error}])
        assert answer.error is not None and answer.error.code == code


def test_a_cut_answer_is_an_answer_with_a_warning() -> None:
    answer = read_frames(agent_stream("So far", SOURCES, status="incomplete"))[1]
    assert (answer.status, answer.finish_reason) == ("incomplete", "max_output_tokens")
    assert (answer.text, answer.error, len(answer.warnings)) == ("So far", None, 1)
    assert answer.usage.total_tokens is not None


def test_a_cut_answer_may_have_no_text() -> None:
    answer = read_frames(agent_stream("", status="incomplete"))[1]
    assert (answer.status, answer.text, answer.error) == ("incomplete", "", None)
    assert "max_tokens" in answer.warnings[0]


def test_a_finished_answer_with_nothing_in_it_is_an_error() -> None:
    answer = read_frames(agent_stream(""))[1]
    assert answer.error is not None and answer.error.code == "EMPTY"


def test_a_run_cancelled_at_the_service_is_an_abort() -> None:
    answer = read_frames(agent_stream("So far", SOURCES, status="cancelled"))[1]
    assert answer.error is not None and answer.error.code == "ABORTED"
    assert (answer.text, answer.status) == ("So far", "stopped")


@pytest.mark.parametrize("end", [[], [Close()], [Reset()]], ids=["orderly", "closed", "reset"])
def test_a_stream_without_its_end_is_a_failure_that_keeps_its_text(end: list[object]) -> None:
    steps = sse_response(agent_stream("So far", SOURCES, status=None))
    if end:
        # A reset throws away what is under way, so it must have arrived.
        gate = threading.Event()
        steps = [*steps[:-1], Pause(gate), *end]  # type: ignore[list-item]
        with RawServer(steps) as server, client_for(server).stream("Why?") as stream:
            for event in stream:
                assert isinstance(event, object)
                if stream.text == "So far":
                    break
            gate.set()
            with pytest.raises(Exception, match="broke in the middle") as raised:
                _ = stream.answer
            answer = stream.answer
            assert raised.value is answer.error
    else:
        answer = stream_from(steps)[1]
    assert answer.error is not None
    assert (answer.status, answer.error.code, answer.text) == ("failed", "STREAM", "So far")
    assert answer.usage.cost_usd is None


def test_the_end_event_ends_it_though_the_server_never_closes() -> None:
    steps = [*sse_response(agent_stream(TEXT, SOURCES))[:-1], HoldOpen()]
    with RawServer(steps) as server, client_for(server) as client:
        assert client.ask("Why?").text == TEXT
        assert server.wait_for_disconnect()
    assert not readers()


def test_nothing_after_the_end_event_counts() -> None:
    answer = read_frames(
        [*agent_stream("So."), *sse_frames([delta("More")]), b"data: {broken\n\n"]
    )[1]
    assert (answer.text, answer.status) == ("So.", "completed")


# --- a stream that is none, and the other way round ---------------------------------------------


def whole_reply() -> dict[str, object]:
    reply: dict[str, object] = agent_events("So.[11]", SOURCES)[-1]["response"]
    return reply


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "text/event-stream", ""])
@pytest.mark.parametrize("stream", [True, False])
def test_a_plain_json_reply_is_an_answer_too(kind: str, stream: bool) -> None:
    body = "\n  " + json.dumps(whole_reply(), indent=1)
    script = [http_response(200, {"Content-Type": kind}, body)]
    with RawServer(script) as server, client_for(server) as client:
        answer = client.ask("Why?", stream=stream)
        assert server.requests[0].json.get("stream", False) is stream
    assert (answer.text, answer.status, len(answer.sources)) == ("So.[11]", "completed", 3)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream", "text/plain"])
@pytest.mark.parametrize("lead", [b"", b"\xef\xbb\xbf", b": hello\n\n", b"\n\n"])
def test_a_stream_that_nobody_asked_for_is_an_answer_too(kind: str, lead: bytes) -> None:
    script = sse_response([lead, *agent_stream("So.[11]", SOURCES)][not lead :], headers={"Content-Type": kind})  # fmt: skip
    with RawServer(script) as server, client_for(server) as client:
        answer = client.ask("Why?", stream=False)
    assert (answer.text, answer.status, len(answer.sources)) == ("So.[11]", "completed", 3)


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_plain_json_reply_is_read_in_every_framing(framing: Framing) -> None:
    steps = sse_response([json.dumps(whole_reply()).encode()], framing, 7)
    assert stream_from(steps)[1].text == "So.[11]"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("reply", "code"), [
    ({"error": {"message": "the model fell over", "type": "server_error"}}, "SERVER"),
    ({"error": {"message": "no credit left", "type": "insufficient_quota"}}, "QUOTA"),
    ({"status": "failed", "error": FAILED, "output": []}, "SERVER"),
    ({"status": "failed", "error": None, "output": None}, "SERVER"),
    ({"status": "cancelled", "output": []}, "ABORTED"),
    ({"status": "in_progress", "output": []}, "STREAM"),
    ({"status": "completed", "output": []}, "EMPTY"),
    ({"choices": [{"message": {"content": "hi"}}]}, "STREAM"),
    ([1], "STREAM"),
    (None, "STREAM"),
    ("text", "STREAM"),
])  # fmt: skip
def test_a_json_reply_with_status_200_can_be_a_failure(
    stream: bool, reply: object, code: str
) -> None:
    script = [http_response(200, {"Content-Type": "application/json"}, json.dumps(reply))]
    with RawServer(script) as server, client_for(server) as client:
        with pytest.raises(PerplexityError) as raised:
            client.ask("Why?", stream=stream)
        assert raised.value.code == code
        assert client.last is not None and client.last.error is raised.value


@pytest.mark.parametrize(
    "body", [b"", b"{oops", b'{"status": "comp', b"<html>hello</html>", b"hello", b"\xff\xfe"]
)
@pytest.mark.parametrize("kind", ["application/json", "text/html", "text/event-stream", ""])
def test_what_is_no_answer_at_all_is_an_error_of_the_stream(body: bytes, kind: str) -> None:
    answer = stream_from([http_response(200, {"Content-Type": kind}, body)])[1]
    assert answer.error is not None and answer.error.code == "STREAM"
    assert answer.error.status_code in (200, None)
