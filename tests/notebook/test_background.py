"""``--background``: a question is left to the service, and its answer comes later."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipyperplexity import Answer, Job, Jobs, hooks
from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.emulator.faults import Behavior
from ipyperplexity.errors import AbortedError, ConfigurationError, PerplexityWarning
from tests.notebook.conftest import KEY, Session
from tests.notebook.kernels import Cell, Kernel
from tests.notebook.test_asking import asked, body
from tests.notebook.test_terminal import Open, open_terminal  # noqa: F401
from tests.support.raw_server import RawServer
from tests.test_jobs import CREATED, LAST, service_of, state

#: A run that does not end by itself.
ENDLESS = Behavior(pace=3600)
SEARCHES = [item for item in LAST["output"] if item["type"] != "message"]


@pytest.fixture
def endless(server: EmulatorServer) -> EmulatorServer:
    server.next(ENDLESS)
    return server


# --- what a cell gives ------------------------------------------------------------------------


def test_a_cell_gives_a_job_at_once(session: Session, endless: EmulatorServer) -> None:
    ran = session.good("%%perplexity --background -m high --recency month\nWhat is a lambda?")
    job = ran.result
    assert isinstance(job, Job) and not job.done and job is session["_"]
    assert job.question == "What is a lambda?" and job.id in ran.out
    assert asked(endless) == job.question and body(endless)["preset"] == "high"
    assert body(endless)["background"] is True and len(endless.requests) == 1


@pytest.mark.parametrize("cell", [
    "kept = %perplexity --background What is a lambda?",
    "%perplexity --background -q -o kept What is a lambda?",
    "%%perplexity --background -q -o kept\nWhat is a lambda?",
])  # fmt: skip
def test_a_job_is_kept_unseen_if_that_is_asked_for(
    session: Session, endless: EmulatorServer, cell: str
) -> None:
    assert session.good(cell).out.strip() == ""
    assert isinstance(session["kept"], Job)
    assert session["kept"].id in session.good("kept").out, "a later cell shows it"


def test_out_keeps_the_job_and_shows_it(session: Session, endless: EmulatorServer) -> None:
    ran = session.good("%perplexity --background -o kept What is a lambda?")
    assert session["kept"] is ran.result and ran.result.id in ran.out


def test_variables_and_the_conversation_go_with_it(
    session: Session, server: EmulatorServer
) -> None:
    session.good("thing = 'lambda'")
    first = session.good("%perplexity -q What is a {{thing}}?").result
    session.good("job = %perplexity --background -c And a {{thing}} in a call?")
    assert session["job"].question == "And a lambda in a call?"
    assert body(server)["previous_response_id"] == first.id


def test_its_answer_is_that_of_the_question_and_counts_once(
    session: Session, server: EmulatorServer
) -> None:
    session.good("job = %perplexity --background What is a lambda?")
    answer = session.good("job.wait()").result
    assert isinstance(answer, Answer) and answer.status == "completed" and answer.sources
    assert session.good("job.answer").result is answer
    kinds = session.good("%perplexity usage").result["kind"]
    assert kinds == ["job"]
    follow = session.good("job.answer.follow_up('And a tuple?')").result
    assert follow.turns[0].question == "What is a lambda?"


def test_last_is_the_answer_that_came_last(session: Session, server: EmulatorServer) -> None:
    session.good("%perplexity -q What is a tuple?")
    session.good("job = %perplexity --background What is a lambda?")
    session.good("job.wait()")
    assert session.good("%perplexity last").result is session["job"].answer
    later = session.good("%perplexity -q What is a set?").result
    assert session.good("%perplexity last").result is later


def test_what_came_of_a_run_that_failed_is_where_the_error_says(
    session: Session, server: EmulatorServer
) -> None:
    server.next(Behavior(terminal="failed-event"))
    session.good("job = %perplexity --background What is a lambda?")
    ran = session.run("job.wait()")
    assert type(ran.error).__name__ == "ServerError" and len(ran.out.splitlines()) <= 5
    assert session.good("%perplexity last").result is ran.error.answer  # type: ignore[union-attr]


@pytest.mark.parametrize("backend", ["chat", "web"])
def test_a_backend_that_keeps_no_runs_refuses_it(
    session: Session, server: EmulatorServer, backend: str
) -> None:
    ran = session.run(f"%perplexity -b {backend} --background What is a lambda?")
    assert isinstance(ran.error, ConfigurationError) and not server.requests
    assert f"background: the {backend} backend has none; allowed: agent, demo" in ran.out


def test_what_looks_like_an_option_in_it_is_remarked_on(
    session: Session, endless: EmulatorServer
) -> None:
    with pytest.warns(PerplexityWarning, match="--limit was sent as part of the question"):
        session.good("job = %perplexity --background What is a lambda? --limit 3")


def test_a_job_can_be_cancelled(session: Session, endless: EmulatorServer) -> None:
    session.good("job = %perplexity --background What is a lambda?")
    assert session.good("job.cancel()").result == "cancelled"
    assert endless.requests[1].path == f"/v1/responses/{session['job'].id}/cancel"
    ran = session.run("job.wait()")
    assert isinstance(ran.error, AbortedError) and "the run was cancelled" in ran.out
    assert "cancelled" in session.good("%perplexity jobs").out


def test_jobs_lists_what_was_left_newest_first(session: Session, server: EmulatorServer) -> None:
    assert session.good("%perplexity jobs").out.strip().endswith("Jobs(0 jobs)")
    for thing in ("lambda", "tuple"):
        session.good(f"job = %perplexity --background What is a {thing}?")
        session.good("job.wait()")
    ran = session.good("jobs = %perplexity jobs\njobs")
    assert isinstance(ran.result, Jobs)
    assert ran.result["question"] == ["What is a tuple?", "What is a lambda?"]
    assert ran.result["status"] == ["completed"] * 2 and "What is a tuple?" in ran.out


def test_jobs_looks_whether_what_was_left_is_done(session: Session, server: EmulatorServer) -> None:
    session.good("job = %perplexity -q --background What is a lambda?")
    for _ in range(100):
        if session.good("%perplexity jobs").result["status"] == ["completed"]:
            break
        time.sleep(0.05)
    else:
        pytest.fail("it was never done")
    cost = session.good("%perplexity usage").result["cost_usd"]
    assert len(cost) == 1 and cost[0] > 0


def test_without_a_screen_waiting_says_nothing(session: Session, server: EmulatorServer) -> None:
    session.good("job = %perplexity --background What is a lambda?")
    assert session.good("answer = job.wait()").out == ""


def test_unloading_lets_jobs_wait_in_silence_again(session: Session) -> None:
    assert hooks.show_progress is not None
    session.good("%unload_ext ipyperplexity")
    assert hooks.show_progress is None


# --- in a kernel ------------------------------------------------------------------------------


class Run:
    """A service with one run, which ends when the test says so."""

    def __init__(self) -> None:
        self.ends = threading.Event()

        def look(request: Any) -> Any:
            return LAST if self.ends.is_set() else state("in_progress", *SEARCHES)

        self.server = RawServer(service_of(look, created=CREATED))

    @property
    def asked(self) -> list[str]:
        return [request.method for request in self.server.requests]


@pytest.fixture
def run() -> Iterator[Run]:
    run = Run()
    with run.server:
        yield run


def begin(kernel: Kernel, run: Run, home: Path) -> None:
    kernel.start_over(run.server.url, KEY)
    kernel.run(f"os.environ['IPYPERPLEXITY_HOME'] = {os.fspath(home)!r}")


@pytest.fixture
def kernel(running_kernel: Kernel, run: Run, tmp_path: Path) -> Kernel:
    begin(running_kernel, run, tmp_path / "of the kernel")
    return running_kernel


def lines(cell: Cell) -> list[str]:
    shown = cell.of("display_data", "update_display_data")
    return [content["data"]["text/plain"] for content in shown]


def test_a_kernel_shows_how_far_it_is_in_one_output(kernel: Kernel, run: Run) -> None:
    left = kernel.run("job = %perplexity --background What is a lambda?\njob")
    assert [output["output_type"] for output in left.outputs] == ["execute_result"]
    assert "queued" in left.outputs[0]["data"]["text/html"]
    cell = kernel.send("answer = job.wait()")
    kernel.wait_for(cell, "display_data")
    run.ends.set()
    kernel.wait(cell)
    assert cell.reply["status"] == "ok" and cell.count("display_data") == 1
    assert lines(cell)[0].startswith("in progress · ") and len(lines(cell)) > 1
    (output,) = cell.outputs
    assert set(output["data"]) == {"text/plain", "text/html"}
    assert output["data"]["text/plain"].startswith("completed · ")
    assert output["data"]["text/plain"].endswith(" · 1 search · 2 sources")
    assert 'role="status"' in output["data"]["text/html"]
    assert kernel.value("answer.status") == "completed"
    assert kernel.run("answer = job.wait()").outputs == [], "it is known by now"


def test_an_interrupt_ends_the_waiting_and_not_the_run(kernel: Kernel, run: Run) -> None:
    kernel.run("job = %perplexity --background What is a lambda?")
    cell = kernel.send("answer = job.wait()")
    queued = kernel.send("after = 1")
    kernel.wait_for(cell, "display_data")
    kernel.manager.interrupt_kernel()
    kernel.wait(cell, queued)
    assert cell.error["ename"] == "Interrupted" and len(cell.error["traceback"]) == 1
    assert "the run goes on at the service: job.wait() waits again" in cell.error["evalue"]
    assert queued.reply["status"] == "aborted" or not kernel.value("'after' in globals()")
    assert kernel.value("job.status") == "in_progress"
    run.ends.set()
    assert kernel.run("answer = job.wait()").reply["status"] == "ok"
    assert kernel.value("answer.text") == LAST["output"][-1]["content"][0]["text"]
    assert run.asked.count("POST") == 1, "nothing was cancelled, or asked again"


def test_after_a_restart_the_job_is_listed_and_gives_its_answer(
    kernel: Kernel, run: Run, tmp_path: Path
) -> None:
    kernel.run("job = %perplexity --background -m high What is a lambda?")
    id = kernel.value("job.id")
    kernel.restart()
    begin(kernel, run, tmp_path / "of the kernel")
    assert kernel.value("'job' in globals()") is False
    (output,) = kernel.run("jobs = %perplexity jobs\njobs").outputs
    assert "What is a lambda?" in output["data"]["text/html"]
    assert kernel.value("[(j.id, j.model, j.done) for j in jobs]") == [(id, "high", False)]
    run.ends.set()
    cell = kernel.run("jobs[0].wait()")
    shown, value = cell.outputs
    assert shown["data"]["text/plain"].startswith("completed · ")
    assert "It is so.[1]" in value["data"]["text/plain"] and run.asked.count("POST") == 1
    kernel.run("jobs = %perplexity jobs")
    assert kernel.value("jobs['status']") == ["completed"]


# --- in a terminal ----------------------------------------------------------------------------


def test_a_terminal_shows_how_far_it_is_in_one_line(
    open_terminal: Open,  # noqa: F811
    run: Run,
) -> None:
    terminal = open_terminal(run.server.url, "--simple-prompt")
    terminal.run("job = %perplexity --background What is a lambda?")
    terminal.child.send("answer = job.wait()\r")
    terminal.child.expect("in progress · ")
    run.ends.set()
    terminal.child.expect(r"\rcompleted · \d+ s · 1 search · 2 sources *\r\n")
    assert terminal.wait_for_prompt().strip() == ""
    assert "'completed'" in terminal.run("answer.status")


def test_ctrl_c_in_a_terminal_is_told_on_a_line_of_its_own(
    open_terminal: Open,  # noqa: F811
    run: Run,
) -> None:
    terminal = open_terminal(run.server.url, "--simple-prompt")
    terminal.run("job = %perplexity --background What is a lambda?")
    terminal.child.send("answer = job.wait()\r")
    terminal.child.expect("2 sources")
    terminal.child.sendintr()
    screen = terminal.wait_for_prompt()
    told = [line for line in screen.splitlines() if "Interrupted" in line]
    assert len(told) == 1 and told[0].startswith("Interrupted: stopped waiting"), screen
    assert "Traceback" not in screen and run.asked.count("POST") == 1
