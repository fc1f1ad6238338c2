"""How a perplexity.ai answer ended: the last event, and what of it is worth a look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ipyperplexity.events import Finished
from ipyperplexity.wire import values
from ipyperplexity.wire.consumer_constants import ANONYMOUS_MODEL
from ipyperplexity.wire.consumer_problems import LOG_IN

#: With it anybody could write to the thread.
_TOKEN = "read_write_token"


@dataclass(frozen=True)
class Ending:
    """All that is known of an answer at its end.

    Attributes
    ----------
    record : dict
        Top level of all records, merged.
    blocks : list of dict
        Their blocks, merged.
    asked : str or None
        The model that was asked for.
    id : str or None
        The service's id of the entry.
    has_note : bool
        Whether the text is a report beside which something else was said.
    questions : list of str
        What the service asked back, and then answered all the same.
    unreadable : int
        Records that made no sense.
    is_complete : bool
        False if the run was stopped.
    """

    record: dict[str, Any]
    blocks: list[dict[str, Any]]
    asked: str | None
    id: str | None
    has_note: bool
    questions: list[str]
    unreadable: int
    is_complete: bool


def finished(ending: Ending) -> Finished:
    """Return the last event of an answer."""
    record = values.clean({**ending.record, "blocks": ending.blocks})
    model, _ = reported_model(record, ending.asked)
    thread = _thread(record)
    return Finished(
        status="completed" if ending.is_complete else "incomplete",
        finish_reason="stop" if ending.is_complete else "terminated",
        id=ending.id,
        model=model,
        stored=bool(thread),
        warnings=tuple(_warnings(ending)),
        related=tuple(_related(record)),
        thread=thread,
        raw=_without_token(record),
    )


def reported_model(record: Mapping[str, Any], asked: str | None) -> tuple[str | None, bool]:
    """Return the model that answered, and whether the service speaks of ``turbo`` alone.

    Both fields are unreliable: either may say ``turbo`` though the choice was honored, or because
    the call was not signed in (consumer-web 1.6).

    Examples
    --------
    >>> reported_model({"display_model": "turbo", "user_selected_model": "gpt54"}, "glm_5_2")
    ('gpt54', False)
    >>> reported_model({"display_model": "turbo"}, "glm_5_2")
    ('glm_5_2', True)
    """
    names = ("user_selected_model", "display_model")
    said = [name for key in names if (name := values.clean(values.text(record.get(key))).strip())]
    named = next((name for name in said if name != ANONYMOUS_MODEL), None)
    return named or asked, bool(said) and named is None


def _thread(record: dict[str, Any]) -> dict[str, str]:
    """Return what a follow-up needs (consumer-web 1.5), or nothing unless all of it is known."""
    needed = {
        "last_backend_uuid": values.text(record.get("backend_uuid")),
        _TOKEN: values.text(record.get(_TOKEN)),
    }
    if not all(needed.values()):
        return {}
    others = ("context_uuid", "thread_url_slug", "expiry_time")
    known = {name: values.text(record.get(name)) for name in others}
    return needed | {name: value for name, value in known.items() if value}


def _without_token(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_token(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_token(item) for name, item in value.items() if name != _TOKEN}
    return value


def _related(record: dict[str, Any]) -> dict[str, None]:
    followups = [
        item
        for block in values.objects(record.get("blocks"))
        for payload in block.values()
        if isinstance(payload, dict)
        for item in values.items(payload.get("followups"))
    ]
    questions: dict[str, None] = {}
    for item in (
        *values.items(record.get("related_queries")),
        *values.items(record.get("related_query_items")),
        *followups,
    ):
        text = item.get("text") or item.get("query") if isinstance(item, dict) else item
        if isinstance(text, str) and text.strip():
            questions.setdefault(text.strip())
    return questions


def _warnings(ending: Ending) -> Iterator[str]:
    if not ending.is_complete:
        yield "perplexity.ai stopped the answer before it was complete."
    is_turbo = reported_model(ending.record, ending.asked)[1]
    if is_turbo and ending.asked not in (None, ANONYMOUS_MODEL):
        yield (
            f"perplexity.ai says that {ANONYMOUS_MODEL} answered, not {ending.asked}: "
            f"perhaps you are not logged in. {LOG_IN}"
        )
    if ending.has_note:
        yield "The text is the report; what was said about it is in the reasoning."
    if ending.questions:
        asked = "; ".join(" ".join(question.split()) for question in ending.questions[:5])
        yield f"perplexity.ai asked back, and went on without an answer: {asked}"
    if ending.unreadable:
        count = "1 record" if ending.unreadable == 1 else f"{ending.unreadable} records"
        yield f"{count} of the stream made no sense; the text may lack a piece."
