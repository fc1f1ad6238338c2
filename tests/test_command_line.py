"""``ipyperplexity`` as a program of its own, in a home folder that is empty and stays so."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "ipyperplexity"]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "home"
    folder.mkdir()
    yield folder
    assert list(folder.rglob("*")) == [], "nothing is left behind"


def environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "USERPROFILE": str(home),
        "PYTHONPATH": str(ROOT),
        "PYTHONIOENCODING": "utf-8",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def start(home: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *arguments],
        env=environment(home),
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


# --- demo -------------------------------------------------------------------------------------


def test_the_demo_runs_a_cell_and_prints_the_sources_as_a_table(home: Path) -> None:
    done = run(home, "demo")
    assert done.returncode == 0 and done.stderr == ""
    out = done.stdout
    assert out.startswith("In [1]: %%perplexity -o answer\nWhat does the with statement do?\n")
    assert "offline demo, not billed" in out and "In [2]: answer.to_dicts()" in out
    table = out[out.index("In [2]") :].splitlines()[2:]
    assert table[0].split() == ["id", "title", "domain", "published", "cited", "url"]
    assert len(table) > 3 and all("docs.python.org" in row for row in table[1:])


def test_the_demo_takes_a_question_of_ones_own(home: Path) -> None:
    for question in (["What is a lambda?"], ["What", "is", "a", "lambda?"]):
        out = run(home, "demo", *question).stdout
        assert "What is a lambda?" in out and "anonymous function" in out


@pytest.mark.parametrize("question", ["status", "-m fast", "what's {{x}}?", '\x1b[31mred; :( """'])
def test_a_question_of_the_demo_is_only_a_question(home: Path, question: str) -> None:
    done = run(home, "demo", "--", question)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\x1b" not in done.stdout and "tokens" in done.stdout


def test_ctrl_c_ends_the_demo_with_what_has_come(home: Path) -> None:
    with start(home, "demo", "Tell me about list, dict, set, tuple, str and int") as child:
        assert child.stdout is not None
        for line in child.stdout:
            if "Searching" in line:
                break
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "Interrupted: stopped" in out and "Traceback" not in out + err


# --- serve ------------------------------------------------------------------------------------


def ask(url: str) -> Any:
    request = urllib.request.Request(
        f"{url}/v1/responses",
        json.dumps({"preset": "low", "input": "What is Ghent?"}).encode(),
        {"Content-Type": "application/json", "Authorization": "Bearer any"},
    )
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply)


def served_at(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().split()[-1]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_serve_answers_from_a_folder_until_it_is_stopped(
    home: Path, tmp_path: Path, ending: signal.Signals
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "ghent.md").write_text("# Ghent\n\nGhent is a city in Flanders.\n", encoding="utf-8")
    with start(home, "serve", "--port", "0", "--corpus", str(notes)) as child:
        url = served_at(child)
        assert url.startswith("http://127.0.0.1:")
        assert "city in Flanders" in json.dumps(ask(url))
        began = time.monotonic()
        child.send_signal(ending)
        _, err = child.communicate(timeout=60)
    assert child.returncode == 0 and err == "" and time.monotonic() - began < 10


def test_serve_says_that_the_port_is_in_use(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run(home, "serve", "--port", str(port))
    assert done.returncode == 1 and "in use" in done.stderr and str(port) in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["missing", "empty", "file.md"])
def test_serve_says_that_a_folder_cannot_be_served(home: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.md").write_text("# A file\n\nNo folder.\n", encoding="utf-8")
    done = run(home, "serve", "--port", "0", "--corpus", str(tmp_path / name))
    assert done.returncode == 1 and name in done.stderr, done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["serve", "--port", "x"], ["serve", "--port", "99999"]]
)
def test_wrong_use_is_explained_and_exits_with_2(home: Path, arguments: list[str]) -> None:
    done = run(home, *arguments)
    assert done.returncode == 2 and "usage: ipyperplexity" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "--help"], ["serve", "--help"]])
def test_help_shows_the_magic_with_two_percent_signs(home: Path, arguments: list[str]) -> None:
    done = run(home, *arguments)
    assert done.returncode == 0 and done.stderr == ""
    assert "%%perplexity" in done.stdout or "serve" in arguments
    assert "%%%" not in done.stdout


def test_version_is_the_packages(home: Path) -> None:
    import ipyperplexity

    assert run(home, "--version").stdout == f"ipyperplexity {ipyperplexity.__version__}\n"


def test_a_screen_that_lacks_a_character_gets_the_whole_answer(home: Path) -> None:
    environment = {**os.environ, "HOME": str(home), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*COMMAND, "demo", "What is a lambda →?"], env=environment, capture_output=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert b"anonymous" in done.stdout and b"docs.python.org" in done.stdout
    assert b"Traceback" not in done.stdout + done.stderr


# --- login, logout, config, status -----------------------------------------------------------

KEY = "pplx-" + "5ecre7" * 8


class Shell:
    """Commands of one user, whose settings are kept."""

    def __init__(self, home: Path, state: Path) -> None:
        self.home = home
        self.environment = {
            **environment(home),
            "IPYPERPLEXITY_HOME": str(state),
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
        }

    def run(self, *arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*COMMAND, *arguments],
            env=self.environment,
            cwd=self.home,
            input=text,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert KEY not in done.stdout + done.stderr and "Traceback" not in done.stderr
        return done


@pytest.fixture
def shell(home: Path, tmp_path: Path) -> Shell:
    return Shell(home, tmp_path / "state")


def test_a_key_comes_through_a_pipe_is_used_and_is_forgotten_again(shell: Shell) -> None:
    before = shell.run("status")
    assert before.returncode == 1 and "missing-credential" in before.stdout
    assert "ipyperplexity login" in before.stdout and before.stderr == ""
    assert shell.run("login", text=f"{KEY}\n").returncode == 0
    after = shell.run("status")
    assert after.returncode == 0 and "set, from the file" in after.stdout
    gone = shell.run("logout")
    assert gone.returncode == 0 and "The stored API key is deleted." in gone.stdout
    assert shell.run("status").returncode == 1
    assert "No API key was stored." in shell.run("logout").stdout


def test_nothing_piped_in_is_no_login(shell: Shell) -> None:
    done = shell.run("login")
    assert done.returncode == 1 and "PERPLEXITY_API_KEY" in done.stderr and done.stdout == ""
    assert shell.run("login", text="two words\n").returncode == 1
    assert shell.run("status").returncode == 1


def test_what_is_set_up_wrongly_is_told_by_the_status(shell: Shell) -> None:
    shell.environment |= {"PERPLEXITY_API_KEY": KEY, "PERPLEXITY_BASE_URL": "http://example.org"}
    done = shell.run("status")
    assert done.returncode == 1 and "misconfigured" in done.stdout
    assert "PERPLEXITY_BASE_URL" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["login", KEY],
        ["login", "--nonsense"],
        ["logout", "--nonsense"],
        ["status", "now"],
        ["config", "recencey=month"],
        ["config", "recency=fortnight"],
        ["config", f"api_key={KEY}"],
        ["config", "--shwo"],
    ],
)
def test_wrong_use_of_a_command_is_explained_exits_with_2_and_changes_nothing(
    shell: Shell, tmp_path: Path, arguments: list[str]
) -> None:
    done = shell.run(*arguments)
    assert done.returncode == 2 and done.stderr and done.stdout == ""
    assert not list(tmp_path.glob("state/config/*.json"))


@pytest.mark.parametrize("name", ["login", "logout", "config", "status"])
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_each_command_explains_itself(shell: Shell, name: str, flag: str) -> None:
    done = shell.run(name, flag)
    assert done.returncode == 0 and name in done.stdout and done.stderr == ""


def test_a_default_is_set_and_shown(shell: Shell) -> None:
    assert "recency is now month" in shell.run("config", "recency=month").stdout
    assert shell.run("config", "system=You are terse = short.").returncode == 0
    assert shell.run("config", "recency").stdout == "recency: month (file)\n"
    shown = shell.run("config", "--show").stdout
    assert "You are terse = short." in shown and "month" in shown
    asked = shell.run("config")
    assert asked.returncode == 0 and "config model=NAME" in asked.stdout


@pytest.mark.parametrize("unbuffered", ["1", ""])
@pytest.mark.parametrize("arguments", [["config", "--show"], ["status"], ["login", "-h"], ["-h"]])
def test_a_reader_that_goes_away_is_no_failure(
    shell: Shell, arguments: list[str], unbuffered: str
) -> None:
    read, write = os.pipe()
    os.close(read)  # as `head` does when it has seen enough
    try:
        done = subprocess.run(
            [*COMMAND, *arguments],
            env={**shell.environment, "PYTHONUNBUFFERED": unbuffered},
            stdout=write,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(write)
    assert done.returncode == 0 and done.stderr == b""


def test_a_remark_is_a_line_without_a_place_in_our_code(shell: Shell, tmp_path: Path) -> None:
    shell.run("login", text=KEY)
    (tmp_path / "state" / "config" / "api-key.json").write_text("{damaged")
    done = shell.run("status")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("PerplexityWarning: The file of the stored API key is damaged.")


def test_a_key_typed_on_a_terminal_is_never_shown(shell: Shell) -> None:
    pexpect = pytest.importorskip("pexpect")
    child = pexpect.spawn(
        COMMAND[0],
        [*COMMAND[1:], "login"],
        env={**shell.environment, "TERM": "xterm"},
        encoding="utf-8",
        timeout=60,
    )
    child.expect(r"hidden\):")
    child.waitnoecho()
    child.sendline(KEY)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0 and "The API key is now in" in child.before
    assert KEY not in child.before
    assert shell.run("status").returncode == 0


def test_ctrl_c_at_the_prompt_is_an_exit_code(shell: Shell) -> None:
    pexpect = pytest.importorskip("pexpect")
    child = pexpect.spawn(
        COMMAND[0], [*COMMAND[1:], "login"], env=shell.environment, encoding="utf-8", timeout=60
    )
    child.expect(r"hidden\):")
    child.waitnoecho()
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130 and "Traceback" not in child.before
    assert shell.run("status").returncode == 1
