"""Each fault of the web endpoint that was ever reported can be asked for by its name."""

from __future__ import annotations

import json

import pytest

from ipyperplexity.emulator import WEB_FAULTS, Behavior, EmulatorServer
from ipyperplexity.emulator.behavior import WEB_FAULT_NAMES

from .http_help import Reply
from .web_help import answer_of, ask_web, documents, read_sse, streamed_text, web_events


def faulty(web: EmulatorServer, name: str) -> Reply:
    web.next(WEB_FAULTS[name])
    return ask_web(web)


def plain_answer(web: EmulatorServer) -> str:
    return answer_of(web_events(ask_web(web)))


def test_every_fault_has_a_name_and_every_name_a_fault() -> None:
    assert {*WEB_FAULTS, None} == {*WEB_FAULT_NAMES}


@pytest.mark.parametrize("name", sorted(WEB_FAULTS))
def test_no_fault_is_the_good_answer_and_none_hurts_the_next_one(
    web: EmulatorServer, name: str
) -> None:
    good = ask_web(web)
    bad = faulty(web, name)
    assert (bad.status, len(bad.body)) != (good.status, len(good.body))
    assert plain_answer(web) == answer_of(web_events(good))


@pytest.mark.parametrize(("name", "status"), [("challenge-200", 200), ("challenge-403", 403)])
def test_a_challenge_is_a_page(web: EmulatorServer, name: str, status: int) -> None:
    reply = faulty(web, name)
    assert (reply.status, reply.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert b"Just a moment" in reply.body and b"cdn-cgi/challenge-platform" in reply.body


@pytest.mark.parametrize(
    ("name", "status", "key"),
    [
        ("unauthorized", 401, "detail"),
        ("too-many-requests", 429, "detail"),
        ("stale-version", 400, "error"),
        ("validation", 422, "detail"),
        ("server-error", 500, "detail"),
        ("json-error", 200, "error"),
        ("json-detail", 200, "detail"),
    ],
)
def test_a_refusal_is_json(web: EmulatorServer, name: str, status: int, key: str) -> None:
    reply = faulty(web, name)
    assert (reply.status, reply.headers["content-type"]) == (status, "application/json")
    assert list(reply.json()) == [key]


def test_a_thread_that_is_gone_is_an_empty_object(web: EmulatorServer) -> None:
    reply = faulty(web, "forbidden")
    assert (reply.status, reply.json()) == (403, {})


def test_too_many_requests_say_when_to_come_back(web: EmulatorServer) -> None:
    assert faulty(web, "too-many-requests").headers["retry-after"] == "1"


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("rate-limited", {"status": "failed", "error_code": "FREE_TIER_RATE_LIMITED"}),
        ("error-sentence", {"status": "FAILED", "text": "Error in processing query."}),
        ("error-sentence-completed", {"status": "COMPLETED", "text": "Error in processing query."}),
    ],
)
def test_a_failure_can_be_the_only_event(
    web: EmulatorServer, name: str, fields: dict[str, str]
) -> None:
    (event,) = web_events(faulty(web, name))
    assert fields.items() <= event.items()
    assert event["blocks"] == []


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("quota-exhausted", {"status": "FAILED", "error_code": "quota_exhausted"}),
        ("generic-failed", {"error_code": "GENERIC_FAILED_RESPONSE", "error_message": "try later"}),
        ("error-message", {"status": "PENDING", "error_message": "something went wrong"}),
        ("failed-status", {"status": "FAILED", "final": True}),
        ("failed-lower-case", {"status": "failed", "final": True}),
        ("blocked", {"status": "BLOCKED", "final": True}),
    ],
)
def test_a_failure_can_come_after_some_text(
    web: EmulatorServer, name: str, fields: dict[str, str]
) -> None:
    good = plain_answer(web)
    events = web_events(faulty(web, name))
    assert fields.items() <= events[-1].items()
    assert ("error_code" in events[-1]) == ("error_code" in fields)
    text = streamed_text(documents(events))
    assert good.startswith(text) and text not in ("", good)


def test_an_empty_answer_says_that_it_is_complete(web: EmulatorServer) -> None:
    events = web_events(faulty(web, "empty"))
    assert events[-1]["status"] == "COMPLETED"
    assert documents(events) == {"ask_text": {"answer": "", "chunks": [], "progress": "DONE"}}


def test_sources_can_come_without_an_answer(web: EmulatorServer) -> None:
    events = web_events(faulty(web, "sources-only"))
    assert documents(events)["web_results"]["web_results"]
    assert not {"ask_text", "ask_text_0_markdown"} & documents(events).keys()
    assert not any("text" in event for event in events)


def test_a_stopped_answer_is_complete_and_not_whole(web: EmulatorServer) -> None:
    good = plain_answer(web)
    events = web_events(faulty(web, "terminated"))
    assert (events[-1]["status"], events[-1]["text_completed"]) == ("COMPLETED", False)
    assert good.startswith(answer_of(events)) and answer_of(events) not in ("", good)


@pytest.mark.parametrize(
    ("name", "last"),
    [("no-end", "PENDING"), ("pending-final-only", "PENDING"), ("no-end-of-stream", "COMPLETED")],
)
def test_a_stream_can_end_without_its_end(web: EmulatorServer, name: str, last: str) -> None:
    events = read_sse(faulty(web, name).body)
    assert {kind for kind, _ in events} == {"message"}
    assert json.loads(events[-1][1])["status"] == last
    assert json.loads(events[-1][1]).get("final", False) is (name != "no-end")


def test_a_chunk_in_a_broken_frame_is_lost_but_for_the_terminal_answer(web: EmulatorServer) -> None:
    good = plain_answer(web)
    broken, readable = 0, []
    for name, data in read_sse(faulty(web, "bad-frame").body):
        try:
            readable += [json.loads(data)] if name == "message" else []
        except ValueError:
            broken += 1
    assert broken == 1
    found = documents(readable)["ask_text"]
    assert found["answer"] == good != "".join(found["chunks"])


def test_a_frame_can_be_a_list(web: EmulatorServer) -> None:
    frames = [json.loads(data) for _, data in read_sse(faulty(web, "non-object").body)]
    assert [1, 2] in frames


def test_half_a_character_comes_as_an_escape(web: EmulatorServer) -> None:
    reply = faulty(web, "half-surrogate")
    assert b"\\ud83d" in reply.body
    found = documents(web_events(reply))["ask_text"]
    assert found["answer"].endswith(" 🐍.")
    joined = "".join(found["chunks"]).encode("utf-16", "surrogatepass").decode("utf-16")
    assert joined == found["answer"]


def test_a_frame_can_be_huge(web: EmulatorServer) -> None:
    assert max(len(data.encode()) for _, data in read_sse(faulty(web, "huge-frame").body)) > 600_000


def test_a_known_session_can_be_served_as_anonymous(web: EmulatorServer) -> None:
    reply = faulty(web, "anonymous")
    assert "x-pplx-account-used" not in reply.headers
    assert any(event.get("display_model") == "turbo" for event in web_events(reply))


def test_when_nothing_is_left_to_ask_the_answer_is_the_rate_limit(web: EmulatorServer) -> None:
    web.web_limits["remaining_pro"] = 1
    assert plain_answer(web)
    (event,) = web_events(ask_web(web))
    assert event["error_code"] == "FREE_TIER_RATE_LIMITED"
    assert web_events(ask_web(web, mode="concise"))[-1]["status"] == "COMPLETED"


@pytest.mark.parametrize(
    ("terminal", "fault"),
    [("none", "no-end"), ("error", "generic-failed"), ("cancelled", "terminated")],
)
def test_the_terminals_of_the_agent_api_mean_the_like_here(
    web: EmulatorServer, terminal: str, fault: str
) -> None:
    web.next(Behavior(terminal=terminal), WEB_FAULTS[fault])
    ends = [json.loads(read_sse(ask_web(web).body)[-1][1]) for _ in range(2)]
    assert ends[0].get("status") == ends[1].get("status")


def test_a_fault_of_the_web_leaves_the_other_wires_alone(web: EmulatorServer) -> None:
    from .http_help import ask, call

    web.behavior = WEB_FAULTS["server-error"]
    assert ask(web).status == 200
    assert call(web, "GET", "/api/auth/csrf").status == 200
    assert ask_web(web).status == 500
