"""``%%perplexity --each df``: a question of each row of a table, in a cell."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from ipyperplexity import EnrichedTable, errors
from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.emulator.faults import FAULTS
from ipyperplexity.notebook.line import parse
from tests.net.asking import eventually
from tests.notebook.conftest import KEY, Session
from tests.notebook.kernels import Kernel

THINGS = "import pandas as pd\ndf = pd.DataFrame({'thing': ['lambda', 'yield']}, index=['a', 'b'])"


@pytest.fixture
def with_things(session: Session) -> Session:
    session.good(THINGS)
    return session


def test_a_cell_asks_of_each_row_and_is_the_table(
    with_things: Session, server: EmulatorServer
) -> None:
    ran = with_things.good("%%perplexity --each df --limit 2 -o table\nWhat is {thing}?")
    table = ran.result
    assert isinstance(table, EnrichedTable) and with_things["table"] is table
    assert table["status"] == ["ok", "ok"]
    assert [outcome.question for outcome in table.outcomes] == [
        "What is lambda?",
        "What is yield?",
    ]
    joined = with_things.good("df.join(table.to_pandas())").result
    assert list(joined.index) == ["a", "b"] and joined["answer"].notna().all()
    assert "2 rows: 2 ok" in ran.out and len(server.requests) == 2


def test_a_line_asks_of_each_row_too_and_quiet_shows_nothing(
    with_things: Session, server: EmulatorServer
) -> None:
    ran = with_things.good("table = %perplexity -q --each df --limit 2 What is {thing}?")
    assert ran.out == "" and with_things["table"]["status"] == ["ok", "ok"]
    assert with_things.good("%perplexity -q --each df --limit 2 What is {thing}?").out == ""
    assert len(server.requests) == 2, "the second time the answers are there already"


def test_variables_go_in_before_the_columns(with_things: Session, server: EmulatorServer) -> None:
    with_things.good("language = 'Python'")
    table = with_things.good(
        "%%perplexity --each df --limit 2\nWhat is {thing} in {{language}}?"
    ).result
    assert table.outcomes[0].question == "What is lambda in Python?"


def test_a_schema_gives_typed_columns(with_things: Session, server: EmulatorServer) -> None:
    with_things.good("form = {'keyword': str, 'length': int}")
    table = with_things.good(
        "%perplexity --each df --schema form --limit 2 What is {thing}?"
    ).result
    frame = table.to_pandas()
    assert str(frame["length"].dtype) == "Int64" and frame["keyword"].notna().all()


@pytest.mark.parametrize("data", ["['lambda', 'yield']", "pd.Series(['lambda', 'yield'])"])
def test_a_list_or_a_series_is_a_table_of_one_column(
    with_things: Session, server: EmulatorServer, data: str
) -> None:
    with_things.good(f"things = {data}")
    table = with_things.good("%perplexity --each things --limit 2 What is {value}?").result
    assert table["status"] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--each nothing What is {thing}?", "nothing"),
        ("--each df What is {thin}?", "thin"),
        ("--each df --background What is {thing}?", "not together with --background"),
        ("--each df -c What is {thing}?", "not together with --continue"),
        ("--each KEY What is {value}?", "--each KEY: got a value of type int"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_is_sent(
    with_things: Session, server: EmulatorServer, line: str, says: str
) -> None:
    with_things.good("KEY = 5")
    ran = with_things.run(f"%perplexity {line}")
    assert isinstance(ran.error, errors.InvalidRequestError), ran.out
    assert says in str(ran.error) and not server.requests


def test_a_search_of_each_row_is_refused() -> None:
    with pytest.raises(errors.InvalidRequestError, match="--each"):
        parse("-b search --each df python")


def test_a_row_that_fails_is_a_row_and_the_others_are_there(
    with_things: Session, server: EmulatorServer
) -> None:
    server.next(FAULTS["validation"])
    ran = with_things.good("table = %perplexity --each df --limit 2 What is {thing}?\ntable")
    assert sorted(ran.result["status"]) == ["error", "ok"]
    assert "table.errors" in ran.out
    again = with_things.good("table.retry()").result
    assert again["status"] == ["ok", "ok"] and len(server.requests) == 3


def test_the_cache_is_shown_and_forgotten(with_things: Session, server: EmulatorServer) -> None:
    with_things.good("%perplexity -q --each df --limit 2 What is {thing}?")
    shown = with_things.good("%perplexity cache").out
    assert shown.startswith("2 answers, ") and "Kept for 7 days" in shown
    assert with_things.good("%perplexity cache --clear").out == "2 answers forgotten.\n"
    assert with_things.good("%perplexity cache").out.startswith("0 answers")
    with_things.good("%perplexity -q --each df --limit 2 What is {thing}?")
    assert len(server.requests) == 4
    assert KEY not in with_things.printed


LOADED = """
import sys
import %s
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "ipyperplexity")
print(type(%s.perplexity).__name__)
print(sorted({"pandas", "polars"} & set(sys.modules)))
"""


@pytest.mark.parametrize(
    ("library", "frame"),
    [("pandas", "pandas.DataFrame()"), ("polars", "polars.DataFrame()")],
)
def test_loading_the_extension_gives_frames_their_attribute(library: str, frame: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", LOADED % (library, frame)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.split("\n")
    assert told[0] == "PerplexityAccessor" and library in told[1]


def test_an_interrupted_table_is_there_as_far_as_it_is(
    kernel: Kernel, server: EmulatorServer
) -> None:
    server.pace = 5.0  # seconds a piece
    kernel.run("things = [f'case {n} of a lambda' for n in range(40)]")
    cell = kernel.send("table = %perplexity --each things --limit 2 What is {value}?")
    eventually(lambda: len(server.requests) >= 2)
    stopped = time.monotonic()
    kernel.manager.interrupt_kernel()
    kernel.wait(cell)
    assert time.monotonic() - stopped < 2, "0.5 s, on a machine that is not busy"
    assert cell.reply["status"] == "ok", "the table as far as it is, and no error"
    counts = kernel.value("dict(__import__('collections').Counter(table['status']))")
    assert counts["cancelled"] > 0 and sum(counts.values()) == 40
