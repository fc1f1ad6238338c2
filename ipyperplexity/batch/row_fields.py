"""The fields of a schema as typed columns beside a question: one row a value, whatever it is.

Invariant: names and types follow from the schema alone; every column may have nulls. A value that
does not fit its column costs that cell, with a warning, and never the table.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from ipyperplexity.errors import InvalidRequestError, PerplexityWarning
from ipyperplexity.schema.frame import Layout, rows_of
from ipyperplexity.tabular.cells import clean_column
from ipyperplexity.tabular.columns import Column, Columns

#: What a value may raise that is not of the schema's form.
_UNFIT = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_NO_FIELDS = Layout(None, False, (), False)


class RowFields:
    """The columns of a schema's fields in a table of one row a question.

    A field that is a list of texts is a list column, everything else that is nested is JSON text.
    A value that is a list as a whole is one column ``items``, or of the name of the one field that
    holds the list: a list column for texts, else JSON text; its items as rows are :meth:`records`.

    Parameters
    ----------
    layout : Layout or None
        Of the schema; None for answers in plain text, which have no fields.
    reserved : collection of str
        Names that are taken: a field of such a name gets a ``_`` after it.

    Examples
    --------
    >>> from ipyperplexity.schema import Schema
    >>> fields = RowFields(Schema.of({"status": str, "year": int}).layout, ["status"])
    >>> [(column.name, column.kind) for column in fields.schema]
    [('status_', 'str'), ('year', 'int64')]
    >>> fields.columns([{"status": "open", "year": 1932}, None])
    {'status_': ('open', None), 'year': (1932, None)}
    """

    def __init__(self, layout: Layout | None, reserved: Collection[str]) -> None:
        self._records = layout if layout is not None and layout.many else None
        self._layout = _one_row(layout or _NO_FIELDS)
        fields = [name for name, _, _ in self._layout.columns]
        self.schema = tuple(
            Column(name, kind)
            for name, (_, kind, _) in zip(
                _free_names(fields, reserved), self._layout.columns, strict=True
            )
        )

    def columns(
        self, values: Sequence[Any], tell: Callable[[int, str], None] = lambda row, problem: None
    ) -> dict[str, tuple[Any, ...]]:
        """Return the cells of each column; None where there is no value.

        Parameters
        ----------
        values : sequence
            Parsed values, one a row, as objects or as plain JSON.
        tell : callable
            Is told the position and the trouble of each value that does not fit.
        """
        if not self.schema:
            return {}
        rows = []
        for position, value in enumerate(values):
            try:
                rows += rows_of(value, self._layout) if value is not None else [{}]
            except _UNFIT as error:
                rows.append({})
                tell(position, f"{type(error).__name__}: {error}")
        return {
            column.name: _fitting(column, [row.get(field) for row in rows], tell)
            for column, (field, _, _) in zip(self.schema, self._layout.columns, strict=True)
        }

    def records(self, rows: Sequence[int], values: Sequence[Any]) -> Columns:
        """Return the items of values that are lists as one long table, with the row of each.

        Without lists it has the fields themselves, one row a value. Types are those of the schema.
        """
        layout = self._records or self._layout
        fields = [name for name, _, _ in layout.columns]
        names = _free_names(fields, ("row",))
        found: list[dict[str, Any]] = []
        owners: list[int] = []
        for row, value in zip(rows, values, strict=True):
            try:
                items = rows_of(value, layout) if value is not None else []
            except _UNFIT:
                continue
            found += items
            owners += [row] * len(items)
        schema = [
            Column(name, kind) for name, (_, kind, _) in zip(names, layout.columns, strict=True)
        ]
        cells = {
            column.name: _fitting(column, [item[field] for item in found])
            for column, field in zip(schema, fields, strict=True)
        }
        return Columns((Column("row", "int64", nullable=False), *schema), {"row": owners, **cells})


def warn_of(row: int, problem: str) -> None:
    """Warn that a value does not fit its column."""
    warnings.warn(
        f"Row {row}: a value does not fit its column, which is null there ({problem}). "
        "The value itself is in the answer's data.",
        PerplexityWarning,
        stacklevel=2,
    )


def _one_row(layout: Layout) -> Layout:
    """Return the layout in which the whole of a value is one row."""
    if not layout.many:
        return layout
    if layout.key is not None:
        return Layout(None, False, ((layout.key, "str", True),), False)
    texts = layout.scalar and layout.columns[0][1] == "str"
    return dataclasses.replace(
        layout,
        many=False,
        scalar=True,
        columns=(("items", "str_list" if texts else "str", True),),
    )


def _free_names(names: Sequence[str], reserved: Collection[str]) -> Iterator[str]:
    taken = {*reserved, *names}
    for name in names:
        free = name
        if name in reserved:
            while free in taken:
                free += "_"
            taken.add(free)
        yield free


def _fitting(
    column: Column,
    cells: Sequence[Any],
    tell: Callable[[int, str], None] = lambda row, problem: None,
) -> tuple[Any, ...]:
    try:
        return clean_column(column.name, column.kind, cells, nullable=True)
    except InvalidRequestError:
        pass
    kept: list[Any] = []
    for position, cell in enumerate(cells):
        try:
            kept += clean_column(column.name, column.kind, [cell], nullable=True)
        except InvalidRequestError:
            kept.append(None)
            tell(position, f"{column.name} is {column.kind}")
    return tuple(kept)
