from __future__ import annotations

import atexit
import contextlib
import io
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from ipyperplexity import spending
from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.store import ledger
from tests.notebook.kernels import Kernel, kernel_pythons

#: Looks like no Perplexity key, so only knowing it can hide it.
KEY = "kx-4f9a7c1e5bd2"


@dataclass(frozen=True)
class Ran:
    """What became of a cell."""

    out: str
    error: BaseException | None
    result: Any


class Session:
    """A fresh IPython, without a kernel, and all that it has printed."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.printed = ""

    def run(self, cell: str) -> Ran:
        """Run a cell as a user would; both outputs together are what a screen shows."""
        screen = io.StringIO()
        with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
            result = self.shell.run_cell(cell, store_history=True)
        self.printed += screen.getvalue()
        return Ran(
            screen.getvalue(), result.error_before_exec or result.error_in_exec, result.result
        )

    def good(self, cell: str) -> Ran:
        """Run a cell that must not fail."""
        ran = self.run(cell)
        assert ran.error is None, "".join(traceback.format_exception(ran.error))
        return ran

    def __getitem__(self, name: str) -> Any:
        return self.shell.user_ns[name]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the machine's own settings is seen, and nothing is written to its folders."""
    for name in ("PPLX_API_KEY", "IPYPERPLEXITY_BACKEND", "IPYPERPLEXITY_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PERPLEXITY_API_KEY", KEY)
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    # As in a new kernel: nothing has been asked yet, and nothing spent.
    monkeypatch.setattr(ledger, "_ledger", ledger.Ledger())
    monkeypatch.setattr(spending, "_account", spending._Account())


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatorServer]:
    with EmulatorServer(pace=0, api_key=KEY) as running:
        monkeypatch.setenv("PERPLEXITY_BASE_URL", running.url)
        yield running


@pytest.fixture
def bare_shell(tmp_path: Path) -> Iterator[Any]:
    config = Config()
    config.HistoryManager.enabled = False
    config.ProfileDir.location = str(tmp_path / "profile")
    config.InteractiveShell.colors = "nocolor"
    main, hook = sys.modules["__main__"], sys.displayhook
    shell = InteractiveShell.instance(config=config)
    try:
        yield shell
    finally:
        shell.extension_manager.unload_extension("ipyperplexity")
        shell.restore_sys_module_state()
        InteractiveShell.clear_instance()
        atexit.unregister(shell.atexit_operations)  # or all shells live on, and end one by one
        sys.modules["__main__"], sys.displayhook = main, hook


@pytest.fixture
def session(bare_shell: Any, server: EmulatorServer) -> Session:
    session = Session(bare_shell)
    session.good("%load_ext ipyperplexity\n%config PerplexityMagics.max_retries = 0")
    return session


@pytest.fixture(scope="module", params=kernel_pythons(), ids=lambda python: python.label)
def running_kernel(request: pytest.FixtureRequest) -> Iterator[Kernel]:
    """One kernel for a module: it starts in seconds, and its cells do not depend on each other."""
    with Kernel(request.param) as kernel:
        yield kernel


@pytest.fixture
def kernel(running_kernel: Kernel, server: EmulatorServer) -> Kernel:
    running_kernel.start_over(server.url, KEY)
    return running_kernel
