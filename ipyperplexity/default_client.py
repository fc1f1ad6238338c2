"""``pplx.ask(...)`` and its like: what a client does, done by one made when it is needed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

from ipyperplexity import demo_engine
from ipyperplexity.client import Client

if TYPE_CHECKING:
    from ipyperplexity.answer import Answer
    from ipyperplexity.answer_stream import AnswerStream
    from ipyperplexity.backends import Status
    from ipyperplexity.batch.cost_estimate import CostEstimate
    from ipyperplexity.batch.enriched_table import EnrichedTable
    from ipyperplexity.question import Question
    from ipyperplexity.search_results import SearchResults
    from ipyperplexity.sources import Sources

_lock = threading.Lock()
_default: Client | None = None


def _after_fork() -> None:
    """In a forked child: another thread of the parent may have held the lock."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def default_client() -> Client:
    """Return the client behind ``ipyperplexity.ask``: made when it is first needed."""
    global _default
    with _lock:
        if _default is None:
            _default = Client()
        return _default


def ask(text: str | Question, **options: Any) -> Answer:
    """Ask with the default client; see :meth:`Client.ask`."""
    return default_client().ask(text, **options)


def stream(text: str | Question, **options: Any) -> AnswerStream:
    """Stream with the default client; see :meth:`Client.stream`."""
    return default_client().stream(text, **options)


@overload
def search(query: str, **options: Any) -> Sources: ...
@overload
def search(query: Sequence[str], **options: Any) -> SearchResults: ...
def search(query: str | Sequence[str], **options: Any) -> Sources | SearchResults:
    """Search with the default client; see :meth:`Client.search`."""
    return default_client().search(query, **options)


def ask_many(
    data: Any, prompt: str | Callable[[Any], str | Question] | None = None, **options: Any
) -> EnrichedTable:
    """Ask a question of each row with the default client; see :meth:`Client.ask_many`."""
    return default_client().ask_many(data, prompt, **options)


def estimate(
    data: Any, prompt: str | Callable[[Any], str | Question] | None = None, **options: Any
) -> CostEstimate:
    """Tell what a column would cost, with the default client; see :meth:`Client.estimate`."""
    return default_client().estimate(data, prompt, **options)


def status() -> Status:
    """Say what is configured; see :meth:`Client.status`."""
    return default_client().status()


def demo() -> Client:
    """Start the embedded engine and return a client on it: no key, no network.

    Examples
    --------
    >>> answer = demo().ask("What does the with statement do?")
    >>> answer.model.startswith("demo")
    True
    """
    demo_engine.shared.start()
    return Client(backend="demo")
