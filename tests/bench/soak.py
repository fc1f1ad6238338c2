"""A long column at full pace: what grows are the answers that the table holds, and nothing else."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from tests.bench import fixed_replies
from tests.bench.loopback import ROOT
from tests.bench.report import Row

ROWS, AT_ONCE = 20_000, 16
CASE = f"a soak of {ROWS:,} rows, {AT_ONCE} at once, each on disk"


def measure(quick: bool = False) -> list[Row]:
    count = ROWS // 10 if quick else ROWS
    with fixed_replies.answering(0.0) as service:
        command = [sys.executable, "-m", "tests.bench.soak", service.url, str(count)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800)
        if done.returncode:
            return [Row(CASE, "ipyperplexity", None, "MB", done.stderr.strip().splitlines()[-1])]
        answered = service.counts()["answered"]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    first, second = found["columns"]
    seconds = first["seconds"] + second["seconds"]
    a_row = (first["whole"] - found["before"]) * 1024 / (count // 2)
    more = second["whole"] - first["whole"]
    ok = first["ok"] + second["ok"]
    note = f"{ok:,} ok, {answered - 1:,} asked; threads {found['threads']}, files {found['files']}"
    return [
        Row(CASE, "rows a second", count / seconds, "rows/s", f"{seconds:.1f} s in all"),
        Row(CASE, "resident before", found["before"], "MB"),
        Row(
            CASE,
            "a quarter, half, three quarters",
            first["samples"][1],
            "MB",
            f"{first['samples']}",
        ),
        Row(CASE, "with the first half's table", first["whole"], "MB", f"{a_row:.1f} KB a row"),
        Row(
            CASE,
            "with the second half's in its place",
            second["whole"],
            "MB",
            note,
            "no more than 5 MB above",
            more < 5 and ok == count == answered - 1,
        ),
    ]


def _main() -> None:
    from ipyperplexity import Client

    url, count = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder, Client("k", base_url=url) as client:
        options: dict[str, Any] = {"concurrency": AT_ONCE, "rpm": 6e6, "progress": False}
        client.ask_many(["warm up"], "{value}", cache=False, **options)
        threads, files = threading.active_count(), _files()
        found: dict[str, Any] = {"before": _resident(), "columns": []}
        for half in (1, 2):
            rows = [f"Who founded company {half} {number}?" for number in range(count // 2)]
            samples: list[float] = []
            over = threading.Event()
            watcher = threading.Thread(target=_watch, args=(samples, over))
            watcher.start()
            began = time.monotonic()
            path = Path(folder) / f"{half}.db"
            table = client.ask_many(rows, "{value}", checkpoint=path, cache=False, **options)
            seconds = time.monotonic() - began
            over.set()
            watcher.join()
            found["columns"].append(
                {
                    "seconds": seconds,
                    "ok": table["status"].count("ok"),
                    "samples": [samples[len(samples) * part // 4] for part in (1, 2, 3)],
                    "whole": _resident(),
                }
            )
            del table, rows
            gc.collect()
        found["threads"] = f"{threads} -> {threading.active_count()}"
        found["files"] = f"{files} -> {_files()}"
    print(json.dumps(found))


def _watch(samples: list[float], over: threading.Event) -> None:
    while not over.wait(0.25):
        samples.append(_resident())


def _resident() -> float:
    """Return the process's resident memory in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGESIZE") / 2**20, 1)


def _files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


if __name__ == "__main__":
    _main()
