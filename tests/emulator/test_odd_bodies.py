"""No body, whatever its shape, ends a connection without a reply."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipyperplexity.emulator import EmulatorServer

from .http_help import call
from .web_help import ASK_PATH, web_body

KEYS = [
    "type", "role", "content", "text", "name", "function", "url", "tool_calls", "id", "user", "2.18",
]  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(KEYS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=8,
)
CHAT = [
    "messages", "tools", "tool_choice", "response_format", "stop", "web_search_options", "stream",
    "search_domain_filter", "model", "max_tokens",
]  # fmt: skip
WEB = [
    "sources", "mode", "search_recency_filter", "last_backend_uuid", "read_write_token", "version",
    "supported_block_use_cases", "model_preference", "client_coordinates", "search_focus",
]  # fmt: skip
PATHS = ["/chat/completions", "/search", "/v1/responses", ASK_PATH]
LOGIN = ["/api/auth/signin-email", "/api/auth/signin-otp", "/rest/sse/perplexity_terminate"]
ODD = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


@ODD
@given(fields=st.dictionaries(st.sampled_from(CHAT), VALUES, max_size=3))
def test_chat_completions_answer_or_refuse(
    fields: dict[str, Any], shared_server: EmulatorServer
) -> None:
    body = {"model": "sonar", "messages": [{"role": "user", "content": "lambda?"}], **fields}
    assert call(shared_server, "POST", PATHS[0], body).status in (200, 400, 422)


@ODD
@given(params=st.dictionaries(st.sampled_from(WEB), VALUES, max_size=3))
def test_the_web_endpoint_answers_or_refuses(
    params: dict[str, Any], shared_server: EmulatorServer
) -> None:
    reply = call(shared_server, "POST", ASK_PATH, web_body(**params))
    assert reply.status in (200, 400, 403, 422)


@ODD
@given(body=VALUES, path=st.sampled_from([*PATHS, *LOGIN]))
def test_what_is_no_request_at_all_is_refused(
    body: Any, path: str, shared_server: EmulatorServer
) -> None:
    assert call(shared_server, "POST", path, body).status in (400, 403, 422)


@settings(ODD, max_examples=40)
@given(question=st.text(min_size=1, max_size=80))
def test_no_question_whatever_its_text_is_a_server_error(
    question: str, shared_server: EmulatorServer
) -> None:
    chat = {"model": "sonar-reasoning-pro", "messages": [{"role": "user", "content": question}]}
    assert call(shared_server, "POST", PATHS[0], {**chat, "stream": True}).status == 200
    wanted = 200 if question.strip() else 422
    assert call(shared_server, "POST", ASK_PATH, web_body(question)).status == wanted


@pytest.mark.parametrize("path", [*PATHS, *LOGIN])
@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a": NaN}'])
def test_what_is_no_json_is_refused(server: EmulatorServer, path: str, body: bytes) -> None:
    assert call(server, "POST", path, body).status in (400, 422)
