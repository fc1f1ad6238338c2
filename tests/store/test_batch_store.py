"""Which batch holds which question is on disk: before it is paid for, and until it is delivered."""

from __future__ import annotations

import dataclasses
import datetime as dt
import multiprocessing
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipyperplexity.errors import ConfigurationError, PerplexityWarning
from ipyperplexity.store.batch_store import BatchRecord, BatchStore, shared_store

URL = "https://api.perplexity.ai"
RECORD = BatchRecord("key-1", URL, "print-1", "file_1", n_lines=3)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[BatchStore]:
    store = BatchStore(tmp_path / "state" / "batches.db")
    yield store
    store.close()


def changed(**facts: object) -> BatchRecord:
    return dataclasses.replace(RECORD, **facts)


def test_a_record_comes_back_field_by_field(store: BatchStore) -> None:
    store.put(RECORD, ["a", "b", "c"])
    assert store.all() == [RECORD]
    assert store.holding(URL, ["c", "a", "z"]) == [(RECORD, {"c": 3, "a": 1})]


def test_what_is_learned_later_replaces_what_was_known_and_the_lines_stay(
    store: BatchStore,
) -> None:
    store.put(RECORD, ["a"])
    known = changed(batch_id="batch_1", status="in_progress", updated=dt.datetime.now(dt.UTC))
    store.put(known)
    assert store.holding(URL, ["a"]) == [(known, {"a": 1})]


def test_another_process_finds_it(store: BatchStore) -> None:
    store.put(RECORD, ["a"])
    other = BatchStore(store.path)
    assert other.holding(URL, ["a"]) == [(RECORD, {"a": 1})]
    other.close()


def test_a_line_that_was_crossed_off_is_held_no_more(store: BatchStore) -> None:
    store.put(RECORD, ["a", "b"])
    store.cross_off("key-1", ["a"])
    store.cross_off("key-2", ["b"])
    assert store.holding(URL, ["a", "b"]) == [(RECORD, {"b": 2})]
    store.cross_off("key-1", ["b"])
    assert store.holding(URL, ["a", "b"]) == []
    assert store.count(URL, "print-1") == 1, "that it was asked is still known"


def test_a_line_in_several_batches_is_told_of_the_oldest(store: BatchStore) -> None:
    later = RECORD.created + dt.timedelta(minutes=1)
    store.put(changed(key="key-2", created=later), ["a", "b"])
    store.put(RECORD, ["a"])
    found = store.holding(URL, ["a", "b"])
    assert [(record.key, lines) for record, lines in found] == [
        ("key-1", {"a": 1}), ("key-2", {"b": 2}),
    ]  # fmt: skip


def test_the_batches_of_another_service_do_not_count(store: BatchStore) -> None:
    store.put(RECORD, ["a"])
    assert store.holding("https://gateway.example", ["a"]) == []
    assert store.count("https://gateway.example", "print-1") == 0


def test_a_whole_column_is_looked_up_at_once(store: BatchStore) -> None:
    names = [f"id-{n}" for n in range(5000)]
    store.put(RECORD, names)
    ((_, lines),) = store.holding(URL, reversed(names))
    assert lines == {name: number for number, name in enumerate(names, 1)}


def test_what_the_service_has_forgotten_is_forgotten(store: BatchStore) -> None:
    store.put(RECORD, ["a"])
    store.put(changed(key="key-2", created=RECORD.created + dt.timedelta(days=2)), ["b"])
    month_later = RECORD.created + dt.timedelta(days=30, hours=1)
    found = store.holding(URL, ["a", "b"], month_later)
    assert [record.key for record, _ in found] == ["key-2"]
    assert [record.key for record in store.all()] == ["key-2"]


@pytest.mark.parametrize("name", ["batch_1", "key-1"])
def test_a_batch_is_forgotten_by_its_id_or_its_key(store: BatchStore, name: str) -> None:
    store.put(changed(batch_id="batch_1"), ["a"])
    assert store.forget(name) is True
    assert store.forget(name) is False
    assert (store.all(), store.holding(URL, ["a"]), store.count(URL, "print-1")) == ([], [], 0)


def test_nobody_else_can_read_it(store: BatchStore) -> None:
    store.put(RECORD)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700


def put_many(path: Path, name: str) -> None:
    store = BatchStore(path)
    for n in range(20):
        store.put(changed(key=f"{name}-{n}"), [f"{name}-{n}-{line}" for line in range(5)])
        store.cross_off(f"{name}-{n}", [f"{name}-{n}-0"])
    store.close()


def test_several_kernels_at_once_lose_nothing(store: BatchStore) -> None:
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=put_many, args=(store.path, name)) for name in "abc"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    names = [f"{name}-{n}-{line}" for name in "abc" for n in range(20) for line in range(5)]
    found = store.holding(URL, names)
    assert len(found) == 60
    assert {len(lines) for _, lines in found} == {4}


def test_a_kernel_that_is_killed_loses_nothing_that_was_put(store: BatchStore) -> None:
    code = (
        "import sys, itertools, pathlib\n"
        "from ipyperplexity.store.batch_store import BatchRecord, BatchStore\n"
        "store = BatchStore(pathlib.Path(sys.argv[1]))\n"
        "for n in itertools.count():\n"
        f"    store.put(BatchRecord(str(n), {URL!r}, 'p', 'f'), [f'{{n}}-{{i}}' for i in range(50)])\n"
        "    print(n, flush=True)\n"
    )
    command = [sys.executable, "-c", code, str(store.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if int(line) == 30:
                child.send_signal(signal.SIGKILL)
                break
        said = [30, *(int(line) for line in child.stdout.read().split())]
    for n in range(max(said) + 1):
        ((record, lines),) = store.holding(URL, [f"{n}-{i}" for i in range(50)])
        assert (record.key, len(lines)) == (str(n), 50)


def test_a_damaged_file_is_set_aside_with_a_warning(store: BatchStore) -> None:
    store.path.parent.mkdir(parents=True)
    store.path.write_bytes(b"no database at all" * 100)
    with pytest.warns(PerplexityWarning, match="set aside"):
        store.put(RECORD, ["a"])
    assert store.holding(URL, ["a"]) == [(RECORD, {"a": 1})]


def test_a_place_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = BatchStore(tmp_path / "file" / "state" / "batches.db")
    for attempt in (lambda: store.put(RECORD), store.all, lambda: store.forget("key-1")):
        with pytest.raises(ConfigurationError, match="file"):
            attempt()


def test_it_is_where_the_user_wants_state(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path / "here"))
    store = shared_store()
    store.put(RECORD)
    assert (tmp_path / "here" / "state" / "batches.db").exists()
    assert shared_store() is store
    store.close()
