"""What a stream yields while an answer is written: small frozen records, one kind a happening.

Every wire speaks in these, whatever the service calls them; what draws an answer knows only these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ipyperplexity.answer import Image, Usage
from ipyperplexity.sources import Sources


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events."""


@dataclass(frozen=True, slots=True)
class Started(Event):
    """The service has taken the question.

    Attributes
    ----------
    id : str or None
        The service's name for the run.
    model : str or None
        The model that answers.
    context : str or None
        What the service needs, beside the id, to stop the run; it may come later than the id.
    """

    id: str | None = None
    model: str | None = None
    context: str | None = None


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
class TextReplaced(Event):
    """All text so far is void; ``text`` stands in its place.

    The web endpoint does so, whose last record is authoritative and may number the markers anew
    (consumer-web 2.6); chat-completions, where a whole message contradicts its pieces; and an
    answer of several rounds, whose markers are numbered as one at its end.
    """

    text: str


@dataclass(frozen=True, slots=True)
class ToolCalled(Event):
    """The model wants a function of the notebook to be run.

    Attributes
    ----------
    call_id : str
        What the result is sent back under.
    name : str
        The function.
    arguments : str
        JSON of its arguments, as the model wrote it.
    """

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolReturned(Event):
    """A function of the notebook has run; ``error`` tells what it raised, if it did."""

    call_id: str
    name: str
    output: str
    error: str | None = None


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
    related : tuple of str
        Questions that the service suggests to go on with.
    thread : mapping
        What a follow-up needs to go on in the same thread, where the service has threads. It may
        hold a token: it is shown, saved and pickled nowhere.
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
    related: tuple[str, ...] = ()
    thread: Mapping[str, str] = field(default_factory=dict, repr=False)
    raw: dict[str, Any] = field(default_factory=dict, repr=False)
