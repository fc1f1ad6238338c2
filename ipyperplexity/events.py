"""What a stream yields while an answer is written: small frozen records, one kind a happening.

Every wire speaks in these, whatever the service calls them; what draws an answer knows only these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ipyperplexity.answer import Image, Usage
from ipyperplexity.sources import Sources


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events."""


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The service has taken the question."""

    id: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Searching(Event):
    """The service searches the web for these queries."""

    queries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fetching(Event):
    """The service reads these pages in full."""

    urls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourcesFound(Event):
    """There are new sources; ``sources`` holds all so far."""

    sources: Sources


@dataclass(frozen=True, slots=True)
class ImagesFound(Event):
    """There are new images; ``images`` holds all so far."""

    images: tuple[Image, ...]


@dataclass(frozen=True, slots=True)
class ReasoningDelta(Event):
    """A piece of the model's thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class TextDelta(Event):
    """A piece of the answer's text; joined in order they are the text."""

    text: str


@dataclass(frozen=True, slots=True)
class Retrying(Event):
    """Nothing has been answered yet, and the request goes out again after ``delay`` seconds."""

    attempt: int
    delay: float
    reason: str


@dataclass(frozen=True, slots=True)
class Finished(Event):
    """The service says that the answer has ended.

    Attributes
    ----------
    status : str
        ``completed`` or ``incomplete``.
    finish_reason : str or None
        Why it ended, such as ``stop`` or ``max_output_tokens``.
    raw : dict
        The service's own final record.
    """

    status: str
    finish_reason: str | None = None
    id: str | None = None
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    stored: bool = True
    warnings: tuple[str, ...] = ()
    raw: dict[str, Any] = field(default_factory=dict, repr=False)
