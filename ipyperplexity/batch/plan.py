"""What a batch is to ask: each different question once, and which rows it is for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.question import Question


@dataclass
class Task:
    """One question, asked for all rows that have it.

    Attributes
    ----------
    key : str or None
        Under which its answer is kept; None if it cannot be kept.
    question : Question
    rows : list of int
        Positions in the data, in order.
    attempts : int
        How often it was sent.
    """

    key: str | None
    question: Question
    rows: list[int] = field(default_factory=list)
    attempts: int = 0


@dataclass(frozen=True)
class Plan:
    """All tasks of a batch, and the rows that cannot be asked.

    Attributes
    ----------
    n_rows : int
    tasks : tuple of Task
        In the order of their first rows.
    refused : dict
        Row -> why there is no question for it.
    """

    n_rows: int
    tasks: tuple[Task, ...]
    refused: dict[int, InvalidRequestError]


def make_plan(
    rows: Sequence[object],
    make_question: Callable[[object], Question],
    key_of: Callable[[Question], str | None],
) -> Plan:
    """Make a question of each row, and put those together that are the same.

    Parameters
    ----------
    rows : sequence
    make_question : callable
        Raises InvalidRequestError for a row that cannot be asked about.
    key_of : callable
        The same for two questions whose answers are the same.

    Examples
    --------
    >>> plan = make_plan(["a", "b", "a"], Question, lambda question: question.text)
    >>> [(task.question.text, task.rows) for task in plan.tasks]
    [('a', [0, 2]), ('b', [1])]
    """
    tasks: list[Task] = []
    by_key: dict[str, Task] = {}
    refused: dict[int, InvalidRequestError] = {}
    for position, row in enumerate(rows):
        try:
            question = make_question(row)
        except InvalidRequestError as error:
            refused[position] = error.with_traceback(None)
            continue
        key = key_of(question)
        task = by_key.get(key) if key is not None else None
        if task is None:
            task = Task(key, question)
            tasks.append(task)
            if key is not None:
                by_key[key] = task
        task.rows.append(position)
    return Plan(len(rows), tuple(tasks), refused)
