"""Server-sent events: bytes in chunks to events, no socket, no JSON."""

from __future__ import annotations

import codecs
import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator

from tests.bench.report import Row, best_of, missing

Decode = Callable[[list[bytes]], Iterable[object]]


def ours() -> Decode:
    from ipyperplexity.wire.sse import decode

    return decode


def httpx_sse() -> Decode:
    from httpx_sse._decoders import SSEDecoder, SSELineDecoder

    def run(chunks: list[bytes]) -> Iterator[object]:
        text = codecs.getincrementaldecoder("utf-8")(errors="replace")  # as httpx does
        lines, events = SSELineDecoder(), SSEDecoder()
        for chunk in chunks:
            for line in lines.decode(text.decode(chunk)):
                event = events.decode(line)
                if event is not None:
                    yield event
        for line in lines.flush():
            event = events.decode(line)
            if event is not None:
                yield event

    return run


def sseclient_py() -> Decode:
    from sseclient import SSEClient

    logging.getLogger("sseclient").setLevel(logging.WARNING)
    return lambda chunks: SSEClient(iter(chunks)).events()


def perplexityai() -> Decode:
    from perplexity._streaming import SSEDecoder

    return lambda chunks: SSEDecoder().iter_bytes(iter(chunks))


def openai() -> Decode:
    from openai._streaming import SSEDecoder

    return lambda chunks: SSEDecoder().iter_bytes(iter(chunks))


DECODERS: dict[str, Callable[[], Decode]] = {
    "ipyperplexity": ours,
    "httpx-sse": httpx_sse,
    "sseclient-py": sseclient_py,
    "perplexityai SDK's decoder": perplexityai,
    "openai SDK's decoder": openai,
}


def small_event() -> bytes:
    head = b"event: response.output_text.delta\ndata: "
    return head + b'{"delta":"' + b"x" * (190 - len(head) - 14) + b'"}\n\n'


def large_event() -> bytes:
    return b'event: message\r\ndata: {"text":"' + b"y" * 7000 + b'"}\r\n\r\n'


def random_chunks(stream: bytes) -> list[bytes]:
    sizes = random.Random(7)
    chunks, start = [], 0
    while start < len(stream):
        end = start + sizes.randint(1, 2047)
        chunks.append(stream[start:end])
        start = end
    return chunks


def even_chunks(stream: bytes, size: int) -> list[bytes]:
    return [stream[i : i + size] for i in range(0, len(stream), size)]


def one_event(size: int) -> bytes:
    return b"data: " + b"z" * size + b"\n\n"


def measure(quick: bool = False) -> list[Row]:
    total = 2_000_000 if quick else 10_000_000
    runs = 2 if quick else 5
    small, large = small_event(), large_event()
    assert len(small) == 190
    faster = "faster than every library here"
    cases = [
        ("190-byte events, LF, random chunks", random_chunks(small * (total // 190)), total // 190),
        ("190-byte events, LF, a chunk each", [small] * (total // 190), total // 190),
        (
            "7 KB events, CR LF, random chunks",
            random_chunks(large * (total // len(large))),
            total // len(large),
        ),
        ("one 4 MB event in 1 KB chunks", even_chunks(one_event(4_000_000), 1024), 1),
    ]
    rows: list[Row] = []
    for name, chunks, count in cases:
        speeds: dict[str, float] = {}
        found: list[Row] = []
        case = f"SSE decoding: {name}"
        for subject, load in DECODERS.items():
            try:
                decode = load()
            except ImportError as error:
                found.append(missing(case, subject, "MB/s", error))
                continue
            got = sum(1 for _ in decode(chunks))
            work = _drain(decode, chunks)
            seconds = best_of(runs, work, time.perf_counter)
            speeds[subject] = sum(map(len, chunks)) / seconds / 1e6
            wrong = "" if got == count else f"; WRONG: {got:,} events of {count:,}"
            note = f"{seconds / count * 1e6:,.2f} us an event{wrong}"
            found.append(Row(case, subject, speeds[subject], "MB/s", note))
        rows += [_with_ratio(row, speeds, faster) for row in found]
    rows.append(_growth(2 * runs))
    return rows


def _drain(decode: Decode, chunks: list[bytes]) -> Callable[[], None]:
    def work() -> None:
        for _ in decode(chunks):
            pass

    return work


def _with_ratio(row: Row, speeds: dict[str, float], target: str) -> Row:
    mine = speeds["ipyperplexity"]
    if row.value is None:
        return row
    if row.subject != "ipyperplexity":
        return Row(
            row.case, row.subject, row.value, row.unit, f"ours x{mine / row.value:.1f}; {row.note}"
        )
    reached = all(mine >= speed for speed in speeds.values())
    return Row(row.case, row.subject, row.value, row.unit, row.note, target, reached)


def _growth(runs: int) -> Row:
    # Far apart, so that the price of fresh memory for the larger one is no question of principle.
    small, large = 250_000, 4_000_000
    decode = ours()
    times = {
        size: best_of(runs, _drain(decode, even_chunks(one_event(size), 1024)), time.perf_counter)
        for size in (small, large)
    }
    growth = times[large] / times[small]
    case = "SSE decoding: time of a 4 MB event over a 250 KB event (linear 16, quadratic 256)"
    return Row(case, "ipyperplexity", growth, "times", "", "linear", growth < 64)
