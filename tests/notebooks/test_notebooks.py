"""The notebooks run from top to bottom for a visitor without a key, and say what they showed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nbformat
import pytest

from ipyperplexity.emulator import EmulatorServer
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


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["teaching", "quickstart"])
def test_one_notebook_runs_for_the_teacher_and_from_the_tape_with_not_a_line_changed(
    name: str, tmp_path: Path
) -> None:
    tape = tmp_path / "lesson.tape"
    key = "pplx-" + "t34cher" * 4
    with EmulatorServer(pace=0, api_key=key) as server:
        own = {"PERPLEXITY_API_KEY": key, "PERPLEXITY_BASE_URL": server.url}
        with a_visitor(**own, IPYPERPLEXITY_BACKEND="agent", IPYPERPLEXITY_RECORD=str(tape)) as env:
            taught = run(name, env)
        n_asked = server.used_requests
    assert n_asked >= 6 and key not in tape.read_text("utf-8")
    # A student: no key, and no way out.
    nowhere = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    replay = {"IPYPERPLEXITY_REPLAY": str(tape), "IPYPERPLEXITY_REPLAY_SPEED": "0"}
    with a_visitor(**nowhere, **replay, IPYPERPLEXITY_BACKEND="agent") as env:
        learnt = run(name, env)
    for one, other in zip(said(taught), said(learnt), strict=True):
        assert one == other


def said(notebook: nbformat.NotebookNode) -> list[str]:
    """Return what the cells say in text, without times, dates and costs."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type != "code" or re.search("status|usage|compare", cell.source):
            continue
        texts = [o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs]
        lines = "\n".join(texts).splitlines()
        found.append(
            "\n".join(
                line for line in lines if not re.search(r" · (\d+\.\d s|from the cache) · ", line)
            )
        )
    return found
