"""One HTTP connection of the embedded service: routes, replies, streams.

Invariant: the whole request body is read before a reply is sent, so a connection that is kept
alive is always at the start of a request.
"""

from __future__ import annotations

import contextlib
import hmac
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from .checks import RequestError
from .faults import default_error
from .json_body import read_json
from .prices import DEMO_MODEL, MODELS
from .recorded import RecordedRequest
from .search_wire import answer_search
from .sending import ReplyBroken, Sender

__all__ = ["Handler"]

MAX_BODY = 32 * 1024 * 1024
_DRAINED = 4 * MAX_BODY


class Handler(Sender):
    """Serves one connection."""

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""

    def handle(self) -> None:
        """Serve requests until the connection ends, in whatever way."""
        with contextlib.suppress(OSError, ReplyBroken):
            super().handle()

    def finish(self) -> None:
        """Flush, unless the client has gone."""
        with contextlib.suppress(OSError, ValueError):
            super().finish()

    def do_POST(self) -> None:
        """Serve any request."""
        parts = urlsplit(self.path)
        body, problem = self._read_body()
        authorized = self._is_authorized()
        headers = {name.lower(): value for name, value in self.headers.items()}
        if "authorization" in headers:
            headers["authorization"] = "***"
        count = self.emulator.record(
            RecordedRequest(self.command, parts.path, parts.query, headers, body, authorized)
        )
        self.count = count
        self.behavior = self.emulator.take_behavior()
        if self.behavior.delay:
            self.emulator.stopped.wait(self.behavior.delay)
        try:
            if problem is not None:
                raise problem
            if self.behavior.replaces_answer:
                self._fixed_reply()
                return
            self._route(parts.path, parse_qs(parts.query), body, authorized)
        except RequestError as refused:
            self._reply_json(refused.status, refused.envelope())

    do_GET = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = do_POST

    def _read_body(self) -> tuple[bytes, RequestError | None]:
        too_large = RequestError(
            "request body exceeds 32 MiB", kind="payload_too_large", status=413
        )
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._read_chunks(too_large)
        try:
            length = int(self.headers.get("Content-Length") or 0)
        except ValueError:
            self.close_connection = True
            return b"", RequestError("invalid Content-Length")
        if 0 <= length <= MAX_BODY:
            return self.rfile.read(length), None
        # The client still sends: it reads no reply before its body is taken.
        self.close_connection = True
        left = min(max(length, 0), _DRAINED)
        while left > 0:
            taken = len(self.rfile.read(min(left, 1 << 16)))
            if not taken:
                break
            left -= taken
        return b"", too_large

    def _read_chunks(self, too_large: RequestError) -> tuple[bytes, RequestError | None]:
        body = bytearray()
        while True:
            try:
                size = int(self.rfile.readline(64).split(b";")[0], 16)
            except ValueError:
                self.close_connection = True
                return b"", RequestError("invalid chunked body")
            if size == 0:
                while self.rfile.readline(1024).strip():
                    pass
                return bytes(body), None
            if size + len(body) > MAX_BODY:
                self.close_connection = True
                return b"", too_large
            body += self.rfile.read(size)
            self.rfile.readline(8)

    def _is_authorized(self) -> bool:
        key = self.emulator.api_key
        if key is None:
            return True
        given = self.headers.get("Authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {key}".encode())

    def _route(
        self, path: str, query: Mapping[str, list[str]], body: bytes, authorized: bool
    ) -> None:
        if path == "/" and self.command in ("GET", "HEAD"):
            text = "The offline demo of ipyperplexity. POST /v1/responses asks it a question.\n"
            self._reply(200, text.encode(), {"Content-Type": "text/plain; charset=utf-8"})
            return
        if path.startswith("/corpus/") and self.command in ("GET", "HEAD"):
            self._corpus_file(unquote(path.removeprefix("/corpus/")))
            return
        if not authorized:
            raise RequestError("Invalid API key provided.", kind="invalid_api_key", status=401)
        steps = path.strip("/").split("/")
        if steps[:1] == ["v1"] and steps[1:2] in (["responses"], ["agent"]):
            steps = ["v1", "responses", *steps[2:]]
        for (method, *pattern), serve in _ROUTES.items():
            if method == self.command and len(pattern) == len(steps):
                names = [s for p, s in zip(pattern, steps, strict=True) if p == "*"]
                if all(p in ("*", s) for p, s in zip(pattern, steps, strict=True)):
                    serve(self, names, query, body)
                    return
        if path in _RETIRED:
            raise RequestError(
                "Sonar is now the Agent API. Please use /v1/responses; see the migration guide.",
                kind="chat_completions_not_available",
                status=403,
            )
        raise RequestError("resource not found", kind="not_found", status=404)

    def _create(self, names: list[str], query: Mapping[str, list[str]], body: bytes) -> None:
        try:
            asked = read_json(body)
        except (ValueError, RecursionError):
            raise RequestError("request body is not valid JSON") from None
        emulator, behavior = self.emulator, self.behavior
        pace = emulator.pace if behavior.pace is None else behavior.pace
        chunk_chars = behavior.chunk_chars or emulator.chunk_chars
        record = emulator.runs.create(asked, emulator.engine, behavior, pace, chunk_chars)
        request = record.run.reading.request
        if request.get("background"):
            emulator.runs.start_background(record)
        if request.get("stream"):
            source = record.follow(-1) if request.get("background") else record.produce()
            self._stream(record, source)
        elif request.get("background"):
            self._reply_json(200, record.first_state(), record.run.id)
        else:
            record.cancelled.wait(pace * 10)
            record.finish()
            if behavior.terminal == "error":
                self._reply_json(500, default_error(500), record.run.id)
            else:
                self._reply_json(200, record.state(), record.run.id, breakable=True)

    def _get(self, names: list[str], query: Mapping[str, list[str]], body: bytes) -> None:
        record = self.emulator.runs.get(names[0])
        if record is None:
            raise RequestError("resource not found", kind="not_found", status=404)
        if query.get("stream") != ["true"]:
            self._reply_json(200, record.state(), record.run.id)
            return
        cursor = query.get("starting_after", [""])[-1]
        if not cursor.isdigit() or record.log is None or int(cursor) > len(record.log):
            raise RequestError("invalid or expired cursor", param="starting_after")
        self._stream(record, record.follow(int(cursor)))

    def _cancel(self, names: list[str], query: Mapping[str, list[str]], body: bytes) -> None:
        self._reply_json(200, self.emulator.runs.cancel(names[0]), names[0])

    def _models(self, names: list[str], query: Mapping[str, list[str]], body: bytes) -> None:
        data = [
            {
                "id": name,
                "object": "model",
                "created": 0,
                "owned_by": name.partition("/")[0],
                "pricing": {
                    "input": 0.0 if name == DEMO_MODEL else price[0],
                    "output": 0.0 if name == DEMO_MODEL else price[1],
                    "cache_read": price[2],
                    "unit": "usd_per_1m_tokens",
                },
            }
            for name, price in MODELS.items()
        ]
        self._reply_json(200, {"object": "list", "data": data})

    def _search(self, names: list[str], query: Mapping[str, list[str]], body: bytes) -> None:
        status, reply = answer_search(body, self.emulator.engine)
        self._reply_json(status, reply)

    def _corpus_file(self, relative: str) -> None:
        text = self.emulator.engine.corpus.read_file(relative)
        if text is None:
            raise RequestError("resource not found", kind="not_found", status=404)
        headers = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}
        self._reply(200, text.encode(), headers)


_Serve = Callable[[Handler, list[str], Mapping[str, list[str]], bytes], None]
_ROUTES: dict[tuple[str, ...], _Serve] = {
    ("POST", "v1", "responses"): Handler._create,
    ("GET", "v1", "responses", "*"): Handler._get,
    ("POST", "v1", "responses", "*", "cancel"): Handler._cancel,
    ("GET", "v1", "models"): Handler._models,
    ("POST", "search"): Handler._search,
}
_RETIRED = (
    "/chat/completions", "/v1/chat/completions", "/v1/sonar",
    "/async/chat/completions", "/v1/async/sonar",
)  # fmt: skip
