"""The README tells the truth: its options are the options, its Python runs, its commands are CI's."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import ipyperplexity as pplx
from ipyperplexity import errors
from ipyperplexity.notebook.command_table import COMMANDS
from ipyperplexity.notebook.line import BY_SPELLING
from ipyperplexity.question import OPTIONS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.S)


def test_every_option_stands_in_the_readme_with_its_flags():
    for name in OPTIONS:
        assert f"`{name}`" in README or any(
            f"`{flag} " in README or f"`{flag}`" in README for flag in OPTIONS[name].flags
        ), name
    for flag in BY_SPELLING:
        assert re.search(rf"`{re.escape(flag)}[ `]", README), flag


def test_every_command_stands_in_the_readme():
    for command in COMMANDS:
        assert command in README


def test_every_error_code_stands_in_the_readme():
    for _, error in inspect.getmembers(errors, inspect.isclass):
        if issubclass(error, errors.PerplexityError) and error is not errors.PerplexityError:
            assert f"`{error.code}`" in README, error


@pytest.mark.parametrize("code", [block for block in PYTHON if "getpass" not in block])
def test_the_python_of_the_readme_runs(code, monkeypatch, capsys, tmp_path):
    if "duckdb" in code:
        pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    client = pplx.demo()
    answer = client.ask("What is a lambda?", limit=5)
    namespace = {"pplx": pplx, "client": client, "answer": answer, "papers": answer}
    exec(compile(code, "README.md", "exec"), namespace)


def test_ci_runs_the_two_commands_of_the_readme():
    ci = (ROOT / ".ci" / "run").read_text("utf-8")
    blocks = [block.strip() for block in re.findall(r"```bash\n(.*?)```", README, re.S)]
    assert len(blocks) == 2
    install, test = blocks
    assert install.replace("pip install .", "pip install -q .") in ci
    assert test.replace('".[test]"', '".[test]" -q') in ci


def test_every_picture_of_the_readme_is_there():
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README):
        assert (ROOT / picture).stat().st_size > 10_000
