"""What a search for several queries found: one table, and the Sources of each query.

Invariant: a result is only ever said to be of a query if the service said so. Where its reply does
not tell the queries apart the table has no query in its first column, and asking for one query's
results is an error that says why, not a guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from html import escape
from typing import Any

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.markup.links import one_line
from ipyperplexity.sources import SOURCE_SCHEMA, Source, Sources
from ipyperplexity.tabular.columns import Column, Columns
from ipyperplexity.tabular.framed import Framed

RESULT_SCHEMA = (Column("query", "str"), *SOURCE_SCHEMA)
#: Said wherever results cannot be told apart.
UNGROUPED = "the service did not say which query found what"


class SearchResults(Framed):
    """The results of a list of queries: a table with a row a result, whose query stands first.

    ``results["dunes"]`` are the :class:`~ipyperplexity.sources.Sources` of one query, numbered from
    1, in the service's order. Iterating gives rows (dicts); ``len`` counts them. ``keys()`` and
    ``items()`` go by query, in the order of the list, also for a query that found nothing.

    Parameters
    ----------
    found : mapping of str to Sources
        What each query found.
    ungrouped : Sources, optional
        Instead: what all of them found, where the reply does not tell them apart. ``found`` then
        holds only the queries.

    Examples
    --------
    >>> page = Source(1, "Dune", "https://d.example/dune", "d.example")
    >>> results = SearchResults({"dunes": Sources([page]), "sand": Sources()})
    >>> results["dunes"][0].title, len(results["sand"])
    ('Dune', 0)
    >>> results.to_dicts()[0]["query"]
    'dunes'
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, found: Mapping[str, Sources] | Iterable[str], ungrouped: Sources | None = None
    ) -> None:
        by_query = dict(found) if isinstance(found, Mapping) else dict.fromkeys(found, Sources())
        for sources in (*by_query.values(), *(() if ungrouped is None else (ungrouped,))):
            if not isinstance(sources, Sources):
                raise InvalidRequestError(
                    f"results: got a value of type {type(sources).__name__}; allowed: Sources.",
                    field="results",
                )
        self._found = by_query
        self._ungrouped = ungrouped

    @property
    def grouped(self) -> bool:
        """Whether it is known which query found what."""
        return self._ungrouped is None

    @property
    def queries(self) -> tuple[str, ...]:
        """The queries, in their order."""
        return tuple(self._found)

    def keys(self) -> tuple[str, ...]:
        """Return the queries, in their order; with this ``dict(results)`` is a dict of Sources."""
        return self.queries

    def values(self) -> tuple[Sources, ...]:
        """Return what each query found.

        Raises
        ------
        KeyError
            If the results are not grouped.
        """
        return tuple(self[query] for query in self._found)

    def items(self) -> tuple[tuple[str, Sources], ...]:
        """Return each query with what it found.

        Raises
        ------
        KeyError
            If the results are not grouped.
        """
        return tuple((query, self[query]) for query in self._found)

    def __getitem__(self, query: str) -> Sources:
        """Return what one query found; maybe nothing.

        Raises
        ------
        KeyError
            If it was not searched for, or the results are not grouped.
        """
        key = query.strip() if isinstance(query, str) else query
        if not isinstance(query, str) or key not in self._found:
            known = ", ".join(map(repr, self._found)) or "none"
            raise KeyError(f"no query {query!r}; there are {known}")
        if not self.grouped:
            raise KeyError(f"{query!r}: {UNGROUPED}; .sources has all, or search for it alone")
        return self._found[key]

    def __contains__(self, query: object) -> bool:
        return isinstance(query, str) and query.strip() in self._found

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_dicts())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SearchResults):
            return NotImplemented
        return self._rows == other._rows and self.queries == other.queries

    @cached_property
    def sources(self) -> Sources:
        """All pages in one table, each once, numbered from 1."""
        pages: dict[str, Source] = {}
        for place, (_, source) in enumerate(self._rows):
            pages.setdefault(source.url or f"#{place}", source)
        return Sources(replace(page, id=id) for id, page in enumerate(pages.values(), 1))

    @cached_property
    def _rows(self) -> tuple[tuple[str | None, Source], ...]:
        if self._ungrouped is not None:
            return tuple((None, source) for source in self._ungrouped)
        return tuple((query, source) for query, found in self._found.items() for source in found)

    def _columns(self) -> Columns:
        values: dict[str, list[Any]] = {"query": [query for query, _ in self._rows]}
        for column in SOURCE_SCHEMA:
            values[column.name] = [getattr(source, column.name) for _, source in self._rows]
        return Columns(RESULT_SCHEMA, values)

    def _parts(self) -> list[tuple[str, Sources]]:
        if self._ungrouped is None:
            return list(self._found.items())
        return [("; ".join(self._found) + f" ({UNGROUPED})", self._ungrouped)]

    def __repr__(self) -> str:
        from ipyperplexity.markup import terminal

        n_queries = f"{len(self._found)} quer{'y' if len(self._found) == 1 else 'ies'}"
        n_results = f"{len(self)} result{'' if len(self) == 1 else 's'}"
        parts = [f"SearchResults({n_queries}, {n_results})"]
        for label, found in self._parts():
            listed = repr(found) if found else "(nothing found)"
            parts.append(f"{one_line(terminal.strip_controls(label))}\n{listed}")
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        from ipyperplexity.markup import page

        return page.wrap(
            "".join(
                f"<p><strong>{escape(one_line(label))}</strong></p>\n"
                + (found._repr_html_() if found else page.status_line("nothing found"))
                for label, found in self._parts()
            )
        )
