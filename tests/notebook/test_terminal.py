"""A person at IPython's own prompt, through a pseudo-terminal."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.emulator.faults import Behavior
from tests.notebook.conftest import KEY
from tests.notebook.kernels import ROOT
from tests.support.raw_server import HoldOpen, Pause, RawServer, agent_stream, sse_response

pexpect = pytest.importorskip("pexpect")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")

PATIENCE = 30
STATUS = r"\d+\.\d s · [\d,]+ tokens · [^\r\n]+"
#: Two pieces of text, a pause that the test ends, the rest.
FRAMES = agent_stream("Hello world", [{"url": "https://a.example"}], deltas=["Hello ", "world"])
N_HEAD = next(n for n, frame in enumerate(FRAMES) if b'"Hello "' in frame) + 2


#: What the prompt itself sends to a terminal.
_ESCAPE = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07)")


class Terminal:
    """IPython in a pseudo-terminal of 80 columns."""

    def __init__(self, folder: Path, url: str, *options: str) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "IPYTHONDIR": str(folder),
            "PERPLEXITY_BASE_URL": url,
            "PERPLEXITY_API_KEY": KEY,
            "TERM": "xterm",
            "PROMPT_TOOLKIT_NO_CPR": "1",
        }
        self.child: Any = pexpect.spawn(
            sys.executable,
            ["-m", "IPython", "--no-banner", "--no-confirm-exit", "--colors=nocolor", *options],
            env=environment,
            dimensions=(40, 80),
            encoding="utf-8",
            timeout=PATIENCE,
        )
        self.count = 0
        self.wait_for_prompt()
        self.run("%load_ext ipyperplexity")

    def wait_for_prompt(self) -> str:
        """Return what has been printed up to the next prompt."""
        self.count += 1
        self.child.expect(rf"In \[{self.count}\]:")
        return _ESCAPE.sub("", str(self.child.before))

    def run(self, line: str) -> str:
        self.child.send(line + "\r")
        return self.wait_for_prompt()

    def close(self) -> None:
        self.child.close(force=True)


Open = Callable[..., Terminal]


@pytest.fixture
def open_terminal(tmp_path: Path) -> Iterator[Open]:
    opened: list[Terminal] = []

    def start(url: str, *options: str) -> Terminal:
        opened.append(Terminal(tmp_path, url, *options))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


@pytest.mark.parametrize("options", [("--simple-prompt",), ()], ids=["simple", "prompt_toolkit"])
def test_the_text_comes_as_it_is_written_then_the_sources_then_the_next_prompt(
    open_terminal: Open, options: tuple[str, ...]
) -> None:
    go_on = threading.Event()
    steps = sse_response(FRAMES)
    script = [*steps[:N_HEAD], Pause(go_on), *steps[N_HEAD:]]
    with RawServer(script) as server:
        terminal = open_terminal(server.url, *options)
        terminal.child.send("%perplexity What is new?\r")
        terminal.child.expect("Hello")  # while the service holds the rest back
        assert not go_on.is_set()
        go_on.set()
        terminal.child.expect("world")
        terminal.child.expect(STATUS)
        rest = terminal.wait_for_prompt()
        assert "Out[" not in rest and not rest.strip(), repr(rest)
        assert "Out[" in terminal.run("6 * 7")


def test_ctrl_c_stops_the_answer_and_keeps_it(open_terminal: Open) -> None:
    steps = sse_response(FRAMES)
    with RawServer([*steps[:N_HEAD], HoldOpen()]) as server:
        terminal = open_terminal(server.url, "--simple-prompt")
        terminal.child.send("a = %perplexity -o kept What is new?\r")
        terminal.child.expect("Hello")
        terminal.child.sendintr()
        screen = terminal.wait_for_prompt()
        assert "stopped · " in screen and "Interrupted: stopped; 6 characters are kept" in screen
        assert "Traceback" not in screen and "KeyboardInterrupt" not in screen
        assert server.wait_for_disconnect()
        assert "('stopped', 'Hello ')" in terminal.run("kept.status, kept.text")


def test_no_control_character_of_an_answer_reaches_the_terminal(
    open_terminal: Open, server: EmulatorServer
) -> None:
    server.next(
        Behavior(extra_text="\n\n\x1b[31mred\x1b]0;owned\x07 \x9b2J\x1b[6n end", chunk_chars=2)
    )
    terminal = open_terminal(server.url, "--simple-prompt")
    terminal.child.send("%perplexity What is a lambda?\r")
    terminal.child.expect(STATUS)
    screen = str(terminal.child.before)  # the simple prompt sends no escape sequence of its own
    assert "red" in screen and "end" in screen
    assert "\x1b" not in screen and "\x9b" not in screen and "owned" not in screen


def test_no_line_but_text_and_addresses_is_wider_than_the_terminal(
    open_terminal: Open, server: EmulatorServer
) -> None:
    terminal = open_terminal(server.url, "--simple-prompt")
    screen = terminal.run("%perplexity What is a lambda?")
    sources = screen[screen.index("[1]  ") :].splitlines()
    assert sources and all(len(line) <= 80 for line in sources if "https://" not in line)


def test_tab_completes_an_option(open_terminal: Open, server: EmulatorServer) -> None:
    terminal = open_terminal(server.url)
    terminal.child.send("%perplexity -q --rece\t")
    terminal.child.expect("ncy")
    terminal.child.send(" month What is a lambda?\r")
    terminal.wait_for_prompt()
    (tool,) = server.requests[-1].json()["tools"]
    assert tool["filters"] == {"search_recency_filter": "month"}
