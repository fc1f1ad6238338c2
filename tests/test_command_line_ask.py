"""``ipyperplexity ask``, ``replay`` and ``serve`` for a room: what a script and a class need."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pexpect
import pytest

import ipyperplexity as pplx
from ipyperplexity import Client, errors
from ipyperplexity.emulator import Behavior, EmulatorServer
from ipyperplexity.emulator.faults import FAULTS
from ipyperplexity.notebook.line import QUESTION_FLAGS
from tests.test_command_line import COMMAND, environment, served_at

KEY = "pplx-" + "c0mm4nd" * 4
QUESTION = "What is a lambda?"


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    with EmulatorServer(pace=0, api_key=KEY) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def surroundings(home: Path, server: EmulatorServer | None, **more: str) -> dict[str, str]:
    own = {"PERPLEXITY_API_KEY": KEY, "PERPLEXITY_BASE_URL": server.url} if server else {}
    return {**environment(home), **own, "IPYPERPLEXITY_HOME": str(home), **more}


def run(
    home: Path,
    server: EmulatorServer | None,
    *arguments: str,
    given: str | None = None,
    **more: str,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        env=surroundings(home, server, **more),
        input=given,
        stdin=None if given is not None else subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


# --- ask ------------------------------------------------------------------------------------------


def test_the_answer_is_on_stdout_with_its_sources_and_the_rest_on_stderr(
    home: Path, server: EmulatorServer
) -> None:
    done = run(home, server, "ask", "--limit", "2", *QUESTION.split())
    assert done.returncode == 0
    assert "anonymous functions" in done.stdout and "[1]  Lambdas" in done.stdout
    assert "tokens" in done.stderr and "tokens" not in done.stdout
    assert server.requests[0].json()["input"] in (QUESTION, [{"role": "user", "content": QUESTION}])
    assert run(home, server, "ask", "-q", QUESTION).stderr == ""


def test_json_csv_and_markdown_are_what_they_are_called(home: Path, server: EmulatorServer) -> None:
    found = json.loads(run(home, server, "ask", "--json", "--limit", "3", QUESTION).stdout)
    assert found["status"] == "completed" and len(found["sources"]) == 3
    assert found["sources"][0]["url"].startswith("https://docs.python.org/")
    assert "T" in found["created"] and found["cost_usd"] > 0
    rows = list(csv.DictReader(io.StringIO(run(home, server, "ask", "--csv", QUESTION).stdout)))
    assert rows[0]["id"] == "1" and rows[0]["domain"] == "docs.python.org"
    document = run(home, server, "ask", "--markdown", QUESTION).stdout
    assert document.startswith("# What is a lambda?\n") and "## Sources" in document


@pytest.mark.parametrize("arguments", [["ask"], ["ask", "-"]])
def test_a_question_may_come_by_a_pipe(
    home: Path, server: EmulatorServer, arguments: list[str]
) -> None:
    done = run(home, server, *arguments, given=f"{QUESTION}\n")
    assert done.returncode == 0 and "anonymous functions" in done.stdout


def test_all_options_of_a_question_are_there(home: Path, server: EmulatorServer) -> None:
    usage = run(home, None, "ask", "--help").stdout
    for flag in QUESTION_FLAGS:
        assert all(spelling in usage for spelling in flag.option.flags)
    schema = home / "form.json"
    schema.write_text(json.dumps({"type": "object", "properties": {"term": {"type": "string"}}}))
    asked = ["--domain", "docs.python.org", "--domain", "-x.com", "--schema", str(schema)]
    done = run(home, server, "ask", "--json", *asked, QUESTION)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["data"]["term"]
    assert "docs.python.org" in str(server.requests[-1].json())


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["ask"], 2, "question: there is none"),
        (["ask", "--limit", "99", "Why?"], 2, "limit: got '99'"),
        (["ask", "--json", "--csv", "Why?"], 2, "not allowed with argument"),
        (["ask", "--nonsense", "Why?"], 2, "--nonsense"),
        (["ask", "--schema", "nowhere.json", "Why?"], 2, "nowhere.json: No such file"),
    ],
)
def test_wrong_use_is_a_sentence_and_code_2(
    home: Path, server: EmulatorServer, arguments: list[str], code: int, says: str
) -> None:
    done = run(home, server, *arguments)
    assert done.returncode == code and says in done.stderr and "Traceback" not in done.stderr
    assert not server.requests and done.stdout == ""


def test_a_failure_is_code_1_and_keeps_the_text_that_came(
    home: Path, server: EmulatorServer
) -> None:
    server.next(FAULTS["unauthorized"])
    done = run(home, server, "ask", QUESTION)
    assert (done.returncode, done.stdout) == (1, "") and KEY not in done.stderr
    server.next(Behavior(cut_after=14))
    done = run(home, server, "ask", QUESTION)
    assert done.returncode == 1 and done.stdout.startswith("Lambda")
    assert "broke" in done.stderr and "Traceback" not in done.stderr


def test_an_interrupt_is_130_and_keeps_the_text_that_came(
    home: Path, server: EmulatorServer
) -> None:
    server.pace = 0.3
    with subprocess.Popen(
        [*COMMAND, "ask", QUESTION],
        env=surroundings(home, server),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        first = child.stdout.read(5)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=30)
    assert child.returncode == 130 and first == "Lambd" and "Traceback" not in err
    assert out.endswith("\n")


def test_who_reads_only_the_first_line_gets_no_complaint(
    home: Path, server: EmulatorServer
) -> None:
    command = " ".join([*COMMAND, "ask", "-q", "lambda"]) + " | head -1"
    done = subprocess.run(
        ["bash", "-c", command],
        env=surroundings(home, server),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert len(done.stdout.splitlines()) == 1 and done.stderr == ""


def test_a_pipe_of_a_narrow_encoding_gets_question_marks(
    home: Path, server: EmulatorServer
) -> None:
    done = run(home, server, "ask", "--limit", "2", QUESTION, PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and "Lambdas ? Python" in done.stdout


def test_on_a_screen_lines_end_at_words(home: Path, server: EmulatorServer) -> None:
    child = pexpect.spawn(
        COMMAND[0],
        [*COMMAND[1:], "ask", QUESTION],
        env=surroundings(home, server, COLUMNS="50", LINES="40"),
        dimensions=(40, 50),
        encoding="utf-8",
        timeout=30,
    )
    child.expect(pexpect.EOF)
    text = child.before or ""
    assert "anonymous" in text and max(map(len, text.splitlines()[2:8])) <= 50


# --- replay ---------------------------------------------------------------------------------------


def test_a_tape_is_shown_and_asked_without_a_key(home: Path, server: EmulatorServer) -> None:
    tape = home / "lesson.tape"
    with pplx.record(tape), Client(KEY, base_url=server.url) as client:
        told = client.ask(QUESTION, limit=2)
        client.ask("What is yield?", limit=1)
        client.search("lambda")
    done = run(home, None, "replay", str(tape), "--speed", "0")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"> {QUESTION}\n\n") and "> What is yield?" in done.stdout
    assert told.text.split("\n")[0] in done.stdout and "[1]  Lambdas" in done.stdout
    listed = run(home, None, "replay", str(tape), "--list").stdout
    assert listed == f"{QUESTION}\nWhat is yield?\n"
    asked = run(home, None, "ask", "--replay", str(tape), "--limit", "2", QUESTION)
    assert asked.returncode == 0 and told.text.split("\n")[0] in asked.stdout
    missed = run(home, None, "ask", "--replay", str(tape), "Who?")
    assert missed.returncode == 2 and "is not on the tape lesson.tape" in missed.stderr


def test_a_file_that_is_no_tape_is_a_sentence(home: Path) -> None:
    (home / "a.tape").write_text("{oops\n")
    done = run(home, None, "replay", str(home / "a.tape"))
    assert done.returncode == 1 and "a.tape, line 1: this is no tape" in done.stderr
    assert run(home, None, "replay", "nowhere.tape").returncode == 1
    assert run(home, None, "replay", "x.tape", "--speed", "soon").returncode == 1


# --- serve, for a room ----------------------------------------------------------------------------


def served(home: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", *arguments],
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_a_whole_network_is_served_only_with_a_token(home: Path, host: str) -> None:
    done = run(home, None, "serve", "--host", host)
    assert done.returncode == 2 and "--token" in done.stderr and host in done.stderr


def test_a_room_of_thirty_asks_at_once_and_each_gets_its_own_answer(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for number in range(30):
        text = f"# Town {number}\n\nThe town of Quux{number} has {number + 7} bridges.\n"
        (notes / f"town{number}.md").write_text(text)
    cells = [{"cell_type": "markdown", "source": ["# Rivers\n", "\n", "The Foobar is a river."]}]
    (notes / "rivers.ipynb").write_text(json.dumps({"cells": cells}))
    (notes / "broken.ipynb").write_text("{")
    with served(home, "--corpus", str(notes), "--host", "127.0.0.1", "--token", "room-12") as child:
        url = served_at(child)
        assert (
            child.stdout is not None
            and "31 notes" in child.stdout.readline() + child.stdout.readline()
        )

        def ask(number: int) -> str:
            with Client("room-12", base_url=url) as client:
                return client.ask(f"How many bridges has Quux{number}?").text

        with ThreadPoolExecutor(30) as pool:
            answers = list(pool.map(ask, range(30)))
        assert all(f"has {n + 7} bridges" in answer for n, answer in enumerate(answers))
        with Client("room-12", base_url=url) as client:
            river = client.ask("What is the Foobar?")
        assert "is a river" in river.text and river.sources[0].url.startswith(
            f"{url}/corpus/rivers"
        )
        with pytest.raises(errors.AuthenticationError):
            Client("another", base_url=url, max_retries=0).ask("Why?")
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=30)
    assert "left out of the corpus: broken.ipynb: it is no notebook" in err


def test_a_token_is_made_up_and_what_students_type_is_printed(home: Path) -> None:
    with served(home, "--host", "0.0.0.0", "--token", "auto") as child:
        url = served_at(child)
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(7)]
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=30)
    typed = dict(
        line.split("export ")[1].strip().split("=", 1) for line in lines if "export" in line
    )
    assert typed["PERPLEXITY_BASE_URL"] == url and len(typed["PERPLEXITY_API_KEY"]) >= 10
    assert typed["IPYPERPLEXITY_ALLOW_HTTP"] == "1"


def test_plain_http_to_another_machine_needs_to_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(errors.ConfigurationError, match="IPYPERPLEXITY_ALLOW_HTTP=1"):
        Client(base_url="http://192.0.2.7:8765")
    monkeypatch.setenv("IPYPERPLEXITY_ALLOW_HTTP", "1")
    assert Client(base_url="http://192.0.2.7:8765")
