"""Tab after ``%perplexity``: options, and the values of those that have a list of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from IPython.core.completer import SimpleCompletion, SimpleMatcherResult, context_matcher

from ipyperplexity.backend_names import SEARCH
from ipyperplexity.notebook.command_table import COMMANDS
from ipyperplexity.notebook.line import BY_SPELLING, fits_search

#: A line of ours, also one whose answer is assigned.
_OURS = r"\s*(?:[^=%]+=\s*)?%%?perplexity\s"
_ID = "ipyperplexity"


def complete(line: str, word: str, namespace: Mapping[str, Any] | None = None) -> list[str]:
    """Return what may stand in place of ``word``, the last word of ``line``.

    Examples
    --------
    >>> complete("%%perplexity --rec", "--rec")
    ['--recency']
    >>> complete("%%perplexity --recency m", "m")
    ['month']
    """
    before = line[: len(line) - len(word)] if word and line.endswith(word) else line
    words = re.sub(f"^{_OURS}", "", before, count=1).split()
    flag = BY_SPELLING.get(words[-1].removesuffix("=")) if words else None
    if flag is not None and flag.name == "follow":
        answers = [n for n, value in (namespace or {}).items() if hasattr(value, "follow_up")]
        return _starting(word, [name for name in answers if not name.startswith("_")])
    if flag is not None and flag.takes == "value":
        return _starting(word, flag.option.choices or flag.option.suggestions)
    if words and words[0] in COMMANDS and not before.lstrip().startswith("%%"):
        return _starting(word, COMMANDS[words[0]].words)
    if word.startswith("-"):
        spellings = [s for s in BY_SPELLING if s.startswith("--") or word == "-"]
        if _is_search(words):
            spellings = [s for s in spellings if fits_search(BY_SPELLING[s])]
        return _starting(word, spellings)
    if not words and not before.lstrip().startswith("%%"):
        return _starting(word, COMMANDS)
    return []


def _is_search(words: list[str]) -> bool:
    options = " ".join(words).replace("=", " ").split()
    return any(
        value == SEARCH and option in BY_SPELLING and BY_SPELLING[option].name == "backend"
        for option, value in pairwise(options)
    )


def _starting(word: str, candidates: Iterable[str]) -> list[str]:
    return [candidate for candidate in candidates if candidate.startswith(word)]


def register(shell: Any) -> None:
    """Have the shell ask us, before it offers Python's names."""

    def options(context: Any) -> SimpleMatcherResult:
        line, word = context.text_until_cursor, context.token
        ours = re.match(_OURS, line) is not None
        found = complete(line, word, shell.user_ns) if ours else []
        return {
            "completions": [SimpleCompletion(text, type="param") for text in found],
            "suppress": bool(found),
            "ordered": True,
        }

    matcher: Any = context_matcher(identifier=_ID)
    shell.Completer.custom_matchers.append(matcher(options))


def unregister(shell: Any) -> None:
    """Leave nothing behind."""
    matchers = shell.Completer.custom_matchers
    matchers[:] = [m for m in matchers if getattr(m, "matcher_identifier", "") != _ID]
