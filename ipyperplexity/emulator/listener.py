"""The listening socket of the embedded service, and the connections that it took.

Invariant: each connection has a thread of its own, and ``end_connections`` ends them all.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from .handler import Handler

if TYPE_CHECKING:
    from .server import EmulatorServer

__all__ = ["Listener"]


class Listener(ThreadingHTTPServer):
    """Keeps track of live connections and their threads, so that all can be ended."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, address: tuple[str, int], emulator: EmulatorServer) -> None:
        self.emulator = emulator
        self._alive: dict[socket.socket, threading.Thread] = {}
        self._guard = threading.Lock()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, Handler)

    def server_bind(self) -> None:
        # HTTPServer looks its own name up here, which can take seconds without a network.
        socket.socket.bind(self.socket, self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(
            target=self._serve,
            args=(request, client_address),
            name="emulator-connection",
            daemon=True,
        )
        with self._guard:
            self._alive[request] = thread
        thread.start()

    def _serve(self, request: socket.socket, client_address: Any) -> None:
        try:
            self.process_request_thread(request, client_address)
        finally:
            with self._guard:
                self._alive.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep quiet: a client that goes away is no news."""

    def end_connections(self, patience: float) -> None:
        with self._guard:
            alive = dict(self._alive)
        for connection in alive:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        until = time.monotonic() + patience
        for thread in alive.values():
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))
