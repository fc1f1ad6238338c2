"""An answer with its sources, and the functions that were run for it, as a Markdown document.

Invariant: the answer's own Markdown stays as it is, its HTML becomes text; what a question, title,
domain, URL or function says stays text, adds no structure, and only an http(s) URL becomes a link.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable

from ipyperplexity.export.source_text import iso_date, title_of
from ipyperplexity.markup.calls import MAX_SHOWN, CallLike, call_text, result_text
from ipyperplexity.markup.links import SourceLike, http_url, one_line
from ipyperplexity.markup.prose import mask_code

# Entities where a backslash is not understood everywhere: before <, > and &, and before another
# backslash, since JupyterLab takes \\( for the start of a formula.
_MARKDOWN = str.maketrans(
    {
        **{mark: f"\\{mark}" for mark in "`*_[]~#$"},
        **{"<": "&lt;", ">": "&gt;", "&": "&amp;", "\\": "&#92;"},
    }
)
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)$")


def _markdown_text(text: str) -> str:
    escaped = one_line(text).translate(_MARKDOWN)
    # At the start of a line these make lists and rules.
    return re.sub(r"^([-+=]|\d{1,9}(?=[.)]))", lambda m: f"&#{ord(m[0][0])};{m[0][1:]}", escaped)


def _open_fence(text: str) -> str | None:
    """Return the fence of a code block that the text opens and does not close."""
    fence: str | None = None
    for line in text.splitlines():
        found = _FENCE.match(line)
        if not found:
            continue
        if fence is None:
            fence = found[1]
        elif found[1][0] == fence[0] and len(found[1]) >= len(fence) and not found[2].strip():
            fence = None
    return fence


def _markdown_source(source: SourceLike) -> str:
    title, url = _markdown_text(title_of(source)), http_url(source.url)
    if url is not None:
        # "&copy;" in a URL would be read as an entity.
        title = f"[{title}](<{re.sub(r'&(?=#?[A-Za-z0-9]+;)', '&amp;', url)}>)"
    domain = _markdown_text(source.domain)
    details = [title, domain, iso_date(source.published)]
    return f"- \\[{source.id}\\] " + ", ".join(filter(None, details))


def _code(line: str) -> str:
    """Return one line as code that no backtick in it can end."""
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    gap = " " if longest else ""
    return f"{fence}{gap}{line}{gap}{fence}"


def _markdown_calls(calls: list[CallLike]) -> str:
    lines = [
        f"- {_code(call_text(call.name, call.arguments))}{' ' if call.error else ': '}"
        f"{_markdown_text(result_text(call))}"
        for call in calls[:MAX_SHOWN]
    ]
    if len(calls) > MAX_SHOWN:
        lines.append(f"- ... and {len(calls) - MAX_SHOWN:,} more")
    return "\n".join(lines)


_HTML = re.compile(r"<(?=[A-Za-z/!?])(?!https?://)")


def _without_html(text: str) -> str:
    """Return Markdown in which HTML is text: a tag left open would swallow what follows."""
    outside = mask_code(text)
    pieces, begin = [], 0
    for match in _HTML.finditer(outside):
        pieces += [text[begin : match.start()], "&lt;"]
        begin = match.end()
    return "".join([*pieces, text[begin:]])


def to_markdown(
    question: str,
    text: str,
    sources: Iterable[SourceLike],
    *,
    title: str | None = None,
    accessed: dt.date | None = None,
    calls: Iterable[CallLike] = (),
) -> str:
    r"""Return an answer with its sources as a Markdown document.

    Parameters
    ----------
    question : str
        The heading; with `title`, or if it has several lines, a quotation under the heading.
    text : str
        The answer's Markdown, kept as it is, but HTML in it becomes text. Its markers ``[1]`` are
        the numbers of the list.
    sources : iterable of SourceLike
        Listed in the order given, each with its own id as its number.
    title : str, optional
        Heading in place of the question.
    accessed : datetime.date, optional
        When the sources were read.
    calls : iterable of CallLike
        The functions that were run for it: a list below, of the first 50, results cut to 300
        characters.

    Returns
    -------
    str
        Ends with a line break.

    Examples
    --------
    >>> from ipyperplexity.sources import Source
    >>> page = Source(2, "Dune [novel]", "https://d.example/a", "d.example", dt.date(1965, 8, 1))
    >>> print(to_markdown("Who wrote Dune?", "Herbert [2].", [page]), end="")
    # Who wrote Dune?
    <BLANKLINE>
    Herbert [2].
    <BLANKLINE>
    ## Sources
    <BLANKLINE>
    - \[2\] [Dune \[novel\]](<https://d.example/a>), d.example, 1965-08-01
    """
    lines = [line for line in question.splitlines() if line.strip()]
    heading = one_line(title or "") or (one_line(question) if len(lines) == 1 else "") or "Answer"
    parts = [f"# {_markdown_text(heading)}"]
    if lines and heading != one_line(question):
        parts.append("\n".join(f"> {_markdown_text(line)}" for line in lines))
    body = _without_html(text.strip("\n"))
    fence = _open_fence(body)
    # A cut-off answer may end inside a code block, which would swallow the list.
    parts.append(body if fence is None else f"{body}\n{fence}")
    items = [_markdown_source(source) for source in sources]
    if items:
        parts += ["## Sources", "\n".join(items)]
        if accessed is not None:
            parts.append(f"Accessed {iso_date(accessed)}.")
    if made := list(calls):
        parts += ["## Functions", _markdown_calls(made)]
    return "\n\n".join(part for part in parts if part) + "\n"
