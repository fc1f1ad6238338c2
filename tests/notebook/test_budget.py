"""``%config PerplexityMagics.budget``: what would pass it is not sent."""

from __future__ import annotations

from typing import Any

import pytest

from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.errors import BudgetError
from tests.notebook.conftest import Session

CELLS = [
    "%perplexity What is a lambda?",
    "%%perplexity -m high\nWhat is a lambda?",
    "%perplexity -b search lambda",
    "%perplexity --background What is a lambda?",
]


@pytest.mark.parametrize("mode", ["Context", "Verbose", "Plain", "Minimal"])
def test_what_would_pass_the_budget_is_refused_in_two_lines_and_not_sent(
    session: Session, server: EmulatorServer, mode: str
) -> None:
    session.good(f"%xmode {mode}\n%config PerplexityMagics.budget = 0.0001")
    for cell in CELLS:
        ran = session.run(cell)
        assert isinstance(ran.error, BudgetError)
        assert ran.out.strip().startswith("BudgetError: budget: a ")
        assert len(ran.out.strip().splitlines()) <= 2 and "It was not sent." in ran.out
        assert "%config PerplexityMagics.budget = " in ran.out
    assert not server.requests
    session.good("%xmode Context")


def test_the_budget_is_what_this_kernel_spends_in_all(
    session: Session, server: EmulatorServer
) -> None:
    session.good("%config PerplexityMagics.budget = 0.006")
    session.good("%perplexity -b search -q lambda")  # 0.005
    assert isinstance(session.run("%perplexity -b search tuple").error, BudgetError)
    session.good("%config PerplexityMagics.budget = 0.011")
    session.good("%perplexity -b search -q tuple")
    session.good("%config PerplexityMagics.budget = None")
    session.good("%perplexity -b search -q set")
    assert len(server.requests) == 3


def test_a_stored_budget_holds_in_every_notebook_and_gives_way_to_its_own(
    session: Session, server: EmulatorServer
) -> None:
    session.good("%perplexity config budget=0")
    assert isinstance(session.run("%perplexity Why?").error, BudgetError) and not server.requests
    assert "budget=0" in session.good("%perplexity status").out
    session.good("%config PerplexityMagics.budget = 1")
    session.good("%perplexity -q What is a lambda?")


def test_the_demo_is_free(session: Session) -> None:
    session.good("%config PerplexityMagics.budget = 0\n%perplexity demo on")
    session.good("%perplexity -q What is a lambda?\n%perplexity -b search -q lambda")


@pytest.mark.parametrize("value", ["-1", "float('inf')", "float('nan')", "'ten'"])
def test_a_budget_that_is_no_sum_of_money_is_refused_and_the_old_one_stays(
    session: Session, value: str, caplog: Any
) -> None:
    magics = session.shell.magics_manager.registry["PerplexityMagics"]
    session.good("%config PerplexityMagics.budget = 2")
    session.run(f"%config PerplexityMagics.budget = {value}")
    assert magics.budget == 2.0 and "budget" in caplog.text
