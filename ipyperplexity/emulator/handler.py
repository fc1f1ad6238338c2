"""One HTTP connection of the embedded service: routes, replies, streams.

Invariant: the whole request body is read before a reply is sent, so a connection that is kept
alive is always at the start of a request.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hmac
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from . import batches_wire as batches
from .agent_routes import cancel_run, create_run, list_files, read_run
from .batch_files import MAX_FILE
from .chat_wire import ASYNC_PATHS, complete_chat, retirement
from .checks import RequestError
from .consumer_wire import ask_web, tell_limits, terminate_web
from .login_wire import give_csrf, send_code, take_code, tell_session
from .models_wire import list_models, list_web_models
from .recorded import RecordedRequest, masked, read_cookies
from .search_wire import search
from .sending import Call, ReplyBroken, Sender

__all__ = ["Handler"]

MAX_BODY = 32 * 1024 * 1024
_DRAINED = 4 * MAX_BODY
# With what stands around a file in its form.
_MAX_FORM = MAX_FILE + (1 << 20)
_MAX_RECORDED = 1 << 20
_FILES = "/v1/files"


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
        headers = {name.lower(): value for name, value in self.headers.items()}
        scheme, _, token = headers.get("authorization", "").partition(" ")
        request = RecordedRequest(
            self.command,
            parts.path,
            parts.query,
            masked(headers),
            body,
            self._is_authorized(),
            bearer=token.strip() if scheme.lower() == "bearer" else None,
            cookies=read_cookies("; ".join(self.headers.get_all("Cookie", []))),
        )
        # An upload is not kept twice.
        is_large = len(body) > _MAX_RECORDED and parts.path == _FILES
        short = dataclasses.replace(request, body=body[:_MAX_RECORDED]) if is_large else request
        self.count = self.emulator.record(short)
        self.behavior = self.emulator.take_behavior()
        if self.behavior.delay:
            self.emulator.stopped.wait(self.behavior.delay)
        try:
            if problem is not None:
                raise problem
            if self.behavior.replaces_answer:
                self.fixed_reply()
                return
            self._route(request)
        except RequestError as refused:
            self.reply_json(refused.status, refused.envelope())

    do_GET = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = do_POST

    def _read_body(self) -> tuple[bytes, RequestError | None]:
        is_file = urlsplit(self.path).path == _FILES
        most, says = (_MAX_FORM, "200 MB") if is_file else (MAX_BODY, "32 MiB")
        too_large = RequestError(
            f"request body exceeds {says}", kind="payload_too_large", status=413
        )
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._read_chunks(too_large, most)
        try:
            length = int(self.headers.get("Content-Length") or 0)
        except ValueError:
            self.close_connection = True
            return b"", RequestError("invalid Content-Length")
        if 0 <= length <= most:
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

    def _read_chunks(self, too_large: RequestError, most: int) -> tuple[bytes, RequestError | None]:
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
            if size + len(body) > most:
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

    def _route(self, request: RecordedRequest) -> None:
        path, query = request.path, parse_qs(request.query)
        if path == "/" and self.command in ("GET", "HEAD"):
            text = "The offline demo of ipyperplexity. POST /v1/responses asks it a question.\n"
            self.reply(200, text.encode(), {"Content-Type": "text/plain; charset=utf-8"})
            return
        if path.startswith("/corpus/") and self.command in ("GET", "HEAD"):
            self._corpus_file(unquote(path.removeprefix("/corpus/")))
            return
        steps = path.strip("/").split("/")
        found = _find(_WEB_ROUTES, self.command, steps)
        if found is not None:
            found[0](self, Call(found[1], query, request))
            return
        if not request.authorized:
            raise RequestError("Invalid API key provided.", kind="invalid_api_key", status=401)
        if steps[:1] == ["v1"] and steps[1:2] in (["responses"], ["agent"]):
            steps = ["v1", "responses", *steps[2:]]
        found = _find(_ROUTES, self.command, steps)
        if found is None:
            if path in ASYNC_PATHS:
                raise retirement()
            raise RequestError("resource not found", kind="not_found", status=404)
        serve, names = found
        serve(self, Call(names, query, request))

    def _corpus_file(self, relative: str) -> None:
        text = self.emulator.engine.corpus.read_file(relative)
        if text is None:
            raise RequestError("resource not found", kind="not_found", status=404)
        headers = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"}
        self.reply(200, text.encode(), headers)


Serve = Callable[[Sender, Call], None]
_ROUTES: dict[tuple[str, ...], Serve] = {
    ("POST", "v1", "responses"): create_run,
    ("GET", "v1", "responses", "*"): read_run,
    ("GET", "v1", "responses", "*", "files"): list_files,
    ("POST", "v1", "responses", "*", "cancel"): cancel_run,
    ("POST", "v1", "files"): batches.create_file,
    ("GET", "v1", "files"): batches.list_files,
    ("GET", "v1", "files", "*"): batches.read_file,
    ("GET", "v1", "files", "*", "content"): batches.read_content,
    ("DELETE", "v1", "files", "*"): batches.delete_file,
    ("POST", "v1", "batches"): batches.create_batch,
    ("GET", "v1", "batches"): batches.list_batches,
    ("GET", "v1", "batches", "*"): batches.read_batch,
    ("POST", "v1", "batches", "*", "cancel"): batches.cancel_batch,
    ("GET", "v1", "models"): list_models,
    ("POST", "search"): search,
    ("POST", "chat", "completions"): complete_chat,
    ("POST", "v1", "chat", "completions"): complete_chat,
    ("POST", "v1", "sonar"): complete_chat,
}
# The web endpoint knows nothing of API keys: who asks is told by a cookie (consumer-web 1.3).
_WEB_ROUTES: dict[tuple[str, ...], Serve] = {
    ("POST", "rest", "sse", "perplexity_ask"): ask_web,
    ("POST", "rest", "sse", "perplexity_terminate"): terminate_web,
    ("GET", "rest", "models", "config"): list_web_models,
    ("GET", "rest", "rate-limit", "all"): tell_limits,
    ("GET", "api", "auth", "csrf"): give_csrf,
    ("POST", "api", "auth", "signin-email"): send_code,
    ("POST", "api", "auth", "signin-otp"): take_code,
    ("GET", "api", "auth", "session"): tell_session,
}


def _find(
    routes: Mapping[tuple[str, ...], Serve], method: str, steps: list[str]
) -> tuple[Serve, list[str]] | None:
    """Return the route of a path, and the parts of the path that it left open."""
    for (wanted, *pattern), serve in routes.items():
        if wanted == method and len(pattern) == len(steps):
            pairs = list(zip(pattern, steps, strict=True))
            if all(part in ("*", step) for part, step in pairs):
                return serve, [step for part, step in pairs if part == "*"]
    return None
