"""From settings to a Service: which address, which credential, checked before anything is sent."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ipyperplexity import demo_engine
from ipyperplexity.auth.keys import find_key, require_key
from ipyperplexity.backends import BACKENDS, BASE_URL_VARIABLE
from ipyperplexity.errors import ConfigurationError
from ipyperplexity.net.address import check_base_url, is_loopback, shown
from ipyperplexity.net.redact import BearerAuth, Secret
from ipyperplexity.net.retry import RetryPolicy
from ipyperplexity.service import Service

if TYPE_CHECKING:
    import requests


@dataclass(frozen=True)
class Settings:
    """What is configured at the moment of a question.

    Attributes
    ----------
    backend : str
        A known one.
    base_url : str or None
        An address given on purpose; else a variable's or the backend's own is used.
    key : Secret or None
        A key given on purpose; else it is looked up.
    allow_http : bool
    max_retries : int
    stored_base_url : str or None
        The settings file's, for when neither of the others is set.
    """

    backend: str
    base_url: str | None
    key: Secret | None
    allow_http: bool
    max_retries: int
    stored_base_url: str | None = None


def address(settings: Settings) -> str:
    """Return where a backend's requests go.

    Raises
    ------
    ConfigurationError
        If the address that is set is not valid.
    """
    if settings.backend == "demo":  # which starts it
        return demo_engine.shared.start()
    return address_unchecked(settings, check=True)


def address_unchecked(settings: Settings, *, check: bool = False) -> str:
    """Return the address that is set, good or bad; ``demo`` has none before it is started."""
    backend = BACKENDS[settings.backend]
    if settings.base_url is not None:
        return settings.base_url
    given: str | None = ""
    if backend.follows_variable:
        given = os.environ.get(BASE_URL_VARIABLE, "").strip() or settings.stored_base_url
    url = given or backend.base_url
    return check_base_url(url, allow_http=settings.allow_http) if check else url


def _check_site(url: str, own: str) -> None:
    """Refuse to send the login for one site to another."""
    host, site = urlsplit(url).hostname or "", (urlsplit(own).hostname or "").removeprefix("www.")
    if host == site or host.endswith(f".{site}") or is_loopback(host):
        return
    raise ConfigurationError(
        f"base_url: got {shown(url)!r}; allowed on the web backend: {own}, which the login is for.",
        field="base_url",
        hint="A gateway of your own is asked with backend='chat' or 'agent'.",
    )


def connect(settings: Settings, session: Callable[[], requests.Session]) -> Service:
    """Return the service of a backend, with the credential for its address.

    Raises
    ------
    ConfigurationError
        If the address is not valid.
    MissingCredentialError
        If it needs a key or a login, and there is none.
    """
    url = address(settings)
    policy = RetryPolicy(settings.max_retries)
    kind = BACKENDS[settings.backend].credential
    if kind == "web login":
        from ipyperplexity.auth.web_login import keep_rotated, require_web_login

        _check_site(url, BACKENDS[settings.backend].base_url)

        login = require_web_login()
        return Service(
            settings.backend,
            url,
            session,
            login.auth(),
            login.secrets(),
            policy,
            on_cookies=lambda lines: keep_rotated(login, lines),
        )
    secret = None
    if kind == "key":
        secret = require_key(settings.key).secret
    elif kind == "key unless local":
        local = is_loopback(urlsplit(url).hostname or "")
        found = find_key(settings.key) if local else require_key(settings.key)
        secret = found.secret if found else None
    auth, secrets = BearerAuth(secret), (secret,) if secret else ()
    return Service(settings.backend, url, session, auth, secrets, policy)


def credential_origin(settings: Settings) -> str:
    """Say where the credential comes from, never its value.

    Raises
    ------
    ConfigurationError
        If there is one that cannot be one.
    """
    kind = BACKENDS[settings.backend].credential
    if kind == "none":
        return "none needed"
    if kind == "web login":
        from ipyperplexity.auth.web_login import find_web_login

        login = find_web_login()
        return f"set, from {login.origin}" if login else "not logged in"
    credential = find_key(settings.key)
    if credential is not None:
        return f"set, from {credential.origin}"
    url = address_unchecked(settings)
    is_local = kind == "key unless local" and is_loopback(urlsplit(url).hostname or "")
    return "none needed on this machine" if is_local else "not set"
