"""Made-up streams of perplexity.ai's own endpoint, and how tests read them.

Written from the protocol notes (consumer-web 2): it shares no code with the package's reader.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ipyperplexity import errors
from ipyperplexity.events import (
    Event,
    Finished,
    ReasoningDelta,
    SourcesFound,
    TextDelta,
    TextReplaced,
)
from ipyperplexity.question import Question
from ipyperplexity.sources import Sources
from ipyperplexity.wire.consumer import WIRE
from ipyperplexity.wire.sse import decode

Record = dict[str, Any]
MISSING: Any = object()


def text_block(
    chunks: Any = MISSING, at: Any = MISSING, answer: Any = MISSING, usage: str = "ask_text"
) -> Record:
    """Return a snapshot block of the answer."""
    members = {"chunks": chunks, "chunk_starting_offset": at, "answer": answer}
    payload = {name: value for name, value in members.items() if value is not MISSING}
    return {"intended_usage": usage, "markdown_block": payload}


def diff_block(
    *patches: Any, usage: str = "ask_text_0_markdown", block: str = "markdown_block"
) -> Record:
    """Return a block of patches."""
    return {"intended_usage": usage, "diff_block": {"field": block, "patches": list(patches)}}


def patch(path: str, value: Any = MISSING, op: str | None = "add") -> Record:
    made: Record = {"path": path} if op is None else {"op": op, "path": path}
    return made if value is MISSING else {**made, "value": value}


def source_block(*entries: Any) -> Record:
    return {"intended_usage": "web_results", "web_result_block": {"web_results": list(entries)}}


def page(url: str, name: str = "A", **more: Any) -> Record:
    return {"name": name, "url": url, **more}


def workflow(**payload: Any) -> Record:
    item = {"payload": {"text_payload": {"variant": "answer", **payload}}}
    thought = {"payload": {"text_payload": {"variant": "thinking", "text": "Hm."}}}
    block = {"steps": [{"items": [thought]}, {"items": [item]}]}
    return {"intended_usage": "workflow_root", "workflow_block": block}


def steps(*found: Record) -> str:
    return json.dumps(list(found))


def step(kind: str, **content: Any) -> Record:
    return {"step_type": kind, "content": content, "uuid": "s"}


FINAL = step(
    "FINAL", answer=json.dumps({"answer": "So [1].", "web_results": [page("https://f.test")]})
)


def pending(*blocks: Record, **more: Any) -> Record:
    return {"status": "PENDING", "blocks": list(blocks), **more}


def completed(*blocks: Record, **more: Any) -> Record:
    return {
        "status": "COMPLETED",
        "final": True,
        "final_sse_message": True,
        "blocks": list(blocks),
        **more,
    }


def frames(records: Iterable[Any], *, end: bool = True) -> bytes:
    """Return the bytes of a stream as the real server frames it; a ``str`` goes in as it is."""
    lines = [
        record if isinstance(record, str) else json.dumps(record, ensure_ascii=True)
        for record in records
    ]
    body = "".join(f"event: message\r\ndata: {line}\r\n\r\n" for line in lines)
    return (body + ("event: end_of_stream\r\ndata: {}\r\n\r\n" if end else "")).encode()


def pieces_of(body: bytes, seed: int = 0, largest: int = 40) -> list[bytes]:
    """Cut bytes at random places."""
    cuts, chance, at = [0], random.Random(seed), 0
    while at < len(body):
        at += chance.randint(1, largest)
        cuts.append(min(at, len(body)))
    return [body[a:b] for a, b in itertools.pairwise(cuts)]


@dataclass
class Outcome:
    """What a reader of the events has at the end."""

    text: str = ""
    reasoning: str = ""
    sources: Sources = field(default_factory=Sources)
    events: list[Event] = field(default_factory=list)
    error: errors.PerplexityError | None = None

    @property
    def end(self) -> Finished:
        assert isinstance(self.events[-1], Finished), self.error
        return self.events[-1]

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def read_bytes(chunks: Iterable[bytes], model: str | None = None) -> Outcome:
    """Read a stream as the client does; an error that is not one of ours fails the test."""
    request = WIRE.request(Question("Why?", model=model))
    return _gather(WIRE.fold(decode(chunks), request))


def read(records: Sequence[Any], *, end: bool = False, model: str | None = None) -> Outcome:
    """Read a stream of records, cut at random places."""
    return read_bytes(pieces_of(frames(records, end=end), largest=700), model)


def read_body(reply: Any, model: str | None = None) -> Outcome:
    return _gather(WIRE.fold_body(reply, WIRE.request(Question("Why?", model=model))))


def _gather(events: Iterable[Event]) -> Outcome:
    seen = Outcome()
    try:
        for event in events:
            seen.events.append(event)
            match event:
                case TextDelta(text):
                    seen.text += text
                case TextReplaced(text):
                    seen.text = text
                case ReasoningDelta(text):
                    seen.reasoning += text
                case SourcesFound(sources):
                    seen.sources = sources
                case _:
                    pass
    except errors.PerplexityError as error:
        seen.error = error
    return seen


def urls(seen: Outcome) -> list[tuple[int, str]]:
    return [(source.id, source.url) for source in seen.sources]


def failed(seen: Outcome, kind: type[errors.PerplexityError]) -> errors.PerplexityError:
    assert type(seen.error) is kind, (seen.error, seen.events)
    return seen.error
