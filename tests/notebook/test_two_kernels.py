"""Two kernels of one user that write the same files at the same time lose nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipyperplexity.auth.key_store import load_key
from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.store.job_store import JobStore
from ipyperplexity.store.ledger import Ledger
from ipyperplexity.stored_settings import load_settings
from tests.notebook.conftest import KEY
from tests.notebook.kernels import PATIENCE, Cell, Kernel, kernel_pythons
from tests.store.processes import run_at_once

ROUNDS = 12

#: One setting is this kernel's own; the key of the last who logs in counts.
WORK = """
from ipyperplexity.auth.key_store import load_key, save_key
from ipyperplexity.net.redact import Secret
from ipyperplexity.stored_settings import load_settings, save_setting
run = get_ipython().run_line_magic
known = {"kx-key-of-0", "kx-key-of-1"}
input("ready")
for n in range(%(rounds)d):
    run("perplexity", f"-q What is kernel %(name)d asking in round {n}?")
    job = run("perplexity", f"-q --background Kernel %(name)d, job {n}?")
    run("perplexity", f"config %(setting)s={n + 1}")
    save_key(Secret("kx-key-of-%(name)d"))
    assert load_key()[0].reveal() in known
input("ready")
for n in range(150):
    assert not n or load_settings()["%(setting)s"] == (n - 1) %% 50 + 1, "the other took it back"
    save_setting("%(setting)s", n %% 50 + 1)
job.wait()
"""
SETTINGS = ("limit", "max_retries")


@pytest.fixture
def kernels(server: EmulatorServer) -> Iterator[list[Kernel]]:
    python = kernel_pythons()[0]
    with Kernel(python) as one, Kernel(python) as other:
        for kernel in (one, other):
            kernel.start_over(server.url, KEY)
            kernel.run(
                f"os.environ['IPYPERPLEXITY_HOME'] = {os.environ['IPYPERPLEXITY_HOME']!r}\n"
                "os.environ['PYTHON_KEYRING_BACKEND'] = 'keyring.backends.fail.Keyring'"
            )
        yield [one, other]


def test_two_kernels_that_ask_set_and_log_in_at_once_lose_nothing(kernels: list[Kernel]) -> None:
    cells: list[Cell] = []
    for name, kernel in enumerate(kernels):
        words = {"name": name, "setting": SETTINGS[name], "rounds": ROUNDS}
        cells.append(kernel.send(WORK % words))
    for _ in ("asking", "setting"):
        for kernel in kernels:
            kernel.client.get_stdin_msg(timeout=PATIENCE)
        for kernel in kernels:  # now both begin
            kernel.client.input("go")
    for kernel, cell in zip(kernels, cells, strict=True):
        kernel.wait(cell)
        assert cell.reply["status"] == "ok", cell.reply
        assert "Warning" not in cell.printed and not cell.of("error")
    asked = {entry.question for entry in Ledger().entries() if entry.kind == "ask"}
    assert asked == {
        f"What is kernel {name} asking in round {n}?" for name in (0, 1) for n in range(ROUNDS)
    }
    jobs = JobStore(Path(os.environ["IPYPERPLEXITY_HOME"]) / "state" / "jobs.db")
    left = {record.question for record in jobs.all()}
    jobs.close()
    assert left == {f"Kernel {name}, job {n}?" for name in (0, 1) for n in range(ROUNDS)}
    assert load_settings() == dict.fromkeys(SETTINGS, 50)
    found = load_key()
    assert found is not None and found[0].reveal() in ("kx-key-of-0", "kx-key-of-1")
    for kernel in kernels:
        mine, everything = "%perplexity usage", "%perplexity usage --all"
        kernel.run(f"mine = {mine}\neverything = {everything}")
        assert kernel.value("(len(mine), len(everything))") == (ROUNDS + 1, 2 * ROUNDS + 2)
    for kernel in kernels:  # which also looks whether those that nobody waited for are done
        kernel.run("jobs = %perplexity jobs")
        assert kernel.value("len(jobs)") == 2 * ROUNDS


KEYS = """
import sys, warnings
warnings.simplefilter("error")
from ipyperplexity.auth.key_store import delete_key, load_key, save_key
from ipyperplexity.net.redact import Secret
mine = "pplx-" + sys.argv[1] * 500
print("ready", flush=True)
sys.stdin.readline()
for _ in range(60):
    save_key(Secret(mine))
    found = load_key()
    key = found[0].reveal() if found else mine
    assert len(key) == len(mine) and len(set(key[5:])) == 1, "half of a key"
    if sys.argv[1] == "2":
        delete_key()
"""


def test_programs_that_store_and_delete_keys_at_once_never_meet_half_of_one() -> None:
    run_at_once(KEYS, 3)
