"""A column of questions, as its users ask it: frames in, a table out, nothing paid for twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import ipyperplexity as pplx
from ipyperplexity import Client, errors
from ipyperplexity.emulator import Behavior, EmulatorServer
from ipyperplexity.emulator.faults import FAULTS
from ipyperplexity.store.batch_store import BatchStore
from tests.net.asking import eventually

KEY = "pplx-" + "m4ny" * 8
DF = pd.DataFrame(
    {"thing": ["lambda", "yield", "lambda", None], "n": [1, 2, 3, 4]}, index=list("wxyz")
)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatorServer]:
    monkeypatch.setenv("PERPLEXITY_API_KEY", KEY)
    with EmulatorServer(pace=0, api_key=KEY) as running:
        monkeypatch.setenv("PERPLEXITY_BASE_URL", running.url)
        yield running


@pytest.fixture
def client(server: EmulatorServer) -> Client:
    return Client()


def ask(client: Client, data: Any = DF, prompt: Any = "What is {thing}?", **options: Any) -> Any:
    return client.ask_many(data, prompt, **{"limit": 2, "rpm": 600_000, **options})


def test_a_frame_is_enriched_and_joins_back_by_its_index(client: Client) -> None:
    table = ask(client, schema={"definition": str, "year": int})
    frame = DF.join(table.to_pandas())
    assert list(frame.index) == list("wxyz")
    assert frame["status"].tolist() == ["ok", "ok", "ok", "error"]
    assert str(frame["year"].dtype) == "Int64" and isinstance(frame["definition"].iloc[0], str)
    assert frame["cached"].tolist() == [False, False, True, False]
    assert isinstance(table, pplx.AnswerTable)
    assert table.answers[0].data["definition"] and table.answers[3] is None


def test_what_is_wrong_is_refused_before_the_first_request(
    client: Client, server: EmulatorServer, tmp_path: Path
) -> None:
    for options in (
        {"prompt": "What is {thng}?"},
        {"prompt": "What is it?"},
        {"concurrency": 0},
        {"concurrency": 257},
        {"rpm": 0},
        {"max_cost": -1},
        {"retries": -1},
        {"on_error": "ignore"},
        {"progress": "maybe"},
        {"executor": "dask"},
        {"mode": "cloud"},
        {"cache": "yes"},
        {"model": "no-such-preset"},
        {"recency": "fortnight"},
        {"limits": 3},
        {"data": "lambda"},
        {"data": pl.DataFrame({"thing": ["x"]}).lazy()},
    ):
        with pytest.raises(errors.InvalidRequestError):
            ask(client, **options)
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n")
    with pytest.raises(errors.ConfigurationError, match="checkpoint"):
        ask(client, checkpoint=tmp_path / "mine.csv")
    assert not server.requests


def test_the_cache_answers_the_same_question_of_another_batch(
    client: Client, server: EmulatorServer
) -> None:
    ask(client)
    again = ask(client, ["lambda", "with"], "What is {value}?")
    assert again["cached"] == [True, False] and len(server.requests) == 3
    assert again.cost_usd < again.asked_usd
    ask(client, ["lambda"], "What is {value}?", cache=False)
    assert len(server.requests) == 4


def test_the_rows_that_failed_are_asked_again_on_demand(
    client: Client, server: EmulatorServer
) -> None:
    server.next(Behavior(status=400))
    table = ask(client, ["lambda", "yield"], "What is {value}?", concurrency=1)
    assert table["status"] == ["error", "ok"]
    assert table.errors["row"] == [0]
    assert table.retry()["status"] == ["ok", "ok"] and len(server.requests) == 3


def test_a_failure_can_be_raised_instead(client: Client, server: EmulatorServer) -> None:
    server.next(Behavior(status=400))
    with pytest.raises(errors.InvalidRequestError):
        ask(client, ["lambda", "yield"], "What is {value}?", on_error="raise", concurrency=1)
    assert len(server.requests) == 2  # the other row is asked, and kept


def test_a_refused_account_stops_the_run_with_a_word(
    client: Client, server: EmulatorServer
) -> None:
    server.next(FAULTS["unauthorized"])
    with pytest.warns(errors.PerplexityWarning, match="0 of 3 rows are done"):
        table = ask(client, ["a", "b", "c"], "What is {value}?", concurrency=1)
    assert table["status"] == ["error", "skipped", "skipped"]


def test_without_a_key_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERPLEXITY_API_KEY", raising=False)
    with pytest.raises(errors.MissingCredentialError):
        Client().ask_many(["lambda"])


def test_functions_and_questions_are_taken_for_prompts(client: Client) -> None:
    table = ask(client, DF[:2], lambda row: pplx.Question(f"What is {row['thing']}?", limit=1))
    assert [len(answer.sources) for answer in table.answers] == [1, 1]


@pytest.mark.parametrize("data", [[], pd.DataFrame({"thing": []}), pl.DataFrame({"thing": []})])
def test_no_rows_are_a_table_of_no_rows(client: Client, server: EmulatorServer, data: Any) -> None:
    table = ask(client, data)
    assert len(table) == 0 and not server.requests
    assert "status" in table.to_pandas().columns


def test_an_estimate_asks_a_few_rows_and_they_are_not_paid_for_again(
    client: Client, server: EmulatorServer
) -> None:
    rows = [f"case {number}" for number in range(20)]
    estimate = client.estimate(rows, "What is a lambda in {value}?", n=3, limit=2)
    assert (estimate.rows, estimate.sampled, len(server.requests)) == (20, 3, 3)
    assert estimate.total_usd == pytest.approx(20 * estimate.mean_usd)
    table = ask(client, rows, "What is a lambda in {value}?")
    assert sum(table["cached"]) == 3


def test_frames_have_it_as_an_attribute(client: Client) -> None:
    import ipyperplexity.batch.accessor  # noqa: F401

    table = DF.perplexity.ask("What is {thing}?", client=client, limit=1)
    assert table["status"] == ["ok", "ok", "ok", "error"]
    series = pl.Series("thing", ["lambda"]).perplexity.ask("What is {thing}?", limit=1)
    assert series["status"] == ["ok"]
    assert DF["thing"].perplexity.estimate("What is {thing}?", client=client, n=1).rows == 4


def test_the_service_takes_a_column_as_a_whole(client: Client, server: EmulatorServer) -> None:
    table = ask(client, mode="server")
    assert table["status"] == ["ok", "ok", "ok", "error"]
    paths = {request.path for request in server.requests}
    assert {"/v1/files", "/v1/batches"} <= paths and "/v1/responses" not in paths
    n_requests = len(server.requests)
    assert ask(client, mode="server")["cached"][:3] == [True] * 3
    assert len(server.requests) == n_requests
    assert client.usage()["kind"][-2:] == ["batch"] * 2


def test_a_column_that_may_cost_too_much_is_not_left_to_the_service(
    client: Client, server: EmulatorServer
) -> None:
    with pytest.raises(errors.BudgetError, match="max_cost"):
        ask(client, mode="server", max_cost=0.001)
    assert not server.requests


def test_it_runs_where_another_executor_puts_it(client: Client, server: EmulatorServer) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as executor:
        table = ask(client, executor=executor)
    assert table["status"] == ["ok", "ok", "ok", "error"]
    with pytest.raises(errors.InvalidRequestError, match="tools"), ThreadPoolExecutor(1) as one:
        ask(client, executor=one, tools=[lambda: 1])


CALL = """
import sys, ipyperplexity as pplx
rows = [f"What is a lambda, in case {number}?" for number in range(200)]
print("begin", flush=True)
table = pplx.ask_many(rows, limit=1, rpm=600_000, checkpoint=sys.argv[1], cache=False, concurrency=4)
print(table["status"].count("ok"), sum(table["cached"]), flush=True)
"""


def test_a_run_that_is_killed_goes_on_where_it_was(server: EmulatorServer, tmp_path: Path) -> None:
    command = [sys.executable, "-c", CALL, str(tmp_path / "run.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        until = time.monotonic() + 60
        while len(server.requests) < 30 and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(first.pid, signal.SIGKILL)
    asked = len(server.requests)
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    ok, cached = map(int, done.stdout.split()[1:])
    assert ok == 200 and cached > 0
    # Only what was on its way when it was killed is asked again.
    assert len(server.requests) - asked == 200 - cached
    assert asked - cached <= 4


def test_nothing_is_warned_of_when_all_went_well(client: Client) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ask(client, ["lambda"], "What is {value}?")


def test_a_column_that_was_left_to_the_service_can_be_ended(
    client: Client, server: EmulatorServer
) -> None:
    server.pace = 2.0
    ended: list[str] = []

    def end() -> None:
        eventually(lambda: any(r.path == "/v1/batches" for r in server.requests), 10)
        time.sleep(0.3)
        ended.append(client.cancel_batch(batch_ids()[0]))

    def batch_ids() -> list[str]:
        return [r.batch_id for r in BatchStore().all() if r.batch_id]

    threading.Thread(target=end).start()
    table = client.ask_many(["lambda", "yield"], "What is {value}?", limit=1, mode="server")
    assert ended and ended[0] in ("cancelling", "cancelled")
    assert set(table["status"]) <= {"cancelled", "error", "ok"} and len(table) == 2
    with pytest.raises(errors.InvalidRequestError):
        client.cancel_batch("batch_nobody_knows")
