"""What was left to the service comes back: whole, once, and whatever happens in between."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity import Answer, errors
from ipyperplexity.answer_run import Call
from ipyperplexity.answer_stream import AnswerStream
from ipyperplexity.emulator import Behavior, EmulatorServer
from ipyperplexity.events import Event, Finished, SourcesFound, TextDelta
from ipyperplexity.jobs import Job, Jobs, Pace, Progress, progress_line
from ipyperplexity.jobs.pace import passes
from ipyperplexity.jobs.progress import duration
from ipyperplexity.net.redact import BearerAuth, Secret
from ipyperplexity.net.sessions import make_session
from ipyperplexity.question import Question
from ipyperplexity.service import Service
from ipyperplexity.store.job_store import JobRecord, JobStore
from ipyperplexity.wire import agent
from tests.support.raw_server import (
    Close,
    HoldOpen,
    Pause,
    RawConnection,
    RawRequest,
    RawServer,
    Reset,
    Script,
    Step,
    agent_events,
    http_response,
    sse_frames,
    sse_response,
)

KEY = "pplx-" + "5ecre7" * 4
QUICK = Pace(first=0.01, most=0.02, patience=4)
TEXT = "It is so.[1] And more of it.[2]"
SOURCES = [{"url": "https://a.example/one"}, {"url": "https://b.example/two"}]
EVENTS = agent_events(TEXT, SOURCES)
LAST: dict[str, Any] = EVENTS[-1]["response"]
CREATED = {"id": "resp_1", "object": "response", "status": "queued", "model": "high", "output": []}
#: A stream of the run from its event 0 on; the first events name the run.
FRAMES = sse_frames(EVENTS)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    store = JobStore(tmp_path / "state" / "jobs.db")
    yield store
    store.close()


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with make_session() as session:
        yield session


@dataclass
class World:
    """A service, and the means to leave a question to it."""

    server: Any
    session: requests.Session
    store: JobStore
    key: str = KEY

    def service(self, record: JobRecord | None = None) -> Service:
        secret = Secret(self.key)
        return Service(
            "agent", self.server.url, lambda: self.session, BearerAuth(secret), (secret,)
        )

    def submit(self, text: str = "Why?", *, stream: bool = False, **options: Any) -> Job:
        return Job.submit(
            self.service(),
            Question(text, **options),
            stream=stream,
            store=self.store,
            pace=QUICK,
        )

    def jobs(self, **options: Any) -> Jobs:
        return Jobs.load(self.service, store=self.store, pace=QUICK, **options)

    def ask(self, text: str, **options: Any) -> Answer:
        return AnswerStream(Question(text, **options), Call(self.service(), agent.WIRE)).answer

    def paths(self, method: str) -> list[str]:
        found = [r for r in self.server.requests if r.method == method]
        # The embedded service keeps the query apart.
        return [f"{r.path}?{r.query}" if getattr(r, "query", "") else r.path for r in found]


@pytest.fixture
def demo(store: JobStore, session: requests.Session) -> Iterator[World]:
    with EmulatorServer(pace=0, chunk_chars=7) as server:
        yield World(server, session, store)


@contextlib.contextmanager
def world(script: Script, store: JobStore, session: requests.Session) -> Iterator[World]:
    with RawServer(script) as server:
        yield World(server, session, store)


def service_of(
    *looks: Any, streams: Any = (), created: Any = CREATED, cancels: Any = ()
) -> Callable[[RawRequest, RawConnection], None]:
    """Return a script: what each look, stream and cancellation gets in turn, the last for ever.

    A dict is a reply of status 200, a tuple a status and a body, a list the steps of a connection.
    """
    turns = {
        "look": itertools.chain(looks, itertools.repeat(looks[-1] if looks else CREATED)),
        "stream": itertools.chain(streams, itertools.repeat((streams or [(400, {})])[-1])),
        "cancel": itertools.chain(cancels, itertools.repeat((cancels or [{}])[-1])),
    }

    def script(request: RawRequest, connection: RawConnection) -> None:
        if request.path.endswith("/cancel"):
            reply = next(turns["cancel"])
        elif request.method == "POST":
            reply = created
        else:
            reply = next(turns["stream" if "stream=true" in request.path else "look"])
        for step in _steps(reply, request):
            connection.play(step)
            if connection.closed.is_set() or connection.disconnected.is_set():
                return

    return script


def _steps(reply: Any, request: RawRequest) -> list[Step]:
    if callable(reply):
        reply = reply(request)
    if isinstance(reply, dict):
        return [http_response(200, {}, reply)]
    if isinstance(reply, tuple):
        status, body = reply
        return [http_response(status, {"Content-Type": "application/json"}, body)]
    return list(reply)


def state(status: str, *output: Any, **fields: Any) -> dict[str, Any]:
    return {**CREATED, "status": status, "output": list(output), **fields}


NOT_FOUND = (404, {"error": {"message": "resource not found", "type": "not_found", "code": 404}})
TERMINAL = (400, {"error": {"message": "already terminal", "type": "invalid_request", "code": 400}})
EXPIRED = (400, {"error": {"message": "invalid or expired cursor", "type": "invalid_request"}})


def same(one: Answer, other: Answer, *but: str) -> bool:
    """Whether two answers agree in everything that does not depend on when they were asked."""
    left_out = {"created", "elapsed", "first_text", "id", "raw", "error", "sources", *but}
    names = [f.name for f in dataclasses.fields(one) if f.name not in left_out]
    differing = [name for name in names if getattr(one, name) != getattr(other, name)]
    assert differing == []
    assert one.sources.to_dicts() == other.sources.to_dicts()
    return True


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


# --- the whole way, with the embedded service ----------------------------------------------------


@pytest.mark.parametrize("how", ["wait", "answer", "stream", "refresh"])
def test_the_answer_is_the_one_that_a_stream_would_have_given(demo: World, how: str) -> None:
    asked = {"model": "high", "limit": 3, "system": "Be brief."}
    job = demo.submit("What is a lambda?", **asked)
    assert (job.question, job.model, job.backend) == ("What is a lambda?", "high", "agent")
    if how == "wait":
        answer = job.wait()
    elif how == "answer":
        answer = job.answer
    elif how == "stream":
        with job.stream() as stream:
            events = list(stream)
        answer = stream.answer
        assert text_of(events) == stream.text == answer.text
        assert isinstance(events[-1], Finished)
    else:
        while not job.done:
            assert job.refresh() is job
        answer = job.answer
    whole = demo.ask("What is a lambda?", **asked)
    # What a look shows has no thoughts: they are only streamed (official-api 4.2).
    assert same(answer, whole, *([] if how == "stream" else ["reasoning"]))
    assert len(answer.sources) == 3 and answer.truncated and answer.usage.cost_usd
    assert (job.status, job.done, job.cost_usd) == ("completed", True, answer.usage.cost_usd)
    assert job.model == answer.model and job.answer is answer
    assert answer.id == job.id and answer.created == job.created


def test_a_job_that_is_streamed_shows_the_text_as_it_comes(demo: World) -> None:
    with demo.submit("What is a lambda?", stream=True).stream() as stream:
        deltas = [event for event in stream if isinstance(event, TextDelta)]
    assert len(deltas) > 5
    assert stream.answer.reasoning


def test_a_job_is_there_at_once_and_runs_on_its_own(demo: World) -> None:
    demo.server.next(Behavior(queued_polls=2))
    job = demo.submit("What is a lambda?")
    assert (job.status, job.done, job.cost_usd) == ("queued", False, None)
    assert job.wait().status == "completed"


def test_a_run_that_the_service_cuts_is_an_answer_with_a_warning(demo: World) -> None:
    demo.server.next(Behavior(terminal="incomplete"))
    job = demo.submit("What is a lambda?")
    with pytest.warns(errors.PerplexityWarning, match="cut the answer short"):
        answer = job.wait()
    assert (answer.status, job.status) == ("incomplete", "incomplete")
    assert answer.text and answer.finish_reason == "max_output_tokens"


@pytest.mark.parametrize("terminal", ["failed-event", "failed-response", "failed-both", "error"])
@pytest.mark.parametrize("how", ["wait", "stream"])
def test_a_run_that_failed_is_an_error_with_what_came(demo: World, how: str, terminal: str) -> None:
    demo.server.next(Behavior(terminal=terminal))
    job = demo.submit("What is a lambda?")
    with pytest.raises(errors.ServerError, match="upstream model error") as caught:
        job.wait() if how == "wait" else list(job.stream())
    assert caught.value.answer is not None
    assert caught.value.answer.status == "failed" and caught.value.answer.sources
    assert (job.status, job.done) == ("failed", True)
    with pytest.raises(errors.ServerError):
        _ = job.answer
    (again,) = demo.jobs()
    with pytest.raises(errors.ServerError, match="upstream model error") as caught:
        again.wait()
    assert caught.value.answer is not None and caught.value.answer.sources


def test_a_structured_answer_is_checked_and_converted(demo: World) -> None:
    @dataclass
    class Term:
        name: str
        pages: list[str]

    job = demo.submit("What is a lambda?", schema=Term)
    data = job.wait().data
    assert isinstance(data, Term)
    later = demo.jobs()[job.id].answer
    assert later.data == dataclasses.asdict(data)
    assert later.to_pandas("data").equals(job.answer.to_pandas("data"))


def test_a_schema_survives_a_restart(demo: World) -> None:
    demo.submit("What is a lambda?", schema={"name": str, "n": int})
    answer = demo.jobs()[0].wait()
    assert set(answer.data) == {"name", "n"} and isinstance(answer.data["n"], int)


def test_an_answer_that_does_not_fit_its_schema_is_an_error(
    store: JobStore, session: requests.Session
) -> None:
    with world(service_of(LAST), store, session) as there:
        job = there.submit(schema={"name": str})
        with pytest.raises(errors.StreamError, match="schema") as caught:
            job.wait()
        assert caught.value.answer is not None and caught.value.answer.text == TEXT
        assert job.status == "completed", "the run itself went well"
        with pytest.raises(errors.StreamError, match="schema"):
            there.jobs()[0].wait()


def test_a_follow_up_goes_on_from_its_answer_also_after_a_restart(demo: World) -> None:
    before = demo.ask("What is a lambda?")
    job = demo.submit("And a closure?", follow=before)
    sent = json.loads(demo.server.requests[-1].body)
    assert sent["previous_response_id"] == before.id
    later = demo.jobs()[0].wait()
    assert later.turns == before.conversation() == job.wait().turns


def test_an_earlier_answer_that_was_forgotten_is_sent_along(demo: World) -> None:
    before = dataclasses.replace(demo.ask("What is a lambda?"), id="resp_forgotten")
    answer = demo.submit("And a closure?", follow=before).wait()
    assert answer.status == "completed"
    posts = [json.loads(r.body) for r in demo.server.requests if r.method == "POST" and r.body]
    assert posts[-2]["previous_response_id"] == "resp_forgotten"
    assert "previous_response_id" not in posts[-1] and len(posts[-1]["input"]) == 3


def test_what_was_said_about_the_model_is_still_said_after_a_restart(demo: World) -> None:
    demo.submit("What is a lambda?", model="sonar-deep-research")
    with pytest.warns(errors.PerplexityWarning, match="retired"):
        answer = demo.jobs()[0].wait()
    assert any("retired" in warning for warning in answer.warnings)


# --- how often it is looked at -------------------------------------------------------------------


def test_the_looks_begin_at_2_s_and_grow_to_10_s() -> None:
    delays = [Pace().delay(n) for n in range(40)]
    assert (delays[0], delays[-1]) == (2.0, 10.0)
    assert delays == sorted(delays)
    assert sum(delays[:8]) < 60, "a minute in, the longest wait has been reached"


@given(st.integers(0, 10**9), st.none() | st.floats(0, 1e9))
def test_a_wait_is_never_shorter_than_first_nor_longer_than_a_minute(
    n: int, asked: float | None
) -> None:
    assert 2.0 <= Pace().delay(n, asked) <= 60.0
    assert asked is None or Pace().delay(n, asked) >= min(asked, 60.0)


@pytest.mark.parametrize(
    ("failure", "may_pass"),
    [
        (errors.NetworkError("away"), True),
        (errors.RequestTimeout("slow"), True),
        (errors.ServerError("oops", status_code=503), True),
        (errors.RateLimitError("slower", status_code=429), True),
        (errors.StreamError("half a reply"), True),
        (errors.ChallengeError("a hotel's login page"), True),
        (errors.NetworkError("moved", status_code=302), False),
        (errors.AuthenticationError("no", status_code=401), False),
        (errors.InvalidRequestError("gone", status_code=404), False),
        (errors.QuotaError("broke", status_code=402), False),
        (errors.AbortedError("stopped"), False),
        (errors.ConfigurationError("no key"), False),
    ],
)
def test_what_may_pass_is_tried_again(failure: errors.PerplexityError, may_pass: bool) -> None:
    assert passes(failure) is may_pass


# --- a network that fails ------------------------------------------------------------------------

HTML = [http_response(200, {"Content-Type": "text/html"}, "<html>log in to our wifi</html>")]
BROKEN: dict[str, Any] = {
    "reset": [Reset()],
    "closed": [Close()],
    "half a reply": [http_response(200, {}, {"id": "resp_1", "status": "queued"})[:-9], Close()],
    "a page": HTML,
    "no JSON": [http_response(200, {"Content-Type": "application/json"}, "{oops")],
    "no run": [http_response(200, {}, {"hello": "world"})],
    "503": (503, {}),
    "502 of an edge": [http_response(502, {"Content-Type": "text/html"}, "<html>Bad</html>")],
    "429": (429, {"error": {"message": "slower", "type": "request_rate_limit_exceeded"}}),
}


@pytest.mark.parametrize("how", ["wait", "stream"])
@pytest.mark.parametrize("name", BROKEN)
def test_a_network_that_fails_for_a_while_does_no_harm(
    name: str, how: str, store: JobStore, session: requests.Session
) -> None:
    broken = BROKEN[name]
    script = service_of(
        broken, state("in_progress"), broken, broken, LAST, streams=[broken, broken, broken]
    )
    with world(script, store, session) as there:
        job = there.submit()
        if how == "wait":
            answer = job.wait()
        else:
            with job.stream() as stream:
                assert text_of(list(stream)) == TEXT
            answer = stream.answer
        assert (answer.text, answer.status) == (TEXT, "completed")
        assert len(there.paths("POST")) == 1, "nothing is asked twice"


def test_a_network_that_fails_now_and_then_never_ends_the_waiting(
    store: JobStore, session: requests.Session
) -> None:
    now_and_then = [(503, {}), state("in_progress")] * (2 * QUICK.patience)
    with world(service_of(*now_and_then, LAST), store, session) as there:
        assert there.submit().wait().text == TEXT


@pytest.mark.parametrize("name", BROKEN)
def test_a_network_that_is_away_for_long_ends_the_waiting_and_not_the_job(
    name: str, store: JobStore, session: requests.Session
) -> None:
    looks = [BROKEN[name]] * (QUICK.patience + 1)
    with world(service_of(*looks, LAST), store, session) as there:
        job = there.submit()
        with pytest.raises(errors.PerplexityError) as caught:
            job.wait()
        assert "goes on" in (caught.value.hint or "") and not job.done
        assert len(there.paths("GET")) == QUICK.patience + 1
        assert job.wait().text == TEXT


def test_a_refused_key_ends_the_waiting_at_once_and_the_job_can_be_fetched_with_another(
    store: JobStore, session: requests.Session
) -> None:
    def script(request: RawRequest, connection: RawConnection) -> None:
        good = request.headers["Authorization"] == f"Bearer {KEY}"
        reply = (CREATED if request.method == "POST" else LAST) if good else {}
        connection.play(http_response(200 if good else 401, {}, reply))

    with world(script, store, session) as there:
        there.submit()
        there.key = "pplx-another-0123456789"
        job = there.jobs()[0]
        with pytest.raises(errors.AuthenticationError):
            job.wait()
        assert job.status == "queued"
        there.key = KEY  # looked up anew
        assert job.wait().text == TEXT


@pytest.mark.parametrize("how", ["wait", "stream", "refresh", "cancel"])
def test_a_run_that_the_service_has_forgotten_is_gone_and_the_record_says_so(
    how: str, store: JobStore, session: requests.Session
) -> None:
    script = service_of(NOT_FOUND, LAST, streams=[NOT_FOUND], cancels=[NOT_FOUND])
    with world(script, store, session) as there:
        job = there.submit("Why not?")
        with pytest.raises(errors.InvalidRequestError, match=r"resp_1.*gone") as caught:
            list(job.stream()) if how == "stream" else getattr(job, how)()
        assert caught.value.status_code == 404 and "30 days" in (caught.value.hint or "")
        assert (job.status, job.done, job.question) == ("unknown", False, "Why not?")
        assert there.jobs()["status"] == ["unknown"]
        assert job.wait().text == TEXT, "a service that knows it after all is believed"
        assert job.status == "completed"


# --- followed as a stream ------------------------------------------------------------------------


def starts(world: World) -> list[int]:
    return [int(path.rpartition("=")[2]) for path in world.paths("GET") if "stream=true" in path]


def streamed_from(
    breaks: list[int], *, how: list[Step], overlap: int = 0
) -> Callable[[RawRequest], list[Step]]:
    """Return what a stream gets: the frames after its number, up to the next break."""
    left = list(breaks)

    def reply(request: RawRequest) -> list[Step]:
        after = int(request.path.rpartition("=")[2])
        first = max(0, after + 1 - overlap)
        until = left.pop(0) if left else len(FRAMES)
        steps = sse_response(FRAMES[first:until])
        return steps if until >= len(FRAMES) else [*steps[:-1], *how]

    return reply


@pytest.mark.parametrize("how", ["cut", "reset", "cut in a frame", "ended"])
@pytest.mark.parametrize("overlap", [0, 3])
def test_a_stream_that_breaks_off_is_taken_up_where_it_was(
    how: str, overlap: int, store: JobStore, session: requests.Session
) -> None:
    half = FRAMES[12][: len(FRAMES[12]) // 2]
    end: dict[str, list[Step]] = {
        "cut": [Close()],
        "reset": [Reset()],
        "cut in a frame": [b"%x\r\n%b\r\n" % (len(half), half), Close()],
        "ended": [b"0\r\n\r\n"],
    }
    streams = streamed_from([10, 14], how=end[how], overlap=overlap)
    with world(service_of(streams=[streams]), store, session) as there:
        with there.submit().stream() as stream:
            events = list(stream)
        # A reset may overtake frames that the client has not read yet.
        at = starts(there)
        assert at[0] == 0 and at == sorted(at) and (how == "reset" or at == [0, 9, 13])
    assert text_of(events) == TEXT, "nothing is lost, and nothing told twice"
    assert sum(isinstance(event, SourcesFound) for event in events) == 1
    assert same(stream.answer, _foreground(session), "warnings")


def _foreground(session: requests.Session) -> Answer:
    with RawServer(sse_response(FRAMES)) as server:
        service = Service("agent", server.url, lambda: session)
        return AnswerStream(Question("Why?"), Call(service, agent.WIRE)).answer


@settings(max_examples=25, deadline=None)
@given(breaks=st.lists(st.integers(0, len(FRAMES)), max_size=6), overlap=st.integers(0, 4))
def test_wherever_it_breaks_the_text_comes_whole_and_once(
    tmp_path_factory, breaks: list[int], overlap: int
) -> None:
    store = JobStore(tmp_path_factory.mktemp("jobs") / "jobs.db")
    streams = streamed_from(breaks, how=[Close()], overlap=overlap)
    with make_session() as session, world(service_of(LAST, streams=[streams]), store, session) as w:
        with w.submit().stream() as stream:
            events = list(stream)
        assert text_of(events) == stream.answer.text == TEXT
        assert len(stream.answer.sources) == 2
    store.close()


@pytest.mark.parametrize("fault", [Behavior(cut_after=9), Behavior(cut_after=9, cut="reset")])
def test_the_embedded_service_breaks_off_too(demo: World, fault: Behavior) -> None:
    job = demo.submit("What is a lambda?")
    demo.server.next(fault, fault)
    with job.stream() as stream:
        events = list(stream)
    assert text_of(events) == stream.answer.text == demo.ask("What is a lambda?").text
    assert len(starts(demo)) == 3


def test_a_cursor_that_has_expired_in_the_middle_is_made_up_for_by_looking(
    store: JobStore, session: requests.Session
) -> None:
    part = streamed_from([12], how=[Close()])
    script = service_of(state("in_progress"), LAST, streams=[part, EXPIRED])
    with world(script, store, session) as there:
        with there.submit().stream() as stream:
            events = list(stream)
        assert len(starts(there)) == 2 and len(there.paths("GET")) == 4
    deltas = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(deltas) > 1 and "".join(deltas) == TEXT
    assert stream.answer.status == "completed" and stream.answer.usage.cost_usd == 0.00125


def test_a_service_that_streams_no_runs_is_looked_at(demo: World) -> None:
    job = demo.submit("What is a lambda?")
    demo.server.behavior = Behavior(expired_cursor=True)
    with job.stream() as stream:
        events = list(stream)
    assert text_of(events) == job.answer.text
    assert len(starts(demo)) == 1


@pytest.mark.parametrize(
    "reply",
    [state("in_progress"), [*sse_response([])], [*sse_response([b": hello\n\n"])], (422, {})],
    ids=["a record", "an empty stream", "a comment", "refused"],
)
def test_a_stream_that_brings_nothing_is_given_up_for_looking(
    reply: Any, store: JobStore, session: requests.Session
) -> None:
    with world(service_of(LAST, streams=[reply]), store, session) as there:
        with there.submit().stream() as stream:
            assert text_of(list(stream)) == TEXT
        assert 1 <= len(starts(there)) <= 3


def test_a_stream_without_numbers_is_not_taken_up_again_or_it_would_be_told_twice(
    store: JobStore, session: requests.Session
) -> None:
    loose = sse_frames([{**event, "sequence_number": None} for event in EVENTS])
    cut = [*sse_response(loose[:12])[:-1], Close()]
    with world(service_of(LAST, streams=[cut]), store, session) as there:
        with there.submit().stream() as stream:
            assert text_of(list(stream)) == TEXT
        assert len(starts(there)) == 1


def test_an_error_in_the_stream_is_not_taken_for_the_end_of_the_run(
    store: JobStore, session: requests.Session
) -> None:
    trouble = {"type": "error", "sequence_number": 10, "error": {"message": "the stream broke"}}
    cut = sse_response([*FRAMES[:10], *sse_frames([trouble])])
    with world(service_of(LAST, streams=[cut]), store, session) as there:
        with there.submit().stream() as stream:
            assert text_of(list(stream)) == TEXT
        assert stream.answer.status == "completed"


@pytest.mark.parametrize("how", ["leave", "cancel"])
def test_who_stops_watching_does_not_stop_the_run(demo: World, how: str) -> None:
    demo.server.pace = 0.01
    job = demo.submit("What is a lambda?")
    with job.stream() as stream:
        for event in stream:
            if isinstance(event, TextDelta):
                if how == "leave":
                    break
                stream.cancel()
    part = stream.answer
    assert part.status == "stopped" and part.text
    assert not job.done and demo.jobs()["status"] == ["in_progress"]
    whole = job.wait()
    assert whole.status == "completed" and whole.text.startswith(part.text)
    assert len(demo.paths("POST")) == 1, "nothing was cancelled"


def test_a_stream_that_is_left_in_silence_ends_at_once(
    store: JobStore, session: requests.Session
) -> None:
    silent = [*sse_response(FRAMES[:12])[:-1], HoldOpen()]
    with world(service_of(LAST, streams=[silent]), store, session) as there:
        stream = there.submit().stream()
        seen = 0

        def leave() -> None:
            nonlocal seen
            seen += 1
            stream.cancel()

        for event in stream:
            if isinstance(event, TextDelta):
                stream.on_wait = leave
        assert seen and stream.answer.status == "stopped"
        assert there.server.wait_for_disconnect()


# --- interrupts, time limits, cancellation -------------------------------------------------------


def test_a_stream_goes_on_as_one_when_the_network_is_back(
    store: JobStore, session: requests.Session
) -> None:
    part = streamed_from([12], how=[Close()])
    rest = streamed_from([], how=[])
    script = service_of([Reset()], state("in_progress"), streams=[part, *[[Reset()]] * 3, rest])
    with world(script, store, session) as there:
        with there.submit().stream() as stream:
            deltas = [event.text for event in stream if isinstance(event, TextDelta)]
        assert "".join(deltas) == TEXT and len(deltas) > 5
        assert starts(there) == [0, 11, 11, 11, 11]


def test_an_interrupt_ends_the_waiting_only_and_says_so(
    store: JobStore, session: requests.Session
) -> None:
    def look(request: RawRequest) -> list[Step]:
        os.kill(os.getpid(), signal.SIGINT)
        return [HoldOpen()]

    with world(service_of(state("in_progress"), look, LAST), store, session) as there:
        job = there.submit()
        with pytest.raises(errors.Interrupted, match=r"goes on.*job\.wait\(\).*resp_1") as caught:
            job.wait()
        assert isinstance(caught.value, KeyboardInterrupt) and caught.value.__context__ is None
        assert (job.status, there.paths("POST")) == ("in_progress", ["/v1/responses"])
        assert job.wait().text == TEXT


def test_an_interrupt_between_two_looks_is_heard(
    store: JobStore, session: requests.Session
) -> None:
    with world(service_of(state("in_progress"), LAST), store, session) as there:
        there.submit()
        (job,) = Jobs.load(there.service, store=store, pace=Pace(first=60))

        def interrupt(progress: Progress) -> None:
            if progress.status == "in_progress":
                os.kill(os.getpid(), signal.SIGINT)

        with pytest.raises(errors.Interrupted):
            job.wait(on_progress=interrupt)
        assert len(there.paths("GET")) == 1


def test_who_waits_no_longer_than_so_gets_an_error_and_the_run_goes_on(
    store: JobStore, session: requests.Session
) -> None:
    go_on = threading.Event()
    script = service_of(*[state("in_progress")] * 3, [Pause(go_on), http_response(200, {}, LAST)])
    with world(script, store, session) as there:
        job = there.submit()
        for timeout in (0, 0.1):
            with pytest.raises(errors.RequestTimeout, match=f"{timeout:g} s") as caught:
                job.wait(timeout=timeout)
            assert "goes on" in (caught.value.hint or "") and caught.value.field == "timeout"
        go_on.set()
        assert job.wait(timeout=60).text == TEXT


def test_a_run_can_be_cancelled(demo: World) -> None:
    demo.server.pace = 0.05
    job = demo.submit("What is a lambda?")
    assert job.cancel() == "cancelled"
    assert (job.status, job.done, job.cost_usd) == ("cancelled", True, None)
    for one in (job, demo.jobs()[0]):
        with pytest.raises(errors.AbortedError) as caught:
            one.wait()
        assert caught.value.answer is not None and caught.value.answer.status == "stopped"
    assert job.cancel() == "cancelled"
    assert demo.paths("POST") == ["/v1/responses", f"/v1/responses/{job.id}/cancel"]


def test_somebody_else_may_have_cancelled_it(demo: World) -> None:
    demo.server.pace = 0.05
    job = demo.submit("What is a lambda?")
    demo.jobs()[0].cancel()
    with pytest.raises(errors.AbortedError), job.stream() as stream:
        list(stream)
    assert stream.answer.status == "stopped" and job.status == "cancelled"


def test_to_cancel_what_has_ended_tells_so(store: JobStore, session: requests.Session) -> None:
    with world(service_of(LAST, cancels=[TERMINAL]), store, session) as there:
        job = there.submit()
        assert job.cancel() == "completed"
        assert job.answer.text == TEXT, "and its answer is not lost"


def test_a_network_that_fails_does_not_stop_a_cancellation(
    store: JobStore, session: requests.Session
) -> None:
    over = state("cancelled", error={"message": "cancelled", "type": "cancelled"})
    script = service_of(
        (503, {}), state("cancelling"), [Reset()], over,
        cancels=[[Reset()], HTML, {"response_id": "resp_1", "status": "cancelling"}],
    )  # fmt: skip
    with world(script, store, session) as there:
        assert there.submit().cancel() == "cancelled"


def test_a_cancellation_that_is_not_confirmed_is_an_error(
    store: JobStore, session: requests.Session
) -> None:
    script = service_of(state("in_progress"), cancels=[{"status": "cancelling"}])
    with world(script, store, session) as there:
        job = there.submit()
        with pytest.raises(errors.RequestTimeout, match=r"confirm in 0\.1 s.*resp_1"):
            job.cancel(timeout=0.1)
        assert not job.done


# --- sent once -----------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "reply",
    [
        [Close()],
        [Reset()],
        [http_response(200, {}, CREATED)[:-30], Close()],
        HTML,
        [http_response(502, {}, "Bad Gateway")],
        [http_response(504, {}, "Gateway Timeout")],
        [http_response(500, {}, {})],
        [http_response(200, {}, {"status": "queued"})],
    ],
    ids=["closed", "reset", "half", "a page", "502", "504", "500", "no id"],
)
def test_a_question_that_may_have_arrived_is_not_sent_again(
    reply: list[Step], stream: bool, store: JobStore, session: requests.Session
) -> None:
    with world(reply, store, session) as there:
        with pytest.raises(errors.PerplexityError) as caught:
            there.submit(stream=stream)
        assert "billed" in (caught.value.hint or "")
        assert len(there.server.requests) == 1
        assert store.all() == []


def test_a_question_that_was_surely_not_taken_is_sent_again(
    store: JobStore, session: requests.Session
) -> None:
    answers = iter([503, 429, 200])

    def script(request: RawRequest, connection: RawConnection) -> None:
        status = next(answers)
        head = {"Retry-After": "0"}
        connection.play(http_response(status, head, CREATED if status == 200 else {}))

    with world(script, store, session) as there:
        assert there.submit().id == "resp_1"
        assert len(there.server.requests) == 3


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ((401, {}), errors.AuthenticationError),
        (
            (400, {"error": {"message": "bad", "type": "invalid_request"}}),
            errors.InvalidRequestError,
        ),
        ({"error": {"message": "no credit", "type": "x"}}, errors.QuotaError),
    ],
)
def test_a_refusal_is_an_error_and_no_job(
    reply: Any, kind: type[Exception], store: JobStore, session: requests.Session
) -> None:
    with world(service_of(created=reply), store, session) as there:
        with pytest.raises(kind):
            there.submit()
        assert store.all() == []


def test_an_interrupt_while_it_is_sent_says_what_may_be(
    store: JobStore, session: requests.Session
) -> None:
    def created(request: RawRequest) -> list[Step]:
        os.kill(os.getpid(), signal.SIGINT)
        return [HoldOpen()]

    with (
        world(service_of(created=created), store, session) as there,
        pytest.raises(errors.Interrupted, match="billed"),
    ):
        there.submit()


def test_what_cannot_be_fetched_later_is_refused_before_it_is_sent(demo: World) -> None:
    def city(name: str) -> str:
        """Look up a city."""
        return name

    for options in ({"extra": {"store": False}}, {"tools": [city]}):
        with pytest.raises(errors.InvalidRequestError):
            demo.submit("Why?", **options)
    assert demo.server.requests == []


def test_a_run_that_can_be_streamed_is_left_at_once_and_goes_on(
    store: JobStore, session: requests.Session
) -> None:
    begun = [*sse_response(FRAMES[:1])[:-1], HoldOpen()]
    streams = streamed_from([], how=[])
    with world(service_of(created=begun, streams=[streams]), store, session) as there:
        job = there.submit(stream=True)
        assert there.server.wait_for_disconnect()
        sent = there.server.requests[0].json
        assert (sent["background"], sent["stream"]) == (True, True)
        with job.stream() as stream:
            assert text_of(list(stream)) == TEXT
        assert there.paths("POST") == ["/v1/responses"]


# --- what is on disk -----------------------------------------------------------------------------


def test_a_finished_answer_is_never_fetched_again(demo: World) -> None:
    answer = demo.submit("What is a lambda?", limit=2).wait()
    demo.server.stop()
    job = demo.jobs()[0]
    assert (job.status, job.model) == ("completed", answer.model)
    later = job.wait()
    assert same(later, answer) and later.raw == answer.raw
    assert later.created == answer.created and later.elapsed == answer.elapsed
    with job.stream() as stream:
        assert text_of(list(stream)) == answer.text
    assert job.refresh().cancel() == "completed"
    assert job.answer is later


def test_an_unfinished_job_is_picked_up_by_another_process(demo: World, tmp_path: Path) -> None:
    demo.server.pace = 0.01
    job = demo.submit("What is a lambda?", limit=2)
    code = (
        "import pathlib, sys\n"
        "from ipyperplexity.jobs import Jobs, Pace\n"
        "from ipyperplexity.net.sessions import make_session\n"
        "from ipyperplexity.service import Service\n"
        "from ipyperplexity.store.job_store import JobStore\n"
        "session = make_session()\n"
        "store = JobStore(pathlib.Path(sys.argv[1]))\n"
        "service = lambda record: Service(record.backend, record.base_url, lambda: session)\n"
        "job = Jobs.load(service, store=store, pace=Pace(0.01))[sys.argv[2]]\n"
        "print(job.wait().text)\n"
    )
    command = [sys.executable, "-c", code, str(demo.store.path), job.id]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    before = len(demo.server.requests)
    assert job.wait().text == said.removesuffix("\n") and said.strip()
    assert len(demo.server.requests) == before, "what one process fetched, all have"


def test_the_seconds_of_an_answer_count_from_its_asking(
    store: JobStore, session: requests.Session
) -> None:
    with world(service_of(LAST), store, session) as there:
        asked = dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)
        store.put(JobRecord("resp_1", "agent", there.server.url, "Why?", created=asked))
        (job,) = there.jobs()
        assert job.wait().created == asked and job.answer.first_text is None
        assert 3600 <= job.answer.elapsed <= job.elapsed < 4000


def test_who_is_told_of_an_answer_knows_whether_it_is_new(demo: World) -> None:
    told: list[tuple[str, bool]] = []

    def hand_over(answer: Answer, is_new: bool) -> None:
        told.append((answer.id or "", is_new))

    job = Job.submit(
        demo.service(), Question("Why?"), store=demo.store, hand_over=hand_over, pace=QUICK
    )
    (other,) = demo.jobs(hand_over=hand_over)
    (third,) = demo.jobs(hand_over=hand_over)
    for one in (job, other, third, job):
        one.wait()
    assert told == [(job.id, True), (job.id, False), (job.id, False)]


def test_two_who_wait_at_once_get_the_same_answer_and_one_is_the_first(demo: World) -> None:
    demo.server.pace = 0.005
    told: list[bool] = []
    job = Job.submit(
        demo.service(),
        Question("What is a lambda?"),
        store=demo.store,
        hand_over=lambda answer, is_new: told.append(is_new),
        pace=QUICK,
    )
    answers: list[Answer] = []
    threads = [threading.Thread(target=lambda: answers.append(job.wait())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4 and all(answer is job.answer for answer in answers)
    assert told == [True]


def test_the_key_is_on_no_disk(store: JobStore, session: requests.Session) -> None:
    key = "an-unusual-key-0123456789"
    reply = {**LAST, "metadata": {"note": key}}
    with world(service_of(state("in_progress"), reply), store, session) as there:
        there.key = key
        before = Answer(f"Is {key} mine?", f"{key} it is.", backend="agent")
        job = there.submit(f"What is {key}?", system=key, follow=before)
        assert job.wait().raw["metadata"] == {"note": "***"}
        assert there.server.requests[0].headers["Authorization"] == f"Bearer {key}"
    store.close()
    assert job.question == "What is ***?"
    files = [file for file in store.path.parent.iterdir() if file.is_file()]
    assert files and all(key.encode() not in file.read_bytes() for file in files)


def test_the_notebook_that_asked_is_known(demo: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", "/home/ada/research.ipynb")
    demo.submit("Why?")
    assert demo.jobs()[0].notebook == "/home/ada/research.ipynb"


def test_a_disk_that_cannot_be_written_is_a_warning_and_the_job_runs(
    demo: World, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    demo.store = JobStore(tmp_path / "file" / "jobs.db")
    with pytest.warns(errors.PerplexityWarning, match=r"cannot be noted.*resp_") as caught:
        job = demo.submit("What is a lambda?")
        assert job.wait().status == "completed"
    assert len(caught) == 1, "said once, not at each look"
    assert job.answer.text and job.done


def test_a_job_whose_record_was_lost_is_found_by_its_id(demo: World) -> None:
    job = demo.submit("What is a lambda?")
    demo.store.forget([job.id])
    found = Job.attach(demo.service(), job.id, store=demo.store, pace=QUICK)
    assert found.wait().text == job.wait().text
    assert demo.jobs()[0].id == job.id
    with pytest.raises(errors.InvalidRequestError, match="id: got"):
        Job.attach(demo.service(), "../files", store=demo.store)


def test_a_stored_answer_that_is_damaged_is_fetched_again(
    store: JobStore, session: requests.Session
) -> None:
    with world(service_of(LAST), store, session) as there:
        record = there.submit().record
        store.put(dataclasses.replace(record, status="completed"), '{"format": "odd"}')
        assert there.jobs()[0].wait().text == TEXT


@pytest.mark.parametrize("where", ["another host", "another backend"])
def test_a_key_for_one_address_is_not_sent_to_another(
    where: str, demo: World, session: requests.Session
) -> None:
    job = demo.submit("Why?")
    with RawServer([http_response(200, {}, LAST)]) as other:
        service = demo.service()
        wrong = (
            dataclasses.replace(service, base_url=other.url)
            if where == "another host"
            else dataclasses.replace(service, backend="demo")
        )
        (later,) = Jobs.load(lambda record: wrong, store=demo.store)
        for attempt in (later.wait, later.refresh, later.cancel, lambda: list(later.stream())):
            with pytest.raises(errors.ConfigurationError, match="not sent") as caught:
                attempt()
            assert job.base_url in (caught.value.hint or "")
        assert other.requests == []
    assert len(demo.server.requests) == 1


def test_who_makes_the_service_sees_the_record_and_may_refuse(demo: World) -> None:
    demo.submit("Why?", model="high")
    seen: list[JobRecord] = []

    def refuse(record: JobRecord) -> Service:
        seen.append(record)
        raise errors.ConfigurationError("not from here")

    with pytest.raises(errors.ConfigurationError, match="not from here"):
        Jobs.load(refuse, store=demo.store)[0].wait()
    assert seen[0].base_url == demo.server.url and seen[0].model == "high"


def test_a_demo_engine_that_has_ended_says_so(store: JobStore, session: requests.Session) -> None:
    service = Service("demo", "http://127.0.0.1:9", lambda: session)
    store.put(JobRecord("resp_1", "demo", "http://127.0.0.1:8", "Why?"))
    with pytest.raises(errors.ConfigurationError, match="demo engine that has ended"):
        Jobs.load(lambda record: service, store=store)[0].wait()


def test_what_the_demo_writes_costs_nothing(demo: World) -> None:
    service = dataclasses.replace(demo.service(), backend="demo")
    job = Job.submit(service, Question("What is a lambda?"), store=demo.store, pace=QUICK)
    assert job.wait().usage.cost_usd == job.cost_usd == 0.0


# --- what is told meanwhile ----------------------------------------------------------------------


def test_who_waits_is_told_how_far_it_is(store: JobStore, session: requests.Session) -> None:
    search = LAST["output"][0]
    script = service_of(
        state("queued"), state("in_progress"), (503, {}), state("in_progress", search), LAST
    )
    told: list[Progress] = []
    with world(script, store, session) as there:
        there.submit().wait(on_progress=told.append)
    news = list(dict.fromkeys((p.status, p.searches, p.sources, bool(p.problem)) for p in told))
    assert news == [
        ("queued", 0, 0, False),
        ("in_progress", 0, 0, False),
        ("in_progress", 0, 0, True),
        ("in_progress", 1, 2, False),
        ("completed", 1, 2, False),
    ]
    assert {p.id for p in told} == {"resp_1"}
    assert len(told) <= len(news) + told[-1].seconds + 1, "about once a second without news"
    seconds = [p.seconds for p in told]
    assert seconds == sorted(seconds)


def test_what_the_listener_raises_reaches_who_waits(demo: World) -> None:
    def fall_over(progress: Progress) -> None:
        raise ZeroDivisionError("in the listener")

    job = demo.submit("What is a lambda?")
    with pytest.raises(ZeroDivisionError):
        job.wait(on_progress=fall_over)
    assert job.wait().status == "completed"


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (Progress("r", "queued", 0), "queued · 0 s"),
        (Progress("r", "in_progress", 59.6, 1, 1), "in progress · 1 min 00 s · 1 search · 1 source"),
        (Progress("r", "in_progress", 7500, 12, 1200), "in progress · 2 h 05 min · 12 searches · 1,200 sources"),
        (Progress("r", "unknown", 3), "not known to the service · 3 s"),
        (
            Progress("r", "in_progress", 5, problem="no\n\x1b[31mroute"),
            "in progress · 5 s · trying again: no  [31mroute",
        ),
    ],
)  # fmt: skip
def test_how_far_it_is_reads_in_one_line(progress: Progress, line: str) -> None:
    assert progress_line(progress) == line


def test_a_time_that_runs_backwards_is_none() -> None:
    assert duration(-5) == "0 s"


# --- the table -----------------------------------------------------------------------------------


def table(*records: JobRecord) -> Jobs:
    def nobody(record: JobRecord) -> Service:
        raise AssertionError("a table asks nobody")

    return Jobs(Job(record, nobody, store=JobStore(Path("unused"))) for record in records)


def test_jobs_are_a_table_that_frames_take_as_it_is() -> None:
    import pandas as pd
    import polars as pl

    one = JobRecord("resp_1", "agent", "", "Why?", "high", status="completed", cost_usd=0.5)
    jobs = table(one, JobRecord("resp_2", "agent", "", "How?"))
    names = ["id", "question", "model", "status", "created", "elapsed", "backend", "cost_usd"]
    frame = jobs.to_pandas()
    assert list(frame.columns) == list(pl.DataFrame(jobs).columns) == names
    assert list(pd.DataFrame(jobs.to_dicts())["question"]) == ["Why?", "How?"]
    assert frame["cost_usd"].tolist()[0] == 0.5 and str(frame["created"].dtype).endswith("UTC]")
    assert list(table().to_pandas().dtypes) == list(frame.dtypes)


def test_a_job_is_found_by_its_place_its_id_and_the_columns_by_their_names() -> None:
    jobs = table(
        JobRecord("resp_1", "agent", "", "Why?", status="failed"),
        JobRecord("resp_2", "agent", "", "How?"),
    )
    assert jobs[0].id == jobs["resp_1"].id == "resp_1" and jobs[-1].id == "resp_2"
    assert [job.id for job in jobs[1:]] == [job.id for job in jobs.running] == ["resp_2"]
    assert jobs["status"] == ["failed", "queued"] and len(jobs) == 2
    assert jobs.get("resp_7") is None
    with pytest.raises(KeyError, match="resp_7"):
        jobs["resp_7"]
    with pytest.raises(errors.InvalidRequestError, match="jobs: got"):
        Jobs([1])  # type: ignore[list-item]


def test_the_table_shows_what_it_is_about_and_hides_what_is_hostile() -> None:
    hostile = "<img src=x onerror=alert(1)>\x1b[31m\nand " + "long " * 99
    jobs = table(*(JobRecord(f"resp_{n}", "agent", "", hostile) for n in range(25)))
    shown, html = repr(jobs), jobs._repr_html_()
    assert shown.startswith("Jobs(25 jobs, 25 running)") and "... and 5 more" in shown
    assert "resp_19" in shown and "resp_20" not in shown
    assert "\x1b" not in shown and max(map(len, shown.splitlines())) < 150
    assert "<img" not in html and "resp_19" in html
    assert repr(table()) == "Jobs(0 jobs)" and "<table>" in table()._repr_html_()
    assert repr(jobs[0]).startswith("Job('resp_0', ") and "status='queued'" in repr(jobs[0])


def test_all_jobs_can_be_looked_at_in_one_go(demo: World) -> None:
    for text in ("What is a lambda?", "What is a generator?"):
        demo.submit(text)
    lost = dataclasses.replace(demo.jobs()[0].record, id="resp_lost")
    demo.store.put(lost)
    jobs = demo.jobs()
    while jobs["resp_lost"].status != "unknown" or len(jobs.running) > 1:
        with pytest.warns(errors.PerplexityWarning, match=r"resp_lost.*gone"):
            assert jobs.refresh() is jobs
    assert sorted(jobs["status"]) == ["completed", "completed", "unknown"]


def test_a_job_can_be_forgotten(demo: World) -> None:
    job = demo.submit("Why?")
    job.forget()
    assert len(demo.jobs()) == 0
