"""Budgets that hold, also for ten questions at once, and the table of what was spent."""

from __future__ import annotations

import datetime as dt
import gc
import os
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from ipyperplexity import spending
from ipyperplexity.answer import Answer
from ipyperplexity.answer_parts import Usage
from ipyperplexity.errors import (
    AuthenticationError,
    BudgetError,
    ConfigurationError,
    InvalidRequestError,
    NetworkError,
    PerplexityError,
    RateLimitError,
    RequestTimeout,
    ServerError,
    StreamError,
)
from ipyperplexity.prices import PRESET_USD, estimate_cost, token_cost
from ipyperplexity.spending import check_amount, check_budget, reserve, spent
from ipyperplexity.store import ledger as ledger_module
from ipyperplexity.store.ledger import Ledger
from ipyperplexity.store.ledger_entry import LedgerEntry
from ipyperplexity.usage_table import UsageTable

NOON = dt.datetime(2026, 10, 9, 12, tzinfo=dt.UTC)


@pytest.fixture(autouse=True)
def afresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A kernel that has just started, of a user who has never asked."""
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path))
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.setattr(ledger_module, "_ledger", Ledger())
    monkeypatch.setattr(spending, "_account", spending._Account())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def recorded(asked: str, *costs: float | None, **facts: Any) -> None:
    for minute, cost in enumerate(costs):
        at = NOON + dt.timedelta(minutes=minute)
        spending.ledger().record(
            LedgerEntry("ask", asked_model=asked, cost_usd=cost, at=at, **facts)
        )


def answered(cost: float | None = None, **facts: Any) -> Answer:
    return Answer("Why?", facts.pop("text", "So."), usage=Usage(cost_usd=cost), **facts)


# --- estimates ------------------------------------------------------------------------------------


def test_a_question_is_expected_to_cost_the_most_that_its_last_five_did() -> None:
    recorded("low", 9.0, 0.001, 0.003, 0.02, 0.004, 0.005)
    estimate = estimate_cost("low", spending.ledger())
    assert estimate.usd == 0.02
    assert "highest of its last 5" in estimate.why


def test_what_the_demo_shows_and_what_nobody_told_is_no_price() -> None:
    recorded("low", 0.0, backend="demo")
    recorded("low", None)
    recorded("low", 7.0, model="demo/offline-search")  # an engine that was served on its own
    assert estimate_cost("low", spending.ledger()).usd == PRESET_USD["low"]


@pytest.mark.parametrize(
    ("model", "usd"),
    [("fast", 0.0018), ("low", 0.004), ("medium", 0.016), ("high", 0.9), ("sonar-pro", 0.004),
     ("deep-research", 0.9), ("search", 0.005)],
)  # fmt: skip
def test_without_records_the_documented_price_counts(model: str, usd: float) -> None:
    assert estimate_cost(model, spending.ledger()).usd == usd


def test_a_model_by_name_is_guessed_by_its_prices_and_an_unknown_one_as_the_dearest() -> None:
    cheap, dear, unknown, bare = (
        estimate_cost(model, spending.ledger())
        for model in ("openai/gpt-6-luna", "openai/gpt-6-astra", "new/model", "xai/grok-4.7")
    )
    assert 0 < cheap.usd < bare.usd < dear.usd == unknown.usd
    assert "guess" in cheap.why and "not known" in unknown.why


def test_tokens_and_searches_make_a_cost_where_the_price_is_known() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=100_000, searches=2)
    assert token_cost("openai/gpt-6-sol", usage) == pytest.approx(2 + 1 + 0.005)
    assert token_cost("some/thing", usage) is None
    assert token_cost("openai/gpt-6-sol", Usage(input_tokens=3)) is None


# --- the budget -----------------------------------------------------------------------------------


def test_a_question_that_would_pass_the_budget_is_refused_with_all_figures() -> None:
    with pytest.raises(BudgetError) as caught:
        check_budget(1.0, 0.5, "high", spending.ledger())
    error = caught.value
    assert (error.code, error.field) == ("BUDGET", "budget")
    for part in ("high", "$0.90", "$0.50 of $1.00", "not sent"):
        assert part in error.message
    assert error.hint is not None
    for part in ("PerplexityMagics.budget", "%perplexity config budget", "Client(budget="):
        assert part in error.hint
    assert error.__context__ is None


def test_a_question_that_fits_exactly_is_asked() -> None:
    check_budget(0.9, 0.0, "high", spending.ledger())
    recorded("x/y", 0.1)
    check_budget(0.3, 0.1 + 0.1, "x/y", spending.ledger())  # 0.30000000000000004
    with pytest.raises(BudgetError):
        check_budget(0.2999, 0.2, "x/y", spending.ledger())


def test_without_a_budget_nothing_is_refused_and_all_is_counted() -> None:
    check_budget(None, 1e9, "high", spending.ledger())
    reserve(None, "high").settle(0.7)
    assert spent() == pytest.approx(0.7)
    with pytest.raises(BudgetError):
        reserve(1.0, "high")


def test_a_budget_of_nothing_refuses_everything() -> None:
    with pytest.raises(BudgetError):
        reserve(0.0, "fast")


def test_what_is_running_counts_until_it_is_settled() -> None:
    first = reserve(1.0, "high")
    with pytest.raises(BudgetError, match="set aside for running"):
        reserve(1.0, "high")
    first.settle(0.05)
    reserve(1.0, "high").settle(0.05)
    assert spent() == pytest.approx(0.1)


def test_a_job_counts_until_it_is_settled_also_if_nobody_holds_it() -> None:
    reserve(1.0, "high").hold()
    gc.collect()
    with pytest.raises(BudgetError, match="set aside for running"):
        reserve(1.0, "high")
    job = reserve(5.0, "high")
    job.hold()
    job.settle(0.05)
    assert spent() == pytest.approx(0.05)


def test_ten_questions_at_once_do_not_pass_the_budget_together() -> None:
    recorded("x/y", 1.0)
    ready = threading.Barrier(10)
    held: list[spending.Reservation] = []
    refused: list[BudgetError] = []

    def ask() -> None:
        ready.wait(30)
        try:
            held.append(reserve(3.5, "x/y"))
        except BudgetError as error:
            refused.append(error)

    threads = [threading.Thread(target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), len(refused)) == (3, 7)


def test_a_question_is_settled_only_once() -> None:
    reserved = reserve(1.0, "low")
    reserved.settle(0.1)
    reserved.settle(0.2)
    reserved.finish(answered(0.3))
    assert spent() == pytest.approx(0.1)


def test_a_cost_that_nobody_knows_counts_as_it_was_set_aside() -> None:
    reserve(1.0, "high").settle(None)
    assert spent() == pytest.approx(0.9)


@pytest.mark.parametrize("cost", [float("nan"), float("inf"), -1.0])
def test_a_cost_that_is_no_price_does_not_spoil_the_sum(cost: float) -> None:
    reserve(None, "low").settle(cost)
    assert spent() == 0.0


def test_a_question_that_is_given_up_unsent_gives_its_part_back() -> None:
    with pytest.raises(ZeroDivisionError), reserve(1.0, "high"):
        1 / 0  # noqa: B018
    dropped = reserve(1.0, "high")
    del dropped
    gc.collect()
    reserve(1.0, "high").settle(0.0)
    assert spent() == 0.0


@pytest.mark.parametrize(
    ("facts", "usd"),
    [
        ({"cost": 0.2}, 0.2),
        ({"cost": 0.2, "status": "stopped"}, 0.2),
        ({"cost": 0.2, "backend": "demo"}, 0.0),
        ({"cost": 0.2, "cached": True}, 0.0),
        ({"backend": "web"}, 0.0),
        ({"status": "stopped"}, 0.9),
        ({"status": "failed", "error": StreamError("broke"), "text": ""}, 0.9),
        ({"status": "failed", "error": RequestTimeout("slow"), "text": ""}, 0.9),
        ({"status": "failed", "error": ServerError("run failed"), "text": ""}, 0.9),
        ({"status": "failed", "error": ServerError("x", status_code=503), "text": ""}, 0.0),
        ({"status": "failed", "error": RateLimitError("x", status_code=429), "text": ""}, 0.0),
        ({"status": "failed", "error": AuthenticationError("x"), "text": ""}, 0.0),
        ({"status": "failed", "error": NetworkError("x"), "text": ""}, 0.0),
        ({"status": "failed", "error": NetworkError("x"), "text": "Half"}, 0.9),
    ],
)
@pytest.mark.parametrize("budget", [None, 5.0])
def test_an_answer_counts_what_it_cost_or_may_have_cost(
    facts: dict[str, Any], usd: float, budget: float | None
) -> None:
    reserve(budget, "high").finish(answered(**facts))
    assert spent() == pytest.approx(usd)


def test_a_stopped_answer_counts_by_its_tokens_if_they_are_known() -> None:
    usage = Usage(input_tokens=1000, output_tokens=1000, searches=0)
    answer = Answer("Why?", "So", usage=usage, model="openai/gpt-6-sol", status="stopped")
    reserve(5.0, "high").finish(answer)
    assert spent() == pytest.approx(0.012)


def test_a_finished_question_is_in_the_ledger_and_one_from_the_cache_is_not() -> None:
    reserve(None, "low").finish(answered(0.1), "batch")
    reserve(None, "low").finish(answered(0.1, cached=True))
    entry = LedgerEntry("search", asked_model="search", backend="agent", question="dunes")
    reserve(None, "search").finish_entry(entry)
    assert [e.kind for e in spending.usage()] == ["batch", "search"]
    assert spent() == pytest.approx(0.105)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_child_counts_on_from_what_was_spent() -> None:
    reserve(None, "high").settle(0.5)
    running = reserve(2.0, "high")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            spending._account.after_fork()  # of the test's own account
            refused = 0
            try:
                reserve(1.0, "high")
            except BudgetError as error:
                refused = "$0.50 of $1.00" in error.message and "running" not in error.message
            code = 0 if refused else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    running.settle(0.0)


def test_a_ledger_that_is_broken_does_not_stop_a_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain").write_text("x")
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path / "plain"))
    with pytest.warns(UserWarning, match="until this kernel ends"):
        reserve(1.0, "low").finish(answered(0.3))
    with pytest.raises(BudgetError):
        reserve(0.5, "low")
    assert len(spending.usage()) == 1


@pytest.mark.parametrize("value", ["1", -1, float("nan"), float("inf"), True, [1], 10**400])
def test_a_budget_that_is_no_sum_of_money_is_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"budget: got .*US dollars") as caught:
        check_amount(value, "budget")
    assert caught.value.field == "budget"


def test_a_budget_may_be_any_number_from_0_up() -> None:
    assert [check_amount(value, "budget") for value in (None, 0, 2, 0.5)] == [None, 0.0, 2.0, 0.5]


# --- the table ------------------------------------------------------------------------------------


def test_the_usage_is_of_this_notebook_and_all_of_it_is_there_on_demand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorded("low", 0.1, session="other kernel", notebook="one.ipynb", question="before")
    recorded("low", 0.2, session="other kernel", notebook="two.ipynb", question="elsewhere")
    recorded("low", 0.3, question="now")
    assert spending.usage()["question"] == ["now"]
    monkeypatch.setenv("JPY_SESSION_NAME", "one.ipynb")
    assert sorted(spending.usage()["question"]) == ["before", "now"]
    assert len(spending.usage(everything=True)) == 3
    assert len(spending.usage(since=NOON + dt.timedelta(days=1))) == 0


def test_the_table_goes_into_every_frame_with_its_types_also_when_it_is_empty() -> None:
    recorded("low", 0.1, None, total_tokens=5, question="Why?")
    full, empty = spending.usage(), UsageTable()
    assert list(full.to_pandas().dtypes) == list(empty.to_pandas().dtypes)
    assert full.to_polars().schema == empty.to_polars().schema
    frame = pd.DataFrame(full.to_pandas())
    assert frame["cost_usd"].sum() == pytest.approx(0.1)
    assert str(frame["at"].dtype) == "datetime64[us, UTC]"
    assert pl.DataFrame(full)["asked_model"].to_list() == ["low", "low"]
    assert full.to_arrow().num_rows == 2
    assert full.to_csv().splitlines()[0].startswith("at,kind,question,asked_model,model")


def test_the_totals_stand_in_both_displays() -> None:
    recorded("low", 0.1, 0.25, None, total_tokens=1000, question="Why?")
    table = spending.usage()
    totals = "3 requests, 3,000 tokens, $0.35 (1 without a known cost)"
    assert totals == table.summary()
    assert totals in repr(table) and totals in table._repr_html_()
    assert table.cost_usd == pytest.approx(0.35)
    assert "Why?" in repr(table) and "Why?" in table._repr_html_()
    assert "UsageTable(0 requests, 0 tokens, $0.00)" in repr(UsageTable())
    assert UsageTable()._repr_html_()


def test_a_long_table_shows_the_newest_and_says_how_many_there_are() -> None:
    entries = [LedgerEntry("ask", question=f"q{number:03}") for number in range(80)]
    table = UsageTable(entries)
    for shown in (repr(table), table._repr_html_()):
        assert "q079" in shown and "q029" not in shown
        assert "newest 50 of 80" in shown
    assert repr(table).count("\n") == 52


def test_hostile_text_does_no_harm_in_either_display() -> None:
    entry = LedgerEntry("ask", question="<script>x</script>\x1b[31m", asked_model="\x1b]0;x\x07m")
    table = UsageTable([entry])
    assert "<script>" not in table._repr_html_()
    assert "\x1b" not in repr(table)


def test_items_slices_and_columns_are_taken_as_of_the_other_tables() -> None:
    table = UsageTable([LedgerEntry("ask", question=f"q{number}") for number in range(3)])
    assert table[0].question == "q0"
    assert table[-2:]["question"] == ["q1", "q2"]
    assert [entry.question for entry in table] == ["q0", "q1", "q2"]
    assert table[:] == table and table != UsageTable()
    with pytest.raises(KeyError, match="no column 'nothing'"):
        table["nothing"]
    with pytest.raises(InvalidRequestError, match="LedgerEntry"):
        UsageTable([{"kind": "ask"}])  # type: ignore[list-item]


def test_a_budget_error_is_a_configuration_error_that_was_never_sent() -> None:
    assert issubclass(BudgetError, ConfigurationError)
    assert issubclass(BudgetError, PerplexityError)
