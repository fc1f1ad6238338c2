"""Run the notebooks from top to bottom in a real kernel, on the embedded engine."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "notebooks"
NAMES = tuple(sorted(path.stem for path in FOLDER.glob("*.ipynb")))
#: Cells with this tag show something that only works elsewhere; a test of their own runs them.
ELSEWHERE = "elsewhere"


class ThisPython(AsyncKernelManager):
    """Starts kernels of the Python that runs the tests, whatever kernels the machine has."""

    @property
    def kernel_spec(self) -> KernelSpec:
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="Python 3 (ipykernel)", language="python")


@contextmanager
def a_visitor(**more: str):
    """Yield an environment of somebody without a key: an empty home, and the demo."""
    with tempfile.TemporaryDirectory() as home:
        keep = ("PATH", "LANG", "TMPDIR", "SYSTEMROOT", "MPLBACKEND", "VIRTUAL_ENV")
        env = {name: os.environ[name] for name in keep if name in os.environ}
        yield {
            **env,
            "HOME": home,
            "IPYPERPLEXITY_HOME": f"{home}/state",
            "IPYTHONDIR": f"{home}/ipython",
            "IPYPERPLEXITY_BACKEND": "demo",
            "PYTHONPATH": str(FOLDER.parent),
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
            **more,
        }


def run(name: str, env: dict[str, str]) -> nbformat.NotebookNode:
    """Return a notebook with the outputs of a run.

    Raises
    ------
    CellExecutionError
        If a cell fails.
    """
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    client = NotebookClient(
        notebook,
        timeout=120,
        kernel_manager_class=ThisPython,
        skip_cells_with_tag=ELSEWHERE,
        record_timing=False,
        resources={"metadata": {"path": env["HOME"]}},
    )
    client.execute(env=env)
    for cell in notebook.cells:  # how a front end would show it; nothing that changes by itself
        cell.metadata.pop("execution", None)
    return notebook


def write(name: str) -> None:
    """Run a notebook, and save it with what came of it."""
    with a_visitor() as env:
        notebook = run(name, env)
    nbformat.validate(notebook)
    nbformat.write(notebook, FOLDER / f"{name}.ipynb")
