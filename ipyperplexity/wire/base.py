"""What a backend is: two pure functions and a name.

``request`` turns a Question into what is sent, ``fold`` turns the frames that come back into
events. A wire knows no socket, no clock and no notebook, so it is tested by feeding it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ipyperplexity.events import Event
from ipyperplexity.wire.sse import Frame


@dataclass(frozen=True)
class WireRequest:
    """A request, before it has an address or a credential.

    Attributes
    ----------
    path : str
        Below the base URL, with a leading slash.
    body : dict
        The JSON body.
    headers : dict
        Beside those that every request has.
    notices : tuple of str
        What the user should know about how the question was translated, one line each.
    continues : bool
        Whether it leans on an earlier answer that the service is believed to keep.
    """

    path: str
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    continues: bool = False


@dataclass(frozen=True)
class Wire:
    """A backend's two halves.

    Attributes
    ----------
    name : str
        As in ``backend=``.
    request : callable
        ``request(question, stream=True, resume=True)``; with ``resume=False`` a follow-up is sent
        with its whole conversation instead of the earlier answer's id.
    fold : callable
        Frames of a stream to events.
    fold_body : callable
        A whole JSON reply to the same events.
    """

    name: str
    request: Callable[..., WireRequest]
    fold: Callable[[Iterable[Frame]], Iterator[Event]]
    fold_body: Callable[[Any], Iterator[Event]]
