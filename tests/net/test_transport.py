"""An exchange without threads (as in a browser's Python) reads the same bytes in place."""

from __future__ import annotations

import threading

import pytest
import requests

from ipyperplexity import errors
from ipyperplexity.net.redact import BearerAuth, Secret
from ipyperplexity.net.sessions import make_session, sender
from ipyperplexity.net.transport import Exchange, Head, collect
from tests.net.asking import KEY, readers
from tests.support.raw_server import (
    FRAMINGS,
    Close,
    Framing,
    HoldOpen,
    RawServer,
    Reset,
    Script,
    sse_response,
)

FRAMES = [b"data: one\n\n", b"data: two\n\n"]


def exchange_with(server: RawServer, session: requests.Session, *, threaded: bool) -> Exchange:
    send = sender(
        session,
        "POST",
        server.url + "/v1/responses",
        {"a": "\ud800é"},
        auth=BearerAuth(Secret(KEY)),
        headers={},
        loopback=True,
        read_timeout=0.3,
    )
    exchange = Exchange(send, threaded=threaded, total=20)
    exchange.start()
    return exchange


@pytest.mark.parametrize("threaded", [True, False])
@pytest.mark.parametrize("framing", FRAMINGS)
def test_bytes_come_through(framing: Framing, threaded: bool) -> None:
    with RawServer(sse_response(FRAMES, framing, 3)) as server, make_session() as session:
        exchange = exchange_with(server, session, threaded=threaded)
        assert exchange.head().status == exchange.head().status == 200
        assert exchange.head().headers["CONTENT-TYPE"] == "text/event-stream"
        assert b"".join(exchange.chunks()) == b"".join(FRAMES)
        exchange.close()
        assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"
        assert server.requests[0].json == {"a": "?é"}
    assert not readers()


@pytest.mark.parametrize("threaded", [True, False])
@pytest.mark.parametrize(("script", "kind"), [
    ([Close()], errors.NetworkError),
    ([Reset()], errors.NetworkError),
    ([HoldOpen()], errors.RequestTimeout),
    ([*sse_response(FRAMES)[:2], Close()], errors.StreamError),
    ([*sse_response(FRAMES, "length")[:2], Close()], errors.StreamError),
    ([*sse_response(FRAMES, "dribbled")[:2], Close()], errors.StreamError),
    ([*sse_response(FRAMES, "gzip")[:2], Close()], errors.StreamError),
    ([*sse_response(FRAMES)[:2], b"zz\r\n"], errors.StreamError),
    ([*sse_response(FRAMES, "gzip")[:2], b"5\r\nnogzi\r\n"], errors.StreamError),
    ([*sse_response(FRAMES)[:2], HoldOpen()], errors.RequestTimeout),
])  # fmt: skip
def test_what_breaks_is_told(script: Script, kind: type[Exception], threaded: bool) -> None:
    with RawServer(script) as server, make_session() as session:
        exchange = exchange_with(server, session, threaded=threaded)
        with pytest.raises(kind) as raised:
            exchange.head()
            list(exchange.chunks())
        exchange.close()
        assert type(raised.value) is kind
        assert "0x" not in str(raised.value)


def test_a_body_larger_than_the_limit_is_refused_before_it_is_read_to_its_end() -> None:
    taken: list[int] = []

    def pieces() -> object:
        for n in range(100):
            taken.append(n)
            yield b"x" * 10

    with pytest.raises(errors.StreamError, match="more than 35 bytes"):
        collect(pieces(), 35)  # type: ignore[arg-type]
    assert len(taken) == 4


def test_a_stop_before_the_start_sends_nothing_more() -> None:
    gate = threading.Event()

    def send() -> requests.Response:
        gate.wait(5)
        raise OSError("stopped")

    exchange = Exchange(send)
    exchange.start()
    exchange.stop()
    with pytest.raises(errors.AbortedError):
        exchange.head()
    gate.set()
    exchange.close()


def test_the_head_of_a_reply_shows_no_cookie() -> None:
    head = Head(200, {"Set-Cookie": "session=5ecre7"}, ("session=5ecre7",))
    assert "5ecre7" not in repr(head) and "200" in repr(head)
