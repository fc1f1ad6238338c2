"""The JSON value in an answer's text.

Invariant: whatever text arrives, `read` returns a value that a loader took whole, or raises
`SchemaMismatch`; a part of a damaged or cut-off value never passes for the answer.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from ipyperplexity.schema.json_values import Load
from ipyperplexity.schema.mismatch import SchemaMismatch, closest, shown


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)
_BEFORE = re.compile(
    r"\A[\s\ufeff]*(?:<think>.*?(?:</think>|\Z)\s*)*(?:```[\w-]*[ \t]*\n)?\s*", re.DOTALL
)
_AFTER_A_SCALAR = re.compile(r"(?:\s|```|\[[\w:-]+\])*\Z")
_OPENING = re.compile(r'\{\s*["}]|\[\s*["\[{\]]|\[\s*[-\dtfn]')
_TOKEN = re.compile(r'"(?:[^"\\]|\\.?)*+(?:"|\Z)|[\[\]{}]', re.DOTALL)


def read(text: str, load: Load, load_bare: Load | None) -> Any:
    """Return the first JSON value in a text that fits, as its loader converts it.

    Parameters
    ----------
    text : str
        The answer's text; `Schema.parse` says what is passed over.
    load : callable
        Loader of a whole document.
    load_bare : callable or None
        Loader of the value inside a wrapper; tried when the text has no wrapper.

    Raises
    ------
    SchemaMismatch
        No value fits; the error holds the text.
    """
    try:
        return _read(text, load, load_bare)
    except SchemaMismatch as error:
        misfit = error
    except RecursionError:
        misfit = SchemaMismatch("", "the JSON is nested too deeply")
    raise SchemaMismatch(misfit.path, misfit.reason, text)


def _read(text: str, load: Load, load_bare: Load | None) -> Any:
    body = _BEFORE.sub("", text, count=1)
    values, damage = _json_values(body)
    tries = [(load, value) for value in values]
    if load_bare is not None:
        # A server that does not enforce the schema may leave the wrapper off.
        tries += [(load_bare, value) for value in _leading_value(body)]
    misfits: list[SchemaMismatch] = []
    for loader, value in tries:
        try:
            return loader(value, "")
        except SchemaMismatch as misfit:
            misfits.append(misfit)
    if misfits:
        raise closest(misfits)
    start = shown(" ".join(body[:200].split()))
    raise SchemaMismatch("", damage or f"expected JSON, found {start}")


def _leading_value(body: str) -> list[Any]:
    """Return the value that a text starts with, if any; a scalar has to stand alone."""
    try:
        value, end = _DECODER.raw_decode(body)
    except ValueError:
        return []
    return [value] if isinstance(value, list | dict) or _AFTER_A_SCALAR.match(body, end) else []


def _json_values(text: str) -> tuple[list[Any], str | None]:
    """Objects and lists that stand in a text, and what is wrong with the first damaged one."""
    values: list[Any] = []
    damage: str | None = None
    position = 0
    while opening := _OPENING.search(text, position):
        start = opening.start()
        try:
            value, position = _DECODER.raw_decode(text, start)
            values.append(value)
        except ValueError as error:
            if opening[0][-1] not in '"}[{]':  # a bracket of prose, as in the interval [0, 1)
                position = start + 1
                continue
            # Skipped as a whole: an object inside a damaged one must not pass for the answer.
            end = _end_of_brackets(text, start)
            position = len(text) if end is None else end
            problem = "it was cut off" if end is None else str(error)
            damage = damage or f"the JSON cannot be read: {problem}"
    return values, damage


def _end_of_brackets(text: str, start: int) -> int | None:
    depth = 0
    for token in _TOKEN.finditer(text, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return None
