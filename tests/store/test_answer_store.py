"""Answers that were paid for are there again, for as long and as many as the user wants."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import itertools
import json
import signal
import sqlite3
import stat
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from ipyperplexity import answer_record
from ipyperplexity.answer import Answer
from ipyperplexity.errors import ConfigurationError, PerplexityWarning
from ipyperplexity.sources import Source, Sources
from ipyperplexity.store.answer_store import AnswerStore, StoreInfo
from tests.store.processes import run_at_once, start

DAY = dt.timedelta(days=1)
KEY = "pplx-" + "5ecre7" * 4


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """A warning that a test does not expect is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", PerplexityWarning)
        yield


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "companies.db"


@pytest.fixture
def store(path: Path) -> Iterator[AnswerStore]:
    store = AnswerStore(path)
    yield store
    store.close()


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def pass_(self, span: dt.timedelta) -> None:
        self.now += span.total_seconds()


# --- what is put is there -------------------------------------------------------------------------


def test_an_answer_is_found_by_its_key(store: AnswerStore) -> None:
    store.put("a", '{"text": "A"}')
    assert store.get("a") == '{"text": "A"}'
    assert store.get("b") is None


def test_many_are_found_at_once_in_whatever_number(store: AnswerStore) -> None:
    for number in range(0, 2600, 2):
        store.put(f"key {number}", str(number))
    wanted = [f"key {number}" for number in range(2600)]
    found = store.get_many(iter(wanted + wanted))
    assert found == {f"key {number}": str(number) for number in range(0, 2600, 2)}
    assert store.get_many([]) == {}


def test_a_later_answer_to_the_same_question_replaces_the_earlier(store: AnswerStore) -> None:
    store.put("a", "first")
    store.put("a", "second!")
    assert store.get("a") == "second!"
    assert (store.info().rows, store.info().bytes) == (1, 7)


def test_another_process_goes_on_with_it(store: AnswerStore, path: Path) -> None:
    store.put("a", "A")
    code = """
import sys
from pathlib import Path
from ipyperplexity.store.answer_store import AnswerStore
store = AnswerStore(Path(sys.argv[1]))
print(store.get("a"))
store.put("b", "B")
"""
    out, errors = start(code, path).communicate(timeout=60)
    assert out == "A\n", errors
    assert store.get_many(["a", "b"]) == {"a": "A", "b": "B"}


def test_the_cache_is_where_the_user_wants_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path / "here"))
    store = AnswerStore()
    store.put("a", "A")
    store.close()
    assert store.path == tmp_path / "here" / "cache" / "answers.db"
    assert AnswerStore().get("a") == "A"


def test_nobody_else_can_read_it(store: AnswerStore, path: Path) -> None:
    store.put("a", "A")
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert {path.name, f"{path.name}-wal"} <= modes.keys()
    assert set(modes.values()) == {0o600}


def test_the_folder_of_a_checkpoint_stays_as_the_user_has_made_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o755)
    AnswerStore(tmp_path / "data" / "x.db").put("a", "A")
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o755


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.text()))
def test_any_text_survives(tmp_path_factory, documents: dict[str, str]) -> None:
    store = AnswerStore(tmp_path_factory.mktemp("any") / "x.db")
    for key, document in documents.items():
        store.put(key, document)
    assert store.get_many(documents) == {
        key: document.encode("utf-8", "replace").decode() for key, document in documents.items()
    }
    store.close()


# --- no secret ------------------------------------------------------------------------------------


def test_no_key_is_in_the_file_wherever_in_an_answer_it_stood(store: AnswerStore) -> None:
    token = "eyJhbGciOiJkaXIi." + "c2VjcmV0" * 4 + ".x"
    secret = f"see {KEY}, Bearer {'b3arer' * 4} and {token}"
    answer = Answer(
        secret,
        f"The key is\n{secret}\tyes",
        reasoning=secret,
        sources=Sources([Source(1, secret, "https://a.example/?k=" + KEY, snippet=secret)]),
        data={secret: [secret]},
        raw={"echo": {"authorization": secret}},
        options={"system": secret},
        warnings=(secret,),
        error=ConfigurationError(secret, hint=secret),
    )
    fields = {field.name: getattr(answer, field.name) for field in dataclasses.fields(answer)}
    document = answer_record.dumps(fields)
    store.put("recorded", document)
    store.put("as it came", json.dumps({"text": secret, "raw": [secret]}, ensure_ascii=False))
    # What the record has masked is left as it is: a second mask takes nothing away.
    assert store.get("recorded") == document
    again = Answer(**answer_record.loads(document.encode(), "it"))
    assert again.text == "The key is\nsee ***, Bearer *** and ***\tyes"
    assert json.loads(store.get("as it came") or "")["text"] == "see ***, Bearer *** and ***"
    store.close()
    data = b"".join(file.read_bytes() for file in store.path.parent.iterdir())
    for part in (b"5ecre7", b"b3arer", b"c2VjcmV0"):
        assert part not in data


# --- how long, and how many -----------------------------------------------------------------------


def test_an_old_answer_is_asked_anew(path: Path) -> None:
    clock = Clock()
    store = AnswerStore(path, max_age=DAY, clock=clock)
    store.put("a", "A")
    clock.pass_(DAY)
    assert store.get("a") == "A"
    clock.pass_(dt.timedelta(microseconds=1))
    assert store.get("a") is None
    assert store.get_many(["a"]) == {}
    assert AnswerStore(path, clock=clock).get("a") == "A"  # who sets no limit has it still


def test_old_answers_are_deleted_as_others_come(path: Path) -> None:
    clock = Clock()
    store = AnswerStore(path, max_age=DAY, clock=clock)
    for key in "abc":
        store.put(key, key)
        clock.pass_(DAY / 2)
    assert store.info().rows == 3  # a is old, and nothing came since
    store.put("d", "d")
    assert AnswerStore(path, clock=clock).get_many("abcd") == {"b": "b", "c": "c", "d": "d"}


def test_an_age_without_end_is_no_limit(path: Path) -> None:
    store = AnswerStore(path, max_age=dt.timedelta.max)
    store.put("a", "A")
    assert store.get("a") == "A"


def test_of_too_many_answers_the_oldest_go_first(path: Path) -> None:
    clock = Clock()
    store = AnswerStore(path, max_bytes=1000, clock=clock)
    for number in range(10):
        store.put(str(number), "x" * 100)
    assert store.info().bytes == 1000
    store.put("0", "y" * 100)  # again, and so among the newest
    clock.pass_(-DAY)  # the order is that of putting, whatever a clock says
    store.put("10", "x" * 100)
    found = store.get_many(map(str, range(11)))
    assert sorted(map(int, found)) == [0, 3, 4, 5, 6, 7, 8, 9, 10]
    assert store.info().bytes == 900


def test_cleaning_up_is_not_done_for_each_row(path: Path) -> None:
    store = AnswerStore(path, max_bytes=10_000)
    sizes = []
    for number in range(400):
        store.put(str(number), "x" * 100)
        sizes.append(store.info().rows)
    cleaned = [at for at, (before, after) in enumerate(itertools.pairwise(sizes)) if after < before]
    assert max(sizes) == 100
    assert [b - a for a, b in itertools.pairwise(cleaned)] == [11] * (len(cleaned) - 1)


def test_an_answer_larger_than_the_whole_limit_drives_no_other_out(path: Path) -> None:
    store = AnswerStore(path, max_bytes=100)
    store.put("a", "x" * 5)
    store.put("b", "é" * 51)
    assert store.get_many("ab") == {"a": "x" * 5}
    store.put("c", "é" * 50)
    assert store.get_many("abc") == {"c": "é" * 50}


def test_a_limit_that_is_set_later_holds_from_the_next_answer_on(store: AnswerStore) -> None:
    for number in range(100):
        store.put(str(number), "x" * 10)
    limited = AnswerStore(store.path, max_bytes=200)
    limited.put("new", "x" * 10)
    assert limited.info().bytes == 180
    assert limited.get("new") is not None


def test_what_is_cleared_is_gone_and_its_space_is_free(store: AnswerStore, path: Path) -> None:
    for number in range(200):
        store.put(str(number), "marked" * 1000)
    assert store.clear() == 200
    assert store.clear() == 0
    assert store.get("1") is None
    assert (store.info().rows, store.info().bytes, store.info().oldest) == (0, 0, None)
    files = {file.name: file.stat().st_size for file in path.parent.iterdir()}
    assert sum(files.values()) < 200_000, files
    assert all(b"marked" not in file.read_bytes() for file in path.parent.iterdir())
    store.put("1", "A")
    assert store.get("1") == "A"


def test_only_what_is_old_is_cleared_if_so_wished(path: Path) -> None:
    clock = Clock()
    store = AnswerStore(path, clock=clock)
    store.put("a", "A")
    clock.pass_(DAY)
    store.put("b", "B")
    assert store.clear(older_than=DAY * 2) == 0
    assert store.clear(older_than=DAY / 2) == 1
    assert store.get_many("ab") == {"b": "B"}


def test_its_size_and_times_are_told(path: Path) -> None:
    clock = Clock()
    store = AnswerStore(path, clock=clock)
    assert store.info() == StoreInfo(path, 0, 0, None, None)
    assert store.clear() == 0
    assert not path.parent.exists()  # to look is not to make
    first = dt.datetime.fromtimestamp(clock.now, dt.UTC)
    store.put("a", "é")
    clock.pass_(DAY)
    store.put("b", "B")
    assert store.info() == StoreInfo(path, 2, 3, first, first + DAY)


class AnyUse(RuleBasedStateMachine):
    """Whatever is done, in whatever order, by two stores: what is told is what is there."""

    folder: Path
    numbers = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        path = self.folder / f"{next(self.numbers)}.db"
        self.clock = Clock()
        self.stores = [
            AnswerStore(path, max_bytes=300, max_age=DAY, clock=self.clock),
            AnswerStore(path, max_bytes=300, max_age=DAY, clock=self.clock),
        ]
        self.known: dict[str, str] = {}

    @rule(who=st.integers(0, 1), key=st.sampled_from("abcdefg"), document=st.text(max_size=110))
    def put(self, who: int, key: str, document: str) -> None:
        document = document.encode("utf-8", "replace").decode()
        self.stores[who].put(key, document)
        if len(document.encode()) <= 300:
            self.known[key] = document
            assert self.stores[1 - who].get(key) == document

    @rule(days=st.sampled_from([0.4, 0.7]))
    def pass_time(self, days: float) -> None:
        self.clock.pass_(DAY * days)

    @rule(who=st.integers(0, 1))
    def clear(self, who: int) -> None:
        before = self.rows_there()[0]
        assert self.stores[who].clear() == before

    def rows_there(self) -> tuple[int, int]:
        if not self.stores[0].path.exists():
            return 0, 0
        with contextlib.closing(sqlite3.connect(self.stores[0].path)) as connection:
            query = "SELECT COUNT(*), COALESCE(SUM(LENGTH(CAST(document AS BLOB))), 0) "
            return connection.execute(query + "FROM perplexity_answers").fetchone()

    @invariant()
    def the_totals_are_right_and_within_the_limit(self) -> None:
        info = self.stores[0].info()
        assert (info.rows, info.bytes) == self.rows_there()
        assert info.bytes <= 300
        for key, document in self.stores[1].get_many("abcdefg").items():
            assert self.known[key] == document

    def teardown(self) -> None:
        for store in self.stores:
            store.close()


def test_whatever_is_done_in_whatever_order_the_totals_are_right(tmp_path: Path) -> None:
    AnyUse.folder = tmp_path
    run_state_machine_as_test(
        AnyUse, settings=settings(max_examples=25, stateful_step_count=20, deadline=None)
    )


# --- several at once, and sudden ends -------------------------------------------------------------


def test_threads_that_share_a_store_lose_nothing(store: AnswerStore) -> None:
    def work(name: str) -> None:
        for number in range(40):
            store.put(f"{name}{number}", f"{name}{number}")
            assert store.get(f"{name}{number}") is not None

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    keys = [f"{name}{number}" for name in "abcdefgh" for number in range(40)]
    assert store.get_many(keys) == {key: key for key in keys}
    assert store.info().rows == 320


WRITER = """
import sys
from pathlib import Path
from ipyperplexity.store.answer_store import AnswerStore
print("ready", flush=True)
sys.stdin.readline()
store = AnswerStore(Path(sys.argv[2]), max_bytes=10**7)
store.check()
for number in range(60):
    store.put(f"{sys.argv[1]} {number}", "x" * 2000)
    store.put("shared", sys.argv[1])
    assert store.get(f"{sys.argv[1]} {number}") is not None
"""


def test_processes_that_use_it_at_once_lose_nothing(store: AnswerStore, path: Path) -> None:
    run_at_once(WRITER, 3, path)
    keys = [f"{who} {number}" for who in range(3) for number in range(60)]
    assert store.get_many(keys).keys() == set(keys)
    assert store.get("shared") in ("0", "1", "2")
    assert (store.info().rows, store.info().bytes) == (181, 180 * 2000 + 1)


ENDLESS = """
import itertools, sys
from pathlib import Path
from ipyperplexity.store.answer_store import AnswerStore
store = AnswerStore(Path(sys.argv[1]))
store.check()
for number in itertools.count(int(sys.argv[2])):
    store.put(f"key {number}", str(number) + " " + "x" * (number * 7919 % 9000))
    print(number, flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nothing here ends so suddenly")
def test_a_program_that_is_killed_loses_no_answer_that_was_put(path: Path) -> None:
    said: list[int] = []
    for run, length in enumerate((1, 7, 23, 60)):  # to be killed early and late, on one file
        process = start(ENDLESS, path, run * 10_000)
        assert process.stdout is not None
        for line in process.stdout:
            said.append(int(line))
            if said[-1] >= run * 10_000 + length:
                process.send_signal(signal.SIGKILL)
                break
        said += map(int, process.stdout.read().split())  # what it said before it was dead
        _, errors = process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL, errors
    store = AnswerStore(path)
    found = store.get_many(f"key {number}" for number in said)
    assert found == {
        f"key {number}": str(number) + " " + "x" * (number * 7919 % 9000) for number in said
    }
    assert len(said) <= store.info().rows <= len(said) + 4  # one more may be put, and not yet said
    store.close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        total = "SELECT COUNT(*), SUM(size) FROM perplexity_answers"
        assert (
            connection.execute(total).fetchall()
            == connection.execute("SELECT rows, bytes FROM totals").fetchall()
        )


# --- a disk that is not as it should be -----------------------------------------------------------

DAMAGED = b"SQLite format 3\0" + b"?" * 999


@pytest.mark.parametrize("damage", [DAMAGED, b"no database at all" * 100])
def test_a_damaged_cache_is_set_aside_with_a_warning(path: Path, damage: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(damage)
    cache = AnswerStore(path, strict=False)
    with pytest.warns(PerplexityWarning, match="set aside as"):
        assert cache.get("a") is None
    cache.put("a", "A")
    assert cache.get("a") == "A"
    assert path.with_name("companies.db.broken-1").read_bytes() == damage


def test_a_damaged_checkpoint_is_set_aside_with_a_warning(store: AnswerStore, path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(DAMAGED)
    with pytest.warns(PerplexityWarning, match="set aside as"):
        store.check()
    store.put("a", "A")
    assert store.get("a") == "A"


def test_damage_that_shows_in_the_middle_costs_no_answer_that_comes_after(
    store: AnswerStore, path: Path
) -> None:
    store.put("a", "A")
    store.close()
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[16:18], "big")
    data[size:] = b"\xee" * (len(data) - size)  # all but the page that opening looks at
    path.write_bytes(data)
    with pytest.warns(PerplexityWarning, match="set aside as"):
        store.put("b", "B")
    assert store.get_many("ab") == {"b": "B"}


@pytest.mark.parametrize("make", ["table", "database"])
def test_a_file_of_the_user_is_no_checkpoint_and_stays(path: Path, make: str) -> None:
    path.parent.mkdir()
    if make == "table":
        path.write_text("company,city\nDune,Arrakeen\n" * 50)
    else:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE companies (name)")
    before = path.read_bytes()
    for use in (
        lambda store: store.check(),
        lambda store: store.put("a", "A"),
        lambda store: store.get("a"),
        lambda store: store.clear(),
        lambda store: store.info(),
    ):
        with pytest.raises(ConfigurationError, match=r"companies\.db is .*database") as caught:
            use(AnswerStore(path))
        assert caught.value.field == "checkpoint"
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_an_empty_file_can_become_a_checkpoint(store: AnswerStore, path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    store.check()
    store.put("a", "A")
    assert store.get("a") == "A"


def test_a_checkpoint_that_cannot_be_kept_is_an_error_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    (tmp_path / "plain").write_text("in the way")
    (tmp_path / "folder").mkdir()
    for place in (tmp_path / "plain" / "x.db", tmp_path / "folder"):
        store = AnswerStore(place)
        with pytest.raises(ConfigurationError, match=r"plain|folder"):
            store.check()
        with pytest.raises(ConfigurationError):  # and at each use
            store.put("a", "A")
        with pytest.raises(ConfigurationError):
            store.get("a")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder", "plain"]


def test_a_cache_that_cannot_be_kept_is_one_warning_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("in the way")
    cache = AnswerStore(tmp_path / "plain" / "x.db", strict=False)
    with pytest.warns(PerplexityWarning, match=r"cache.*plain") as caught:
        cache.check()
    assert len(caught) == 1
    cache.put("a", "A")
    assert (cache.get("a"), cache.get_many("ab")) == (None, {})
    cache.close()


def test_the_own_cache_is_not_strict_and_a_named_file_is(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path))
    (tmp_path / "cache").write_text("in the way")
    with pytest.warns(PerplexityWarning, match="cache"):
        AnswerStore().put("a", "A")
    with pytest.raises(ConfigurationError):
        AnswerStore(tmp_path / "cache" / "answers.db").put("a", "A")


def test_what_the_user_asks_to_clear_is_cleared_or_an_error_says_why_not(
    store: AnswerStore, path: Path
) -> None:
    store.put("a", "A")
    store.close()
    impatient = AnswerStore(path, strict=False)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ConfigurationError, match="locked"):
            impatient.clear()
        other.rollback()
    assert impatient.clear() == 1
