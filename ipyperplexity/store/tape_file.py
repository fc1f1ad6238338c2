"""A tape: requests and what came back for them, byte pieces with their times, as lines of JSON.

The first line says what it is. An exchange is a line with the request, a line with the reply's
status and headers, a line for each piece of its body, and a line with its end. Times are
milliseconds since the request was sent. Invariant: nothing is read as an exchange that is not
whole, and whatever else a file holds is an error that names the line.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import datetime as dt
import json
import math
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TextIO

from ipyperplexity.errors import ConfigurationError, PerplexityWarning
from ipyperplexity.version import __version__

FORMAT = "ipyperplexity tape"
VERSION = 1
#: How a reply ended: whole, or with one of the causes of a broken one.
COMPLETE = "complete"
_ENDS = (COMPLETE, "connect", "timeout", "tls", "proxy", "broken", "late")


@dataclass(frozen=True)
class TapedReply:
    """What came back for a request.

    Attributes
    ----------
    status : int or None
        None if no reply began.
    headers : mapping
        Those that are kept.
    began : float
        Seconds from the request to the reply's head.
    pieces : tuple of (float, bytes)
        Seconds from the request, and what came.
    end : str
        ``complete``, or the cause of its breaking.
    ended : float
        Seconds from the request.
    detail : str
        Of a broken one, in words.
    """

    status: int | None
    headers: Mapping[str, str] = field(default_factory=dict)
    began: float = 0.0
    pieces: tuple[tuple[float, bytes], ...] = ()
    end: str = COMPLETE
    ended: float = 0.0
    detail: str = ""


@dataclass(frozen=True)
class TapedExchange:
    """A request, as far as it is kept, and its reply.

    Attributes
    ----------
    method, path : str
    body : object
        A JSON value without what is different each time.
    asked : str
        The question, for people.
    reply : TapedReply
    """

    method: str
    path: str
    body: Any
    asked: str
    reply: TapedReply


class TapeWriter:
    """Writes exchanges to a file, each as a whole.

    Parameters
    ----------
    path : Path
        A new file, or an earlier tape, which goes on.

    Raises
    ------
    ConfigurationError
        If it cannot be written, or is something else.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "lesson.tape"
    >>> writer = TapeWriter(path)
    >>> reply = TapedReply(200, {}, 0.1, ((0.2, b"hello"),), ended=0.2)
    >>> writer.write(TapedExchange("GET", "/v1/models", None, "", reply))
    >>> writer.close()
    >>> read_tape(path)[0].reply.pieces
    ((0.2, b'hello'),)
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        #: Exchanges that were there already.
        self.n_before = len(read_tape(path)) if _has_content(path) else 0
        problem = ""
        try:
            self._file: TextIO = path.open("a", encoding="utf-8", newline="\n")
            if not self.n_before and not path.stat().st_size:
                now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
                head = {"format": FORMAT, "version": VERSION, "recorded": now}
                self._line({**head, "by": f"ipyperplexity {__version__}"})
                self._file.flush()
        except OSError as error:
            problem = error.strerror or str(error)
        if problem:
            raise ConfigurationError(f"record: {path} cannot be written: {problem}.", field="path")

    def write(self, exchange: TapedExchange) -> None:
        """Add an exchange; it is in the file when this returns.

        Raises
        ------
        ConfigurationError
            If it cannot be written.
        """
        problem = ""
        with self._lock:
            try:
                for line in _lines(exchange):
                    self._line(line)
                self._file.flush()
            except (OSError, ValueError) as error:  # a closed file is a ValueError
                problem = getattr(error, "strerror", None) or str(error)
        if problem:
            raise ConfigurationError(f"record: {self.path} cannot be written: {problem}.")

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._file.close()

    def _line(self, value: Mapping[str, Any]) -> None:
        text = json.dumps(value, ensure_ascii=False)
        try:
            text.encode()
        except UnicodeEncodeError:  # half a character: JSON can name it, UTF-8 cannot
            text = json.dumps(value)
        self._file.write(text + "\n")


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _lines(exchange: TapedExchange) -> list[dict[str, Any]]:
    reply = exchange.reply
    request = {"method": exchange.method, "path": exchange.path}
    lines: list[dict[str, Any]] = [
        {"asked": exchange.asked, "request": {**request, "body": exchange.body}}
    ]
    if reply.status is not None:
        lines.append(
            {"ms": _ms(reply.began), "status": reply.status, "headers": dict(reply.headers)}
        )
    for seconds, piece in reply.pieces:
        try:
            lines.append({"ms": _ms(seconds), "text": piece.decode()})
        except UnicodeDecodeError:  # a piece may end within a character
            lines.append({"ms": _ms(seconds), "base64": base64.b64encode(piece).decode()})
    end: dict[str, Any] = {"ms": _ms(reply.ended), "end": reply.end}
    return [*lines, {**end, "detail": reply.detail} if reply.detail else end]


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 2)


# --- reading --------------------------------------------------------------------------------------


def read_tape(path: Path) -> list[TapedExchange]:
    """Return the exchanges of a tape, in order.

    A last exchange without its end, as a killed process leaves it, is left out with a warning.

    Raises
    ------
    ConfigurationError
        If it cannot be read, is no tape, is one of a newer version, or is damaged: with the line.
    """
    problem, data = "", b""
    try:
        data = path.read_bytes()
    except OSError as error:
        problem = error.strerror or str(error)
    if problem:
        raise ConfigurationError(f"replay: {path} cannot be read: {problem}.", field="path")
    lines = data.split(b"\n")
    _check_head(_parsed(lines[0], 1, path, "is no tape of ipyperplexity"), path)
    return _Reader(path).read(lines)


class _Reader:
    """Puts lines together to exchanges."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: list[TapedExchange] = []
        self._request: dict[str, Any] | None = None
        self._head: dict[str, Any] | None = None
        self._pieces: list[tuple[float, bytes]] = []

    def read(self, lines: list[bytes]) -> list[TapedExchange]:
        last = len(lines)
        for number, line in enumerate(lines[1:], 2):
            if not line.strip():
                continue
            # What a killed process had not written to its end has no line end after it.
            if number == last and self._request is not None and not _is_json(line):
                break
            self._take(_parsed(line, number, self._path, "is damaged"), number)
        if self._request is not None:
            warnings.warn(
                f"{self._path.name}: the last answer has no end, and is left out.",
                PerplexityWarning,
                stacklevel=3,
            )
        return self._found

    def _take(self, line: dict[str, Any], number: int) -> None:
        if "request" in line and self._request is None:
            request = line["request"]
            if not isinstance(request, dict) or not all(
                isinstance(request.get(name), str) for name in ("method", "path")
            ):
                self._refuse(number, "its request has no method and path")
            self._request = {**request, "asked": str(line.get("asked", ""))}
        elif self._request is None:
            self._refuse(number, "there is no request before it")
        elif "status" in line and self._head is None and not self._pieces:
            headers = line.get("headers", {})
            if not isinstance(line["status"], int) or not isinstance(headers, dict):
                self._refuse(number, "its status is no number, or its headers are no object")
            self._head = {**line, "seconds": self._seconds(line, number)}
        elif ("text" in line or "base64" in line) and self._head is not None:
            self._pieces.append((self._seconds(line, number), self._piece(line, number)))
        elif line.get("end") in _ENDS:
            self._finish(line, number)
        else:
            self._refuse(number, "nobody knows what it is")

    def _finish(self, line: dict[str, Any], number: int) -> None:
        request, head = self._request, self._head
        assert request is not None
        if head is None and line["end"] == COMPLETE:
            self._refuse(number, "a reply without a status cannot be complete")
        headers = {str(name): str(value) for name, value in (head or {}).get("headers", {}).items()}
        reply = TapedReply(
            status=head["status"] if head else None,
            headers=headers,
            began=head["seconds"] if head else 0.0,
            pieces=tuple(self._pieces),
            end=line["end"],
            ended=self._seconds(line, number),
            detail=str(line.get("detail", "")),
        )
        self._found.append(
            TapedExchange(
                request["method"], request["path"], request.get("body"), request["asked"], reply
            )
        )
        self._request = self._head = None
        self._pieces = []

    def _seconds(self, line: dict[str, Any], number: int) -> float:
        ms = line.get("ms")
        if isinstance(ms, int | float) and not isinstance(ms, bool) and 0 <= ms < math.inf:
            return ms / 1000
        self._refuse(number, "its time (ms) is no number from 0 up")

    def _piece(self, line: dict[str, Any], number: int) -> bytes:
        text = line.get("text")
        if isinstance(text, str):
            return text.encode("utf-8", "surrogatepass")
        with contextlib.suppress(binascii.Error, TypeError, ValueError):
            return base64.b64decode(line.get("base64", ""), validate=True)
        self._refuse(number, "its piece is neither text nor base64")

    def _refuse(self, number: int, why: str) -> NoReturn:
        raise _damaged(self._path, number, f"is damaged: {why}")


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _parsed(line: bytes, number: int, path: Path, what: str) -> dict[str, Any]:
    value: Any = None
    with contextlib.suppress(ValueError, RecursionError):  # a decoding error is a ValueError
        value = json.loads(line)
    if not isinstance(value, dict):
        raise _damaged(path, number, what)
    return value


def _check_head(head: dict[str, Any], path: Path) -> None:
    if head.get("format") != FORMAT:
        raise _damaged(path, 1, "is no tape of ipyperplexity")
    version = head.get("version")
    if version != VERSION:
        raise ConfigurationError(
            f"replay: {path.name} is of version {version!r}; this program reads {VERSION}.",
            field="path",
            hint="A newer ipyperplexity has recorded it: pip install -U ipyperplexity.",
        )


def _damaged(path: Path, number: int, what: str) -> ConfigurationError:
    return ConfigurationError(f"replay: {path.name}, line {number}: this {what}.", field="path")
