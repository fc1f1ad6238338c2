"""Whole pieces of HTML: the answer's page, its sources, its status, written by hand.

Invariant: every string that comes from outside is escaped here, once, at the place where it enters
the HTML; only ``body_html`` (from the Markdown renderer) is taken as it is. The page reads well
with the style sheet taken away, as front ends do when a saved notebook is opened again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from .calls import CallLike, calls_section
from .links import SourceLike, anchor, one_line
from .pieces import cut, fold, note, wrap
from .tables import FOLD_TABLE, data_table

__all__ = [
    "BODY_LIMIT",
    "SHORTENED",
    "answer_page",
    "data_table",
    "error_block",
    "searching_line",
    "shorten",
    "sources_list",
    "sources_table",
    "status_line",
    "wrap",
]

#: What is shown of a body, in characters of HTML; the Answer keeps all of it.
BODY_LIMIT = 100_000
SHORTENED = "shortened, see answer.text"
_SEPARATOR = " \u00b7 "
_FOLD_LIST = 8
_FOLD_CITED = 20
_TITLE_LIMIT = 160
_QUERY_LIMIT = 120

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
    calls: Iterable[CallLike] = (),
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
    calls : iterable of CallLike
        The functions that were run for it.
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
        "".join(map(note, remarks)),
        sources_list(sources, folded=folded),
        _searches(searches, folded),
        calls_section(calls, folded=folded),
        _status(status_line, state),
    ]
    return wrap("".join(parts))


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
    shown = "; ".join(cut(one_line(query), _QUERY_LIMIT) for query in queries if query.strip())
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
    return _list(shown) + (fold(_list(rest), label, folded=folded) if rest else "")


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
    """Return the sources as a table: the display of a ``Sources`` object.

    Nothing is said of citations where there is none, as in what a search found.
    """
    items = list(sources)
    n_cited = sum(1 for source in items if source.cited)
    heads = ("id", "title", "domain", "published", *(["cited"] if n_cited else []))
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    rows = "".join(
        f'<tr><td class="pplx-id">{int(source.id)}</td><td>{_title_link(source)}</td>'
        f"<td>{escape(one_line(source.domain))}</td>"
        f'<td class="pplx-day">{source.published.isoformat() if source.published else ""}</td>'
        f"{f'<td>{_times(source)}</td>' if n_cited else ''}</tr>\n"
        for source in items
    )
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n"
    if len(items) > FOLD_TABLE:
        label = _count(len(items), n_cited) if n_cited else f"{len(items)} sources"
        table = fold(table, label, folded=folded)
    return wrap(table)


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
    shown = [cut(one_line(query), _QUERY_LIMIT) for query in queries if query.strip()]
    if not shown:
        return ""
    label = "1 search" if len(shown) == 1 else f"{len(shown)} searches"
    items = "".join(f"<li>{escape(query)}</li>\n" for query in shown)
    return fold(f'<ul class="pplx-searches">\n{items}</ul>\n', label, folded=folded)


def _count(total: int, cited: int) -> str:
    return f"{total} source{'' if total == 1 else 's'}, {cited} cited"


def _title_link(source: SourceLike) -> str:
    title = cut(one_line(source.title), _TITLE_LIMIT) or one_line(source.url) or "untitled"
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
