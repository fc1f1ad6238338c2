"""The examples in docstrings do what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import ipyperplexity
from ipyperplexity import demo_engine

MODULES = [
    "ipyperplexity",
    *(
        module.name
        for module in pkgutil.walk_packages(ipyperplexity.__path__, "ipyperplexity.")
        if not module.name.endswith("__main__")
    ),
]


@pytest.fixture(scope="module", autouse=True)
def unpaced_demo() -> Iterator[None]:
    """Let the embedded engine write as fast as it can: its pace is for the eye."""
    demo_engine.shared.start()
    server = demo_engine.shared._server
    assert server is not None
    pace, server.pace = server.pace, 0.0
    yield
    server.pace = pace


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_this_module_hold(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module)
    assert not failed, capsys.readouterr().out


def test_there_are_examples_at_all() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    modules = map(importlib.import_module, MODULES)
    assert sum(len(test.examples) for module in modules for test in finder.find(module)) > 50
