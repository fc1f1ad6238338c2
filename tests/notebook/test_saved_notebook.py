"""What is in the file after a notebook has been run with nobody watching, as in ``jupyter execute``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.emulator.faults import Behavior
from tests.notebook.conftest import KEY
from tests.notebook.kernels import ROOT


def run(tmp_path: Path, *cells: str) -> Any:
    """Run cells in a new kernel, save, and return what a reader opens again."""
    path = tmp_path / "lesson.ipynb"
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(notebook, timeout=60, resources={"metadata": {"path": "."}})
    client.create_kernel_manager()
    client.km.kernel_spec.argv[0] = sys.executable  # type: ignore[union-attr]
    try:
        client.execute()
    finally:
        nbformat.write(notebook, path)
    saved = nbformat.read(path, as_version=4)
    nbformat.validate(saved)
    return saved


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def test_a_saved_notebook_shows_the_answer_without_any_widget(
    tmp_path: Path, server: EmulatorServer
) -> None:
    saved = run(
        tmp_path,
        "%load_ext ipyperplexity",
        "%%perplexity -o a\nWhat is a lambda?",
        "a.sources",
    )
    _, asking, table = saved.cells
    (output,) = asking.outputs
    assert output.output_type == "display_data" and set(output.data) == {"text/html", "text/plain"}
    for form in output.data.values():
        assert "anonymous" in form and "docs.python.org" in form
    assert "lambda" in table.outputs[0].data["text/html"]
    assert "widgets" not in saved.metadata and "widget-view" not in str(saved)
    assert KEY not in str(saved)


def test_a_failure_ends_the_run_and_is_readable_in_the_file(
    tmp_path: Path, server: EmulatorServer
) -> None:
    server.next(Behavior(cut_after=30, chunk_chars=3))
    with pytest.raises(CellExecutionError) as caught:
        run(
            tmp_path,
            "%load_ext ipyperplexity",
            "%config PerplexityMagics.max_retries = 0",
            "%%perplexity -o a\nWhat is a lambda?",
            "print('not run')",
        )
    assert caught.value.ename == "StreamError" and len(str(caught.value).splitlines()) < 16
    saved = nbformat.read(tmp_path / "lesson.ipynb", as_version=4)
    shown, error = saved.cells[2].outputs
    assert "failed" in shown.data["text/plain"] and len(error.traceback) <= 4
    assert not saved.cells[3].outputs
