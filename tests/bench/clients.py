"""Ways to read the text of an Agent-API stream from a URL, one a library.

Each opener makes its client once and returns a reader, which asks once and yields the pieces of
text as they come: connections, TLS contexts and imports are not part of what is timed.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

Reader = Callable[[], Iterator[str]]
DELTA = "response.output_text.delta"
BODY: dict[str, Any] = {"input": "q", "model": "openai/gpt-6-luna", "stream": True}


def ours(url: str) -> Reader:
    import ipyperplexity
    from ipyperplexity.events import TextDelta

    client = ipyperplexity.Client(api_key="k", base_url=url, backend="agent")

    def read() -> Iterator[str]:
        length = 0
        with client.stream("q") as stream:
            for event in stream:
                if isinstance(event, TextDelta):
                    length += len(event.text)
                    yield event.text
        assert len(stream.answer.text) == length

    return read


def perplexityai(url: str) -> Reader:
    from perplexity import Perplexity

    client = Perplexity(api_key="k", base_url=url)

    def read() -> Iterator[str]:
        for event in client.responses.create(input="q", model=BODY["model"], stream=True):
            if event.type == DELTA:
                yield event.delta

    return read


def openai(url: str) -> Reader:
    from openai import OpenAI

    client = OpenAI(api_key="k", base_url=url + "/v1")

    def read() -> Iterator[str]:
        for event in client.responses.create(input="q", model=BODY["model"], stream=True):
            if event.type == DELTA:
                yield event.delta

    return read


def httpx_sse(url: str) -> Reader:
    import httpx
    from httpx_sse import EventSource

    client = httpx.Client(timeout=30)

    def read() -> Iterator[str]:
        with client.stream("POST", url + "/v1/responses", json=BODY) as response:
            for frame in EventSource(response).iter_sse():
                yield from _delta(frame.data)

    return read


def requests_iter_lines(url: str) -> Reader:
    import requests

    session = requests.Session()

    def read() -> Iterator[str]:
        with session.post(url + "/v1/responses", json=BODY, stream=True, timeout=30) as response:
            for line in response.iter_lines():
                if line.startswith(b"data: "):
                    yield from _delta(line[6:])

    return read


def bare_socket(url: str) -> Reader:
    """Return the floor: `recv`, and a search for the deltas; no HTTP, and so no gzip."""
    address = urlsplit(url)
    head = b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"

    def read() -> Iterator[str]:
        with socket.create_connection((address.hostname or "", address.port or 0)) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.sendall(head)
            while data := sock.recv(65536):
                for line in data.splitlines():
                    if line.startswith(b"data: "):
                        yield from _delta(line[6:])
                if b"response.completed" in data:
                    return

    return read


def _delta(data: str | bytes) -> Iterator[str]:
    event = json.loads(data)
    if event["type"] == DELTA:
        yield event["delta"]
