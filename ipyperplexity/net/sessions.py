"""Sessions for requests that carry a key and may have to be stopped before a reply has begun.

requests knows no way to reach a connection whose reply is still awaited. The connections here tell
the thread that uses them, through :func:`watching`, so that another thread can shut their socket.
A session of the user's own has other connections: a stop still returns at once, but its reader
ends only when the service sends something.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO
from urllib.parse import urlsplit

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


class _Session(requests.Session):
    """A session that looks at the environment when it has changed, and not at each request.

    requests goes through all of it twice a request, which is a tenth of what a request costs.
    """

    def __init__(self) -> None:
        super().__init__()
        self._merged: tuple[object, Any] = (None, {})

    def merge_environment_settings(
        self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any
    ) -> Any:
        address = urlsplit(url)
        given = (address.scheme, address.netloc, str(proxies), stream, verify, cert)
        own = (str(self.proxies), self.stream, self.verify, self.cert, self.trust_env)
        seen = (given, own, *map(os.environ.get, _SETTINGS))
        key, merged = self._merged
        if key != seen:
            merged = super().merge_environment_settings(url, proxies, stream, verify, cert)
            self._merged = (seen, merged)
        return {**merged}


#: Variables of the environment that requests goes by.
_SETTINGS = (
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
)


def make_session() -> requests.Session:
    """Return a session that several threads may use: it keeps no cookies."""
    session = _Session()
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


class Form:
    """A ``multipart/form-data`` body with one file, read piece by piece while it is sent.

    requests would put the whole of it into memory, twice.

    Parameters
    ----------
    fields : mapping of str to str
        Sent before the file.
    filename : str
    content : bytes or binary file
        A file must be seekable; all of it is sent, from its beginning. It is left open.

    Examples
    --------
    >>> form = Form({"purpose": "batch"}, "a.jsonl", b"{}")
    >>> reader = form.reader()
    >>> len(reader) == sum(map(len, reader))
    True
    """

    def __init__(self, fields: Mapping[str, str], filename: str, content: bytes | BinaryIO) -> None:
        boundary = secrets.token_hex(16)
        self.content_type = f"multipart/form-data; boundary={boundary}"
        self._content = io.BytesIO(content) if isinstance(content, bytes) else content
        self._lock = threading.Lock()
        self._fields = dict(fields)
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="'
        parts = [f'{head}{_quoted(name)}"\r\n\r\n{text}\r\n' for name, text in fields.items()]
        parts.append(
            f'{head}file"; filename="{_quoted(filename)}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        self._before = "".join(parts).encode("utf-8", "replace")
        self._after = f"\r\n--{boundary}--\r\n".encode()

    def summary(self) -> dict[str, Any]:
        """Return what a tape keeps of it: its fields, and the lines of its file as JSON values."""
        reader = self.reader()
        body = b"".join(reader)[len(self._before) : -len(self._after)]
        lines: list[Any] = []
        with contextlib.suppress(ValueError):
            lines = [json.loads(line) for line in body.splitlines() if line.strip()]
        return {"form": self._fields, "lines": lines}

    def reader(self) -> _FormReader:
        """Return the body from its beginning."""
        with self._lock:
            size = self._content.seek(0, io.SEEK_END)
        return _FormReader(self._before, self._piece, size, self._after)

    def _piece(self, start: int, size: int) -> bytes:
        # A thread whose request was given up may still read when the next one does.
        with self._lock:
            self._content.seek(start)
            return self._content.read(size)


class _FormReader:
    """What requests and urllib3 ask of a body that is streamed: a length, and ``read``."""

    def __init__(
        self, before: bytes, piece: Callable[[int, int], bytes], size: int, after: bytes
    ) -> None:
        self._before, self._piece, self._size, self._after = before, piece, size, after
        self._at = 0

    def __len__(self) -> int:
        return len(self._before) + self._size + len(self._after)

    def read(self, size: int = -1) -> bytes:
        size = len(self) if size < 0 else size
        start = self._at - len(self._before)
        if start < 0:
            piece = self._before[start:][:size]
        elif start < self._size:
            piece = self._piece(start, min(size, self._size - start))
        else:
            piece = self._after[start - self._size :][:size]
        self._at += len(piece)
        return piece

    def __iter__(self) -> Iterator[bytes]:
        return iter(lambda: self.read(65536), b"")


def _quoted(name: str) -> str:
    """Return a name as it stands between quotes in a form's header (WHATWG HTML, 4.10.21.8)."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def sender(
    session: requests.Session,
    method: str,
    url: str,
    body: Mapping[str, Any] | Form | None,
    *,
    auth: AuthBase,
    headers: Mapping[str, str],
    loopback: bool,
    read_timeout: float,
) -> Callable[[], requests.Response]:
    """Return the function that sends a body once; the reply is unread, no redirect is followed."""
    data: Any = None
    if isinstance(body, Form):
        data, headers = body.reader(), {**headers, "Content-Type": body.content_type}
    elif body is not None:
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
