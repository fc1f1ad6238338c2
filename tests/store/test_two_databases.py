from __future__ import annotations

from pathlib import Path

from tests.store.processes import start

TWO = """
import os, sys
from pathlib import Path
from ipyperplexity.store.database import Database
first, second = (Database(Path(sys.argv[1]), "CREATE TABLE IF NOT EXISTS t (a)") for _ in "12")
def add(number):
    with first.transaction() as connection:
        connection.execute("INSERT INTO t VALUES (?)", (number,))
add(1)
second.rows("SELECT a FROM t")
print("ready", flush=True)
sys.stdin.readline()
add(2)
os._exit(0)
"""
ONCE = """
import sys
from pathlib import Path
from ipyperplexity.store.database import Database
database = Database(Path(sys.argv[1]), "CREATE TABLE IF NOT EXISTS t (a)")
print(database.rows("SELECT a FROM t"))
database.close()
"""


def test_two_databases_of_one_process_lose_nothing_when_another_closes_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.db"
    process = start(TWO, path)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    assert start(ONCE, path).communicate(timeout=60)[0] == "[(1,)]\n"
    process.communicate("go\n", timeout=60)
    assert start(ONCE, path).communicate(timeout=60)[0] == "[(1,), (2,)]\n"
