"""What was paid for is on disk: whole, once, and for its owner alone."""

from __future__ import annotations

import dataclasses
import datetime as dt
import multiprocessing
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.errors import ConfigurationError, PerplexityWarning
from ipyperplexity.store.job_store import JobRecord, JobStore, shared_store

RECORD = JobRecord(
    "resp_1",
    "agent",
    "https://api.perplexity.ai",
    "Why?",
    model="high",
    notebook="work/a.ipynb",
    options={"model": "high", "limit": 3, "domains": ["x.org"]},
    schema={"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
    turns=(("Who?", "She.[1]"),),
    notices=("asked with a successor",),
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    store = JobStore(tmp_path / "state" / "jobs.db")
    yield store
    store.close()


def changed(**facts: object) -> JobRecord:
    return dataclasses.replace(RECORD, **facts)


def test_a_record_comes_back_field_by_field(store: JobStore) -> None:
    store.put(RECORD)
    assert store.get("resp_1") == RECORD
    assert store.all() == [RECORD]
    assert store.answer("resp_1") is None


def test_what_nobody_put_is_not_there(store: JobStore) -> None:
    assert (store.get("resp_2"), store.answer("resp_2"), store.all()) == (None, None, [])


def test_another_process_finds_it(store: JobStore) -> None:
    store.put(RECORD)
    other = JobStore(store.path)
    assert other.get("resp_1") == RECORD
    other.close()


def test_the_newest_job_stands_first(store: JobStore) -> None:
    day = dt.datetime(2026, 10, 1, tzinfo=dt.UTC)
    for n in (2, 1, 3):
        store.put(changed(id=f"resp_{n}", created=day + dt.timedelta(days=n)))
    assert [record.id for record in store.all()] == ["resp_3", "resp_2", "resp_1"]


def test_a_later_look_replaces_what_was_known(store: JobStore) -> None:
    store.put(RECORD)
    store.put(changed(status="in_progress"))
    known = store.get("resp_1")
    assert known is not None and known.status == "in_progress"
    assert len(store.all()) == 1


def test_the_first_answer_counts_and_no_later_look_takes_it_back(store: JobStore) -> None:
    store.put(RECORD)
    done = changed(status="completed", cost_usd=0.25, model="openai/gpt-6-sol")
    assert store.put(done, '{"text": "first"}') is True
    assert store.put(done, '{"text": "second"}') is False
    assert store.put(changed(status="in_progress")) is False
    assert store.put(changed(status="unknown")) is False
    assert store.get("resp_1") == done
    assert store.answer("resp_1") == '{"text": "first"}'


def test_what_was_forgotten_is_gone(store: JobStore) -> None:
    store.put(RECORD, "{}")
    store.put(changed(id="resp_2"))
    assert store.forget(["resp_1", "resp_7"]) == 1
    assert (store.get("resp_1"), store.answer("resp_1")) == (None, None)
    assert [record.id for record in store.all()] == ["resp_2"]


def test_nobody_else_can_read_it(store: JobStore) -> None:
    store.put(RECORD)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700


def test_what_looks_like_a_key_is_masked(store: JobStore) -> None:
    key = "pplx-" + "5ecre7" * 4
    store.put(
        changed(
            question=f"Is {key} mine?",
            options={"system": key},
            turns=((key, key),),
            notices=(key,),
            schema={"description": key},
            notebook=key,
        ),
        f'{{"text": "{key}"}}',
    )
    store.close()
    assert all(key.encode() not in file.read_bytes() for file in store.path.parent.iterdir())


@settings(max_examples=40, deadline=None)
@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    options=st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers()),
)
def test_any_text_survives(tmp_path_factory, text: str, options: dict[str, int]) -> None:
    store = JobStore(tmp_path_factory.mktemp("store") / "jobs.db")
    record = changed(question=text, options=options, turns=((text, text),), notices=(text,))
    store.put(record, text)
    assert (store.get("resp_1"), store.answer("resp_1")) == (record, text)
    store.close()


def test_half_a_character_is_no_reason_to_lose_a_job(store: JobStore) -> None:
    store.put(changed(question="Why \ud83d?", turns=(("\udc00", ""),)))
    known = store.get("resp_1")
    assert known is not None and known.question.startswith("Why ")


# --- several processes, and what befalls them ----------------------------------------------------


def put_many(path: Path, name: str, count: int) -> None:
    store = JobStore(path)
    for n in range(count):
        store.put(changed(id=f"resp_{name}_{n}"))
        store.put(changed(id=f"resp_{name}_{n}", status="completed"), "{}")
        store.all()
    store.close()


def test_several_kernels_at_once_lose_nothing(store: JobStore) -> None:
    spawn = multiprocessing.get_context("spawn")
    names = ["a", "b", "c"]
    workers = [spawn.Process(target=put_many, args=(store.path, name, 25)) for name in names]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    records = store.all()
    assert {record.id for record in records} == {f"resp_{x}_{n}" for x in names for n in range(25)}
    assert {record.status for record in records} == {"completed"}


def first_answers(path: Path, start: object, won: object) -> None:
    store = JobStore(path)
    start.wait()  # type: ignore[attr-defined]
    for n in range(20):
        done = changed(id=f"resp_{n}", status="completed")
        if store.put(done, f'{{"by": {os.getpid()}}}'):
            won.put(n)  # type: ignore[attr-defined]
    store.close()


def test_of_several_processes_that_fetch_an_answer_one_is_the_first(store: JobStore) -> None:
    spawn = multiprocessing.get_context("spawn")
    start, won = spawn.Barrier(2), spawn.Queue()
    workers = [spawn.Process(target=first_answers, args=(store.path, start, won)) for _ in range(2)]
    for worker in workers:
        worker.start()
    firsts = sorted(won.get(timeout=60) for _ in range(20))
    for worker in workers:
        worker.join()
    assert firsts == list(range(20)) and won.empty()


def test_a_kernel_that_is_killed_loses_nothing_that_was_put(store: JobStore) -> None:
    code = (
        "import sys, itertools, pathlib\n"
        "from ipyperplexity.store.job_store import JobRecord, JobStore\n"
        "store = JobStore(pathlib.Path(sys.argv[1]))\n"
        "for n in itertools.count():\n"
        "    store.put(JobRecord(f'resp_{n}', 'agent', '', 'Why?' * 500), 'x' * 5000)\n"
        "    print(n, flush=True)\n"
    )
    command = [sys.executable, "-c", code, str(store.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if int(line) == 30:
                child.send_signal(signal.SIGKILL)  # in the middle of a later put, most likely
                break
        said = [30, *(int(line) for line in child.stdout.read().split())]
    known = {record.id for record in store.all()}
    assert {f"resp_{n}" for n in range(max(said) + 1)} <= known
    assert all(store.answer(id) == "x" * 5000 for id in known)


# --- a disk that is not as it should be ----------------------------------------------------------


@pytest.mark.parametrize("damage", [b"no database at all" * 100, b"SQLite format 3\0" + b"?" * 999])
def test_a_damaged_file_is_set_aside_with_a_warning(store: JobStore, damage: bytes) -> None:
    store.path.parent.mkdir(parents=True)
    store.path.write_bytes(damage)
    with pytest.warns(PerplexityWarning, match="set aside"):
        store.put(RECORD)
    assert store.all() == [RECORD]
    assert (store.path.parent / "jobs.db.broken-1").read_bytes() == damage


def test_a_file_of_a_later_version_is_not_written_over(store: JobStore) -> None:
    store.path.parent.mkdir(parents=True)
    with sqlite3.connect(store.path) as later:
        later.execute("PRAGMA user_version=99")
    later.close()
    with pytest.warns(PerplexityWarning, match="version 99"):
        store.put(RECORD)
    assert (store.path.parent / "jobs.db.broken-1").exists()


def test_a_place_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = JobStore(tmp_path / "file" / "state" / "jobs.db")
    for attempt in (lambda: store.put(RECORD), store.all, lambda: store.forget(["resp_1"])):
        with pytest.raises(ConfigurationError, match="file"):
            attempt()


def test_it_is_where_the_user_wants_state(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path / "here"))
    store = shared_store()
    store.put(RECORD)
    assert (tmp_path / "here" / "state" / "jobs.db").exists()
    assert shared_store() is store
    store.close()
