"""Functions that were run for an answer: each call as a line of Python, and what came of it.

Invariant: what a model or a function wrote is short here, and escaped where it enters HTML. However
long it is, only its beginning is looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import Protocol

from .links import one_line
from .pieces import cut, fold, note

#: Calls that are shown.
MAX_SHOWN = 50
#: Characters of a result, or of what went wrong.
RESULT_LIMIT = 300
#: Characters of a name with its arguments.
CALL_LIMIT = 200
#: Characters of arguments beyond which they are not read as JSON.
_READABLE = 10_000
#: Lines of a result that a page shows.
_MAX_LINES = 6
_IN_FULL = "answer.tool_calls"


class CallLike(Protocol):
    """The part of a function call that rendering needs."""

    @property
    def name(self) -> str:
        """The function, as the model named it."""

    @property
    def arguments(self) -> str:
        """JSON of its arguments, as the model wrote it."""

    @property
    def output(self) -> str:
        """What the model was told; empty if the function was not run."""

    @property
    def error(self) -> str | None:
        """What went wrong, if it did."""

    @property
    def elapsed(self) -> float:
        """Seconds that it took."""


def call_text(name: str, arguments: str, limit: int = CALL_LIMIT) -> str:
    """Return a call on one line, as Python would write it, cut to `limit` characters.

    Examples
    --------
    >>> call_text("population_of", '{"city": "Ghent", "exact": true}')
    "population_of(city='Ghent', exact=True)"
    >>> call_text("clock", ""), call_text("clock", "no JSON")
    ('clock()', 'clock(no JSON)')
    """
    shown = _excerpt(name, limit // 2)
    return f"{shown}({_excerpt(_as_keywords(arguments), limit - len(shown) - 2)})"


def _as_keywords(arguments: str) -> str:
    if not arguments.strip():
        return ""
    if len(arguments) > _READABLE:
        return arguments
    try:
        given = json.loads(arguments)
        if isinstance(given, dict) and all(name.isidentifier() for name in given):
            return ", ".join(f"{name}={value!r}" for name, value in given.items())
    except (ValueError, RecursionError):  # a model may write anything
        pass
    return arguments


def result_text(call: CallLike, limit: int = RESULT_LIMIT) -> str:
    """Return what came of a call on one line: the result, or in words why there is none.

    Examples
    --------
    >>> from ipyperplexity.tools import ToolCall
    >>> result_text(ToolCall("add", "{}", "3"))
    '3'
    >>> result_text(ToolCall("add", "{}", "Error: KeyError", "KeyError"))
    'failed: KeyError'
    """
    if call.error is None:
        return _excerpt(call.output, limit) or "no output"
    # "not run: ..." and "not finished: ..." say already what they are.
    return _excerpt(f"failed: {call.error}" if has_failed(call) else call.error, limit)


def has_failed(call: CallLike) -> bool:
    """Whether the function could not do what it was called for."""
    return call.error is not None and not call.error.startswith("not ")


def calls_label(calls: Iterable[CallLike]) -> str:
    """Return how many calls there are, and how many failed.

    Examples
    --------
    >>> from ipyperplexity.tools import ToolCall
    >>> calls_label([ToolCall("a", "{}", "1"), ToolCall("b", "{}", "", "KeyError")])
    'Functions: 2 calls, 1 failed'
    """
    made = list(calls)
    n_failed = sum(map(has_failed, made))
    label = f"Functions: {len(made)} call{'' if len(made) == 1 else 's'}"
    return f"{label}, {n_failed} failed" if n_failed else label


def calls_section(calls: Iterable[CallLike], *, folded: bool = True) -> str:
    """Return the calls as a folded table, or nothing if there are none.

    Parameters
    ----------
    calls : iterable of CallLike
        In the order in which they were made; the first 50 are shown.
    folded : bool
        Whether it starts folded.
    """
    made = list(calls)
    if not made:
        return ""
    shown = made[:MAX_SHOWN]
    rows = "".join(
        f'<tr><th scope="row"><code>{escape(call_text(call.name, call.arguments))}</code></th>'
        f"<td>{_result_html(call)}</td>"
        f'<td class="pplx-right">{_seconds(call)}</td></tr>\n'
        for call in shown
    )
    table = (
        '<table class="pplx-calls">\n<thead><tr><th scope="col">function</th>'
        '<th scope="col">result</th><th scope="col" class="pplx-right">seconds</th></tr></thead>\n'
        f"<tbody>\n{rows}</tbody>\n</table>\n"
    )
    return fold(table + _remark(made, shown), calls_label(made), folded=folded)


def _result_html(call: CallLike) -> str:
    """Return what came of a call, with the first lines of a table as lines."""
    if has_failed(call):
        return f'<span class="pplx-failed">{escape(result_text(call))}</span>'
    head = call.output[: 2 * RESULT_LIMIT]
    lines = [line for raw in head.splitlines() if (line := one_line(raw))]
    if call.error is not None or len(lines) < 2:
        return escape(result_text(call))
    text = cut("\n".join(lines[:_MAX_LINES]), RESULT_LIMIT)
    if not text.endswith("\u2026") and (len(lines) > _MAX_LINES or len(head) < len(call.output)):
        text += "\n\u2026"
    return escape(text).replace("\n", "<br>\n")


def _seconds(call: CallLike) -> str:
    is_told = bool(call.output) or call.elapsed >= 0.05
    return f"{call.elapsed:.1f}" if is_told else ""  # that it took no time is no news of it


def _remark(made: list[CallLike], shown: list[CallLike]) -> str:
    more = len(made) - len(shown)
    if more:
        return note(f"... and {more:,} more: {_IN_FULL}")
    if any(map(has_failed, made)):
        return note(f"in full, with tracebacks: {_IN_FULL}")
    is_cut = any(
        "\u2026" in call_text(call.name, call.arguments) + _result_html(call) for call in made
    )
    return note(f"in full: {_IN_FULL}") if is_cut else ""


def _excerpt(text: str, limit: int) -> str:
    # Of a result of megabytes the beginning will do, and each character costs.
    head = text[: 4 * limit]
    more = "\u2026" if len(head) < len(text) else ""
    return cut(one_line(head) + more, limit)
