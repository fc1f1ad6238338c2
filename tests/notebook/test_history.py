"""``%perplexity history``: what was asked in this notebook, as data."""

from __future__ import annotations

import pandas as pd
import polars as pl

from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.emulator.faults import FAULTS, Behavior
from ipyperplexity.history_table import HISTORY_SCHEMA, HistoryTable
from tests.notebook.conftest import Session


def test_each_question_is_a_row_with_its_answer_and_its_turn(
    session: Session, server: EmulatorServer
) -> None:
    session.good("%perplexity -q -m fast What is a lambda?")
    session.good("%perplexity -q -c And how?")
    session.good("%perplexity -q What is yield?")
    ran = session.good("history = %perplexity history\nhistory")
    history = ran.result
    assert isinstance(history, HistoryTable) and len(history) == 3
    assert history["question"] == ["What is a lambda?", "And how?", "What is yield?"]
    assert history["turn"] == [1, 2, 1] and history["status"] == ["completed"] * 3
    assert history[-1].question == "What is yield?" and len(history[:2]) == 2
    assert "HistoryTable(3 answers of this notebook)" in ran.out and "(2) And how?" in ran.out


def test_what_failed_or_broke_off_is_there_with_what_had_come(
    session: Session, server: EmulatorServer
) -> None:
    server.next(FAULTS["unauthorized"], Behavior(cut_after=14))
    session.run("%perplexity -q Who?")
    session.run("%perplexity -q What is a lambda?")
    history = session.good("%perplexity history").result
    assert history["status"] == ["failed", "failed"]
    assert history["text"][0] == "" and history["text"][1].startswith("Lambda")


def test_the_history_is_a_frame_with_its_types_also_when_it_is_empty(
    session: Session, server: EmulatorServer
) -> None:
    empty = session.good("%perplexity history").result
    session.good("%perplexity -q What is a lambda?")
    one = session.good("%perplexity history").result
    for to in (HistoryTable.to_pandas, HistoryTable.to_polars):
        assert list(to(empty).columns) == [column.name for column in HISTORY_SCHEMA]
        assert list(to(empty).dtypes) == list(to(one).dtypes)
    assert isinstance(one.to_pandas(), pd.DataFrame) and isinstance(one.to_polars(), pl.DataFrame)


def test_two_shells_have_two_histories_and_reloading_begins_anew(
    session: Session, server: EmulatorServer
) -> None:
    session.good("%perplexity -q What is a lambda?")
    session.good("%reload_ext ipyperplexity")
    assert len(session.good("%perplexity history").result) == 0


def test_hostile_text_does_no_harm_in_either_display(
    session: Session, server: EmulatorServer
) -> None:
    session.good("%perplexity -q <script>alert(1)</script> \x1b[2J lambda")
    history = session.good("%perplexity history").result
    assert "<script>" not in history._repr_html_() and "\x1b" not in repr(history)
