"""Bytes to a finished answer: CPU time of a 2,000-event stream over loopback, per event."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.bench import clients
from tests.bench.loopback import long_answer, serving
from tests.bench.report import Row, best_of, cpu_time, missing

READERS: dict[str, Callable[[str], clients.Reader]] = {
    "ipyperplexity Client.stream": clients.ours,
    "perplexityai SDK": clients.perplexityai,
    "openai SDK": clients.openai,
}


def measure(quick: bool = False) -> list[Row]:
    deltas = 2_000
    runs = 2 if quick else 7
    frames = long_answer(deltas)
    events = len(frames)
    case = f"bytes -> finished Answer, {deltas:,} deltas, CPU time"
    unit = "us/event"

    payloads = [frame.split(b"data: ", 1)[1] for frame in frames]
    texts = [payload.decode() for payload in payloads]
    floor = best_of(runs, lambda: [json.loads(text) for text in texts], cpu_time)
    rows = [Row(case, "json.loads alone (the floor)", floor / events * 1e6, unit)]
    rows.append(_pure(case, unit, frames, runs))

    costs: dict[str, float] = {}
    with serving(deltas) as url:
        for subject, opener in READERS.items():
            try:
                read = opener(url)
            except (ImportError, AttributeError) as error:
                rows.append(missing(case, subject, unit, error))
                continue
            length = len("".join(read()))  # warms up, too
            seconds = best_of(runs, lambda read=read: "".join(read()), cpu_time)
            costs[subject] = seconds / events * 1e6
            rows.append(Row(case, subject, costs[subject], unit, f"{length:,} characters"))
    mine = costs.get("ipyperplexity Client.stream")
    if mine is not None:
        rows += _verdicts(costs, mine)
    return rows


def _pure(case: str, unit: str, frames: list[bytes], runs: int) -> Row:
    subject = "ipyperplexity decode + fold"
    try:
        from ipyperplexity.wire.agent import fold
        from ipyperplexity.wire.sse import decode
    except ImportError as error:
        return missing(case, subject, unit, error)

    def work() -> None:
        for _ in fold(decode(frames)):
            pass

    return Row(case, subject, best_of(runs, work, cpu_time) / len(frames) * 1e6, unit, "no socket")


def _verdicts(costs: dict[str, float], mine: float) -> list[Row]:
    rows = []
    for peer, share in (("perplexityai SDK", 3), ("openai SDK", 15)):
        if peer in costs:
            times = costs[peer] / mine
            rows.append(
                Row(
                    "bytes -> finished Answer: times cheaper than",
                    peer,
                    times,
                    "times",
                    target=f"at most 1/{share} of it",
                    reached=times >= share,
                )
            )
    return rows
