"""An answer: complete in itself, a table of its sources, and whole in any container."""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import html
import io
import json
import pickle
import pprint
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from IPython.lib.pretty import pretty

from ipyperplexity.answer import Answer, Turn, Usage, format_cost, summary_line
from ipyperplexity.errors import ConfigurationError, PerplexityWarning, ServerError
from ipyperplexity.question import Question
from ipyperplexity.sources import Source, Sources
from ipyperplexity.tools import ToolCall

SOURCES = Sources(
    [
        Source(1, "Dune", "https://d.example", "d.example", dt.date(2025, 3, 2), None, True, 1),
        Source(3, "Sea", "https://s.example", "s.example"),
    ]
)
USAGE = Usage(10, 20, 30, 5, 1, 0.0123)
ANSWER = Answer(
    "Which dune?",
    "Pilat is tall.[1]\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    sources=SOURCES,
    usage=USAGE,
    model="m/1",
    elapsed=2.34,
)
EMPTY = Answer("Why?", "")


# --- the object ------------------------------------------------------------------------------


def test_an_answer_is_its_text_and_the_sequence_of_its_sources() -> None:
    assert str(ANSWER) == ANSWER.text
    assert f"{ANSWER}" == ANSWER.text
    assert list(ANSWER) == list(SOURCES)
    assert ANSWER.to_dicts() == SOURCES.to_dicts()


def test_an_answer_is_always_true_and_has_neither_length_nor_items() -> None:
    assert EMPTY
    assert not hasattr(Answer, "__len__")
    assert not hasattr(Answer, "__getitem__")
    with pytest.raises(TypeError):
        len(ANSWER)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        ANSWER[0]  # type: ignore[index]


def test_an_answer_is_itself_alone_and_does_not_change() -> None:
    twin = dataclasses.replace(ANSWER)
    assert twin != ANSWER
    assert {ANSWER: 1}[ANSWER] == 1
    assert len({ANSWER, twin}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        ANSWER.text = "other"  # type: ignore[misc]


def test_citations_and_tables_are_read_from_the_text() -> None:
    (citation,) = ANSWER.citations
    assert citation.source is SOURCES[0]
    (table,) = ANSWER.tables
    assert list(table.to_pandas().columns)[:2] == ["a", "b"]
    assert EMPTY.citations == () and EMPTY.tables == ()


def test_a_name_that_it_does_not_have_leads_to_those_that_it_has() -> None:
    with pytest.raises(AttributeError, match=r"no 'head'; .*answer\.to_pandas\(\)"):
        ANSWER.head  # noqa: B018
    assert not hasattr(ANSWER, "head")
    with pytest.raises(AttributeError) as caught:
        ANSWER.__dataframe__  # noqa: B018
    assert "to_pandas" not in str(caught.value)


def test_its_repr_is_one_short_line_that_names_a_status_other_than_completed() -> None:
    assert repr(ANSWER).startswith("Answer('Pilat is tall.[1]")
    assert "status" not in repr(ANSWER)
    long = Answer("Why?", "word\n\x1b[31m" * 10_000, status="stopped")
    assert len(repr(long)) < 150
    assert "\x1b" not in repr(long) and "\n" not in repr(long)
    assert "status='stopped'" in repr(long)


# --- containers and frames ---------------------------------------------------------------------


def test_numpy_keeps_answers_whole() -> None:
    for pair in ([ANSWER, EMPTY], (ANSWER, ANSWER)):
        array = np.array(pair, dtype=object)
        assert array.shape == (2,)
        assert array[0] is ANSWER


def test_a_column_of_answers_keeps_them_whole() -> None:
    frame = pd.DataFrame({"q": ["a", "b"]})
    frame["answer"] = [ANSWER, EMPTY]
    assert frame["answer"][0] is ANSWER
    assert frame["answer"].map(str).tolist() == [ANSWER.text, ""]
    assert repr(frame)
    assert pd.Series([ANSWER, EMPTY])[1] is EMPTY


def test_every_frame_library_takes_an_answer_as_the_table_of_its_sources() -> None:
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    rows = SOURCES.to_dicts()
    assert pd.DataFrame(ANSWER)["title"].tolist() == ["Dune", "Sea"]
    assert pl.DataFrame(ANSWER).to_dicts() == rows
    assert pa.table(ANSWER).to_pylist() == rows
    answer = ANSWER
    assert duckdb.sql("select title from answer order by id").fetchall() == [("Dune",), ("Sea",)]
    assert answer.to_pandas().equals(SOURCES.to_pandas())


def test_an_answer_without_sources_is_a_table_of_the_same_columns() -> None:
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    assert list(EMPTY.to_pandas().dtypes) == list(ANSWER.to_pandas().dtypes)
    assert pl.DataFrame(EMPTY).schema == pl.DataFrame(ANSWER).schema
    assert pa.table(EMPTY).schema == pa.table(ANSWER).schema


def test_its_row_holds_flat_plain_values_for_a_table_of_answers() -> None:
    row = dataclasses.replace(ANSWER, error=ServerError("down")).row()
    assert row["question"] == "Which dune?"
    assert (row["n_sources"], row["n_cited"]) == (2, 1)
    assert (row["total_tokens"], row["cost_usd"], row["error"]) == (30, 0.0123, "SERVER")
    plain = (str, int, float, bool, dt.datetime, type(None))
    assert all(isinstance(value, plain) for value in row.values())
    assert pd.DataFrame([row]).shape == (1, len(row))


# --- copies ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_copy_says_the_same_and_belongs_to_no_client(copied: Any) -> None:
    answer = dataclasses.replace(ANSWER)
    answer.__dict__["_ask"] = lambda text, **options: answer
    assert answer.citations and answer.tables
    twin = copied(answer)
    assert (twin.text, twin.sources, twin.usage) == (answer.text, answer.sources, answer.usage)
    assert twin.citations == answer.citations
    with pytest.raises(ConfigurationError, match="belongs to no client") as caught:
        twin.follow_up("And then?")
    assert "follow=answer" in str(caught.value.hint)
    assert answer.follow_up("And then?") is answer


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_failed_answer_and_its_error_refer_to_each_other_also_after_copying(copied: Any) -> None:
    error = ServerError("down", status_code=503)
    answer = dataclasses.replace(ANSWER, status="failed", error=error)
    error.answer = answer
    twin = copied(answer)
    assert twin.error.status_code == 503
    assert twin.error.answer is twin
    twin_error = copied(error)
    assert twin_error.answer.text == answer.text
    assert twin_error.answer.error is twin_error


# --- the thread of the web endpoint ----------------------------------------------------------

TOKEN = "rwt-7f3a9c55e1d0"
IN_THREAD = dataclasses.replace(
    ANSWER,
    thread={"last_backend_uuid": "u-1", "read_write_token": TOKEN},
    tool_calls=(ToolCall("f", "{}", "1"),),
)


def failed_in_thread() -> Answer:
    answer = dataclasses.replace(IN_THREAD, status="failed", error=ServerError("down"))
    assert answer.error is not None
    answer.error.answer = answer
    return answer


def saved_bytes(answer: Answer) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.json"
        answer.save(path)
        return path.read_bytes()


def printed(answer: Answer) -> str:
    rich = pytest.importorskip("rich.console")
    out = io.StringIO()
    console = rich.Console(file=out, width=500)
    console.print(answer, vars(answer))
    pytest.importorskip("rich").inspect(answer, console=console, private=True)
    return out.getvalue()


EVERYWHERE: dict[str, Callable[[Answer], Any]] = {
    **{f"pickle {n}": lambda answer, n=n: pickle.dumps(answer, n) for n in range(6)},
    "pickled error": lambda answer: pickle.dumps(answer.error or answer),
    "pickled copies": lambda answer: pickle.dumps([copy.copy(answer), copy.deepcopy(answer)]),
    "pickled fields": lambda answer: pickle.dumps(vars(answer)),
    "pickled follow-up": lambda answer: pickle.dumps(Question("And?", follow=answer)),
    "saved": saved_bytes,
    "repr": lambda answer: (answer, str(answer), f"{answer}", vars(answer), [answer]),
    "pprint": lambda answer: pprint.pformat((answer, vars(answer), dir(answer))),
    "pretty": lambda answer: pretty((answer, vars(answer))),
    "rich": printed,
    "fields": lambda answer: dataclasses.asdict(dataclasses.replace(answer, error=None)),
    "field values": dataclasses.astuple,
    "fields as JSON": lambda answer: json.dumps(vars(answer), default=str),
    "deep copy": lambda answer: dict(copy.deepcopy(answer).thread),
    "shallow copy": lambda answer: dict(copy.copy(answer).thread),
    "display": lambda answer: (answer._repr_mimebundle_(), answer.to_html(), answer.to_text()),
    "exports": lambda answer: (answer.to_markdown(), answer.to_bibtex(), answer.to_csl_json()),
    "rows": lambda answer: (answer.row(), answer.to_dicts(), answer.to_pandas().to_csv()),
    "follow-up": lambda answer: (Question("And?", follow=answer).given(), answer.conversation()),
}


@pytest.mark.parametrize("place", EVERYWHERE)
def test_the_thread_and_its_token_leave_the_answer_nowhere(place: str) -> None:
    for answer in (IN_THREAD, failed_in_thread()):
        if place == "field values" and answer.error is not None:
            continue  # an error refers to its answer, and is not a field that a copy can hold
        found = EVERYWHERE[place](answer)
        whole = found if isinstance(found, bytes) else repr(found).encode()
        assert TOKEN.encode() not in whole and b"u-1" not in whole


def test_the_thread_can_be_read_and_goes_along_in_an_answer_that_is_changed() -> None:
    assert IN_THREAD.thread["read_write_token"] == TOKEN
    assert dataclasses.replace(IN_THREAD, text="x").thread == IN_THREAD.thread
    assert len(IN_THREAD.thread) == 2 and IN_THREAD.thread.get("expiry_time") is None
    assert repr(IN_THREAD.thread) == "Thread(hidden)"
    assert not ANSWER.thread and not copy.deepcopy(IN_THREAD).thread


# --- follow-ups --------------------------------------------------------------------------------


def test_a_follow_up_takes_along_who_answered_and_how_but_not_where_was_searched() -> None:
    asked: dict[str, Any] = {}

    def ask(text: str, **options: Any) -> Answer:
        asked.update(options, text=text)
        return EMPTY

    question = Question(
        "Which dune?", model="high", system="Be brief.", country="FR", recency="day", limit=3
    )
    answer = dataclasses.replace(ANSWER, options=question.given())
    answer.__dict__["_ask"] = ask
    assert answer.follow_up("And then?", system="Be long.") is EMPTY
    assert asked == {
        "text": "And then?",
        "model": "high",
        "system": "Be long.",
        "country": "FR",
        "follow": answer,
    }


def test_a_conversation_holds_every_turn_oldest_first() -> None:
    second = Answer("And then?", "It moved.", turns=ANSWER.conversation())
    assert second.conversation() == (
        Turn("Which dune?", ANSWER.text),
        Turn("And then?", "It moved."),
    )
    assert Question("Why?", follow=second).follow is second
    assert Question("Why?", follow=pickle.loads(pickle.dumps(second))).follow is not None


def test_an_answer_that_broke_off_can_be_followed_if_there_is_text() -> None:
    broken = Answer("Why?", "Half an ans", status="failed", error=ServerError("down"))
    assert Question("Go on", follow=broken).follow is broken


# --- displays ----------------------------------------------------------------------------------

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\x1b]0;t\x07\u202e"


def test_a_notebook_gets_html_and_text_in_which_nothing_hostile_is_alive() -> None:
    page = Source(1, HOSTILE, "javascript:alert(1)", HOSTILE, snippet=HOSTILE)
    answer = Answer(
        HOSTILE,
        f"{HOSTILE} [x](javascript:alert(1)) ![y](http://e.example/p.png) So.[1]",
        sources=Sources([page]),
        model=HOSTILE,
        warnings=(HOSTILE,),
        searches=(HOSTILE,),
        status="stopped",
        tool_calls=(ToolCall(HOSTILE, HOSTILE, HOSTILE), ToolCall("f", "{}", "", HOSTILE)),
    )
    bundle = answer._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    shown, text = bundle["text/html"], bundle["text/plain"]
    assert "<script" not in shown and "<img" not in shown and 'href="javascript' not in shown
    assert "\x1b" not in text and "\u202e" not in text
    assert "stopped" in shown and "stopped" in text


def test_a_notebook_shows_text_sources_and_what_it_took() -> None:
    shown = ANSWER.to_html()
    for word in ("Pilat is tall.", "https://d.example", "Dune", "m/1", "2.3 s", "30 tokens"):
        assert word in shown
    text = ANSWER.to_text()
    for word in ("Pilat is tall.[1]", "https://d.example", "Dune", "m/1 · 2.3 s · 30 tokens"):
        assert word in text
    assert pretty(ANSWER) == text


def test_the_functions_that_were_run_are_shown_wherever_the_answer_is() -> None:
    calls = (
        ToolCall("population_of", '{"city": "Ghent"}', "272657", elapsed=0.2),
        ToolCall("population_of", '{"city": "Gent"}', "Error: KeyError", "KeyError", 0.1),
    )
    answer = dataclasses.replace(ANSWER, tool_calls=calls)
    for shown in (answer.to_text(), answer.to_markdown(), html.unescape(answer.to_html())):
        for word in ("population_of(city='Ghent')", "272657", "failed: KeyError", "Functions"):
            assert word in shown
        assert shown.index("Dune") < shown.index("population_of")
    for shown in (ANSWER.to_text(), ANSWER.to_markdown(), ANSWER.to_html()):
        assert "Functions" not in shown


def test_ipython_and_others_can_look_at_an_answer_without_harm() -> None:
    shell = InteractiveShell.instance()
    formatted, _ = shell.display_formatter.format(ANSWER)  # type: ignore[union-attr]
    assert set(formatted) >= {"text/plain", "text/html"}
    shell.user_ns["answer"] = ANSWER
    with provisionalcompleter():
        names = {c.text for c in shell.Completer.completions("answer.", 7)}
    assert {".text", ".sources"} <= names or {"text", "sources"} <= names
    assert shell.object_inspect("answer")["found"]
    assert pprint.pformat(ANSWER)
    assert "to_pandas" in dir(ANSWER)


# --- what it took ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        ({"model": None}, "1.0 s · no sources"),
        (
            {"model": "m", "usage": Usage(total_tokens=1234)},
            "m · 1.0 s · 1,234 tokens · no sources",
        ),
        ({"model": "m", "n_sources": 1, "cached": True}, "m · from the cache · 1 source"),
        ({"model": "m", "status": "incomplete"}, "incomplete (cut short) · m · 1.0 s · no sources"),
        ({"model": "m", "status": "odd"}, "odd · m · 1.0 s · no sources"),
        ({"model": "m", "usage": USAGE}, "m · 1.0 s · 30 tokens · $0.0123 · no sources"),
        (
            {"model": "m", "usage": USAGE, "demo": True, "n_sources": 2},
            "m · 1.0 s · 30 tokens · offline demo, not billed · 2 sources",
        ),
    ],
)
def test_the_status_line_tells_what_is_known(facts: dict[str, Any], line: str) -> None:
    given: dict[str, Any] = {"seconds": 1.0, "usage": Usage(), "n_sources": 0, **facts}
    assert summary_line(**given) == line


@pytest.mark.parametrize(
    ("usd", "shown"),
    [(0, "$0.00"), (12.345, "$12.35"), (0.1, "$0.10"), (0.0123, "$0.0123"), (1e-6, "<$0.0001")],
)
def test_a_price_has_as_many_digits_as_say_something(usd: float, shown: str) -> None:
    assert format_cost(usd) == shown


def test_what_is_taken_away_names_the_sources_and_the_day() -> None:
    answer = dataclasses.replace(ANSWER, created=dt.datetime(2026, 1, 5, tzinfo=dt.UTC))
    assert "https://d.example" in answer.to_markdown()
    assert "2026-01-05" in answer.to_bibtex()


def test_the_time_of_asking_knows_its_zone() -> None:
    assert Answer("Why?", "So.").created.tzinfo is not None


def test_a_row_of_a_table_knows_the_fetched_page_that_it_cites() -> None:
    sources = Sources(
        [Source(1, "A", "https://a.example"), Source(2, "B", "https://b.example", kind="fetch")],
        fetched=[2],
    )
    text = "| k | v |\n|--|--|\n| r | 5 [web:0] |\n| s | 6 [1][web:7] |"
    rows = Answer("q", text, sources=sources).tables[0].to_dicts()
    assert [row["sources"] for row in rows] == [[2], [1]]


@pytest.mark.parametrize(
    "text",
    ["| a | b |\n|---|\n| 1 | 2 |", "| a | b |\n|---|---|---|\n| 1 | 2 |", "| a | b |\n| 1 | 2 |"],
)
def test_a_table_that_cannot_be_read_stays_text_with_a_warning(text: str) -> None:
    with pytest.warns(PerplexityWarning, match="stays text"):
        assert Answer("q", text).tables == ()


def test_prose_with_a_pipe_is_no_broken_table(recwarn: pytest.WarningsRecorder) -> None:
    assert Answer("q", "a | b\nc | d\n\n| x |").tables == ()
    assert not recwarn.list
