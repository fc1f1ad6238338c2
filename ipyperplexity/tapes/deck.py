"""What this process records to, or replays from: one tape at a time, for all its clients.

``IPYPERPLEXITY_RECORD`` and ``IPYPERPLEXITY_REPLAY`` name a tape for a whole process, so that a
notebook runs for a teacher, a class and a visitor without a line changed.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipyperplexity.errors import ConfigurationError, NotOnTapeError, PerplexityWarning
from ipyperplexity.net.redact import Secret
from ipyperplexity.net.transport import Broken, End, Exchange, Head
from ipyperplexity.store.tape_file import (
    COMPLETE,
    TapedExchange,
    TapedReply,
    TapeWriter,
    read_tape,
)
from ipyperplexity.tapes.asked import key_of, nearest, question_of, shorten, what_is_asked
from ipyperplexity.tapes.masking import kept_headers, mask_body, mask_value

RECORD_VARIABLE = "IPYPERPLEXITY_RECORD"
REPLAY_VARIABLE = "IPYPERPLEXITY_REPLAY"
SPEED_VARIABLE = "IPYPERPLEXITY_REPLAY_SPEED"
MAX_SPEED = 1000.0
#: Seconds that an ending recording waits for what is on its way to the file.
_PATIENCE = 5.0


@dataclass(frozen=True)
class Request:
    """What is asked of a service, as a tape knows it."""

    method: str
    path: str
    body: Any

    @property
    def asked(self) -> str:
        """The question, for people."""
        return question_of(self.method, self.path, self.body)

    @property
    def key(self) -> str:
        """The same for two that ask the same."""
        return key_of(self.method, self.path, self.body)


def request_of(method: str, path: str, body: Any, secrets: tuple[Secret | None, ...]) -> Request:
    """Return a request without secrets and without what is different each time."""
    return Request(method, path, mask_value(what_is_asked(body), secrets))


# --- recording ------------------------------------------------------------------------------------


class Recording:
    """A tape that is being recorded.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._writer = TapeWriter(path)
        self.path = path
        self.n_before = self._writer.n_before
        self.n_recorded = 0
        self._on_their_way = 0
        self._changed = threading.Condition()
        self._has_warned = False

    def listen(
        self, exchange: Exchange, request: Request, secrets: tuple[Secret | None, ...]
    ) -> None:
        """Record an exchange that is about to start."""
        with self._changed:
            self._on_their_way += 1
        exchange.tap = lambda items: self._hear(items, exchange, request, secrets)

    def _hear(
        self,
        items: Iterator[Any],
        exchange: Exchange,
        request: Request,
        secrets: tuple[Secret | None, ...],
    ) -> Iterator[Any]:
        """Hand on what comes, at once; write it down when all of it has come."""
        began = time.monotonic()
        heard: list[tuple[float, Any]] = []
        try:
            for item in items:
                now = time.monotonic() - began
                yield item
                heard.append((now, item))
            if not exchange.was_stopped:  # of what somebody stopped there is no whole answer
                self._write(request, _reply(heard, exchange.was_cut, secrets))
        finally:
            with self._changed:
                self._on_their_way -= 1
                self._changed.notify_all()

    def _write(self, request: Request, reply: TapedReply) -> None:
        taped = TapedExchange(request.method, request.path, request.body, request.asked, reply)
        problem = ""
        try:
            self._writer.write(taped)
        except ConfigurationError as error:  # in the reader's thread, which raises nothing
            problem = error.message
        with self._changed:
            self.n_recorded += not problem
            warns, self._has_warned = problem and not self._has_warned, bool(problem)
        if warns:
            warnings.warn(problem, PerplexityWarning, stacklevel=2)

    def close(self) -> None:
        """End the tape, after waiting for what is on its way."""
        until = time.monotonic() + _PATIENCE
        with self._changed:
            while self._on_their_way and time.monotonic() < until:
                self._changed.wait(0.05)
        self._writer.close()


def _reply(
    heard: list[tuple[float, Any]], was_cut: bool, secrets: tuple[Secret | None, ...]
) -> TapedReply:
    began, head = next(((at, item) for at, item in heard if isinstance(item, Head)), (0.0, None))
    pieces = [(at, item) for at, item in heard if type(item) is bytes]
    ended, last = heard[-1] if heard else (0.0, None)
    broken = last if isinstance(last, Broken) and not was_cut else None
    whole = mask_body(b"".join(piece for _, piece in pieces), secrets)
    masked, at = [], 0
    for seconds, piece in pieces:
        masked.append((seconds, whole[at : at + len(piece)]))
        at += len(piece)
    return TapedReply(
        status=head.status if head else None,
        headers=kept_headers(head.headers) if head else {},
        began=began,
        pieces=tuple(masked),
        end=broken.cause if broken else COMPLETE if head else "broken",
        ended=ended,
        detail=mask_value(broken.detail, secrets) if broken else "",
    )


# --- replaying ------------------------------------------------------------------------------------


class Replaying:
    """A tape that is being replayed.

    Parameters
    ----------
    path : Path
    speed : float
        1 as it was, 4 four times as fast, 0 at once.
    strict : bool
        Whether what is not on the tape is an error; else the demo engine answers it.

    Raises
    ------
    ConfigurationError
        If it cannot be read, or the speed is none.
    """

    def __init__(self, path: Path, speed: float = 1.0, strict: bool = False) -> None:
        self.path = path
        self.speed = checked_speed(speed)
        self.strict = strict
        self.exchanges = read_tape(path)
        self._by_key: dict[str, list[TapedExchange]] = {}
        for exchange in self.exchanges:
            key = key_of(exchange.method, exchange.path, exchange.body)
            self._by_key.setdefault(key, []).append(exchange)
        self._taken: dict[str, int] = {}
        self._lock = threading.Lock()

    def find(self, request: Request) -> TapedReply | None:
        """Return the next reply to a request; after the last one that again. None is a miss.

        Raises
        ------
        NotOnTapeError
            If it is strict, and there is none.
        """
        known = self._by_key.get(request.key)
        if known:
            with self._lock:
                place = self._taken.get(request.key, 0)
                self._taken[request.key] = place + 1
            return known[min(place, len(known) - 1)].reply
        asked = shorten(request.asked)
        like = nearest(request.asked, self.exchanges)
        said = f"{asked!r} is not on the tape {self.path.name}"
        said += f"; the nearest there is {like!r}" if like and like != asked else ""
        # The same words, asked with other options.
        said += ", asked with other options" if like == asked else ""
        if not self.strict:
            warnings.warn(f"{said}. The demo answers.", PerplexityWarning, stacklevel=4)
            return None
        raise NotOnTapeError(f"{said}.", field="question")


class TapeExchange(Exchange):
    """A reply of a tape, on its way through the same queue, reader and decoder as a live one.

    Parameters
    ----------
    reply : TapedReply
    speed : float
    **options
        As of Exchange.
    """

    def __init__(self, reply: TapedReply, speed: float, **options: Any) -> None:
        super().__init__(_sends_nothing, **options)
        self._reply, self._speed = reply, speed

    def _read(self) -> Iterator[Any]:
        began, reply = time.monotonic(), self._reply
        if reply.status is not None and self._waits(began, reply.began):
            yield Head(reply.status, _AnyCase(reply.headers))
            for seconds, piece in reply.pieces:
                if not self._waits(began, seconds):
                    break
                yield piece
        self._waits(began, reply.ended)
        with self._lock:
            self._finished.set()
        yield End() if reply.end == COMPLETE else Broken(reply.end, reply.detail)

    def _waits(self, began: float, seconds: float) -> bool:
        """Wait until it is time; return False if it was stopped meanwhile."""
        if not self._speed:
            return not self._stopped.is_set()
        left = began + seconds / self._speed - time.monotonic()
        return not self._stopped.wait(left) if left > 0 else not self._stopped.is_set()


class _AnyCase(dict[str, str]):
    """Headers by their names in lower case, found by any spelling."""

    def __getitem__(self, name: str) -> str:
        return super().__getitem__(name.lower())

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name.lower(), default)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and super().__contains__(name.lower())


def _sends_nothing() -> Any:
    raise AssertionError("a tape sends nothing")


def checked_speed(speed: Any) -> float:
    """Return a speed of replaying.

    Raises
    ------
    ConfigurationError
        If it is no number from 0 to 1000.
    """
    number = -1.0
    with suppress(TypeError, ValueError):
        number = -1.0 if isinstance(speed, bool) else float(speed)
    if not 0 <= number <= MAX_SPEED:
        raise ConfigurationError(
            f"speed: got {speed!r}; allowed: a number from 0 (at once) to {MAX_SPEED:g}.",
            field="speed",
        )
    return number


# --- the deck of this process ---------------------------------------------------------------------

#: Starts the embedded engine and returns its address; put here by a room above.
start_demo: Callable[[], str] | None = None
_lock = threading.RLock()
_recording: Recording | None = None
_replaying: Replaying | None = None
#: The variables of the environment that were followed last.
_followed: tuple[str, ...] = ("", "", "")


def recording() -> Recording | None:
    """Return the tape that is being recorded, if there is one."""
    _follow_environment()
    return _recording


def replaying() -> Replaying | None:
    """Return the tape that is being replayed, if there is one."""
    _follow_environment()
    return _replaying


def record(path: Path) -> Recording:
    """Record from now on.

    Raises
    ------
    ConfigurationError
        If a tape is being recorded or replayed already, or it cannot be written.
    """
    global _recording
    with _lock:
        _refuse_two("record")
        _recording = Recording(path)
        return _recording


def replay(path: Path, speed: float = 1.0, strict: bool = False) -> Replaying:
    """Replay from now on.

    Raises
    ------
    ConfigurationError
        If a tape is being recorded already, or it cannot be read.
    """
    global _replaying
    with _lock:
        if _recording is not None:
            _refuse_two("replay")
        _replaying = Replaying(path, speed, strict)  # in place of an earlier one
        return _replaying


def stop_recording() -> Recording | None:
    """End the recording; return it, or None if there is none."""
    global _recording
    with _lock:
        ended, _recording = _recording, None
    if ended is not None:
        ended.close()
    return ended


def stop_replaying() -> Replaying | None:
    """End the replaying; return it, or None if there is none."""
    global _replaying
    with _lock:
        ended, _replaying = _replaying, None
    return ended


def _refuse_two(what: str) -> None:
    running = f"{_recording.path.name} is being recorded" if _recording else ""
    running = running or (f"{_replaying.path.name} is being replayed" if _replaying else "")
    if running:
        word = "record" if _recording else "replay"
        raise ConfigurationError(
            f"{what}: {running}.", field=what, hint=f"End that first: %perplexity {word} stop"
        )


def _follow_environment() -> None:
    """Begin what the environment says, once for each of its states."""
    global _followed
    names = (RECORD_VARIABLE, REPLAY_VARIABLE, SPEED_VARIABLE)
    now = tuple(os.environ.get(name, "").strip() for name in names)
    if now == _followed:
        return
    with _lock:
        if now == _followed:
            return
        tape, lesson, speed = now
        if lesson:
            replay(Path(lesson).expanduser(), checked_speed(speed) if speed else 1.0)
        elif tape and _recording is None:
            record(Path(tape).expanduser())
        # Last: a tape that cannot be played is said of each question, and none goes out live.
        _followed = now


def _after_fork() -> None:
    """In a forked child: the tape that the parent records is the parent's."""
    global _lock, _recording
    _lock = threading.RLock()
    _recording = None


atexit.register(stop_recording)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
