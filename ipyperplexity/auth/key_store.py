"""The API key that ``%perplexity login`` keeps: in the system's keyring, or else in a private file.

One small file says which. So a question touches the keyring, which may be slow and may ask the user
to unlock it, only if a key was put there, and only once in a process: what was read is good until
that file changes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ipyperplexity.auth.private_json import delete_record, load_record, save_record
from ipyperplexity.errors import ConfigurationError
from ipyperplexity.net.redact import Secret
from ipyperplexity.store import folders
from ipyperplexity.store.private_files import locked

LOG_IN = "%perplexity login"
_SERVICE = "ipyperplexity"
#: From this priority on the keyring package itself recommends a backend; below are those that keep
#: nothing, or keep it in a plain file, as we do ourselves.
_RECOMMENDED = 1
_KEYRING = "keyring"

_read: dict[Path, tuple[tuple[int, ...], tuple[Secret, str] | None]] = {}


def key_file() -> Path:
    """Return the file that holds the key, or says that the keyring does."""
    return folders.config_dir() / "api-key.json"


def save_key(key: Secret) -> str:
    """Store the key in place of the one that is there; return where it is now, in words.

    Raises
    ------
    ConfigurationError
        If it cannot be stored.
    """
    path = key_file()
    backend = _usable_keyring()
    with locked(path):
        in_keyring = backend is not None and _keep(backend, path, key)
        if in_keyring:
            save_record(path, {"version": 1, "place": _KEYRING})
            return _keyring_place(backend)
        save_record(path, {"version": 1, "place": "file", "key": key})
        return _file_place(path)


def load_key() -> tuple[Secret, str] | None:
    """Return the stored key and where it is kept, or None.

    Raises
    ------
    ConfigurationError
        If there is one that cannot be read. A damaged file is set aside with a warning.
    """
    path = key_file()
    stamp = _stamp(path)
    if stamp is None:
        _read.pop(path, None)
        return None
    known = _read.get(path)
    if known is not None and known[0] == stamp:
        return known[1]
    record = load_record(path, "the stored API key", LOG_IN, _checked)
    found = None
    if record is not None and record["place"] == _KEYRING:
        found = _from_keyring(path)
    elif record is not None:
        found = record["key"], _file_place(path)
    stamp = _stamp(path)  # another one, if the file was made private or set aside
    if stamp is not None:
        _read[path] = stamp, found
    return found


def delete_key() -> bool:
    """Delete the stored key; return whether there was one.

    Raises
    ------
    ConfigurationError
        If it cannot be deleted.
    """
    path = key_file()
    problem = ""
    _read.pop(path, None)
    record = load_record(path, "the stored API key", LOG_IN, _checked)
    if record is not None and record["place"] == _KEYRING:
        problem = _forget(path)
    deleted = delete_record(path)
    if problem:
        raise ConfigurationError(
            f"The API key is still in the system's keyring: {problem}.",
            hint=f"Delete the entry {_SERVICE!r} with the system's own program for passwords.",
        )
    return deleted


def _checked(record: dict[str, Any]) -> dict[str, Any] | None:
    place, key = record.get("place"), record.get("key")
    if isinstance(place, Secret) and place.reveal() == _KEYRING:
        return {"place": _KEYRING}
    return {"place": "file", "key": key} if isinstance(key, Secret) and key else None


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    # Each writing makes a new file, so that two within one tick of the clock differ all the same.
    return status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_size, status.st_mode


def _file_place(path: Path) -> str:
    return f"the file {path}"


# --- the keyring ------------------------------------------------------------------------------
# Its backends raise whatever the system's libraries raise, so everything is caught here.


def _usable_keyring() -> Any:
    try:
        import keyring

        backend = keyring.get_keyring()
        return backend if backend.priority >= _RECOMMENDED else None
    except Exception:
        return None


def _keyring_place(backend: Any) -> str:
    return f"the system's keyring ({getattr(backend, 'name', type(backend).__name__)})"


def _account(path: Path) -> str:
    # With IPYPERPLEXITY_HOME there may be several, each with a file of its own.
    return os.fspath(path)


def _keep(backend: Any, path: Path, key: Secret) -> bool:
    try:
        backend.set_password(_SERVICE, _account(path), key.reveal())
        return bool(backend.get_password(_SERVICE, _account(path)) == key.reveal())
    except Exception:
        return False


def _from_keyring(path: Path) -> tuple[Secret, str] | None:
    place, problem = "", ""
    try:
        import keyring

        backend = keyring.get_keyring()
        place = _keyring_place(backend)
        key = Secret(backend.get_password(_SERVICE, _account(path)) or "")
        return (key, place) if key else None  # None: deleted with another program
    except ImportError:
        problem = "the package keyring is no longer installed"
    except Exception as error:
        problem = type(error).__name__
    raise ConfigurationError(
        f"The API key is in the system's keyring, which cannot be read now: {problem}.",
        field="api_key",
        hint=f"Unlock it, set PERPLEXITY_API_KEY, or store the key anew: {LOG_IN}",
    )


def _forget(path: Path) -> str:
    """Delete the key from the keyring; return why that failed, or nothing."""
    try:
        import keyring

        backend = keyring.get_keyring()
        if backend.get_password(_SERVICE, _account(path)) is not None:
            backend.delete_password(_SERVICE, _account(path))
    except Exception as error:
        return type(error).__name__
    return ""
