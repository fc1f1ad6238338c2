"""A real kernel in a process of its own, and everything that it publishes.

Which ones: that of this Python, and those of the executables that ``IPYPERPLEXITY_TEST_KERNELS``
lists (joined as in ``PATH``).
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from jupyter_client.manager import KernelManager

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0


@dataclass(frozen=True)
class KernelPython:
    """A Python that can run a kernel."""

    executable: str
    label: str


def kernel_pythons() -> list[KernelPython]:
    more = os.environ.get("IPYPERPLEXITY_TEST_KERNELS", "")
    executables = [sys.executable, *filter(None, more.split(os.pathsep))]
    return [KernelPython(path, _label(path)) for path in executables]


def _label(executable: str) -> str:
    code = "import ipykernel; print(ipykernel.__version__)"
    found = subprocess.run([executable, "-c", code], capture_output=True, text=True, check=True)
    return f"ipykernel-{found.stdout.strip()}"


@dataclass
class Cell:
    """A cell that was sent, and all messages about it, with the seconds of their arrival."""

    id: str
    sent: float
    messages: list[dict[str, Any]] = field(default_factory=list)
    arrived: list[float] = field(default_factory=list)
    reply: dict[str, Any] = field(default_factory=dict)

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the contents of the messages of these types, in order."""
        return [m["content"] for m in self.messages if m["header"]["msg_type"] in kinds]

    def count(self, kind: str) -> int:
        return len(self.of(kind))

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """What is left below the cell, as a front end and a saved notebook would have it."""
        left: list[dict[str, Any]] = []
        for message in self.messages:
            kind, content = message["header"]["msg_type"], message["content"]
            if kind in ("display_data", "execute_result", "error", "stream"):
                left.append({"output_type": kind, **content})
            elif kind == "clear_output":
                left.clear()
            elif kind == "update_display_data":
                wanted = content["transient"]["display_id"]
                for output in left:
                    if output.get("transient", {}).get("display_id") == wanted:
                        output["data"] = content["data"]
        return left

    @property
    def error(self) -> dict[str, Any]:
        (content,) = self.of("error")
        return content

    @property
    def printed(self) -> str:
        return "".join(content["text"] for content in self.of("stream"))

    @property
    def seconds(self) -> float:
        return self.arrived[-1] - self.sent


class Kernel:
    """A kernel, spoken to as a front end does; a context manager."""

    def __init__(self, python: KernelPython) -> None:
        self._folder = tempfile.TemporaryDirectory()
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
            "IPYTHONDIR": self._folder.name,
            "HOME": self._folder.name,
            "JUPYTER_RUNTIME_DIR": self._folder.name,
        }
        for name in ("IPYPERPLEXITY_BACKEND", "IPYPERPLEXITY_MODEL", "PPLX_API_KEY"):
            environment.pop(name, None)
        self.manager = KernelManager()
        self.manager.kernel_spec.argv[0] = python.executable
        self.manager.start_kernel(env=environment, cwd=self._folder.name)
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()
        self._folder.cleanup()

    def start_over(self, url: str, key: str) -> None:
        """Ask this server from now on, with a newly loaded extension and no variables."""
        cell = self.run(
            "%reset -f\n"
            "import os\n"
            f"os.environ['PERPLEXITY_BASE_URL'] = {url!r}\n"
            f"os.environ['PERPLEXITY_API_KEY'] = {key!r}\n"
            "%reload_ext ipyperplexity\n"
            "%config PerplexityMagics.max_retries = 0"
        )
        assert cell.reply["status"] == "ok", cell.reply

    def restart(self) -> None:
        """End the kernel's process, and begin another one in its place."""
        self.manager.restart_kernel(now=True)
        self.client.wait_for_ready(timeout=PATIENCE)

    def send(self, code: str, *, allow_stdin: bool = True) -> Cell:
        """Send a cell and go on."""
        return Cell(self.client.execute(code, allow_stdin=allow_stdin), time.monotonic())

    def run(self, code: str, *, allow_stdin: bool = True) -> Cell:
        """Run a cell and wait until it is over."""
        return self.wait(self.send(code, allow_stdin=allow_stdin))

    def wait(self, *cells: Cell) -> Cell:
        """Wait until cells are over; return the first."""
        waiting = {cell.id for cell in cells}
        while waiting:
            message = self._next(cells)
            if _is_idle(message):
                waiting.discard(message["parent_header"].get("msg_id"))
        for cell in cells:
            cell.reply = self._reply(cell.id)
        return cells[0]

    def wait_for(self, cell: Cell, kind: str, number: int = 1) -> None:
        """Wait until so many messages of a type have come."""
        while cell.count(kind) < number:
            message = self._next([cell])
            assert not _is_idle(message), f"the cell ended: {cell.of('error')}"

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the kernel, read from its repr."""
        import ast

        cell = self.run(f"print(repr({expression}))")
        assert cell.reply["status"] == "ok", cell.reply
        return ast.literal_eval(cell.printed)

    def _next(self, cells: Any) -> dict[str, Any]:
        try:
            message: dict[str, Any] = self.client.get_iopub_msg(timeout=PATIENCE)
        except queue.Empty:
            raise AssertionError("the kernel has been silent for a minute") from None
        for cell in cells:
            if message["parent_header"].get("msg_id") == cell.id:
                cell.messages.append(message)
                cell.arrived.append(time.monotonic())
        return message

    def _reply(self, id: str) -> dict[str, Any]:
        while True:
            message = self.client.get_shell_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") == id:
                content: dict[str, Any] = message["content"]
                return content


def _is_idle(message: dict[str, Any]) -> bool:
    return (
        message["header"]["msg_type"] == "status"
        and message["content"]["execution_state"] == "idle"
    )
