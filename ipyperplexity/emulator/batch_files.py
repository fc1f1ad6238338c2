"""Uploaded files: multipart forms, and the service's rules for a file of batch requests.

Invariant: a file is kept only if each of its lines could be asked, as the service checks all of
them before it keeps any (api-reference/files-create-post).
"""

from __future__ import annotations

import json
import re
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from .checks import check_request
from .json_body import read_json
from .rules import RequestError

__all__ = ["MAX_FILE", "StoredFile", "check_lines", "read_form"]

MAX_FILE = 200 * 1000 * 1000
_MAX_LINES = 50_000
_KEPT_SECONDS = 30 * 24 * 3600
_LINE_FIELDS = {"custom_id", "method", "url", "body"}


@dataclass(frozen=True)
class StoredFile:
    """A file as the service keeps it."""

    content: bytes = field(repr=False)
    filename: str
    purpose: str
    id: str = field(default_factory=lambda: f"file_{uuid.uuid4()}")
    created: int = field(default_factory=lambda: int(time.time()))

    def shown(self) -> dict[str, Any]:
        """Return the file as the wire shows it."""
        return {
            "id": self.id,
            "object": "file",
            "bytes": len(self.content),
            "created_at": self.created,
            "expires_at": self.created + _KEPT_SECONDS,
            "filename": self.filename,
            "purpose": self.purpose,
        }


def read_form(content_type: str, body: bytes) -> dict[str, tuple[str | None, bytes]]:
    r"""Read a ``multipart/form-data`` body: file name (or None) and bytes by field.

    Raises
    ------
    RequestError
        It is none.

    Examples
    --------
    >>> body = b'--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--x--\r\n'
    >>> read_form("multipart/form-data; boundary=x", body)
    {'purpose': (None, b'batch')}
    """
    kind, _, parameters = content_type.partition(";")
    named = re.search(r'boundary="?([^";\s]{1,70})"?', parameters)
    if kind.strip().lower() != "multipart/form-data" or named is None:
        raise RequestError("Content-Type must be multipart/form-data with a boundary")
    pieces = (b"\r\n" + body).split(b"\r\n--" + named.group(1).encode())
    if len(pieces) < 3 or pieces[0] != b"" or pieces[-1].rstrip() != b"--":
        raise RequestError("the form is not complete")
    fields: dict[str, tuple[str | None, bytes]] = {}
    for piece in pieces[1:-1]:
        head, blank, content = piece.partition(b"\r\n\r\n")
        disposition = _disposition(head.decode("utf-8", "replace"))
        if not blank or "name" not in disposition:
            raise RequestError("a part of the form has no name")
        if disposition["name"] in fields:
            raise RequestError(f"{disposition['name']}: given twice", param=disposition["name"])
        fields[disposition["name"]] = disposition.get("filename"), content
    return fields


def _disposition(head: str) -> dict[str, str]:
    for header in head.split("\r\n"):
        name, _, value = header.partition(":")
        if name.strip().lower() == "content-disposition" and "form-data" in value:
            return dict(re.findall(r';\s*(\w+)="([^"]*)"', value))
    return {}


def check_lines(content: bytes) -> list[dict[str, Any]]:
    """Return the requests of a batch file.

    Raises
    ------
    RequestError
        It has none, too many, or one that could not be asked; the message names its line.

    Examples
    --------
    >>> check_lines(b"")
    Traceback (most recent call last):
    ...
    ipyperplexity.emulator.rules.RequestError: file: the file is empty
    """
    if len(content) > MAX_FILE:
        raise RequestError("file exceeds 200 MB", kind="payload_too_large", status=413)
    lines = content.split(b"\n")
    if lines[-1] == b"":
        del lines[-1]
    if not lines:
        raise RequestError("file: the file is empty", param="file")
    if len(lines) > _MAX_LINES:
        raise RequestError(f"file: {len(lines)} lines; at most {_MAX_LINES}", param="file")
    requests: list[dict[str, Any]] = []
    seen: set[str] = set()
    for number, line in enumerate(lines, 1):
        problem = ""
        try:
            request = read_json(line)
            problem = _problem(request, seen)
        except (ValueError, RecursionError):
            problem = "invalid JSON" if line.strip() else "blank line"
        except RequestError as refused:
            problem = f"body: {refused.message}"
        if problem:
            raise RequestError(f"line {number}: {problem}", param="file")
        requests.append(request)
    return requests


def _problem(request: Any, seen: set[str]) -> str:
    if not isinstance(request, dict):
        return "must be a JSON object"
    for name in request.keys() - _LINE_FIELDS:
        return f"unknown field {json.dumps(name)}"
    custom_id = request.get("custom_id")
    if not isinstance(custom_id, str) or not custom_id:
        return "custom_id must be a string that is not empty"
    if custom_id in seen:
        return f"custom_id {json.dumps(custom_id)} occurs twice"
    seen.add(custom_id)
    if request.get("method") != "POST":
        return "method must be POST"
    if request.get("url") != "/v1/responses":
        return "url must be /v1/responses"
    body = check_request(request.get("body"))
    unfit = next((name for name in ("stream", "background") if body.get(name)), None)
    return f"body.{unfit} is not supported in a batch" if unfit else ""
