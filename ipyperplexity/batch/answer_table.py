"""AnswerTable: several answers as one table, one row an answer.

``pd.DataFrame([a, b])`` would take the answers apart, since each is a table of sources itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, overload

from ipyperplexity.answer import Answer
from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.sources import SOURCE_SCHEMA
from ipyperplexity.tabular.columns import Column, Columns
from ipyperplexity.tabular.framed import Framed

ROW_SCHEMA = (
    Column("question", "str"),
    Column("text", "str"),
    Column("model", "str"),
    Column("backend", "str"),
    Column("status", "str"),
    Column("finish_reason", "str"),
    Column("n_sources", "int32", nullable=False),
    Column("n_cited", "int32", nullable=False),
    Column("truncated", "bool", nullable=False),
    Column("searches", "int32"),
    Column("input_tokens", "int64"),
    Column("output_tokens", "int64"),
    Column("total_tokens", "int64"),
    Column("reasoning_tokens", "int64"),
    Column("cost_usd", "float64"),
    Column("created", "timestamp"),
    Column("elapsed", "float64"),
    Column("first_text", "float64"),
    Column("cached", "bool", nullable=False),
    Column("error", "str"),
    Column("id", "str"),
)


#: Rows that a display shows; frames have all.
_SHOWN_ROWS = 20
_SHOWN_COLUMNS = ("question", "text", "model", "status", "n_sources", "cost_usd")


class AnswerTable(Framed):
    """Answers as a table that frame libraries take as it is.

    Iterating gives rows (dicts); ``[0]`` is the first Answer, ``[:3]`` a table of the first three,
    ``["text"]`` a column's list.

    Examples
    --------
    >>> table = AnswerTable([Answer("Why?", "So."), Answer("How?", "Thus.")])
    >>> len(table), table.to_dicts()[1]["question"]
    (2, 'How?')
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, answers: Iterable[Answer]) -> None:
        given: object = answers
        if isinstance(given, Answer) or not isinstance(given, Iterable):
            raise InvalidRequestError(
                f"answers: got one {type(given).__name__}; allowed: a list of Answers.",
                field="answers",
            )
        self._answers = tuple(answers)
        for position, answer in enumerate(self._answers):
            if not isinstance(answer, Answer):
                raise InvalidRequestError(
                    f"answers: item {position} is {type(answer).__name__}; allowed: Answers.",
                    field="answers",
                )

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[dict[str, object]]:
        return iter(answer.row() for answer in self._answers)

    @overload
    def __getitem__(self, key: int) -> Answer: ...
    @overload
    def __getitem__(self, key: slice) -> AnswerTable: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> Answer | AnswerTable | list[Any]:
        """``[0]`` is the first Answer, ``[:3]`` the first three, ``["text"]`` a column's list."""
        if isinstance(key, str):
            return self._columns().column(key)
        if isinstance(key, slice):
            return AnswerTable(self._answers[key])
        return self._answers[key]

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers themselves."""
        return self._answers

    @property
    def sources(self) -> Columns:
        """All sources as one long table; ``row`` says whose they are."""
        pairs = [(row, source) for row, answer in enumerate(self._answers) for source in answer]
        values: dict[str, list[object]] = {"row": [row for row, _ in pairs]}
        for column in SOURCE_SCHEMA:
            values[column.name] = [getattr(source, column.name) for _, source in pairs]
        return Columns((Column("row", "int64", nullable=False), *SOURCE_SCHEMA), values)

    def _columns(self) -> Columns:
        rows = [answer.row() for answer in self._answers]
        return Columns(ROW_SCHEMA, {c.name: [row[c.name] for row in rows] for c in ROW_SCHEMA})

    def _hidden(self) -> str:
        more = len(self) - _SHOWN_ROWS
        return f"... and {more:,} more; to_pandas() has all" if more > 0 else ""

    def __repr__(self) -> str:
        lines = [f"AnswerTable({len(self)} answers)"]
        lines += [f"{i:>4}  {answer!r}" for i, answer in enumerate(self._answers[:_SHOWN_ROWS])]
        return "\n".join(filter(None, (*lines, self._hidden())))

    def _repr_html_(self) -> str:
        from ipyperplexity.markup import page

        rows = [answer.row() for answer in self._answers[:_SHOWN_ROWS]]
        return page.data_table(
            ("row", *_SHOWN_COLUMNS),
            [(i, *(row[name] for name in _SHOWN_COLUMNS)) for i, row in enumerate(rows)],
            total=len(self),
            row_heads=True,
        )


def answers(items: Iterable[Answer]) -> AnswerTable:
    """Return a table of answers, one row an answer; see :class:`AnswerTable`.

    Raises
    ------
    InvalidRequestError
        If something in it is no Answer.

    Examples
    --------
    >>> answers([Answer("Why?", "So."), Answer("How?", "Thus.")])["text"]
    ['So.', 'Thus.']
    """
    return AnswerTable(items)
