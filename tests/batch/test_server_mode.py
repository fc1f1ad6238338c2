"""A column left to the service: each row answered, nothing paid for twice, nothing lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ipyperplexity import Answer, Client
from ipyperplexity.batch.server_mode import (
    Outcome,
    ServerProgress,
    cancel_server_batch,
    run_on_server,
)
from ipyperplexity.emulator import Behavior, EmulatorServer
from ipyperplexity.emulator.batches_wire import _desks
from ipyperplexity.errors import (
    AbortedError,
    AuthenticationError,
    ConfigurationError,
    InvalidRequestError,
    NetworkError,
    PerplexityError,
    RequestTimeout,
    ServerError,
    StreamError,
)
from ipyperplexity.jobs import Pace
from ipyperplexity.question import Question
from ipyperplexity.service import Service
from ipyperplexity.store.batch_store import BatchStore

TEXTS = ("What is a lambda?", "What does yield do?", "What is a class?", "What is a tuple?")
FAST = Pace(first=0.02, most=0.05)
SLOW = Behavior(queued_polls=10**6)
KEY = "pplx-5ecre7-0123456789abcdefABCDEF"


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    with EmulatorServer(pace=0, api_key=KEY) as running:
        yield running


@pytest.fixture
def store(tmp_path: Path) -> Iterator[BatchStore]:
    store = BatchStore(tmp_path / "batches.db")
    yield store
    store.close()


def service_for(server: EmulatorServer, key: str = KEY, **options: Any) -> Service:
    client = Client(api_key=key, base_url=server.url, **{"max_retries": 0, **options})
    return client._service(client._settings())


def asked(*texts: str, **options: Any) -> list[Question]:
    return [Question(text, **{"model": "low", **options}) for text in texts or TEXTS]


def run(server: EmulatorServer, store: BatchStore, *texts: str, **options: Any) -> list[Outcome]:
    questions = options.pop("questions", None) or asked(*texts)
    service = options.pop("service", None) or service_for(server)
    return run_on_server(service, questions, poll=FAST, store=store, **options)


def answers(outcomes: Sequence[Outcome]) -> list[Answer]:
    for outcome in outcomes:
        assert isinstance(outcome, Answer), outcome
    return [outcome for outcome in outcomes if isinstance(outcome, Answer)]


def kinds(outcomes: Sequence[Outcome]) -> list[str]:
    return [type(outcome).__name__ for outcome in outcomes]


def calls(server: EmulatorServer, method: str, path: str) -> list[Any]:
    return [one for one in server.requests if (one.method, one.path) == (method, path)]


def n_questions(server: EmulatorServer) -> int:
    """How many questions the engine was asked, that is, how many would be billed."""
    return len(server.runs._records)


# --- answers -------------------------------------------------------------------------------------


def test_each_row_has_the_answer_that_it_would_have_live(
    server: EmulatorServer, store: BatchStore
) -> None:
    client = Client(api_key=KEY, base_url=server.url)
    question = asked(TEXTS[0], limit=3, recency="year")
    (got,) = answers(run(server, store, questions=question))
    live = client.ask(question[0])
    for name in ("text", "question", "usage", "model", "backend", "status", "finish_reason",
                 "searches", "options", "truncated"):  # fmt: skip
        assert getattr(got, name) == getattr(live, name), name
    assert list(got.sources) == list(live.sources)
    assert got.usage.cost_usd is not None and got.usage.cost_usd > 0
    assert got.id is not None and got.id.startswith("resp_")


def test_rows_keep_their_order_whatever_order_they_come_in(
    server: EmulatorServer, store: BatchStore
) -> None:
    server.next(Behavior(), Behavior(batch="shuffled"))
    assert [answer.question for answer in answers(run(server, store))] == list(TEXTS)


def test_the_same_question_is_asked_once_and_answers_all_its_rows(
    server: EmulatorServer, store: BatchStore
) -> None:
    seen: list[int] = []
    outcomes = run(server, store, *TEXTS[:2], TEXTS[0], on_outcome=lambda row, _: seen.append(row))
    assert [answer.question for answer in answers(outcomes)] == [*TEXTS[:2], TEXTS[0]]
    assert (n_questions(server), sorted(seen)) == (2, [0, 1, 2])


def test_no_rows_are_no_batch(server: EmulatorServer, store: BatchStore) -> None:
    assert run_on_server(service_for(server), [], store=store) == []
    assert server.requests == []


def test_a_schema_makes_data_of_the_text(server: EmulatorServer, store: BatchStore) -> None:
    (answer,) = answers(run(server, store, questions=asked(TEXTS[0], schema={"name": str})))
    assert set(answer.data) == {"name"}


def test_a_question_without_a_model_is_asked_the_default(
    server: EmulatorServer, store: BatchStore
) -> None:
    questions = [Question("Who?"), Question("Who?", extra={"preset": "fast"})]
    outcomes = run(server, store, questions=questions, default_model="high")
    body = calls(server, "POST", "/v1/files")[0].body
    assert len(answers(outcomes)) == 2
    assert body.count(b'"preset":"high"') == body.count(b'"preset":"fast"') == 1


def test_progress_is_told_up_to_the_end(server: EmulatorServer, store: BatchStore) -> None:
    told: list[ServerProgress] = []
    server.next(Behavior(), Behavior(queued_polls=2))
    run(server, store, on_progress=told.append)
    assert (told[0].status, told[0].done, told[0].total) == ("placing", 0, 4)
    assert "validating" in [progress.status for progress in told]
    assert (told[-1].status, told[-1].done) == ("completed", 4)
    assert len(told[-1].batch_ids) == 1
    assert len(told) == len(dict.fromkeys(told)), "only news"


def test_what_is_too_much_for_one_batch_goes_into_several(
    server: EmulatorServer, store: BatchStore
) -> None:
    by_lines = run(server, store, max_lines=3)
    assert [answer.question for answer in answers(by_lines)] == list(TEXTS)
    assert [record.n_lines for record in reversed(store.all())] == [3, 1]
    by_bytes = run(server, store, *(f"{text}!" for text in TEXTS), max_bytes=450)
    assert len(answers(by_bytes)) == 4
    assert len(store.all()) > 3


def test_other_backends_have_no_batches(server: EmulatorServer, store: BatchStore) -> None:
    chat = service_for(server, backend="chat")
    with pytest.raises(InvalidRequestError) as raised:
        run(server, store, service=chat)
    assert raised.value.field == "mode"


# --- rows that go wrong --------------------------------------------------------------------------


def test_a_row_that_fails_is_an_error_and_the_others_are_answers(
    server: EmulatorServer, store: BatchStore
) -> None:
    faults = {1: "error", 2: "http", 3: "damaged", 5: "doubled"}
    server.next(Behavior(), Behavior(batch_lines=faults))
    outcomes = run(server, store, *TEXTS, "What is a list?")
    assert kinds(outcomes) == ["ServerError", "ServerError", "StreamError", "Answer", "Answer"]
    assert n_questions(server) == 3


def test_a_row_without_a_result_is_looked_for_twice_and_then_told(
    server: EmulatorServer, store: BatchStore
) -> None:
    server.next(Behavior(), Behavior(batch_lines={2: "missing"}))
    outcomes = run(server, store)
    assert kinds(outcomes) == ["Answer", "StreamError", "Answer", "Answer"]
    fetched = [one for one in server.requests if one.path.endswith("/content")]
    assert len(fetched) == 2


def test_a_failed_run_is_the_error_that_it_is_live(
    server: EmulatorServer, store: BatchStore
) -> None:
    server.next(Behavior(), Behavior(terminal="failed-response"))
    (error,) = run(server, store, TEXTS[0])
    assert isinstance(error, ServerError)
    assert "upstream model error" in error.message
    assert error.answer is not None and error.answer.status == "failed"


def test_an_answer_that_does_not_fit_is_its_rows_error(
    server: EmulatorServer, store: BatchStore
) -> None:
    @dataclass
    class Picky:
        name: str

        def __post_init__(self) -> None:
            raise ValueError("not this one")

    (error,) = run(server, store, questions=asked(TEXTS[0], schema=Picky))
    assert isinstance(error, StreamError) and "not this one" in error.message
    assert error.answer is not None and '"name"' in error.answer.text


def test_a_question_that_cannot_be_asked_does_not_keep_the_others_from_it(
    server: EmulatorServer, store: BatchStore
) -> None:
    questions = asked(*TEXTS)
    questions[1] = Question("Who?", model="low", extra={"nope": 1})  # refused by the service
    questions[3] = Question("Who?", model="lowest")  # refused here
    outcomes = run(server, store, questions=questions)
    assert kinds(outcomes) == ["Answer", "InvalidRequestError", "Answer", "InvalidRequestError"]
    assert "nope" in str(outcomes[1])
    assert len(store.all()) == 1


def test_a_question_larger_than_a_batch_is_its_rows_error(
    server: EmulatorServer, store: BatchStore
) -> None:
    outcomes = run(server, store, "x" * 2000, TEXTS[0], max_bytes=1000)
    assert kinds(outcomes) == ["InvalidRequestError", "Answer"]


def test_a_batch_that_is_refused_says_why_in_each_row(
    server: EmulatorServer, store: BatchStore
) -> None:
    server.next(Behavior(), Behavior(batch="invalid"))
    outcomes = run(server, store)
    assert kinds(outcomes) == ["InvalidRequestError"] * 4
    assert "model is not available" in str(outcomes[0])
    assert "line 1" in str(outcomes[1])
    assert len(answers(run(server, store))) == 4, "and can be asked again"


def test_what_a_batch_had_no_time_for_is_asked_by_the_same_call(
    server: EmulatorServer, store: BatchStore
) -> None:
    server.next(Behavior(), Behavior(batch="expired"))
    outcomes = run(server, store)
    assert kinds(outcomes) == ["Answer", "Answer", "RequestTimeout", "RequestTimeout"]
    assert isinstance(outcomes[3], RequestTimeout)
    left = [text for text, one in zip(TEXTS, outcomes, strict=True) if not isinstance(one, Answer)]
    assert len(answers(run(server, store, *left))) == 2
    assert n_questions(server) == 4


# --- once, and only once -------------------------------------------------------------------------


def test_the_same_call_later_finds_its_running_batch(
    server: EmulatorServer, store: BatchStore
) -> None:
    first = stop_when_validating(server, store)
    assert all(isinstance(outcome, AbortedError) for outcome in first)
    (record,) = store.all()
    hint = str(first[0])
    assert record.batch_id is not None and record.batch_id in hint
    assert "same call" in hint and "client.cancel_batch" in hint
    release(server, record.batch_id)
    assert len(answers(run(server, store))) == 4
    assert len(calls(server, "POST", "/v1/files")) == len(calls(server, "POST", "/v1/batches")) == 1
    assert n_questions(server) == 4


def stop_when_validating(
    server: EmulatorServer, store: BatchStore, *texts: str, **options: Any
) -> list[Outcome]:
    """Leave questions to a batch that does not begin, and stop waiting for it."""
    stopped = threading.Event()

    def look(progress: ServerProgress) -> None:
        if progress.status == "validating":
            stopped.set()

    server.next(Behavior(), SLOW)
    return run(server, store, *texts, on_progress=look, stopped=stopped, **options)


def release(server: EmulatorServer, batch_id: str) -> None:
    """Let a batch that does not begin begin."""
    _desks[server].batches[batch_id].released.set()


def test_a_part_of_a_column_is_found_in_the_batch_of_the_whole(
    server: EmulatorServer, store: BatchStore
) -> None:
    stop_when_validating(server, store)
    (record,) = store.all()
    release(server, record.batch_id or "")
    new = "What is a set?"
    outcomes = run(server, store, TEXTS[2], new)
    assert [answer.question for answer in answers(outcomes)] == [TEXTS[2], new]
    assert [record.n_lines for record in store.all()] == [1, 4]
    assert len(answers(run(server, store, TEXTS[0], TEXTS[1], TEXTS[3]))) == 3
    assert n_questions(server) == 5


def test_an_answer_counts_as_delivered_only_when_it_was_taken(
    server: EmulatorServer, store: BatchStore
) -> None:
    kept: dict[int, Outcome] = {}

    def full_disk(row: int, outcome: Outcome) -> None:
        if len(kept) == 2:
            raise ConfigurationError("the disk is full")
        kept[row] = outcome

    with pytest.raises(ConfigurationError, match="full"):
        run(server, store, on_outcome=full_disk)
    left = [text for row, text in enumerate(TEXTS) if row not in kept]
    assert len(answers(run(server, store, *left))) == 2
    assert n_questions(server) == 4


def test_once_delivered_the_same_call_asks_anew(server: EmulatorServer, store: BatchStore) -> None:
    first, second = (answers(run(server, store)) for _ in range(2))
    assert n_questions(server) == 8
    assert {answer.id for answer in first}.isdisjoint(answer.id for answer in second)


@pytest.mark.parametrize("max_retries", [0, 2])
def test_a_lost_reply_to_the_creation_makes_no_second_batch(
    server: EmulatorServer, store: BatchStore, max_retries: int
) -> None:
    server.next(Behavior(), Behavior(batch="lost-reply"))
    service = service_for(server, max_retries=max_retries)
    assert len(answers(run(server, store, service=service))) == 4
    keys = {one.headers["idempotency-key"] for one in calls(server, "POST", "/v1/batches")}
    assert len(calls(server, "POST", "/v1/batches")) == 2 and len(keys) == 1
    assert n_questions(server) == 4


def test_a_creation_that_nobody_heard_of_is_taken_up_by_the_same_call(
    server: EmulatorServer, store: BatchStore
) -> None:
    lost = Behavior(batch="lost-reply")
    server.next(Behavior(), *[lost] * 5)
    outcomes = run(server, store)
    assert kinds(outcomes) == ["ServerError"] * 4
    assert "same call goes on" in str(outcomes[0])
    assert [record.batch_id for record in store.all()] == [None]
    assert len(answers(run(server, store))) == 4
    assert len(calls(server, "POST", "/v1/files")) == 1
    assert n_questions(server) == 4


def test_a_file_that_is_gone_before_its_batch_was_made_is_sent_again(
    server: EmulatorServer, store: BatchStore
) -> None:
    server.next(Behavior(), *[Behavior(status=502)] * 5)
    run(server, store)
    (record,) = store.all()
    del _desks[server].files[record.file_id]
    assert len(answers(run(server, store))) == 4
    assert len(calls(server, "POST", "/v1/files")) == 2


def test_a_store_that_was_lost_costs_nothing_either(
    server: EmulatorServer, store: BatchStore, tmp_path: Path
) -> None:
    stop_when_validating(server, store)
    (record,) = store.all()
    release(server, record.batch_id or "")
    other = BatchStore(tmp_path / "other.db")
    assert len(answers(run(server, other))) == 4
    assert [one.batch_id for one in other.all()] == [record.batch_id]
    other.close()
    assert n_questions(server) == 4


def test_nothing_is_asked_that_cannot_be_kept_in_mind(
    server: EmulatorServer, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    store = BatchStore(tmp_path / "file" / "batches.db")
    with pytest.raises(ConfigurationError):
        run(server, store)
    assert calls(server, "POST", "/v1/batches") == []


def test_a_process_that_is_killed_while_it_waits_leaves_nothing_to_pay_again(
    server: EmulatorServer, store: BatchStore
) -> None:
    code = textwrap.dedent(
        f"""
        import pathlib, sys
        from ipyperplexity import Client
        from ipyperplexity.batch.server_mode import run_on_server
        from ipyperplexity.jobs import Pace
        from ipyperplexity.question import Question
        from ipyperplexity.store.batch_store import BatchStore
        client = Client(api_key={KEY!r}, base_url={server.url!r})
        run_on_server(
            client._service(client._settings()),
            [Question(text, model="low") for text in {TEXTS!r}],
            poll=Pace(0.02, 0.05),
            store=BatchStore(pathlib.Path(sys.argv[1])),
            on_progress=lambda progress: print(progress.status, flush=True),
        )
        """
    )
    server.next(Behavior(), SLOW)
    command = [sys.executable, "-c", code, str(store.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if line.strip() == "validating":
                child.send_signal(signal.SIGKILL)
                break
    (record,) = store.all()
    release(server, record.batch_id or "")
    assert len(answers(run(server, store))) == 4
    assert n_questions(server) == 4


# --- the network, stops, cancelling --------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [Behavior(status=503), Behavior(status=429), Behavior(status=200, body="{oops"),
     Behavior(status=200, headers={"Content-Type": "text/html"}, body="<p>hello</p>")],
    ids=["503", "429", "not JSON", "a page"],
)  # fmt: skip
def test_failed_looks_and_downloads_do_no_harm(
    server: EmulatorServer, store: BatchStore, fault: Behavior
) -> None:
    told: list[ServerProgress] = []
    # The upload fails once, and the looks three times.
    server.next(fault, Behavior(), Behavior(queued_polls=2), *[fault] * 3)
    assert len(answers(run(server, store, on_progress=told.append))) == 4
    assert any(progress.problem for progress in told)
    assert told[-1].problem == ""
    assert n_questions(server) == 4


def test_a_download_that_fails_is_tried_again(server: EmulatorServer, store: BatchStore) -> None:
    original = server.take_behavior
    failed: list[str] = []

    def fail_twice() -> Behavior:
        if server.requests[-1].path.endswith("/content") and len(failed) < 2:
            failed.append(server.requests[-1].path)
            return Behavior(status=502)
        return original()

    server.take_behavior = fail_twice  # type: ignore[method-assign]
    assert len(answers(run(server, store))) == 4
    assert len(failed) == 2


def test_a_service_that_stays_away_leaves_the_batch_for_the_same_call(
    server: EmulatorServer, store: BatchStore
) -> None:
    impatient = Pace(first=0.01, most=0.02, patience=2)
    server.next(Behavior(), SLOW, *[Behavior(status=503)] * 3)
    outcomes = run_on_server(service_for(server), asked(), poll=impatient, store=store)
    assert kinds(outcomes) == ["ServerError"] * 4
    assert "the same call looks again" in str(outcomes[0])
    (record,) = store.all()
    release(server, record.batch_id or "")
    assert len(answers(run(server, store))) == 4
    assert n_questions(server) == 4


def test_who_cannot_be_reached_at_all_is_an_error(store: BatchStore) -> None:
    with EmulatorServer(pace=0) as gone:
        service = service_for(gone)
    with pytest.raises(NetworkError):
        run_on_server(service, asked(), poll=Pace(0.01, 0.01), store=store)
    assert store.all() == []


def test_a_bad_key_is_told_at_once(server: EmulatorServer, store: BatchStore) -> None:
    with pytest.raises(AuthenticationError):
        run(server, store, service=service_for(server, "pplx-" + "wrong" * 5))
    assert len(server.requests) == 1


def test_an_interrupt_gives_back_what_there_is(server: EmulatorServer, store: BatchStore) -> None:
    def look(progress: ServerProgress) -> None:
        if progress.done >= 2 and len(progress.batch_ids) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    # Two files and two batches, of which the second does not begin.
    server.next(*[Behavior()] * 3, SLOW)
    outcomes = run(server, store, max_lines=2, on_progress=look)
    assert kinds(outcomes) == ["Answer", "Answer", "AbortedError", "AbortedError"]


def test_a_stop_between_two_rows_keeps_those_that_were_delivered(
    server: EmulatorServer, store: BatchStore
) -> None:
    stopped = threading.Event()
    outcomes = run(server, store, stopped=stopped, on_outcome=lambda row, outcome: stopped.set())
    assert kinds(outcomes) == ["Answer", "AbortedError", "AbortedError", "AbortedError"]
    assert len(answers(run(server, store, *TEXTS[1:]))) == 3
    assert n_questions(server) == 4


def test_a_stop_while_it_is_handed_in_can_be_gone_on_from(
    server: EmulatorServer, store: BatchStore
) -> None:
    stopped = threading.Event()
    server.next(Behavior(), Behavior(delay=30))

    def stop() -> None:
        while not calls(server, "POST", "/v1/batches"):
            pass
        stopped.set()

    thread = threading.Thread(target=stop)
    thread.start()
    outcomes = run(server, store, stopped=stopped)
    thread.join()
    assert kinds(outcomes) == ["AbortedError"] * 4
    assert "handed in" in str(outcomes[0])
    assert len(answers(run(server, store))) == 4


def test_a_batch_can_be_cancelled_and_what_it_answered_is_fetched(
    server: EmulatorServer, store: BatchStore
) -> None:
    service = service_for(server)
    stop_when_validating(server, store)
    (record,) = store.all()
    assert cancel_server_batch(service, record.batch_id or "", store=store).status == "cancelling"
    outcomes = run(server, store)
    assert kinds(outcomes) == ["AbortedError"] * 4
    assert "cancelled" in str(outcomes[0])
    assert n_questions(server) == 0
    with pytest.raises(InvalidRequestError, match="already"):
        cancel_server_batch(service, record.batch_id or "", store=store)
    assert len(answers(run(server, store))) == 4


def test_a_batch_of_another_account_is_not_asked_again_unless_it_is_given_up(
    server: EmulatorServer, store: BatchStore
) -> None:
    stop_when_validating(server, store)
    (record,) = store.all()
    del _desks[server].batches[record.batch_id or ""]  # what another key's owner would see
    _desks[server].by_key.clear()
    outcomes = run(server, store)
    assert kinds(outcomes) == ["InvalidRequestError"] * 4
    assert "another account" in str(outcomes[0])
    assert len(calls(server, "POST", "/v1/files")) == 1
    with pytest.raises(InvalidRequestError, match="forgotten"):
        cancel_server_batch(service_for(server), record.batch_id or "", store=store)
    assert len(answers(run(server, store))) == 4


def test_no_key_and_no_question_is_on_disk(server: EmulatorServer, store: BatchStore) -> None:
    run(server, store, f"Is {KEY} mine, zanzibar?")
    store.close()
    data = b"".join(file.read_bytes() for file in store.path.parent.iterdir())
    assert KEY.encode() not in data and b"zanzibar" not in data


def test_what_the_service_says_does_not_show_the_key(
    server: EmulatorServer, store: BatchStore
) -> None:
    questions = asked(TEXTS[0])
    questions.append(Question("Who?", model="low", extra={KEY: 1}))
    outcomes = run(server, store, questions=questions)
    assert kinds(outcomes) == ["Answer", "InvalidRequestError"]
    assert KEY not in f"{outcomes[1]!r}{outcomes[1]}"


def test_an_error_of_a_row_can_be_pickled_and_names_no_frames(
    server: EmulatorServer, store: BatchStore
) -> None:
    server.next(Behavior(), Behavior(batch_lines={1: "http"}))
    (error,) = run(server, store, TEXTS[0])
    assert isinstance(error, PerplexityError)
    assert error.__traceback__ is None and error.__context__ is None
