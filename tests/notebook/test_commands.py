from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter

from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.notebook.command_table import COMMANDS
from ipyperplexity.notebook.completion import complete
from ipyperplexity.question import OPTIONS
from tests.notebook.conftest import KEY, Session
from tests.notebook.kernels import ROOT
from tests.notebook.test_asking import asked, body

#: Commands that ask somebody: the user, or the service what it has.
ASKING = {"login", "config", "models"}


def test_a_command_sends_no_question(session: Session, server: EmulatorServer) -> None:
    for name, command in COMMANDS.items():
        for argument in ("", *command.words) if name not in ASKING else ("--help",):
            if name != "models":
                session.good(f"%perplexity {name} {argument}")
    session.good("%perplexity demo off")
    assert not server.requests


@pytest.mark.parametrize("line", ["status of Artemis II", "-- status", "-- login", "-m fast last"])
def test_a_question_that_begins_like_a_command_is_asked(
    session: Session, server: EmulatorServer, line: str
) -> None:
    session.good(f"%perplexity {line}")
    assert asked(server) == line.removeprefix("-- ").removeprefix("-m fast ")


def test_a_command_word_in_a_cell_is_a_question(session: Session, server: EmulatorServer) -> None:
    session.good("%%perplexity\nstatus")
    assert asked(server) == "status"
    session.good("%%perplexity status\nof what?")
    assert asked(server) == "status\n\nof what?"


@pytest.mark.parametrize("word", ["histroy", "jobs --all", "modles"])
def test_a_command_that_does_not_exist_costs_nothing(
    session: Session, server: EmulatorServer, word: str
) -> None:
    ran = session.run(f"%perplexity {word}")
    assert isinstance(ran.error, InvalidRequestError)
    assert f"%perplexity -- {word}" in ran.out and not server.requests


# --- status -----------------------------------------------------------------------------------


def test_status_says_what_is_ready_without_asking(session: Session, server: EmulatorServer) -> None:
    status = session.good("%perplexity status").result
    assert status.state == "ready" and status.base_url == server.url
    out = session.good("%perplexity status").out
    assert "set, from PERPLEXITY_API_KEY" in out and KEY not in out and not server.requests


def test_status_says_that_there_is_no_key_and_what_to_do(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PERPLEXITY_API_KEY")
    out = session.good("%perplexity status").out
    assert "missing-credential" in out and "%perplexity demo on" in out


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("PERPLEXITY_BASE_URL", "http://example.org", "PERPLEXITY_BASE_URL"),
        ("PERPLEXITY_BASE_URL", "nonsense", "nonsense"),
        ("IPYPERPLEXITY_BACKEND", "agentt", "allowed: agent"),
        ("IPYPERPLEXITY_MODEL", "gpt5", "gpt5"),
        ("PERPLEXITY_API_KEY", f"{KEY} {KEY}", "PERPLEXITY_API_KEY"),
    ],
)
def test_status_says_what_is_wrong(
    session: Session, monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setenv(name, value)
    ran = session.good("%perplexity status")
    assert ran.result.state == "misconfigured" and not ran.result
    assert says in ran.out and KEY not in ran.out


def test_status_knows_the_settings_of_the_magic(session: Session, server: EmulatorServer) -> None:
    session.good("%config PerplexityMagics.model = 'high'")
    assert session.good("%perplexity status").result.model == "high"
    session.good("%config PerplexityMagics.model = 'nosuch'")
    assert session.good("%perplexity status").result.state == "misconfigured"
    session.good("%config PerplexityMagics.model = None")
    session.good("%config PerplexityMagics.backend = 'demo'")
    assert session.good("%perplexity status").result.backend == "demo"


def test_a_new_key_or_address_counts_from_the_next_question_on(
    session: Session, server: EmulatorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.good("%perplexity -q What is a lambda?")
    with EmulatorServer(pace=0, api_key="another-key") as other:
        monkeypatch.setenv("PERPLEXITY_BASE_URL", other.url)
        monkeypatch.setenv("PERPLEXITY_API_KEY", "another-key")
        session.good("%perplexity -q What is a tuple?")
        assert [request.authorized for request in other.requests] == [True]
        monkeypatch.setenv("PERPLEXITY_BASE_URL", "https://example.org")
        session.good(f"%config PerplexityMagics.base_url = {other.url!r}")
        session.good("%perplexity -q What is a tuple?")
        assert len(other.requests) == 2


# --- demo -------------------------------------------------------------------------------------


def test_the_demo_needs_no_key_and_no_service(
    session: Session, server: EmulatorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PERPLEXITY_API_KEY")
    assert "%perplexity demo off goes back" in session.good("%perplexity demo on").out
    answer = session.good("%perplexity -q What is a lambda?").result
    assert answer.backend == "demo" and answer.sources[0].domain == "docs.python.org"
    assert "The demo is off" in session.good("%perplexity demo off").out
    assert not server.requests


def test_one_question_may_go_to_the_demo(session: Session, server: EmulatorServer) -> None:
    assert session.good("%perplexity -q -b demo What is a lambda?").result.backend == "demo"
    session.good("%perplexity -q -b agent What is a lambda?")
    assert body(server)["preset"] == "low"
    ran = session.run("%perplexity -b web3 Why?")
    assert ran.error is not None and "allowed: agent" in ran.out


# --- help and completion ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "there", "not_there"),
    [
        ("", "--recency", "\0"),
        ("options", "--recency", "demo [on|off]"),
        ("commands", "demo [on|off]", "--recency"),
        ("examples", "%%perplexity", "Options"),
        ("status", "what is configured", "--recency"),
    ],
)
def test_help_answers_by_topic(session: Session, topic: str, there: str, not_there: str) -> None:
    out = session.good(f"%perplexity help {topic}").out
    assert there in out and not_there not in out


def completions(session: Session, line: str) -> set[str]:
    with provisionalcompleter():
        return {found.text for found in session.shell.Completer.completions(line, len(line))}


def test_tab_completes_options_values_and_commands(session: Session) -> None:
    assert completions(session, "%perplexity --re") == {"--recency", "--reasoning"}
    assert completions(session, "%perplexity -m ") >= {"fast", "wide-research"}
    assert completions(session, "%%perplexity -m fast --rea") == {"--reasoning"}
    assert completions(session, "answer = %perplexity --rec") == {"--recency"}
    assert completions(session, "%%perplexity --recency m") == {"month"}
    assert completions(session, "%%perplexity --recency=m") == {"month"}
    assert completions(session, "%perplexity sta") == {"status"}
    assert completions(session, "%perplexity demo o") == {"on", "off"}


def test_tab_after_continue_offers_the_answers(session: Session) -> None:
    session.good("first = %perplexity -q What is a lambda?\nfifth = 5")
    assert completions(session, "%%perplexity -c f") == {"first"}


def test_every_choice_of_an_option_is_offered() -> None:
    for option in OPTIONS.values():
        for flag in option.flags:
            offered = complete(f"%perplexity {flag} ", "")
            assert offered == list(option.choices or option.suggestions)
            assert not option.choices or offered


def test_the_middle_of_a_question_is_left_to_others() -> None:
    assert complete("%perplexity what is sta", "sta") == []
    assert complete("%%perplexity sta", "sta") == []


# --- loading ----------------------------------------------------------------------------------


def traces(shell: Any) -> dict[str, Any]:
    """Return everything of a shell that an extension may touch."""
    return {
        "line": set(shell.magics_manager.magics["line"]),
        "cell": set(shell.magics_manager.magics["cell"]),
        "registry": set(shell.magics_manager.registry),
        "configurables": list(shell.configurables),
        "matchers": list(shell.Completer.custom_matchers),
        "events": {name: list(calls) for name, calls in shell.events.callbacks.items()},
        "transformers": list(shell.input_transformer_manager.token_transformers),
        "displayhook": set(vars(shell.displayhook)),
        "display": dict(shell.display_formatter.ipython_display_formatter.type_printers),
        "plain": dict(shell.display_formatter.formatters["text/plain"].type_printers),
        "handlers": shell.custom_exceptions,
        "names": set(shell.user_ns) - {"_ih", "In", "Out", "_oh", "_dh"},
    }


def test_unloading_leaves_nothing_behind(bare_shell: Any, server: EmulatorServer) -> None:
    session = Session(bare_shell)
    load, unload = "load_ext", "unload_ext"
    magic = bare_shell.run_line_magic
    magic(unload, "ipyperplexity")  # has IPython load its own magics for this
    before = traces(bare_shell)
    for _ in range(2):
        magic(load, "ipyperplexity")
        magic(load, "ipyperplexity")
        magic("reload_ext", "ipyperplexity")
        ours = [c for c in bare_shell.configurables if type(c).__name__ == "PerplexityMagics"]
        assert len(ours) == 1
        magic("perplexity", "-q What is a lambda?")
        magic(unload, "ipyperplexity")
        magic(unload, "ipyperplexity")
        assert traces(bare_shell) == before
    assert session.run("%perplexity What is a lambda?").error is None
    assert len(server.requests) == 2


def test_unloading_in_the_very_cell_that_asked_leaves_nothing_behind(
    bare_shell: Any, server: EmulatorServer
) -> None:
    session = Session(bare_shell)
    session.good("%unload_ext ipyperplexity")
    before = traces(bare_shell)
    ran = session.good(
        "%load_ext ipyperplexity\n"
        "a = %perplexity -q Explain lambda\n"
        "%unload_ext ipyperplexity\n"
        "del a"
    )
    assert ran.out == ""
    after = traces(bare_shell)
    assert {k: v for k, v in after.items() if k != "names"} == {
        k: v for k, v in before.items() if k != "names"
    }


def test_reloading_keeps_the_settings_of_the_profile_and_asks_once(
    bare_shell: Any, server: EmulatorServer
) -> None:
    bare_shell.config.PerplexityMagics.model = "fast"
    session = Session(bare_shell)
    session.good("%load_ext ipyperplexity\n%reload_ext ipyperplexity\n%reload_ext ipyperplexity")
    session.good("%perplexity -q What is a lambda?")
    assert len(server.requests) == 1 and body(server)["preset"] == "fast"


_LOAD = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
before = set(sys.modules)
shell.run_cell("%load_ext ipyperplexity\\n%config PerplexityMagics.model = 'fast'").raise_error()
print(*sorted(set(sys.modules) - before))
"""


def test_loading_the_extension_loads_nothing_heavy(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOAD],
        env={**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(done.stdout.split())
    assert "ipyperplexity.notebook.magic" in loaded
    tops = {name.partition(".")[0] for name in loaded}
    heavy = {"requests", "urllib3", "ipywidgets", "pandas", "polars", "pyarrow", "numpy", "ssl"}
    heavy |= {"markdown_it", "nh3", "jsonpatch", "sqlite3", "http", "matplotlib", "nest_asyncio"}
    assert not tops & heavy
    parts = ("client", "net", "emulator", "markup", "answer", "schema")
    assert not [
        name for name in loaded if name.startswith(tuple(f"ipyperplexity.{p}" for p in parts))
    ]
