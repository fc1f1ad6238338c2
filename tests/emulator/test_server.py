from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ipyperplexity.emulator import Behavior, Corpus, EmulatorServer

from .http_help import ASK, ask, call, deltas_of, sources_of, stream, text_of
from .test_framing import open_stream


def emulator_threads() -> set[threading.Thread]:
    return {t for t in threading.enumerate() if t.name.startswith("emulator")}


def test_one_connection_serves_many_requests_also_after_errors(server: EmulatorServer) -> None:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=10)
    good, bad = json.dumps(ASK), json.dumps({**ASK, "nonsense": 1})
    statuses = []
    for path, body in (
        ("/v1/responses", good), ("/v1/responses", bad), ("/nowhere", good), ("/v1/responses", "{"),
        ("/v1/responses", json.dumps({**ASK, "stream": True})), ("/v1/responses", good),
    ):  # fmt: skip
        connection.request("POST", path, body)
        reply = connection.getresponse()
        reply.read()
        statuses.append(reply.status)
        if len(statuses) == 1:
            link = connection.sock
        assert connection.sock is link
    connection.close()
    assert statuses == [200, 400, 404, 400, 200, 200]


def test_a_chunked_request_body_is_read(server: EmulatorServer) -> None:
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=10)
    data = json.dumps(ASK).encode()
    connection.request("POST", "/v1/responses", iter([data[:9], data[9:]]), encode_chunked=True)
    reply = connection.getresponse()
    assert (reply.status, json.loads(reply.read())["status"]) == (200, "completed")
    connection.close()
    assert server.requests[-1].json() == ASK


def test_a_body_over_32_mib_is_too_large(server: EmulatorServer) -> None:
    reply = call(server, "POST", "/v1/responses", b" " * (32 * 1024 * 1024 + 1))
    assert reply.status == 413
    assert reply.json()["error"]["type"] == "payload_too_large"


def test_a_key_is_asked_for_when_the_server_has_one() -> None:
    with EmulatorServer(pace=0, api_key="pplx-right") as server:
        for headers in (
            {},
            {"Authorization": "Bearer pplx-wrong"},
            {"Authorization": "pplx-right"},
        ):
            reply = call(server, "POST", "/v1/responses", ASK, headers)
            assert (reply.status, reply.json()["error"]["type"]) == (401, "invalid_api_key")
        assert call(server, "GET", "/v1/models").status == 401
        right = {"Authorization": "Bearer pplx-right"}
        assert call(server, "POST", "/v1/responses", ASK, right).status == 200
        assert [r.authorized for r in server.requests] == [False, False, False, False, True]
        assert "pplx-right" not in repr(server.requests)
        assert server.requests[-1].headers["authorization"] == "***"


def test_requests_are_recorded(server: EmulatorServer) -> None:
    call(server, "GET", "/v1/models?a=1", headers={"X-Mark": "here"})
    seen = server.requests[-1]
    assert (seen.method, seen.path, seen.query, seen.body) == ("GET", "/v1/models", "a=1", b"")
    assert seen.headers["x-mark"] == "here"
    assert seen.authorized


def test_queued_behaviors_come_first_and_then_the_default(server: EmulatorServer) -> None:
    server.behavior = Behavior(status=500)
    server.next(Behavior(status=429), Behavior())
    assert [ask(server).status for _ in range(4)] == [429, 200, 500, 500]


def test_a_client_that_leaves_is_no_news(
    server: EmulatorServer, capfd: pytest.CaptureFixture[str]
) -> None:
    before = emulator_threads()
    server.behavior = Behavior(pace=0.005)
    for _ in range(5):
        with open_stream(server) as link:
            link.recv(100)
    for thread in emulator_threads() - before:
        thread.join(5)
        assert not thread.is_alive()
    assert capfd.readouterr() == ("", "")


def test_thirty_two_clients_at_once_get_their_own_answers(server: EmulatorServer) -> None:
    words = ["with", "lambda", "yield", "for"]
    with ThreadPoolExecutor(32) as pool:
        asked = [f"What is the {words[n % 4]} statement? ({n})" for n in range(96)]
        runs = list(pool.map(lambda text: stream(server, input=text), asked))
    for text, events in zip(asked, runs, strict=True):
        whole = events[-1]["response"]
        assert whole["output"][0]["queries"] == [text]
        assert deltas_of(events) == text_of(whole) != ""
    assert len({events[-1]["response"]["id"] for events in runs}) == 96


def test_stop_is_quick_and_leaves_no_thread() -> None:
    before = emulator_threads()
    server = EmulatorServer(pace=1.0).start()
    links = [open_stream(server) for _ in range(4)]
    for link in links:
        link.recv(100)
    server.next(Behavior(stall_after=1))
    links.append(open_stream(server))
    links[-1].recv(100)
    ask(server, background=True)
    start = time.monotonic()
    server.stop()
    assert time.monotonic() - start < 1.5
    assert emulator_threads() <= before
    for link in links:
        link.close()
    server.stop()


def test_a_stopped_server_has_no_address_and_can_start_again() -> None:
    server = EmulatorServer(pace=0)
    with pytest.raises(RuntimeError, match="start"):
        _ = server.url
    for _ in range(2):
        with server:
            assert ask(server).status == 200
        assert "stopped" in repr(server)


def test_serve_forever_ends_with_stop() -> None:
    server = EmulatorServer(pace=0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    until = time.monotonic() + 5
    while "stopped" in repr(server) and time.monotonic() < until:
        time.sleep(0.01)
    assert ask(server).status == 200
    server.stop()
    thread.join(5)
    assert not thread.is_alive()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_a_host_that_others_can_reach_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match="allow_remote"):
        EmulatorServer(host=host)


def test_an_old_client_gets_an_unchunked_stream(server: EmulatorServer) -> None:
    host, port = urlsplit(server.url).netloc.split(":")
    data = json.dumps({**ASK, "stream": True}).encode()
    with socket.create_connection((host, int(port)), timeout=10) as link:
        link.sendall(
            b"POST /v1/responses HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(data) + data
        )
        taken = b""
        while piece := link.recv(65536):
            taken += piece
    assert b"chunked" not in taken
    assert taken.endswith(b"\n\n")


def test_notes_are_answered_from_and_served(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "Ghent rivers.md").write_text(
        "# Ghent Å\n\n## Rivers\n\nThe Leie and the Scheldt meet in Ghent.\n", encoding="utf-8"
    )
    (tmp_path.parent / "secret.txt").write_text("secret", encoding="utf-8")
    with EmulatorServer(Corpus.from_folder(tmp_path), pace=0) as server:
        answer = ask(server, input="Which rivers meet in Ghent?").json()
        source = sources_of(answer)[0]
        assert source["url"].startswith(f"{server.url}/corpus/deep/Ghent%20rivers.md")
        assert "The Leie and the Scheldt meet in Ghent.[1]" in text_of(answer)
        page = call(server, "GET", source["url"].removeprefix(server.url).partition("#")[0])
        assert (page.status, page.headers["content-type"]) == (200, "text/plain; charset=utf-8")
        assert "Å" in page.body.decode()
        for path in (
            "../secret.txt",
            "..%2fsecret.txt",
            "%2e%2e/secret.txt",
            "deep/../../secret.txt",
            "/etc/passwd",
            "",
        ):
            assert call(server, "GET", f"/corpus/{path}").status == 404


def test_importing_the_emulator_loads_nothing_of_the_rest_of_the_package() -> None:
    import ast

    room = Path(EmulatorServer.__module__.replace(".", "/")).parent
    root = Path(__file__).resolve().parents[2] / room
    for file in root.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.level <= 1, file
                assert not (node.module or "").startswith("ipyperplexity"), file
