"""When two requests ask the same: what of a request counts, and what is different each time."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from ipyperplexity.store.tape_file import TapedExchange

#: Fields that are new with each request, or say how the answer travels and not what it is.
_PASSING = {
    *("stream", "stream_options", "store", "prompt_cache_key", "user", "safety_identifier"),
    *("frontend_uuid", "frontend_context_uuid", "read_write_token", "timezone", "time_from_epoch"),
    *("client_search_results_cache_key", "rum_session_id", "custom_id", "input_file_id"),
}
_TEXT_FIELDS = ("query_str", "query", "input", "messages", "content", "text")
_SHOWN = 120


def what_is_asked(body: Any) -> Any:
    """Return a body without what is different each time; what is large becomes a digest.

    Examples
    --------
    >>> what_is_asked({"input": "Why?", "stream": True})
    {'input': 'Why?'}
    """
    if isinstance(body, Mapping):
        return {
            str(name): what_is_asked(value) for name, value in body.items() if name not in _PASSING
        }
    if isinstance(body, list | tuple):
        return [what_is_asked(item) for item in body]
    if isinstance(body, str) and body.startswith("data:"):
        return f"data, sha256 {hashlib.sha256(body.encode()).hexdigest()}"
    return body


def key_of(method: str, path: str, body: Any) -> str:
    """Return what is the same for two requests that ask the same."""
    asked = json.dumps(what_is_asked(body), sort_keys=True, separators=(",", ":"))
    return f"{method} {path} {asked}"


def question_of(method: str, path: str, body: Any) -> str:
    """Return the question in a body, for people; of a request without one, its address.

    Examples
    --------
    >>> question_of("POST", "/v1/responses", {"input": [{"role": "user", "content": "Why?"}]})
    'Why?'
    """
    return _text_in(body) or f"{method} {path}"


def _text_in(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, list):
        if all(isinstance(item, str) for item in value):
            return "; ".join(map(_text_in, value))
        # The newest of a conversation.
        return next(filter(None, map(_text_in, reversed(value))), "")
    if isinstance(value, Mapping):
        return next(filter(None, (_text_in(value.get(name)) for name in _TEXT_FIELDS)), "")
    return ""


def nearest(asked: str, exchanges: Iterable[TapedExchange]) -> str:
    """Return the recorded question that is most like one, or nothing."""
    known = list(dict.fromkeys(exchange.asked for exchange in exchanges))
    by_words = {text.casefold(): text for text in known}
    found = difflib.get_close_matches(asked.casefold(), by_words, 1, 0.0)
    return shorten(by_words[found[0]]) if found else ""


def shorten(text: str) -> str:
    """Return as much of a question as a message shows."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "\N{HORIZONTAL ELLIPSIS}"
