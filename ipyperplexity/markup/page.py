"""Whole pieces of HTML: the answer's page, its sources, its status, written by hand.

Invariant: every string that comes from outside is escaped here, once, at the place where it enters
the HTML; only ``body_html`` (from the Markdown renderer) is taken as it is. The page reads well
with the style sheet taken away, as front ends do when a saved notebook is opened again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from .links import SourceLike, anchor, one_line
from .style import STYLE

#: What is shown of a body, in characters of HTML; the Answer keeps all of it.
BODY_LIMIT = 100_000
SHORTENED = "shortened, see answer.text"
_SEPARATOR = " \u00b7 "
_FOLD_LIST = 8
_FOLD_CITED = 20
_FOLD_TABLE = 20
_TITLE_LIMIT = 160
_QUERY_LIMIT = 120
_CELL_LIMIT = 200

#: Word shown for a state that a reader must not overlook; the others need none.
_STATE_WORDS = {"stopped": "stopped", "incomplete": "incomplete", "failed": "failed"}


def answer_page(
    *,
    body_html: str,
    status_line: str = "",
    sources: Iterable[SourceLike] = (),
    state: str = "completed",
    notices: Sequence[str] = (),
    searches: Sequence[str] = (),
    folded: bool = True,
) -> str:
    """Return the HTML of an answer, complete or growing.

    Parameters
    ----------
    body_html : str
        Safe HTML from the Markdown renderer; more than 100,000 characters are shortened.
    status_line : str
        One line, for instance model, time and cost.
    sources : iterable of SourceLike
        In the order in which to list them.
    state : str
        ``completed``, ``incomplete``, ``stopped``, ``failed``, or any word while it is growing;
        the first three troubles are named in the status line.
    notices : sequence of str
        Short remarks, one line each.
    searches : sequence of str
        What the service searched for.
    folded : bool
        Whether long lists start folded.

    Examples
    --------
    >>> "mathjax_ignore" in answer_page(body_html="<p>$5 to $10</p>")
    True
    """
    body, cut = shorten(body_html)
    remarks = [*notices, *([SHORTENED] if cut else [])]
    parts = [
        f'<div class="pplx-body">\n{body}</div>\n' if body else "",
        "".join(f'<p class="pplx-note">{escape(one_line(n))}</p>\n' for n in remarks),
        sources_list(sources, folded=folded),
        _searches(searches, folded),
        _status(status_line, state),
    ]
    return wrap("".join(parts))


def wrap(inner_html: str) -> str:
    """Return `inner_html` in the element that carries the style and keeps ``$`` from MathJax."""
    return f'<div class="pplx mathjax_ignore tex2jax_ignore">\n{STYLE}{inner_html}</div>'


def status_line(text: str, state: str = "completed") -> str:
    """Return the one line that assistive technology reads aloud when it changes."""
    return _status(text, state)


def _status(text: str, state: str) -> str:
    word = _STATE_WORDS.get(state, "")
    text = one_line(text)
    if word and word not in text.lower():
        text = f"{word} \u00b7 {text}" if text else word
    if not text:
        return ""
    return f'<p class="pplx-status" role="status" aria-live="polite">{escape(text)}</p>\n'


def searching_line(queries: Sequence[str], n_sources: int = 0) -> str:
    """Return the status line of a search that is going on.

    Examples
    --------
    >>> "Searching: tallest tower \u00b7 12 sources" in searching_line(["tallest tower"], 12)
    True
    """
    shown = "; ".join(_cut(one_line(query), _QUERY_LIMIT) for query in queries if query.strip())
    text = f"Searching: {shown}" if shown else "Searching \u2026"
    if n_sources:
        text += f" \u00b7 {n_sources} source{'' if n_sources == 1 else 's'}"
    return status_line(text)


def error_block(message: str, hint: str | None = None) -> str:
    """Return an error as one paragraph that does not rely on color."""
    more = f"<br>\n{escape(one_line(hint))}" if hint else ""
    return f'<p class="pplx-error"><strong>Error:</strong> {escape(one_line(message))}{more}</p>\n'


def sources_list(sources: Iterable[SourceLike], *, folded: bool = True) -> str:
    """Return the sources as a list whose numbers are their ids, gaps and all.

    Of a long list only the cited ones are in sight at first.

    ``<li value>`` survives when a saved notebook is opened again (JupyterLab's sanitizer keeps
    it), so the list is never renumbered.
    """
    items = list(sources)
    if len(items) <= _FOLD_LIST:
        return _list(items)
    # What the text leans on stays in sight; what was merely found is a click away.
    shown = [source for source in items if source.cited][:_FOLD_CITED]
    rest = [source for source in items if source not in shown]
    label = f"{len(rest)} more" if shown else _count(len(items), 0)
    if shown and not any(source.cited for source in rest):
        label += ", not cited"
    return _list(shown) + _fold(_list(rest), label, bool(rest), folded)


def _list(items: Sequence[SourceLike]) -> str:
    lines = []
    for source in items:
        details = [one_line(part) for part in (_domain(source), _day(source)) if part]
        if not source.cited:
            details.append("not cited")
        kind = "" if source.cited else ' class="pplx-uncited"'
        tail = f" <small>{escape(_SEPARATOR.join(details))}</small>" if details else ""
        lines.append(f'<li{kind} value="{int(source.id)}">{_title_link(source)}{tail}</li>\n')
    return f'<ol class="pplx-sources">\n{"".join(lines)}</ol>\n' if lines else ""


def sources_table(sources: Iterable[SourceLike], *, folded: bool = True) -> str:
    """Return the sources as a table: the display of a ``Sources`` object."""
    items = list(sources)
    heads = ("id", "title", "domain", "published", "cited")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    rows = "".join(
        f'<tr><td class="pplx-id">{int(source.id)}</td><td>{_title_link(source)}</td>'
        f"<td>{escape(one_line(source.domain))}</td>"
        f'<td class="pplx-day">{source.published.isoformat() if source.published else ""}</td>'
        f"<td>{_times(source)}</td></tr>\n"
        for source in items
    )
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n"
    cited = sum(1 for source in items if source.cited)
    return wrap(_fold(table, _count(len(items), cited), len(items) > _FOLD_TABLE, folded))


def data_table(
    heads: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    total: int | None = None,
    label: str = "",
    row_heads: bool = False,
    notes: Sequence[str] = (),
    folded: bool = True,
) -> str:
    """Return plain values as a table: the display of anything that is a table of its own.

    Parameters
    ----------
    heads : sequence of str
        Names of the columns.
    rows : iterable of sequences
        Cells: text (cut to 200 characters), numbers (to the right), bools, None (empty).
    total : int, optional
        How many rows there are in all, if more than those that are shown.
    label : str
        What the table holds, in a few words: stands below it, or on the fold of a long one.
    row_heads : bool
        Whether the first cell names its row.
    notes : sequence of str
        Remarks below, one line each.
    folded : bool
        Whether a long table starts folded.

    Examples
    --------
    >>> '<td class="pplx-right">1,200</td>' in data_table(["words"], [[1200]])
    True
    """
    body = [list(row) for row in rows]
    right = [
        any(_is_number(row[i]) for row in body)
        and all(row[i] is None or _is_number(row[i]) for row in body)
        for i in range(len(heads))
    ]
    side = [' class="pplx-right"' if is_right else "" for is_right in right]
    head = "".join(
        f'<th scope="col"{at}>{escape(one_line(name))}</th>'
        for name, at in zip(heads, side, strict=True)
    )
    lines = []
    for row in body:
        cells = [f"<td{at}>{_cell(cell)}</td>" for cell, at in zip(row, side, strict=True)]
        if row_heads:
            cells[0] = f'<th scope="row"{side[0]}>{_cell(row[0])}</th>'
        lines.append(f"<tr>{''.join(cells)}</tr>\n")
    table = (
        f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{''.join(lines)}</tbody>\n</table>\n"
    )
    long = len(body) > _FOLD_TABLE
    hidden = (len(body) if total is None else total) - len(body)
    remarks = [
        *([f"... and {hidden:,} more; to_pandas() has all"] if hidden > 0 else []),
        *([label] if label and not long else []),
        *notes,
    ]
    below = "".join(f'<p class="pplx-note">{escape(one_line(text))}</p>\n' for text in remarks)
    summary = escape(one_line(label)) or f"{len(body)} rows"
    return wrap(_fold(table, summary, long, folded) + below)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return escape(_cut(one_line(text), _CELL_LIMIT))


def shorten(body_html: str, limit: int = BODY_LIMIT) -> tuple[str, bool]:
    """Return safe HTML cut to about `limit` characters, and whether it was cut.

    The cut never falls into a tag or an entity; elements left open are closed.
    """
    if len(body_html) <= limit:
        return body_html, False
    from .markdown import cleaner

    head = _HALF.sub("", body_html[:limit])
    return cleaner().clean(head) + "\n", True


_HALF = re.compile(r"(?:<[^<>]*|&[^;\s<>&]{0,32})\Z")


def _searches(queries: Sequence[str], folded: bool) -> str:
    shown = [_cut(one_line(query), _QUERY_LIMIT) for query in queries if query.strip()]
    if not shown:
        return ""
    label = "1 search" if len(shown) == 1 else f"{len(shown)} searches"
    items = "".join(f"<li>{escape(query)}</li>\n" for query in shown)
    return _fold(f'<ul class="pplx-searches">\n{items}</ul>\n', label, True, folded)


def _fold(inner_html: str, label: str, long: bool, folded: bool) -> str:
    if not long:
        return inner_html
    state = "" if folded else " open"
    return f"<details{state}><summary>{label}</summary>\n{inner_html}</details>\n"


def _count(total: int, cited: int) -> str:
    return f"{total} source{'' if total == 1 else 's'}, {cited} cited"


def _title_link(source: SourceLike) -> str:
    title = _cut(one_line(source.title), _TITLE_LIMIT) or one_line(source.url) or "untitled"
    return anchor(source.url, escape(title), one_line(source.snippet or "")[:_TITLE_LIMIT])


def _domain(source: SourceLike) -> str:
    # A title that is only the domain need not say it twice.
    return "" if source.domain == source.title else source.domain


def _day(source: SourceLike) -> str:
    if source.published:
        return source.published.isoformat()
    return f"updated {source.updated.isoformat()}" if source.updated else ""


def _times(source: SourceLike) -> str:
    if not source.cited:
        return "\u2013"
    return "yes" if source.n_cited <= 1 else f"{int(source.n_cited)}\u00d7"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "\u2026"
