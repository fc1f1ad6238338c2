"""EnrichedTable: a column of questions and what came of each, as columns to put beside the data.

Invariant: one row a question, in the order of the data; names and types of the columns follow from
the schema that was asked for, never from the answers. It holds data alone, but for the one callback
that asks again, which is left behind when it is pickled.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from ipyperplexity.answer import Answer
from ipyperplexity.answer_parts import format_cost
from ipyperplexity.batch.answer_table import AnswerTable
from ipyperplexity.batch.enriched_view import SHOWN_ROWS, View
from ipyperplexity.batch.outcome import RowOutcome
from ipyperplexity.batch.outcome_columns import FIXED_NAMES, outcome_columns
from ipyperplexity.batch.retrying import after
from ipyperplexity.batch.row_errors import RowErrors, count_statuses
from ipyperplexity.batch.row_fields import RowFields, warn_of
from ipyperplexity.errors import InvalidRequestError, PerplexityWarning
from ipyperplexity.schema import Schema
from ipyperplexity.sources import SOURCE_SCHEMA
from ipyperplexity.tabular.columns import Column, Columns

if TYPE_CHECKING:
    import pandas

#: Asks rows again, by their positions in the data, with changed options.
Rerun: TypeAlias = "Callable[[Sequence[int], dict[str, Any]], Sequence[RowOutcome]]"


class EnrichedTable(AnswerTable):
    """What a batch of questions gave, as a table that frame libraries take as it is.

    One row a question, in the order of the data:

    ``answer``
        The text of a whole answer, else null: what had arrived of one that failed is in
        :attr:`answers`, and never looks like an answer here.
    *the fields of the schema*
        Typed; null where there is no answer. A field of the name of another column gets a ``_``
        after it (``status_``; a schema of one scalar gives ``answer_``). A list of texts is a list
        column; what is nested otherwise is JSON text. An answer that is a list of records is one
        column of JSON text, ``items`` or of the name of the field that holds the list, and
        :attr:`records` is the long table of them.
    ``status``, ``error_type``, ``error``
        ``ok``, ``error``, ``cancelled`` or ``skipped``; class of the error; why, in words.
    ``attempts``, ``elapsed_s``, ``cost_usd``, ``cached``
        How often it was asked, seconds, US dollars paid for it now, whether it came from the cache.

    :meth:`to_pandas` has the index of the data, so that ``df.join(table.to_pandas())`` puts it
    beside them. Where labels of that index repeat, pandas joins each with each: there
    ``pd.concat([df, table.to_pandas()], axis=1)`` does it (in polars
    ``pl.concat([df, table.to_polars()], how="horizontal")``).

    Iterating gives rows (dicts); ``[0]`` is the first Answer or None, ``[:3]`` a table of the first
    three, ``["answer"]`` a column's list.

    Parameters
    ----------
    outcomes : iterable of RowOutcome
        One a row, in any order.
    index : pandas.Index, optional
        Of the data, one label a row.
    schema : optional
        What was asked for; anything that ``schema=`` takes.
    rerun : callable, optional
        Asks rows again: ``rerun(rows, changes)`` returns their outcomes.

    Raises
    ------
    InvalidRequestError
        If something is no RowOutcome, a row is there twice, or the index has another length.

    Examples
    --------
    >>> lego = Answer("Who founded Lego?", "Ole", data={"founder": "Ole", "year": 1932})
    >>> table = EnrichedTable(
    ...     [RowOutcome(0, "Who founded Lego?", "ok", lego), RowOutcome(1, "", "skipped")],
    ...     schema={"founder": str, "year": int},
    ... )
    >>> table["year"], table["status"]
    ([1932, None], ['ok', 'skipped'])
    >>> table.summary()
    '2 rows: 1 ok, 1 skipped'
    """

    def __init__(
        self,
        outcomes: Iterable[RowOutcome],
        *,
        index: pandas.Index | None = None,
        schema: Any = None,
        rerun: Rerun | None = None,
    ) -> None:
        self._outcomes = _checked(outcomes)
        if index is not None and len(index) != len(self._outcomes):
            raise InvalidRequestError(
                f"index: got {len(index):,} labels for {len(self._outcomes):,} rows; "
                "allowed: one a row.",
                field="index",
            )
        # A copy: the names of an index can be changed, and those of the data are not ours.
        self._index = None if index is None else index.copy()
        layout = None if schema is None else Schema.of(schema).layout
        self._fields = RowFields(layout, FIXED_NAMES)
        self._rerun = rerun

    def _like(self, outcomes: Sequence[RowOutcome], index: pandas.Index | None) -> EnrichedTable:
        table = type(self).__new__(type(self))
        table._outcomes, table._index = tuple(outcomes), index
        table._fields, table._rerun = self._fields, self._rerun
        return table

    def __getstate__(self) -> dict[str, Any]:
        return {
            "_outcomes": self._outcomes,
            "_index": self._index,
            "_fields": self._fields,
            "_rerun": None,
        }

    def __len__(self) -> int:
        return len(self._outcomes)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_dicts())

    # A row may have no answer, which a table of given answers cannot say.
    @overload  # type: ignore[override]
    def __getitem__(self, key: int) -> Answer | None: ...
    @overload
    def __getitem__(self, key: slice) -> EnrichedTable: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> Answer | EnrichedTable | list[Any] | None:
        """``[0]`` is the first Answer or None, ``[:3]`` a table, ``["answer"]`` a column's list."""
        if isinstance(key, str):
            return self._columns().column(key)
        if isinstance(key, slice):
            index = None if self._index is None else self._index[key]
            return self._like(self._outcomes[key], index)
        return self._outcomes[key].answer

    @property
    def outcomes(self) -> tuple[RowOutcome, ...]:
        """All that is known of each row."""
        return self._outcomes

    @property
    def answers(self) -> tuple[Answer | None, ...]:  # type: ignore[override]
        """The answers, None where nothing came; those of failed rows are what had arrived."""
        return tuple(outcome.answer for outcome in self._outcomes)

    @property
    def sources(self) -> Columns:
        """The sources of all whole answers as one long table; ``row`` is the position in the data.

        Its ``to_pandas()`` counts its own rows: ``sources.merge(df.reset_index(), left_on="row",
        right_index=True)`` puts the data beside them.
        """
        pairs = [(row, source) for row, answer in self._whole for source in answer]
        values: dict[str, list[object]] = {"row": [row for row, _ in pairs]}
        for column in SOURCE_SCHEMA:
            values[column.name] = [getattr(source, column.name) for _, source in pairs]
        return Columns((Column("row", "int64", nullable=False), *SOURCE_SCHEMA), values)

    @property
    def records(self) -> Columns:
        """The items of answers that are lists as one long table; ``row`` as in :attr:`sources`.

        Where an answer is one record, it is one row.
        """
        return self._fields.records(
            [row for row, _ in self._whole], [answer.data for _, answer in self._whole]
        )

    @property
    def _whole(self) -> list[tuple[int, Answer]]:
        return [(o.row, o.answer) for o in self._outcomes if o.is_ok and o.answer is not None]

    @property
    def errors(self) -> RowErrors:
        """The rows that are not ok: row, question, status, error_type, error, attempts."""
        return RowErrors(outcome for outcome in self._outcomes if not outcome.is_ok)

    def retry(self, **changes: Any) -> EnrichedTable:
        """Ask the rows that are not ok again, and return a table with what came of them.

        What a row was paid and how often it was asked add up over both.

        Parameters
        ----------
        **changes
            Options that are different this time, such as ``model`` or ``timeout``; not
            ``schema``, on which the columns depend.

        Raises
        ------
        InvalidRequestError
            If nothing can ask (the table was loaded), or an option is not allowed.
        """
        if self._rerun is None:
            raise InvalidRequestError(
                "This table belongs to no client (it was loaded, or made by hand).",
                hint="Ask the rows of table.errors anew: client.ask_many(...).",
            )
        if "schema" in changes:
            raise InvalidRequestError(
                "schema: got another one; allowed: that of the table, which its columns follow.",
                field="schema",
                hint="Ask anew with it: client.ask_many(..., schema=...).",
            )
        failed = [outcome.row for outcome in self._outcomes if not outcome.is_ok]
        anew = {o.row: o for o in self._rerun(failed, changes)} if failed else {}
        wanted = set(failed)
        return self._like(
            [after(o, anew.get(o.row)) if o.row in wanted else o for o in self._outcomes],
            self._index,
        )

    @property
    def cost_usd(self) -> float:
        """US dollars paid for it now, as far as the service told."""
        return sum(outcome.cost_usd or 0.0 for outcome in self._outcomes)

    @property
    def asked_usd(self) -> float:
        """US dollars that its answers cost when they were asked for, as far as is known."""
        return sum(outcome.asked_usd or 0.0 for outcome in self._outcomes)

    def summary(self) -> str:
        """Return in one line how many rows are of each status, what they cost, what was cached."""
        return self._summary

    @cached_property
    def _summary(self) -> str:
        costs = [
            f"{format_cost(total)} {word}"
            for total, word, known in (
                (self.cost_usd, "paid", any(o.cost_usd is not None for o in self._outcomes)),
                (self.asked_usd, "asked for", any(o.asked_usd is not None for o in self._outcomes)),
            )
            if known
        ]
        untold = sum(o.is_ok and o.cost_usd is None for o in self._outcomes)
        if costs and untold:
            costs.append(f"{untold:,} without a known cost")
        cached = sum(outcome.cached for outcome in self._outcomes)
        facts = [
            count_statuses(self._outcomes),
            ", ".join(costs),
            f"{cached:,} from the cache" if cached else "",
        ]
        return " · ".join(filter(None, facts))

    def to_pandas(self) -> pandas.DataFrame:
        """Return a pandas frame with the index of the data: same dtypes at any number of rows.

        Warns with a PerplexityWarning if labels of the index repeat, as ``df.join`` then joins
        each with each.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        frame = super().to_pandas()
        if self._index is not None:
            frame.index = self._index.copy()
            if not self._index.is_unique:
                warnings.warn(
                    "Labels of the index repeat, and df.join() would join each with each. Use "
                    "pd.concat([df, table.to_pandas()], axis=1).",
                    PerplexityWarning,
                    stacklevel=2,
                )
        return frame

    def _columns(self) -> Columns:
        return self._table

    @cached_property
    def _table(self) -> Columns:
        rows = self._outcomes
        return outcome_columns(
            rows, self._fields, lambda at, problem: warn_of(rows[at].row, problem)
        )

    def _view(self) -> View:
        index = None if self._index is None else self._index[:SHOWN_ROWS]
        return View(self.summary(), self._outcomes, index, self._fields, self._n_failed)

    @cached_property
    def _n_failed(self) -> int:
        return sum(not outcome.is_ok for outcome in self._outcomes)

    def __repr__(self) -> str:
        return self._view().text()

    def _repr_html_(self) -> str:
        return self._view().html()


def _checked(outcomes: Iterable[RowOutcome]) -> tuple[RowOutcome, ...]:
    given = list(outcomes)
    for outcome in given:
        if not isinstance(outcome, RowOutcome):
            raise InvalidRequestError(
                f"outcomes: got a value of type {type(outcome).__name__}; allowed: RowOutcome.",
                field="outcomes",
            )
    given.sort(key=lambda outcome: outcome.row)
    for first, second in pairwise(given):
        if first.row == second.row:
            raise InvalidRequestError(
                f"outcomes: got row {first.row} twice; allowed: each row once.", field="outcomes"
            )
    return tuple(given)
