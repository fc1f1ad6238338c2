"""Asking a scripted server through the public client, and waiting for what a test is about."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ipyperplexity import Answer, Client
from ipyperplexity.errors import PerplexityError
from ipyperplexity.events import Event, TextDelta
from tests.support.raw_server import RawServer, Script, sse_frames, sse_response

KEY = "pplx-5ecre7-0123456789abcdefABCDEF"
PART = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
SOURCES = [
    {"id": 1, "url": "https://a.example/one"},
    {"id": 2, "url": "https://b.example/two"},
    {"id": 11, "url": "https://c.example/eleven"},
]


def client_for(server: Any, **options: Any) -> Client:
    return Client(**{"api_key": KEY, "base_url": server.url, "max_retries": 0, **options})


def stream_from(script: Script, **options: Any) -> tuple[list[Event], Answer]:
    """Ask a server with this script; return all events and the answer, whatever became of it."""
    with RawServer(script) as server, client_for(server) as client:
        events: list[Event] = []
        with client.stream("Why?", **options) as stream:
            try:
                for event in stream:
                    events.append(event)
            except PerplexityError as error:
                assert error.answer is stream.answer
        text = "".join(event.text for event in events if isinstance(event, TextDelta))
        assert stream.text == stream.answer.text == text, "what was shown is what is kept"
        return events, stream.answer


def read_frames(frames: Iterable[bytes], **response: Any) -> tuple[list[Event], Answer]:
    return stream_from(sse_response(frames, **response))


def read_events(events: Iterable[Mapping[str, Any]], **form: Any) -> Answer:
    """Return the answer that these events of the service make."""
    return read_frames(sse_frames(events, **form))[1]


def message(*texts: Any, id: Any = "msg_1", **fields: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "id": id, "role": "assistant", "content": content, **fields}


def delta(text: Any, **where: Any) -> dict[str, Any]:
    return {"type": "response.output_text.delta", **{**PART, **where}, "delta": text}


def text_done(text: Any, **where: Any) -> dict[str, Any]:
    return {"type": "response.output_text.done", **{**PART, **where}, "text": text}


def item_done(item: Any, index: Any = 1) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def completed(*output: Any, **fields: Any) -> dict[str, Any]:
    response = {"id": "resp_1", "object": "response", "status": "completed", "model": "m/1"}
    return {"type": "response.completed", "response": {**response, "output": [*output], **fields}}


def results(*found: Mapping[str, Any], queries: Sequence[str] = ()) -> dict[str, Any]:
    return {"type": "search_results", "queries": [*queries], "results": [*found]}


def readers() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "ipyperplexity-reader"]


def eventually(condition: Callable[[], Any], seconds: float = 5.0) -> bool:
    """Wait for what another thread is about to do."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.002)
    return True
