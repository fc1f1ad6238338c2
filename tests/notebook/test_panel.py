"""The panel: asked beside the cells, while the kernel stays free."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ipyperplexity import Client, errors
from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.emulator.faults import FAULTS
from tests.net.asking import eventually
from tests.notebook.conftest import KEY, Session
from tests.notebook.kernels import Kernel

QUESTION = "What is a lambda?"


@pytest.fixture
def panel(server: EmulatorServer) -> Iterator[Any]:
    from ipyperplexity import Panel

    panel = Panel(Client(max_retries=0), limit=2)
    yield panel
    panel.close()


def shown(panel: Any) -> str:
    return "".join(output["data"]["text/html"] for output in panel.output.outputs)


# --- what it does ---------------------------------------------------------------------------------


def test_a_question_streams_into_the_panel_and_its_answer_is_there(
    panel: Any, server: EmulatorServer
) -> None:
    server.pace = 0.02
    panel.ask(QUESTION)
    assert panel.is_running and panel.stop_button.disabled is False and panel.ask_button.disabled
    assert eventually(lambda: "anonymous" in shown(panel))
    assert "Searched: What is a lambda?" in panel.progress.value
    answer = panel.wait(20)
    assert answer.question == QUESTION and answer.status == "completed" and len(answer.sources) == 2
    assert "docs.python.org" in shown(panel) and panel.progress.value == ""
    assert panel.stop_button.disabled and not panel.ask_button.disabled


def test_enter_asks_and_the_field_is_empty_for_the_next_one(panel: Any) -> None:
    panel.field.value = QUESTION
    panel.field._handle_custom_msg({"event": "submit"}, [])
    assert panel.field.value == "" and panel.wait(20).question == QUESTION


def test_stop_keeps_what_had_come(panel: Any, server: EmulatorServer) -> None:
    server.pace = 0.08
    panel.ask(QUESTION)
    assert eventually(lambda: "Lambda" in shown(panel), 20)
    began = time.monotonic()
    panel.stop_button.click()
    answer = panel.wait(20)
    assert time.monotonic() - began < 1, "0.5 s, on a machine that is not busy"
    assert answer.status == "stopped" and answer.text and "Lambda" in shown(panel)
    assert not panel.is_running


def test_the_pickers_count_and_so_do_the_options_of_the_panel(
    panel: Any, server: EmulatorServer
) -> None:
    panel.model.value, panel.recency.value = "fast", "month"
    panel.ask(QUESTION)
    panel.wait(20)
    asked = str(server.requests[-1].json())
    assert "fast" in asked and "month" in asked and "'max_results': 2" in asked


def test_a_follow_up_goes_on_and_panels_have_conversations_of_their_own(
    panel: Any, server: EmulatorServer
) -> None:
    from ipyperplexity import Panel

    other = Panel(Client(max_retries=0))
    panel.ask(QUESTION)
    other.ask("What is yield?")
    first, second = panel.wait(20), other.wait(20)
    panel.field.value = "And how?"
    panel.follow_button.click()
    assert [turn.question for turn in panel.wait(20).turns] == [QUESTION]
    other.ask("And why?", follow=True)
    assert [turn.question for turn in other.wait(20).turns] == ["What is yield?"]
    assert panel.answers[0] is first and other.answers[0] is second
    other.close()


def test_earlier_questions_are_a_click_away(panel: Any) -> None:
    for question in (QUESTION, "What is yield?"):
        panel.ask(question)
        panel.wait(20)
    assert [label for label, _ in panel.history.options] == [QUESTION, "What is yield?"]
    panel.history.value = 0
    assert "anonymous" in shown(panel)
    assert panel.answer.question == "What is yield?"


@pytest.mark.parametrize("fault", ["unauthorized", "no-credit", "validation"])
def test_a_failure_is_a_sentence_in_the_panel(
    panel: Any, server: EmulatorServer, fault: str
) -> None:
    server.next(FAULTS[fault])
    panel.ask(QUESTION)
    assert panel.wait(20) is None
    assert "Error: " in shown(panel) and KEY not in shown(panel) and "Traceback" not in shown(panel)
    panel.ask(QUESTION)
    assert panel.wait(20).text


def test_an_empty_field_is_a_sentence_too(panel: Any, server: EmulatorServer) -> None:
    panel.ask_button.click()
    assert "question" in shown(panel) and not server.requests


def test_two_questions_at_once_are_refused(panel: Any, server: EmulatorServer) -> None:
    server.pace = 0.1
    panel.ask(QUESTION)
    with pytest.raises(errors.InvalidRequestError, match="being answered"):
        panel.ask("Why?")
    panel.stop()


def test_hostile_text_is_text(panel: Any, server: EmulatorServer) -> None:
    panel.ask("<img src=x onerror=alert(1)> lambda")
    panel.wait(20)
    assert "<img" not in shown(panel)
    panel._say("<script>alert(1)</script>")
    assert "<script>" not in panel.progress.value


def test_closing_stops_the_stream_and_leaves_no_thread(server: EmulatorServer) -> None:
    from ipyperplexity import Panel

    server.pace = 0.3
    panel = Panel(Client(max_retries=0))
    panel.ask(QUESTION)
    assert eventually(lambda: len(server.requests) == 1)
    panel.close()
    names = {thread.name for thread in threading.enumerate()}
    assert "ipyperplexity-panel" not in names


@pytest.mark.parametrize("options", [{"limit": 99}, {"recency": "soon"}])
def test_what_a_panel_cannot_ask_with_is_refused_when_it_is_made(options: Any) -> None:
    from ipyperplexity import Panel

    with pytest.raises(errors.InvalidRequestError, match=next(iter(options))):
        Panel(**options)


# --- any Output -----------------------------------------------------------------------------------


def test_a_stream_goes_into_an_output_of_the_users(server: EmulatorServer) -> None:
    import ipywidgets

    output = ipywidgets.Output()
    with Client(max_retries=0) as client:
        answer = client.stream(QUESTION, limit=2).into(output)
        assert answer.text and "anonymous" in output.outputs[0]["data"]["text/html"]
        server.next(FAULTS["unauthorized"])
        with pytest.raises(errors.AuthenticationError):
            client.stream(QUESTION).into(output)
        assert "AuthenticationError" in output.outputs[0]["data"]["text/html"]
        with pytest.raises(errors.InvalidRequestError, match=r"allowed: an ipywidgets\.Output"):
            client.stream(QUESTION).into(object())


# --- in a kernel ----------------------------------------------------------------------------------


def test_widgets_are_loaded_when_a_panel_is_made_and_not_before(kernel: Kernel) -> None:
    kernel.run("import sys")
    kernel.run(f"%perplexity -q {QUESTION}")
    loaded = "'ipywidgets' in sys.modules and 'ipyperplexity.notebook.panel' in sys.modules"
    assert kernel.value(loaded) is False
    kernel.run("panel = %perplexity panel")
    assert kernel.value(loaded) is True


def test_an_unfinished_question_goes_on_beside_other_cells_and_writes_into_none(
    kernel: Kernel, server: EmulatorServer
) -> None:
    kernel.run("panel = %perplexity panel")
    cell = kernel.run("panel")
    kinds = [output["data"] for output in cell.outputs if "data" in output]
    assert any("application/vnd.jupyter.widget-view+json" in data for data in kinds)
    server.pace = 0.05
    kernel.run(f"panel.ask({QUESTION!r})")
    busy = kernel.run("import time\nfor n in range(10):\n    time.sleep(0.1); print(n)")
    assert busy.printed.split() == [str(n) for n in range(10)]
    assert {output["output_type"] for output in busy.outputs} == {"stream"}
    kernel.run("panel.wait(30)")
    assert kernel.value("panel.answer.status") == "completed"


def test_what_is_kept_is_an_output_of_the_cell_that_shows_the_panel(
    kernel: Kernel, server: EmulatorServer
) -> None:
    kernel.run("panel = %perplexity panel")
    kernel.run("panel")
    kernel.run(f"panel.ask({QUESTION!r}); panel.wait(30)")
    kept = kernel.run("panel.keep()")
    (update,) = kept.of("update_display_data")
    assert "anonymous" in update["data"]["text/html"]


def test_unloading_closes_the_panels(session: Session, server: EmulatorServer) -> None:
    session.good("panel = %perplexity panel")
    server.pace = 0.3
    session.good(f"panel.ask({QUESTION!r})")
    session.good("%unload_ext ipyperplexity")
    assert not session["panel"].is_running
    assert "ipyperplexity-panel" not in {thread.name for thread in threading.enumerate()}
