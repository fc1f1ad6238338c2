"""How far a batch is: shown where somebody looks, and nowhere else."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

from ipyperplexity.batch.progress_bar import ProgressBar
from ipyperplexity.errors import InvalidRequestError
from tests.notebook.kernels import ROOT, Kernel, KernelPython

needs_tqdm = pytest.mark.skipif(
    importlib.util.find_spec("tqdm") is None, reason="tqdm is not installed"
)

CODE = """
from ipyperplexity.batch.progress_bar import ProgressBar
with ProgressBar(40, {show!r}) as bar:
    bar.update(10, errors=0, spent=0.0, cached=0)
    bar.update(40, errors=3, spent=0.38, cached=12)
"""


@needs_tqdm
def test_rows_errors_dollars_and_time_left_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar(40, True)
    bar.update(10, errors=0, spent=0.0, cached=0)
    bar.update(40, errors=3, spent=0.38, cached=12)
    bar.close()
    out, err = capsys.readouterr()
    last = err.rpartition("\r")[2]
    assert not out and "40/40" in last and "3 errors, $0.38, 12 cached" in last
    assert " rows" in last and "<" in last  # the pace, and elapsed<left


@needs_tqdm
def test_a_stopped_batch_leaves_its_bar_where_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), ProgressBar(40, True) as bar:
        bar.update(10, errors=1, spent=0.01, cached=0)
        raise KeyboardInterrupt
    assert "10/40" in capsys.readouterr().err.rpartition("\r")[2]
    bar.update(20, errors=1, spent=0.02, cached=0)  # a row that comes late
    bar.close()
    assert capsys.readouterr().err == ""


@needs_tqdm
def test_a_bar_leaves_no_thread_behind() -> None:
    before = set(threading.enumerate())
    with ProgressBar(40, True) as bar:
        bar.update(10, errors=0, spent=0.0, cached=0)
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("show", [False, "auto"])
def test_nothing_is_shown_when_nobody_looks_and_tqdm_is_not_even_loaded(show: Any) -> None:
    code = CODE.format(show=show) + "import sys; assert 'tqdm' not in sys.modules"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout + done.stderr == ""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@needs_tqdm
@pytest.mark.parametrize(("show", "shown"), [("auto", True), (False, False)])
def test_in_a_terminal_it_shows_by_itself(show: Any, shown: bool) -> None:
    import pexpect

    child = pexpect.spawn(
        sys.executable, ["-c", CODE.format(show=show)], cwd=str(ROOT), dimensions=(24, 120)
    )
    output = child.read().decode()
    child.close()
    assert child.exitstatus == 0
    assert ("3 errors, $0.38, 12 cached" in output) is shown
    assert bool(output) is shown


def test_no_rows_need_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar(0, importlib.util.find_spec("tqdm") is not None) as bar:
        bar.update(0, errors=0, spent=0.0, cached=0)
    assert capsys.readouterr().err == ""


def test_without_tqdm_a_bar_that_was_asked_for_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match=r'pip install "ipyperplexity\[progress\]"'):
        ProgressBar(10, True)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_without_tqdm_a_terminal_sees_nothing_and_nothing_fails() -> None:
    import pexpect

    code = "import sys; sys.modules['tqdm.auto'] = None\n" + CODE.format(show="auto")
    child = pexpect.spawn(sys.executable, ["-c", code], cwd=str(ROOT))
    assert child.read() == b""
    child.close()
    assert child.exitstatus == 0


@pytest.mark.parametrize("show", ["yes", None, 1])
def test_only_true_false_and_auto_are_taken(show: Any) -> None:
    with pytest.raises(InvalidRequestError, match="allowed: True, False or 'auto'") as caught:
        ProgressBar(10, show)
    assert caught.value.field == "progress"


@needs_tqdm
def test_a_notebook_shows_a_bar_and_one_that_is_run_without_its_reader_does_not() -> None:
    with Kernel(KernelPython(sys.executable, "here")) as kernel:
        alone = kernel.run(CODE.format(show="auto"), allow_stdin=False)
        assert alone.reply["status"] == "ok" and alone.outputs == []
        seen = kernel.run(CODE.format(show="auto"))
    assert seen.reply["status"] == "ok"
    (bar,) = seen.outputs
    assert "application/vnd.jupyter.widget-view+json" in bar["data"], os.linesep.join(bar["data"])
