"""The web endpoint answers in each of its forms, to whom it knows and to whom it does not."""

from __future__ import annotations

import json
import re
import socket
from typing import Any
from urllib.parse import urlsplit

import pytest

from ipyperplexity.emulator import Behavior, EmulatorServer

from .http_help import ask as ask_agent
from .http_help import call, text_of
from .web_help import (
    ASK_PATH,
    COOKIE,
    QUESTION,
    TOKEN,
    answer_of,
    ask_web,
    documents,
    read_sse,
    streamed_text,
    web_body,
    web_events,
)  # fmt: skip


def merged(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Each key's last value that is not null."""
    found: dict[str, Any] = {}
    for event in events:
        found |= {name: value for name, value in event.items() if value is not None}
    return found


def test_the_stream_is_framed_as_the_real_one(web: EmulatorServer) -> None:
    reply = ask_web(web)
    assert reply.headers["content-type"] == "text/event-stream"
    assert reply.body.startswith(b"event: message\r\ndata: {")
    assert reply.body.endswith(b"\r\n\r\nevent: end_of_stream\r\ndata: {}\r\n\r\n")
    assert b"[DONE]" not in reply.body


def test_the_frames_of_the_tests_of_others_can_be_asked_for(web: EmulatorServer) -> None:
    web.next(Behavior(event_names=False, done_marker=True, newline="\n"))
    body = ask_web(web).body
    assert b"event:" not in body and b"\r" not in body
    assert body.endswith(b"\n\ndata: [DONE]\n\n")


def test_a_final_event_comes_before_the_last_one(web: EmulatorServer) -> None:
    events = web_events(ask_web(web))
    assert {event["status"] for event in events[:-1]} == {"PENDING"}
    assert (events[-2]["final"], events[-2]["final_sse_message"]) == (True, False)
    assert events[-2]["text_completed"] is True
    last = events[-1]
    assert (last["status"], last["final"], last["final_sse_message"]) == ("COMPLETED", True, True)
    assert last["related_queries"] == [item["text"] for item in last["related_query_items"]] != []
    # Who stops one event early has neither.
    early = events[:-1]
    assert "answer" not in documents(early)["ask_text"]
    assert not any("related_queries" in event for event in early)


def test_the_ids_are_spread_over_the_events(web: EmulatorServer) -> None:
    asked = web_body()
    events = web_events(call(web, "POST", ASK_PATH, asked, COOKIE))
    names = {
        "backend_uuid", "context_uuid", "frontend_uuid", "read_write_token", "thread_url_slug",
        "display_model", "user_selected_model", "mode",
    }  # fmt: skip
    assert names <= merged(events).keys()
    assert not any(names <= event.keys() for event in events)
    assert merged(events)["frontend_uuid"] == asked["params"]["frontend_uuid"]
    assert merged(events)["mode"] == "COPILOT"
    assert merged(events)["privacy_state"] == "INCOGNITO"


def test_every_marker_counts_into_the_sources(web: EmulatorServer) -> None:
    events = web_events(ask_web(web))
    sources = documents(events)["web_results"]["web_results"]
    cited = {int(number) for number in re.findall(r"\[(\d+)\]", answer_of(events))}
    assert cited and cited <= set(range(1, len(sources) + 1))
    assert sorted(sources[0])[-4:] == ["name", "snippet", "timestamp", "url"]
    # The first list was only of the first search, and the later one takes its place.
    lists = [
        block["web_result_block"]["web_results"]
        for event in events
        for block in event["blocks"]
        if block["intended_usage"] == "web_results"
    ]
    assert len(lists[0]) < len(lists[-1]) == len(sources)


def test_the_answer_is_that_of_the_agent_api(web: EmulatorServer) -> None:
    plain = ask_agent(web, input=QUESTION, tools=[{"type": "web_search", "max_results": 8}])
    assert answer_of(web_events(ask_web(web))) == text_of(plain.json())


@pytest.mark.parametrize("form", ["snapshot", "diff"])
@pytest.mark.parametrize("chunks", ["append", "partial", "resend", "whole"])
def test_every_form_comes_to_the_same_documents(
    web: EmulatorServer, form: str, chunks: str
) -> None:
    plain = documents(web_events(ask_web(web)))
    web.next(Behavior(web_form=form, web_chunks=chunks))
    found = documents(web_events(ask_web(web)))
    assert found == plain
    # The same answer twice: reading both blocks would double it.
    assert found["ask_text"] == found["ask_text_0_markdown"]
    assert streamed_text(found) == found["ask_text"]["answer"] != ""


def test_odd_patches_come_to_the_same_documents(web: EmulatorServer) -> None:
    plain = documents(web_events(ask_web(web)))
    web.next(Behavior(web_form="diff", web_odd_patches=True))
    reply = ask_web(web)
    patches = [
        patch
        for event in web_events(reply)
        for block in event["blocks"]
        for patch in block["diff_block"]["patches"]
    ]
    assert any("op" not in patch for patch in patches)
    assert any(patch["path"].endswith("/-") for patch in patches)
    assert any(patch["path"].startswith("/markdown_block/") for patch in patches)
    assert documents(web_events(reply)) == plain


def test_a_chunk_is_sent_once_and_may_be_half_finished_first(web: EmulatorServer) -> None:
    def offsets(chunks: str) -> list[tuple[int, int]]:
        web.next(Behavior(web_chunks=chunks))
        return [
            (
                block["markdown_block"]["chunk_starting_offset"],
                len(block["markdown_block"]["chunks"]),
            )
            for event in web_events(ask_web(web))
            for block in event["blocks"]
            if block["intended_usage"] == "ask_text"
            and "chunk_starting_offset" in block["markdown_block"]
        ]

    plain = offsets("append")
    assert plain == [(at, 1) for at in range(len(plain))]
    assert offsets("whole")[:-1] == [(0, at + 1) for at in range(len(plain))]
    assert offsets("resend")[1] == (0, 2)
    halves = offsets("partial")
    assert halves[:3] == [(0, 1), (0, 1), (1, 1)]


def test_the_workflow_form_has_no_other_carrier_of_the_answer(web: EmulatorServer) -> None:
    plain = answer_of(web_events(ask_web(web)))
    for form in ("workflow", "workflow-diff"):
        web.next(Behavior(web_form=form))
        events = web_events(ask_web(web))
        found = documents(events)
        assert not {"ask_text", "ask_text_0_markdown"} & found.keys()
        assert not any("text" in event for event in events)
        items = [item for step in found["workflow_root"]["steps"] for item in step["items"]]
        payloads = [item["payload"]["text_payload"] for item in items]
        assert [payload["variant"] for payload in payloads] == ["thought", "answer"]
        assert payloads[1]["text"] == plain
        assert payloads[1]["is_streaming"] is False


@pytest.mark.parametrize(
    ("told", "key"),
    [
        (["answer_modes"], "markdown_block"),
        (["diff_blocks"], "diff_block"),
        (["workflow_steps"], "workflow_block"),
    ],
)
def test_the_form_is_what_the_request_says_it_can_read(
    web: EmulatorServer, told: list[str], key: str
) -> None:
    events = web_events(ask_web(web, supported_block_use_cases=told))
    assert any(key in block for event in events for block in event["blocks"])


def test_the_terminal_answer_can_have_other_numbers_than_the_chunks(web: EmulatorServer) -> None:
    plain = answer_of(web_events(ask_web(web)))
    web.next(Behavior(web_answer="renumbered"))
    found = documents(web_events(ask_web(web)))["ask_text"]
    assert found["answer"] == plain != "".join(found["chunks"])
    assert re.sub(r"\[\d+\]", "", plain) == re.sub(r"\[\d+\]", "", "".join(found["chunks"]))


def test_the_answer_can_be_in_chunks_alone(web: EmulatorServer) -> None:
    plain = answer_of(web_events(ask_web(web)))
    web.next(Behavior(web_answer="chunks"))
    found = documents(web_events(ask_web(web)))["ask_text"]
    assert "answer" not in found and "".join(found["chunks"]) == plain


def test_the_text_field_is_steps_in_json_whose_answer_is_json_again(web: EmulatorServer) -> None:
    events = web_events(ask_web(web))
    assert not any("text" in event for event in events[:-1])
    steps = json.loads(events[-1]["text"])
    assert [step["step_type"] for step in steps] == [
        "INITIAL_QUERY", "SEARCH_WEB", "SEARCH_RESULTS", "SEARCH_WEB", "SEARCH_RESULTS", "FINAL",
    ]  # fmt: skip
    final = json.loads(steps[-1]["content"]["answer"])
    assert final["answer"] == answer_of(events)
    assert final["web_results"] == documents(events)["web_results"]["web_results"]
    web.next(Behavior(web_text="plain"), Behavior(web_text="none"))
    assert web_events(ask_web(web))[-1]["text"] == final["answer"]
    assert "text" not in web_events(ask_web(web))[-1]


def test_the_plan_never_has_the_answer_in_it(web: EmulatorServer) -> None:
    for params in ({}, {"search_focus": "writing"}):
        for event in web_events(ask_web(web, **params)):
            for block in event["blocks"]:
                assert block["intended_usage"] != "plan" or "FINAL" not in json.dumps(block)


def test_sources_stand_where_the_behavior_says(web: EmulatorServer) -> None:
    urls = [s["url"] for s in documents(web_events(ask_web(web)))["web_results"]["web_results"]]
    places = ("sources_answer_mode", "sources_list", "top_level", "steps", "both", "none")
    web.next(*(Behavior(web_sources=place) for place in places))
    mode, listed, top, steps, both, none = (web_events(ask_web(web)) for _ in places)
    assert documents(mode)["sources_answer_mode"]["web_results"][0]["url"] == urls[0]
    assert "web_results" not in documents(mode)
    lists = [event["sources_list"] for event in listed if "sources_list" in event]
    assert [source["url"] for source in lists[-1]] == urls
    assert len(lists) == 2 and lists[0][0] == lists[1][0]
    assert sorted(lists[0][0]) == ["date", "snippet", "title", "url"]
    assert [source["url"] for source in merged(top)["web_results"]] == urls
    assert "web_results" not in documents(steps)
    results = [s for s in json.loads(steps[-1]["text"]) if s["step_type"] == "SEARCH_RESULTS"]
    assert [r["url"] for step in results for r in step["content"]["web_results"]] == urls
    again = documents(both)["sources_answer_mode"]["web_results"]
    assert [source["url"] for source in again] == [url + "/" for url in urls]
    assert urls[0] not in json.dumps(none)


@pytest.mark.parametrize(
    "cookie",
    [
        {},
        {"Authorization": f"Bearer {TOKEN}"},
        {"Cookie": "__Secure-next-auth.session-token=stale"},
        {"Cookie": f"next-auth.session-token={TOKEN}"},
    ],
)
def test_without_a_known_session_cookie_the_answer_is_anonymous_and_no_error(
    web: EmulatorServer, cookie: dict[str, str]
) -> None:
    reply = ask_web(web, cookie=cookie)
    found = merged(web_events(reply))
    assert found["display_model"] == found["user_selected_model"] == "turbo"
    assert "x-pplx-account-used" not in reply.headers
    assert answer_of(web_events(reply))


def test_with_the_session_cookie_the_wanted_model_answers(web: EmulatorServer) -> None:
    reply = ask_web(web, model_preference="some_new_slug")
    found = merged(web_events(reply))
    assert found["display_model"] == found["user_selected_model"] == "some_new_slug"
    assert reply.headers["x-pplx-account-used"]
    web.next(Behavior(web_model="turbo"))
    reply = ask_web(web, model_preference="some_new_slug")
    assert merged(web_events(reply))["display_model"] == "turbo"
    assert reply.headers["x-pplx-account-used"]


def test_the_search_mode_is_made_concise_and_drops_the_model(web: EmulatorServer) -> None:
    found = merged(web_events(ask_web(web, mode="search")))
    assert (found["mode"], found["display_model"]) == ("CONCISE", "turbo")


def test_an_api_key_of_the_server_is_no_matter_of_the_web() -> None:
    with EmulatorServer(pace=0, api_key="pplx-right") as server:
        assert ask_web(server).status == 200
        assert call(server, "GET", "/api/auth/csrf").status == 200
        assert call(server, "POST", "/search", {"query": "x"}).status == 401


def follow(events: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    found = merged(events)
    return {
        "last_backend_uuid": found["backend_uuid"],
        "read_write_token": found["read_write_token"],
        "query_source": "followup",
        **changes,
    }


def test_a_follow_up_goes_on_with_the_thread(web: EmulatorServer) -> None:
    first = web_events(ask_web(web, "How do I write a generator?"))
    second = web_events(ask_web(web, "Can you show more of it?", **follow(first)))
    urls = json.dumps(documents(second)["web_results"])
    assert "yield" in urls
    assert merged(second)["context_uuid"] == merged(first)["context_uuid"]
    assert merged(second)["read_write_token"] == merged(first)["read_write_token"]
    assert merged(second)["backend_uuid"] != merged(first)["backend_uuid"]
    third = web_events(ask_web(web, "Is that all of it?", **follow(second)))
    assert "yield" in json.dumps(documents(third)["web_results"])


def test_a_follow_up_that_proves_nothing_is_forbidden(web: EmulatorServer) -> None:
    first = web_events(ask_web(web))
    unknown = "00000000-0000-4000-8000-000000000000"
    for params, cookie in (
        (follow(first, read_write_token="wrong"), COOKIE),
        (follow(first, read_write_token=None), COOKIE),
        (follow(first, last_backend_uuid=unknown), COOKIE),
        (follow(first), {}),
    ):
        reply = ask_web(web, "And why?", cookie=cookie, **params)
        assert (reply.status, reply.json()) == (403, {})


def test_deep_research_has_a_cover_note_and_a_report(web: EmulatorServer) -> None:
    plain = answer_of(web_events(ask_web(web)))
    events = web_events(ask_web(web, model_preference="pplx_alpha"))
    assert answer_of(events) == "The report is ready."
    report = documents(events)["unified_assets"]["assets"][0]["research_report"]
    assert report["source_content"] == f"# {QUESTION}\n\n{plain}"
    assert merged(events)["search_mode"] == "RESEARCH"


def test_deep_research_can_ask_back(web: EmulatorServer) -> None:
    web.next(Behavior(web_research="clarify"))
    events = web_events(ask_web(web, model_preference="pplx_alpha"))
    last = json.loads(events[-1]["text"])[-1]
    assert last["step_type"] == "RESEARCH_CLARIFYING_QUESTIONS"
    assert len(last["content"]["questions"]) == 2
    assert "ask_text" not in documents(events)
    assert events[-1]["status"] == "COMPLETED"


def test_writing_searches_nothing_and_says_so(web: EmulatorServer) -> None:
    events = web_events(ask_web(web, search_focus="writing"))
    assert "no search" in answer_of(events)
    assert documents(events)["web_results"] == {"web_results": []}


@pytest.mark.parametrize("recency", ["hour", "HOUR"])
def test_the_recency_filter_counts_in_either_case(web: EmulatorServer, recency: str) -> None:
    events = web_events(ask_web(web, search_recency_filter=recency))
    assert "nothing that fits the filters" in answer_of(events)


def test_a_running_answer_can_be_stopped_from_another_connection() -> None:
    with EmulatorServer(pace=0.02, chunk_chars=4) as server:
        data = json.dumps(web_body()).encode()
        host, port = urlsplit(server.url).netloc.split(":")
        head = f"POST {ASK_PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n"
        server.next(Behavior(framing="close"))
        with socket.create_connection((host, int(port)), timeout=10) as link:
            link.sendall(head.encode() + b"\r\n" + data)
            taken = b""
            while b"markdown_block" not in taken:
                taken += link.recv(65536)
            name = json.loads(read_sse(taken.partition(b"\r\n\r\n")[2])[0][1])["backend_uuid"]
            body = {"entry_uuid": name, "context_uuid": "x", "terminate_requested_at_ms": 1}
            reply = call(server, "POST", "/rest/sse/perplexity_terminate", body)
            assert reply.status == 200
            while piece := link.recv(65536):
                taken += piece
        sent = taken.partition(b"\r\n\r\n")[2]
        events = [json.loads(data) for name, data in read_sse(sent) if name == "message"]
        assert (events[-1]["status"], events[-1]["text_completed"]) == ("COMPLETED", False)
        assert server.terminated == [name]
        server.pace = 0
        plain = answer_of(web_events(ask_web(server)))
        assert plain.startswith(answer_of(events))
        assert answer_of(events) not in ("", plain)


def test_what_is_not_running_cannot_be_stopped(web: EmulatorServer) -> None:
    path = "/rest/sse/perplexity_terminate"
    unknown = call(web, "POST", path, {"entry_uuid": "00000000-0000-4000-8000-000000000000"})
    assert (unknown.status, unknown.json()) == (403, {})
    assert call(web, "POST", path, {}).status == 422


@pytest.mark.parametrize(
    ("params", "where"),
    [
        ({"frontend_uuid": "x"}, "frontend_uuid"),
        ({"frontend_uuid": None}, "frontend_uuid"),
        ({"mode": "pro"}, "mode"),
        ({"mode": None}, "mode"),
        ({"model_preference": ""}, "model_preference"),
        ({"version": None}, "version"),
        ({"sources": "web"}, "sources"),
        ({"is_incognito": "yes"}, "is_incognito"),
        ({"search_recency_filter": "decade"}, "search_recency_filter"),
        ({"search_focus": "all"}, "search_focus"),
        ({"query_str": "something else"}, "query_str"),
        ({"last_backend_uuid": "the-slug"}, "last_backend_uuid"),
        ({"attachments": ["https://s3/x"] * 31}, "attachments"),
        ({"language": 3}, "language"),
    ],
)
def test_a_field_that_does_not_fit_is_unprocessable(
    web: EmulatorServer, params: dict[str, Any], where: str
) -> None:
    reply = ask_web(web, **params)
    assert reply.status == 422
    assert reply.json()["detail"][0]["loc"][:3] == ["body", "params", where]


@pytest.mark.parametrize(
    "body", [[], {}, {"query_str": "x"}, {"params": {}}, {"query_str": " ", "params": {}}]
)
def test_a_body_without_question_or_params_is_unprocessable(web: EmulatorServer, body: Any) -> None:
    assert call(web, "POST", ASK_PATH, body, COOKIE).status == 422


def test_a_field_that_nobody_documented_is_let_pass(web: EmulatorServer) -> None:
    assert ask_web(web, rum_session_id="x", search_domain_filter=["docs.rs"]).status == 200


def test_an_old_version_is_refused(web: EmulatorServer) -> None:
    assert ask_web(web, version="2.17").status == 400
    header = {**COOKIE, "X-App-ApiVersion": "2.17"}
    assert ask_web(web, cookie=header).status == 400
    assert ask_web(web, cookie={**COOKIE, "X-App-ApiVersion": "2.18"}).status == 200


def test_all_that_may_be_null_can_be_null(web: EmulatorServer) -> None:
    plain = documents(web_events(ask_web(web)))
    web.next(Behavior(nulls=True))
    events = web_events(ask_web(web))
    assert all("error_code" in event and event["error_code"] is None for event in events)
    assert {name: d for name, d in documents(events).items() if name != "plan"} == {
        name: d for name, d in plain.items() if name != "plan"
    }


def test_the_framings_and_breaks_of_the_agent_api_are_there_too(web: EmulatorServer) -> None:
    plain = documents(web_events(ask_web(web)))
    framings = [
        {"framing": "gzip"}, {"framing": "length"}, {"framing": "close"}, {"piece_bytes": 3},
        {"newline": "mixed", "bom": True}, {"keepalives": True},
    ]  # fmt: skip
    for fields in framings:
        web.next(Behavior(**fields))
        reply = ask_web(web)
        if fields == {"framing": "gzip"}:
            import gzip

            reply.body = gzip.decompress(reply.body)
        assert documents(web_events(reply)) == plain, fields
    web.next(Behavior(cut_after=5, framing="close"))
    assert len(read_sse(ask_web(web).body)) == 5


def test_a_behavior_of_the_web_that_means_nothing_is_refused() -> None:
    for name in ("web_form", "web_fault", "web_text", "web_sources", "web_chunks", "web_answer"):
        with pytest.raises(ValueError, match=name):
            Behavior(**{name: "pigeon"})
