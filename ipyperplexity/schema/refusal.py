"""The error of a form that cannot be sent: it says where, what was given and what is allowed."""

from __future__ import annotations

from typing import Any

from ipyperplexity.errors import InvalidRequestError

_ALLOWED = (
    "a dataclass, a TypedDict, a pydantic (v2) model, a JSON schema dict, a short form such as "
    '{"name": str, "founded": int}, a list of one of these, or a type: str, int, float, bool, '
    "date, datetime, an Enum, Literal[...], list[...], tuple[X, ...], X | None, (X, 'description')"
)


def brief(form: Any) -> str:
    """Return a form as a message quotes it; of what may be large or private only the type."""
    if isinstance(form, bytes | bytearray) or (isinstance(form, int) and form.bit_length() > 64):
        text = f"a value of type {type(form).__name__}"
    else:
        try:
            text = form.__name__ if isinstance(form, type) else repr(form)
        except Exception:  # a repr is the user's code
            text = f"a value of type {type(form).__name__}"
    return text if len(text) <= 80 else text[:79] + "…"


def refusal(where: str, what: str) -> InvalidRequestError:
    """Return the error; `where` is the path in the form, such as ``.companies[].founded``."""
    return InvalidRequestError(
        f"schema{where}: {what} is not supported; allowed: {_ALLOWED}", field="schema"
    )
