"""What an answer claims, sentence by sentence, and which sources stand behind each.

Invariant: a claim is supported by the markers that stand in its own sentence and by nothing else;
a marker at a paragraph's end covers the last sentence only, and nothing is guessed from the
neighborhood. What a sentence is, a marker, code or a heading, the one Markdown parser says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

from ipyperplexity.citations import Citation
from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.markup.links import one_line
from ipyperplexity.markup.markers import sentences
from ipyperplexity.markup.prose import mask_code
from ipyperplexity.tabular.columns import Column, Columns
from ipyperplexity.tabular.framed import Framed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Rows that a display shows; frames have all.
SHOWN_ROWS = 200


@dataclass(frozen=True)
class Claim:
    """One sentence and its sources.

    Attributes
    ----------
    sentence : str
        As in the text, on one line and without its markers.
    start, end : int
        Where it stands, markers included: ``text[start:end]``, in code points.
    source_ids : tuple of int
        Numbers of the sources that it names, in order, each once.
    domains : tuple of str
        Their domains, each once.
    n_unknown : int
        How often it names a source that is not there; that supports nothing.
    n_sources : int
        How many sources it names.
    supported : bool
        Whether it names any.

    Examples
    --------
    >>> Claim("It is tall.", 0, 14, (1,), ("d.example",)).supported
    True
    """

    sentence: str
    start: int
    end: int
    source_ids: tuple[int, ...] = ()
    domains: tuple[str, ...] = ()
    n_unknown: int = 0
    n_sources: int = field(init=False)
    supported: bool = field(init=False)

    def __post_init__(self) -> None:
        # Fields, not properties: what makes a frame of dataclasses takes fields only.
        object.__setattr__(self, "n_sources", len(self.source_ids))
        object.__setattr__(self, "supported", bool(self.source_ids))


CLAIM_SCHEMA = (
    Column("sentence", "str"),
    Column("start", "int32", nullable=False),
    Column("end", "int32", nullable=False),
    Column("source_ids", "int32_list", nullable=False),
    Column("domains", "str_list", nullable=False),
    Column("n_unknown", "int32", nullable=False),
    Column("n_sources", "int32", nullable=False),
    Column("supported", "bool", nullable=False),
)


class Claims(Framed):
    """The claims of an answer, as a table that frame libraries take as it is: one row a sentence.

    ``[0]`` is the first Claim, ``[:3]`` a table of the first three, ``["sentence"]`` a column's
    list.

    Examples
    --------
    >>> claims = Claims([Claim("It is tall.", 0, 14, (1,)), Claim("It sings.", 15, 24)])
    >>> claims.unsupported["sentence"]
    ['It sings.']
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, claims: Iterable[Claim] = ()) -> None:
        self._claims = tuple(claims)
        for claim in self._claims:
            if not isinstance(claim, Claim):
                raise InvalidRequestError(
                    f"claims: got a value of type {type(claim).__name__}; allowed: Claim.",
                    field="claims",
                )

    def __len__(self) -> int:
        return len(self._claims)

    def __iter__(self) -> Iterator[Claim]:
        return iter(self._claims)

    @overload
    def __getitem__(self, key: int) -> Claim: ...
    @overload
    def __getitem__(self, key: slice) -> Claims: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> Claim | Claims | list[Any]:
        """``[0]`` is the first Claim, ``[:3]`` the first three, ``["sentence"]`` a column."""
        if isinstance(key, str):
            return self._columns().column(key)
        if isinstance(key, slice):
            return Claims(self._claims[key])
        return self._claims[key]

    def __eq__(self, other: object) -> bool:
        return self._claims == other._claims if isinstance(other, Claims) else NotImplemented

    @property
    def supported(self) -> Claims:
        """Those that at least one source supports."""
        return Claims(claim for claim in self._claims if claim.supported)

    @property
    def unsupported(self) -> Claims:
        """Those that no source supports."""
        return Claims(claim for claim in self._claims if not claim.supported)

    def _columns(self) -> Columns:
        names = [column.name for column in CLAIM_SCHEMA]
        return Columns(
            CLAIM_SCHEMA, {name: [getattr(claim, name) for claim in self._claims] for name in names}
        )

    def _summary(self) -> str:
        bare = sum(not claim.supported for claim in self._claims)
        noun = "sentence" if len(self) == 1 else "sentences"
        return f"{len(self):,} {noun}, {bare:,} without a source"

    def __repr__(self) -> str:
        from ipyperplexity.markup import terminal

        lines = [f"Claims({self._summary()})"]
        for claim in self._claims[:SHOWN_ROWS]:
            sources = ", ".join(map(str, claim.source_ids)) or "none"
            sentence = one_line(terminal.strip_controls(claim.sentence))
            lines.append(terminal.fit(f"{f'[{sources}]':>8}  {sentence}", 100))
        if len(self) > SHOWN_ROWS:
            lines.append(f"... and {len(self) - SHOWN_ROWS:,} more; to_pandas() has all")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from ipyperplexity.markup import page

        rows = [
            (c.sentence, ", ".join(map(str, c.source_ids)) or "none", ", ".join(c.domains))
            for c in self._claims[:SHOWN_ROWS]
        ]
        return page.data_table(
            ("sentence", "source_ids", "domains"), rows, total=len(self), label=self._summary()
        )


def find_claims(text: str, citations: Iterable[Citation]) -> Claims:
    """Return the claims of ``text`` with the sources that ``citations`` give them.

    A claim is a sentence of a paragraph, a quote or a list item, or a whole row of a table. These
    claim nothing:

    * headings, header rows of tables, a paragraph that is one bold phrase (a heading in disguise);
    * code, formulas, bare addresses, and markers that stand alone;
    * a question or a lead-in (``The steps are:``) without a marker; with one it is a claim;
    * a list of markers with its label (``Sources: [1][2]``).

    Courtesies ("I hope this helps.") are sentences as any other.

    Parameters
    ----------
    text : str
        The answer's text, as received.
    citations : iterable of Citation
        Those of this very text: :func:`ipyperplexity.citations.find_citations`.

    Examples
    --------
    >>> from ipyperplexity.citations import find_citations
    >>> from ipyperplexity.sources import Source, Sources
    >>> sources = Sources([Source(1, "Dune", "https://d.example", "d.example")])
    >>> text = "The facts: It is tall.[1] It sings.[7] Why?"
    >>> [(c.sentence, c.source_ids) for c in find_claims(text, find_citations(text, sources))]
    [('The facts: It is tall.', (1,)), ('It sings.', ())]
    """
    spans = sentences(text)
    if not spans:
        return Claims()
    prose = _prose(text)
    titles, rows = _structure(text)
    by_place = sorted(citations, key=lambda citation: citation.start)
    claims: list[Claim] = []
    position = 0
    for start, end in spans:
        first = position
        while position < len(by_place) and by_place[position].start < end:
            position += 1
        mine = by_place[first:position]
        if start in titles or not _WORD.search(prose, start, end):
            continue
        if start not in rows and _says_nothing(prose[start:end], marked=bool(mine)):
            continue
        claims.append(_claim(text, start, end, mine))
    return Claims(claims)


_WORD = re.compile(r"\w")
_ADDRESS = re.compile(r"https?://[^\s)\]>]+", re.IGNORECASE)
_QUESTION = re.compile(r"[?\uff1f\u061f][\s*_)\]]*$")
_LEAD_IN = re.compile(r"[:\uff1a][\s*_)\]]*$")
_LABEL_OF_MARKERS = re.compile(
    r"[\W_]*(?:sources?|references?|citations?|see(?: also)?)[\W_]*$", re.IGNORECASE
)
_BOLD_PHRASE = re.compile(r"(\*\*|__)(?:(?!\1|[.!?\u2026]).)+\1\s*")
_QUOTE_SIGN = re.compile(r"(?<=[\r\n])[ \t]*(?:>[ \t]?)+")


def _prose(text: str) -> str:
    """Return ``text`` with code, formulas, addresses and markers blanked, place for place."""
    from ipyperplexity.markup.parser import located

    chars = list(_ADDRESS.sub(lambda match: " " * len(match[0]), mask_code(text)))
    for _, start, end in located(text, "math", "citation"):
        chars[start:end] = " " * (end - start)
    return "".join(chars)


def _structure(text: str) -> tuple[set[int], set[int]]:
    """Return where the spans begin that are titles of some kind, and those that are table rows."""
    from ipyperplexity.markup.parser import blocks, contents, normalize

    parts = blocks(normalize(text))
    header_rows = {
        token.map[0]
        for block in parts
        for token in block.tokens
        if token.type == "thead_open" and token.map
    }
    top_rows = {block.first for block in parts if block.kind == "paragraph"}
    titles: set[int] = set()
    rows: set[int] = set()
    for part in contents(text):
        if not part.content:
            continue
        start = part.offset(len(part.content) - len(part.content.lstrip()))
        if part.kind == "table":
            (titles if part.row in header_rows else rows).add(start)
        elif part.kind == "heading" or (
            part.row in top_rows and _BOLD_PHRASE.fullmatch(part.content)
        ):
            titles.add(start)
    return titles, rows


def _says_nothing(sentence: str, *, marked: bool) -> bool:
    if marked:
        return _LABEL_OF_MARKERS.match(sentence) is not None
    return bool(_QUESTION.search(sentence) or _LEAD_IN.search(sentence))


def _claim(text: str, start: int, end: int, citations: Iterable[Citation]) -> Claim:
    bare, position = "", start
    pages: dict[int, str] = {}
    unknown = 0
    for citation in citations:
        if citation.start >= position:
            # The blank before a marker is part of it: "tall [1]." is "tall."
            bare += text[position : citation.start].rstrip(" \t")
            position = citation.end
        if citation.source is None:
            unknown += 1
        else:
            pages.setdefault(citation.source.id, citation.source.domain)
    bare = " ".join(_QUOTE_SIGN.sub("", bare + text[position:end]).split())
    domains = tuple(dict.fromkeys(domain for domain in pages.values() if domain))
    return Claim(bare, start, end, tuple(pages), domains, unknown)


def plot_citations(citations: Iterable[Citation], text_length: int, ax: Axes | None = None) -> Axes:
    """Draw where in a text each source is cited: one row a source, one line a marker.

    Sources come in the order in which the text first cites them; of more than 15 the most cited
    have a row each, the others share one. Numbers of unknown sources have a row that says so.

    Parameters
    ----------
    citations : iterable of Citation
        Those of the text.
    text_length : int
        Length of the text, in code points.
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

    marks = [(citation.start, _row_label(citation)) for citation in citations]
    return charts.plot_positions(
        [start for start, _ in marks],
        [label for _, label in marks],
        length=text_length,
        ax=ax,
        title="Citations along the text",
        xlabel="position (characters)",
    )


def _row_label(citation: Citation) -> str:
    if citation.source is None:
        return f"unknown [{citation.id}]" if citation.id is not None else "unknown page"
    return f"{citation.source.domain or citation.source.title} [{citation.source.id}]"
