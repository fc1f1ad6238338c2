"""The error of a value that does not fit, and the words in which it names place and finding.

Invariant: a message quotes at most a short part of the value, however large or deep that is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NoReturn


class SchemaMismatch(ValueError):
    """The text holds no value that fits the schema.

    Parameters
    ----------
    path : str
        Where in the JSON, such as ``companies[2].founded``; empty for the value as a whole.
    reason : str
        What was expected and what was found.
    text : str
        The whole text that was read.

    Examples
    --------
    >>> str(SchemaMismatch("founded", 'expected a whole number, found "1998-ish"'))
    'founded: expected a whole number, found "1998-ish"'
    """

    def __init__(self, path: str, reason: str, text: str = "") -> None:
        super().__init__(path, reason, text)
        self.path = path
        self.reason = reason
        self.text = text

    def __str__(self) -> str:
        return f"{self.path or 'the answer'}: {self.reason}"


def path_to(path: str, key: str | int) -> str:
    """Return the path of a member of the value at `path`.

    Examples
    --------
    >>> path_to("companies[2]", "founded"), path_to("companies", 2), path_to("", "a b")
    ('companies[2].founded', 'companies[2]', '["a b"]')
    """
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not key.isidentifier():
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key


def shown(value: Any) -> str:
    """Return a JSON value as a message quotes it."""
    # A part of a huge value is enough; its depth must not matter either.
    if isinstance(value, dict):
        return "an object" if value else "{}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"


def misfit(path: str, expected: str, value: Any) -> NoReturn:
    raise SchemaMismatch(path, f"expected {expected}, found {shown(value)}")


def missing_key(path: str, name: str) -> NoReturn:
    raise SchemaMismatch(path_to(path, name), "is missing")


def unknown_key(path: str, name: str, known: Iterable[str]) -> NoReturn:
    expected = ", ".join(known) or "none"
    raise SchemaMismatch(path_to(path, name), f"unknown key; expected {expected}")


def closest(misfits: Iterable[SchemaMismatch]) -> SchemaMismatch:
    """Return the misfit of the try that came furthest: the one that was meant."""
    return max(misfits, key=lambda one: len(one.path))
