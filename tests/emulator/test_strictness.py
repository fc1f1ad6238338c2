from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipyperplexity.emulator import EmulatorServer

from .http_help import ASK, ask, call

SEARCH = "web_search"


def web(**fields: Any) -> dict[str, Any]:
    return {"tools": [{"type": SEARCH, **fields}]}


def filters(**fields: Any) -> dict[str, Any]:
    return web(filters=fields)


def schema(**fields: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": fields}}


GONE = [
    "messages",
    "max_tokens",
    "stop",
    "top_k",
    "n",
    "logprobs",
    "presence_penalty",
    "frequency_penalty",
    "disable_search",
    "enable_search_classifier",
    "search_mode",
    "web_search_options",
    "search_language_filter",
    "search_domain_filter",
    "search_recency_filter",
    "return_images",
    "image_domain_filter",
    "num_images",
    "return_related_questions",
    "stream_mode",
    "reasoning_effort",
    "user",
    "extra_body",
]


@pytest.mark.parametrize("name", GONE)
def test_a_field_of_the_old_service_is_unknown(server: EmulatorServer, name: str) -> None:
    reply = ask(server, **{name: "x"})
    assert reply.status == 400
    assert reply.json() == {
        "error": {
            "message": f'json: unknown field "{name}"',
            "type": "invalid_request",
            "code": 400,
            "param": name,
        }
    }


@pytest.mark.parametrize(
    ("fields", "unknown"),
    [
        (web(search_domain_filter=["a.org"]), "search_domain_filter"),
        (filters(user_location={}), "user_location"),
        (web(user_location={"zip": "1"}), "zip"),
        ({"text": {"format": {"type": "text"}}}, "format"),
        ({"reasoning": {"summary": "auto"}}, "summary"),
        ({"input": [{"role": "user", "content": "x", "name": "me"}]}, "name"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_text", "text": "x", "y": 1}]}]},
            "y",
        ),
        (schema(name="a", schema={}, extra=1), "extra"),
        ({"stream_options": {"usage": True}}, "usage"),
        ({"tools": [{"type": "function", "function": {"name": "f"}, "name": "f"}]}, "function"),
    ],
)
def test_an_unknown_field_is_refused_at_any_depth(
    server: EmulatorServer, fields: dict[str, Any], unknown: str
) -> None:
    error = ask(server, **fields).json()["error"]
    assert error["message"] == f'json: unknown field "{unknown}"'
    assert error["param"] == unknown


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"input": ""}, "input array cannot be empty"),
        ({"input": []}, "input array cannot be empty"),
        ({"input": None}, "input array cannot be empty"),
        ({"input": 3}, "input"),
        ({"input": [{"role": "robot", "content": "x"}]}, "role"),
        ({"input": [{"role": "user"}]}, "content"),
        ({"input": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, "type"),
        (
            {
                "input": [
                    {
                        "role": "user",
                        "content": [{"type": "input_image", "image_url": "http://x/a.png"}],
                    }
                ]
            },
            "https",
        ),
        ({"preset": None}, "one of model"),
        ({"preset": "turbo"}, "fast, low"),
        ({"profile": {"type": "custom", "id": "p"}}, "profile"),
        ({"models": []}, "models"),
        ({"models": ["openai/a"] * 6}, "at most 5"),
        ({"max_steps": 0}, "max steps must be at least 1"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"max_tool_calls": -1}, "max_tool_calls"),
        ({"temperature": 2.5}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": -0.1}, "top_p"),
        ({"stream": "yes"}, "stream"),
        ({"reasoning": {"effort": "huge"}}, "minimal"),
        ({"tool_choice": "always"}, "required"),
        ({"truncation": "maybe"}, "truncation"),
        ({"service_tier": "gold"}, "service_tier"),
        ({"language_preference": "german"}, "language_preference"),
        ({"metadata": {str(n): "x" for n in range(17)}}, "metadata"),
        ({"metadata": {"k": "x" * 513}}, "metadata"),
        ({"metadata": {"k" * 65: "x"}}, "metadata"),
        ({"skills": [{"type": "builtin", "name": "x"}] * 17}, "skills"),
        ({"response_format": {"type": "regex"}}, "json_schema"),
        ({"response_format": {"type": "json_schema"}}, "json_schema"),
        (schema(name="a" * 65, schema={}), "name"),
        (schema(schema={}), "name"),
        ({"tools": [{"type": "browser"}]}, "web_search"),
        ({"tools": [{"name": "x"}]}, "tools[0]"),
        ({"tools": [{"type": "function"}]}, "name"),
        ({"tools": [{"type": "mcp", "server_label": "x"}]}, "server_url"),
        ({"tools": [{"type": "fetch_url", "max_urls": 11}]}, "max_urls"),
        (web(max_results=0), "max_results"),
        (web(max_results=51), "max_results"),
        (web(search_context_size="huge"), "low, medium, high"),
        (web(search_type="pro"), "web, fast"),
        (web(user_location={"country": "Belgium"}), "country"),
        (filters(search_recency_filter="decade"), "tools[0]"),
        (filters(search_recency_filter="decade"), "hour, day, week, month, year"),
        (filters(search_domain_filter=[f"a{n}.org" for n in range(21)]), "at most 20"),
        (filters(search_domain_filter=["https://a.org"]), "scheme"),
        (filters(search_domain_filter=["a" * 254]), "253"),
        (filters(search_after_date_filter="31/12/2024"), "MM/DD/YYYY"),
        (filters(search_after_date_filter="yesterday"), "MM/DD/YYYY"),
        (filters(search_recency_filter="day", search_before_date_filter="01/01/2024"), "combined"),
        ({"previous_response_id": "resp_none"}, "previous"),
        ({"preset": None, "model": "anthropic/claude-opus-5-5"}, "max_output_tokens"),
    ],
)
def test_a_broken_rule_is_refused_with_a_message_that_names_it(
    server: EmulatorServer, fields: dict[str, Any], says: str
) -> None:
    reply = ask(server, **fields)
    error = reply.json()["error"]
    assert (reply.status, error["code"], error["type"]) == (400, 400, "invalid_request")
    assert says in error["message"]


@pytest.mark.parametrize("name", ["sonar", "sonar-pro", "perplexity/sonar-pro", "gpt-6"])
def test_a_name_that_is_no_model_is_an_invalid_model(server: EmulatorServer, name: str) -> None:
    reply = ask(server, preset=None, model=name)
    assert reply.status == 400
    assert reply.json()["error"]["type"] == "invalid_model"


@pytest.mark.parametrize(
    "fields",
    [
        {"preset": None, "model": "perplexity/sonar"},
        {"preset": None, "models": ["openai/gpt-6-luna", "perplexity/sonar"]},
        {"preset": None, "effort": "low"},
        {"preset": None, "profile": {"type": "custom", "id": "p1", "version": 2}},
        {"preset": None, "model": "anthropic/claude-opus-5-5", "max_output_tokens": 900},
        {"max_steps": 101},
        {"instructions": "", "language_preference": "de", "reasoning": {"effort": "low"}},
        {"tool_choice": {"type": "web_search"}, **web(max_results=50, search_type="fast")},
        filters(search_domain_filter=["a.org", "-b.org"]),
        {"temperature": 0, "top_p": 1, "store": False, "metadata": {"a": "b"}, "user": None},
        web(user_location={"country": "BE", "latitude": 51.0, "longitude": 3.7}),
        {
            "tools": [
                {"type": kind}
                for kind in ("image_search", "people_search", "finance_search", "sandbox")
            ]
        },
    ],
)
def test_what_the_service_takes_is_taken(server: EmulatorServer, fields: dict[str, Any]) -> None:
    if "user" in fields:
        fields = {name: value for name, value in fields.items() if name != "user"}
    reply = ask(server, **fields)
    assert reply.status == 200, reply.body


def test_an_error_before_the_first_byte_of_a_stream_is_plain_json(server: EmulatorServer) -> None:
    reply = ask(server, stream=True, max_steps=0)
    assert (reply.status, reply.headers["content-type"]) == (400, "application/json")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"null", b"\xff\xfe", b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(server: EmulatorServer, body: bytes) -> None:
    reply = call(server, "POST", "/v1/responses", body)
    assert reply.status == 400
    assert reply.json()["error"]["type"] == "invalid_request"


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    question=st.text(min_size=1, max_size=120), history=st.text(max_size=40), plain=st.booleans()
)
def test_no_question_whatever_its_text_is_a_server_error(
    question: str, history: str, plain: bool, shared_server: EmulatorServer
) -> None:
    turns: list[dict[str, Any]] = [{"role": "user", "content": history}] if history else []
    asked: Any = question if plain else [*turns, {"role": "user", "content": question}]
    reply = call(shared_server, "POST", "/v1/responses", {**ASK, "input": asked})
    assert reply.status == 200, reply.body


@pytest.mark.parametrize(
    "question",
    [
        '"',
        "'",
        "*",
        "with AND",
        "NEAR(a b)",
        "title:with",
        "a OR",
        "(((",
        "-with",
        "^with",
        '"" ""',
        "\x00",
        "💥",
        "\u2028",
    ],
)
def test_search_syntax_in_a_question_is_only_text(server: EmulatorServer, question: str) -> None:
    assert ask(server, input=question).status == 200


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    body=st.dictionaries(
        st.sampled_from(
            [
                "input",
                "tools",
                "preset",
                "metadata",
                "response_format",
                "tool_choice",
                "models",
                "text",
            ]
        ),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats(allow_nan=False)
            | st.text(max_size=8),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["type", "role", "content", "name", "filters", "schema"]), inner
                )
            ),
            max_leaves=8,
        ),
    )
)
def test_no_body_whatever_its_shape_is_a_server_error(
    body: dict[str, Any], shared_server: EmulatorServer
) -> None:
    reply = call(shared_server, "POST", "/v1/responses", body)
    assert reply.status in (200, 400)
    assert isinstance(reply.json(), dict)


@pytest.mark.parametrize(
    "body",
    [
        b'{"preset": "low", "input": "x", "temperature": NaN}',
        '{"preset": "low", "input": "x"}'.encode("utf-16"),
        b'{"preset": "low", "input": "\xff"}',
    ],
)
def test_a_body_that_is_no_strict_json_is_refused(server: EmulatorServer, body: bytes) -> None:
    reply = call(server, "POST", "/v1/responses", body)
    assert reply.status == 400 and "not valid JSON" in reply.json()["error"]["message"]


def test_half_a_character_does_not_end_the_connection(server: EmulatorServer) -> None:
    reply = call(
        server, "POST", "/v1/responses", b'{"preset": "low", "input": "\\ud800 What is a lambda?"}'
    )
    assert reply.status == 200 and reply.json()["status"] == "completed"
