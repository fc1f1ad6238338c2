"""A replayed stream beside the one that was recorded: how far each piece is from its time."""

from __future__ import annotations

import statistics
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.bench.report import Row
from tests.support.raw_server import RawServer, Wait, agent_stream, sse_response

GAP = 0.03
CASE = "replaying a tape: distance of a piece from its recorded time"


def measure(quick: bool = False) -> list[Row]:
    import ipyperplexity as pplx

    count = 20 if quick else 60
    deltas = [f"word{n} " for n in range(count)]
    frames = agent_stream("".join(deltas), deltas=deltas)
    with tempfile.TemporaryDirectory() as folder:
        tape = Path(folder) / "a.tape"
        with RawServer(sse_response(frames, between=Wait(GAP))) as server:
            plain = _arrivals(pplx.Client("k", base_url=server.url))
            with pplx.record(tape):
                live = _arrivals(pplx.Client("k", base_url=server.url))
        with pplx.replay(tape, strict=True):
            replayed = _arrivals(pplx.Client())
        size = tape.stat().st_size
    off = [abs(a - b) * 1e3 for a, b in zip(_gaps(live), _gaps(replayed), strict=True)]
    median, worst = statistics.median(off), max(off)
    slower = (statistics.median(_gaps(live)) - statistics.median(_gaps(plain))) * 1e3
    return [
        Row(CASE, "median", median, "ms", f"{count} pieces, {size:,} bytes", "under 5 ms", median < 5),
        Row(CASE, "worst", worst, "ms", "", "under 5 ms", worst < 5),
        Row(CASE, "recording, beside not recording", slower, "ms", "of the gap between two pieces"),
    ]  # fmt: skip


def _arrivals(client: Any) -> list[float]:
    from ipyperplexity.events import TextDelta

    arrived = []
    with client.stream("What is a lambda?") as stream:
        for event in stream:
            if isinstance(event, TextDelta):
                arrived.append(time.perf_counter())
    return arrived


def _gaps(times: list[float]) -> list[float]:
    return [b - a for a, b in pairwise(times)]
