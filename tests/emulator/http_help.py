"""What the tests of the emulator share: plain http.client and sockets, none of our client code."""

from __future__ import annotations

import http.client
import json
import re
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

ASK: dict[str, Any] = {"preset": "low", "input": "What does the with statement do?"}


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def call(
    server: Any, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> Reply:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=20)
    try:
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.request(
            method, path, data, {"Content-Type": "application/json", **(headers or {})}
        )
        reply = connection.getresponse()
        return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())
    finally:
        connection.close()


def ask(server: Any, /, **fields: Any) -> Reply:
    return call(server, "POST", "/v1/responses", {**ASK, **fields})


def raw_exchange(server: Any, /, **fields: Any) -> bytes:
    """Send one request and read all bytes until the server closes."""
    host, port = urlsplit(server.url).netloc.split(":")
    data = json.dumps({**ASK, "stream": True, **fields}).encode()
    head = f"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=20) as link:
        link.sendall(head.encode() + data)
        taken = b""
        while piece := link.recv(65536):
            taken += piece
        return taken


def parse_events(body: bytes) -> list[dict[str, Any]]:
    """Read server-sent events by the letter of the standard, from bytes."""
    text = body.decode().removeprefix("\ufeff")
    events = []
    name = ""
    data: list[str] = []
    for line in re.split("\r\n|\n|\r", text):
        if not line:
            if data and (joined := "\n".join(data)) != "[DONE]":
                event = json.loads(joined)
                assert name in ("", event["type"])
                events.append(event)
            name, data = "", []
        elif not line.startswith(":"):
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "event":
                name = value
            elif field == "data":
                data.append(value)
    return events


def stream(server: Any, /, **fields: Any) -> list[dict[str, Any]]:
    reply = ask(server, stream=True, **fields)
    assert reply.status == 200, reply.body
    return parse_events(reply.body)


def text_of(response: dict[str, Any]) -> str:
    return "".join(
        part["text"]
        for item in response["output"]
        if item["type"] == "message"
        for part in item["content"]
    )


def sources_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        r
        for item in response["output"]
        if item["type"] == "search_results"
        for r in item["results"]
    ]


def deltas_of(events: list[dict[str, Any]]) -> str:
    return "".join(e["delta"] or "" for e in events if e["type"] == "response.output_text.delta")
