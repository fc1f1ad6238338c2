"""What was asked in a notebook, as a table that frame libraries take as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, overload

from ipyperplexity.answer import Answer
from ipyperplexity.answer_parts import format_cost
from ipyperplexity.markup.links import one_line
from ipyperplexity.tabular.columns import Column, Columns
from ipyperplexity.tabular.framed import Framed

HISTORY_SCHEMA = (
    Column("asked", "timestamp", nullable=False),
    Column("turn", "int32", nullable=False),
    Column("question", "str", nullable=False),
    Column("text", "str", nullable=False),
    Column("backend", "str"),
    Column("model", "str"),
    Column("status", "str", nullable=False),
    Column("n_sources", "int32", nullable=False),
    Column("cost_usd", "float64"),
    Column("elapsed_s", "float64"),
    Column("answer_id", "str"),
)
#: Rows that a display shows, the newest; frames have all.
SHOWN_ROWS = 30
_HEADS = ("asked", "turn", "question", "status", "sources", "cost (USD)", "answer")


class HistoryTable(Framed):
    """The answers of a notebook: one row each, oldest first.

    ``turn`` counts within a conversation: 1 begins one, 2 goes on from it. ``[0]`` is the first
    Answer, ``[-3:]`` a table of the newest three, ``["question"]`` a column's list. What failed or
    was stopped is there too, with the text that had come.

    Parameters
    ----------
    answers : iterable of Answer

    Examples
    --------
    >>> table = HistoryTable([Answer("Why?", "So."), Answer("Who?", "They.")])
    >>> table["question"], table[-1].text
    (['Why?', 'Who?'], 'They.')
    """

    def __init__(self, answers: Iterable[Answer] = ()) -> None:
        self._answers = tuple(answers)

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._answers)

    @overload
    def __getitem__(self, key: int) -> Answer: ...
    @overload
    def __getitem__(self, key: slice) -> HistoryTable: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> Answer | HistoryTable | list[Any]:
        """``[0]`` is the first answer, ``[-3:]`` the newest three, ``["question"]`` a column."""
        if isinstance(key, str):
            return self._columns().column(key)
        if isinstance(key, slice):
            return HistoryTable(self._answers[key])
        return self._answers[key]

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers."""
        return self._answers

    def _columns(self) -> Columns:
        rows = self._answers
        return Columns(
            HISTORY_SCHEMA,
            {
                "asked": [answer.created for answer in rows],
                "turn": [len(answer.turns) + 1 for answer in rows],
                "question": [answer.question for answer in rows],
                "text": [answer.text for answer in rows],
                "backend": [answer.backend for answer in rows],
                "model": [answer.model for answer in rows],
                "status": [answer.status for answer in rows],
                "n_sources": [len(answer.sources) for answer in rows],
                "cost_usd": [answer.usage.cost_usd for answer in rows],
                "elapsed_s": [answer.elapsed for answer in rows],
                "answer_id": [answer.id for answer in rows],
            },
        )

    def summary(self) -> str:
        """Return in a line how many there are."""
        noun = "answer" if len(self) == 1 else "answers"
        return f"{len(self):,} {noun} of this notebook"

    def _shown(self) -> list[tuple[str, int, str, str, int, str, str]]:
        return [
            (
                f"{answer.created.astimezone():%H:%M}",
                len(answer.turns) + 1,
                one_line(answer.question),
                answer.status,
                len(answer.sources),
                "" if answer.usage.cost_usd is None else format_cost(answer.usage.cost_usd),
                one_line(answer.text),
            )
            for answer in self._answers[-SHOWN_ROWS:]
        ]

    def _hidden(self) -> str:
        more = len(self) - SHOWN_ROWS
        return f"the newest {SHOWN_ROWS} of {len(self):,}; to_pandas() has all" if more > 0 else ""

    def __repr__(self) -> str:
        from ipyperplexity.markup import terminal

        lines = [f"HistoryTable({self.summary()})"]
        for at, turn, question, status, count, price, text in self._shown():
            lead = f"{at}  {'' if turn == 1 else f'({turn}) '}"
            facts = f"{status}, {count} sources{f', {price}' if price else ''}"
            asked = terminal.fit(terminal.strip_controls(question), 50)
            answered = terminal.fit(terminal.strip_controls(text), 44)
            lines.append(f"{lead}{asked}  [{facts}]  {answered}".rstrip())
        return "\n".join(filter(None, (*lines, self._hidden())))

    def _repr_html_(self) -> str:
        from ipyperplexity.markup import page

        return page.data_table(
            _HEADS,
            [list(row) for row in self._shown()],
            total=min(len(self), SHOWN_ROWS),
            label=self.summary(),
            notes=[note] if (note := self._hidden()) else [],
        )
