"""All that the official SDK can say is known to the engine: its types are made of the service's."""

from __future__ import annotations

import typing
from typing import Any

import pytest

from ipyperplexity.emulator import EmulatorServer

from .conftest import KEY, messages

perplexity = pytest.importorskip("perplexity", reason="the peer perplexityai is not installed")
api = pytest.importorskip(
    "perplexity.generated.api", reason="this perplexityai keeps its types elsewhere"
)

ASKED: dict[str, dict[str, Any]] = {
    "/v1/responses": {"preset": "low", "input": "Why?"},
    "/chat/completions": {"model": "sonar", "messages": messages("Why?")},
    "/search": {"query": "Why?"},
}


def fields(model: Any) -> dict[str, None]:
    """Return the fields that the SDK sends, each with null, which every field takes."""
    return {field.alias or name: None for name, field in model.model_fields.items()}


def members(union: Any) -> list[Any]:
    names = (one.__forward_arg__ for one in typing.get_args(union))
    return [getattr(api, name) for name in names]


def nulls_of(model: Any) -> dict[str, Any]:
    """Return an object of one kind: its type, and null for all other fields."""
    (kind,) = typing.get_args(model.model_fields["type"].annotation)[:1]
    return {**fields(model), "type": kind if isinstance(kind, str) else "message"}


WHOLE = {
    "/v1/responses": api.ResponsesRequestInput,
    "/chat/completions": api.ApiChatCompletionsRequestInput,
    "/search": api.ApiSearchRequestInput,
}
PARTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{
        f"tool {model.__name__}": ("/v1/responses", {"tools": [nulls_of(model)]})
        for model in members(api.ToolInput)
    },
    **{
        f"item {model.__name__}": ("/v1/responses", {"input": [nulls_of(model)]})
        for model in members(api.InputItemInput)
    },
    "web filters": (
        "/v1/responses",
        {"tools": [{"type": "web_search", "filters": fields(api.WebSearchFiltersInput)}]},
    ),
    "image filters": (
        "/v1/responses",
        {"tools": [{"type": "image_search", "filters": fields(api.ImageSearchFiltersInput)}]},
    ),
    "place": (
        "/v1/responses",
        {"tools": [{"type": "web_search", "user_location": fields(api.ToolUserLocationInput)}]},
    ),
    "reasoning": ("/v1/responses", {"reasoning": fields(api.ReasoningConfigInput)}),
    "profile": ("/v1/responses", {"profile": fields(api.ProfileReferenceInput)}),
    "skill": ("/v1/responses", {"skills": [nulls_of(model) for model in members(api.SkillInput)]}),
    "schema": (
        "/v1/responses",
        {"response_format": {"type": "json_schema", "json_schema": fields(api.JSONSchemaFormatInput)}},
    ),
    "chat schema": (
        "/chat/completions",
        {"response_format": {"type": "json_schema", "json_schema": fields(api.JSONSchemaInput)}},
    ),
    "chat regex": (
        "/chat/completions",
        {"response_format": {"type": "regex", "regex": fields(api.RegexSchemaInput)}},
    ),
    "chat options": ("/chat/completions", {"web_search_options": fields(api.WebSearchOptionsInput)}),
    "chat message": (
        "/chat/completions",
        {"messages": [{**fields(api.ChatMessageInputInput), "role": "user"}]},
    ),
    **{
        f"chat {model.__name__}": (
            "/chat/completions",
            {"messages": [{"role": "user", "content": [nulls_of(model)]}]},
        )
        for model in (
            api.ChatMessageContentTextChunkInput,
            api.ChatMessageContentImageChunkInput,
            api.ChatMessageContentFileChunkInput,
            api.ChatMessageContentPDFChunkInput,
            api.ChatMessageContentVideoChunkInput,
        )
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def sdk(engine: EmulatorServer) -> Any:
    with perplexity.Perplexity(api_key=KEY, base_url=engine.url, max_retries=0) as client:
        yield client


def refusal(sdk: Any, path: str, body: dict[str, Any]) -> str:
    try:
        sdk.post(path, body=body, cast_to=object)
    except perplexity.APIStatusError as error:
        assert error.status_code in (400, 422)
        return str(error.body)
    return ""


@pytest.mark.parametrize("path", sorted(WHOLE))
def test_each_field_of_a_request_is_taken(sdk: Any, path: str) -> None:
    assert refusal(sdk, path, {**fields(WHOLE[path]), **ASKED[path]}) == ""


@pytest.mark.parametrize("name", sorted(PARTS))
def test_no_field_of_a_part_is_unknown(sdk: Any, name: str) -> None:
    # A part of nothing but nulls may lack what it must have; it may not have what is not known.
    path, body = PARTS[name]
    said = refusal(sdk, path, {**ASKED[path], **body})
    assert "unknown field" not in said and "invalid type" not in said


def test_what_it_cannot_say_is_refused(sdk: Any) -> None:
    assert "unknown field" in refusal(
        sdk, "/v1/responses", {**ASKED["/v1/responses"], "nope": None}
    )
    tool = {"type": "fetch_url", "nope": None}
    assert "unknown field" in refusal(
        sdk, "/v1/responses", {**ASKED["/v1/responses"], "tools": [tool]}
    )
    assert "unknown field" in refusal(
        sdk, "/chat/completions", {**ASKED["/chat/completions"], "nope": None}
    )
