"""A client: what it is given, what it finds, what it keeps to itself, and how it works in threads."""

from __future__ import annotations

import concurrent.futures
import contextlib
import copy
import dataclasses
import gc
import json
import pickle
import threading
import warnings
from typing import Any

import pytest
import requests

import ipyperplexity as pplx
from ipyperplexity import Answer, Client, demo_engine, errors
from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.question import Question
from tests.net.asking import KEY, SOURCES, client_for, completed, eventually, message, readers
from tests.support.raw_server import (
    RawConnection,
    RawRequest,
    RawServer,
    agent_stream,
    http_response,
    in_turn,
    sse_response,
)

GOOD = sse_response(agent_stream("It is so.[1]", SOURCES))


def echo(request: RawRequest, connection: RawConnection) -> None:
    """Answer with the question itself, and the key that came with it."""
    question = request.json["input"][-1]["content"]
    for step in sse_response(agent_stream(question, [{"url": f"https://x.example/{question}"}])):
        connection.play(step)


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("arguments", "field"), [
    ({"backend": "nope"}, "backend"),
    ({"backend": ""}, "backend"),
    ({"backend": 3}, "backend"),
    ({"backend": []}, "backend"),
    ({"max_retries": -1}, "max_retries"),
    ({"max_retries": 1.5}, "max_retries"),
    ({"max_retries": True}, "max_retries"),
    ({"timeout": 0}, "timeout"),
    ({"timeout": -1}, "timeout"),
    ({"timeout": "soon"}, "timeout"),
    ({"timeout": float("nan")}, "timeout"),
    ({"model": "a b"}, "model"),
    ({"model": 3}, "model"),
    ({"base_url": "api.perplexity.ai"}, "base_url"),
    ({"base_url": "ftp://x.example"}, "base_url"),
    ({"base_url": ""}, "base_url"),
    ({"base_url": 5}, "base_url"),
    ({"base_url": "http://api.example.com"}, "base_url"),
    ({"base_url": "https://x.example", "backend": "demo"}, "base_url"),
    ({"api_key": 5}, "api_key"),
    ({"api_key": "two words"}, "api_key"),
    ({"session": "yes"}, "session"),
])  # fmt: skip
def test_an_argument_that_is_not_valid_is_refused_at_once(
    arguments: dict[str, Any], field: str
) -> None:
    with pytest.raises(errors.ConfigurationError) as raised:
        Client(**arguments)
    assert raised.value.field == field
    assert field in raised.value.message


def test_an_unknown_backend_of_the_environment_is_refused_when_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("IPYPERPLEXITY_BACKEND", "nope")
    with pytest.raises(
        errors.ConfigurationError, match="IPYPERPLEXITY_BACKEND: got 'nope'"
    ) as raised:
        Client(KEY).ask("Why?")
    assert "demo" in (raised.value.hint or "")


def test_plain_http_to_another_machine_is_refused_unless_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PERPLEXITY_BASE_URL", "http://gateway.example")
    with pytest.raises(errors.ConfigurationError, match="https"):
        Client(KEY).stream("Why?")
    Client(KEY, allow_http=True).stream("Why?")
    assert Client(KEY, base_url="http://gateway.example", allow_http=True)


def test_without_a_key_nothing_is_sent() -> None:
    with RawServer(GOOD) as server, pytest.raises(errors.MissingCredentialError) as raised:
        Client(base_url=server.url).ask("Why?")
    assert server.requests == []
    assert "PERPLEXITY_API_KEY" in str(raised.value)


@pytest.mark.parametrize(
    "options", [{"recencyy": "day"}, {"recency": "dayy"}, {"limit": 99}, {"model": "hihg"}]
)
def test_a_bad_option_is_refused_before_anything_is_sent(options: dict[str, Any]) -> None:
    with RawServer(GOOD) as server, client_for(server) as client:
        with pytest.raises(errors.InvalidRequestError):
            client.stream("Why?", **options)
        with pytest.raises(errors.InvalidRequestError):
            client.ask("")
        with pytest.raises(TypeError):
            client.ask(Question("Why?"), limit=3)
        assert server.requests == []


# --- settings -------------------------------------------------------------------------------------


def test_a_new_key_in_the_environment_counts_for_the_next_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with RawServer(GOOD) as server:
        client = Client(base_url=server.url)
        for name, key in (("PPLX_API_KEY", "alias-key"), ("PERPLEXITY_API_KEY", "first-key"), ("PERPLEXITY_API_KEY", " second-key\n")):  # fmt: skip
            monkeypatch.setenv(name, key)
            client.ask("Why?")
        sent = [request.headers["Authorization"] for request in server.requests]
    assert sent == ["Bearer alias-key", "Bearer first-key", "Bearer second-key"]


def test_the_argument_wins_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERPLEXITY_API_KEY", "other")
    with RawServer(GOOD) as server:
        client_for(server).ask("Why?")
        assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"


def test_an_address_that_changes_meanwhile_never_gets_the_earlier_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = in_turn([http_response(503, {"retry-after-ms": "1"})], GOOD)
    with RawServer(script) as first, RawServer(GOOD) as second:
        monkeypatch.setenv("PERPLEXITY_BASE_URL", first.url)
        monkeypatch.setenv("PERPLEXITY_API_KEY", "key-of-first")
        client = Client()
        with client.stream("Why?") as stream:
            next(iter(stream))  # the retry comes after the change
            monkeypatch.setenv("PERPLEXITY_BASE_URL", second.url)
            monkeypatch.setenv("PERPLEXITY_API_KEY", "key-of-second")
            list(stream)
        assert [r.headers["Authorization"] for r in first.requests] == ["Bearer key-of-first"] * 2
        assert second.requests == []
        client.ask("Why?")
        assert [r.headers["Authorization"] for r in second.requests] == ["Bearer key-of-second"]


@pytest.mark.parametrize("tail", ["", "/", "/v1", "/v1/", "/gateway", "/gateway/v1"])
def test_the_address_may_end_where_it_likes(tail: str) -> None:
    with RawServer(GOOD) as server:
        Client(KEY, base_url=server.url + tail).ask("Why?")
        prefix = "/gateway" if "gateway" in tail else ""
        assert server.requests[0].path == prefix + "/v1/responses"


def test_defaults_of_the_client_hold_unless_the_question_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("IPYPERPLEXITY_MODEL", "xhigh")
    with RawServer(GOOD) as server:
        client_for(server).ask("Why?")
        client_for(server, model="high").ask("Why?")
        client_for(server, model="high").ask("Why?", model="fast")
        client_for(server, model="high").ask(Question("Why?"))
        assert [r.json["preset"] for r in server.requests] == ["xhigh", "high", "fast", "high"]


def test_a_follow_up_keeps_what_was_asked_for() -> None:
    with RawServer(GOOD) as server:
        first = client_for(server).ask("Why?", model="high", country="BE", limit=3)
        first.follow_up("And then?", limit=2)
        assert server.requests[1].json["preset"] == "high"
        (tool,) = server.requests[1].json["tools"]
        assert (tool["user_location"], tool["max_results"]) == ({"country": "BE"}, 2)


# --- status ---------------------------------------------------------------------------------------


@pytest.fixture
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("status() must not touch the network")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.socket.bind", refuse)


STATES: dict[str, tuple[dict[str, Any], dict[str, str], str, str]] = {
    "a key": ({"api_key": KEY}, {}, "ready", ""),
    "a key of the environment": ({}, {"PPLX_API_KEY": KEY}, "ready", ""),
    "no key": ({}, {}, "missing-credential", "no API key"),
    "an empty key": ({"api_key": " "}, {"PERPLEXITY_API_KEY": ""}, "missing-credential", "no API key"),
    "a broken key": ({}, {"PERPLEXITY_API_KEY": "two words"}, "misconfigured", "PERPLEXITY_API_KEY"),
    "a bad backend": ({}, {"IPYPERPLEXITY_BACKEND": "nope"}, "misconfigured", "nope"),
    "a bad address": ({"api_key": KEY}, {"PERPLEXITY_BASE_URL": "nonsense"}, "misconfigured", "nonsense"),
    "a bad model": ({"api_key": KEY}, {"IPYPERPLEXITY_MODEL": "hihg"}, "misconfigured", "high"),
    "a model with blanks": ({"api_key": KEY}, {"IPYPERPLEXITY_MODEL": "a b"}, "misconfigured", "a b"),
    "the demo": ({"backend": "demo"}, {}, "ready", ""),
    "the demo, by the environment": ({}, {"IPYPERPLEXITY_BACKEND": "demo"}, "ready", ""),
    "the demo, a bad model": ({"backend": "demo", "model": "hihg"}, {}, "misconfigured", "hihg"),
}  # fmt: skip


@pytest.mark.usefixtures("_no_network")
@pytest.mark.parametrize(
    ("arguments", "environment", "state", "words"), STATES.values(), ids=STATES
)
def test_the_status_says_what_is_configured_without_network_and_key(
    arguments: dict[str, Any],
    environment: dict[str, str],
    state: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("ipyperplexity.demo_engine.shared", demo_engine.DemoEngine())
    client = Client(**arguments)
    status = client.status()
    assert (status.state, bool(status)) == (state, state == "ready")
    assert words in status.problem
    shown = repr(status)
    assert state in shown
    assert KEY not in shown
    if state != "ready":
        assert status.problem


def test_the_status_shows_no_password_of_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("https://me:sesame@x.example", "https://x.example/?key=sesame", "https://me:sesame@x y.example", "http://me:sesame@x.example:99999"):  # fmt: skip
        monkeypatch.setenv("PERPLEXITY_BASE_URL", address)
        status = Client(KEY).status()
        assert status.state == "misconfigured"
        assert "sesame" not in repr(status)
        with pytest.raises(errors.ConfigurationError) as raised:
            Client(KEY).ask("Why?")
        assert "sesame" not in str(raised.value)


# --- connections and threads ----------------------------------------------------------------------


def test_a_connection_is_kept_for_the_next_question() -> None:
    with RawServer(GOOD) as server, client_for(server) as client:
        for _ in range(5):
            client.ask("Why?")
            client.ask("Why?", stream=False)
        assert len(server.requests) == 10
        assert len(server.connections) == 1


def test_a_connection_that_the_server_has_closed_meanwhile_is_replaced() -> None:
    with RawServer(GOOD) as server, client_for(server) as client:
        client.ask("Why?")
        server.connections[0].close()
        assert client.ask("Why?").status == "completed"
        assert len(server.connections) == 2


def test_sixteen_threads_may_share_a_client() -> None:
    with RawServer(echo) as server, client_for(server) as client:
        asked = [f"question-{n}" for n in range(96)]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(client.ask, asked))
        assert [answer.text for answer in answers] == asked
        assert [answer.sources[0].url for answer in answers] == [
            f"https://x.example/{q}" for q in asked
        ]
        assert len(server.connections) <= 16
        assert client.last in answers
    assert eventually(lambda: not readers())


def test_the_first_questions_of_several_threads_make_one_session() -> None:
    begin = threading.Barrier(8)
    with RawServer(echo) as server, client_for(server) as client:

        def ask(n: int) -> Any:
            begin.wait(5)
            client.ask(f"q{n}")
            return client._session

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            assert len(set(map(id, pool.map(ask, range(8))))) == 1


def test_a_session_handed_in_is_used_and_not_closed() -> None:
    class Session(requests.Session):
        closed = False

        def close(self) -> None:
            self.closed = True
            super().close()

    with RawServer(GOOD) as server, Session() as session:
        session.headers["X-Mine"] = "yes"
        with client_for(server, session=session) as client:
            client.ask("Why?")
        assert not session.closed
        assert server.requests[0].headers["X-Mine"] == "yes"
        assert server.requests[0].headers["Authorization"] == f"Bearer {KEY}"
        client.ask("Why?")  # the client can be used again
        assert len(server.connections) == 1
        assert "Authorization" not in session.headers


def test_streams_that_are_not_read_are_not_kept() -> None:
    with RawServer(GOOD) as server, client_for(server) as client:
        for _ in range(20):
            client.stream("Why?")
        gc.collect()
        assert len(client._running) == 0


# --- pickling -------------------------------------------------------------------------------------


def test_a_pickled_client_leaves_the_key_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    with RawServer(GOOD) as server:
        client = client_for(server, model="high", timeout=30.0, max_retries=7)
        client.ask("Why?")
        for dumped in (pickle.dumps(client, protocol) for protocol in range(2, 6)):
            assert KEY.encode() not in dumped
            arrived = pickle.loads(dumped)
            assert repr(arrived) == repr(client)
            with pytest.raises(errors.MissingCredentialError):
                arrived.ask("Why?")
        monkeypatch.setenv("PERPLEXITY_API_KEY", "the-workers-own")
        assert arrived.ask("Why?").status == "completed"
        assert server.requests[-1].headers["Authorization"] == "Bearer the-workers-own"


def test_a_pickled_answer_leaves_the_key_at_home() -> None:
    with RawServer(GOOD) as server:
        answer = client_for(server).ask("Why?")
        assert answer.follow_up("And?").text
        dumped = pickle.dumps(answer)
        assert KEY.encode() not in dumped
        arrived = pickle.loads(dumped)
        assert (arrived.text, len(arrived.sources), arrived.usage) == (answer.text, 3, answer.usage)
        with pytest.raises(errors.ConfigurationError, match="belongs to no client"):
            arrived.follow_up("And?")


def test_a_pickled_failure_keeps_its_text_and_leaves_the_key_at_home() -> None:
    with (
        RawServer(sse_response(agent_stream("So far", status="failed"))) as server,
        pytest.raises(errors.ServerError) as raised,
    ):
        client_for(server).ask("Why?")
    dumped = pickle.dumps(raised.value)
    assert KEY.encode() not in dumped
    assert pickle.loads(dumped).answer.text == "So far"


# --- answers --------------------------------------------------------------------------------------


def test_a_warning_of_an_answer_is_a_warning_of_python() -> None:
    with (
        RawServer(sse_response(agent_stream("So far", status="incomplete"))) as server,
        pytest.warns(errors.PerplexityWarning, match="cut the answer short") as caught,
    ):
        client_for(server).ask("Why?", max_tokens=5)
    assert caught[0].filename == __file__


def test_an_answer_without_a_flaw_warns_of_nothing() -> None:
    with RawServer(GOOD) as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(client_for(server).ask("Why?"), Answer)


def test_a_limit_leaves_out_uncited_sources_first() -> None:
    with RawServer(GOOD) as server:
        answer = client_for(server).ask("Why?", limit=1)
    assert (answer.sources["id"], answer.truncated) == ([1], True)


def test_a_structured_answer_is_checked() -> None:
    def reply(text: str) -> list[Any]:
        return sse_response(agent_stream(text))

    with RawServer(
        in_turn(reply('{"name": "Ghent", "people": 3}'), reply("no JSON at all"))
    ) as server:
        client = client_for(server)
        form = {"name": str, "people": int}
        assert client.ask("Why?", schema=form).data == {"name": "Ghent", "people": 3}
        with pytest.raises(errors.StreamError, match="does not fit the schema") as raised:
            client.ask("Why?", schema=form)
    assert raised.value.answer is not None and raised.value.answer.text == "no JSON at all"


def test_a_class_that_refuses_the_data_does_not_lose_the_text() -> None:
    @dataclasses.dataclass
    class City:
        name: str

        def __post_init__(self) -> None:
            raise LookupError("no such city")

    with RawServer(sse_response(agent_stream('{"name": "Atlantis"}'))) as server:
        client = client_for(server)
        with pytest.raises(errors.StreamError, match="no such city") as raised:
            client.ask("Why?", schema=City)
    assert raised.value.answer is not None
    assert raised.value.answer.text == '{"name": "Atlantis"}'
    assert client.last is raised.value.answer


def test_a_record_nested_too_deep_to_be_kept_does_not_lose_the_text() -> None:
    end = json.dumps(completed(message("So."), metadata="NEST"))
    for depth in (400, 480, 600, 900):
        deep = end.replace('"NEST"', "[" * depth + "]" * depth)
        with RawServer(sse_response([f"data: {deep}\n\n".encode()])) as server:
            client = client_for(server)
            with contextlib.suppress(errors.StreamError):
                assert client.ask("Why?").text == "So."
            assert client.last is not None and client.last.raw is not None


def test_the_demo_needs_neither_key_nor_network_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    answer = pplx.demo().ask("What does the with statement do?", limit=3)
    assert (answer.status, answer.backend, len(answer.sources)) == ("completed", "demo", 3)


def test_the_demo_gets_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERPLEXITY_API_KEY", KEY)
    with EmulatorServer(pace=0) as server:
        monkeypatch.setattr("ipyperplexity.demo_engine.shared._server", server)
        Client(KEY, backend="demo").ask("What is a lambda?")
        assert "authorization" not in server.requests[0].headers


def test_a_question_made_beforehand_takes_the_model_of_the_client() -> None:
    with EmulatorServer(pace=0) as server:
        client = Client(api_key=KEY, base_url=server.url, model="high")
        client.ask(Question("What is a lambda?"))
        client.ask(Question("What is a lambda?", model="fast"))
        assert [request.json()["preset"] for request in server.requests] == ["high", "fast"]


def test_a_follow_up_that_is_refused_for_another_reason_is_sent_once() -> None:
    with EmulatorServer(pace=0) as server:
        answer = Client(api_key=KEY, base_url=server.url).ask("What is a lambda?")
        with pytest.raises(errors.InvalidRequestError):
            answer.follow_up("And?", model="perplexity/sonar-pro")
        assert len(server.requests) == 2


def test_a_copy_of_a_client_keeps_its_key_in_this_process() -> None:
    with EmulatorServer(pace=0, api_key=KEY) as server:
        client = Client(api_key=KEY, base_url=server.url)
        for other in (copy.copy(client), copy.deepcopy(client)):
            assert other.ask("What is a lambda?").status == "completed"


def test_the_demo_costs_nothing() -> None:
    assert pplx.demo().ask("What is a lambda?").usage.cost_usd == 0.0


def test_a_long_hint_of_the_status_is_wrapped_below_itself(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = repr(Client().status()).splitlines()
    begin = next(place for place, line in enumerate(lines) if line.startswith("what to do"))
    assert all(len(line) <= 60 for line in lines)
    assert lines[begin + 1].startswith(" " * 12) and lines[begin + 1][12] != " "
