"""Files that only their owner can read: so from the first byte, and whole at every moment.

A file is written beside its place and moved there, so that a reader sees the old text or the new
one. Read-modify-write happens under :func:`locked`, since several kernels share the folder.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ipyperplexity.errors import ConfigurationError

FILE_MODE = 0o600
FOLDER_MODE = 0o700
#: Seconds to wait for another process that is writing; it takes milliseconds.
LOCK_TIMEOUT = 10.0


def make_private_folder(path: Path) -> Path:
    """Make a folder and what is missing above it, for the owner alone; return it.

    Raises
    ------
    ConfigurationError
        If it cannot be made.
    """
    problem = ""
    try:
        _make(path)
    except OSError as error:
        problem = error.strerror or str(error)
    if problem:
        raise ConfigurationError(
            f"The folder {path} cannot be made: {problem}.",
            hint="IPYPERPLEXITY_HOME names another place for settings, state and caches.",
        )
    return path


def _make(path: Path) -> None:
    if path.is_dir():
        return
    if path.parent != path:
        _make(path.parent)
    try:
        path.mkdir(FOLDER_MODE)
    except FileExistsError:
        if not path.is_dir():  # else another kernel was faster
            raise


def write_private(path: Path, text: str) -> None:
    """Write a text file with mode 0600, in place of what is there.

    Raises
    ------
    ConfigurationError
        If it cannot be written.
    """
    make_private_folder(path.parent)
    problem = ""
    temporary: Path | None = None
    try:
        # mkstemp opens with mode 0600: there is no moment at which others could read it.
        handle, name = tempfile.mkstemp(".new", f".{path.name}.", path.parent)
        temporary = Path(name)
        # A lone surrogate, which UTF-8 cannot carry, becomes a question mark.
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        temporary = None
    except OSError as error:
        problem = error.strerror or str(error)
    finally:
        if temporary is not None:  # also when it was interrupted
            with contextlib.suppress(OSError):
                temporary.unlink()
    if problem:
        raise ConfigurationError(f"{path} cannot be written: {problem}.")


def read_private(path: Path) -> str | None:
    """Return a file's text, or None if there is no such file.

    Raises
    ------
    ConfigurationError
        If it is there and cannot be read, or is not text.
    """
    problem = ""
    try:
        return path.read_bytes().decode()  # line ends and all, as it was written
    except FileNotFoundError:
        return None
    except OSError as error:
        problem = error.strerror or str(error)
    except UnicodeDecodeError:
        problem = "it is not text"
    raise ConfigurationError(f"{path} cannot be read: {problem}.")


def is_open_to_others(path: Path) -> bool:
    """Whether somebody else on this machine could read or write the file; never on Windows."""
    if sys.platform == "win32":
        return False
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
    except OSError:
        return False


def make_private(path: Path) -> None:
    """Take the rights to a file away from everybody but its owner; quiet where that fails."""
    with contextlib.suppress(OSError):
        path.chmod(FILE_MODE)


def set_aside(path: Path) -> Path:
    """Rename a damaged file to the first free ``name.broken-1``, ``-2`` ...; return the new name.

    Raises
    ------
    ConfigurationError
        If it cannot be renamed.
    """
    problem = "there are too many like it"
    for number in range(1, 1000):
        aside = path.with_name(f"{path.name}.broken-{number}")
        if aside.exists():
            continue
        try:
            path.rename(aside)
        except FileNotFoundError:  # another kernel was faster
            return aside
        except OSError as error:
            problem = error.strerror or str(error)
            break
        return aside
    raise ConfigurationError(f"{path} is damaged and cannot be set aside: {problem}.")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that belongs to ``path``: one process and one thread at a time.

    Raises
    ------
    ConfigurationError
        If another process has held it for 10 s, or it cannot be made.
    """
    import filelock

    make_private_folder(path.parent)
    problem = ""
    lock = filelock.FileLock(path.with_name(f".{path.name}.lock"), LOCK_TIMEOUT, mode=FILE_MODE)
    try:
        lock.acquire()
    except filelock.Timeout:
        problem = f"another program has kept it busy for {LOCK_TIMEOUT:g} s"
    except (OSError, NotImplementedError) as error:  # the latter: a file system without locks
        problem = getattr(error, "strerror", None) or str(error)
    if problem:
        raise ConfigurationError(f"{path} cannot be used: {problem}.")
    try:
        yield
    finally:
        lock.release()
