"""What was recorded is replayed as it came: text, sources, usage and pace, without key or network."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ipyperplexity as pplx
from ipyperplexity import Client, errors
from ipyperplexity.auth.login_record import WebLogin
from ipyperplexity.auth.token_store import save_login
from ipyperplexity.emulator import Behavior, EmulatorServer
from ipyperplexity.emulator.faults import FAULTS
from ipyperplexity.events import Retrying, TextDelta
from ipyperplexity.net.redact import Secret
from ipyperplexity.store.tape_file import read_tape
from ipyperplexity.tapes import deck
from tests.auth.signing_in import EMAIL, KEY, TOKEN
from tests.net.asking import eventually
from tests.support.raw_server import RawServer, Wait, agent_stream, sse_response

QUESTION = "What is a lambda?"


@pytest.fixture(autouse=True)
def empty_deck(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in (deck.RECORD_VARIABLE, deck.REPLAY_VARIABLE, deck.SPEED_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    yield
    deck.stop_recording()
    deck.stop_replaying()


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    with EmulatorServer(pace=0, api_key=KEY, web_sessions={TOKEN: EMAIL}) as server:
        yield server


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return tmp_path / "lesson.tape"


def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise AssertionError("somebody opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def client_for(server: EmulatorServer, **options: Any) -> Client:
    return Client(**{"api_key": KEY, "base_url": server.url, "max_retries": 0, **options})


def same(one: pplx.Answer, other: pplx.Answer) -> None:
    for name in (
        "text",
        "reasoning",
        "searches",
        "usage",
        "model",
        "id",
        "status",
        "data",
        "related",
    ):
        assert getattr(one, name) == getattr(other, name), name
    assert one.to_dicts() == other.to_dicts()
    assert [vars(c) for c in one.citations] == [vars(c) for c in other.citations]


# --- the same answer, of every backend ------------------------------------------------------------


@pytest.mark.parametrize("backend", ["agent", "chat", "web", "demo"])
@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_of_each_backend_is_replayed_without_key_login_or_network(
    server: EmulatorServer, tape: Path, monkeypatch: pytest.MonkeyPatch, backend: str, stream: bool
) -> None:
    save_login(WebLogin(Secret(TOKEN), origin="a code by e-mail", email=EMAIL))
    options: dict[str, Any] = {"backend": backend}
    if backend != "demo":
        options["base_url"] = server.url
    teacher = Client(KEY if backend in ("agent", "chat") else None, **options)
    with pplx.record(tape), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        told = teacher.ask(QUESTION, stream=stream)
        more = told.follow_up("And how is it sorted?")
    assert told.text and not told.cached

    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tape.parent / "student"))
    no_network(monkeypatch)
    student = Client(backend=backend)
    with pplx.replay(tape, speed=0, strict=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert student.status().state == "ready"
        again = student.ask(QUESTION, stream=stream)
        same(told, again)
        same(more, again.follow_up("And how is it sorted?"))
        assert again.cached and again.backend == told.backend


def test_searches_models_and_jobs_are_replayed_too(
    server: EmulatorServer, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    teacher = client_for(server)
    with pplx.record(tape):
        found = teacher.search(["lambda", "yield"], max_results=3)
        models = teacher.models()
        job = teacher.submit(QUESTION, model="high")
        answer = job.wait()
    no_network(monkeypatch)
    student = Client()
    with pplx.replay(tape, speed=0, strict=True):
        again = student.search(["lambda", "yield"], max_results=3)
        assert [s.to_dicts() for s in again.values()] == [s.to_dicts() for s in found.values()]
        assert student.models()["name"] == models["name"]
        replayed = student.submit(QUESTION, model="high").wait()
    assert replayed.text == answer.text and replayed.to_dicts() == answer.to_dicts()


@pytest.mark.parametrize("mode", ["client", "server"])
def test_a_column_is_replayed_row_by_row(
    server: EmulatorServer, tape: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    things = ["lambda", "yield", "slice"]
    options: dict[str, Any] = {"limit": 2, "mode": mode, "progress": False}
    with pplx.record(tape):
        told = client_for(server).ask_many(things, "What is {value}?", cache=False, **options)
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tape.parent / "student"))
    no_network(monkeypatch)
    with pplx.replay(tape, speed=0, strict=True):
        again = Client().ask_many(list(reversed(things)) if mode == "client" else things,
                                  "What is {value}?", **options)  # fmt: skip
    texts = again["answer"][::-1] if mode == "client" else again["answer"]
    assert again["status"] == ["ok"] * 3 and texts == told["answer"]
    assert again.cost_usd == 0


def test_functions_run_here_and_the_answer_goes_on_from_the_tape(
    server: EmulatorServer, tape: Path
) -> None:
    calls: list[str] = []

    def look_up(word: str) -> str:
        """Look a word up."""
        calls.append(word)
        return f"{word}: found"

    with pplx.record(tape):
        told = client_for(server).ask("Look lambda up.", tools=[look_up])
    with pplx.replay(tape, speed=0, strict=True):
        again = Client().ask("Look lambda up.", tools=[look_up])
    assert again.text == told.text and len(calls) == 2 * len(told.tool_calls) > 0


# --- time -----------------------------------------------------------------------------------------


def timed(client: Client) -> list[float]:
    arrived, began = [], time.monotonic()
    with client.stream(QUESTION) as stream:
        for event in stream:
            if isinstance(event, TextDelta):
                arrived.append(time.monotonic() - began)
    return arrived


def test_pieces_come_at_their_times_or_faster_or_at_once(tape: Path) -> None:
    deltas = [f"word{n} " for n in range(12)]
    steps = sse_response(agent_stream("".join(deltas), deltas=deltas), between=Wait(0.03))
    with RawServer(steps) as server, pplx.record(tape):
        live = timed(Client(KEY, base_url=server.url))
    with pplx.replay(tape, strict=True):
        replayed = timed(Client())
    with pplx.replay(tape, speed=4, strict=True):
        fast = timed(Client())
    with pplx.replay(tape, speed=0, strict=True):
        at_once = timed(Client())
    gaps = [b - a for a, b in itertools.pairwise(live)]
    again = [b - a for a, b in itertools.pairwise(replayed)]
    errors_ms = [abs(a - b) * 1e3 for a, b in zip(gaps, again, strict=True)]
    assert statistics.median(errors_ms) < 5
    assert (replayed[-1] - replayed[0]) / 4 == pytest.approx(fast[-1] - fast[0], rel=0.5)
    assert at_once[-1] < 0.2


def test_recording_does_not_hold_the_stream_back(tape: Path) -> None:
    deltas = [f"word{n} " for n in range(8)]
    steps = sse_response(agent_stream("".join(deltas), deltas=deltas), between=Wait(0.05))
    with RawServer(steps) as server, pplx.record(tape):
        arrived = timed(Client(KEY, base_url=server.url))
    assert arrived[-1] - arrived[0] > 0.25, "it came as it was written, and not in one"


def test_a_replay_stops_at_once(tape: Path) -> None:
    deltas = [f"word{n} " for n in range(4)]
    steps = sse_response(agent_stream("".join(deltas), deltas=deltas), between=Wait(0.3))
    with RawServer(steps) as server, pplx.record(tape):
        Client(KEY, base_url=server.url).ask(QUESTION)
    with pplx.replay(tape):
        timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        began = time.monotonic()
        with pytest.raises(errors.Interrupted):
            Client().ask(QUESTION)
        assert time.monotonic() - began < 1


# --- what is asked --------------------------------------------------------------------------------


def test_a_question_that_was_asked_twice_is_answered_as_it_was_each_time(tape: Path) -> None:
    told = ["First.", "Second."]
    replies = iter(told)

    def script(request: Any, connection: Any) -> None:
        for step in sse_response(agent_stream(next(replies))):
            connection.play(step)

    with RawServer(script) as server, pplx.record(tape):
        client = Client(KEY, base_url=server.url)
        assert [client.ask(QUESTION).text for _ in told] == told
    with pplx.replay(tape, speed=0):
        assert [Client().ask(QUESTION).text for _ in range(3)] == [*told, "Second."]


def test_a_miss_names_the_nearest_question_if_it_is_strict(
    server: EmulatorServer, tape: Path
) -> None:
    with pplx.record(tape):
        client_for(server).ask(QUESTION)
        client_for(server).ask("Who wrote Python?")
    with pplx.replay(tape, speed=0, strict=True):
        with pytest.raises(errors.NotOnTapeError, match="nearest there is 'What is a lambda"):
            Client().ask("What are lambdas?")
        with pytest.raises(errors.NotOnTapeError, match="asked with other options") as raised:
            Client().ask(QUESTION, recency="month")
    assert raised.value.code == "NOT_ON_TAPE"


def test_a_miss_goes_to_the_demo_with_a_line_that_says_so(
    server: EmulatorServer, tape: Path
) -> None:
    with pplx.record(tape):
        client_for(server).ask(QUESTION)
    says = r"is not on the tape lesson\.tape.*demo"
    with pplx.replay(tape, speed=0), pytest.warns(errors.PerplexityWarning, match=says):
        answer = Client().ask("What is a generator?")
    assert answer.model and answer.model.startswith("demo/") and "yield" in answer.text
    assert len(server.requests) == 1


def test_a_key_that_was_not_there_is_asked_for_again_afterwards(
    server: EmulatorServer, tape: Path
) -> None:
    with pplx.record(tape):
        client_for(server).ask(QUESTION)
    student = Client()
    with pplx.replay(tape, speed=0):
        student.ask(QUESTION)
    with pytest.raises(errors.MissingCredentialError):
        student.ask(QUESTION)


def test_what_is_replayed_costs_nothing(server: EmulatorServer, tape: Path) -> None:
    with pplx.record(tape):
        client_for(server).ask(QUESTION)
        client_for(server).search("lambda")
    student = Client(budget=0.0)
    before = len(student.usage())
    with pplx.replay(tape, speed=0, strict=True):
        assert student.ask(QUESTION).usage.cost_usd
        student.search("lambda")
    assert len(student.usage()) == before


# --- what went wrong ------------------------------------------------------------------------------


def test_refusals_and_breaks_are_replayed_as_they_were(server: EmulatorServer, tape: Path) -> None:
    server.next(Behavior(status=429, headers={"Retry-After": "0.01"}), FAULTS["cut"])
    teacher = client_for(server, max_retries=2)
    with pplx.record(tape):
        with pytest.raises(errors.StreamError) as told:
            teacher.ask(QUESTION)
        server.next(FAULTS["unauthorized"])
        with pytest.raises(errors.AuthenticationError):
            teacher.ask("Who are you?")
    student = Client(max_retries=2)
    with pplx.replay(tape, speed=0, strict=True):
        with student.stream(QUESTION) as stream, pytest.raises(errors.StreamError) as again:
            events = list(stream)
            del events
        assert again.value.answer and told.value.answer
        assert again.value.answer.text == told.value.answer.text
        with pytest.raises(errors.AuthenticationError):
            student.ask("Who are you?")
    assert Retrying  # what a retry looks like is the same event


def test_what_somebody_stopped_is_not_recorded(server: EmulatorServer, tape: Path) -> None:
    server.pace = 0.3
    with pplx.record(tape):
        with client_for(server).stream(QUESTION) as stream:
            threading.Timer(0.2, stream.cancel).start()
            for _ in stream:
                pass
        server.pace = 0
        client_for(server).ask("Who wrote Python?")
    assert [exchange.asked for exchange in read_tape(tape)] == ["Who wrote Python?"]


# --- the file -------------------------------------------------------------------------------------


def test_nothing_secret_is_on_a_tape(server: EmulatorServer, tape: Path) -> None:
    save_login(WebLogin(Secret(TOKEN), origin="a code by e-mail", email=EMAIL))
    server.behavior = Behavior(rotate_session="rotated-" + "s3ss10n" * 5)
    with pplx.record(tape), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        web = Client(backend="web", base_url=server.url)
        web.ask(QUESTION).follow_up("And then?")
        client_for(server).ask(f"Is {KEY} a key of ann.o'nym@school.example.org?")
        Client("", backend="chat", base_url=server.url)
    data = tape.read_bytes()
    for secret in (KEY, TOKEN, EMAIL, "rotated-s3ss", "nym@school"):
        assert secret.encode() not in data, secret
    assert not re.search(rb"(?i)set-cookie|authorization|bearer ", data)
    assert not re.search(rb'read_write_token\\?":\s*\\?"[^*"\\]', data)


def test_a_secret_that_the_network_cut_in_two_is_masked_in_both_pieces(tape: Path) -> None:
    secret = "pplx-" + "s3cr3t" * 6
    body = json.dumps({"error": {"message": f"bad key {secret} of ann@school.example"}}).encode()
    head = (
        f"HTTP/1.1 400 Bad\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    cut = body.index(b"s3cr3t") + 9
    steps = [head.encode() + body[:cut], Wait(0.1), body[cut:]]
    with RawServer(steps) as server, pplx.record(tape), pytest.raises(errors.InvalidRequestError):
        client = Client(KEY, base_url=server.url)
        client.ask(QUESTION)
    data = tape.read_bytes()
    assert b"s3cr3t" not in data and b"school" not in data and b"bad key" in data


def test_a_tape_is_lines_that_a_diff_can_show(server: EmulatorServer, tape: Path) -> None:
    with pplx.record(tape):
        client_for(server).ask(QUESTION)
    lines = [json.loads(line) for line in tape.read_text("utf-8").splitlines()]
    assert lines[0]["format"] == "ipyperplexity tape" and lines[0]["version"] == 1
    assert lines[1]["asked"] == QUESTION and lines[1]["request"]["path"] == "/v1/responses"
    assert all("text" in line for line in lines[3:-1]) and lines[-1]["end"] == "complete"


def test_a_tape_that_is_there_goes_on(server: EmulatorServer, tape: Path) -> None:
    for question in ("Who?", "Why?"):
        with pplx.record(tape):
            client_for(server).ask(question)
    assert [exchange.asked for exchange in read_tape(tape)] == ["Who?", "Why?"]
    assert tape.read_text("utf-8").count('"format"') == 1


def test_a_file_of_another_kind_is_not_written_to(tmp_path: Path) -> None:
    other = tmp_path / "companies.csv"
    other.write_text("name,city\n")
    with pytest.raises(errors.ConfigurationError, match="line 1: this is no tape"):
        pplx.record(other).__enter__()
    assert other.read_text() == "name,city\n"


def test_a_process_that_is_killed_leaves_a_tape_that_can_be_read(
    server: EmulatorServer, tape: Path
) -> None:
    code = (
        "import sys, ipyperplexity as pplx\n"
        "pplx.record(sys.argv[1]).__enter__()\n"
        f"client = pplx.Client({KEY!r}, base_url=sys.argv[2])\n"
        "for n in range(1000): client.ask(f'What is a lambda, {n}?', limit=1)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tape), server.url]) as child:
        assert eventually(lambda: len(server.requests) > 10, 30)
        os.kill(child.pid, signal.SIGKILL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = read_tape(tape)
    assert len(found) >= 8
    with pplx.replay(tape, speed=0, strict=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert Client().ask("What is a lambda, 3?", limit=1).text


def test_a_process_that_ends_at_once_has_its_last_answer_on_the_tape(
    server: EmulatorServer, tape: Path
) -> None:
    code = (
        "import sys, ipyperplexity as pplx\n"
        f"print(pplx.Client({KEY!r}, base_url=sys.argv[1]).ask({QUESTION!r}).status)\n"
    )
    env = {**os.environ, deck.RECORD_VARIABLE: str(tape)}
    command = [sys.executable, "-c", code, server.url]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "completed\n" and len(read_tape(tape)) == 1
    replay = {**os.environ, deck.REPLAY_VARIABLE: str(tape), deck.SPEED_VARIABLE: "0"}
    code = f"import ipyperplexity as pplx\nprint(pplx.ask({QUESTION!r}).cached)\n"
    done = subprocess.run(
        [sys.executable, "-c", code], env=replay, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "True\n", done.stderr


# --- one tape at a time ---------------------------------------------------------------------------


def test_only_one_tape_is_recorded_and_none_while_one_is_replayed(
    server: EmulatorServer, tape: Path
) -> None:
    with pplx.record(tape):
        client_for(server).ask(QUESTION)
        for begin in (pplx.record, pplx.replay):
            with pytest.raises(errors.ConfigurationError, match="is being recorded"):
                begin(tape).__enter__()
    with pplx.replay(tape), pytest.raises(errors.ConfigurationError, match="is being replayed"):
        pplx.record(tape).__enter__()


@pytest.mark.parametrize("speed", [-1, "fast", None, True, float("nan"), 1e9])
def test_a_speed_that_is_none_is_refused(tape: Path, speed: Any) -> None:
    with pytest.raises(errors.ConfigurationError, match="speed: got"):
        pplx.replay(tape, speed=speed)


@pytest.mark.parametrize("path", ["", "  ", None, 5])
def test_a_path_that_is_none_is_refused(path: Any) -> None:
    with pytest.raises(errors.InvalidRequestError, match="path: got"):
        pplx.record(path)


def test_a_tape_of_the_environment_that_cannot_be_played_lets_no_question_out(
    server: EmulatorServer, tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_for(server)
    monkeypatch.setenv(deck.REPLAY_VARIABLE, str(tape))
    for _ in range(2):
        with pytest.raises(errors.ConfigurationError, match=r"lesson\.tape cannot be read"):
            client.ask(QUESTION)
    assert client.status().state == "misconfigured"
    monkeypatch.setenv(deck.SPEED_VARIABLE, "soon")
    with pytest.raises(errors.ConfigurationError, match="speed: got 'soon'"):
        client.ask(QUESTION)
    monkeypatch.delenv(deck.REPLAY_VARIABLE)
    monkeypatch.delenv(deck.SPEED_VARIABLE)
    assert client.ask(QUESTION).text and len(server.requests) == 1
