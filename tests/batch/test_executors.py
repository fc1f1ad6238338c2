"""Past one thread, one process and one machine: the work runs elsewhere, all else stays here."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import loky
import pytest
from distributed import Client as DaskClient
from distributed import LocalCluster

from ipyperplexity import Client, errors
from ipyperplexity.batch.row_asker import RowAsker, ask_row
from ipyperplexity.emulator import Behavior, EmulatorServer
from ipyperplexity.emulator.faults import FAULTS
from tests.net.asking import eventually

#: Of the driver; the workers of other processes have another one in their environment.
KEY = "pplx-" + "dr1ver" * 5
WORKER_KEY = "pplx-" + "w0rker" * 5
#: What starts where the work runs, before it: the key is there and not here.
INIT = {"PERPLEXITY_API_KEY": WORKER_KEY}


def put_key(variables: dict[str, str]) -> None:
    os.environ.update(variables)


@contextmanager
def threads() -> Iterator[Executor]:
    with concurrent.futures.ThreadPoolExecutor(4) as executor:
        yield executor


@contextmanager
def processes() -> Iterator[Executor]:
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, context, put_key, (INIT,)) as executor:
        yield executor


@contextmanager
def loky_processes() -> Iterator[Executor]:
    executor = loky.get_reusable_executor(2, initializer=put_key, initargs=(INIT,), timeout=60)
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, kill_workers=True)


@contextmanager
def dask_cluster(*, pure: bool = False) -> Iterator[Executor]:
    with (
        dask.config.set({"distributed.worker.daemon": True, "distributed.admin.log-format": ""}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=2,
            processes=True,
            dashboard_address=":0",
            host="127.0.0.1",
            env={**INIT, "OMP_NUM_THREADS": "1"},
        ) as cluster,
        DaskClient(cluster) as client,
    ):
        yield client.get_executor(pure=pure)


EXECUTORS: dict[str, Callable[[], AbstractContextManager[Executor]]] = {
    "threads": threads,
    "processes": processes,
    "loky": loky_processes,
    "dask": dask_cluster,
}


@pytest.fixture(scope="module", params=EXECUTORS)
def executor(request: pytest.FixtureRequest) -> Iterator[tuple[str, Executor]]:
    """One for all tests: dask's and loky's processes take seconds to start."""
    with EXECUTORS[request.param]() as running:
        yield request.param, running


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatorServer]:
    monkeypatch.setenv("PERPLEXITY_API_KEY", KEY)
    with EmulatorServer(pace=0) as running:
        yield running


def asking(server: EmulatorServer, executor: Executor, rows: Any, **options: Any) -> Any:
    with Client(base_url=server.url) as client:
        given = {"limit": 1, "rpm": 600_000, "cache": False, "executor": executor, **options}
        return client.ask_many(rows, **given)


def keys(server: EmulatorServer) -> set[str | None]:
    return {request.bearer for request in server.requests}


def test_answers_come_in_the_order_of_the_rows_and_the_same_question_is_asked_once(
    server: EmulatorServer, executor: tuple[str, Executor]
) -> None:
    name, running = executor
    rows = [f"What is a lambda, in case {number % 12}?" for number in range(24)]
    table = asking(server, running, rows)
    assert [answer.question for answer in table.answers] == rows
    assert table["status"] == ["ok"] * 24
    assert len(server.requests) == 12 and sum(table["cached"]) == 12
    # The key is read where the work runs: the driver's own goes nowhere.
    assert keys(server) == {KEY if name == "threads" else WORKER_KEY}
    # It is not ours to end.
    assert running.submit(pow, 2, 5).result() == 32


def test_the_checkpoint_stays_with_the_driver(
    server: EmulatorServer, executor: tuple[str, Executor], tmp_path: Path
) -> None:
    rows = [f"What is a generator, in case {number}?" for number in range(8)]
    path = tmp_path / "rows.db"
    asking(server, executor[1], rows, checkpoint=path)
    again = asking(server, executor[1], rows, checkpoint=path)
    assert again["cached"] == [True] * 8 and again.cost_usd == 0
    assert len(server.requests) == 8
    assert WORKER_KEY.encode() not in path.read_bytes()


def test_what_went_wrong_there_is_asked_again_or_told_here_in_our_own_words(
    server: EmulatorServer, executor: tuple[str, Executor]
) -> None:
    server.next(FAULTS["server-error"], Behavior(cut_after=1), FAULTS["validation"])
    table = asking(server, executor[1], [f"What is yield, in case {n}?" for n in range(6)])
    counts = Counter(table["status"])
    assert counts == {"ok": 5, "error": 1} and sum(table["attempts"]) == 8
    (failed,) = [outcome for outcome in table.outcomes if outcome.status == "error"]
    assert type(failed.error) is errors.InvalidRequestError and failed.error.status_code == 422
    assert table.retry()["status"] == ["ok"] * 6


def test_a_key_that_is_refused_there_stops_the_run_here(
    server: EmulatorServer, executor: tuple[str, Executor]
) -> None:
    server.behavior = FAULTS["unauthorized"]
    with pytest.warns(errors.PerplexityWarning):
        table = asking(server, executor[1], [f"Why, {n}?" for n in range(40)], concurrency=2)
    counts = Counter(table["status"])
    assert counts["error"] >= 1 and counts["skipped"] >= 30
    assert len(server.requests) <= 6


def test_the_budget_and_the_pace_stay_with_the_driver(
    server: EmulatorServer, executor: tuple[str, Executor]
) -> None:
    began = time.monotonic()
    rows = [f"What is a slice, in case {number}?" for number in range(7)]
    table = asking(server, executor[1], rows, rpm=120)  # two at once, then one each half second
    assert table["status"] == ["ok"] * 7
    assert time.monotonic() - began >= 2.4
    dear = max(table["cost_usd"])
    with pytest.warns(errors.PerplexityWarning, match="max_cost"):
        capped = asking(
            server,
            executor[1],
            [f"{row} Indeed?" for row in rows],
            max_cost=3 * dear,
            concurrency=1,
        )
    assert capped["status"].count("skipped") >= 1 and capped.cost_usd <= 3 * dear + 1e-9


def test_an_interrupt_gives_the_table_as_far_as_it_is(
    server: EmulatorServer, executor: tuple[str, Executor]
) -> None:
    server.pace = 0.2
    pressed: list[float] = []

    def press() -> None:
        eventually(lambda: len(server.requests) >= 2, 20)
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=press).start()
    with pytest.warns(errors.PerplexityWarning, match="goes on from here"):
        table = asking(server, executor[1], [f"What is a tuple, case {n}?" for n in range(30)])
    assert time.monotonic() - pressed[0] < 2, "0.5 s, on a machine that is not busy"
    assert len(table) == 30 and "cancelled" in table["status"]
    server.pace = 0
    assert executor[1].submit(pow, 2, 5).result(30) == 32


def test_what_is_sent_to_another_process_holds_no_key(server: EmulatorServer) -> None:
    client = Client(KEY, base_url=server.url)
    asker = RowAsker(client._settings(), None)
    for dumps in (pickle.dumps, cloudpickle.dumps):
        sent = dumps((ask_row, asker, client.question("Why?"), "ticket"))
        assert KEY.encode() not in sent
    asker.close()


def test_a_worker_that_dies_is_an_error_that_says_so_and_keeps_what_is_there(
    server: EmulatorServer, tmp_path: Path
) -> None:
    path = tmp_path / "rows.db"
    rows = [f"What is a set, in case {number}?" for number in range(60)]
    server.pace = 0.02

    def kill() -> None:
        eventually(lambda: len(server.requests) >= 10, 30)
        for pid in list(running._processes):
            os.kill(pid, signal.SIGKILL)

    with processes() as running:
        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.warns(errors.PerplexityWarning, match="BrokenProcessPool"):
            partial = asking(server, running, rows, checkpoint=path)
        killer.join()
    counts = Counter(partial["status"])
    assert counts["ok"] >= 5 and counts["skipped"] >= 1 and sum(counts.values()) == 60
    server.pace = 0
    with processes() as anew:
        table = asking(server, anew, rows, checkpoint=path)
    assert table["status"] == ["ok"] * 60 and sum(table["cached"]) == counts["ok"]


@pytest.mark.timeout(180)
def test_dasks_own_default_does_not_mix_up_attempts(server: EmulatorServer) -> None:
    with dask_cluster(pure=True) as running:
        server.next(FAULTS["server-error"])
        table = asking(server, running, ["What is a dict?"])
        assert table["status"] == ["ok"] and table["attempts"] == [2]


def test_functions_as_tools_are_refused_where_they_cannot_run(
    server: EmulatorServer, executor: tuple[str, Executor]
) -> None:
    with pytest.raises(errors.InvalidRequestError, match="tools"):
        asking(server, executor[1], ["Why?"], tools=[pow])
    assert not server.requests


class Unlucky(concurrent.futures.ThreadPoolExecutor):
    """An executor of somebody else's: its workers may go, with what they were given."""

    def __init__(self, losses: int) -> None:
        super().__init__(2)
        self.losses = losses

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        if self.losses:
            self.losses -= 1
            lost: concurrent.futures.Future[Any] = concurrent.futures.Future()
            lost.set_exception(ConnectionResetError("the worker is gone"))
            return lost
        return super().submit(fn, *args, **kwargs)


def test_a_question_whose_worker_went_is_given_to_another(server: EmulatorServer) -> None:
    with Unlucky(losses=3) as running:
        table = asking(server, running, [f"What is a set, case {n}?" for n in range(6)])
    assert table["status"] == ["ok"] * 6 and sum(table["attempts"]) == 9
    with Unlucky(losses=10**6) as running:
        table = asking(server, running, ["Why?"], retries=1)
    assert table["status"] == ["error"] and "gone" in str(table["error"][0])
    assert table["attempts"] == [2]


def test_an_executor_that_takes_nothing_more_ends_the_run_with_a_word(
    server: EmulatorServer,
) -> None:
    running = concurrent.futures.ThreadPoolExecutor(1)
    running.shutdown()
    with pytest.warns(errors.PerplexityWarning, match="cannot schedule new futures"):
        table = asking(server, running, ["Why?", "Who?"])
    assert table["status"] == ["skipped"] * 2 and not server.requests


@contextmanager
def elsewhere(**variables: str) -> Iterator[Executor]:
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context, put_key, (variables,)) as executor:
        yield executor


def test_the_address_is_that_of_the_driver(
    server: EmulatorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERPLEXITY_BASE_URL", server.url)
    own = {"PERPLEXITY_BASE_URL": "http://127.0.0.1:9", "PERPLEXITY_API_KEY": WORKER_KEY}
    with elsewhere(**own) as running, Client() as client:
        table = client.ask_many(["Why?"], limit=1, cache=False, executor=running)
    assert table["status"] == ["ok"] and keys(server) == {WORKER_KEY}


def test_a_worker_without_a_key_says_where_it_is_missing(server: EmulatorServer) -> None:
    with (
        elsewhere(PERPLEXITY_API_KEY="", IPYPERPLEXITY_HOME="/nowhere") as running,
        pytest.warns(errors.PerplexityWarning, match="where the executor runs the questions"),
    ):
        table = asking(server, running, ["Why?", "Who?"], concurrency=1)
    assert table["error_type"][0] == "MissingCredentialError"
    assert "environment of the workers" in str(table.outcomes[0].error)


def test_rows_of_a_worker_share_their_connections(server: EmulatorServer) -> None:
    with elsewhere(PERPLEXITY_API_KEY=WORKER_KEY) as running:
        asking(server, running, [f"What is yield, case {n}?" for n in range(6)], concurrency=1)
    ports = {request.headers.get("connection", "keep-alive") for request in server.requests}
    assert len(server.requests) == 6 and ports == {"keep-alive"}
