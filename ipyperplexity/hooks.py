"""What a notebook puts in place of defaults of the rooms below it, which know no notebook."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

#: Used by who waits for a job and says nothing else: within it, what it yields is given each
#: Progress of the job; None shows nothing.
show_progress: Callable[[], AbstractContextManager[Callable[[Any], object] | None]] | None = None

#: Runs a stream to its end, showing it in an ``ipywidgets.Output``; returns the answer.
draw_into: Callable[[Any, Any], Any] | None = None
