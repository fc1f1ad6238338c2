"""Where a coroutine runs while synchronous code waits for it.

By default on the loop of one helper thread, which lives as long as the process: what a coroutine
keeps (a connection pool) stays bound to a loop that still runs at the next call. On demand on the
loop that already runs in the calling thread, the kernel's, which nest_asyncio lets run inside
itself; that patches asyncio for the whole process, so it is applied then and never at import.
Invariant: whatever ends the waiting (an interrupt, a stop, a deadline) cancels the coroutine, and
waits for it no longer than ``PARTING`` seconds.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from ipyperplexity.errors import ConfigurationError, MissingLibrary

#: Seconds between two looks at whether to go on waiting.
TICK = 0.05
#: Seconds that a cancelled coroutine is given to tidy up.
PARTING = 0.2


@dataclass(frozen=True)
class Outcome:
    """What became of a coroutine: its value, or what it raised."""

    value: Any = None
    error: BaseException | None = None


def settle(awaitable: Awaitable[Any], watch: Callable[[], None], place: str) -> Outcome:
    """Run an awaitable to its end, and wait for it.

    Parameters
    ----------
    awaitable : awaitable
        It sees the context variables of the caller.
    watch : callable
        Called every ``TICK`` seconds by the waiting thread; what it raises cancels the awaitable.
    place : str
        ``helper thread``, or ``kernel`` for the loop that runs in this thread, if one does.

    Raises
    ------
    MissingLibrary
        If nest_asyncio is needed and not installed.
    ConfigurationError
        If this thread's loop is of a kind that nest_asyncio cannot patch.

    Examples
    --------
    >>> async def three():
    ...     return 3
    >>> settle(three(), lambda: None, "helper thread").value
    3
    """
    if place == "kernel":
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # there is none here: a plain script, or a thread
            loop = None
        if loop is not None:
            try:
                _let_run_inside_itself(loop)
            except (MissingLibrary, ConfigurationError):
                _discard(awaitable)
                raise
            return _on_running_loop(loop, awaitable, watch)
    return _on_helper_thread(awaitable, watch)


def check_place(place: str) -> None:
    """Raise MissingLibrary if coroutines cannot run there for lack of nest_asyncio."""
    if place == "kernel" and importlib.util.find_spec("nest_asyncio") is None:
        raise MissingLibrary(
            "Running coroutine tools on the kernel's loop needs nest_asyncio. "
            "Install it: pip install 'ipyperplexity[nest]'",
            name="nest_asyncio",
        )


def _discard(awaitable: Any) -> None:
    if hasattr(awaitable, "close"):  # a coroutine that is never begun would be warned of
        awaitable.close()


async def _outcome(awaitable: Awaitable[Any]) -> Outcome:
    try:
        return Outcome(await awaitable)
    except BaseException as error:  # an exit() in it must not end the loop that others run on
        return Outcome(error=error)


# --- the helper thread ---------------------------------------------------------------------------


class _Helper(threading.Thread):
    """A thread that only runs its loop."""

    def __init__(self) -> None:
        super().__init__(name="ipyperplexity-tools", daemon=True)
        self.loop = asyncio.new_event_loop()

    def run(self) -> None:
        self.loop.run_forever()
        self.loop.close()

    def leave(self) -> None:
        """End once all that runs on the loop has ended."""
        asyncio.run_coroutine_threadsafe(self._end(), self.loop)

    async def _end(self) -> None:
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(others)
        self.loop.stop()


_lock = threading.Lock()
_shared: _Helper | None = None


def _take_helper() -> tuple[_Helper, bool]:
    """Return a helper, and whether it is for this one call only."""
    global _shared
    # A coroutine tool may ask a question itself, with coroutine tools: that cannot wait for the
    # loop that it holds up.
    is_nested = isinstance(threading.current_thread(), _Helper)
    with _lock:
        if not is_nested and _shared is not None and _shared.is_alive():
            return _shared, False
        helper = _Helper()
        helper.start()
        if not is_nested:
            _shared = helper
        return helper, is_nested


def _give_up(helper: _Helper) -> None:
    """Let go of a helper that something blocks."""
    global _shared
    with _lock:
        if _shared is helper:
            _shared = None
    helper.leave()


class _Job:
    """An awaitable on the loop of another thread."""

    def __init__(self, awaitable: Awaitable[Any], loop: asyncio.AbstractEventLoop) -> None:
        self.over = threading.Event()
        self.outcome = Outcome()
        self._awaitable = awaitable
        self._loop = loop
        self._task: asyncio.Task[Any] | None = None
        self._is_given_up = False

    async def work(self) -> None:
        self._task = asyncio.current_task()
        try:
            if self._is_given_up:
                _discard(self._awaitable)
            else:
                self.outcome = await _outcome(self._awaitable)
        finally:
            self.over.set()

    def give_up(self) -> bool:
        """Cancel it; return whether it has ended, a moment later."""
        self._is_given_up = True
        self._loop.call_soon_threadsafe(self._cancel)
        return self.over.wait(PARTING)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


def _on_helper_thread(awaitable: Awaitable[Any], watch: Callable[[], None]) -> Outcome:
    helper, only_once = _take_helper()
    job = _Job(awaitable, helper.loop)
    # An interrupt may come at any moment from here on, also before the next line is through.
    try:
        # asyncio hands the context variables of this thread on to the coroutine.
        asyncio.run_coroutine_threadsafe(job.work(), helper.loop)
        while not job.over.wait(TICK):
            watch()
        return job.outcome
    except BaseException:
        if not job.give_up():  # it blocks the loop, or will not be cancelled
            _give_up(helper)
        raise
    finally:
        if only_once:
            helper.leave()


def _forget_helper() -> None:
    """In a forked child: its parent's thread is not there."""
    global _shared, _lock
    _shared, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helper)


# --- the kernel's loop ---------------------------------------------------------------------------


def _let_run_inside_itself(loop: asyncio.AbstractEventLoop) -> None:
    check_place("kernel")
    import nest_asyncio

    problem = ""
    try:
        nest_asyncio.apply(loop)
    except ValueError as error:  # a loop that is not asyncio's own, such as uvloop's
        problem = str(error)
    if problem:
        raise ConfigurationError(
            f"nest_asyncio: {problem}",
            field="nest_asyncio",
            hint="Switch it off: %config PerplexityMagics.nest_asyncio = False",
        )


def _on_running_loop(
    loop: asyncio.AbstractEventLoop, awaitable: Awaitable[Any], watch: Callable[[], None]
) -> Outcome:
    task = loop.create_task(_outcome(awaitable))
    try:
        while not task.done():
            loop.run_until_complete(asyncio.wait({task}, timeout=TICK))
            if not task.done():
                watch()
    except BaseException:
        task.cancel()
        loop.run_until_complete(asyncio.wait({task}, timeout=PARTING))
        raise
    return task.result()
