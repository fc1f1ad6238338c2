"""Functions that a request offers: which are called, with which arguments, and their results.

Invariant: the same rule for both wires: an offered function is called as often as the behavior
says, a forced one at least once, and then the answer quotes what the functions gave.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .rules import RequestError
from .structured import fill

__all__ = ["Offer", "arguments_for", "called", "quoted", "read_results"]

Json = dict[str, Any]


@dataclass(frozen=True)
class Offer:
    """The functions of a request.

    Attributes
    ----------
    functions
        Each with ``name`` and maybe ``parameters``.
    choice
        ``"auto"``, ``"required"``, ``"none"``, ``"function"`` (any one), or a name.
    rounds
        Turns with calls that were already answered.
    parallel
        Whether one turn may call several.
    """

    functions: Sequence[Json]
    choice: str = "auto"
    rounds: int = 0
    parallel: bool = True


def called(offer: Offer, wanted_rounds: int, wanted_calls: int) -> list[Json]:
    """Return the functions to call now, in order; none when it is time to answer.

    Parameters
    ----------
    offer
        What may be called.
    wanted_rounds, wanted_calls
        Turns that call, and calls in each of them, as the behavior says.

    Examples
    --------
    >>> [f["name"] for f in called(Offer([{"name": "a"}, {"name": "b"}]), 1, 3)]
    ['a', 'b', 'a']
    >>> called(Offer([{"name": "a"}], rounds=1), 1, 1)
    []
    """
    named = [one for one in offer.functions if one["name"] == offer.choice]
    usable = named or list(offer.functions)
    forced = bool(named) or offer.choice in ("required", "function")
    if offer.choice == "none" or not usable:
        return []
    if offer.rounds >= (max(1, wanted_rounds) if forced else wanted_rounds):
        return []
    calls = wanted_calls if offer.parallel else 1
    return [usable[at % len(usable)] for at in range(calls)]


def read_results(
    items: Sequence[Json], makers: Mapping[str, str]
) -> tuple[int, list[tuple[str, Any]]]:
    """Read what functions gave since the last turn of the user, in the Agent API.

    Parameters
    ----------
    items
        Input items of the whole conversation, and the calls that earlier runs made.
    makers
        Run that made a call, by ``call_id``, as far as it is known.

    Returns
    -------
    tuple
        Number of rounds of calls, and name and output of each.

    Raises
    ------
    RequestError
        An output is of no call.

    Examples
    --------
    >>> made = {"type": "function_call", "call_id": "c", "name": "clock", "arguments": "{}"}
    >>> read_results([made, {"type": "function_call_output", "call_id": "c", "output": "5"}], {})
    (1, [('clock', '5')])
    """
    names: dict[str, str] = {}
    rounds: set[str] = set()
    results: list[tuple[str, Any]] = []
    groups, before = 0, ""
    for item in items:
        kind = item.get("type", "message")
        if kind == "function_call":
            names[item["call_id"]] = item["name"]
        elif kind == "function_call_output":
            name = item["call_id"]
            if name not in names:
                raise RequestError(f"no function call has the call_id {name!r}", param="input")
            groups += before != kind
            rounds.add(makers.get(name) or f"round {groups}")
            results.append((names[name], item["output"]))
        elif kind == "message" and item.get("role") == "user":
            rounds, results = set(), []
        before = kind
    return len(rounds), results


def arguments_for(function: Json, question: str) -> str:
    """Return arguments that fit the parameters of a function, as JSON text."""
    shape = function.get("parameters") or {"type": "object"}
    return json.dumps(fill(shape, [subject(question)], [], []), ensure_ascii=False)


_QUOTED = re.compile(r"[\"\u201c]([^\"\u201c\u201d]{1,60})[\"\u201d]")
_NAME = re.compile(r"(?<=[a-z,;:] )[A-Z][\w-]*(?: [A-Z][\w-]*)*")


def subject(question: str) -> str:
    """Return what a question is about, as text for a function; the question if that is not plain.

    Examples
    --------
    >>> subject("What is the population of Ghent? Use population.")
    'Ghent'
    >>> subject("what now")
    'what now'
    """
    found = _QUOTED.search(question)
    if found:
        return found[1]
    name = _NAME.search(question)
    return name[0] if name else question


def quoted(results: Sequence[tuple[str, Any]]) -> str:
    """Return the part of an answer that tells what functions gave.

    Parameters
    ----------
    results
        Name of each function, and its output: text, a list of parts, or other data.

    Examples
    --------
    >>> quoted([("clock", "12:05")])
    '`clock` gave: 12:05'
    """
    return "\n\n".join(f"`{name}` gave: {_as_text(output)}" for name, output in results)


def _as_text(output: Any) -> str:
    if isinstance(output, str):
        return output
    if isinstance(output, list) and all(isinstance(part, dict) for part in output):
        texts = [part["text"] for part in output if isinstance(part.get("text"), str)]
        if len(texts) == len(output) and texts:
            return "\n".join(texts)
    return json.dumps(output, ensure_ascii=False)
