"""Delay from the bytes' leaving the server to the text's being in the reader's hands."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import accumulate

from tests.bench import clients
from tests.bench.report import Row, missing
from tests.support.raw_server import (
    FRAMINGS,
    Framing,
    RawConnection,
    RawRequest,
    RawServer,
    agent_stream,
    sse_response,
)

READERS: dict[str, Callable[[str], clients.Reader]] = {
    "bare socket (the floor)": clients.bare_socket,
    "ipyperplexity": clients.ours,
    "httpx + httpx-sse": clients.httpx_sse,
    "perplexityai SDK": clients.perplexityai,
    "requests iter_lines()": clients.requests_iter_lines,
}
GAP = 0.015  # seconds between two events
CASE = "delay from bytes to TextDelta"


def measure(quick: bool = False) -> list[Row]:
    count = 20 if quick else 60
    rows = []
    for framing in FRAMINGS:
        case = f"{CASE}: {framing}"
        for subject, opener in READERS.items():
            if framing == "gzip" and subject.startswith("bare"):
                continue
            try:
                delays = _delays(opener, framing, count)
            except (ImportError, AttributeError) as error:
                rows.append(missing(case, subject, "ms", error))
                continue
            median, worst = statistics.median(delays) * 1e3, max(delays) * 1e3
            row = Row(case, subject, median, "ms", f"worst {worst:,.2f} ms")
            if subject == "ipyperplexity":
                target = "median under 2 ms, none above 5 ms"
                row = Row(*_measured(row), target, median < 2 and worst < 5)
            rows.append(row)
    return rows


def _measured(row: Row) -> tuple[str, str, float | None, str, str]:
    return row.case, row.subject, row.value, row.unit, row.note


def _delays(opener: Callable[[str], clients.Reader], framing: Framing, count: int) -> list[float]:
    deltas = [f"word{n} " for n in range(count)]
    ends = list(accumulate(map(len, deltas)))
    steps = sse_response(agent_stream("".join(deltas), deltas=deltas), framing)
    sent: list[float] = []

    def script(request: RawRequest, connection: RawConnection) -> None:
        sent.clear()
        for step in steps:
            if isinstance(step, bytes):
                time.sleep(GAP)
                sent.append(time.perf_counter())
            connection.play(step)

    with RawServer(script) as server:
        arrived: list[float] = []
        length = 0
        for piece in opener(server.url)():
            length += len(piece)
            now = time.perf_counter()
            while len(arrived) < count and ends[len(arrived)] <= length:
                arrived.append(now)
    assert len(arrived) == count
    # The head, response.created, .in_progress and the message's item go before the deltas.
    first = 4
    return [got - sent[first + n] for n, got in enumerate(arrived)]
