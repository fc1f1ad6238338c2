"""A record of credentials in a JSON file that only its owner can read.

Whatever is wrong with such a file is said in a sentence, never in a traceback: the frames of a
traceback would hold what is in the file.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ipyperplexity.errors import ConfigurationError, PerplexityWarning
from ipyperplexity.net.redact import Secret
from ipyperplexity.store.private_files import (
    is_open_to_others,
    locked,
    make_private,
    read_private,
    set_aside,
    write_private,
)

_T = TypeVar("_T")


def save_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record; a :class:`Secret` in it is written out here and nowhere else.

    Raises
    ------
    ConfigurationError
        If it cannot be written.
    """
    failure: ConfigurationError | None = None
    try:
        # No variable of this frame holds the text; those of the frames below go with them.
        write_private(path, json.dumps(record, indent=2, default=_reveal) + "\n")
    except ConfigurationError as error:
        failure = error
    if failure is not None:
        raise _without_frames(failure)


def load_record(
    path: Path, what: str, remedy: str, read: Callable[[dict[str, Any]], _T | None]
) -> _T | None:
    """Return what is kept in a file; None if there is none.

    A file that others can read is made private, and a damaged one is set aside, each with a
    warning.

    Parameters
    ----------
    path : Path
    what : str
        What is kept there, for messages: ``the stored login``.
    remedy : str
        How to make it anew.
    read : callable
        Makes it from the record, every text in which is a :class:`Secret`; returns None if the
        record lacks something.

    Raises
    ------
    ConfigurationError
        If the file is there and cannot be read.
    """
    if path.is_file() and is_open_to_others(path):
        make_private(path)
        now = "cannot be made private" if is_open_to_others(path) else "is private now"
        _warn(f"The file of {what} could be read by others on this machine; it {now}: {path}")
    found: _T | None = None
    failure: ConfigurationError | None = None
    damaged = False
    try:
        exists, record = _parse(read_private(path))
        found = read(record) if record is not None else None
        damaged = exists and found is None
    except ConfigurationError as error:
        failure = error
    if failure is not None:
        if not (path.is_file() and os.access(path, os.R_OK)):
            failure.hint = f"Make it readable, or move it away; then: {remedy}"
            raise _without_frames(failure)
        damaged = True  # it can be read, so what is in it is no text
    if damaged:
        _warn(f"The file of {what} is damaged. It is now {set_aside(path)}. Again: {remedy}")
    return found


def delete_record(path: Path) -> bool:
    """Delete a file, and what was set aside of it; return whether there was something.

    Raises
    ------
    ConfigurationError
        If something cannot be deleted.
    """
    problem, deleted = "", False
    try:
        there = [path, *path.parent.glob(f"{path.name}.broken-*")]
        # A process that was ended in the middle of writing has left its unfinished file.
        there += path.parent.glob(f".{path.name}.*.new")
        if not any(file.exists() for file in there):
            return False
        with locked(path):
            for file in there:
                deleted = deleted or file.exists()
                file.unlink(missing_ok=True)
    except OSError as error:
        problem = error.strerror or str(error)
    if problem:
        raise ConfigurationError(f"{path} cannot be deleted: {problem}.")
    return deleted


def _parse(text: str | None) -> tuple[bool, dict[str, Any] | None]:
    """Return whether there is a text, and the record that it is; never raises."""
    if text is None:
        return False, None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return True, None
    return True, (_hidden(record) if isinstance(record, dict) else None)


def _hidden(value: Any) -> Any:
    if isinstance(value, str):
        return Secret(value)
    if isinstance(value, list):
        return [_hidden(item) for item in value]
    if isinstance(value, dict):
        return {name: _hidden(item) for name, item in value.items()}
    return value


def _reveal(value: Any) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    raise TypeError(f"a {type(value).__name__} cannot be stored")


def _without_frames(failure: ConfigurationError) -> ConfigurationError:
    failure.__cause__ = failure.__context__ = None
    return failure.with_traceback(None)


def _warn(message: str) -> None:
    warnings.warn(message, PerplexityWarning, stacklevel=4)
