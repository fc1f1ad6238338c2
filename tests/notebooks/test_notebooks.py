"""The notebooks run from top to bottom for a visitor without a key, and say what they showed."""

from __future__ import annotations

import json
import re

import nbformat
import pytest

from tests.notebooks.running import ELSEWHERE, FOLDER, NAMES, a_visitor, run


def outputs(notebook: nbformat.NotebookNode) -> list[str]:
    """Return what a reader sees below the cells, as one text a cell with code."""
    texts = []
    for cell in notebook.cells:
        if cell.cell_type == "code" and ELSEWHERE not in cell.metadata.get("tags", ()):
            texts.append("\n".join(json.dumps(dict(output)) for output in cell.outputs))
    return texts


def committed(name: str) -> nbformat.NotebookNode:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def test_all_three_are_there() -> None:
    assert NAMES == ("data_analysis", "quickstart", "teaching")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.timeout(300)
def test_a_notebook_runs_from_top_to_bottom_on_the_demo(name: str) -> None:
    with a_visitor() as env:
        ran = run(name, env)
    for was, now in zip(outputs(committed(name)), outputs(ran), strict=True):
        assert bool(was) == bool(now), "what is committed shows what a run shows"
        assert '"stream", "name": "stderr"' not in now and '"name": "stderr"' not in now, now


@pytest.mark.parametrize("name", NAMES)
def test_a_committed_notebook_is_valid_and_readable_without_a_kernel(name: str) -> None:
    notebook = committed(name)
    nbformat.validate(notebook)
    shown = [
        output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs
    ]
    assert len(shown) >= 8
    for output in shown:
        assert output.output_type != "error"
        if "data" in output:
            assert "text/plain" in output.data, "what every reader can show"
    assert len(notebook.metadata) <= 2, "nothing of the machine that ran it"


@pytest.mark.parametrize("name", NAMES)
def test_a_committed_notebook_holds_nothing_of_the_machine_that_ran_it(name: str) -> None:
    text = (FOLDER / f"{name}.ipynb").read_text("utf-8")
    assert not re.search(r"/(home|root|Users|work|tmp|opt)/|[A-Z]:\\\\", text)
    assert not re.search(r"pplx-\w{20,}|127\.0\.0\.1:\d+", text)
    assert len(text) < 600_000


@pytest.mark.parametrize("name", NAMES)
def test_links_between_the_notebooks_lead_somewhere(name: str) -> None:
    for cell in committed(name).cells:
        if cell.cell_type == "markdown":
            for target in re.findall(r"\]\(([^)#]+)\)", cell.source):
                assert (FOLDER / target).exists(), target
