"""A child process that serves one fixed stream, so that serving costs the reader no CPU time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.raw_server import RawServer, agent_stream, sse_response

ROOT = Path(__file__).parents[2]


def long_answer(events: int) -> list[bytes]:
    """Return the frames of an answer with `events` text deltas and ten sources."""
    sources = [
        {
            "url": f"https://site{n}.example/page",
            "title": f"Page number {n}",
            "snippet": "What the page says, in a few words. " * 8,
            "date": "2026-03-04",
        }
        for n in range(1, 11)
    ]
    deltas = [f"word{n} " if n % 50 else f"fact.[{1 + n // 50 % 10}]\n\n" for n in range(events)]
    return agent_stream("".join(deltas), sources, deltas=deltas)


@contextmanager
def serving(events: int) -> Iterator[str]:
    """Serve `long_answer(events)` to every request; yields the URL."""
    command = [sys.executable, "-m", "tests.bench.loopback", str(events)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin and child.stdout
        try:
            yield child.stdout.readline().strip()
        finally:
            child.stdin.close()  # the child ends with it


if __name__ == "__main__":
    response = b"".join(
        step for step in sse_response(long_answer(int(sys.argv[1]))) if isinstance(step, bytes)
    )
    with RawServer([response]) as server:
        print(server.url, flush=True)
        sys.stdin.read()
