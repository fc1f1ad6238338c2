"""A run in the background is asked for, looked at and taken up again as the service wants it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity import Answer, errors
from ipyperplexity.emulator.checks import check_request
from ipyperplexity.events import Event, Finished, SourcesFound, Started, TextDelta
from ipyperplexity.question import Question
from ipyperplexity.wire import agent, agent_runs
from ipyperplexity.wire.agent_reading import fold, fold_body
from ipyperplexity.wire.sse import Frame

PAGES = [{"id": n, "url": f"https://{n}.example", "title": f"Page {n}"} for n in (1, 2)]
SEARCH = {"type": "search_results", "queries": ["why"], "results": PAGES}
MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "So it is.[1]", "annotations": []}],
}
RUN = {"id": "resp_1", "object": "response", "status": "queued", "model": "high", "output": []}


def run(status: str, *output: Any, **fields: Any) -> dict[str, Any]:
    return {**RUN, "status": status, "output": list(output), **fields}


# --- what is sent --------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"model": "wide-research", "system": "Be brief.", "limit": 3, "recency": "month"},
        {"model": "openai/gpt-6-sol", "schema": {"name": str}},
        {"extra": {"metadata": {"a": "b"}}},
    ],
)
def test_a_question_goes_out_as_ever_and_in_the_background(
    options: dict[str, Any], stream: bool
) -> None:
    made = agent_runs.create(Question("Why?", **options), stream=stream)
    plain = agent.request(Question("Why?", **options), stream=stream)
    assert (made.method, made.path) == ("POST", "/v1/responses")
    assert made.body == {**plain.body, "background": True}
    assert made.body.get("stream", False) is stream
    check_request(made.body)


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({}, "low"),
        ({"model": "wide-research"}, "wide-research"),
        ({"model": "openai/gpt-6-sol"}, "openai/gpt-6-sol"),
        ({"model": "sonar-deep-research"}, "high"),
        ({"extra": {"models": ["a/1", "b/2"]}}, "a/1"),
    ],
)
def test_it_is_known_who_was_asked(options: dict[str, Any], asked: str) -> None:
    assert agent_runs.create(Question("Why?", **options)).model == asked


def test_what_was_said_about_the_question_is_kept() -> None:
    made = agent_runs.create(Question("Why?", model="sonar-deep-research"))
    assert "retired" in made.notices[0]


def test_a_follow_up_names_the_answer_or_sends_the_conversation() -> None:
    before = Answer("Who?", "She.", id="resp_0", stored=True)
    named = agent_runs.create(Question("Why?", follow=before))
    assert named.continues and named.body["previous_response_id"] == "resp_0"
    whole = agent_runs.create(Question("Why?", follow=before), resume=False)
    assert not whole.continues and len(whole.body["input"]) == 3


def test_a_function_of_this_process_cannot_be_called_from_there() -> None:
    def city(name: str) -> str:
        """Look up a city."""
        return name

    with pytest.raises(errors.InvalidRequestError, match="functions") as caught:
        agent_runs.create(Question("Why?", tools=[city]))
    assert caught.value.field == "tools"


def test_an_answer_that_nobody_could_fetch_is_not_paid_for() -> None:
    with pytest.raises(errors.InvalidRequestError, match="store=False") as caught:
        agent_runs.create(Question("Why?", extra={"store": False}))
    assert caught.value.field == "extra"


def test_a_run_is_looked_at_taken_up_again_and_cancelled_by_its_id() -> None:
    look, resume, cancel = (
        agent_runs.look("resp_1"),
        agent_runs.resume("resp_1", 41),
        agent_runs.cancel("resp_1"),
    )
    assert (look.method, look.path, look.body) == ("GET", "/v1/responses/resp_1", None)
    assert resume.method == "GET" and resume.headers["Accept"] == "text/event-stream"
    assert resume.path == "/v1/responses/resp_1?stream=true&starting_after=41"
    assert (cancel.method, cancel.path, cancel.body) == (
        "POST",
        "/v1/responses/resp_1/cancel",
        None,
    )


@pytest.mark.parametrize("after", [-1, 0])
def test_the_first_number_to_go_on_from_is_0(after: int) -> None:
    assert agent_runs.resume("resp_1", after).path.endswith("starting_after=0")


@pytest.mark.parametrize("id", ["", "../../v1/files", "resp_1?x=", "resp 1", "resp_1/cancel", None])
@pytest.mark.parametrize(
    "make", [agent_runs.look, agent_runs.cancel, lambda id: agent_runs.resume(id, 1)]
)
def test_what_is_no_id_is_put_into_no_address(make: Any, id: Any) -> None:
    with pytest.raises(errors.InvalidRequestError, match="id: got"):
        make(id)


# --- what comes back -----------------------------------------------------------------------------


def test_a_new_run_is_known_by_its_id() -> None:
    assert list(agent_runs.read_created(RUN)) == [Started("resp_1", "high")]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ({"status": "queued"}, errors.StreamError),
        ({"id": 7}, errors.StreamError),
        ([], errors.StreamError),
        ("<html>", errors.StreamError),
        ({"error": {"message": "no", "type": "invalid_api_key"}}, errors.AuthenticationError),
        ({"error": {"message": "no credit left", "type": "x"}}, errors.QuotaError),
    ],
)
def test_a_reply_that_is_no_run_is_an_error(reply: Any, kind: type[errors.PerplexityError]) -> None:
    with pytest.raises(kind):
        list(agent_runs.read_created(reply))
    if not (isinstance(reply, dict) and "status" in reply):
        with pytest.raises(kind):
            agent_runs.read_state(reply)


@pytest.mark.parametrize(
    ("reply", "status", "is_over"),
    [
        (run("queued"), "queued", False),
        (run("in_progress"), "in_progress", False),
        (run("cancelling"), "in_progress", False),
        (run("completed"), "completed", True),
        (run("incomplete"), "incomplete", True),
        (run("failed"), "failed", True),
        (run("cancelled"), "cancelled", True),
        (run("requires_action"), "incomplete", True),
        (run("pondering"), "in_progress", False),
        (run("expired", error={"message": "too old"}), "failed", True),
        (run("curtailed", usage={"input_tokens": 1}), "incomplete", True),
    ],
)
def test_a_status_says_whether_the_run_has_ended(
    reply: dict[str, Any], status: str, is_over: bool
) -> None:
    state = agent_runs.read_state(reply)
    assert (state.status, state.is_over) == (status, is_over)


def test_searches_and_pages_are_counted_while_the_run_goes_on() -> None:
    again = {**SEARCH, "results": [PAGES[0], {"id": 3, "url": "https://3.example"}, "odd", {}]}
    state = agent_runs.read_state(run("in_progress", SEARCH, again, None, {"results": None}))
    assert (state.searches, state.sources) == (2, 4)  # one has no address


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text() | st.sampled_from(["queued", "failed"]),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["id", "status", "output", "results", "type", "url", "error"]),
                inner,
                max_size=5,
            )
        ),
        max_leaves=20,
    )
)
def test_whatever_comes_is_a_state_or_an_error(reply: Any) -> None:
    try:
        state = agent_runs.read_state(reply)
    except errors.PerplexityError:
        return
    for frame in agent_runs.frames_of(state):
        agent_runs.see(frame)


# --- what a look shows, as a stream --------------------------------------------------------------


def events_of(*states: dict[str, Any]) -> list[Event]:
    frames = [frame for reply in states for frame in agent_runs.frames_of(agent_runs.read_state(reply))]  # fmt: skip
    return list(fold(frames))


USAGE = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11, "cost": {"total_cost": 0.5}}


@pytest.mark.parametrize("status", ["completed", "incomplete", "requires_action"])
def test_a_look_at_the_end_reads_as_the_reply_to_a_question(status: str) -> None:
    last = run(status, SEARCH, MESSAGE, usage=USAGE)
    assert events_of(last) == list(fold_body(last))[0 : len(events_of(last))]
    finished = events_of(last)[-1]
    assert isinstance(finished, Finished) and finished.usage.cost_usd == 0.5
    assert finished.status == ("completed" if status == "completed" else "incomplete")


@pytest.mark.parametrize(
    ("status", "kind"), [("failed", errors.ServerError), ("cancelled", errors.AbortedError)]
)
def test_a_run_that_failed_is_an_error(status: str, kind: type[Exception]) -> None:
    error = {"message": "oops", "type": status, "code": status}
    with pytest.raises(kind, match="oops"):
        events_of(run(status, error=error))


def test_a_run_that_is_looked_at_often_is_told_once() -> None:
    going = run("in_progress", SEARCH, {**MESSAGE, "content": [{"text": "So it"}]})
    events = events_of(RUN, going, going, run("completed", SEARCH, MESSAGE, usage=USAGE))
    assert [type(event).__name__ for event in events] == [
        "Started",
        "Searching",
        "SourcesFound",
        "TextDelta",
        "Finished",
    ]
    found = next(event for event in events if isinstance(event, SourcesFound))
    assert [source.url for source in found.sources] == ["https://1.example", "https://2.example"]
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "So it is.[1]"


@pytest.mark.parametrize(
    ("frame", "seen"),
    [
        ('{"type":"response.output_text.delta","sequence_number":4}', {"number": 4}),
        ('{"type":"response.output_text.delta"}', {"is_loose": True}),
        ('{"type":"response.keepalive","sequence_number":null}', {}),
        ('{"type":"response.failed","sequence_number":9}', {"number": 9, "ends": "failed"}),
        ('{"type":"response.requires_action"}', {"ends": "incomplete", "is_loose": True}),
        (
            '{"type":"response.completed","sequence_number":9,"response":{"status":"failed"}}',
            {"number": 9, "ends": "failed"},
        ),
        ('{"type":"error","sequence_number":3}', {"number": 3, "is_error": True}),
        ('{"error":{"message":"no"}}', {"is_error": True, "is_loose": True}),
        ('{"type":"response.output_te', {}),
        ("[DONE]", {}),
        ("[1]", {}),
    ],
)
def test_a_frame_says_where_to_go_on_and_whether_it_is_the_last(
    frame: str, seen: dict[str, Any]
) -> None:
    assert agent_runs.see(Frame("", frame)) == agent_runs.Seen(**seen)


def test_the_name_of_an_event_stands_in_for_its_type() -> None:
    assert agent_runs.see(Frame("response.completed", "{}")).ends == "completed"
    assert agent_runs.see(Frame("error", "no")).is_error
