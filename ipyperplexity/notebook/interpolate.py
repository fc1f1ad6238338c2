"""``{{name}}`` in a question becomes the variable's text; everything else stays byte for byte.

Only names and dotted names are looked up, nothing is called. Single braces and ``$`` are ordinary
characters: questions are prose and code.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any

from ipyperplexity.answer import Answer
from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.tabular.excerpt import excerpt

#: Characters that all variables of one question may bring in.
MAX_CHARACTERS = 200_000

_FIELD = re.compile(r"\{\{\s*([^\W\d]\w*(?:\.[^\W\d]\w*)*)\s*\}\}")


def interpolate(text: str, namespace: Mapping[str, Any]) -> str:
    """Return ``text`` with each ``{{name}}`` replaced.

    Raises
    ------
    InvalidRequestError
        If a name is unknown (naming the nearest), or the variables bring in too much text.

    Examples
    --------
    >>> interpolate("Who founded {{name}} for ${x}?", {"name": "Lego"})
    'Who founded Lego for ${x}?'
    """
    size = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal size
        shown = f"{{{{{match[1]}}}}}"
        value = _users(_as_text, look_up(match[1], namespace, shown, _HINT), shown=shown)
        size += len(value)
        if size > MAX_CHARACTERS:
            raise InvalidRequestError(
                f"{match[1]}: the variables bring in over {MAX_CHARACTERS:,} characters.",
                field=match[1],
                hint="Put in a part of it, such as its first rows.",
            )
        return str(value)

    return _FIELD.sub(replace, text)


def _users(call: Callable[..., Any], *arguments: Any, shown: str) -> Any:
    """Call what runs the user's code, such as a property; its failure is said in one line."""
    try:
        return call(*arguments)
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
    raise InvalidRequestError(f"{shown} cannot be read: {problem}", field=shown.strip("{}"))


def look_up(path: str, namespace: Mapping[str, Any], shown: str, hint: str) -> Any:
    """Return the variable, or the attribute of one, that a dotted name means.

    Parameters
    ----------
    path : str
        Such as ``df`` or ``company.name``.
    namespace : mapping
    shown : str
        What the user wrote, to begin the message with.
    hint : str
        What to do if there is no such variable.

    Raises
    ------
    InvalidRequestError
        If there is none.
    """
    name, *attributes = path.split(".")
    if name not in namespace:
        near = difflib.get_close_matches(name, [n for n in namespace if not n.startswith("_")], 1)
        raise InvalidRequestError(
            f"{shown}: there is no variable {name!r}."
            + (f" Did you mean {near[0]!r}?" if near else ""),
            field=name,
            hint=hint,
        )
    value = namespace[name]
    for attribute in attributes:
        missing = object()
        found = _users(getattr, value, attribute, missing, shown=shown)
        if found is missing:
            raise InvalidRequestError(
                f"{shown}: {name!r} has no attribute {attribute!r}.", field=path
            )
        value, name = found, f"{name}.{attribute}"
    return value


_HINT = "Define it first, or ask with --no-vars to send the braces as they are."


def _as_text(value: Any) -> str:
    if isinstance(value, Answer):
        return value.text
    return value if isinstance(value, str) else excerpt(value) or str(value)
