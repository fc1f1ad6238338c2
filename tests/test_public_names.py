"""The names that ``import ipyperplexity`` gives, and what it costs."""

from __future__ import annotations

import ast
import itertools
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import ipyperplexity as pplx

#: Promised in the documentation; more may be added, none taken away.
PROMISED = {
    "Answer", "AnswerStream", "AnswerTable", "Citation", "Client", "PerplexityError", "Question",
    "Source", "Sources", "Usage", "answers", "ask", "demo", "errors", "events", "status", "stream",
    "load_ipython_extension", "unload_ipython_extension", "__version__",
}  # fmt: skip
MODULES = {name for name in pplx.__all__ if isinstance(getattr(pplx, name), ModuleType)}
HEAVY = {
    "IPython", "ipywidgets", "traitlets", "requests", "urllib3", "markdown_it", "nh3", "jsonpatch",
    "pandas", "polars", "pyarrow", "numpy", "nanoarrow", "matplotlib", "pydantic", "sqlite3", "asyncio",
    "http.client", "ssl", "email", "ipyperplexity.client", "ipyperplexity.emulator",
}  # fmt: skip


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def test_every_name_that_is_promised_is_there() -> None:
    assert set(pplx.__all__) >= PROMISED
    assert len(pplx.__all__) == len(set(pplx.__all__))


def test_every_public_name_can_be_had_and_says_what_it_is() -> None:
    for name in pplx.__all__:
        value = getattr(pplx, name)
        if name != "__version__":
            assert value.__doc__, name
            assert not value.__doc__.startswith(f"{name}("), f"{name} has no docstring of its own"
        if isinstance(value, type):
            assert value.__module__.startswith("ipyperplexity."), name


def test_what_a_type_checker_sees_is_what_can_be_had() -> None:
    tree = ast.parse(Path(pplx.__file__).read_text(encoding="utf-8"))
    (block,) = (
        node for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )  # fmt: skip
    declared = {alias.name for node in block.body for alias in node.names}  # type: ignore[attr-defined]
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert declared | (defined - {"__getattr__", "__dir__"}) | {"__version__"} == set(pplx.__all__)


def test_tab_offers_every_name_before_it_is_first_used() -> None:
    missing = run(
        "import ipyperplexity as p; print([n for n in p.__all__ if n not in dir(p)], '_HOMES' in dir(p))"
    )
    assert missing.startswith("[]")


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'aks'"):
        pplx.aks  # noqa: B018
    with pytest.raises(ImportError):
        exec("from ipyperplexity import aks")


def test_star_import_gives_exactly_the_public_names() -> None:
    names = run(
        "from ipyperplexity import *; "
        "print(sorted(n for n in dir() if not n.startswith('__') or n == '__version__'))"
    )
    assert ast.literal_eval(names) == sorted(pplx.__all__)


def test_importing_loads_nothing_heavy() -> None:
    loaded = run(
        "import sys; before = set(sys.modules); import ipyperplexity;"
        "print(sorted(set(sys.modules) - before))"
    )
    new = set(ast.literal_eval(loaded))
    assert not new & HEAVY
    assert {name for name in new if name.startswith("ipyperplexity")} == {
        "ipyperplexity",
        "ipyperplexity.version",
    }


@pytest.mark.parametrize("name", ["Question", "Answer", "Sources", "errors", "answers"])
def test_a_name_of_data_loads_neither_network_nor_notebook_nor_frames(name: str) -> None:
    loaded = run(f"import sys, ipyperplexity; ipyperplexity.{name}; print(sorted(sys.modules))")
    new = set(ast.literal_eval(loaded))
    assert not new & (HEAVY - {"email", "asyncio", "ssl", "http.client"})


def test_no_module_can_take_the_place_of_a_public_name() -> None:
    # Importing a submodule sets it on the package: whoever comes last would win.
    modules = {module.name for module in pkgutil.iter_modules(pplx.__path__)}
    assert modules & set(pplx.__all__) == MODULES & modules


def test_names_mean_the_same_in_whatever_order_things_are_imported() -> None:
    first = ["ipyperplexity.client", "ipyperplexity.batch.answer_table", "ipyperplexity.errors",
             "ipyperplexity.notebook.magic"]  # fmt: skip
    kinds = set()
    for order in itertools.islice(itertools.permutations(first), 0, 24, 7):
        kinds.add(
            run(
                "import importlib, ipyperplexity as p\n"
                f"for name in {order!r}: importlib.import_module(name)\n"
                "print([(n, type(getattr(p, n)).__name__) for n in p.__all__])"
            )
        )
    assert len(kinds) == 1
    assert "('stream', 'function')" in kinds.pop()
