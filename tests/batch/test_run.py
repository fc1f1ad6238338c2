"""The run of a batch: each row answered once, nothing paid twice, limits kept, stopped at once."""

from __future__ import annotations

import os
import pickle
import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ipyperplexity import Client, spending
from ipyperplexity.batch.cache_key import cache_key
from ipyperplexity.batch.kept_answers import KeptAnswers
from ipyperplexity.batch.outcome import RowOutcome
from ipyperplexity.batch.plan import make_plan
from ipyperplexity.batch.row_asker import RowAsker
from ipyperplexity.batch.run import BatchRun, Limits, own_executor
from ipyperplexity.emulator import Behavior, EmulatorServer
from ipyperplexity.emulator.faults import FAULTS
from ipyperplexity.errors import InvalidRequestError, MissingCredentialError

KEY = "pplx-" + "b4tch" * 6


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmulatorServer]:
    monkeypatch.setenv("PERPLEXITY_API_KEY", KEY)
    with EmulatorServer(pace=0, api_key=KEY) as running:
        yield running


class Started:
    """A run over texts, and what came of it."""

    def __init__(
        self,
        server: EmulatorServer,
        rows: list[str],
        *,
        checkpoint: Path | None = None,
        executor: Any = None,
        estimate: float = 0.0,
        learns: bool = False,
        tell: Callable[..., object] = lambda *counts: None,
        **limits: Any,
    ) -> None:
        client = Client(base_url=server.url)
        plan = make_plan(
            rows,
            lambda row: client.question(row, limit=2),
            lambda question: cache_key(question, "agent", server.url, "low"),
        )
        self.kept = KeptAnswers(checkpoint, cache=False, hide=lambda text: text)
        limits = {"concurrency": 4, "rpm": 600_000.0, **limits}
        own = executor is None
        self.executor = executor or own_executor(limits["concurrency"])
        self.asker = RowAsker(client._settings(), None)
        self.batch = BatchRun(
            plan,
            self.asker,
            Limits(**limits),
            self.kept,
            self.executor,
            default_model="low",
            estimate=estimate,
            learns=learns,
            on_progress=tell,
        )
        self.outcomes: list[RowOutcome] = self.batch.run()
        if own:
            self.executor.shutdown(wait=False, cancel_futures=True)
        self.kept.close()
        self.asker.close()

    @property
    def statuses(self) -> list[str]:
        return [outcome.status for outcome in self.outcomes]


def questions(count: int) -> list[str]:
    return [f"What is a lambda, in case {number}?" for number in range(count)]


def test_each_row_has_its_answer_in_the_order_of_the_data(server: EmulatorServer) -> None:
    rows = questions(12)
    random.Random(1).shuffle(rows)
    run = Started(server, rows)
    assert run.statuses == ["ok"] * 12
    assert [outcome.question for outcome in run.outcomes] == rows
    assert [outcome.row for outcome in run.outcomes] == list(range(12))
    assert all(o.answer is not None and o.answer.question == o.question for o in run.outcomes)


def test_the_same_question_is_asked_and_paid_for_once(server: EmulatorServer) -> None:
    run = Started(server, ["What is a lambda?", "What is yield?", "What is a lambda?"])
    assert len(server.requests) == 2
    first, _, again = run.outcomes
    assert again.answer is first.answer and again.cached and not first.cached
    assert again.cost_usd == 0.0 and again.asked_usd == first.cost_usd > 0
    assert run.batch.spent_usd == pytest.approx(sum(o.cost_usd or 0 for o in run.outcomes))


def test_a_checkpoint_goes_on_where_it_was(server: EmulatorServer, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    Started(server, questions(5), checkpoint=path)
    run = Started(server, questions(8), checkpoint=path)
    assert len(server.requests) == 8
    assert [outcome.cached for outcome in run.outcomes] == [True] * 5 + [False] * 3
    assert sum(outcome.cost_usd or 0 for outcome in run.outcomes[:5]) == 0.0
    assert all(outcome.answer is not None for outcome in run.outcomes)
    assert KEY.encode() not in path.read_bytes()


def test_an_answer_is_on_disk_before_it_is_counted(server: EmulatorServer, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    counts: list[tuple[int, int]] = []

    def tell(done: int, *rest: Any) -> None:
        from ipyperplexity.store.answer_store import AnswerStore

        store = AnswerStore(path)
        counts.append((done, store.info().rows))
        store.close()

    Started(server, questions(6), checkpoint=path, tell=tell)
    assert counts[-1] == (6, 6)
    assert all(on_disk >= done for done, on_disk in counts)


@pytest.mark.parametrize(
    "fault",
    [Behavior(status=429, headers={"Retry-After": "0.01"}), Behavior(status=500),
     Behavior(status=503), Behavior(cut_after=3), Behavior(cut_after=0)],
)  # fmt: skip
def test_a_row_that_failed_in_passing_is_asked_again(
    server: EmulatorServer, fault: Behavior
) -> None:
    server.next(fault)
    run = Started(server, questions(3), concurrency=1, retries=2)
    assert run.statuses == ["ok"] * 3
    assert run.outcomes[0].attempts == 2
    assert len(server.requests) == 4


def test_retries_end_and_the_failure_is_that_rows(server: EmulatorServer) -> None:
    server.next(*[Behavior(status=500)] * 2)
    run = Started(server, questions(1), retries=1)
    failed = run.outcomes[0]
    assert failed.status == "error"
    assert failed.attempts == 2 and failed.error is not None and failed.error.code == "SERVER"


def test_what_is_wrong_with_one_question_is_not_tried_again(server: EmulatorServer) -> None:
    server.next(Behavior(status=400))
    run = Started(server, questions(2), concurrency=1)
    assert run.statuses == ["error", "ok"] and len(server.requests) == 2


@pytest.mark.parametrize("name", ["unauthorized", "no-credit", "forbidden"])
def test_a_refusal_of_the_account_stops_the_run_and_keeps_the_rows(
    server: EmulatorServer, name: str
) -> None:
    server.next(Behavior(), FAULTS[name])
    run = Started(server, questions(20), concurrency=1)
    assert run.statuses == ["ok", "error"] + ["skipped"] * 18
    assert len(server.requests) == 2
    assert run.batch.stopped_by and run.outcomes[-1].reason == run.batch.stopped_by


def test_the_cap_is_never_passed_and_the_rest_is_skipped(server: EmulatorServer) -> None:
    one = Started(server, questions(1)).batch.spent_usd
    run = Started(server, questions(30), max_cost=5.5 * one, estimate=one, concurrency=8)
    counted = Counter(run.statuses)
    assert run.batch.spent_usd <= 5.5 * one
    assert counted["ok"] >= 4 and counted["skipped"] == 30 - counted["ok"]
    assert "max_cost" in run.batch.stopped_by


def test_the_budget_of_the_process_holds_for_a_batch_too(server: EmulatorServer) -> None:
    before = spending.spent()
    run = Started(server, questions(10), budget=before + 0.012, concurrency=4)
    counted = Counter(run.statuses)
    assert 0 < counted["ok"] < 10 and counted["skipped"] == 10 - counted["ok"]
    assert "budget" in run.batch.stopped_by
    assert spending.spent() - before == pytest.approx(run.batch.spent_usd)


def test_a_blank_row_is_an_error_and_costs_nothing(server: EmulatorServer) -> None:
    run = Started(server, ["  ", "What is a lambda?"])
    assert run.statuses == ["error", "ok"] and len(server.requests) == 1
    assert isinstance(run.outcomes[0].error, InvalidRequestError)


def test_no_rows_are_no_requests(server: EmulatorServer) -> None:
    assert Started(server, []).outcomes == [] and not server.requests


def test_an_interrupt_gives_what_is_there_at_once(tmp_path: Path, server: EmulatorServer) -> None:
    server.next(*[Behavior()] * 3, *[Behavior(stall_after=2)] * 20)
    stopped_at: list[float] = []

    def interrupt() -> None:
        until = time.monotonic() + 20
        while len(server.requests) < 7 and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.1)
        stopped_at.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    run = Started(server, questions(20), checkpoint=tmp_path / "run.db", concurrency=4)
    ended = time.monotonic()
    thread.join()
    assert run.batch.interrupted
    counted = Counter(run.statuses)
    assert counted["ok"] == 3 and counted["cancelled"] == 17
    assert ended - stopped_at[0] < 5  # a hang would be the service's; the bench has the figure
    done = [outcome.question for outcome in run.outcomes if outcome.status == "ok"]
    again = Started(server, done, checkpoint=tmp_path / "run.db")
    assert [outcome.cached for outcome in again.outcomes] == [True] * 3


def test_a_limit_of_the_service_is_learned_from_its_replies(server: EmulatorServer) -> None:
    run = Started(server, questions(2), rpm=None, learns=True)
    assert run.statuses == ["ok"] * 2
    assert run.batch._pacer.rpm == 50.0  # as x-ratelimit-limit says


def test_what_goes_to_another_process_holds_no_key(server: EmulatorServer) -> None:
    client = Client(api_key=KEY, base_url=server.url)
    asker = RowAsker(client._settings(), 30.0)
    there = pickle.loads(pickle.dumps(asker))
    assert KEY.encode() not in pickle.dumps(asker)
    assert there.timeout == 30.0 and there.settings.key is None


def test_an_executor_of_processes_asks_with_the_key_that_it_finds(server: EmulatorServer) -> None:
    import multiprocessing

    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        run = Started(server, questions(4), executor=executor, concurrency=2)
    assert run.statuses == ["ok"] * 4
    assert len(server.requests) == 4


def test_without_a_key_where_the_work_runs_the_run_stops(
    server: EmulatorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PERPLEXITY_API_KEY")
    run = Started(server, questions(3), concurrency=1)
    assert run.statuses == ["error", "skipped", "skipped"]
    assert isinstance(run.outcomes[0].error, MissingCredentialError) and not server.requests


def test_chaos_ends_with_every_row_answered_once_and_costs_added_up(
    server: EmulatorServer, tmp_path: Path
) -> None:
    dice = random.Random(20261201)
    kinds = [
        (0.10, Behavior(status=429, headers={"Retry-After": "0.01"})),
        (0.05, Behavior(status=502)),
        (0.05, Behavior(cut_after=4)),
    ]
    drawn = []
    for _ in range(400):
        roll, behavior = dice.random(), Behavior()
        for share, fault in kinds:
            if roll < share:
                behavior = fault
                break
            roll -= share
        drawn.append(behavior)
    server.next(*drawn)
    path = tmp_path / "run.db"
    run = Started(server, questions(150), checkpoint=path, concurrency=16, retries=8)
    assert run.statuses == ["ok"] * 150
    assert run.batch.spent_usd == pytest.approx(sum(o.cost_usd or 0 for o in run.outcomes))
    assert sum(outcome.attempts for outcome in run.outcomes) == len(server.requests)
    n_before = len(server.requests)
    Started(server, questions(150), checkpoint=path)
    assert len(server.requests) == n_before


# --- what is put on disk ------------------------------------------------------------------------


def test_a_checkpoint_that_can_no_longer_be_written_stops_the_run_and_loses_no_answer(
    server: EmulatorServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.db"
    full = threading.Event()
    Started(server, questions(1), checkpoint=path)
    blocker = sqlite3.connect(path)

    def tell(done: int, *counts: Any) -> None:
        if done >= 3 and not full.is_set():
            full.set()
            blocker.executescript(
                "DROP TABLE perplexity_answers; CREATE VIEW perplexity_answers AS SELECT 1"
            )

    started = Started(server, questions(30), checkpoint=path, tell=tell)
    blocker.close()
    assert full.is_set() and started.statuses.count("skipped") > 0
    assert str(path) in started.batch.stopped_by
    answered = [outcome for outcome in started.outcomes if outcome.status == "ok"]
    assert len(answered) >= 3 and all(outcome.answer for outcome in answered)
    assert started.statuses.count("error") == 0
