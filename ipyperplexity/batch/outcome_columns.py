"""The columns of a table of outcomes: the answer, the fields of the schema, and how it went."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from ipyperplexity.batch.outcome import RowOutcome
from ipyperplexity.batch.row_fields import RowFields
from ipyperplexity.tabular.columns import Column, Columns

_BEFORE = (Column("answer", "str"),)
_AFTER = (
    Column("status", "str", nullable=False),
    Column("error_type", "str"),
    Column("error", "str"),
    Column("attempts", "int32", nullable=False),
    Column("elapsed_s", "float64"),
    Column("cost_usd", "float64"),
    Column("cached", "bool", nullable=False),
)
#: Names that no field of a schema can have.
FIXED_NAMES = tuple(column.name for column in (*_BEFORE, *_AFTER))
#: Attributes of an outcome that are named differently there.
_ATTRIBUTES = {"error": "problem"}


def outcome_columns(
    outcomes: Sequence[RowOutcome],
    fields: RowFields,
    tell: Callable[[int, str], None] = lambda position, problem: None,
) -> Columns:
    """Return the table: one row an outcome, with the fields of whole answers.

    Parameters
    ----------
    outcomes : sequence of RowOutcome
        In the order of the rows.
    fields : RowFields
        Of the schema that was asked for.
    tell : callable
        Is told the position and the trouble of each value that does not fit its column.

    Examples
    --------
    >>> table = outcome_columns([RowOutcome(0, "Why?", "skipped")], RowFields(None, FIXED_NAMES))
    >>> table.column("status"), table.column("answer")
    (['skipped'], [None])
    """
    whole = [outcome.answer if outcome.is_ok else None for outcome in outcomes]
    values: dict[str, Iterable[Any]] = {
        "answer": [answer and answer.text for answer in whole],
        **fields.columns([answer and answer.data for answer in whole], tell),
    }
    for column in _AFTER:
        cell = attrgetter(_ATTRIBUTES.get(column.name, column.name))
        values[column.name] = list(map(cell, outcomes))
    return Columns((*_BEFORE, *fields.schema, *_AFTER), values)
