"""What was asked and what it cost, as a table that frame libraries take as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, overload

from ipyperplexity.answer_parts import format_cost
from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.markup.links import one_line
from ipyperplexity.store.ledger_entry import LedgerEntry
from ipyperplexity.tabular.columns import Column, Columns
from ipyperplexity.tabular.framed import Framed

USAGE_SCHEMA = (
    Column("at", "timestamp", nullable=False),
    Column("kind", "str"),
    Column("question", "str"),
    Column("asked_model", "str"),
    Column("model", "str"),
    Column("backend", "str"),
    Column("status", "str"),
    Column("input_tokens", "int64"),
    Column("output_tokens", "int64"),
    Column("reasoning_tokens", "int64"),
    Column("total_tokens", "int64"),
    Column("searches", "int64"),
    Column("cost_usd", "float64"),
    Column("elapsed_s", "float64"),
    Column("answer_id", "str"),
    Column("notebook", "str"),
    Column("session", "str"),
)
#: Rows that a display shows, the newest; frames have all.
SHOWN_ROWS = 50
_SHOWN = ("at", "kind", "question", "asked_model", "status", "total_tokens", "cost_usd")
_HEADS = ("asked", "kind", "question", "model", "status", "tokens", "cost (USD)")


class UsageTable(Framed):
    """Requests as a table: one row each, oldest first, with tokens and cost.

    ``[0]`` is the first LedgerEntry, ``[-10:]`` a table of the newest ten, ``["cost_usd"]`` a
    column's list. What the service did not say is None, and counts as nothing in the sums.

    Examples
    --------
    >>> table = UsageTable([LedgerEntry("ask", total_tokens=900, cost_usd=0.004)])
    >>> table.total_tokens, table.cost_usd
    (900, 0.004)
    >>> table.summary()
    '1 request, 900 tokens, $0.0040'
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, entries: Iterable[LedgerEntry] = ()) -> None:
        self._entries = tuple(entries)
        for entry in self._entries:
            if not isinstance(entry, LedgerEntry):
                raise InvalidRequestError(
                    f"entries: got a value of type {type(entry).__name__}; allowed: LedgerEntry.",
                    field="entries",
                )

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[LedgerEntry]:
        return iter(self._entries)

    @overload
    def __getitem__(self, key: int) -> LedgerEntry: ...
    @overload
    def __getitem__(self, key: slice) -> UsageTable: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> LedgerEntry | UsageTable | list[Any]:
        """``[0]`` is the first entry, ``[-10:]`` the newest ten, ``["cost_usd"]`` a column."""
        if isinstance(key, str):
            return self._columns().column(key)
        if isinstance(key, slice):
            return UsageTable(self._entries[key])
        return self._entries[key]

    def __eq__(self, other: object) -> bool:
        return self._entries == other._entries if isinstance(other, UsageTable) else NotImplemented

    @property
    def cost_usd(self) -> float:
        """US dollars of all of it, as far as the service told."""
        return sum(entry.cost_usd or 0.0 for entry in self._entries)

    @property
    def total_tokens(self) -> int:
        """Tokens of all of it, as far as the service told."""
        return sum(entry.total_tokens or 0 for entry in self._entries)

    def summary(self) -> str:
        """Return the totals in one line."""
        noun = "request" if len(self) == 1 else "requests"
        line = f"{len(self):,} {noun}, {self.total_tokens:,} tokens, {format_cost(self.cost_usd)}"
        untold = sum(entry.cost_usd is None for entry in self._entries)
        return f"{line} ({untold:,} without a known cost)" if untold else line

    def _columns(self) -> Columns:
        names = [column.name for column in USAGE_SCHEMA]
        return Columns(
            USAGE_SCHEMA,
            {name: [getattr(entry, name) for entry in self._entries] for name in names},
        )

    def _shown(self) -> list[list[Any]]:
        return [[getattr(e, name) for name in _SHOWN] for e in self._entries[-SHOWN_ROWS:]]

    def _hidden(self) -> str:
        more = len(self) - SHOWN_ROWS
        return f"the newest {SHOWN_ROWS} of {len(self):,}; to_pandas() has all" if more > 0 else ""

    def __repr__(self) -> str:
        from ipyperplexity.markup import terminal

        lines = [f"UsageTable({self.summary()})"]
        if self._entries:
            at, kind, question, asked, status, tokens, price = _HEADS
            lines.append(_line(at, kind, asked, status, tokens, price, question))
        for at, kind, question, asked, status, count, cost in self._shown():
            at = f"{at.astimezone():%Y-%m-%d %H:%M}"
            price = "" if cost is None else format_cost(cost)
            tokens = "" if count is None else f"{count:,}"
            asked, status, question = map(_plain, (asked, status, question))
            line = _line(at, kind, asked, status, tokens, price, question)
            lines.append(terminal.fit(line, 118))
        return "\n".join(filter(None, (*lines, self._hidden())))

    def _repr_html_(self) -> str:
        from ipyperplexity.markup import page

        return page.data_table(
            _HEADS,
            self._shown(),
            total=min(len(self), SHOWN_ROWS),
            label=self.summary(),
            notes=[note] if (note := self._hidden()) else [],
        )


def _line(
    at: str, kind: str, asked: str, status: str, tokens: str, price: str, question: str
) -> str:
    """Return a row, the question last: it has the rest of the line."""
    facts = f"{at:<16}  {kind:<6}  {asked[:16]:<16}  {status[:10]:<10}  {tokens:>9}  {price:>10}"
    return f"{facts}  {question}"


def _plain(text: str) -> str:
    from ipyperplexity.markup import terminal

    return one_line(terminal.strip_controls(text))
