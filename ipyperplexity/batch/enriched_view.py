"""How a table of outcomes is shown: its first rows, as text and as HTML.

Invariant: the work grows with the rows that are shown, not with those there are; what went wrong
stands there in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ipyperplexity.batch.outcome import RowOutcome
from ipyperplexity.batch.outcome_columns import outcome_columns
from ipyperplexity.batch.row_fields import RowFields
from ipyperplexity.batch.text_lines import aligned, cell_text

#: Rows and fields that a display shows; frames have all.
SHOWN_ROWS = 20
_SHOWN_FIELDS = 6
#: Columns of a terminal for each column of a display.
_WIDTHS = {"row": 16, "question": 32, "status": 9, "error": 44, "answer": 44, "cost (USD)": 10}
_FIELD_WIDTH = 20


@dataclass(frozen=True)
class View:
    """What is shown of a table.

    Attributes
    ----------
    summary : str
        One line on all of it.
    outcomes : sequence of RowOutcome
        All rows.
    labels : iterable or None
        What names the rows that are shown, in place of their positions.
    fields : RowFields
        Of the schema.
    failed : int
        Rows that are not ok.

    Examples
    --------
    >>> rows = [RowOutcome(0, "Why?", "skipped", reason="no money left")]
    >>> print(View("1 row: 1 skipped", rows, ["Lego"], RowFields(None, ()), 0).text())
    EnrichedTable(1 row: 1 skipped)
    row   question  status   error          answer  cost (USD)
    Lego  Why?      skipped  no money left
    """

    summary: str
    outcomes: Sequence[RowOutcome]
    labels: Iterable[Any] | None
    fields: RowFields
    failed: int

    def text(self) -> str:
        """Return it as lines for a terminal, without anything that a terminal obeys."""
        columns = self._shown()
        widths = [_WIDTHS.get(head, _FIELD_WIDTH) for head, _ in columns]
        lines = aligned(*_by_row(columns), widths) if self.outcomes else []
        more = len(self.outcomes) - SHOWN_ROWS
        hidden = [f"... and {more:,} more; to_pandas() has all"] if more > 0 else []
        return "\n".join([f"EnrichedTable({self.summary})", *lines, *hidden, *self._notes()])

    def html(self) -> str:
        """Return it as safe HTML."""
        from ipyperplexity.markup import page

        heads, rows = _by_row(self._shown())
        return page.data_table(
            heads,
            rows,
            total=len(self.outcomes),
            row_heads=True,
            label=self.summary,
            notes=self._notes(),
        )

    def _shown(self) -> list[tuple[str, Sequence[Any]]]:
        """Return names and cells of the columns; the words of errors only where there are any."""
        outcomes = self.outcomes[:SHOWN_ROWS]
        cells = outcome_columns(outcomes, self.fields).values
        labels = [o.row for o in outcomes] if self.labels is None else map(_label, self.labels)
        shown: list[tuple[str, Sequence[Any]]] = [
            ("row", list(labels)),
            ("question", [outcome.question for outcome in outcomes]),
            ("status", cells["status"]),
        ]
        if not all(outcome.is_ok for outcome in outcomes):
            shown.append(("error", [_in_words(outcome) for outcome in outcomes]))
        fields = [column.name for column in self.fields.schema[:_SHOWN_FIELDS]]
        for name in fields or ["answer"]:
            # As text: a year is not 1,932.
            shown.append((name, [None if c is None else cell_text(c) for c in cells[name]]))
        return [*shown, ("cost (USD)", cells["cost_usd"])]

    def _notes(self) -> list[str]:
        more = len(self.fields.schema) - _SHOWN_FIELDS
        notes = [f"{_count(more, 'more column')}; to_pandas() has all"] if more > 0 else []
        if self.failed:
            rows = "the row that is" if self.failed == 1 else f"the {self.failed:,} rows that are"
            notes.append(f"table.errors lists {rows} not ok; table.retry() asks again")
        return notes


def _by_row(columns: Sequence[tuple[str, Sequence[Any]]]) -> tuple[list[str], list[list[Any]]]:
    heads = [head for head, _ in columns]
    return heads, [list(row) for row in zip(*(cells for _, cells in columns), strict=True)]


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _label(label: Any) -> str:
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def _in_words(outcome: RowOutcome) -> str | None:
    kind, problem = outcome.error_type, outcome.problem
    return f"{kind}: {problem}" if kind and problem else problem
