"""Sessions for requests that carry a key and may have to be stopped before a reply has begun.

requests knows no way to reach a connection whose reply is still awaited. The connections here tell
the thread that uses them, through :func:`watching`, so that another thread can shut their socket.
A session of the user's own has other connections: a stop still returns at once, but its reader
ends only when the service sends something.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import requests
import urllib3
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase

#: Seconds.
CONNECT_TIMEOUT = 10.0

_current = threading.local()


@contextlib.contextmanager
def watching(watcher: Callable[[Any], None]) -> Iterator[None]:
    """Call ``watcher`` with each connection that this thread is about to use."""
    _current.watcher = watcher
    try:
        yield
    finally:
        _current.watcher = None


class _Watched:
    """Mixin: a connection that tells the watcher of its thread when it is used."""

    def connect(self) -> Any:
        self._report()
        result = super().connect()  # type: ignore[misc]
        self._report()
        return result

    def request(self, *args: Any, **kwargs: Any) -> Any:
        self._report()
        return super().request(*args, **kwargs)  # type: ignore[misc]

    def _report(self) -> None:
        watcher: Callable[[Any], None] | None = getattr(_current, "watcher", None)
        if watcher is not None:
            watcher(self)


class _HTTPConnection(_Watched, urllib3.connection.HTTPConnection):
    pass


class _HTTPSConnection(_Watched, urllib3.connection.HTTPSConnection):
    pass


class _HTTPPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _HTTPConnection


class _HTTPSPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _HTTPSConnection


class _Adapter(HTTPAdapter):
    """Connections that can be shut before their reply has begun, and a pool that suits batches."""

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(*args, **kwargs)
        manager.pool_classes_by_scheme = {"http": _HTTPPool, "https": _HTTPSPool}
        return manager


def make_session() -> requests.Session:
    """Return a session that several threads may use: it keeps no cookies."""
    session = requests.Session()
    adapter = _Adapter(pool_connections=4, pool_maxsize=64)
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    session.cookies.set_policy(_NoCookies())
    return session


class _NoCookies(requests.cookies.cookielib.DefaultCookiePolicy):  # type: ignore[name-defined,misc]
    """The service's edge sets cookies; an API with a key needs none."""

    def set_ok(self, cookie: Any, request: Any) -> bool:
        return False

    def return_ok(self, cookie: Any, request: Any) -> bool:
        return False


def sender(
    session: requests.Session,
    method: str,
    url: str,
    body: Mapping[str, Any] | None,
    *,
    auth: AuthBase,
    headers: Mapping[str, str],
    loopback: bool,
    read_timeout: float,
) -> Callable[[], requests.Response]:
    """Return the function that sends a JSON body once, unread and without following redirects."""
    data = None
    if body is not None:
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    # A proxy from the environment cannot reach this machine's own loopback.
    proxies: Any = {"http": None, "https": None, "all": None} if loopback else None
    # Said here, or a variable of the environment would win over the certificates of a session.
    verify = session.verify if session.verify is not True else None

    def send() -> requests.Response:
        return session.request(
            method,
            url,
            data=data,
            headers=dict(headers),
            auth=auth,
            stream=True,
            allow_redirects=False,
            timeout=(CONNECT_TIMEOUT, read_timeout),
            proxies=proxies,
            verify=verify,
        )

    return send
