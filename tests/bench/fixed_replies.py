"""A child process that answers every question alike after a while, and may keep a rate limit.

It costs its reader no CPU time, and little of the machine's: what is measured is who asks.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.request import urlopen

from tests.bench.loopback import ROOT
from tests.support.raw_server import agent_stream, sse_response

TEXT = "It was founded in 1932 by Ole Kirk Christiansen.[1] " * 4
SOURCE = {
    "url": "https://site.example/page",
    "title": "A page",
    "snippet": "What the page says, in a few words. " * 6,
    "date": "2026-03-04",
}


@dataclass
class Service:
    """Where it is, and what it has counted."""

    url: str

    def counts(self) -> dict[str, int]:
        with urlopen(f"{self.url}/counts") as reply:
            return dict(json.load(reply))


@contextmanager
def answering(delay: float, *, per_minute: int = 0) -> Iterator[Service]:
    """Answer each request after `delay` seconds; refuse those over a limit, if there is one."""
    command = [sys.executable, "-m", "tests.bench.fixed_replies", str(delay), str(per_minute)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin and child.stdout
        try:
            yield Service(child.stdout.readline().strip())
        finally:
            child.stdin.close()  # the child ends with it


# --- in the child ---------------------------------------------------------------------------------


def _whole(body: dict[str, Any], content_type: str = "application/json") -> bytes:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def _replies() -> dict[str, bytes]:
    frames = agent_stream(TEXT, [SOURCE], deltas=[TEXT[at : at + 26] for at in range(0, 208, 26)])
    stream = b"".join(step for step in sse_response(frames) if isinstance(step, bytes))
    response = json.loads(frames[-1].partition(b"data: ")[2])["response"]
    return {
        "stream": stream.replace(b"Connection: close\r\n", b""),
        "agent": _whole(response),
        "chat": _whole(
            {
                "id": "c1",
                "object": "chat.completion",
                "created": 1_760_000_000,
                "model": "sonar",
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "stop",
                        "message": {"role": "assistant", "content": TEXT},
                    }
                ],
                "usage": {"prompt_tokens": 9, "completion_tokens": 60, "total_tokens": 69},
                "citations": [SOURCE["url"]],
                "search_results": [SOURCE],
            }
        ),
    }


class _Server:
    def __init__(self, delay: float, per_minute: int) -> None:
        self._delay, self._per_minute = delay, per_minute
        self._level, self._looked = 0.0, time.monotonic()
        self._counts = {"answered": 0, "refused": 0}
        self._replies = _replies()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                length = int(head.partition("content-length:")[2].partition("\r\n")[0] or 0)
                body = await reader.readexactly(length)
                writer.write(await self._reply(head.split()[1], body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _reply(self, path: str, body: bytes) -> bytes:
        if path == "/counts":
            return _whole(self._counts)
        if self._per_minute and not self._bucket_takes():
            self._counts["refused"] += 1
            return (
                b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n"
                b"Content-Type: application/json\r\nRetry-After: 1\r\n\r\n{}"
            )
        await asyncio.sleep(self._delay)
        self._counts["answered"] += 1
        if path.startswith("/chat"):
            return self._replies["chat"]
        return self._replies[
            "stream" if b'"stream": true' in body or b'"stream":true' in body else "agent"
        ]

    def _bucket_takes(self) -> bool:
        """Whether a leaky bucket that holds a second's requests has room (official-api 7)."""
        now, a_second = time.monotonic(), self._per_minute / 60
        self._level = max(0.0, self._level - (now - self._looked) * a_second)
        self._looked = now
        if self._level + 1 > a_second:
            return False
        self._level += 1
        return True


async def _main() -> None:
    server = _Server(float(sys.argv[1]), int(sys.argv[2]))
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0, backlog=512)
    print(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main())
