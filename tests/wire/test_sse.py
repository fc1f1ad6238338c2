"""Server-sent events: the WHATWG rules hold wherever the network cuts the stream."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.errors import StreamError
from ipyperplexity.wire.sse import MAX_EVENT_BYTES, Decoder, Frame, decode

BOM = b"\xef\xbb\xbf"


def message(data: str, *, event: str = "", id: str = "") -> Frame:
    return Frame(event=event, data=data, id=id, complete=True)


# name -> (stream, frames that it dispatches). The rules are those of the WHATWG HTML standard,
# section 9.2.6; the first rows are the standard's own examples, retold.
VECTORS: dict[str, tuple[bytes, list[Frame]]] = {
    "one line": (b"data: one\n\n", [message("one")]),
    "two lines are joined by LF": (b"data: +2\ndata: 10\n\n", [message("+2\n10")]),
    "a comment before, ids, an id reset": (
        b": test\n\ndata: first\nid: 1\n\ndata:second\nid\n\ndata:  third\n\n",
        [message("first", id="1"), message("second"), message(" third")],
    ),
    "a data field without colon is an empty line": (
        b"data\n\ndata\ndata\n\ndata:",
        [message(""), message("\n")],
    ),
    "one leading space is taken, not two": (
        b"data:test\n\ndata: test\n\ndata:  test\n\n",
        [message("test"), message("test"), message(" test")],
    ),
    "one leading space is taken in every field": (
        b"event:  a\nid:  7\ndata:  x\n\nevent:b\nid:8\ndata:y\n\n",
        [message(" x", event=" a", id=" 7"), message("y", event="b", id="8")],
    ),
    "a tab is no space": (b"data:\ttest\n\n", [message("\ttest")]),
    "an event name": (b"event: add\ndata: 1\n\n", [message("1", event="add")]),
    "an event name without space": (b"event:add\ndata:1\n\n", [message("1", event="add")]),
    "the last event name of an event counts": (
        b"event: a\nevent: b\ndata: 1\n\n",
        [message("1", event="b")],
    ),
    "an event name after the data": (b"data: 1\nevent: a\n\n", [message("1", event="a")]),
    "an empty event name is none": (b"event: a\nevent:\ndata: 1\n\n", [message("1")]),
    "an event name does not outlive its event": (
        b"event: a\ndata: 1\n\ndata: 2\n\n",
        [message("1", event="a"), message("2")],
    ),
    "an event name without data goes with its blank line": (
        b"event: a\n\ndata: 2\n\n",
        [message("2")],
    ),
    "an event without data is not dispatched": (b"event: a\nid: 7\n\n", []),
    "an id without data is remembered": (b"id: 7\n\ndata: x\n\n", [message("x", id="7")]),
    "an id is kept for later events": (
        b"id: 7\ndata: x\n\ndata: y\n\n",
        [message("x", id="7"), message("y", id="7")],
    ),
    "an id with NUL is ignored": (
        b"id: 7\ndata: x\n\nid: 8\0\ndata: y\n\n",
        [message("x", id="7"), message("y", id="7")],
    ),
    "CR LF": (
        b"event: a\r\ndata: 1\r\ndata: 2\r\n\r\ndata: 3\r\n\r\n",
        [message("1\n2", event="a"), message("3")],
    ),
    "CR alone": (
        b"event: a\rdata: 1\rdata: 2\r\rdata: 3\r\r",
        [message("1\n2", event="a"), message("3")],
    ),
    "LF then CR LF": (b"data: 1\n\r\ndata: 2\n\r\n", [message("1"), message("2")]),
    "CR then CR LF": (b"data: 1\r\r\ndata: 2\r\r\n", [message("1"), message("2")]),
    "CR LF then LF": (b"data: 1\r\n\ndata: 2\r\n\n", [message("1"), message("2")]),
    "LF then CR": (b"data: 1\n\rdata: 2\n\r", [message("1"), message("2")]),
    "CR LF is one newline": (b"data: 1\r\ndata: 2\r\n\r\n", [message("1\n2")]),
    "blank lines in any number": (
        b"\n\n\r\n\rdata: 1\n\n\n\n\n\ndata: 2\n\n\n",
        [message("1"), message("2")],
    ),
    "a byte order mark is skipped": (BOM + b"data: 1\n\n", [message("1")]),
    "only one byte order mark is skipped": (BOM + BOM + b"data: 1\n\ndata: 2\n\n", [message("2")]),
    "a byte order mark is one at the start only": (
        b"data: 1\n\n" + BOM + b"data: 2\n\ndata: " + BOM + b"3\n\n",
        [message("1"), message("\ufeff3")],
    ),
    "a byte order mark before a blank line": (BOM + b"\n\ndata: 1\n\n", [message("1")]),
    "comments between the lines of an event": (
        b":\ndata: 1\n: keep-alive\n:data: no\ndata: 2\n\n",
        [message("1\n2")],
    ),
    "unknown fields": (
        b"data: 1\nfoo: bar\nDATA: 2\n data: 3\ndata : 4\nfoo\n\n",
        [message("1")],
    ),
    "colons in a value": (b"data: a: b:c\n\n", [message("a: b:c")]),
    "retry is no part of the event": (b"retry: 10\ndata: 1\n\n", [message("1")]),
    "other line separators are data": (
        "data: a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei\n\n".encode(),
        [message("a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei")],
    ),
    "letters that hold the byte 85": ("data: Ångström Å\n\n".encode(), [message("Ångström Å")]),
    "four-byte letters": ("data: 🦆é漢\n\n".encode(), [message("🦆é漢")]),
    "broken UTF-8 is replaced": (b"data: a\xffb\xe2\x82\n\n", [message("a\ufffdb\ufffd")]),
    "broken UTF-8 does not swallow a newline": (
        b"data: \xf0\x9f\ndata: \xc3\r\ndata: x\r\n\n",
        [message("\ufffd\n\ufffd\nx")],
    ),
    "NUL in data": (b"data: a\0b\n\n", [message("a\0b")]),
    "spaces at the end are kept": (b"data: a  \n\n", [message("a  ")]),
    "empty data": (b"data:\n\ndata: \n\n", [message(""), message("")]),
    "a half event at the end": (b"data: 1\n\ndata: 2\n", [message("1")]),
    "nothing": (b"", []),
}


def feed_all(pieces: Iterable[bytes]) -> list[Frame]:
    decoder = Decoder()
    return [frame for piece in pieces for frame in decoder.feed(piece)]


@pytest.mark.parametrize(("stream", "expected"), VECTORS.values(), ids=list(VECTORS))
class TestTheRules:
    def test_hold_in_one_piece(self, stream: bytes, expected: list[Frame]) -> None:
        assert feed_all([stream]) == expected

    def test_hold_byte_by_byte(self, stream: bytes, expected: list[Frame]) -> None:
        assert feed_all(stream[i : i + 1] for i in range(len(stream))) == expected

    def test_hold_at_every_cut(self, stream: bytes, expected: list[Frame]) -> None:
        for cut in range(len(stream) + 1):
            assert feed_all([stream[:cut], b"", stream[cut:]]) == expected, f"cut at {cut}"

    def test_agree_with_the_model(self, stream: bytes, expected: list[Frame]) -> None:
        assert spec_model(stream)[0] == expected


# --- a slow, literal reading of the standard, to compare with ---------------------------------


def spec_model(stream: bytes) -> tuple[list[Frame], Frame | None, int | None]:
    """Frames, the event that the standard drops at the end, and the reconnection time."""
    text = stream.decode("utf-8", errors="replace")
    if text.startswith("\ufeff"):
        text = text[1:]
    *lines, unterminated = re.split("\r\n|\n|\r", text)

    frames: list[Frame] = []
    data_buffer = event_type = last_event_id = ""
    reconnection_time: int | None = None

    def process_line(line: str) -> None:
        nonlocal data_buffer, event_type, last_event_id, reconnection_time
        if line.startswith(":"):
            return
        if ":" in line:
            field, value = line[: line.index(":")], line[line.index(":") + 1 :]
            if value.startswith(" "):
                value = value[1:]
        else:
            field, value = line, ""
        if field == "event":
            event_type = value
        elif field == "data":
            data_buffer = data_buffer + value + "\n"
        elif field == "id":
            if "\0" not in value:
                last_event_id = value
        elif field == "retry" and value and all(c in "0123456789" for c in value):
            reconnection_time = int(value)

    for line in lines:
        if line != "":
            process_line(line)
            continue
        if data_buffer != "":
            frames.append(message(data_buffer[:-1], event=event_type, id=last_event_id))
        data_buffer = event_type = ""

    process_line(unterminated)
    dropped = None
    if data_buffer != "":
        dropped = Frame(event_type, data_buffer[:-1], last_event_id, complete=False)
    return frames, dropped, reconnection_time


newlines = st.sampled_from([b"\n", b"\r", b"\r\n"])
values = st.one_of(
    st.sampled_from([b"", b"a", b" a", b"  ", b":", b"7", b"12", b"\xff", b"a\0b", BOM, b"\x85"]),
    st.text(max_size=5).map(lambda s: s.encode("utf-8", "surrogatepass")),
    st.binary(max_size=4),
)
lines = st.one_of(
    st.just(b""),
    st.builds(
        lambda field, separator, value: field + separator + value,
        st.sampled_from([b"data", b"data", b"data", b"event", b"id", b"retry", b"", b"dat", b" "]),
        st.sampled_from([b": ", b":", b""]),
        values,
    ),
)
streams = st.builds(
    lambda start, body, rest: start + b"".join(body) + rest,
    st.sampled_from([b"", b"", BOM, BOM[:2]]),
    st.lists(st.builds(lambda line, newline: line + newline, lines, newlines), max_size=14),
    lines,
)


@given(stream=streams, cuts=st.lists(st.integers(0, 200), max_size=8))
@settings(max_examples=1500, deadline=None)
def test_any_stream_under_any_cuts_reads_as_the_standard_says(
    stream: bytes, cuts: list[int]
) -> None:
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    pieces = [stream[a:b] for a, b in pairwise(edges)]
    decoder = Decoder()
    frames = [frame for piece in pieces for frame in decoder.feed(piece)]
    rest = decoder.close()

    expected, dropped, retry = spec_model(stream)
    assert frames == expected
    assert rest == ([dropped] if dropped else [])
    assert decoder.retry == retry


# --- delivery ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [b"\n\n", b"\r\r", b"\r\n\r", b"\n\r", b"\r\n\n"])
@pytest.mark.parametrize("event", [b"data: x", b"event: e\ndata: x", b"data: x\rdata: y", b"data"])
def test_an_event_is_released_by_the_first_byte_of_its_blank_line(
    event: bytes, ending: bytes
) -> None:
    decoder = Decoder()
    assert decoder.feed(event + ending[:-1]) == []
    assert len(decoder.feed(ending[-1:])) == 1
    assert decoder.feed(b"\n" if ending.endswith(b"\r") else b"") == []
    assert decoder.close() == []


def test_frames_of_a_stream_come_before_its_end_is_known() -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b"data: tick\n\n"

    stream = decode(endless())
    assert [next(stream).data for _ in range(3)] == ["tick"] * 3


@pytest.mark.parametrize("tail", [b"", b"\n", b"\r", b"\r\n"])
def test_a_last_event_without_its_blank_line_is_given_and_marked(tail: bytes) -> None:
    frames = list(decode([b"data: 1\n\nid: 9\nevent: end\ndata: [DONE]" + tail]))
    assert frames == [
        Frame("", "1", "", complete=True),
        Frame("end", "[DONE]", "9", complete=False),
    ]


@pytest.mark.parametrize("rest", [b"event: a\n", b": bye", b"dat", b"\n", b"id: 3"])
def test_a_rest_without_data_is_nothing(rest: bytes) -> None:
    assert [frame.data for frame in decode([b"data: 1\n\n", rest])] == ["1"]


def test_a_letter_cut_by_the_end_of_the_stream_is_replaced() -> None:
    assert [frame.data for frame in decode(["data: né".encode()[:-1]])] == ["n\ufffd"]


def test_closing_twice_gives_the_last_frame_once() -> None:
    decoder = Decoder()
    decoder.feed(b"data: 1")
    assert len(decoder.close()) == 1
    assert decoder.close() == []


@pytest.mark.parametrize(
    ("field", "retry"),
    [
        (b"retry: 3000", 3000),
        (b"retry:007", 7),
        (b"retry: -1", None),
        (b"retry: 1.5", None),
        (b"retry: 10s", None),
        (b"retry:", None),
        (b"retry", None),
        ("retry: ١٢".encode(), None),  # Arabic digits are digits to Python only
        (b"retry: " + b"9" * 5000, None),
    ],
)
def test_a_reconnection_time_is_a_whole_number_of_milliseconds(
    field: bytes, retry: int | None
) -> None:
    decoder = Decoder()
    decoder.feed(field + b"\n\n")
    assert decoder.retry == retry


# --- size -------------------------------------------------------------------------------------


@pytest.mark.parametrize("piece", [b"x" * 1000, b": keep-alive\n", b"data: x\r\n"])
def test_an_event_without_end_is_an_error_before_it_fills_the_memory(piece: bytes) -> None:
    decoder = Decoder(max_event_bytes=10_000)
    taken = 0
    with pytest.raises(StreamError, match="10,000 bytes"):
        while taken < 20_000:
            decoder.feed(piece)
            taken += len(piece)
    assert 9_000 <= taken <= 12_000  # CR LF counts as one


@pytest.mark.parametrize("piece", [1, 7, 10_000])
def test_the_largest_event_allowed_is_the_same_however_it_is_cut(piece: int) -> None:
    def read(stream: bytes) -> list[str]:
        cuts = range(0, len(stream), piece)
        frames = decode((stream[i : i + piece] for i in cuts), max_event_bytes=100)
        return [frame.data for frame in frames]

    fitting = b"data: " + b"x" * 93  # and its LF
    for around in (b"", b"data: y\n\n"):
        assert "x" * 93 in read(around + fitting + b"\n\n" + around)
        with pytest.raises(StreamError):
            read(around + fitting + b"x\n\n" + around)


def test_events_before_an_oversized_one_are_delivered_first() -> None:
    decoder = Decoder(max_event_bytes=50)
    oversized = b"data: " + b"x" * 60
    frames = decoder.feed(b"data: 1\n\ndata: 2\n\n" + oversized + b"\n\ndata: 3\n\n")
    assert [frame.data for frame in frames] == ["1", "2"]
    with pytest.raises(StreamError):
        decoder.feed(b"data: 4\n\n")
    with pytest.raises(StreamError):
        decoder.close()

    decoder = Decoder(max_event_bytes=50)
    assert [frame.data for frame in decoder.feed(b"data: 1\n\n" + oversized)] == ["1"]
    with pytest.raises(StreamError):
        decoder.feed(b"")


def test_many_small_events_are_no_large_event() -> None:
    stream = b"data: 0123456789\n\n" * 100
    assert len(list(decode([stream, stream], max_event_bytes=20))) == 200


def test_a_seven_megabyte_event_passes_by_default() -> None:
    size = MAX_EVENT_BYTES - 1000
    (frame,) = decode([b"data: ", b"x" * size, b"\n\n"])
    assert len(frame.data) == size


# --- work -------------------------------------------------------------------------------------


def bytes_looked_at(run: Callable[[], object]) -> int:
    """Total length of the strings whose methods `run` calls: a clock that no load disturbs."""
    total = 0

    def on_call(frame: FrameType, event: str, function: Any) -> None:
        nonlocal total
        if event == "c_call":
            subject = getattr(function, "__self__", None)
            if isinstance(subject, (bytes, bytearray, str)):
                total += len(subject)

    sys.setprofile(on_call)
    try:
        run()
    finally:
        sys.setprofile(None)
    return total


def kilobyte_pieces(stream: bytes) -> list[bytes]:
    return [stream[i : i + 1024] for i in range(0, len(stream), 1024)]


def test_the_measure_of_work_sees_a_quadratic_reader() -> None:
    def rescan(pieces: list[bytes]) -> None:
        buffer = b""
        for piece in pieces:
            buffer += piece
            buffer.find(b"\n\n")

    stream = b"data: " + b"x" * 400_000 + b"\n\n"
    assert bytes_looked_at(lambda: rescan(kilobyte_pieces(stream))) > 100 * len(stream)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("line", [b"x" * 4_000_000, b"\ndata: ".join([b"x" * 72] * 50_000)])
def test_work_grows_with_the_bytes_of_one_large_event(line: bytes, newline: bytes) -> None:
    stream = (b"data: " + line + b"\n\n").replace(b"\n", newline)
    pieces = kilobyte_pieces(stream)
    frames: list[Frame] = []

    looked_at = bytes_looked_at(lambda: frames.extend(decode(pieces)))

    assert [len(frame.data) for frame in frames] == [len(line.replace(b"data: ", b""))]
    assert looked_at < 10 * len(stream)
