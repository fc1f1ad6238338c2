"""A service that refuses, fails and breaks off, and a process that is killed: nothing is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipyperplexity import Client
from ipyperplexity.emulator import Behavior, EmulatorServer
from tests.net.asking import eventually

KEY = "pplx-" + "ch4os" * 6
ROWS = 300
AT_ONCE = 8
DRIVER = """
import json, sys
import ipyperplexity as pplx
rows = [f"What is a lambda, in case {number}?" for number in range(int(sys.argv[2]))]
table = pplx.ask_many(
    rows, limit=1, rpm=600_000, checkpoint=sys.argv[1], cache=False, concurrency=8, retries=12
)
answers = [answer and [answer.question, answer.status, answer.usage.cost_usd] for answer in table.answers]
print(json.dumps({
    "status": table["status"], "cached": table["cached"], "cost_usd": table["cost_usd"],
    "attempts": table["attempts"], "answers": answers,
    "paid": table.cost_usd, "asked": table.asked_usd,
}))
"""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatorServer]:
    monkeypatch.setenv("PERPLEXITY_API_KEY", KEY)
    with EmulatorServer(pace=0, api_key=KEY) as running:
        monkeypatch.setenv("PERPLEXITY_BASE_URL", running.url)
        yield running


def weather(count: int, seed: int) -> list[Behavior]:
    """Return what becomes of so many requests: a fifth of them goes wrong."""
    dice = random.Random(seed)
    good = Behavior()
    kinds = [
        (0.10, Behavior(status=429, headers={"Retry-After": "0.02"})),
        (0.05, Behavior(status=503, headers={"Retry-After": "0.02"})),
        (0.05, Behavior(cut_after=2)),
    ]
    found = []
    for _ in range(count):
        roll, chosen = dice.random(), good
        for share, behavior in kinds:
            if roll < share:
                chosen = behavior
                break
            roll -= share
        found.append(chosen)
    return found


def asked(server: EmulatorServer) -> list[str]:
    """Return the questions that came in, each as often as it did."""
    found = []
    for request in server.requests:
        # The run of an answer that broke off is cancelled; a killed process sends half a request.
        if request.path != "/v1/responses" or not request.body.endswith(b"}"):
            continue
        given = request.json()["input"]
        found.append(given if isinstance(given, str) else given[-1]["content"])
    return found


def kept(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM perplexity_answers").fetchone()[0])


@pytest.mark.timeout(240)
def test_every_row_is_answered_once_and_the_costs_add_up_whatever_happens(
    server: EmulatorServer, tmp_path: Path
) -> None:
    path = tmp_path / "run.db"
    server.next(*weather(4 * ROWS, seed=5))
    command = [sys.executable, "-c", DRIVER, str(path), str(ROWS)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as first:
        assert eventually(lambda: len(server.requests) > ROWS // 2, 60)
        os.kill(first.pid, signal.SIGKILL)
    time.sleep(0.3)  # what was on its way arrives
    before, on_disk = asked(server), kept(path)
    assert 0 < on_disk < ROWS
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found: dict[str, Any] = json.loads(done.stdout)

    assert found["status"] == ["ok"] * ROWS
    expected = [f"What is a lambda, in case {number}?" for number in range(ROWS)]
    assert [answer[0] for answer in found["answers"]] == expected
    assert {answer[1] for answer in found["answers"]} == {"completed"}
    assert sum(found["cached"]) == on_disk

    # What was on disk is not asked again.
    again = Counter(asked(server)[len(before) :])
    for question, is_cached in zip(expected, found["cached"], strict=True):
        assert bool(again[question]) != is_cached, question
    # Each attempt is told, and there were as many as came in.
    assert sum(found["attempts"]) == sum(again.values())

    # What is paid now is what the new answers cost; with the kept ones it is what all cost.
    costs = [answer[2] for answer in found["answers"]]
    new = [cost for cost, is_cached in zip(costs, found["cached"], strict=True) if not is_cached]
    assert all(cost > 0 for cost in costs)
    assert found["paid"] == pytest.approx(sum(new))
    assert found["asked"] == pytest.approx(sum(costs))
    assert sum(found["cost_usd"]) == pytest.approx(found["paid"])


def test_an_interrupt_in_the_middle_gives_the_table_in_half_a_second(
    server: EmulatorServer,
) -> None:
    server.pace = 0.05
    server.next(*weather(400, seed=6))
    pressed: list[float] = []

    def press() -> None:
        eventually(lambda: len(server.requests) > 20, 30)
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    rows = [f"What is a generator, in case {number}?" for number in range(200)]
    with Client() as client, pytest.warns(UserWarning, match="The same call goes on from here"):
        table = client.ask_many(rows, limit=1, rpm=600_000, cache=False, retries=12)
    assert time.monotonic() - pressed[0] < 1.5, "0.5 s, on a machine that is not busy"
    counts = Counter(table["status"])
    assert len(table) == 200 and counts["cancelled"] > 0
    assert set(counts) <= {"ok", "cancelled", "error"}


MANY = """
import gc, json, os, pathlib, sys, threading, time, tracemalloc
import ipyperplexity as pplx

def run(count, name):
    rows = [f"What is a lambda, in case {name} {number}?" for number in range(count)]
    with pplx.Client() as client:
        client.ask_many(rows, limit=1, rpm=600_000, checkpoint=sys.argv[1], cache=False)
    time.sleep(0.2)
    gc.collect()
    folder = pathlib.Path("/proc/self/fd")
    files = len(list(folder.iterdir())) if folder.exists() else 0
    return [tracemalloc.get_traced_memory()[0], files, threading.active_count()]

run(50, "first")  # caches and imports
tracemalloc.start()
print(json.dumps([run(100, "second"), run(800, "third")]))
"""


def test_many_rows_leave_nothing_open_and_take_no_memory_that_outlives_their_table(
    server: EmulatorServer, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", MANY, str(tmp_path / "many.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    few, many = json.loads(done.stdout)
    # Only the ledger's short memory of this session's requests grows.
    assert many[0] - few[0] < 800 * 3000, "bytes"
    assert many[1] <= few[1] + 1, "open files"
    assert many[2] <= few[2], "threads"
