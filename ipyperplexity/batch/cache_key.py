"""What makes two questions the same: a key of all that changes the answer, and of nothing else.

Invariant: an option of :class:`~ipyperplexity.question.Question` counts unless it is left out by
name, so that a new one cannot be forgotten. No credential is looked at; pictures, raw fields and
tools go in as digests only. A relative date (``recency``) counts as it is given: how old an answer
may be is the store's matter.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from ipyperplexity.question import Question
from ipyperplexity.tools import Tool

#: Of what the key is made of; another one makes all earlier answers unknown.
VERSION = 1
#: The model is looked at together with the default; how long one waits changes no answer.
_APART = ("model", "timeout")


def cache_key(
    question: Question, backend: str, base_url: str, default_model: str | None
) -> str | None:
    """Return the key under which an answer to a question is kept.

    Parameters
    ----------
    question : Question
    backend : str
    base_url : str
        Where it is asked. Of the demo it does not count: its port is another one each time.
    default_model : str or None
        What is asked when the question names no model.

    Returns
    -------
    str or None
        64 hex digits, the same in every process; None if what the answer depends on cannot be
        known, as with tools that are functions.

    Examples
    --------
    >>> address = "https://api.perplexity.ai"
    >>> key = cache_key(Question("Why?", domains=["b.org", "a.org"]), "agent", address, "low")
    >>> again = Question("Why?", domains=("a.org", "b.org"), model="low", timeout=30)
    >>> key == cache_key(again, "agent", address, "low")
    True
    >>> key == cache_key(Question("Why?"), "agent", address, "low")
    False
    """
    if any(isinstance(tool, Tool) for tool in question.tools):
        return None
    options: dict[str, Any] = {}
    for field in dataclasses.fields(question):
        value = getattr(question, field.name)
        # What is not given is not named: an option that is added later changes no earlier key.
        if field.name in _APART or value is None or value == field.default or value == {}:
            continue
        options[field.name] = _FORMS.get(field.name, _as_is)(value)
    asked = {
        "version": VERSION,
        "backend": backend,
        "base_url": "" if backend == "demo" else base_url.rstrip("/"),
        "model": question.model or default_model,
        "options": options,
    }
    return _digest(json.dumps(asked, sort_keys=True, separators=(",", ":")))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _as_is(value: Any) -> Any:
    return value


def _fields(value: Mapping[str, Any]) -> str:
    """Return a digest of fields, whatever their order.

    Deeper down the order counts: a model writes the properties of a JSON schema in theirs.
    """
    return _digest(json.dumps(dict(sorted(value.items())), separators=(",", ":")))


def _conversation(follow: Any) -> Any:
    turns = [[turn.question, turn.text] for turn in follow.conversation()]
    # What an answer without text was is known to the service alone, by its id.
    return {"turns": turns, "id": None if follow.text else follow.id}


#: Option -> what of it counts, in values that JSON can hold.
_FORMS: dict[str, Callable[[Any], Any]] = {
    "after": lambda date: date.isoformat(),
    "before": lambda date: date.isoformat(),
    "domains": sorted,
    "temperature": lambda number: number + 0.0,  # -0.0 is 0.0
    "schema": lambda schema: _digest(json.dumps(schema.response_format(), separators=(",", ":"))),
    "images": lambda urls: [_digest(url) for url in urls],
    "tools": lambda tools: sorted(map(_fields, tools)),
    "follow": _conversation,
    "extra": _fields,
}
