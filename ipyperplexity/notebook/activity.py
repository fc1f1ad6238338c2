"""What the service is doing, in a few words, for the line below an answer that is being written.

Invariant: a word from outside is one line of plain text here, short, and shows no key: a function
of the notebook may raise anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ipyperplexity.events import (
    Event,
    Fetching,
    Retrying,
    Searching,
    SourcesFound,
    Started,
    TextDelta,
    TextReplaced,
    ToolCalled,
    ToolReturned,
)
from ipyperplexity.markup import terminal
from ipyperplexity.markup.calls import call_text
from ipyperplexity.secret_patterns import hide_secrets

_FIRST = "Asking"
_MAX_QUERIES = 3
_MAX_WORDS = 80


class Activity:
    """What the service is doing, in a few words."""

    def __init__(self) -> None:
        self._doing = _FIRST
        self._failure = ""
        self._n_sources = 0
        self._writing = False

    def event(self, event: Event) -> bool:
        """Take note; return whether there is something new to say."""
        before = (self._doing, self._failure, self._n_sources)
        if isinstance(event, SourcesFound):
            self._n_sources = len(event.sources)
        elif isinstance(event, TextDelta | TextReplaced):
            self._doing, self._failure, self._writing = "Writing", "", True
        elif isinstance(event, ToolReturned) and event.error:
            # It stays in sight while the service is told, which may take a while.
            self._doing, self._failure = doing(Started()), doing(event)
        elif isinstance(event, ToolCalled):
            self._doing, self._writing = doing(event), False
        elif isinstance(event, Started) and self._doing != _FIRST:
            pass  # told once more, with what came late: it says nothing new
        elif not self._writing:
            self._doing = doing(event) or self._doing
        return (self._doing, self._failure, self._n_sources) != before

    def words(self, seconds: float) -> str:
        """Return a line such as ``Searching: rivers of Ghent · 12 sources · 3 s``."""
        found = {0: "", 1: "1 source"}.get(self._n_sources, f"{self._n_sources} sources")
        facts = (self._doing, self._failure, found, f"{seconds:.0f} s")
        return " · ".join(fact for fact in facts if fact)


def doing(event: Event) -> str:
    """Return what an event says about it, or nothing."""
    # A wire's own kind of call is a call.
    words = next((_WORDS[kind] for kind in type(event).__mro__ if kind in _WORDS), None)
    return words(event) if words else ""


def _searching(event: Searching) -> str:
    more = len(event.queries) - _MAX_QUERIES
    return f"Searching: {_few(event.queries)}" + (f" and {more} more" if more > 0 else "")


def _running(event: ToolCalled) -> str:
    # Hidden before it is cut: half a key looks like none.
    name, arguments = hide_secrets(event.name), hide_secrets(event.arguments)
    return f"Running {call_text(name, arguments, _MAX_WORDS)}"


def _returned(event: ToolReturned) -> str:
    name = terminal.fit(hide_secrets(event.name), _MAX_WORDS)
    if not event.error:
        return f"{name}() is done"
    return f"{name}() failed: {terminal.fit(hide_secrets(event.error), _MAX_WORDS)}"


def _few(texts: tuple[str, ...]) -> str:
    return "; ".join(terminal.fit(text, _MAX_WORDS) for text in texts[:_MAX_QUERIES])


_WORDS: dict[type[Event], Callable[[Any], str]] = {
    Started: lambda event: "Waiting for the service",
    Searching: _searching,
    Fetching: lambda event: f"Reading: {_few(event.urls)}",
    ToolCalled: _running,
    ToolReturned: _returned,
    Retrying: lambda event: f"{event.reason} Retrying in {event.delay:.1f} s",
}
