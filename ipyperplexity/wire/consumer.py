"""perplexity.ai's own endpoint, asking: a Question to ``POST /rest/sse/perplexity_ask``.

For one's own subscription, without an API key. The endpoint takes few options and ignores what it
does not know, so an option that it has no place for is refused here, never dropped.
"""

from __future__ import annotations

import copy
import datetime as dt
import os
import re
import uuid
from pathlib import Path
from typing import Any

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.events import Started
from ipyperplexity.question import Question
from ipyperplexity.wire import agent
from ipyperplexity.wire import consumer_constants as constants
from ipyperplexity.wire.base import Wire, WireRequest
from ipyperplexity.wire.consumer_problems import explain, forgot_thread
from ipyperplexity.wire.consumer_reading import fold, fold_body

#: Option -> why perplexity.ai cannot have it (consumer-web 1.4).
_NO_PLACE_FOR = {
    "system": "perplexity.ai has no place for instructions, and models refuse them in the question",
    "images": "pictures are not uploaded to perplexity.ai",
    "tools": "perplexity.ai chooses its tools itself",
    "schema": "perplexity.ai gives no structured answers",
    "max_tokens": "perplexity.ai takes no limit of tokens",
    "max_steps": "perplexity.ai takes no limit of steps",
    "temperature": "perplexity.ai takes no temperature",
    "reasoning": "perplexity.ai has no such setting: choose a model that thinks, "
    "such as gpt54_thinking",
    "context": "perplexity.ai decides itself how much it reads",
    "country": "perplexity.ai takes no country to search from",
}


def request(question: Question, *, stream: bool = True, resume: bool = True) -> WireRequest:
    """Turn a Question into the body of ``POST /rest/sse/perplexity_ask`` (consumer-web 1).

    Parameters
    ----------
    question : Question
    stream : bool
        Without effect: this endpoint always answers with a stream.
    resume : bool
        Whether a follow-up goes on in the thread of the earlier answer. Without it, or where the
        thread is not known, the earlier questions and answers are sent as text.

    Raises
    ------
    InvalidRequestError
        If an option has no place here, or the model is a preset of the Agent API.

    Examples
    --------
    >>> made = request(Question("Why is the sky blue?", model="gpt54"))
    >>> made.path, made.body["params"]["model_preference"], made.body["params"]["is_incognito"]
    ('/rest/sse/perplexity_ask', 'gpt54', True)
    """
    _refuse_what_has_no_place(question)
    model, notices = _model(question)
    params: dict[str, Any] = {
        "query_str": question.text,
        "search_focus": constants.FOCUS_WEB,
        "model_preference": model,
        "frontend_uuid": str(uuid.uuid4()),
        "frontend_context_uuid": str(uuid.uuid4()),
        "language": locale(question.language),
        "timezone": local_timezone(),
        "search_recency_filter": question.recency,
        "skip_search_enabled": question.search != "force",
        **copy.deepcopy(constants.FIXED_PARAMS),
    }
    if question.search is False:
        params["search_focus"] = constants.FOCUS_NO_SEARCH
    elif question.search == "force":
        params["always_search_override"] = True
    filters = _filters(question)
    params |= filters
    if filters:
        notices += ("perplexity.ai may ignore domains and dates: check the sources.",)
    thread = _thread(question) if resume else {}
    if thread:
        del params["frontend_context_uuid"]
        params |= {**thread, "query_source": "followup", "followup_source": "link"}
    elif question.follow is not None:
        params["query_str"] = _transcript(question)
        notices += ("The earlier thread is not known: its questions and answers were sent along.",)
    params |= question.extra
    _check_council(params)
    return WireRequest(
        constants.ASK_PATH,
        {"query_str": params["query_str"], "params": params},
        headers={**constants.HEADERS, "X-Request-ID": str(params["frontend_uuid"])},
        notices=notices,
        continues=bool(thread),
        model=str(params["model_preference"]),
    )


def _refuse_what_has_no_place(question: Question) -> None:
    for name, why in _NO_PLACE_FOR.items():
        value = getattr(question, name)
        if value is not None and value != ():
            raise InvalidRequestError(
                f"{name}: the web backend cannot use it: {why}.",
                field=name,
                hint="Leave it out, or ask with an API key: backend='agent'.",
            )


def _model(question: Question) -> tuple[str, tuple[str, ...]]:
    name = question.model or constants.DEFAULT_MODEL
    if name in agent.PRESETS or name in agent.SONAR_PRESETS or name == "deep-research":
        slugs = (constants.DEFAULT_MODEL, constants.DEEP_RESEARCH_MODEL, "gpt54", "claude50sonnet")
        known = ", ".join(f"{slug} ({constants.MODELS[slug]})" for slug in slugs)
        raise InvalidRequestError(
            f"model: got {name!r}, a name of the Agent API; allowed: a model of perplexity.ai, "
            f"such as {known}.",
            field="model",
            hint="perplexity.ai would silently use another. With an API key: backend='agent'.",
        )
    if "/" in name:
        return name, (
            f"{name} looks like a model of the Agent API; perplexity.ai has names such as gpt54, "
            "and may silently use another.",
        )
    return name, ()


def _filters(question: Question) -> dict[str, Any]:
    """Return the fields for sites and dates; nothing proves that they are honored."""
    filters: dict[str, Any] = {}
    if question.domains:
        filters["search_domain_filter"] = list(question.domains)
    if question.after is not None:
        filters["search_after_date_filter"] = _us_date(question.after)
    if question.before is not None:
        filters["search_before_date_filter"] = _us_date(question.before)
    return filters


def _us_date(date: dt.date) -> str:
    return f"{date.month}/{date.day}/{date.year:04}"


def _thread(question: Question) -> dict[str, str]:
    """Return what goes on in the earlier answer's thread (consumer-web 1.5), or nothing."""
    follow = question.follow
    if follow is None:
        return {}
    names = ("last_backend_uuid", "read_write_token")
    thread = {name: follow.thread[name] for name in names if follow.thread.get(name)}
    return thread if len(thread) == len(names) else {}


def _transcript(question: Question) -> str:
    assert question.follow is not None
    lines: list[str] = []
    for turn in question.follow.conversation():
        lines.append(f"Q: {turn.question}" + (f"\nA: {turn.text}" if turn.text else ""))
    return "\n\n".join([*lines, f"Q: {question.text}"])


def _check_council(params: dict[str, Any]) -> None:
    if params["model_preference"] != constants.COUNCIL_MODEL:
        return
    models = params.get("compare_model_preferences")
    if not isinstance(models, list) or len(models) != 3:
        raise InvalidRequestError(
            f"model: {constants.COUNCIL_MODEL} (Model Council) needs three models to compare, "
            "or it never answers.",
            field="model",
            hint="Name them: extra={'compare_model_preferences': "
            "['gpt54_thinking', 'claude50sonnetthinking', 'gemini31pro_high']}",
        )


def locale(language: str | None) -> str:
    """Return a language as the endpoint has it: with its region, where that is beyond doubt.

    Examples
    --------
    >>> locale(None), locale("nl"), locale("pt")
    ('en-US', 'nl-NL', 'pt')
    """
    if language is None:
        return constants.DEFAULT_LANGUAGE
    region = constants.REGIONS.get(language)
    return f"{language}-{region}" if region else language


def local_timezone(
    variable: str | None = None, link: str | os.PathLike[str] = "/etc/localtime"
) -> str:
    """Return the IANA name of the local time zone, or ``UTC`` where it cannot be told.

    Parameters
    ----------
    variable : str, optional
        Value of the environment variable ``TZ``; read from the environment if not given.
    link : path
        The symbolic link by which Unix names its zone.

    Examples
    --------
    >>> local_timezone("Europe/Brussels")
    'Europe/Brussels'
    """
    named = os.environ.get("TZ", "") if variable is None else variable
    named = named.removeprefix(":")
    if _ZONE.fullmatch(named):
        return named
    try:
        target = Path(link).readlink().as_posix()
    except (OSError, ValueError):
        target = ""
    zone = target.rpartition("zoneinfo/")[2]
    return zone if not named and _ZONE.fullmatch(zone) else constants.DEFAULT_TIMEZONE


#: Area/place: a zone as POSIX writes it (CET-1CEST) or a bare file name is none.
_ZONE = re.compile(r"[A-Z]\w+(/[A-Z][\w+-]*){1,2}", re.ASCII)


def cancel(started: Started, at_ms: int) -> WireRequest | None:
    """Return the request that stops a run (consumer-web 1.7); hanging up alone does not.

    Parameters
    ----------
    started : Started
        Of the run: its id is the entry's, its context the thread's.
    at_ms : int
        When the user stopped it, in milliseconds since the epoch: a wire has no clock.
    """
    if not _RUN_ID.fullmatch(started.id or ""):
        return None
    fields: dict[str, Any] = {
        "entry_uuid": started.id,
        "context_uuid": started.context,
        "model_preference": started.model,
        "terminate_requested_at_ms": at_ms,
    }
    return WireRequest(
        constants.TERMINATE_PATH,
        {name: value for name, value in fields.items() if value is not None},
        headers={
            **constants.HEADERS,
            "Accept": "application/json",
            "X-Perplexity-Request-Reason": constants.TERMINATE_REASON,
        },
    )


_RUN_ID = re.compile(r"[\w-]{1,200}")


WIRE = Wire(
    "web",
    request,
    fold,
    fold_body,
    cancel=cancel,
    explain=explain,
    forgot=forgot_thread,
    time_limit=lambda asked: constants.time_limit(asked.model),
)
