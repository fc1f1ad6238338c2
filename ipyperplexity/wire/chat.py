"""Chat-completions, asking: a Question to ``POST {base}/chat/completions`` (official-api 8).

For gateways, local servers and recordings: Perplexity's own endpoint was retired on 2026-09-27.
The search options are Perplexity's, and most other servers ignore them. Nothing is sent that was
not asked for, but ``stream_options``: without it vLLM, Ollama, LM Studio, llama.cpp and LiteLLM
stream no usage. The model's name goes out as it is, for only the server knows its names.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.question import Question
from ipyperplexity.wire.base import Wire, WireRequest
from ipyperplexity.wire.chat_calls import give_results
from ipyperplexity.wire.chat_reading import fold, fold_body

PATH = "/chat/completions"
DEFAULT_MODEL = "sonar"
_NO_FORCE = "chat-completions cannot force a search: the model decides."


def request(question: Question, *, stream: bool = True, resume: bool = True) -> WireRequest:
    """Turn a Question into the body of ``POST /chat/completions``.

    Parameters
    ----------
    question : Question
        Its ``limit`` and ``max_steps`` are not sent: they count what is shown, and rounds with
        functions, here.
    stream : bool
        Whether the reply is to be streamed.
    resume : bool
        Without effect: such a service keeps no answer, so a follow-up always brings the whole
        conversation.

    Raises
    ------
    InvalidRequestError
        If ``tools`` names a tool of the Agent API.

    Examples
    --------
    >>> request(Question("Why?", recency="week"), stream=False).body
    {'model': 'sonar', 'messages': [{'role': 'user', 'content': 'Why?'}], \
'search_recency_filter': 'week'}
    """
    body: dict[str, Any] = {}
    if question.model is not None or not {"model", "models"} & question.extra.keys():
        body["model"] = question.model or DEFAULT_MODEL
    body["messages"] = _messages(question)
    for name, value in (
        ("max_tokens", question.max_tokens),
        ("temperature", question.temperature),
        ("reasoning_effort", question.reasoning),
        ("response_format", question.schema.response_format() if question.schema else None),
        ("language_preference", question.language),
        ("search_recency_filter", question.recency),
        ("search_after_date_filter", _us_date(question.after)),
        ("search_before_date_filter", _us_date(question.before)),
        ("search_domain_filter", list(question.domains) or None),
        ("web_search_options", _web_search_options(question)),
        ("disable_search", True if question.search is False else None),
        ("tools", [_function(tool) for tool in question.tools] or None),
        ("stream", True if stream else None),
        ("stream_options", {"include_usage": True} if stream else None),
    ):
        if value is not None:
            body[name] = value
    body |= question.extra
    model = body.get("model")
    return WireRequest(
        PATH,
        body,
        notices=(_NO_FORCE,) if question.search == "force" else (),
        model=model if isinstance(model, str) else None,
    )


def _messages(question: Question) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    if question.system:
        messages.append({"role": "system", "content": question.system})
    text = ""
    for turn in question.follow.conversation() if question.follow is not None else ():
        # Users and assistants must take turns (many servers refuse anything else), so a question
        # that got no answer goes along with the next one.
        text = f"{text}\n\n{turn.question}" if text else turn.question
        if turn.text:
            messages.append({"role": "user", "content": text})
            messages.append({"role": "assistant", "content": turn.text})
            text = ""
    text = f"{text}\n\n{question.text}" if text else question.text
    content: Any = text
    if question.images:
        content = [{"type": "text", "text": text}]
        content += [{"type": "image_url", "image_url": {"url": url}} for url in question.images]
    messages.append({"role": "user", "content": content})
    return messages


def _web_search_options(question: Question) -> dict[str, Any] | None:
    options: dict[str, Any] = {}
    if question.context is not None:
        options["search_context_size"] = question.context
    if question.country is not None:
        options["user_location"] = {"country": question.country}
    return options or None


def _function(tool: Any) -> dict[str, Any]:
    """Return a function as this wire declares it: nested, where the Agent API has it flat."""
    declared: Mapping[str, Any] = tool.declaration() if hasattr(tool, "declaration") else tool
    if declared.get("type") != "function":
        raise InvalidRequestError(
            f"tools: got {declared.get('type')!r}; allowed: functions: chat-completions has no "
            "tools of the service.",
            field="tools",
            hint="The service's own tools are part of the Agent API: backend='agent'.",
        )
    if isinstance(declared.get("function"), Mapping):
        return dict(declared)
    members = {name: value for name, value in declared.items() if name != "type"}
    return {"type": "function", "function": members}


def _us_date(date: dt.date | None) -> str | None:
    # Not `strftime`: on some systems its year has fewer than four digits.
    return f"{date.month:02}/{date.day:02}/{date.year:04}" if date is not None else None


WIRE = Wire("chat", request, fold, fold_body, give_results=give_results)
