"""The ledger: what was asked and what it cost, kept for all kernels, and never in the way."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import sqlite3
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipyperplexity.answer import Answer
from ipyperplexity.answer_parts import Usage
from ipyperplexity.errors import PerplexityWarning
from ipyperplexity.store import ledger as ledger_module
from ipyperplexity.store.ledger import Ledger
from ipyperplexity.store.ledger_entry import SESSION, LedgerEntry, notebook_name
from tests.store.processes import run_at_once, start

NOON = dt.datetime(2026, 10, 9, 12, tzinfo=dt.UTC)
KEY = "pplx-abcdef0123456789"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("IPYPERPLEXITY_LEDGER", raising=False)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    return tmp_path / "home"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """A warning that a test does not expect is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", PerplexityWarning)
        yield


def asked(model: str, cost: float | None, minute: int = 0, **facts: Any) -> LedgerEntry:
    at = NOON + dt.timedelta(minutes=minute)
    return LedgerEntry("ask", asked_model=model, cost_usd=cost, at=at, **facts)


def test_an_entry_holds_what_the_answer_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", "/work/Analysis.ipynb")
    usage = Usage(10, 20, 30, 5, 2, 0.004)
    answer = Answer(
        "Why?",
        "So.",
        usage=usage,
        model="openai/gpt-6-luna",
        id="resp_1",
        elapsed=1.5,
        created=NOON,
    )
    entry = LedgerEntry.of_answer(answer, "batch", "low")
    assert (entry.kind, entry.asked_model, entry.model) == ("batch", "low", "openai/gpt-6-luna")
    assert (entry.backend, entry.status, entry.answer_id) == ("agent", "completed", "resp_1")
    tokens = (entry.input_tokens, entry.output_tokens, entry.total_tokens, entry.reasoning_tokens)
    assert tokens == (10, 20, 30, 5)
    assert (entry.searches, entry.cost_usd, entry.elapsed_s) == (2, 0.004, 1.5)
    assert (entry.question, entry.at) == ("Why?", NOON)
    assert (entry.session, entry.notebook) == (SESSION, "/work/Analysis.ipynb")


def test_the_demo_costs_nothing_whatever_it_shows() -> None:
    answer = Answer("Why?", "So.", usage=Usage(cost_usd=0.5), backend="demo")
    assert LedgerEntry.of_answer(answer, "ask", "low").cost_usd == 0.0


def test_a_question_is_kept_as_one_short_line_without_a_key() -> None:
    entry = LedgerEntry("ask", question=f"What\n is {'x' * 60} {KEY} and more")
    assert len(entry.question) <= 80
    assert "\n" not in entry.question and "pplx" not in entry.question
    late = LedgerEntry("ask", question="y" * 70 + f" {KEY}")  # would be cut to half a key
    assert "pplx" not in late.question
    assert LedgerEntry("ask", question="z" * 81).question == "z" * 79 + "…"
    assert LedgerEntry("ask", question="z" * 80).question == "z" * 80


def test_half_of_a_surrogate_pair_does_not_keep_a_row_from_the_disk() -> None:
    Ledger().record(LedgerEntry("ask", question="a\ud800b", model="\udfff"))
    assert [entry.question for entry in Ledger().entries()] == ["a?b"]


def test_rows_outlive_the_kernel_and_come_oldest_first() -> None:
    first = Ledger()
    first.record(asked("high", 0.5, 2, question="second"))
    first.record(asked("low", 0.004, 1, question="first", total_tokens=12))
    first.close()
    entries = Ledger().entries()
    assert [entry.question for entry in entries] == ["first", "second"]
    assert entries == sorted(first.entries(), key=lambda entry: entry.at)


values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just(10**400)
)
texts = st.text(st.characters(codec=None), max_size=200)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values, values, texts, texts)
def test_whatever_a_service_says_can_be_recorded(
    count: Any, cost: Any, model: str, question: str
) -> None:
    usage = Usage(count, count, count, count, count, cost)
    answer = Answer(question, "", usage=usage, model=model, id=model, elapsed=cost)
    ledger = Ledger()
    entry = LedgerEntry.of_answer(answer, "ask", model)
    ledger.record(entry)
    assert entry in Ledger().entries()
    assert Ledger().last_costs().keys() == ledger.last_costs().keys()
    ledger.close()


# --- which rows -----------------------------------------------------------------------------------


@pytest.fixture
def three() -> Ledger:
    ledger = Ledger()
    ledger.record(asked("low", 0.1, 0, session="a", notebook="one.ipynb", question="a1"))
    ledger.record(asked("low", 0.2, 1, session="b", notebook="one.ipynb", question="b1"))
    ledger.record(asked("low", 0.3, 2, session="b", notebook="two.ipynb", question="b2"))
    return ledger


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, ["a1", "b1", "b2"]),
        ({"session": "b"}, ["b1", "b2"]),
        ({"notebook": "one.ipynb"}, ["a1", "b1"]),
        ({"session": "a", "notebook": "two.ipynb"}, ["a1", "b2"]),
        ({"since": NOON + dt.timedelta(minutes=1)}, ["b1", "b2"]),
        ({"since": NOON + dt.timedelta(minutes=1), "notebook": "one.ipynb"}, ["b1"]),
        ({"since": (NOON + dt.timedelta(minutes=2)).astimezone().replace(tzinfo=None)}, ["b2"]),
        ({"session": "none"}, []),
    ],
)
def test_rows_of_a_session_a_notebook_or_a_time(
    three: Ledger, wanted: dict[str, Any], found: list[str], reopened: bool
) -> None:
    ledger = Ledger() if reopened else three
    assert [entry.question for entry in ledger.entries(**wanted)] == found


# --- what each costs ------------------------------------------------------------------------------


@pytest.mark.parametrize("reopened", [False, True])
def test_the_newest_cost_of_each_is_told_with_its_time(reopened: bool) -> None:
    ledger = Ledger()
    for entry in (
        asked("low", 0.004, 1),
        asked("low", 0.005, 3),
        asked("low", 0.009, 2),
        asked("low", None, 4),
        asked("low", 0.0, 5, backend="demo"),
        asked("high", 0.4, 0),
        asked("", 9.0, 9),
        asked("gone", None, 9),
    ):
        ledger.record(entry)
    ledger = Ledger() if reopened else ledger
    assert ledger.last_costs() == {
        "low": (0.005, NOON + dt.timedelta(minutes=3)),
        "high": (0.4, NOON),
    }
    assert ledger.recent_costs("low") == [0.005, 0.009, 0.004]
    assert ledger.recent_costs("low", 1) == [0.005]
    assert ledger.recent_costs("fast") == []


def test_a_newer_cost_of_another_kernel_counts_and_so_does_a_newer_one_of_this() -> None:
    mine, other = Ledger(), Ledger()
    mine.record(asked("low", 0.1, 1))
    other.record(asked("low", 0.2, 2))
    assert mine.last_costs()["low"][0] == other.last_costs()["low"][0] == 0.2
    mine.record(asked("low", 0.3, 3))
    assert other.last_costs()["low"][0] == 0.3


# --- when the disk fails --------------------------------------------------------------------------


def works_in_memory(ledger: Ledger) -> None:
    with pytest.warns(PerplexityWarning, match="until this kernel ends") as caught:
        for number in range(3):
            ledger.record(asked("low", 0.1 * number, number))
        assert [entry.cost_usd for entry in ledger.entries()] == [0.0, 0.1, 0.2]
        assert ledger.last_costs()["low"][0] == 0.2
        assert ledger.recent_costs("low", 2) == [0.2, 0.1]
    assert len(caught) == 1


def test_a_place_that_cannot_be_used_costs_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain").write_text("x")
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path / "plain"))
    works_in_memory(Ledger())


def test_a_home_that_makes_no_sense_costs_one_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYPERPLEXITY_HOME", "~nobody-of-this-name/x")
    works_in_memory(Ledger())


def test_a_table_of_another_make_costs_one_warning(home: Path) -> None:
    (home / "state").mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(home / "state" / "ledger.db")) as connection:
        connection.execute("CREATE TABLE requests (asked_model, something)")
    works_in_memory(Ledger())


def test_a_file_that_another_program_keeps_locked_costs_one_warning(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "_PATIENCE", 0.05)
    Ledger().record(asked("fast", 0.001))
    with contextlib.closing(
        sqlite3.connect(home / "state" / "ledger.db", isolation_level=None)
    ) as connection:
        connection.execute("BEGIN IMMEDIATE")
        works_in_memory(Ledger())


def test_a_damaged_file_is_set_aside_and_a_new_one_begun(home: Path) -> None:
    (home / "state").mkdir(parents=True)
    (home / "state" / "ledger.db").write_bytes(b"no database" * 100)
    ledger = Ledger()
    with pytest.warns(PerplexityWarning, match=r"ledger\.db\.broken-1"):
        ledger.record(asked("low", 0.1))
    assert len(Ledger().entries()) == 1


def test_another_home_is_noticed_and_a_good_one_is_used_after_a_bad_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger()
    (tmp_path / "plain").write_text("x")
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path / "plain"))
    with pytest.warns(PerplexityWarning):
        ledger.record(asked("low", 0.1))
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path / "good"))
    ledger.record(asked("low", 0.2))
    assert [entry.cost_usd for entry in Ledger().entries()] == [0.2]
    assert len(ledger.entries()) == 2


@pytest.mark.parametrize("off", ["0", "no", " Off "])
def test_it_can_be_kept_in_memory_on_purpose(
    off: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPYPERPLEXITY_LEDGER", off)
    ledger = Ledger()
    ledger.record(asked("low", 0.1))
    assert len(ledger.entries()) == 1
    assert ledger.last_costs()["low"][0] == 0.1
    assert not home.exists()


# --- several at once ------------------------------------------------------------------------------

RECORDER = """
import sys, warnings
warnings.simplefilter("error")
from ipyperplexity.store.ledger import ledger
from ipyperplexity.store.ledger_entry import LedgerEntry
print("ready", flush=True)
sys.stdin.readline()
for number in range(100):
    ledger().record(LedgerEntry("ask", asked_model=sys.argv[1], cost_usd=number / 1000))
    ledger().recent_costs(sys.argv[1])
"""


def test_kernels_that_record_at_once_lose_nothing() -> None:
    run_at_once(RECORDER, 3)
    entries = Ledger().entries()
    assert len(entries) == 300
    assert len({entry.session for entry in entries}) == 3
    assert {name: cost for name, (cost, _) in Ledger().last_costs().items()} == {
        "0": 0.099,
        "1": 0.099,
        "2": 0.099,
    }


def test_threads_that_record_at_once_lose_nothing() -> None:
    ledger = Ledger()

    def work(number: int) -> None:
        for minute in range(20):
            ledger.record(asked(str(number), 0.1, minute))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger.entries()) == len(Ledger().entries()) == 160


def test_what_was_recorded_survives_the_killing_of_the_kernel() -> None:
    code = """
import sys
from ipyperplexity.store.ledger import ledger
from ipyperplexity.store.ledger_entry import LedgerEntry
ledger().record(LedgerEntry("ask", asked_model="low", cost_usd=0.1))
print("ready", flush=True)
sys.stdin.readline()
"""
    process = start(code)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate()
    process.kill()
    process.communicate(timeout=30)
    assert [entry.cost_usd for entry in Ledger().entries()] == [0.1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_child_records_into_the_same_session() -> None:
    ledger = ledger_module.ledger()
    ledger.record(asked("parent", 0.1))
    child = os.fork()
    if child == 0:
        try:
            ledger.record(asked("child", 0.2))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    mine = [entry for entry in ledger.entries(session=SESSION) if entry.at >= NOON]
    assert {"parent", "child"} <= {entry.asked_model for entry in mine}


def test_the_notebook_is_the_one_that_jupyter_names(monkeypatch: pytest.MonkeyPatch) -> None:
    assert notebook_name() == ""
    monkeypatch.setenv("JPY_SESSION_NAME", "x.ipynb")
    assert LedgerEntry("ask").notebook == "x.ipynb"
