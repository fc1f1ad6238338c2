"""Our own file of the web login: one for all kernels of a user, so written under a lock.

The session cookie changes as it is used. Each kernel therefore reads the file anew for a question,
and puts a changed cookie into what the file then holds, not into what it held when asked.
"""

from __future__ import annotations

import contextlib
import dataclasses
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ipyperplexity.auth.cookies import Cookies, is_sendable, session_token
from ipyperplexity.auth.login_record import WebLogin
from ipyperplexity.auth.private_json import delete_record, load_record, save_record
from ipyperplexity.net.redact import Secret
from ipyperplexity.store import folders, private_files

LOG_IN = "%perplexity login --web"


def login_file() -> Path:
    """Return where the login is kept, whether or not there is one."""
    return folders.config_dir() / "web-login.json"


@contextlib.contextmanager
def locked_store() -> Iterator[None]:
    """Keep every other process from writing the file meanwhile.

    Raises
    ------
    ConfigurationError
        If that takes too long.
    """
    with private_files.locked(login_file()):
        yield


def load_login() -> WebLogin | None:
    """Return the stored login, or None.

    Raises
    ------
    ConfigurationError
        If there is a file that cannot be read. A damaged one is set aside with a warning.
    """
    return load_record(login_file(), "the stored login", LOG_IN, _from_record)


def save_login(login: WebLogin) -> WebLogin:
    """Store a login in place of the one that is there; return it as it will be found.

    Raises
    ------
    ConfigurationError
        If it cannot be written.
    """
    stored = dataclasses.replace(login, stored_as=uuid.uuid4().hex)
    with locked_store():
        write_login(stored)
    return dataclasses.replace(stored, origin=_origin(login.origin))


def write_login(login: WebLogin) -> None:
    """Write a login that has its name already; the caller holds the lock."""
    save_record(
        login_file(),
        {
            "version": 1,
            "id": login.stored_as,
            "from": login.origin.removeprefix(_origin("")),
            "email": login.email,
            "token": login.token,
            "cookies": [{"name": name, "value": value} for name, value in login.cookies],
        },
    )


def delete_login() -> bool:
    """Delete the stored login; return whether there was one.

    Raises
    ------
    ConfigurationError
        If it cannot be deleted.
    """
    return delete_record(login_file())


def _origin(source: str) -> str:
    return f"the stored login: {source}"


def _from_record(record: dict[str, Any]) -> WebLogin | None:
    cookies = _cookies(record.get("cookies"))
    token = record.get("token")
    if not (isinstance(token, Secret) and token and is_sendable(token.reveal())):
        token = session_token(cookies)
    if token is None:
        return None
    return WebLogin(
        token,
        cookies,
        _text(record.get("email")) or None,
        _origin(_text(record.get("from")) or "of unknown origin"),
        # A file that somebody wrote by hand has no name; its changes are kept all the same.
        _text(record.get("id")) or "unnamed",
    )


def _cookies(value: Any) -> Cookies:
    if not isinstance(value, list):
        return ()
    found = []
    for item in value:
        name, secret = (item.get("name"), item.get("value")) if isinstance(item, dict) else (0, 0)
        if isinstance(name, Secret) and isinstance(secret, Secret) and is_sendable(secret.reveal()):
            found.append((name.reveal(), secret))
    return tuple(found) if session_token(tuple(found)) else ()


def _text(value: Any) -> str:
    return value.reveal() if isinstance(value, Secret) else ""
