"""The embedded engine of this process: one, shared, started when it is first needed.

It runs in daemon threads on a free port of this machine and ends with the process.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipyperplexity.emulator import EmulatorServer


class DemoEngine:
    """An embedded engine that starts on demand."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server: EmulatorServer | None = None

    @property
    def url(self) -> str | None:
        """Where it answers, or None before it is started."""
        return self._server.url if self._server else None

    def start(self) -> str:
        """Start it if it has not been started, and return where it answers."""
        with self._lock:
            if self._server is None:
                from ipyperplexity.emulator import EmulatorServer

                server = EmulatorServer()
                server.start()
                self._server = server
            return self._server.url


shared = DemoEngine()
