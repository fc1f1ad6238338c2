"""``login`` and ``logout`` as a user meets them: in a kernel, on a terminal, through a pipe."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ipyperplexity import errors
from ipyperplexity.auth.key_store import load_key
from ipyperplexity.auth.login_record import WebLogin
from ipyperplexity.auth.token_store import load_login, login_file, save_login
from ipyperplexity.net.redact import Secret
from ipyperplexity.notebook.login import run_login, run_logout
from tests.auth.signing_in import (
    CHALLENGE,
    CODE,
    EMAIL,
    KEY,
    NEW,
    SESSION,
    TOKEN,
    VARIABLES,
    SignIn,
    isolate,
    reply,
    shown,
)
from tests.notebook.kernels import PATIENCE, ROOT, Cell, Kernel
from tests.support.raw_server import RawServer

HEADER = f"theme=dark; {SESSION}={TOKEN}"


@pytest.fixture(autouse=True)
def home(environment: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    return isolate(monkeypatch, tmp_path)


def stored_token() -> str | None:
    login = load_login()
    return login.token.reveal() if login and login.token else None


def stored_key() -> str | None:
    found = load_key()
    return found[0].reveal() if found else None


# --- the words after it -----------------------------------------------------------------------


@pytest.mark.parametrize("run", [run_login, run_logout])
@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_is_the_usage_and_does_nothing(run: Any, word: str, capsys: Any) -> None:
    run(["--web", word, "--nonsense"])
    assert capsys.readouterr().out.startswith("%perplexity log")
    assert stored_token() is None and stored_key() is None


@pytest.mark.parametrize("run", [run_login, run_logout])
def test_an_unknown_option_is_refused_with_the_usage(run: Any) -> None:
    with pytest.raises(errors.InvalidRequestError, match="no option --wep") as raised:
        run(["--wep=" + TOKEN])
    assert "%perplexity log" in str(raised.value) and TOKEN not in str(raised.value)


@pytest.mark.parametrize("word", [KEY, TOKEN, "web"])
def test_a_key_on_the_line_is_refused_and_not_repeated(word: str) -> None:
    with pytest.raises(errors.InvalidRequestError, match="options only") as raised:
        run_login([word])
    assert word not in raised.value.message and "clear this cell" in str(raised.value)


def test_logout_says_what_it_has_deleted(capsys: Any) -> None:
    save_login(WebLogin(Secret(TOKEN)))
    run_logout(["--key"])
    assert stored_token() == TOKEN
    run_logout([])
    assert stored_token() is None
    assert capsys.readouterr().out.splitlines() == [
        "No API key was stored.",
        "No API key was stored.",
        "The stored login is deleted.",
    ]


# --- nobody can be asked ----------------------------------------------------------------------


@pytest.mark.parametrize(("words", "names"), [
    ([], "PERPLEXITY_API_KEY"),
    (["--web"], "PERPLEXITY_SESSION_TOKEN"),
    (["--browser"], "PERPLEXITY_COOKIE"),
])  # fmt: skip
def test_without_input_it_names_the_variables_and_asks_nothing(
    words: list[str], names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path(os.devnull).open() as nothing, RawServer([]) as server:
        for stdin in (nothing, None):
            monkeypatch.setattr(sys, "stdin", stdin)
            with pytest.raises(
                errors.MissingCredentialError, match="Nobody can be asked"
            ) as raised:
                run_login(words, base_url=server.url)
            assert names in str(raised.value)
        assert not server.requests


def piped(code: str, text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program whose input is a pipe."""
    return subprocess.run(
        [sys.executable, "-c", f"from ipyperplexity.notebook.login import *\n{code}"],
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
        env={**os.environ, **environment},
    )


def test_a_shell_that_reads_its_cells_from_a_pipe_does_not_take_them_for_a_key(
    bare_shell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = io.StringIO("print(1)\nprint(2)\n")
    monkeypatch.setattr(sys, "stdin", cells)
    with pytest.raises(errors.MissingCredentialError, match="Nobody can be asked"):
        run_login([])
    assert cells.read() == "print(1)\nprint(2)\n"


def test_a_key_can_come_through_a_pipe() -> None:
    ran = piped("run_login([])", f"{KEY}\n")
    assert ran.returncode == 0 and not ran.stderr, ran.stderr
    assert stored_key() == KEY
    assert KEY not in ran.stdout and "the file" in ran.stdout


def test_a_variable_that_comes_before_the_stored_key_is_named() -> None:
    ran = piped("run_login([])", KEY, PERPLEXITY_API_KEY="pplx-another")
    assert "PERPLEXITY_API_KEY is set too, and comes first" in ran.stdout


def test_cookies_can_come_through_a_pipe_and_are_checked() -> None:
    with RawServer(SignIn()) as server:
        code = f"run_login(['--cookie'], base_url={server.url!r})"
        ran = piped(code, f"curl 'https://www.perplexity.ai/' \\\n  -b '{HEADER}'\n")
        assert ran.returncode == 0, ran.stderr
        assert f"perplexity.ai knows you as {EMAIL}" in ran.stdout
        assert server.requests[0].headers["Cookie"] == HEADER
    assert stored_token() == TOKEN and TOKEN not in ran.stdout


@pytest.mark.parametrize(("page", "says"), [
    (reply(200, {}), "nobody is signed in"),
    (reply(403, CHALLENGE), "It could not be checked. A browser challenge"),
])  # fmt: skip
def test_pasted_cookies_that_cannot_be_confirmed_are_kept_and_it_is_said(
    page: bytes, says: str
) -> None:
    with RawServer(SignIn(session=page)) as server:
        ran = piped(f"run_login(['--browser'], base_url={server.url!r})", HEADER)
    assert ran.returncode == 0 and says in ran.stdout
    assert stored_token() == TOKEN


def test_a_paste_without_a_session_is_told_in_its_own_words() -> None:
    ran = piped("run_login(['--browser'])", "a=b; c=d")
    assert ran.returncode == 1 and "there is no session cookie" in ran.stderr
    assert "cancel" not in ran.stderr and stored_token() is None


def test_a_login_that_is_there_is_named_and_force_replaces_it(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    save_login(WebLogin(Secret(TOKEN), email=EMAIL, origin="a code by e-mail"))
    run_login(["--web"])
    said = capsys.readouterr().out
    assert f"a login as {EMAIL} already" in said and "--force" in said
    monkeypatch.setenv("PERPLEXITY_SESSION_TOKEN", NEW)
    for word in ("--force", "--refresh", "-f"):
        run_login(["--web", word])
        assert str(login_file()) in capsys.readouterr().out
    assert stored_token() == NEW


# --- a kernel ---------------------------------------------------------------------------------


@pytest.fixture
def kernel(running_kernel: Kernel, tmp_path: Path) -> Kernel:
    settings = {
        "IPYPERPLEXITY_HOME": os.environ["IPYPERPLEXITY_HOME"],
        "HOME": os.environ["HOME"],
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }
    cell = running_kernel.run(
        "%reset -f\nimport os\n"
        f"for name in {VARIABLES!r}: os.environ.pop(name, None)\n"
        f"os.environ.update({settings!r})\n"
        "from ipyperplexity.notebook.login import run_login"
    )
    assert cell.reply["status"] == "ok", cell.reply
    return running_kernel


def answer(kernel: Kernel, code: str, *answers: tuple[str, bool]) -> Cell:
    """Run a cell and type these answers; each says whether it must be hidden."""
    cell = kernel.send(code)
    for text, hidden in answers:
        question = kernel.client.get_stdin_msg(timeout=PATIENCE)
        assert question["header"]["msg_type"] == "input_request"
        assert question["content"]["password"] is hidden, question["content"]
        kernel.client.input(text)
    return kernel.wait(cell)


def test_a_kernel_asks_for_the_key_hidden(kernel: Kernel) -> None:
    cell = answer(kernel, "run_login([])", (KEY, True))
    assert cell.reply["status"] == "ok", cell.reply
    assert stored_key() == KEY
    assert KEY not in str(cell.messages) and "the first question will tell" in cell.printed
    history = kernel.run("print(list(get_ipython().history_manager.get_range(output=False)))")
    assert KEY not in history.printed


def test_a_kernel_asks_for_the_address_openly_and_for_the_code_hidden(kernel: Kernel) -> None:
    with RawServer(SignIn()) as server:
        code = f"run_login(['--web'], base_url={server.url!r})"
        cell = answer(kernel, code, (EMAIL, False), (CODE, True))
        assert cell.reply["status"] == "ok", cell.reply
        assert server.requests[2].json["otp"] == CODE
    assert stored_token() == TOKEN
    assert TOKEN not in str(cell.messages) and CODE not in str(cell.messages)
    assert f"Logged in as {EMAIL}" in cell.printed


def test_a_kernel_asks_for_cookies_hidden(kernel: Kernel) -> None:
    with RawServer(SignIn()) as server:
        code = f"run_login(['--web', '--manual'], base_url={server.url!r})"
        cell = answer(kernel, code, (f"cookie: {HEADER}; long={'x' * 9000}", True))
    assert cell.reply["status"] == "ok", cell.reply
    assert stored_token() == TOKEN and TOKEN not in str(cell.messages)


@pytest.mark.parametrize("words", [[], ["--web"], ["--browser"]])
def test_a_kernel_that_nobody_watches_asks_nothing(kernel: Kernel, words: list[str]) -> None:
    with RawServer([]) as server:
        cell = kernel.run(f"run_login({words!r}, base_url={server.url!r})", allow_stdin=False)
        assert not server.requests
    assert cell.error["ename"] == "MissingCredentialError"
    text = "\n".join(cell.error["traceback"])
    assert "Nobody can be asked" in text and "PERPLEXITY_" in text and "Stdin" not in text
    assert len(cell.error["traceback"]) <= 4


@pytest.mark.parametrize("mode", ["Verbose", "Context", "Plain", "Minimal"])
def test_a_login_that_fails_in_a_kernel_shows_a_sentence_in_any_mode(
    kernel: Kernel, mode: str
) -> None:
    page = reply(401, {"text": f"bad code {CODE}"})
    with RawServer(SignIn(signin_otp=page)) as server:
        code = f"%xmode {mode}\nrun_login(['--web'], base_url={server.url!r})"
        cell = answer(kernel, code, (EMAIL, False), (CODE, True))
    assert cell.error["ename"] == "AuthenticationError"
    assert "OTP verification failed: bad code ***" in cell.error["traceback"][0]
    assert CODE not in str(cell.messages)
    kernel.run("%xmode Context")


# --- a terminal -------------------------------------------------------------------------------

Open = Callable[..., Any]


@pytest.fixture
def terminal() -> Iterator[Open]:
    pexpect = pytest.importorskip("pexpect")
    opened: list[Any] = []

    def start(code: str) -> Any:
        child = pexpect.spawn(
            sys.executable,
            ["-c", f"from ipyperplexity.notebook.login import *\n{code}"],
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "TERM": "xterm",
                "PROMPT_TOOLKIT_NO_CPR": "1",
            },
            dimensions=(40, 100),
            encoding="utf-8",
            timeout=PATIENCE,
        )
        child.everything = ""
        opened.append(child)
        return child

    yield start
    for child in opened:
        child.close(force=True)


def screen(child: Any) -> str:
    """Wait for the end of a program; return all that its terminal has shown since the last look."""
    child.expect(__import__("pexpect").EOF)
    return str(child.before)


def test_a_key_typed_on_a_terminal_is_never_shown(terminal: Open) -> None:
    child = terminal("run_login([])")
    child.expect(r"hidden\):")
    child.waitnoecho()
    child.sendline(KEY)
    shown_after = screen(child)
    assert "The API key is now in" in shown_after and KEY not in shown_after
    assert stored_key() == KEY


def test_a_code_typed_on_a_terminal_is_never_shown(terminal: Open) -> None:
    with RawServer(SignIn()) as server:
        child = terminal(f"run_login(['--web'], base_url={server.url!r})")
        child.expect("account: ")
        child.sendline(EMAIL)
        child.expect(r"hidden\):")
        child.waitnoecho()
        child.sendline(CODE)
        assert CODE not in screen(child)
    assert stored_token() == TOKEN


PASTE_BEGIN, PASTE_END = "\x1b[200~", "\x1b[201~"


def test_a_long_command_of_many_lines_is_pasted_whole_and_never_shown(terminal: Open) -> None:
    command = f"curl 'https://www.perplexity.ai/' \\\n  -H 'x: {'y' * 6000}' \\\n  -b '{HEADER}' \\\n  -H 'z: 1'"
    with RawServer(SignIn()) as server:
        child = terminal(
            f"run_login(['--browser'], base_url={server.url!r})\nprint('left:', input())"
        )
        child.expect(r"hidden\):")
        child.send(f"{PASTE_BEGIN}{command}{PASTE_END}")
        child.expect(r"\(\d,\d{3} characters\)")
        child.send("\r")
        child.expect(f"knows you as {EMAIL}")
        assert TOKEN[:30] not in child.before
        child.sendline("nothing")
        assert "left: nothing" in screen(child)
    assert stored_token() == TOKEN


def test_ctrl_c_at_a_prompt_changes_nothing(terminal: Open) -> None:
    save_login(WebLogin(Secret(TOKEN)))
    child = terminal(
        "from ipyperplexity.errors import Interrupted\n"
        "try: run_login(['--browser'])\n"
        "except Interrupted as error: print('said:', error.message)"
    )
    child.expect(r"hidden\):")
    child.send("\x03")
    assert "said: the login was stopped" in screen(child)
    assert stored_token() == TOKEN


def test_cookies_can_be_pasted_at_the_prompt_of_ipython(terminal: Open, tmp_path: Path) -> None:
    with RawServer(SignIn()) as server:
        child = terminal(
            "from IPython import start_ipython\nfrom traitlets.config import Config\n"
            f"import os; os.environ['IPYTHONDIR'] = {str(tmp_path / 'ip')!r}\n"
            "start_ipython(['--no-banner', '--no-confirm-exit', '--colors=nocolor'], user_ns=globals())"
        )
        child.expect(r"In \[1\]:")
        child.send(f"run_login(['--browser'], base_url={server.url!r})\r")
        child.expect(r"hidden\):")
        child.send(f"{PASTE_BEGIN}curl https://www.perplexity.ai/ \\\n -b '{HEADER}'{PASTE_END}\r")
        child.expect("knows you as")
        child.expect(r"In \[2\]:")
        child.send("exit\r")
        assert TOKEN not in screen(child)
    assert stored_token() == TOKEN
    kept = [path for path in (tmp_path / "ip").rglob("*") if path.is_file()]
    assert kept and not any(TOKEN.encode() in path.read_bytes() for path in kept)


def test_an_error_of_a_login_holds_no_secret_in_its_frames(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PERPLEXITY_EMAIL", EMAIL)
    monkeypatch.setenv("PERPLEXITY_OTP", CODE)
    with (
        RawServer(SignIn(signin_otp=reply(401, {}))) as server,
        pytest.raises(errors.AuthenticationError) as raised,
    ):
        run_login(["--web"], base_url=server.url)
    assert CODE not in shown(raised.value)
