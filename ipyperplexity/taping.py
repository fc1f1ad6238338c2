"""``with pplx.record(path):`` and ``with pplx.replay(path):``: tapes for lessons and demos."""

from __future__ import annotations

import os
from pathlib import Path

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.tapes import deck


class Record:
    """Recording, as a context; see :func:`record`.

    Attributes
    ----------
    path : Path
    recording : Recording
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Record:
        self.recording = deck.record(self.path)
        return self

    def __exit__(self, *error: object) -> None:
        deck.stop_recording()

    def __repr__(self) -> str:
        return f"record({str(self.path)!r})"


class Replay:
    """Replaying, as a context; see :func:`replay`."""

    def __init__(self, path: Path, speed: float, strict: bool) -> None:
        self.path, self._speed, self._strict = path, deck.checked_speed(speed), strict

    def __enter__(self) -> Replay:
        self.replaying = deck.replay(self.path, self._speed, self._strict)
        return self

    def __exit__(self, *error: object) -> None:
        deck.stop_replaying()

    def __repr__(self) -> str:
        return f"replay({str(self.path)!r})"


def record(path: str | os.PathLike[str]) -> Record:
    """Record what comes over the wire, as a context: answers of every backend, searches, columns.

    Keys, logins, cookies, tokens and e-mail addresses are not on the tape. What somebody stops is
    not recorded, nor what other processes ask (``ask_many(executor=...)``).

    Parameters
    ----------
    path : path
        A new file, or an earlier tape, which goes on.

    Raises
    ------
    ConfigurationError
        On entering: if it cannot be written, is something else, or another tape is being recorded.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ipyperplexity import Client
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "lesson.tape"
    >>> client = Client(backend="demo")
    >>> with record(path):
    ...     told = client.ask("What is a lambda?", limit=3)
    >>> with replay(path, speed=0, strict=True):
    ...     again = client.ask("What is a lambda?", limit=3)
    >>> again.text == told.text, again.cached
    (True, True)
    """
    return Record(_path(path))


def replay(path: str | os.PathLike[str], speed: float = 1.0, strict: bool = False) -> Replay:
    """Replay a tape, as a context: no key, no network, at the pace of the recording.

    Questions are found by what was asked. One that was asked several times is answered as it was
    each time, then as the last time.

    Parameters
    ----------
    path : path
    speed : float
        1 as it was, 4 four times as fast, 0 at once.
    strict : bool
        Whether a question that is not on the tape is an error that names the nearest one; else the
        embedded demo engine answers it, with a warning.

    Raises
    ------
    ConfigurationError
        On entering: if it cannot be read, is damaged (with the line), or one is being recorded.

    Examples
    --------
    See :func:`record`.
    """
    return Replay(_path(path), speed, strict)


def _path(path: str | os.PathLike[str]) -> Path:
    if not isinstance(path, str | os.PathLike) or not str(path).strip():
        raise InvalidRequestError(
            f"path: got {path!r}; allowed: the path of a tape, such as 'lesson.tape'.", field="path"
        )
    return Path(path).expanduser()
