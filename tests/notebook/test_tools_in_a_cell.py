"""Functions of the notebook that the service may call, given in Python in a cell."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from ipyperplexity import tools
from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.emulator.faults import Behavior
from ipyperplexity.notebook.settings import SettingError
from tests.notebook.conftest import Session
from tests.notebook.kernels import Kernel

#: The first turn calls the function that is offered; the second one quotes what it gave.
CALLING = Behavior(tool_rounds=1)

DEFINE = """
import asyncio, threading
import ipyperplexity as pplx

glossary = {"lambda": "a function without a name"}

def look_up(word: str = "lambda") -> str:
    '''Look a word up in the glossary.'''
    return glossary["lambda"]

def broken() -> str:
    '''Fail.'''
    raise LookupError("no glossary here")

loop = None  # a kernel's own

async def where() -> str:
    '''Tell where this runs.'''
    await asyncio.sleep(0.001)
    on_ours = asyncio.get_running_loop() is loop
    return f"on the kernel's loop: {on_ours}, in {threading.current_thread().name}"

def ask(function):
    return pplx.Client().ask("What is a lambda?", tools=[function])
"""


@pytest.fixture(autouse=True)
def _where_they_run_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "run_coroutines_on", tools.run_coroutines_on)


def test_the_service_calls_a_function_of_the_notebook_and_goes_on(
    session: Session, server: EmulatorServer
) -> None:
    server.next(CALLING)
    session.good(DEFINE)
    answer = session.good("ask(look_up)").result
    assert "`look_up` gave: a function without a name" in answer.text
    assert [call.name for call in answer.tool_calls] == ["look_up"]
    assert len(server.requests) == 2


def test_what_a_function_raises_is_told_to_the_service_and_kept(
    session: Session, server: EmulatorServer
) -> None:
    server.next(CALLING)
    session.good(DEFINE)
    answer = session.good("ask(broken)").result
    (call,) = answer.tool_calls
    assert "LookupError: no glossary here" in call.error and answer.status == "completed"
    assert "no glossary here" in answer.text


def test_a_coroutine_runs_on_a_helper_thread(session: Session, server: EmulatorServer) -> None:
    server.next(CALLING)
    session.good(DEFINE)
    text = session.good("ask(where)").result.text
    assert "on the kernel's loop: False, in ipyperplexity-tools" in text


# --- the kernel's own loop --------------------------------------------------------------------


def test_without_nest_asyncio_the_setting_is_refused_with_the_way_to_get_it(
    session: Session, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setitem(sys.modules, "nest_asyncio", None)  # as if it were not installed
    magics = session.shell.magics_manager.registry["PerplexityMagics"]
    with pytest.raises(SettingError, match=r"pip install 'ipyperplexity\[nest\]'"):
        magics.nest_asyncio = True
    session.run("%config PerplexityMagics.nest_asyncio = True")
    assert "pip install 'ipyperplexity[nest]'" in caplog.text
    assert magics.nest_asyncio is False and tools.run_coroutines_on == "helper thread"


def test_with_it_a_coroutine_runs_on_the_kernels_loop(
    kernel: Kernel, server: EmulatorServer
) -> None:
    pytest.importorskip("nest_asyncio")
    server.next(CALLING, Behavior(), CALLING)
    kernel.run(DEFINE)
    assert kernel.run("loop = asyncio.get_running_loop()").reply["status"] == "ok"
    kernel.run("%config PerplexityMagics.nest_asyncio = True")
    cell = kernel.run("answer = ask(where)")
    assert cell.reply["status"] == "ok", cell.reply
    assert "on the kernel's loop: True, in MainThread" in kernel.value("answer.text")
    assert kernel.value("6 * 7") == 42, "the kernel goes on as ever"
    kernel.run("%config PerplexityMagics.nest_asyncio = False")
    kernel.run("answer = ask(where)")
    assert "on the kernel's loop: False" in kernel.value("answer.text")


def test_reloading_keeps_the_setting_and_unloading_takes_it_back(session: Session) -> None:
    pytest.importorskip("nest_asyncio")
    session.good("%config PerplexityMagics.nest_asyncio = True\n%reload_ext ipyperplexity")
    magics = session.shell.magics_manager.registry["PerplexityMagics"]
    assert magics.nest_asyncio and tools.run_coroutines_on == "kernel"
    session.good("%unload_ext ipyperplexity")
    assert tools.run_coroutines_on == "helper thread"


def test_a_setting_that_is_refused_is_said_in_a_kernel(kernel: Kernel) -> None:
    kernel.run("import sys; kept = sys.modules.pop('nest_asyncio', None)")
    kernel.run("sys.modules['nest_asyncio'] = None")
    cell = kernel.run("%config PerplexityMagics.nest_asyncio = True")
    kernel.run("del sys.modules['nest_asyncio']\nif kept: sys.modules['nest_asyncio'] = kept")
    assert "pip install 'ipyperplexity[nest]'" in str(cell.outputs), cell.outputs
    assert "Traceback" not in str(cell.outputs)
