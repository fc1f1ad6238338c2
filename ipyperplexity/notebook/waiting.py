"""How far a job is, shown while a cell waits for it: one line, written anew in its place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ipyperplexity import hooks

if TYPE_CHECKING:
    from ipyperplexity.jobs import Progress

_Show = Callable[["Progress"], object]


def register(shell: Any) -> None:
    """Have ``job.wait()`` show the progress in this shell."""
    hooks.show_progress = _in_kernel if hasattr(shell, "kernel") else _on_terminal


def unregister() -> None:
    """Leave nothing behind."""
    hooks.show_progress = None


@contextmanager
def _in_kernel() -> Iterator[_Show | None]:
    from IPython.display import display

    from ipyperplexity.jobs import progress_line
    from ipyperplexity.markup import page

    handle: Any = None

    def show(progress: Progress) -> None:
        nonlocal handle
        line = progress_line(progress)
        bundle = {"text/plain": line, "text/html": page.wrap(page.status_line(line))}
        if handle is None:
            handle = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            handle.update(bundle, raw=True)

    yield show


@contextmanager
def _on_terminal() -> Iterator[_Show | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from ipyperplexity.jobs import progress_line
    from ipyperplexity.markup import terminal

    widest = 0

    def show(progress: Progress) -> None:
        nonlocal widest
        line = terminal.fit(progress_line(progress), terminal.columns() - 1)
        width = terminal.display_width(line)
        widest = max(widest, width)
        print(f"\r{line}{' ' * (widest - width)}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        # Whatever ended the waiting: an answer, a failure or Ctrl-C begins on a line of its own.
        if widest:
            print(file=sys.stderr, flush=True)
