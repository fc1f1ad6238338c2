"""What an answer consists of beside text and sources, and the words of its status line.

Invariant: plain values, with nothing in them that JSON could not hold; a ``Thread`` alone may hold
a secret, and gives it to nobody who copies, pickles or prints it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Usage:
    """What an answer took, as the service counts it; None where it does not say.

    Attributes
    ----------
    input_tokens, output_tokens, total_tokens, reasoning_tokens : int or None
        Tokens read, written, both, and written while thinking.
    searches : int or None
        Web searches made.
    cost_usd : float or None
        Price of the whole answer in US dollars.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    reasoning_tokens: int | None = None
    searches: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True)
class Image:
    """A picture that the service found: where it is, and the page it stands on."""

    url: str
    page: str = ""
    title: str = ""
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True)
class Turn:
    """An earlier question of a conversation, and its answer's text."""

    question: str
    text: str


class Thread(Mapping[str, str]):
    """What goes on in a thread of the service; it may hold a token (consumer-web 1.5).

    To read it, look up its names. Whatever makes a copy (``copy``, ``pickle``,
    ``dataclasses.asdict``) gets an empty one, and its ``repr`` says nothing.

    Examples
    --------
    >>> thread = Thread({"read_write_token": "t"})
    >>> thread["read_write_token"], thread
    ('t', Thread(hidden))
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: Mapping[str, str] | None = None) -> None:
        self._parts = dict(parts or {})

    def __getitem__(self, name: str) -> str:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return "Thread(hidden)" if self._parts else "Thread()"

    def __reduce__(self) -> tuple[type[Thread], tuple[()]]:
        return Thread, ()


def summary_line(
    *,
    model: str | None,
    seconds: float,
    usage: Usage,
    n_sources: int,
    status: str = "completed",
    cached: bool = False,
    demo: bool = False,
) -> str:
    """Return the facts of an answer in one line; what is not known is left out."""
    facts = [_STATUS_WORDS.get(status, status)] if status != "completed" else []
    if model:
        facts.append(model)
    facts.append("from the cache" if cached else f"{seconds:.1f} s")
    if usage.total_tokens is not None:
        facts.append(f"{usage.total_tokens:,} tokens")
    if demo:
        facts.append("offline demo, not billed")
    elif usage.cost_usd is not None:
        facts.append(format_cost(usage.cost_usd))
    facts.append({0: "no sources", 1: "1 source"}.get(n_sources, f"{n_sources} sources"))
    return " · ".join(facts)


_STATUS_WORDS = {"stopped": "stopped", "failed": "failed", "incomplete": "incomplete (cut short)"}


def format_cost(usd: float) -> str:
    """Return dollars with as many digits as say something.

    Examples
    --------
    >>> format_cost(0.00125), format_cost(1.5), format_cost(0)
    ('$0.0013', '$1.50', '$0.00')
    """
    return (
        f"${usd:.2f}" if usd >= 0.1 or usd == 0 else f"${usd:.4f}" if usd >= 0.0001 else "<$0.0001"
    )
