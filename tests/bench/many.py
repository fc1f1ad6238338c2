"""A column of questions: ours beside langchain's `.batch()` and threads over the official SDK.

Each subject runs in a process of its own, on a service that answers after a fixed time.
"""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.bench import fixed_replies
from tests.bench.loopback import ROOT
from tests.bench.report import Row

ROWS, DELAY, AT_ONCE = 1000, 0.2, 64
CASE = f"a column: {ROWS:,} rows x {DELAY:g} s, {AT_ONCE} at once"
#: Requests that the paced service takes in a minute, and how many are asked of it.
PER_MINUTE, PACED_ROWS = 1200, 200
PACED = f"a column at a limit of {PER_MINUTE} a minute, {PACED_ROWS} rows"


def ours(url: str, questions: list[str], at_once: int, rpm: float | None) -> int:
    """Return how many rows have an answer."""
    from ipyperplexity import Client

    with Client("k", base_url=url) as client:
        options: dict[str, Any] = {"concurrency": at_once, "rpm": rpm or 6e5, "progress": False}
        table = client.ask_many(questions, "{value}", cache=False, **options)
    assert len(table.to_pandas()) == len(questions)
    return table["status"].count("ok")


def ours_kept(url: str, questions: list[str], at_once: int, rpm: float | None) -> int:
    """Return the same, with each answer on disk before it counts."""
    from ipyperplexity import Client

    with tempfile.TemporaryDirectory() as folder, Client("k", base_url=url) as client:
        options: dict[str, Any] = {"concurrency": at_once, "rpm": rpm or 6e5, "progress": False}
        path = Path(folder) / "rows.db"
        table = client.ask_many(questions, "{value}", checkpoint=path, **options)
    return table["status"].count("ok")


def langchain(url: str, questions: list[str], at_once: int, rpm: float | None) -> int:
    """Return the same of langchain-perplexity."""
    from langchain_perplexity import ChatPerplexity
    from perplexity import Perplexity

    model = ChatPerplexity(model="sonar", pplx_api_key="k", max_retries=5)
    model.client = Perplexity(api_key="k", base_url=url, max_retries=5)
    found = model.batch(questions, config={"max_concurrency": at_once}, return_exceptions=True)
    return sum(not isinstance(answer, Exception) for answer in found)


def sdk_threads(url: str, questions: list[str], at_once: int, rpm: float | None) -> int:
    """Return the same of the official SDK in a bare ThreadPoolExecutor."""
    from perplexity import Perplexity

    client = Perplexity(api_key="k", base_url=url, max_retries=5)

    def ask(question: str) -> bool:
        try:
            return bool(client.responses.create(input=question, preset="low").output)
        except Exception:
            return False

    with ThreadPoolExecutor(at_once) as pool:
        return sum(pool.map(ask, questions))


SUBJECTS: dict[str, Callable[[str, list[str], int, float | None], int]] = {
    "ipyperplexity": ours,
    "ipyperplexity, with a checkpoint": ours_kept,
    "langchain-perplexity .batch()": langchain,
    "perplexityai SDK in threads": sdk_threads,
}


def measure(quick: bool = False) -> list[Row]:
    rows = []
    count = ROWS // 4 if quick else ROWS
    ideal = math.ceil(count / AT_ONCE) * DELAY
    for subject in SUBJECTS:
        with fixed_replies.answering(DELAY) as service:
            found = _run(subject, service.url, count, AT_ONCE)
        if "problem" in found:
            rows.append(Row(CASE, subject, None, "s", found["problem"]))
            continue
        over = (found["wall"] / ideal - 1) * 100
        note = (
            f"{over:+.0f} % of ideal ({ideal:.1f} s); CPU {found['cpu']:.2f} s, "
            f"{found['rss']:,} MB, {found['ok']:,} answered"
        )
        target, reached = ("", None)
        if subject.startswith("ipyperplexity"):
            target, reached = "within 15 % of ideal", over <= 15 and found["ok"] == count
        rows.append(Row(CASE, subject, found["wall"], "s", note, target, reached))
    return rows + ([] if quick else _paced())


def _paced() -> list[Row]:
    rows = []
    for subject in SUBJECTS:
        with fixed_replies.answering(0.05, per_minute=PER_MINUTE) as service:
            found = _run(subject, service.url, PACED_ROWS, AT_ONCE, PER_MINUTE)
            if "problem" in found:
                rows.append(Row(PACED, subject, None, "x 429", found["problem"]))
                continue
            refused = service.counts()["refused"]
        note = f"{found['ok']:,} answered in {found['wall']:.1f} s"
        target, reached = ("", None)
        if subject.startswith("ipyperplexity"):
            target, reached = "0 x 429", not refused and found["ok"] == PACED_ROWS
        rows.append(Row(PACED, subject, float(refused), "x 429", note, target, reached))
    return rows


def _run(subject: str, url: str, rows: int, at_once: int, rpm: int = 0) -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "tests.bench.many",
        subject,
        url,
        str(rows),
        str(at_once),
        str(rpm),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    if done.returncode:
        return {"problem": (done.stderr.strip().splitlines() or ["?"])[-1]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _main() -> None:
    subject, url, rows, at_once, rpm = sys.argv[1:]
    run = SUBJECTS[subject]
    run(url, ["warm up"], 1, None)  # imports, TLS contexts and connections are not what is timed
    questions = [f"Who founded company number {number}?" for number in range(int(rows))]
    cpu, began = time.process_time(), time.perf_counter()
    answered = run(url, questions, int(at_once), float(rpm) or None)
    found = {
        "wall": time.perf_counter() - began,
        "cpu": time.process_time() - cpu,
        "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "ok": answered,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    _main()
