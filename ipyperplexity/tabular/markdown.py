"""The Markdown tables of a text, as typed columns.

Invariant: what is a table, a cell, code or a citation marker is decided by the one Markdown parser
(:mod:`ipyperplexity.markup.parser`), as for the page that the user sees. Broken tables are mended
and say so in ``warnings``; no text whatever makes :func:`find_tables` raise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ipyperplexity.tabular.columns import Column, Columns
from ipyperplexity.tabular.framed import Framed
from ipyperplexity.tabular.infer import Inferred, infer_column

if TYPE_CHECKING:
    from markdown_it.token import Token

#: Gives the source id that ``[web:position]`` means, or None.
WebId = Callable[[int], int | None]


@dataclass(frozen=True)
class MarkdownTable(Framed):
    r"""One table of an answer's text.

    Iterating gives its rows as dicts of typed values. pandas, polars, Arrow, duckdb and ibis take
    the object itself, or its ``to_pandas()``, ``to_polars()``, ``to_arrow()``, ``to_dicts()``.
    A column of numbers, amounts or percentages is ``int64`` or ``float64``, a column of dates is
    ``date``, all else text; a last column ``sources`` lists the ids that each row cites.

    Attributes
    ----------
    header : tuple of str
        Column names: blank ones are ``column_1`` ..., repeated ones get ``_2``, ``_3`` ...
    rows : tuple of tuple of str
        Text of the cells: no Markdown, no citation markers.
    start, end : int
        Where the table stands in the text: ``text[start:end]``, in code points.
    markers : tuple of tuple of int
        For each row, the source ids that its markers name, in order, each once.
    warnings : tuple of str
        What had to be mended.

    Examples
    --------
    >>> table, = find_tables("| City | People |\n|---|---|\n| Bonn | 336,000 [2] |")
    >>> table.to_dicts()
    [{'City': 'Bonn', 'People': 336000, 'sources': [2]}]
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    start: int
    end: int
    markers: tuple[tuple[int, ...], ...]
    warnings: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        # No __len__ and no __getitem__: numpy would take a list of tables apart.
        return iter(self.to_dicts())

    @property
    def units(self) -> dict[str, str]:
        """What the numbers of a column carried: ``{"Share": "%", "Price": "$"}``."""
        named = zip(self.header, self._inferred, strict=True)
        return {name: column.unit for name, column in named if column.unit}

    @cached_property
    def _inferred(self) -> tuple[Inferred, ...]:
        return tuple(
            infer_column([row[index] for row in self.rows]) for index in range(len(self.header))
        )

    def _columns(self) -> Columns:
        return self._table

    @cached_property
    def _table(self) -> Columns:
        *names, sources = _unique((*self.header, "sources"))
        schema = [
            Column(name, column.kind, nullable=not column.values or None in column.values)
            for name, column in zip(names, self._inferred, strict=True)
        ]
        values = {name: column.values for name, column in zip(names, self._inferred, strict=True)}
        return Columns(
            [*schema, Column(sources, "int32_list", nullable=False)],
            {**values, sources: self.markers},
        )


def find_tables(text: str, web_id: WebId = lambda position: None) -> tuple[MarkdownTable, ...]:
    r"""Return every GitHub-flavored Markdown table of a text, in order.

    A table needs a header and a delimiter row; rows may still be missing, as in a text that is
    being streamed. Tables in lists and quotes count, those in code do not. A row with too few
    cells is padded; of one with too many, the excess is kept in its last cell; both are warned of.

    Parameters
    ----------
    text : str
        Any text.
    web_id : callable, optional
        Gives the source id that ``[web:position]`` means, or None.

    Returns
    -------
    tuple of MarkdownTable
        Empty if there is none.

    Examples
    --------
    >>> find_tables("| a | b |\n|---|---|\n| 1 | 2 |")[0].header
    ('a', 'b')
    """
    if "|" not in text:
        return ()
    from ipyperplexity.markup.parser import blocks, normalize

    # One character for one, so that offsets hold.
    source = normalize(_SURROGATE.sub("\ufffd", text))
    spans = _line_spans(text)
    return tuple(
        _read_table(tokens, source, spans, web_id)
        for block in blocks(source)
        for tokens in _table_tokens(block.tokens)
    )


_SURROGATE = re.compile("[\ud800-\udfff]")
_NEWLINE = re.compile(r"\r\n?|\n")


def _line_spans(text: str) -> list[tuple[int, int]]:
    spans, begin = [], 0
    for newline in _NEWLINE.finditer(text):
        spans.append((begin, newline.start()))
        begin = newline.end()
    return [*spans, (begin, len(text))]


def _table_tokens(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    begin = 0
    for index, token in enumerate(tokens):
        if token.type == "table_open":
            begin = index
        elif token.type == "table_close":
            yield tokens[begin : index + 1]


def find_malformed(text: str) -> list[str]:
    r"""Return the paragraphs that look like tables and are none: their delimiter row does not fit.

    Examples
    --------
    >>> find_malformed("| a | b |\n|---|\n| 1 | 2 |")
    ['| a | b |\n|---|\n| 1 | 2 |']
    """
    if "|" not in text:
        return []
    from ipyperplexity.markup.parser import blocks, normalize

    paragraphs = [
        token.content
        for block in blocks(normalize(_SURROGATE.sub("\ufffd", text)))
        for before, token in pairwise(block.tokens)
        if token.type == "inline" and before.type == "paragraph_open"
    ]
    return [
        content
        for content in paragraphs
        if content.count("\n") and all(line[:1] == line[-1:] == "|" for line in content.split("\n"))
    ]


def _read_table(
    tokens: Sequence[Token], source: str, spans: Sequence[tuple[int, int]], web_id: WebId
) -> MarkdownTable:
    lines: dict[int, list[Token]] = {}
    for token in tokens:
        if token.type == "inline":
            lines.setdefault((token.map or [0])[0], []).append(token)
    heading, *body = lines.values()
    warnings: list[str] = []

    titles = [_cell_text(token.content, web_id)[0] for token in heading]
    header = _unique(title or f"column_{n}" for n, title in enumerate(titles, start=1))
    repeated = sorted({title for title in titles if title and titles.count(title) > 1})
    if repeated:
        warnings.append(f"column names occur more than once: {', '.join(repeated)}")

    rows: list[tuple[str, ...]] = []
    markers: list[tuple[int, ...]] = []
    for number, row_tokens in enumerate(body, start=1):
        contents, warning = _row_contents(row_tokens, source)
        if warning:
            warnings.append(f"row {number} {warning}")
        cells = [_cell_text(content, web_id) for content in contents]
        rows.append(tuple(cell for cell, _ in cells))
        markers.append(tuple(dict.fromkeys(n for _, ids in cells for n in ids)))

    first, last = tokens[0].map or (0, 0)
    return MarkdownTable(
        header=header,
        rows=tuple(rows),
        start=spans[first][0],
        end=spans[last - 1][1],
        markers=tuple(markers),
        warnings=tuple(warnings),
    )


# --- rows --------------------------------------------------------------------------------------

_PIPE = re.compile(r"(?<!\\)\|")


def _row_contents(tokens: Sequence[Token], source: str) -> tuple[list[str], str | None]:
    """The Markdown of each cell of a row, mended to as many as the table has columns."""
    width = len(tokens)
    begin = tokens[0].meta["starts"][0]
    end = source.find("\n", begin)
    written = _split_row(source[begin : end if end >= 0 else len(source)])
    if len(written) < width:
        return (
            [token.content for token in tokens],
            f"has {len(written)} cells for {width} columns; the missing ones are empty",
        )
    if len(written) == width:
        return [token.content for token in tokens], None
    rejoined = _rejoin_code(written)
    if len(rejoined) == width:
        return rejoined, "has a pipe in code without a backslash; it was kept as code"
    excess = " | ".join(written[width - 1 :])
    return (
        [*written[: width - 1], excess],
        f"has {len(written)} cells for {width} columns; the excess is kept in the last one",
    )


def _split_row(line: str) -> list[str]:
    cells = _PIPE.split(line.strip(" \t"))
    if cells[0] == "":
        cells = cells[1:]
    if cells and cells[-1] == "":
        cells = cells[:-1]
    return [cell.replace("\\|", "|").strip(" \t") for cell in cells]


def _rejoin_code(cells: Iterable[str]) -> list[str]:
    joined: list[str] = []
    for cell in cells:
        if joined and joined[-1].count("`") % 2:
            joined[-1] += f" | {cell}"
        else:
            joined.append(cell)
    return joined


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    taken: set[str] = set()
    result = []
    for name in names:
        candidate, n = name, 1
        while candidate in taken:
            n += 1
            candidate = f"{name}_{n}"
        taken.add(candidate)
        result.append(candidate)
    return tuple(result)


# --- cells -------------------------------------------------------------------------------------

# Without any of these a cell is its own text.
_MARKUP = re.compile(r"[\\`*_~\[\]<>&!$:]")
_LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)


def _as_written(token: Token) -> str:
    return token.content


def _newline(_token: Token) -> str:
    return "\n"


_TEXT_OF: dict[str, Callable[[Token], str]] = {
    "text": lambda token: _LINE_BREAK.sub("\n", token.content),
    "code_inline": _as_written,
    "math": _as_written,
    "image": _as_written,
    "softbreak": _newline,
    "hardbreak": _newline,
}


def _cell_text(content: str, web_id: WebId) -> tuple[str, tuple[int, ...]]:
    """Text of a cell without its markup, and the ids of the markers that were in it."""
    if not _MARKUP.search(content):
        return content.strip(), ()
    from ipyperplexity.markup.parser import inline

    text, ids = "", []
    for token in inline(content):
        if token.type == "citation":
            text = text.rstrip()
            marker = token.meta["marker"]
            found = marker.ids if marker.web is None else (web_id(marker.web),)
            ids += [id for id in found if id is not None]
        elif token.type in _TEXT_OF:
            text += _TEXT_OF[token.type](token)
    return text.strip(), tuple(ids)
