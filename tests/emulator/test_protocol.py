from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest

from ipyperplexity.emulator import EmulatorServer

from .http_help import ASK, ask, call, deltas_of, parse_events, sources_of, stream, text_of

TOP_LEVEL = [
    "id",
    "object",
    "status",
    "model",
    "created_at",
    "completed_at",
    "background",
    "error",
    "incomplete_details",
    "output",
    "usage",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
    "frequency_penalty",
    "presence_penalty",
]


def test_a_plain_answer_has_all_32_keys_and_no_others(server: EmulatorServer) -> None:
    answer = ask(server).json()
    assert sorted(answer) == sorted(TOP_LEVEL)
    assert len(TOP_LEVEL) == 32
    assert answer["object"] == "response"
    assert answer["status"] == "completed"
    assert answer["model"] == "demo/offline-search"
    assert answer["text"] == {"format": {"type": "text"}}
    assert answer["tools"] == [{"type": "web_search"}]


def test_the_agent_path_is_the_same_as_the_responses_path(server: EmulatorServer) -> None:
    answer = call(server, "POST", "/v1/agent", ASK).json()
    again = call(server, "GET", f"/v1/agent/{answer['id']}").json()
    assert again == answer == call(server, "GET", f"/v1/responses/{answer['id']}").json()


def test_the_headers_carry_the_request_id_and_the_rate_limit(server: EmulatorServer) -> None:
    reply = ask(server)
    assert "resp_" + reply.headers["x-request-id"] == reply.json()["id"]
    assert reply.headers["x-ratelimit-limit"] == "50"
    assert (
        int(reply.headers["x-ratelimit-remaining"]) + int(reply.headers["x-ratelimit-used"]) == 50
    )
    assert int(reply.headers["x-ratelimit-reset"]) > time.time()


def test_a_stream_has_the_usual_order_and_one_terminal_event(server: EmulatorServer) -> None:
    events = stream(server)
    assert [e["sequence_number"] for e in events] == list(range(len(events)))
    kinds = [e["type"].removeprefix("response.") for e in events]
    shape = re.sub(r"(output_text\.delta )+", "output_text.delta+ ", " ".join(kinds) + " ").strip()
    assert shape == (
        "created in_progress reasoning.started "
        "reasoning.search_queries reasoning.search_results reasoning.search_queries reasoning.search_results "
        "reasoning.stopped "
        "output_item.added output_item.done output_item.added output_item.done "
        "output_item.added output_text.delta+ output_text.done output_item.done completed"
    )


def test_the_text_is_the_same_wherever_a_stream_tells_it(server: EmulatorServer) -> None:
    events = stream(server)
    whole = text_of(events[-1]["response"])
    assert deltas_of(events) == whole
    assert [e["text"] for e in events if e["type"].endswith("output_text.done")] == [whole]
    assert events[-2]["item"]["content"][0]["text"] == whole
    assert whole == text_of(ask(server).json())


def test_the_model_shows_the_preset_until_the_run_is_complete(server: EmulatorServer) -> None:
    events = stream(server, preset="fast")
    assert events[0]["response"]["model"] == "fast"
    assert events[0]["response"]["output"] == []
    assert events[-1]["response"]["model"] == "demo/offline-search"


def test_ids_go_on_over_the_searches_and_every_marker_has_its_source(
    server: EmulatorServer,
) -> None:
    answer = ask(server).json()
    searches = [item for item in answer["output"] if item["type"] == "search_results"]
    assert len(searches) == 2
    assert searches[0]["queries"] != searches[1]["queries"]
    ids = [source["id"] for source in sources_of(answer)]
    assert ids == list(range(1, len(ids) + 1))
    cited = {int(n) for n in re.findall(r"\[(\d+)\]", text_of(answer))}
    assert cited
    assert cited <= set(ids)


def test_the_fast_preset_searches_once(server: EmulatorServer) -> None:
    answer = ask(server, preset="fast").json()
    assert [item["type"] for item in answer["output"]] == ["search_results", "message"]


def test_usage_adds_up(server: EmulatorServer) -> None:
    usage = ask(server).json()["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    cost = usage["cost"]
    assert cost["currency"] == "USD"
    assert cost["tool_calls_cost"] == pytest.approx(0.005)
    assert cost["total_cost"] == pytest.approx(cost["input_cost"] + cost["output_cost"] + 0.005)
    assert usage["tool_calls_details"]["search_web"]["invocation"] == 2


def test_usage_can_be_left_out_of_a_stream(server: EmulatorServer) -> None:
    events = stream(server, stream_options={"include_usage": False})
    assert events[-1]["response"]["usage"] is None


@pytest.mark.parametrize(
    "fields",
    [
        {"preset": None, "model": "openai/gpt-6-luna"},
        {"tool_choice": "none"},
        {"tool_choice": {"type": "none"}},
        {"max_tool_calls": 0},
        {"tools": [{"type": "fetch_url"}]},
    ],
)
def test_a_request_that_allows_no_search_gets_none_and_is_told_so(
    server: EmulatorServer, fields: dict[str, Any]
) -> None:
    answer = ask(server, **fields).json()
    assert [item["type"] for item in answer["output"]] == ["message"]
    assert "no search" in text_of(answer)
    assert "search_web" not in answer["usage"].get("tool_calls_details", {})


def test_a_bare_model_with_the_search_tool_searches(server: EmulatorServer) -> None:
    answer = ask(
        server, preset=None, model="openai/gpt-6-luna", tools=[{"type": "web_search"}]
    ).json()
    assert sources_of(answer)


def test_an_answer_longer_than_the_budget_is_incomplete(server: EmulatorServer) -> None:
    events = stream(server, max_output_tokens=20)
    assert events[-1]["type"] == "response.incomplete"
    answer = events[-1]["response"]
    assert answer["status"] == "incomplete"
    assert answer["incomplete_details"] == {"reason": "max_output_tokens"}
    assert answer["usage"]["output_tokens"] == 20
    assert deltas_of(events) == text_of(answer) != ""
    assert ask(server, max_output_tokens=20).json()["status"] == "incomplete"


def test_a_budget_below_16_is_raised_to_16(server: EmulatorServer) -> None:
    assert ask(server, max_output_tokens=1).json()["max_output_tokens"] == 16


def test_max_results_limits_each_search(server: EmulatorServer) -> None:
    answer = ask(server, tools=[{"type": "web_search", "max_results": 2}]).json()
    searches = [item for item in answer["output"] if item["type"] == "search_results"]
    assert [len(search["results"]) for search in searches] == [2, 2]


def filtered(server: EmulatorServer, **filters: Any) -> dict[str, Any]:
    answer: dict[str, Any] = ask(server, tools=[{"type": "web_search", "filters": filters}]).json()
    return answer


def test_domain_filters_allow_and_exclude(server: EmulatorServer) -> None:
    assert sources_of(filtered(server, search_domain_filter=["python.org"]))
    assert sources_of(filtered(server, search_domain_filter=["docs.python.org/3/reference"]))
    assert sources_of(filtered(server, search_domain_filter=["-example.org"]))
    for excluded in (
        ["-docs.python.org", "-example.org", "-example.net", "-example.com"],
        ["example.edu"],
        ["python.org", "-docs.python.org"],
        ["hon.org"],
    ):
        answer = filtered(server, search_domain_filter=excluded)
        assert sources_of(answer) == []
        assert "nothing that fits the filters" in text_of(answer)


def test_dates_are_taken_in_both_spellings_and_honored(server: EmulatorServer) -> None:
    known = sources_of(ask(server).json())[0]["date"]
    year = int(known[:4])
    assert sources_of(filtered(server, search_after_date_filter=f"01/01/{year - 1}"))
    assert sources_of(filtered(server, last_updated_before_filter=f"{year + 1}-01-01"))
    assert not sources_of(filtered(server, search_after_date_filter=f"{year + 9}-01-01"))
    assert not sources_of(filtered(server, search_before_date_filter="01/01/2009"))
    assert not sources_of(filtered(server, search_recency_filter="hour"))


def test_a_page_named_in_the_question_is_fetched(server: EmulatorServer) -> None:
    url = "https://docs.python.org/3/reference/compound_stmts.html#with"
    events = stream(server, input=f"What does {url} say about with?", tools=[{"type": "fetch_url"}])
    kinds = [e["type"] for e in events]
    assert "response.reasoning.fetch_url_queries" in kinds
    item = events[-1]["response"]["output"][0]
    assert item["type"] == "fetch_url_results"
    assert [page["url"] for page in item["contents"]] == [url]
    assert "[web:0]" in text_of(events[-1]["response"])
    assert events[-1]["response"]["usage"]["tool_calls_details"]["fetch_url"]["invocation"] == 1


def test_a_page_beyond_the_corpus_cannot_be_fetched(server: EmulatorServer) -> None:
    answer = ask(server, input="Read https://example.org/x", tools=[{"type": "fetch_url"}]).json()
    assert answer["output"][0] == {"type": "fetch_url_results", "contents": []}
    assert "could not read" in text_of(answer)


def test_a_previous_response_gives_a_short_question_its_subject(server: EmulatorServer) -> None:
    first = ask(server, input="How do I write a generator?", store=False).json()
    assert call(server, "GET", f"/v1/responses/{first['id']}").status == 404
    follow = ask(server, input="Can you show more of it?", previous_response_id=first["id"]).json()
    assert any("yield" in source["url"] for source in sources_of(follow))
    assert not sources_of(ask(server, input="Can you show more of it?").json())
    third = ask(server, input="Is that all of it?", previous_response_id=follow["id"]).json()
    assert any("yield" in source["url"] for source in sources_of(third))


def test_earlier_turns_in_the_input_give_a_short_question_its_subject(
    server: EmulatorServer,
) -> None:
    turns = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is a lambda?"},
        {"role": "assistant", "content": "A small function."},
        {"role": "user", "content": [{"type": "input_text", "text": "And when is it useful?"}]},
    ]
    answer = ask(server, input=turns).json()
    assert any("lambda" in source["url"] for source in sources_of(answer))


def poll(server: EmulatorServer, name: str, wanted: str) -> list[str]:
    seen: list[str] = []
    until = time.monotonic() + 20
    while time.monotonic() < until:
        status = call(server, "GET", f"/v1/responses/{name}").json()["status"]
        if status not in seen:
            seen.append(status)
        if status == wanted:
            return seen
    raise AssertionError(f"never {wanted}: {seen}")


def test_a_background_run_goes_from_queued_over_in_progress_to_completed() -> None:
    with EmulatorServer(pace=0.01) as server:
        created = ask(server, background=True).json()
        assert (created["status"], created["output"], created["usage"]) == ("queued", [], None)
        assert created["model"] == "low"
        assert poll(server, created["id"], "completed")[-2:] == ["in_progress", "completed"]
        answer = call(server, "GET", f"/v1/responses/{created['id']}").json()
        assert answer["background"] is True
        assert text_of(answer)


def test_a_background_stream_can_be_taken_up_again_where_it_broke() -> None:
    with EmulatorServer(pace=0.001) as server:
        events = stream(server, background=True)
        name = events[0]["response"]["id"]
        path = f"/v1/responses/{name}?stream=true&starting_after="
        rest = call(server, "GET", path + "5")
        assert parse_events(rest.body) == events[6:]
        assert call(server, "GET", path + "99999").status == 400
        assert call(server, "GET", path).status == 400


def test_a_background_run_can_be_cancelled() -> None:
    with EmulatorServer(pace=0.05) as server:
        name = ask(server, background=True).json()["id"]
        poll(server, name, "in_progress")
        reply = call(server, "POST", f"/v1/responses/{name}/cancel")
        assert (reply.status, reply.json()) == (200, {"response_id": name, "status": "cancelling"})
        poll(server, name, "cancelled")
        answer = call(server, "GET", f"/v1/agent/{name}").json()
        assert answer["error"]["code"] == answer["error"]["type"] == "cancelled"
        assert answer["incomplete_details"] == {"reason": "cancelled"}
        assert answer["usage"] is None
        again = call(server, "POST", f"/v1/responses/{name}/cancel")
        assert again.status == 400
        assert "terminal" in again.json()["error"]["message"]


def test_a_cancelled_run_cannot_be_continued() -> None:
    with EmulatorServer(pace=0.05) as server:
        name = ask(server, background=True).json()["id"]
        refused = ask(server, previous_response_id=name)
        assert refused.status == 400
        assert refused.json()["error"]["type"] == "invalid_request"


def test_unknown_runs_and_paths_are_not_found_in_the_usual_envelope(server: EmulatorServer) -> None:
    for method, path in (
        ("GET", "/v1/responses/resp_x"),
        ("GET", "/nowhere"),
        ("PUT", "/v1/responses"),
    ):
        reply = call(server, method, path)
        assert reply.status == 404
        assert reply.json() == {
            "error": {"message": "resource not found", "type": "not_found", "code": 404}
        }
    assert call(server, "POST", "/v1/responses/resp_x/cancel").status == 400


def test_the_retired_endpoint_says_where_to_go() -> None:
    with EmulatorServer(pace=0, chat="retired") as server:
        for path in ("/chat/completions", "/v1/chat/completions", "/v1/sonar"):
            reply = call(server, "POST", path, {"model": "sonar", "messages": []})
            assert reply.status == 403
            assert reply.json()["error"]["type"] == "chat_completions_not_available"


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("path", ["/async/chat/completions", "/v1/async/sonar"])
def test_the_asynchronous_endpoint_is_retired_in_any_case(
    server: EmulatorServer, method: str, path: str
) -> None:
    reply = call(server, method, path)
    assert (reply.status, reply.json()["error"]["type"]) == (403, "chat_completions_not_available")


def test_the_models_are_listed_with_their_prices(server: EmulatorServer) -> None:
    data = call(server, "GET", "/v1/models").json()["data"]
    assert "demo/offline-search" in [model["id"] for model in data]
    assert all(model["pricing"]["unit"] == "usd_per_1m_tokens" for model in data)


def test_a_forced_function_is_called_with_arguments_of_its_schema(server: EmulatorServer) -> None:
    tool = {
        "type": "function",
        "name": "look_up",
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string"}},
            "required": ["word"],
        },
    }
    answer = ask(server, tools=[tool], tool_choice={"type": "function", "name": "look_up"}).json()
    call_item = answer["output"][0]
    assert (call_item["type"], call_item["name"]) == ("function_call", "look_up")
    assert list(json.loads(call_item["arguments"])) == ["word"]


def test_the_search_api_gives_flat_results(server: EmulatorServer) -> None:
    reply = call(server, "POST", "/search", {"query": "with statement", "max_results": 3})
    results = reply.json()["results"]
    assert [sorted(r) for r in results] == [["date", "last_updated", "snippet", "title", "url"]] * 3
    refused = call(server, "POST", "/search", {"query": "x", "max_results": 99})
    assert refused.status == 422
    assert refused.json()["detail"][0]["loc"] == ["body", "max_results"]
    clash = {"query": "x", "search_recency_filter": "day", "search_after_date_filter": "01/01/2020"}
    assert call(server, "POST", "/search", clash).status == 400
