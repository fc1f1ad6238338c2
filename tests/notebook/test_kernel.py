"""A cell in a real kernel, as a front end sees it: message by message."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.emulator.faults import Behavior
from ipyperplexity.question import OPTIONS
from tests.notebook.conftest import KEY
from tests.notebook.kernels import Cell, Kernel
from tests.support.raw_server import HoldOpen, RawServer, Wait, agent_stream, sse_response

#: About one second of text.
SLOW = Behavior(pace=0.02, chunk_chars=8, extra_text=" word" * 50)
WORDS = [f"word{n} " for n in range(400)]
FRAMES = agent_stream("".join(WORDS), [{"url": "https://a.example"}], deltas=WORDS)
#: Many pieces of an answer, and then silence.
STUCK = [*sse_response(FRAMES, between=Wait(0.02))[:120], HoldOpen()]


def display_ids(cell: Cell) -> set[str]:
    shown = cell.of("display_data", "update_display_data")
    return {content["transient"]["display_id"] for content in shown}


def test_the_answer_grows_in_one_output_before_the_cell_ends(
    kernel: Kernel, server: EmulatorServer
) -> None:
    server.next(SLOW)
    cell = kernel.run("%%perplexity -o a\nWhat is a lambda?")
    updates = cell.of("update_display_data")
    assert len(updates) >= 5 and len(display_ids(cell)) == 1
    assert cell.count("clear_output") == cell.count("execute_result") == cell.count("error") == 0
    texts = [content["data"]["text/html"] for content in updates]
    assert len(set(map(len, texts))) >= 5, "each shows more than the one before"
    (left,) = cell.outputs
    assert set(left["data"]) == {"text/html", "text/plain"}
    assert left["data"]["text/plain"] == kernel.value("a.to_text()")
    assert left["data"]["text/html"] == kernel.value("a.to_html()")
    assert "running" not in left["data"]["text/html"].split("</style>")[-1]


@pytest.mark.parametrize("text", ["What is a lambda?", "answer in $5 and {braces}?"])
def test_the_answer_is_kept_where_ipython_keeps_values(kernel: Kernel, text: str) -> None:
    cell = kernel.run(f"%perplexity {text}")
    count = cell.reply["execution_count"]
    assert kernel.value("_.question") == kernel.value(f"Out[{count}].question") == text
    assert cell.count("execute_result") == 0 and len(cell.outputs) == 1


@pytest.mark.parametrize(
    "code",
    [
        "a = %perplexity What is a lambda?",
        "a = %perplexity What is a lambda?\na",
        "%perplexity What is a lambda?",
        "for i in range(1):\n    a = %perplexity What is a lambda?\na",
        "%perplexity --no-stream What is a lambda?",
    ],
)
def test_an_answer_is_shown_once(kernel: Kernel, code: str) -> None:
    cell = kernel.run(code)
    assert len(cell.outputs) == 1 and cell.outputs[0]["output_type"] == "display_data"


def test_an_answer_shows_itself_in_a_later_cell(kernel: Kernel) -> None:
    kernel.run("a = %perplexity What is a lambda?")
    for _ in range(2):
        (output,) = kernel.run("a").outputs
        assert output["output_type"] == "execute_result"
        assert set(output["data"]) == {"text/html", "text/plain"}


def test_another_answer_and_other_values_show_themselves_in_a_cell_that_asks(
    kernel: Kernel,
) -> None:
    kernel.run("a = %perplexity What is a lambda?")
    for value, kind in (("a", "execute_result"), ("6 * 7", "execute_result")):
        outputs = kernel.run(f"b = %perplexity What is a tuple?\n{value}").outputs
        assert [output["output_type"] for output in outputs] == ["display_data", kind]


def test_quiet_publishes_nothing(kernel: Kernel) -> None:
    cell = kernel.run("%%perplexity -q -o a\nWhat is a lambda?")
    assert cell.outputs == [] and kernel.value("a.status") == "completed"


def test_raw_shows_the_markdown_as_it_is(kernel: Kernel, server: EmulatorServer) -> None:
    server.next(Behavior(extra_text="\n\n**bold** <b>&amp;</b>"))
    (output,) = kernel.run("%perplexity --raw What is a lambda?").outputs
    assert "**bold** &lt;b&gt;&amp;amp;&lt;/b&gt;</pre>" in output["data"]["text/html"]


def test_nobody_watching_means_fewer_updates_and_the_same_end(
    kernel: Kernel, server: EmulatorServer
) -> None:
    server.next(SLOW, SLOW)
    watched = kernel.run("a = %perplexity What is a lambda?")
    alone = kernel.run("b = %perplexity What is a lambda?", allow_stdin=False)
    assert alone.count("update_display_data") <= 4 < watched.count("update_display_data")
    assert kernel.value("a.text == b.text")
    assert alone.outputs[0]["data"]["text/html"] == kernel.value("b.to_html()")


def test_a_silent_service_is_seen_to_be_waited_for(kernel: Kernel, server: EmulatorServer) -> None:
    server.next(Behavior(stall_after=0))
    cell = kernel.run("%perplexity --timeout 1.2 What is a lambda?")
    texts = [c["data"]["text/plain"] for c in cell.of("display_data", "update_display_data")]
    assert "Asking" in texts[0] or "Waiting" in texts[0]
    assert cell.error["ename"] == "RequestTimeout"


# --- stopping ---------------------------------------------------------------------------------


@pytest.fixture
def stuck(kernel: Kernel) -> Iterator[RawServer]:
    with RawServer(STUCK) as server:
        kernel.start_over(server.url, KEY)
        yield server


def test_an_interrupt_stops_the_answer_and_keeps_it(kernel: Kernel, stuck: RawServer) -> None:
    cell = kernel.send("%%perplexity -o a\nWhat is a lambda?")
    queued = kernel.send("after = 1")
    kernel.wait_for(cell, "update_display_data", 3)
    kernel.manager.interrupt_kernel()
    kernel.wait(cell, queued)
    stopped = cell.arrived[-1]
    assert cell.reply["status"] == "error" and cell.reply["ename"] == "Interrupted"
    assert len(cell.error["traceback"]) == 1 and "%perplexity last" in cell.error["traceback"][0]
    assert queued.reply["status"] == "aborted" or kernel.value("'after' in globals()") is False
    assert stuck.wait_for_disconnect(), "the service is told by hanging up"
    status, text = kernel.value("(a.status, a.text)")
    assert status == "stopped" and text.startswith("word0 word1 ")
    assert kernel.value("get_ipython().run_line_magic('perplexity', 'last') is a")
    shown = cell.outputs[0]["data"]
    assert text.strip() in shown["text/plain"] and "stopped · " in shown["text/plain"]
    assert shown["text/html"] == kernel.value("a.to_html()")
    assert len(cell.outputs) == 2, "the answer and the error"
    assert stopped - cell.sent < 30
    names = kernel.value("[t.name for t in __import__('threading').enumerate()]")
    assert "ipyperplexity-reader" not in names


def test_an_interrupt_is_quick_and_the_next_question_works(
    kernel: Kernel, stuck: RawServer, server: EmulatorServer
) -> None:
    cell = kernel.send("%perplexity -o a What is a lambda?")
    kernel.wait_for(cell, "update_display_data", 2)
    import time

    began = time.monotonic()
    kernel.manager.interrupt_kernel()
    kernel.wait(cell)
    assert time.monotonic() - began < 0.5
    kernel.run(f"os.environ['PERPLEXITY_BASE_URL'] = {server.url!r}")
    assert kernel.run("%perplexity -c And why?").reply["status"] == "ok"
    roles = [item["role"] for item in server.requests[-1].json()["input"]]
    assert roles == ["user", "assistant", "user"]


@pytest.mark.parametrize("server_says", ["nothing", "head"])
def test_an_interrupt_before_any_text_is_an_interrupt_too(kernel: Kernel, server_says: str) -> None:
    asked = threading.Event()
    head = sse_response([])[0]

    def script(request: object, connection: object) -> None:
        if server_says == "head":
            connection.play(head)  # type: ignore[attr-defined]
        asked.set()
        connection.play(HoldOpen())  # type: ignore[attr-defined]

    with RawServer(script) as server:
        kernel.start_over(server.url, KEY)
        cell = kernel.send("%perplexity -o a What is a lambda?")
        assert asked.wait(30)
        kernel.wait_for(cell, "display_data")
        kernel.manager.interrupt_kernel()
        kernel.wait(cell)
        assert cell.error["ename"] == "Interrupted" and "no text had come" in cell.error["evalue"]
        assert kernel.value("(a.status, a.text)") == ("stopped", "")
        assert server.wait_for_disconnect()


# --- failures ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["Context", "Verbose"])
def test_a_failure_is_one_short_error_without_the_key_and_ends_a_run_of_cells(
    kernel: Kernel, server: EmulatorServer, mode: str
) -> None:
    kernel.run(f"%xmode {mode}")
    server.next(Behavior(status=401, body={"error": {"message": f"bad key {KEY}"}}))
    cell = kernel.send("%perplexity -o a What is a lambda?")
    queued = kernel.send("after = 1")
    kernel.wait(cell, queued)
    (output,) = cell.outputs
    assert output["ename"] == "AuthenticationError" and len(output["traceback"]) <= 3
    assert "PERPLEXITY_API_KEY" in "\n".join(output["traceback"])
    assert KEY not in repr(cell.messages) + repr(cell.reply)
    assert queued.reply["status"] == "aborted"
    assert kernel.value("(a.status, type(a.error).__name__)") == ("failed", "AuthenticationError")


def test_a_broken_stream_shows_and_keeps_what_came(kernel: Kernel, server: EmulatorServer) -> None:
    server.next(Behavior(cut_after=40, chunk_chars=3, pace=0.02))
    cell = kernel.run("%perplexity -o a What is a lambda?")
    shown, error = cell.outputs
    assert error["ename"] == "StreamError"
    status, text = kernel.value("(a.status, a.text)")
    assert status == "failed" and text and "failed" in shown["data"]["text/plain"]
    assert shown["data"]["text/html"] == kernel.value("a.to_html()")


# --- help and completion ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "matches"),
    [
        ("%%perplexity --re", ["--recency", "--reasoning"]),
        ("%perplexity -m fast --context h", ["high"]),
        ("answer = %perplexity --rea", ["--reasoning"]),
        ("x = 1\n%perplexity sta", ["status"]),
    ],
)
def test_tab_completes_in_a_notebook(kernel: Kernel, code: str, matches: list[str]) -> None:
    reply = kernel.client.complete(code, len(code), reply=True, timeout=60)["content"]
    assert reply["matches"] == matches
    start = reply["cursor_start"]
    assert matches[0].startswith(code[start:])


def test_shift_tab_and_question_mark_explain_every_option(kernel: Kernel) -> None:
    reply = kernel.client.inspect("%perplexity", 11, reply=True, timeout=60)["content"]
    assert reply["found"]
    (page,) = kernel.run("%perplexity?").reply["payload"]
    for text in (reply["data"]["text/plain"], page["data"]["text/plain"]):
        for name, option in OPTIONS.items():
            assert not option.flags or option.help in text, name


def test_nothing_patches_the_event_loop_and_no_widget_is_made(kernel: Kernel) -> None:
    before = kernel.value("[m for m in __import__('sys').modules if 'nest_asyncio' in m]")
    cell = kernel.run("%perplexity What is a lambda?")
    after = kernel.value("[m for m in __import__('sys').modules if 'nest_asyncio' in m]")
    assert before == after and not cell.of("comm_open", "comm_msg")
    assert kernel.value("'ipywidgets' in __import__('sys').modules") is False
