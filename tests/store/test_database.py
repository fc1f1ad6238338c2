"""A database that several kernels share, and that no damage to its file can stop."""

from __future__ import annotations

import contextlib
import gc
import os
import sqlite3
import stat
import sys
import threading
import warnings
from pathlib import Path

import pytest

from ipyperplexity.errors import ConfigurationError, PerplexityWarning
from ipyperplexity.store.database import Database
from tests.store.processes import run_at_once, start

SCHEMA = "CREATE TABLE IF NOT EXISTS t (a)"
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
posix = pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX")


def add(database: Database, value: object) -> None:
    with database.transaction() as connection:
        connection.execute("INSERT INTO t VALUES (?)", (value,))


def values(database: Database) -> list[object]:
    return [row[0] for row in database.rows("SELECT a FROM t ORDER BY a")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "x.db"


@pytest.fixture
def database(path: Path) -> Database:
    return Database(path, SCHEMA)


def test_what_is_written_is_there_after_closing_and_for_others(
    database: Database, path: Path
) -> None:
    add(database, 1)
    database.close()
    add(database, 2)
    assert values(database) == values(Database(path, SCHEMA)) == [1, 2]


@posix
def test_all_its_files_are_private_even_where_the_umask_hides_nothing(path: Path) -> None:
    before = os.umask(0)
    try:
        database = Database(path, SCHEMA)
        add(database, 1)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes["x.db"] == modes["x.db-wal"] == 0o600
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@posix
def test_a_file_that_others_could_read_is_made_private(path: Path) -> None:
    path.parent.mkdir()
    path.touch(0o644)
    path.chmod(0o644)
    add(Database(path, SCHEMA), 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_error_or_an_interrupt_inside_a_transaction_leaves_nothing_of_it(
    database: Database,
) -> None:
    for stop in (ZeroDivisionError, KeyboardInterrupt):
        with pytest.raises(stop), database.transaction() as connection:
            connection.execute("INSERT INTO t VALUES (1)")
            raise stop
    wrong = pytest.raises(ConfigurationError, match="cannot be written")
    with wrong, database.transaction() as connection:
        connection.execute("INSERT INTO t VALUES (2)")
        connection.execute("INSERT INTO nowhere VALUES (2)")
    add(database, 3)
    assert values(database) == [3]


def test_a_transaction_within_a_transaction_is_refused_and_harms_neither(
    database: Database,
) -> None:
    with database.transaction() as connection:
        connection.execute("INSERT INTO t VALUES (1)")
        with pytest.raises(ConfigurationError, match="within"), database.transaction():
            pass
    assert values(database) == [1]


def test_a_wrong_query_is_an_error_that_names_the_file(database: Database) -> None:
    with pytest.raises(ConfigurationError, match=r"x\.db cannot be read: no such table"):
        database.rows("SELECT * FROM nowhere")


# --- damage ---------------------------------------------------------------------------------------


def begun_anew(path: Path, reason: str, version: int = 1) -> list[Path]:
    database = Database(path, SCHEMA, version)
    with pytest.warns(PerplexityWarning, match=reason) as caught:
        add(database, 1)
    assert len(caught) == 1
    assert values(database) == [1]
    return sorted(path.parent.glob("x.db.broken-*"))


def test_a_file_that_is_no_database_is_set_aside_with_a_warning(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"no database at all" * 100)
    (aside,) = begun_anew(path, "not a database")
    assert aside.read_bytes().startswith(b"no database")


def test_an_empty_file_becomes_a_database_without_a_word(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        add(Database(path, SCHEMA), 1)


def test_a_file_of_another_version_is_set_aside_whole(path: Path) -> None:
    other = Database(path, SCHEMA, 7)
    add(other, 1)  # in the -wal, as the connection is open
    wal = path.with_name("x.db-wal")
    assert wal.stat().st_size > 0
    asides = begun_anew(path, "of version 7, this program of 1")
    assert [aside.name for aside in asides][:1] == ["x.db.broken-1"]
    other.close()
    with contextlib.closing(sqlite3.connect(asides[0])) as connection:
        assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_what_a_killed_program_left_beside_a_file_of_another_version_is_kept(path: Path) -> None:
    code = """
import os, sys
from pathlib import Path
from ipyperplexity.store.database import Database
database = Database(Path(sys.argv[1]), "CREATE TABLE IF NOT EXISTS t (a)", 7)
with database.transaction() as connection:
    connection.execute("INSERT INTO t VALUES (41)")
os._exit(0)
"""
    process = start(code, path)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert path.with_name("x.db-wal").stat().st_size > 0
    aside = begun_anew(path, "version 7")[0]
    with contextlib.closing(sqlite3.connect(aside)) as connection:
        assert connection.execute("SELECT a FROM t").fetchall() == [(41,)]


def damage_pages(path: Path) -> None:
    """Leave the header as it is, and so what opening looks at; spoil the rest."""
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[16:18], "big")
    data[size + 8 :] = b"\xee" * (len(data) - size - 8)
    data[size : size + 8] = b"\xee" * 8
    path.write_bytes(data)


def test_damage_that_shows_only_when_it_is_read_begins_the_file_anew(
    database: Database, path: Path
) -> None:
    for number in range(2000):
        if number % 500 == 0:
            database.close()
        add(database, "x" * 20 + str(number))
    database.close()
    damage_pages(path)
    with pytest.warns(PerplexityWarning, match="set aside as"):
        assert values(database) == []
    add(database, 5)
    assert values(database) == values(Database(path, SCHEMA)) == [5]


def test_damage_that_shows_only_when_it_is_written_costs_one_write(
    database: Database, path: Path
) -> None:
    add(database, 1)
    database.close()
    damage_pages(path)
    refused = pytest.raises(ConfigurationError, match="cannot be written")
    with pytest.warns(PerplexityWarning, match="set aside as"), refused:
        add(database, 2)
    add(database, 3)
    assert values(database) == [3]


def test_a_place_that_cannot_be_used_is_an_error_and_nothing_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    with pytest.raises(ConfigurationError, match="plain"):
        add(Database(tmp_path / "plain" / "x.db", SCHEMA), 1)
    (tmp_path / "x.db").mkdir()
    with pytest.raises(ConfigurationError, match="cannot be used"):
        add(Database(tmp_path / "x.db", SCHEMA), 1)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["plain", "x.db"]


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="root may write everywhere")
def test_a_file_that_may_not_be_written_is_an_error_and_stays(path: Path) -> None:
    add(Database(path, SCHEMA), 1)
    path.chmod(0o400)
    with pytest.raises(ConfigurationError, match="cannot be used"):
        add(Database(path, SCHEMA), 2)
    path.chmod(0o600)
    assert values(Database(path, SCHEMA)) == [1]


# --- several at once ------------------------------------------------------------------------------

WRITER = """
import sys
from pathlib import Path
from ipyperplexity.store.database import Database
print("ready", flush=True)
sys.stdin.readline()
database = Database(Path(sys.argv[2]), "CREATE TABLE IF NOT EXISTS t (a)")
for number in range(100):
    with database.transaction() as connection:
        connection.execute("SELECT COUNT(*) FROM t").fetchone()  # first reads, then writes
        connection.execute("INSERT INTO t VALUES (?)", (int(sys.argv[1]) * 100 + number,))
"""


def test_processes_that_begin_a_file_at_the_same_moment_lose_nothing(
    database: Database, path: Path
) -> None:
    run_at_once(WRITER, 3, path)
    assert values(database) == list(range(300))
    assert not list(path.parent.glob("*.broken-*"))


def test_processes_that_find_a_damaged_file_at_the_same_moment_set_one_aside(
    database: Database, path: Path
) -> None:
    path.parent.mkdir()
    path.write_bytes(b"no database" * 1000)
    run_at_once(WRITER, 3, path)
    assert values(database) == list(range(300))
    assert [file.name for file in path.parent.glob("*.broken-*")] == ["x.db.broken-1"]


def test_threads_share_one_connection_and_leave_none_behind(database: Database) -> None:
    def work(start: int) -> None:
        for number in range(start, start + 20):
            add(database, number)
            values(database)

    before = open_files()
    for round_ in range(5):
        threads = [threading.Thread(target=work, args=(round_ * 160 + n * 20,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert values(database) == list(range(800))
    assert open_files() - before <= 4  # the file, its -wal and its -shm


def open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


def test_a_thread_that_keeps_it_busy_is_an_error_not_a_hanging(path: Path) -> None:
    database = Database(path, SCHEMA, timeout=0.05)
    begun, done = threading.Event(), threading.Event()

    def keep_busy() -> None:
        with database.transaction():
            begun.set()
            done.wait(30)

    thread = threading.Thread(target=keep_busy)
    thread.start()
    begun.wait(30)
    try:
        with pytest.raises(ConfigurationError, match="busy"):
            database.rows("SELECT a FROM t")
    finally:
        done.set()
        thread.join()


def test_a_process_that_is_killed_while_it_writes_harms_nothing(path: Path) -> None:
    code = """
import sys
from pathlib import Path
from ipyperplexity.store.database import Database
database = Database(Path(sys.argv[1]), "CREATE TABLE IF NOT EXISTS t (a)")
for number in range(1_000_000):
    with database.transaction() as connection:
        connection.execute("INSERT INTO t VALUES (?)", (number,))
    print(number, flush=True)
"""
    process = start(code, path)
    assert process.stdout is not None
    told = [int(process.stdout.readline()) for _ in range(50)]
    process.kill()
    rest, _ = process.communicate(timeout=30)
    told += [int(line) for line in rest.split("\n")[:-1]]
    database = Database(path, SCHEMA)
    assert set(told) <= set(values(database))
    assert database.rows("PRAGMA integrity_check") == [("ok",)]


@forks
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_what_a_forked_child_writes_outlives_the_parents_closing(
    database: Database, path: Path
) -> None:
    add(database, 1)
    to_child, from_child = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            add(database, 2)
            os.write(from_child[1], b"x")
            os.read(to_child[0], 1)
            add(database, 3)
        finally:
            os._exit(0)
    os.read(from_child[0], 1)
    database.close()  # the last connection, as far as this process knows
    os.write(to_child[1], b"x")
    os.waitpid(child, 0)
    assert values(Database(path, SCHEMA)) == [1, 2, 3]
    for end in (*to_child, *from_child):
        os.close(end)


@forks
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_fork_waits_for_the_transaction_of_another_thread(database: Database) -> None:
    add(database, 0)
    begun, go_on = threading.Event(), threading.Event()

    def write() -> None:
        with database.transaction() as connection:
            connection.execute("INSERT INTO t VALUES (1)")
            begun.set()
            go_on.wait(30)

    thread = threading.Thread(target=write)
    thread.start()
    begun.wait(30)
    threading.Timer(0.05, go_on.set).start()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            add(database, 2)
            code = 0 if values(database) == [0, 1, 2] else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join()
    assert values(database) == [0, 1, 2]


def test_a_database_that_is_forgotten_closes_its_file(path: Path) -> None:
    database = Database(path, SCHEMA)
    add(database, 1)
    before = open_files()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "unclosed database"
        del database
        gc.collect()
    assert open_files() < before or not open_files()
    assert not path.with_name("x.db-wal").exists()
