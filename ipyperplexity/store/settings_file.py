"""A JSON object of settings: people edit it, several kernels write it, each question reads it.

What it may hold is told by whoever opens it; here is how it is kept: read again only when it has
changed, written whole under a lock, and never the end of a question, whatever is in it.
"""

from __future__ import annotations

import json
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ipyperplexity.errors import ConfigurationError, PerplexityWarning
from ipyperplexity.store.folders import config_dir
from ipyperplexity.store.private_files import (
    is_open_to_others,
    locked,
    make_private,
    set_aside,
    write_private,
)

NAME = "config.json"
#: From what a file holds to the settings that are good, and a sentence for each that is not.
Reader = Callable[[dict[str, Any]], tuple[dict[str, Any], list[str]]]


def settings_path() -> Path:
    """Return where the settings are kept: ``config.json`` in the folder of settings."""
    return config_dir() / NAME


class SettingsFile:
    """The settings file of this user.

    Parameters
    ----------
    read : callable
        Given the file's object, returns the settings to use and what is wrong with the others, a
        sentence each.
    path : callable
        Returns the file; asked each time, so that a changed ``IPYPERPLEXITY_HOME`` counts at once.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "config.json"
    >>> settings = SettingsFile(lambda record: (record, []), lambda: path)
    >>> settings.load()
    {}
    >>> settings.update(lambda record: {**record, "model": "high"})
    >>> settings.load()
    {'model': 'high'}
    """

    def __init__(self, read: Reader, path: Callable[[], Path] = settings_path) -> None:
        self._read = read
        self._path = path
        self._guard = threading.Lock()
        self._known: _Known | None = None

    def load(self) -> dict[str, Any]:
        """Return the settings; what is wrong is left out, with a PerplexityWarning for each.

        An unchanged file costs a look at its time and size. One that cannot be read counts as
        empty; one that is no JSON object is set aside.
        """
        path, known = self._path(), self._known
        stamp = _stamp(path)
        if known is not None and known.stamp == stamp and not known.is_young:
            return dict(known.settings)
        if stamp.modified is not None and is_open_to_others(path):
            make_private(path)  # who can write to it decides where the key is sent
            stamp = _stamp(path)
        data = b""
        settings: dict[str, Any] = {}
        complaints: list[str] = []
        try:
            data = _data(path)
            if known is not None and known.stamp == stamp and known.data == data:
                settings, complaints = known.settings, known.complaints
            else:
                settings, complaints = self._read(_record(data))
        except _Damaged as damaged:
            complaint = self._mend(path, str(damaged))
            if complaint is None:
                return self.load()
            complaints, data, stamp = [complaint], b"", _stamp(path)
        except ConfigurationError as error:
            complaints = [f"{error.message} No setting in it is used."]
        # First of all: who makes warnings errors is to meet each once, not with every question.
        self._known = _Known(stamp, data, settings, complaints)
        for complaint in complaints:
            if known is None or known.stamp != stamp or complaint not in known.complaints:
                warnings.warn(complaint, PerplexityWarning, stacklevel=3)
        return dict(settings)

    def update(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Put in place of what is in the file what ``change`` makes of it.

        Names that this version does not know are handed to ``change`` too: another version's
        settings are not lost.

        Raises
        ------
        ConfigurationError
            If the file cannot be read or written.
        """
        path = self._path()
        aside: Path | None = None
        with self._guard, locked(path):
            record: dict[str, Any] = {}
            try:
                record = _record(_data(path))
            except _Damaged:
                aside = set_aside(path)
            text = json.dumps(change(record), indent=2, ensure_ascii=False) + "\n"
            write_private(path.resolve(), text)  # a link, as of a folder of dotfiles, stays one
            self._known = None
        if aside is not None:
            warnings.warn(
                _aside_message(path, aside, "no JSON object"), PerplexityWarning, stacklevel=3
            )

    def _mend(self, path: Path, problem: str) -> str | None:
        """Set a damaged file aside and say so; None if it is good by now."""
        try:
            with locked(path):
                try:
                    _record(_data(path))
                except _Damaged:
                    return _aside_message(path, set_aside(path), problem)
                return None
        except ConfigurationError as error:
            return f"{path} is damaged ({problem}) and not used. {error.message}"


class _Damaged(Exception):
    """What is in the file is no JSON object."""


@dataclass(frozen=True)
class _Stamp:
    """What tells whether a file is still the same; a rename makes it another one."""

    path: Path
    modified: int | None = None  # nanoseconds; None if there is no such file
    size: int = 0
    inode: int = 0


@dataclass(frozen=True)
class _Known:
    """What was read last."""

    stamp: _Stamp
    data: bytes
    settings: dict[str, Any]
    complaints: list[str]
    at: int = field(default_factory=time.time_ns)

    @property
    def is_young(self) -> bool:
        """Whether the file was so new that a later change may bear the same time."""
        return self.stamp.modified is not None and self.at - self.stamp.modified < 1e9


def _stamp(path: Path) -> _Stamp:
    try:
        status = path.stat()
    except OSError:
        return _Stamp(path)
    return _Stamp(path, status.st_mtime_ns, status.st_size, status.st_ino)


def _data(path: Path) -> bytes:
    """Return what is in the file; nothing if there is no such file.

    Raises
    ------
    ConfigurationError
        If it is there and cannot be read.
    """
    problem = ""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        problem = error.strerror or str(error)
    raise ConfigurationError(f"{path} cannot be read: {problem}.")


def _record(data: bytes) -> dict[str, Any]:
    if not data.strip():  # made by `touch`
        return {}
    problem = "no JSON object"
    try:
        record = json.loads(data)  # with a byte order mark, or in UTF-16, too
    except ValueError as error:
        problem = f"no JSON: {error}"
    except RecursionError:
        problem = "nested too deeply"
    else:
        if isinstance(record, dict):
            return record
    raise _Damaged(problem)


def _aside_message(path: Path, aside: Path, problem: str) -> str:
    return f"{path} is {problem}. It was renamed to {aside.name}; its settings no longer hold."
