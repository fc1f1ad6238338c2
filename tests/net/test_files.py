"""Files to and from the service: piece by piece, whole or not at all, stopped at once."""

from __future__ import annotations

import email
import http.client
import os
import signal
import socket
import tempfile
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from ipyperplexity import Client
from ipyperplexity.errors import (
    AbortedError,
    ChallengeError,
    Interrupted,
    NetworkError,
    PerplexityError,
    RequestTimeout,
    ServerError,
    StreamError,
)
from ipyperplexity.net import transport
from ipyperplexity.service import Service
from ipyperplexity.wire import batches
from tests.net.asking import KEY
from tests.support.raw_server import (
    Close,
    HoldOpen,
    RawServer,
    Script,
    Wait,
    http_head,
    http_response,
    in_turn,
)

GOOD = [http_response(200, {}, {"id": "file_1"})]
LINES = batches.content("file_1")


def service_for(server: Any, **options: Any) -> Service:
    client = Client(api_key=KEY, base_url=server.url, **{"max_retries": 0, **options})
    return client._service(client._settings())


def upload(service: Service, content: Any = b"{}\n", **options: Any) -> Any:
    return service.upload("/v1/files", {"purpose": "batch"}, "a.jsonl", content, **options)


def parts_of(request: Any) -> dict[str, tuple[str | None, bytes]]:
    head = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
    form = email.message_from_bytes(head + request.body)
    return {
        str(part.get_param("name", header="Content-Disposition")): (
            part.get_filename(), part.get_payload(decode=True),
        )
        for part in form.get_payload()
    }  # fmt: skip


def test_a_form_has_the_fields_and_the_file_and_the_key_is_a_header_only() -> None:
    content = b'{"a": 1}\n\xff\x00--\r\n' * 3
    with RawServer(GOOD) as server:
        assert upload(service_for(server), content) == {"id": "file_1"}
        (request,) = server.requests
    assert parts_of(request) == {"purpose": (None, b"batch"), "file": ("a.jsonl", content)}
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert int(request.headers["Content-Length"]) == len(request.body)
    assert KEY.encode() not in request.body


def test_an_open_file_is_sent_from_its_beginning_and_left_open() -> None:
    with RawServer(GOOD) as server, tempfile.TemporaryFile() as file:
        file.write(b"one\n" * 100_000)
        upload(service_for(server), file)
        assert not file.closed
        assert parts_of(server.requests[0])["file"][1] == b"one\n" * 100_000


def test_a_name_cannot_break_out_of_its_header() -> None:
    with RawServer(GOOD) as server:
        service_for(server).upload("/v1/files", {'a"\r\nX: 1': "v"}, 'b"\r\n', b"")
        assert b"X: 1\r\n" not in server.requests[0].body
        assert b'name="a%22%0D%0AX: 1"' in server.requests[0].body


def test_a_refused_upload_is_sent_again_whole() -> None:
    with RawServer(in_turn([http_response(503)], GOOD)) as server:
        upload(service_for(server, max_retries=2), b"x" * 100_000)
        bodies = [len(parts_of(request)["file"][1]) for request in server.requests]
    assert bodies == [100_000, 100_000]


def test_an_upload_is_not_redirected_with_the_key() -> None:
    with RawServer(GOOD) as elsewhere:
        moved = [http_response(307, {"Location": elsewhere.url})]
        with RawServer(moved) as server, pytest.raises(NetworkError, match="redirect"):
            upload(service_for(server))
        assert elsewhere.requests == []


def test_no_error_of_an_upload_shows_the_key() -> None:
    said = http_response(400, {}, {"error": {"message": f"bad {KEY}"}})
    with RawServer([said]) as server, pytest.raises(PerplexityError) as raised:
        upload(service_for(server))
    assert KEY not in f"{raised.value!r}{raised.value}{raised.value.args}"
    assert raised.value.__context__ is None


def drain(listener: socket.socket, count: list[int]) -> None:
    """Take one request and throw it away as it comes, then answer."""
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as stream:
        stream.readline()
        left = int(http.client.parse_headers(stream)["Content-Length"])
        while left:
            taken = len(stream.read(min(left, 1 << 16)))
            count[0], left = count[0] + taken, left - taken
        connection.sendall(GOOD[0])


def test_a_large_file_is_sent_in_little_memory() -> None:
    size, count = 100 * 2**20, [0]
    with socket.create_server(("127.0.0.1", 0)) as listener, tempfile.TemporaryFile() as file:
        file.truncate(size)
        thread = threading.Thread(target=drain, args=(listener, count))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        service = service_for(SimpleNamespace(url=url))
        tracemalloc.start()
        try:
            upload(service, file)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        thread.join()
    assert count[0] > size
    assert peak < 4 * 2**20


def test_a_file_may_be_longer_on_its_way_than_a_stream_may_be_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "SILENCE_TIMEOUT", 0.1)
    with RawServer([Wait(0.4), *GOOD]) as server:
        service = service_for(server)
        assert upload(service) == {"id": "file_1"}
        with pytest.raises(RequestTimeout, match="silent"):
            service.fetch(batches.look("batch_1"))


# --- lines ---------------------------------------------------------------------------------------


def lines_from(script: Script, **options: Any) -> list[bytes]:
    with RawServer(script) as server:
        return list(service_for(server, **options).download_lines(LINES))


def test_lines_come_without_their_ends_whatever_those_are() -> None:
    body = b'{"a": "\xe2\x80\xa8"}\n{"b": 2}\r\n\nlast'
    assert lines_from([http_response(200, {}, body)]) == [
        b'{"a": "\xe2\x80\xa8"}', b'{"b": 2}', b"", b"last",
    ]  # fmt: skip
    assert lines_from([http_response(200, {}, b"")]) == []


@pytest.mark.parametrize("how", ["length", "chunked"])
def test_of_a_file_that_breaks_off_no_line_is_given(how: str) -> None:
    framing = {"length": {"Content-Length": "999"}, "chunked": {"Transfer-Encoding": "chunked"}}
    body = b'{"a": 1}\n' if how == "length" else b'9\r\n{"a": 1}\n\r\n'
    script = [http_head(200, framing[how]) + body, Close()]
    with RawServer(script) as server:
        lines = service_for(server).download_lines(LINES)
        with pytest.raises(StreamError, match="broke"):
            next(lines)


def test_a_failed_download_is_tried_again_before_it_has_begun() -> None:
    assert lines_from(
        in_turn([http_response(502)], [http_response(200, {}, b"a\n")]), max_retries=1
    ) == [b"a"]


def test_a_page_is_not_taken_for_lines() -> None:
    page = b"<html><title>Just a moment...</title></html>"
    html = {"Content-Type": "text/html"}
    with pytest.raises(ChallengeError):
        lines_from([http_response(200, html, page)])
    with pytest.raises(StreamError, match="some other server"):
        lines_from([http_response(200, html, b"<p>hello</p>")])


# --- stopping ------------------------------------------------------------------------------------

CALLS: dict[str, Callable[..., Any]] = {
    "upload": lambda service, **how: upload(service, **how),
    "lines": lambda service, **how: list(service.download_lines(LINES, **how)),
    "fetch": lambda service, **how: service.fetch(batches.look("batch_1"), **how),
}


@pytest.fixture(params=["before the head", "in the body"])
def silent(request: pytest.FixtureRequest) -> Iterator[RawServer]:
    begun = [http_head(200, {"Content-Length": "99", "Content-Type": "application/json"}) + b"{"]
    script = [*(begun if request.param == "in the body" else []), HoldOpen()]
    with RawServer(script) as server:
        yield server


@pytest.mark.parametrize("name", CALLS)
def test_a_stop_ends_each_call_at_once_and_hangs_up(silent: RawServer, name: str) -> None:
    stopped = threading.Event()

    def stop() -> None:
        silent.wait_for_requests()
        stopped.set()

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(AbortedError):
        CALLS[name](service_for(silent), stopped=stopped)
    thread.join()
    assert silent.wait_for_disconnect()


@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_ends_each_call_quietly_and_hangs_up(silent: RawServer, name: str) -> None:
    def interrupt() -> None:
        silent.wait_for_requests()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(Interrupted) as raised:
        CALLS[name](service_for(silent))
    thread.join()
    assert raised.value.__context__ is None
    assert silent.wait_for_disconnect()


def test_a_stop_ends_the_wait_before_another_try() -> None:
    stopped = threading.Event()
    late = [http_response(503, {"Retry-After": "50"})]

    def answer(request: Any, connection: Any) -> None:
        connection.send(late[0])
        stopped.set()

    with RawServer(answer) as server, pytest.raises((AbortedError, ServerError)):
        service_for(server, max_retries=3).fetch(batches.look("batch_1"), stopped=stopped)
