"""The rows of a batch that have no answer, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

from ipyperplexity.batch.outcome import RowOutcome
from ipyperplexity.batch.text_lines import aligned
from ipyperplexity.tabular.columns import Column, Columns
from ipyperplexity.tabular.framed import Framed

ERROR_SCHEMA = (
    Column("row", "int64", nullable=False),
    Column("question", "str", nullable=False),
    Column("status", "str", nullable=False),
    Column("error_type", "str"),
    Column("error", "str"),
    Column("attempts", "int32", nullable=False),
)
#: Rows that a display shows; frames have all.
_SHOWN_ROWS = 20
_NAMES = [column.name for column in ERROR_SCHEMA]
#: How one and several rows of a status are called.
WORDS = {
    "ok": ("ok", "ok"),
    "error": ("error", "errors"),
    "cancelled": ("cancelled", "cancelled"),
    "skipped": ("skipped", "skipped"),
}


def count_statuses(outcomes: Iterable[RowOutcome]) -> str:
    """Return how many rows there are of each status, in words.

    Examples
    --------
    >>> count_statuses([RowOutcome(0, "", "error"), RowOutcome(1, "", "skipped")])
    '2 rows: 1 error, 1 skipped'
    """
    counts = Counter(outcome.status for outcome in outcomes)
    total = sum(counts.values())
    parts = [
        f"{counts[status]:,} {WORDS.get(status, (status, status))[counts[status] != 1]}"
        for status in (*WORDS, *sorted(set(counts) - set(WORDS)))
        if counts[status]
    ]
    rows = f"{total:,} row{'' if total == 1 else 's'}"
    return f"{rows}: {', '.join(parts)}" if parts else rows


class RowErrors(Framed):
    """The rows that are not ok, as a table: one row each, in the order of the data.

    Columns: ``row`` (position in the data), ``question``, ``status``, ``error_type`` (class of the
    error; null for what was skipped or cancelled without one), ``error`` (why, in words),
    ``attempts``. ``[0]`` is the first :class:`RowOutcome`, ``["error"]`` a column's list.

    Examples
    --------
    >>> RowErrors([RowOutcome(7, "Why?", "skipped", reason="no money left")])["error"]
    ['no money left']
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, outcomes: Iterable[RowOutcome]) -> None:
        self._outcomes = tuple(outcomes)

    def __len__(self) -> int:
        return len(self._outcomes)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_dicts())

    @overload
    def __getitem__(self, key: int) -> RowOutcome: ...
    @overload
    def __getitem__(self, key: slice) -> RowErrors: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> RowOutcome | RowErrors | list[Any]:
        """``[0]`` is the first outcome, ``[:3]`` a table, ``["error"]`` a column's list."""
        if isinstance(key, str):
            return self._columns().column(key)
        if isinstance(key, slice):
            return RowErrors(self._outcomes[key])
        return self._outcomes[key]

    def _columns(self) -> Columns:
        cells = zip(*map(_row, self._outcomes), strict=True) if self._outcomes else [()] * 6
        return Columns(ERROR_SCHEMA, dict(zip(_NAMES, cells, strict=True)))

    def _shown(self) -> Sequence[Sequence[object]]:
        return [_row(outcome) for outcome in self._outcomes[:_SHOWN_ROWS]]

    def __repr__(self) -> str:
        lines = [f"RowErrors({count_statuses(self._outcomes)})"]
        if self._outcomes:
            lines += aligned(_NAMES, self._shown(), (8, 40, 9, 24, 60, 8))
        more = len(self) - _SHOWN_ROWS
        return "\n".join(
            [*lines, f"... and {more:,} more; to_pandas() has all"] if more > 0 else lines
        )

    def _repr_html_(self) -> str:
        from ipyperplexity.markup import page

        return page.data_table(
            _NAMES,
            self._shown(),
            total=len(self),
            row_heads=True,
            label=count_statuses(self._outcomes),
        )


def _row(outcome: RowOutcome) -> tuple[object, ...]:
    return (
        outcome.row,
        outcome.question,
        outcome.status,
        outcome.error_type,
        outcome.problem,
        outcome.attempts,
    )
