"""The key appears nowhere: in no repr, no error, no traceback with its locals, no log."""

from __future__ import annotations

import io
import json
import logging
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from ipyperplexity import Client, errors
from tests.net.asking import SOURCES, client_for, completed, delta, message
from tests.support.raw_server import (
    Close,
    HoldOpen,
    RawServer,
    Reset,
    Script,
    agent_stream,
    http_head,
    http_response,
    in_turn,
    sse_frames,
    sse_response,
)

# In pieces, so that this module's own source lines, which a traceback quotes, do not hold it.
SECRET = "-".join(["pplx", "5ecre7" * 4])
OTHER = "q" + 'uite\\"another' * 2


def said(key: str) -> dict[str, Any]:
    return {
        "message": f"bad key {key}, Bearer {key}",
        "type": f"odd {key}",
        "param": key,
        "code": key,
    }


def scripts(key: str) -> dict[str, Script]:
    """Return everything that can go wrong, with a service that tells the key to everybody."""
    error = {"error": said(key)}
    header = {"x-request-id": key, "retry-after-ms": "1"}
    return {
        "400": [http_response(400, header, error)],
        "401 html": [http_response(401, {**header, "Content-Type": "text/html"}, f"<title>{key}</title>")],
        "403": [http_response(403, header, error)],
        "422": [http_response(422, header, {"detail": [{"loc": ["body", key], "msg": key}]})],
        "429": [http_response(429, {"Retry-After": "99"}, error)],
        "500 twice": [http_response(500, header, error)],
        "redirect": [http_response(302, {"Location": f"https://x.example/?{key}"})],
        "challenge": [http_response(403, {"cf-mitigated": "challenge"}, key)],
        "odd content type": [http_response(200, {"Content-Type": f"text/html-{key}"}, "<p>")],
        "no reply": [Close()],
        "reset": [Reset()],
        "not http": [f"{key}\r\n\r\n".encode(), Close()],
        "silence": [HoldOpen()],
        "broken off": [*sse_response(agent_stream("So far", SOURCES))[:-3], Close()],
        "no end": sse_response(agent_stream("So far", status=None)),
        "failed": sse_response(sse_frames([{"type": "response.failed", "error": said(key)}])),
        "error event": sse_response(sse_frames([delta("So far"), {"type": "error", **said(key)} | {"type": "error"}])),
        "failed json": [http_response(200, {}, {"status": "failed", "error": said(key)})],
        "empty": sse_response(agent_stream("")),
        "not the schema": sse_response(agent_stream("no JSON")),
        "broken error": [http_head(500, {"Content-Length": "999"}), json.dumps(error).encode(), Close()],
    }  # fmt: skip


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    pending = [error]
    while pending:
        link = pending.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            yield link
            pending += [link.__cause__, link.__context__]


def everything_shown(error: BaseException) -> str:
    """Return all that any traceback, debugger or error reporter shows of an error."""
    shown = []
    for link in chain(error):
        shown += [repr(link), str(link), repr(vars(link)), repr(link.args)]
        if isinstance(link, errors.PerplexityError):
            shown += link._render_traceback_()
        walker = link.__traceback__
        while walker is not None:
            if not walker.tb_frame.f_code.co_filename.startswith(__file__[:-15]):
                # Deeper than a traceback goes: what the locals hold, and what those hold.
                shown += [inside(value) for value in walker.tb_frame.f_locals.values()]
            walker = walker.tb_next
        made = traceback.TracebackException.from_exception(link, capture_locals=True)
        shown += [str(frame.locals) for frame in made.stack if frame.filename != __file__]
        shown += list(traceback.TracebackException.from_exception(link).format())
    return "\n".join(shown)


def inside(value: Any, depth: int = 3) -> str:
    shown = repr(value)
    if depth and type(value).__module__.startswith("ipyperplexity") and hasattr(value, "__dict__"):
        shown += "".join(inside(part, depth - 1) for part in vars(value).values())
    return shown


KINDS = list(scripts("x"))


@pytest.mark.parametrize("key", [SECRET, OTHER], ids=["usual", "odd"])
@pytest.mark.parametrize("name", KINDS)
def test_no_failure_tells_the_key(name: str, key: str, log: io.StringIO) -> None:
    with RawServer(scripts(key)[name]) as server:
        client = Client(key, base_url=server.url, max_retries=1)
        events: list[Any] = []
        stream = client.stream(
            "Why?",
            timeout=0.4 if name == "silence" else None,
            schema=int if "schema" in name else None,
        )
        with pytest.raises(errors.PerplexityError) as raised, stream:
            events.extend(stream)
        assert server.requests[0].headers["Authorization"] == f"Bearer {key}"
    error = raised.value
    shown = everything_shown(error) + inside(client) + inside(stream) + repr(events)
    shown += inside(stream.answer) + stream.answer.to_html() + stream.answer.to_text()
    assert key not in shown
    assert key not in json.dumps(stream.answer.raw).replace("\\\\", "\\").replace('\\"', '"')
    assert [type(link) for link in chain(error)] == [type(error)]
    assert key not in log.getvalue()


def test_a_good_answer_does_not_tell_the_key_either(log: io.StringIO) -> None:
    end = completed(message("So."), metadata={SECRET: [SECRET]}, instructions=f"Bearer {SECRET}")
    script = in_turn([http_response(503, {"retry-after-ms": "1"}, {"error": said(SECRET)})], sse_response(sse_frames([end])))  # fmt: skip
    with RawServer(script) as server:
        client = Client(SECRET, base_url=server.url)
        with client.stream("Why?") as stream:
            events = list(stream)
        shown = "".join(inside(thing) for thing in (client, client.status(), stream, stream.answer))
        assert SECRET not in shown + repr(stream.answer.row()) + log.getvalue()
        assert SECRET not in "".join(repr(event) for event in events if type(event).__name__ != "Finished")  # fmt: skip
        assert SECRET not in json.dumps(stream.answer.raw)
        assert server.requests[1].headers["Authorization"] == f"Bearer {SECRET}"


def test_a_key_that_is_refused_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = SECRET + " x"
    with pytest.raises(errors.ConfigurationError) as raised:
        Client(bad)
    assert SECRET not in everything_shown(raised.value)
    monkeypatch.setenv("PERPLEXITY_API_KEY", bad)
    for ask in (Client().stream, Client().ask):
        with pytest.raises(errors.ConfigurationError) as raised:
            ask("Why?")
        assert SECRET not in everything_shown(raised.value)


def test_another_bad_argument_does_not_show_the_key() -> None:
    with pytest.raises(errors.ConfigurationError) as raised:
        Client(SECRET, backend="nope")
    assert SECRET not in everything_shown(raised.value)
    with pytest.raises(errors.ConfigurationError) as raised:
        Client(SECRET, timeout=-1)
    assert SECRET not in everything_shown(raised.value)


def test_an_interrupt_does_not_tell_the_key() -> None:
    with RawServer([HoldOpen()]) as server:
        stream = client_for(server, api_key=SECRET).stream("Why?")

        def interrupt() -> None:
            raise KeyboardInterrupt

        stream.on_wait = interrupt
        with pytest.raises(KeyboardInterrupt) as raised:
            list(stream)
        made = traceback.TracebackException.from_exception(raised.value, capture_locals=True)
        assert SECRET not in "".join(
            str(frame.locals) for frame in made.stack if frame.filename != __file__
        )
