"""langchain-perplexity on the embedded engine: the model on both wires, the retriever, the tool.

It has no option for the address; the environment variable of the SDK beneath it says it.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from ipyperplexity import Answer, Client
from ipyperplexity.emulator import Behavior, EmulatorServer

from .conftest import KEY, MODEL, OTHER_QUESTION, QUESTION

langchain = pytest.importorskip(
    "langchain_perplexity", reason="the peer langchain-perplexity is not installed"
)
core = pytest.importorskip("langchain_core.messages")
perplexity = pytest.importorskip("perplexity")


class Item(BaseModel):
    name: str
    year: int


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.fixture(autouse=True)
def _settings(engine: EmulatorServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERPLEXITY_BASE_URL", engine.url)
    monkeypatch.setenv("PPLX_API_KEY", KEY)


def chat_model(**options: Any) -> Any:
    return langchain.ChatPerplexity(**{"model": "sonar", "max_retries": 0, **options})


def agent_model() -> Any:
    return langchain.ChatPerplexity(
        use_responses_api=True, max_retries=0, model_kwargs={"preset": "low"}
    )


def function_model() -> Any:
    return chat_model(use_responses_api=True, model=MODEL).bind_tools([add])


def gathered(chunks: Any) -> Any:
    whole = None
    for chunk in chunks:
        whole = chunk if whole is None else whole + chunk
    return whole


# --- chat completions -------------------------------------------------------------------------------


def assert_is(message: Any, same: Answer) -> None:
    assert message.content == same.text
    assert message.additional_kwargs["citations"] == list(same.sources["url"])
    found = message.additional_kwargs["search_results"]
    urls = [one["url"] if isinstance(one, dict) else one.url for one in found]
    assert urls == list(same.sources["url"])
    used = message.usage_metadata
    assert (used["input_tokens"], used["output_tokens"], used["total_tokens"]) == (
        same.usage.input_tokens,
        same.usage.output_tokens,
        same.usage.total_tokens,
    )
    assert message.response_metadata["model_name"] == "sonar"
    assert message.response_metadata["search_context_size"] == "low"


def test_an_answer_has_its_text_its_sources_and_its_usage(chat_answer: Answer) -> None:
    assert_is(chat_model().invoke(QUESTION), chat_answer)


@pytest.mark.parametrize("form", [Behavior(), Behavior(chat_message=True), Behavior(nulls=True)])
def test_a_stream_adds_up_to_the_same_answer(
    engine: EmulatorServer, chat_answer: Answer, form: Behavior
) -> None:
    engine.next(form)
    chunks = list(chat_model().stream(QUESTION))
    assert len([chunk for chunk in chunks if chunk.content]) > 2
    whole = gathered(chunks)
    assert_is(whole, chat_answer)
    assert whole.response_metadata["finish_reason"] == "stop"


def test_a_batch_is_answered_in_order(chat_answer: Answer) -> None:
    one, other, again = chat_model().batch([QUESTION, OTHER_QUESTION, QUESTION])
    assert_is(one, chat_answer)
    assert_is(again, chat_answer)
    assert other.content.startswith("Lambda expressions")


def test_it_can_ask_without_blocking(chat_answer: Answer) -> None:
    async def ask() -> tuple[Any, Any]:
        model = chat_model()
        whole = await model.ainvoke(QUESTION)
        return whole, gathered([chunk async for chunk in model.astream(QUESTION)])

    for message in asyncio.run(ask()):
        assert_is(message, chat_answer)


def test_a_conversation_goes_on(chat_answer: Answer) -> None:
    asked = [("system", "Be brief."), ("user", QUESTION), ("ai", chat_answer.text)]
    message = chat_model().invoke([*asked, ("user", "And what is a context manager?")])
    assert "context manager" in message.content


@pytest.mark.parametrize("model", ["sonar", "sonar-reasoning-pro"])
def test_a_structured_answer_is_an_object(model: str) -> None:
    item = chat_model(model=model).with_structured_output(Item).invoke(QUESTION)
    assert isinstance(item, Item) and item.name


def test_all_its_options_are_taken(engine: EmulatorServer) -> None:
    model = chat_model(
        temperature=0.1,
        max_tokens=500,
        search_mode="web",
        reasoning_effort="low",
        language_preference="en",
        search_domain_filter=["docs.python.org"],
        return_images=True,
        return_related_questions=True,
        search_after_date_filter="1/1/2000",
        last_updated_after_filter="1/1/2000",
        enable_search_classifier=True,
        web_search_options=langchain.WebSearchOptions(
            search_context_size="high",
            search_type="fast",
            user_location=langchain.UserLocation(country="BE", city="Ghent"),
            image_search_relevance_enhanced=True,
        ),
        media_response=langchain.MediaResponse(
            overrides=langchain.MediaResponseOverrides(return_images=True, return_videos=False)
        ),
    )
    message = model.invoke(QUESTION)
    assert message.response_metadata["search_context_size"] == "high"
    assert message.additional_kwargs["images"] and message.additional_kwargs["related_questions"]
    assert chat_model(disable_search=True).invoke(QUESTION).additional_kwargs == {}


@pytest.mark.parametrize(
    ("behavior", "error"),
    [
        (Behavior(status=400), "BadRequestError"),
        (Behavior(status=401), "AuthenticationError"),
        (Behavior(status=404), "NotFoundError"),
        (Behavior(status=429), "RateLimitError"),
        (Behavior(status=500), "InternalServerError"),
        (Behavior(retired="chat_completions_not_available"), "PermissionDeniedError"),
        (Behavior(retired="agent_api_migration_required"), "PermissionDeniedError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_refusal_is_the_error_of_the_sdk(
    engine: EmulatorServer, behavior: Behavior, error: str, call: str
) -> None:
    engine.next(behavior)
    with pytest.raises(getattr(perplexity, error)):
        gathered(getattr(chat_model(), call)(QUESTION))


def test_a_wrong_key_is_refused() -> None:
    with pytest.raises(perplexity.AuthenticationError):
        chat_model(api_key="pplx-wrong").invoke(QUESTION)


# --- the Agent API ----------------------------------------------------------------------------------


def assert_is_run(message: Any, same: Answer) -> None:
    assert message.content == same.text
    found = {(one["id"], one["url"]) for one in message.additional_kwargs["search_results"]}
    assert sorted(found) == [(source.id, source.url) for source in same.sources]
    used = message.usage_metadata
    assert (used["input_tokens"], used["output_tokens"]) == (
        same.usage.input_tokens,
        same.usage.output_tokens,
    )
    assert message.response_metadata["status"] == "completed"
    assert message.response_metadata["model_name"] == same.model


def test_the_answer_of_the_agent_api_is_ours(answer: Answer) -> None:
    model = agent_model()
    assert_is_run(model.invoke(QUESTION), answer)
    assert_is_run(gathered(model.stream(QUESTION)), answer)


def test_a_tool_of_the_service_leads_there_by_itself() -> None:
    message = chat_model(model=MODEL).invoke(QUESTION, tools=[{"type": "web_search"}])
    assert message.response_metadata["id"].startswith("resp_")
    assert message.additional_kwargs["search_results"]


def test_an_earlier_run_can_be_followed(answer: Answer) -> None:
    message = agent_model().invoke("And a context manager?", previous_response_id=answer.id)
    assert message.content == answer.follow_up("And a context manager?").text


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_function_is_called_and_its_result_is_used(engine: EmulatorServer, call: str) -> None:
    model = function_model()
    engine.next(Behavior(tool_rounds=1, tool_calls=2))
    asked = core.HumanMessage("What are 2 and 3?")
    called = getattr(model, call)([asked])
    called = called if call == "invoke" else gathered(called)
    assert [(made["name"], made["args"]) for made in called.tool_calls] == [
        ("add", {"a": 2, "b": 3})
    ] * 2
    results = [
        core.ToolMessage(str(add(**made["args"])), tool_call_id=made["id"])
        for made in called.tool_calls
    ]
    answered = model.invoke([asked, core.AIMessage("", tool_calls=called.tool_calls), *results])
    assert answered.content.count("`add` gave: 5") == 2 and not answered.tool_calls


@pytest.mark.parametrize("terminal", ["failed-event", "failed-both"])
def test_a_run_that_fails_is_an_error_with_its_code(engine: EmulatorServer, terminal: str) -> None:
    engine.next(Behavior(terminal=terminal))
    failed = langchain.chat_models.PerplexityResponsesStreamError
    with pytest.raises(failed, match="the run failed") as caught:
        gathered(agent_model().stream(QUESTION))
    assert caught.value.code == "internal_error"
    engine.next(Behavior(terminal="error"))
    with pytest.raises(perplexity.APIError):
        gathered(agent_model().stream(QUESTION))


# --- search -----------------------------------------------------------------------------------------


def test_the_retriever_gives_documents(ours: Client) -> None:
    documents = langchain.PerplexitySearchRetriever(k=3).invoke(QUESTION)
    assert [document.metadata["url"] for document in documents] == list(
        ours.search(QUESTION, max_results=3)["url"]
    )
    assert all(document.page_content for document in documents)


def test_the_search_tool_takes_several_queries_and_tells_its_failures() -> None:
    tool = langchain.PerplexitySearchResults()
    found = tool.invoke({"query": [QUESTION, OTHER_QUESTION], "max_results": 2})
    assert len({one["url"] for one in found}) == len(found) > 2
    wrong = langchain.PerplexitySearchResults(pplx_api_key="pplx-wrong")
    assert wrong.invoke(QUESTION).endswith("AuthenticationError")
