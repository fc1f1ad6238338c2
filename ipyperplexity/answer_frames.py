"""The tables of an answer: its sources, its structured data, its citations and its claims.

Invariant: every way out (a frame, Arrow, dicts, a file) takes ``what`` and goes through the one
function that makes that table's columns; without ``what`` it is the table of sources.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from ipyperplexity.citations import Citation
from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.tabular import files
from ipyperplexity.tabular.columns import Column, Columns
from ipyperplexity.tabular.files import FilePath
from ipyperplexity.tabular.framed import Framed

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from ipyperplexity.schema.frame import Layout

#: Name of a table of an answer.
What: TypeAlias = Literal["sources", "data", "citations", "claims"]

CITATION_SCHEMA = (
    Column("id", "int32"),
    Column("start", "int32", nullable=False),
    Column("end", "int32", nullable=False),
    Column("sentence", "str"),
    Column("title", "str"),
    Column("url", "str"),
    Column("domain", "str"),
    Column("published", "date"),
    Column("known", "bool", nullable=False),
    Column("by_position", "bool", nullable=False),
)


def citation_columns(citations: Iterable[Citation]) -> Columns:
    """Return citations as a table, with the page of each; ``known`` is false where there is none.

    Examples
    --------
    >>> citation_columns([Citation(7, 3, 6, "So.", None)]).to_dicts()[0]["known"]
    False
    """
    rows = list(citations)
    read: dict[str, Callable[[Citation], Any]] = {
        "known": lambda citation: citation.source is not None,
        **{name: _of_source(name) for name in ("title", "url", "domain", "published")},
    }
    return Columns(
        CITATION_SCHEMA,
        {
            c.name: [read[c.name](row) if c.name in read else getattr(row, c.name) for row in rows]
            for c in CITATION_SCHEMA
        },
    )


def _of_source(name: str) -> Callable[[Citation], Any]:
    return lambda citation: getattr(citation.source, name) if citation.source else None


def data_columns(data: Any, layout: Layout | None) -> Columns:
    """Return the value of a structured answer as a table.

    Raises
    ------
    InvalidRequestError
        If there is no value, or if one does not fit its column (a whole number of over 64 bits).
    """
    if layout is None:
        raise InvalidRequestError(
            "This answer has no data: it was asked without a schema, or did not fit it.",
            field="what",
            hint="Ask for data with schema=: "
            'client.ask("Who founded Lego?", schema={"founder": str, "year": int}).',
        )
    from ipyperplexity.schema.frame import rows_of

    schema = [Column(name, kind, nullable=nullable) for name, kind, nullable in layout.columns]
    problem = ""
    try:
        rows = rows_of(data, layout)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        problem = f"{type(error).__name__}: {error}"
    if problem:
        raise InvalidRequestError(
            f"data: the value does not fit its columns ({problem}).",
            field="data",
            hint="The value itself is answer.data.",
        )
    names = [name for name, _, _ in layout.columns]
    return Columns(
        schema, {c.name: [row[n] for row in rows] for c, n in zip(schema, names, strict=True)}
    )


class AnswerFrames(Framed):
    """Mixin of :class:`~ipyperplexity.Answer`: its tables in every form, by their names."""

    def _columns(self, what: What = "sources") -> Columns:
        make = _TABLES.get(what)
        if make is None:
            raise InvalidRequestError(
                f"what: an answer has no table {what!r}; allowed: {', '.join(_TABLES)}.",
                field="what",
            )
        return make(self)

    def to_pandas(self, what: What = "sources") -> pandas.DataFrame:
        """Return a table of the answer as a pandas frame.

        Parameters
        ----------
        what : {"sources", "data", "citations", "claims"}
            The pages; the value of a structured answer (``schema=``); the markers, each with its
            sentence and page; the sentences, each with its sources.

        Raises
        ------
        InvalidRequestError
            If there is no such table.
        ImportError
            If pandas is not installed.
        """
        return self._columns(what).to_pandas()

    def to_polars(self, what: What = "sources") -> polars.DataFrame:
        """Return a table of the answer as a polars frame; see :meth:`to_pandas`."""
        return self._columns(what).to_polars()

    def to_arrow(self, what: What = "sources") -> pyarrow.Table:
        """Return a table of the answer as a pyarrow table; see :meth:`to_pandas`."""
        return self._columns(what).to_arrow()

    def to_dicts(self, what: What = "sources") -> list[dict[str, Any]]:
        """Return a table of the answer as one dict a row; see :meth:`to_pandas`."""
        return self._columns(what).to_dicts()

    @overload
    def to_csv(self, path: None = None, what: What = "sources") -> str: ...
    @overload
    def to_csv(self, path: FilePath, what: What = "sources") -> None: ...
    def to_csv(self, path: FilePath | None = None, what: What = "sources") -> str | None:
        """Return a table of the answer as CSV, or write it to a file; see :meth:`to_pandas`."""
        _refuse_name(path)
        return files.hand_over(files.csv_text(self._columns(what)), path)

    @overload
    def to_json(self, path: None = None, what: What = "sources") -> str: ...
    @overload
    def to_json(self, path: FilePath, what: What = "sources") -> None: ...
    def to_json(self, path: FilePath | None = None, what: What = "sources") -> str | None:
        """Return a table of the answer as JSON, or write it to a file; see :meth:`to_pandas`."""
        _refuse_name(path)
        return files.hand_over(files.json_text(self._columns(what)), path)

    def to_parquet(self, path: FilePath, what: What = "sources") -> None:
        """Write a table of the answer to a Parquet file; see :meth:`to_pandas`."""
        _refuse_name(path)
        files.write_parquet(self._columns(what), path)


def _refuse_name(path: FilePath | None) -> None:
    # to_pandas("data") works, so to_csv("data") will be tried: it must not write a file "data".
    if path in _TABLES:
        raise InvalidRequestError(
            f"path: {path!r} is the name of a table; allowed: the path of a file, or nothing.",
            field="path",
            hint=f"Name the table with what={path!r}.",
        )


_TABLES: dict[str, Callable[[Any], Columns]] = {
    "sources": lambda answer: answer.sources._columns(),
    "data": lambda answer: data_columns(answer.data, answer.data_layout),
    "citations": lambda answer: citation_columns(answer.citations),
    "claims": lambda answer: answer.claims._columns(),
}
