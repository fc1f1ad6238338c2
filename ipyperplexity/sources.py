"""Where an answer comes from: a Source is one page, Sources is the table of them.

A source's ``id`` is the number that ``[n]`` in the text means. The service counts it over the whole
response, so ids may have gaps and need not rise; they are never renumbered. A page that the service
did not number (one it fetched, or named in an annotation) gets a number above all of the service's.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.tabular.columns import Column, Columns
from ipyperplexity.tabular.framed import Framed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Rows that a display shows; frames have all.
SHOWN_ROWS = 200


@dataclass(frozen=True, repr=False)
class Source:
    """One page that the service found or read.

    Attributes
    ----------
    id : int
        The number that ``[n]`` in the answer's text means.
    title : str
        As the service gives it, on one line; the domain if it gives none.
    url : str
        Address of the page, as the service gives it.
    domain : str
        Host of the URL in lower case, without a leading ``www.``.
    published, updated : datetime.date or None
        As the service gives them (official-api 3.3); None when absent or unreadable.
    cited : bool
        Whether the text has a marker for it.
    n_cited : int
        How many markers.
    snippet : str or None
        What the service quotes of the page: raw text, not safe HTML.
    kind : str
        How it was found: ``search``, ``fetch`` (a page read in full) or ``annotation``.

    Examples
    --------
    >>> Source(1, "Dune", "https://d.example/dune", "d.example", n_cited=2)
    Source(1, 'Dune', 'https://d.example/dune', n_cited=2)
    """

    id: int
    title: str
    url: str
    domain: str = ""
    published: dt.date | None = None
    updated: dt.date | None = None
    cited: bool = False
    n_cited: int = 0
    snippet: str | None = None
    kind: str = "search"

    def __repr__(self) -> str:
        title = self.title if len(self.title) <= 60 else self.title[:57] + "..."
        facts = {"published": self.published, "n_cited": self.n_cited}
        shown = "".join(f", {name}={fact}" for name, fact in facts.items() if fact)
        return f"Source({self.id}, {title!r}, {self.url!r}{shown})"

    def _repr_html_(self) -> str:
        from ipyperplexity.markup import page

        return page.sources_table([self])


SOURCE_SCHEMA = (
    Column("id", "int32", nullable=False),
    Column("title", "str"),
    Column("url", "str"),
    Column("domain", "str"),
    Column("published", "date"),
    Column("updated", "date"),
    Column("cited", "bool", nullable=False),
    Column("n_cited", "int32", nullable=False),
    Column("snippet", "str"),
    Column("kind", "str"),
)


class Sources(Framed):
    """The sources of an answer, as a table that frame libraries take as it is.

    Examples
    --------
    >>> sources = Sources([Source(1, "Dune", "https://d.example/dune", "d.example")])
    >>> sources["url"]
    ['https://d.example/dune']
    >>> sources.by_id(1).title
    'Dune'
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        items: Iterable[Source] = (),
        *,
        fetched: Iterable[int] = (),
        unnumbered: Iterable[int] | None = None,
        count: Callable[[Sources], dict[int, int]] | None = None,
    ) -> None:
        self._given = tuple(items)
        if set(map(type, self._given)) - {Source} and not all(
            isinstance(item, Source) for item in self._given
        ):
            odd = next(item for item in self._given if not isinstance(item, Source))
            raise InvalidRequestError(
                f"sources: got a value of type {type(odd).__name__}; allowed: Source.",
                field="sources",
            )
        #: ids of the fetched pages, in the order in which ``[web:0]``, ``[web:1]`` count them
        self._fetched = tuple(fetched)
        #: ids that are ours, not the service's, and so are meant by no ``[n]``
        self._unnumbered = (
            _unnumbered_by_kind(self._given) if unnumbered is None else frozenset(unnumbered)
        )
        # Counting markers means parsing the text; that waits until somebody looks.
        self._count = count

    def _with(
        self,
        items: Iterable[Source],
        count: Callable[[Sources], dict[int, int]] | None = None,
    ) -> Sources:
        return Sources(items, fetched=self._fetched, unnumbered=self._unnumbered, count=count)

    def uncounted(self) -> Sources:
        """Return these sources as they were given, without looking at what the text cites."""
        return self._with(self._given)

    @cached_property
    def _items(self) -> tuple[Source, ...]:
        if self._count is None:
            return self._given
        counts = self._count(self._with(self._given))
        return tuple(
            source
            if (n := counts.get(source.id, 0)) == source.n_cited and source.cited == (n > 0)
            else replace(source, cited=n > 0, n_cited=n)
            for source in self._given
        )

    @cached_property
    def _by_id(self) -> dict[int, Source]:
        # Should two share a number, the first has it.
        return {source.id: source for source in reversed(self._items)}

    def __len__(self) -> int:
        return len(self._given)

    def __iter__(self) -> Iterator[Source]:
        return iter(self._items)

    def __bool__(self) -> bool:
        return bool(self._given)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: self.__dict__[name] for name in ("_fetched", "_unnumbered")}
        return {**kept, "_given": self._items, "_count": None}

    @overload
    def __getitem__(self, key: int) -> Source: ...
    @overload
    def __getitem__(self, key: slice) -> Sources: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> Source | Sources | list[Any]:
        """``[0]`` is the first Source, ``[:3]`` the first three, ``["url"]`` a column's list."""
        if isinstance(key, str):
            if key not in Source.__dataclass_fields__:
                names = ", ".join(Source.__dataclass_fields__)
                raise KeyError(f"no column {key!r}; there are {names}")
            return [getattr(source, key) for source in self._items]
        if isinstance(key, slice):
            return self._with(self._items[key])
        return self._items[key]

    def __eq__(self, other: object) -> bool:
        return self._items == other._items if isinstance(other, Sources) else NotImplemented

    def by_id(self, id: int) -> Source:
        """Return the source that ``[id]`` in the text means.

        Raises
        ------
        KeyError
            If there is none.
        """
        if id not in self._by_id:
            ids = ", ".join(map(str, sorted(self._by_id)[:20]))
            more = ", ..." if len(self._by_id) > 20 else ""
            raise KeyError(f"no source has the id {id}; there are: {ids or 'none'}{more}")
        return self._by_id[id]

    def get(self, id: int) -> Source | None:
        """Return the source that ``[id]`` in the text means, or None.

        Pages that the service did not number are not meant by any ``[n]``, unless it numbered none.
        """
        return None if id in self._unnumbered else self._by_id.get(id)

    def fetched(self, position: int) -> Source | None:
        """Return the page that ``[web:position]`` most likely means, or None.

        The service does not document these markers; in the one recording known they count the
        fetched pages from 0 (official-api 3.3).
        """
        if 0 <= position < len(self._fetched):
            return self._by_id.get(self._fetched[position])
        return None

    def resolve(self, id: int | None, web: int | None = None) -> Source | None:
        """Return the source that a marker means: ``[id]``, or ``[web:n]`` by position."""
        if web is not None:
            return self.fetched(web)
        return self.get(id) if id is not None else None

    @property
    def cited(self) -> Sources:
        """Those that the text cites."""
        return self._with(source for source in self._items if source.cited)

    def domains(self) -> dict[str, int]:
        """Return how many sources each domain has, most first."""
        counts: dict[str, int] = {}
        for source in self._items:
            counts[source.domain] = counts.get(source.domain, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def plot_domains(self, ax: Axes | None = None) -> Axes:
        """Draw how many sources each domain has; the part that the text cites is strong.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure if not given.

        Returns
        -------
        matplotlib.axes.Axes
            One bar a domain; beyond 15 domains the rest are one bar, "n others".

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        from ipyperplexity.tabular import charts

        return charts.plot_counts(
            self.domains(),
            self.cited.domains(),
            ax=ax,
            title="Sources by domain",
            xlabel="sources (strong: cited)",
            empty="no sources",
        )

    def plot_timeline(self, ax: Axes | None = None) -> Axes:
        """Draw when the sources were published: one row a domain, one point a source.

        Cited sources are filled points. Those without a date of publication are counted in the
        label of the axis.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure if not given.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        from ipyperplexity.tabular import charts

        return charts.plot_dates(
            self["published"],
            self["domain"],
            self["cited"],
            ax=ax,
            title="Publication dates of sources",
            xlabel="published (filled: cited)",
            empty="no sources with a date",
        )

    def counting(self, count: Callable[[Sources], dict[int, int]]) -> Sources:
        """Return the same sources with ``cited`` and ``n_cited`` from ``count``.

        It is called once, when somebody looks, and returns id -> number of markers.
        """
        return self._with(self._given, count)

    def head(self, limit: int | None) -> Sources:
        """Return at most ``limit`` sources in their order, uncited ones left out first."""
        if limit is None or len(self) <= limit:
            return self
        ranked = sorted(range(len(self)), key=lambda i: (not self._items[i].cited, i))[:limit]
        return self._with(self._items[i] for i in sorted(ranked))

    def _columns(self) -> Columns:
        return self._table

    @cached_property
    def _table(self) -> Columns:
        # Kept, as reading and checking 100,000 sources takes longer than building the frame; and
        # read in one pass, since each pass brings every object back into the processor's cache.
        values: dict[str, list[Any]] = {column.name: [] for column in SOURCE_SCHEMA}
        id, title, url, domain, published, updated, cited, n_cited, snippet, kind = (
            cells.append for cells in values.values()
        )
        for source in self._items:
            id(source.id)
            title(source.title)
            url(source.url)
            domain(source.domain)
            published(source.published)
            updated(source.updated)
            cited(source.cited)
            n_cited(source.n_cited)
            snippet(source.snippet)
            kind(source.kind)
        return Columns(SOURCE_SCHEMA, values)

    def _hidden(self) -> str:
        more = len(self) - SHOWN_ROWS
        return f"... and {more:,} more; to_pandas() has all" if more > 0 else ""

    def __repr__(self) -> str:
        if not self:
            return "Sources(none)"
        from ipyperplexity.markup import terminal

        shown = terminal.sources_text(self[:SHOWN_ROWS])
        return "\n".join(filter(None, (shown, self._hidden())))

    def _repr_html_(self) -> str:
        from ipyperplexity.markup import page

        hidden = self._hidden()
        return page.sources_table(self[:SHOWN_ROWS]) + (page.status_line(hidden) if hidden else "")


def _unnumbered_by_kind(items: tuple[Source, ...]) -> frozenset[int]:
    """Return the ids of pages that no search found, if searches found others."""
    if all(source.kind != "search" for source in items):
        return frozenset()
    return frozenset(source.id for source in items if source.kind != "search")
