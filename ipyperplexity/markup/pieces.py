"""Pieces that pages are put together from: the element around all, a fold, a remark, a cut.

Invariant: what is named ``html`` is safe already and taken as it is; all else is escaped here.
"""

from __future__ import annotations

from html import escape

from .links import one_line
from .style import STYLE


def wrap(inner_html: str) -> str:
    """Return `inner_html` in the element that carries the style and keeps ``$`` from MathJax."""
    return f'<div class="pplx mathjax_ignore tex2jax_ignore">\n{STYLE}{inner_html}</div>'


def fold(inner_html: str, label: str, *, folded: bool = True) -> str:
    """Return `inner_html` behind a line that opens it."""
    state = "" if folded else " open"
    return f"<details{state}><summary>{escape(one_line(label))}</summary>\n{inner_html}</details>\n"


def note(text: str) -> str:
    """Return a remark of one line."""
    return f'<p class="pplx-note">{escape(one_line(text))}</p>\n'


def cut(text: str, limit: int) -> str:
    """Return `text`, or as much of it as `limit` characters hold with an ellipsis.

    Examples
    --------
    >>> cut("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "\u2026"
