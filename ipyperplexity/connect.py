"""From settings to a Service: which address, which credential, checked before anything is sent."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ipyperplexity import demo_engine
from ipyperplexity.auth.keys import Credential, find_key, require_key
from ipyperplexity.backends import BACKENDS, BASE_URL_VARIABLE
from ipyperplexity.errors import ConfigurationError, MissingCredentialError
from ipyperplexity.net.address import check_base_url, is_loopback, shown
from ipyperplexity.net.redact import BearerAuth, Secret
from ipyperplexity.net.retry import RetryPolicy
from ipyperplexity.service import Service
from ipyperplexity.tapes import deck

if TYPE_CHECKING:
    import requests

deck.start_demo = lambda: demo_engine.shared.start()

#: Where a stored key may go, and below it.
_SITE = "perplexity.ai"


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
    policy = RetryPolicy(settings.max_retries)
    if deck.replaying() is not None:  # who replays needs no key, and no address
        url = address_unchecked(settings) or "http://127.0.0.1"
        return Service(settings.backend, url, session, BearerAuth(None), (), policy)
    url = address(settings)
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
    if kind in ("key", "key unless local"):
        found = _key_for(settings, url)
        secret = found.secret if found else None
    auth, secrets = BearerAuth(secret), (secret,) if secret else ()
    return Service(settings.backend, url, session, auth, secrets, policy)


def _key_for(settings: Settings, url: str) -> Credential | None:
    """Return the key for an address; None where none is needed.

    The key of ``%perplexity login`` is Perplexity's: a gateway or a local chat server is not told
    it. (The embedded engine speaks the Agent API on this machine, and may be.)
    """
    host = urlsplit(url).hostname or ""
    local, ours = is_loopback(host), host == _SITE or host.endswith(f".{_SITE}")
    may_go_without = BACKENDS[settings.backend].credential == "key unless local" and local
    stored = ours or (local and not may_go_without)
    found = find_key(settings.key, stored=stored)
    if found is not None or may_go_without:
        return found
    if stored:
        return require_key(settings.key)
    raise MissingCredentialError(
        f"There is no API key for {host}: the stored one is Perplexity's, and goes nowhere else.",
        hint="Give that server's key with api_key=... or PERPLEXITY_API_KEY.",
    )


def credential_origin(settings: Settings) -> str:
    """Say where the credential comes from, never its value.

    Raises
    ------
    ConfigurationError
        If there is one that cannot be one.
    """
    if (replaying := deck.replaying()) is not None:
        return f"none needed while {replaying.path.name} is replayed"
    kind = BACKENDS[settings.backend].credential
    if kind == "none":
        return "none needed"
    if kind == "web login":
        from ipyperplexity.auth.web_login import find_web_login

        login = find_web_login()
        return f"set, from {login.origin}" if login else "not logged in"
    try:
        credential = _key_for(settings, address_unchecked(settings))
    except MissingCredentialError:
        return "not set"
    return f"set, from {credential.origin}" if credential else "none needed on this machine"
