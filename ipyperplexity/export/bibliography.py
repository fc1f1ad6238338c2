"""Sources as entries of a bibliography: BibTeX for LaTeX, CSL-JSON for Zotero, pandoc and Quarto.

Invariant: a source has the same key in both, and no two sources of a list share one; whatever a
title, domain or URL holds, it does not leave its BibTeX field.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from ipyperplexity.export.source_text import iso_date, title_of
from ipyperplexity.markup.links import SourceLike, http_url, one_line

# BibTeX counts braces even after a backslash, so a lone one needs its name.
_LATEX = str.maketrans(
    {
        **{mark: f"\\{mark}" for mark in "&%$#_"},
        **{"{": r"\textbraceleft{}", "}": r"\textbraceright{}", "\\": r"\textbackslash{}"},
        **{"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    }
)
_SMALL_WORDS = frozenset(
    {"a", "an", "the", "of", "on", "in", "at", "to", "for", "and", "or", "is", "are"}
)
_SECOND_LEVEL = frozenset({"ac", "co", "com", "edu", "gov", "net", "org"})


def _ascii(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()


def _site(domain: str) -> str:
    """Return a domain without ``www.`` and its public suffix, as letters and digits."""
    labels = _ascii(domain).removeprefix("www.").split(".")
    if len(labels) > 1 and not labels[-1].isdigit():
        labels.pop()
        if len(labels) > 1 and labels[-1] in _SECOND_LEVEL:
            labels.pop()
    return re.sub(r"[^a-z0-9]", "", "".join(labels))


def _keys(sources: list[SourceLike]) -> list[str]:
    """Return a key for each source: site, year, first telling word; letters tell twins apart."""
    keys: list[str] = []
    taken: set[str] = set()
    for source in sources:
        words = re.findall(r"[a-z0-9]+", _ascii(source.title))
        word = next((word for word in words if word not in _SMALL_WORDS), "")
        year = str(source.published.year) if source.published else ""
        base = f"{_site(source.domain)}{year}{word}"[:60]
        if not re.search("[a-z]", base):
            base = f"source{source.id}{base}"
        key, count = base, 1
        while key in taken:
            count += 1
            key = f"{base}{chr(96 + count)}" if count <= 26 else f"{base}-{count}"
        taken.add(key)
        keys.append(key)
    return keys


def _bibtex_url(url: str) -> str:
    # A verbatim field: no escapes are read in it. Not ASCII is what LaTeX engines stumble over.
    return quote(url, safe="%/:=&?~#+!$,;'@()*[]-._")


def to_bibtex(sources: Iterable[SourceLike], accessed: dt.date) -> str:
    r"""Return the sources as BibTeX ``@online`` entries (biblatex).

    Parameters
    ----------
    sources : iterable of SourceLike
        One entry each, in the order given.
    accessed : datetime.date
        When the pages were read (``urldate``).

    Returns
    -------
    str
        The entries, each ended by a line break, with a blank line between. Keys are site, year of
        publication and first telling word of the title; a letter tells the second of two equal
        ones apart.

    Examples
    --------
    >>> from ipyperplexity.sources import Source
    >>> page = Source(1, "The with & as", "https://docs.python.org/with_as", "docs.python.org",
    ...               dt.date(2025, 3, 2))
    >>> print(to_bibtex([page], dt.date(2026, 1, 5)), end="")
    @online{docspython2025with,
      title = {{The with \& as}},
      url = {https://docs.python.org/with_as},
      urldate = {2026-01-05},
      date = {2025-03-02},
      organization = {docs.python.org},
    }
    """
    pages = list(sources)
    entries = []
    for key, source in zip(_keys(pages), pages, strict=True):
        url = http_url(source.url)
        fields = {
            # The inner braces keep the capitals of a title in styles that lower them.
            "title": f"{{{title_of(source).translate(_LATEX)}}}",
            "url": None if url is None else _bibtex_url(url),
            "urldate": iso_date(accessed),
            "date": iso_date(source.published),
            "organization": one_line(source.domain).translate(_LATEX),
        }
        lines = [f"  {name} = {{{value}}},\n" for name, value in fields.items() if value]
        entries.append(f"@online{{{key},\n{''.join(lines)}}}\n")
    return "\n".join(entries)


def to_csl_json(sources: Iterable[SourceLike], accessed: dt.date) -> list[dict[str, Any]]:
    """Return the sources as CSL-JSON items of type ``webpage`` (Zotero, pandoc, Quarto).

    Parameters
    ----------
    sources : iterable of SourceLike
        One item each, in the order given.
    accessed : datetime.date
        When the pages were read.

    Returns
    -------
    list of dict
        Ready for ``json.dumps``. The ids are the keys of `to_bibtex`. A title is plain text, as
        the page gives it.

    Examples
    --------
    >>> from ipyperplexity.sources import Source
    >>> page = Source(1, "Dune", "https://d.example/dune", "d.example")
    >>> to_csl_json([page], dt.date(2026, 1, 5))[0]["accessed"]
    {'date-parts': [[2026, 1, 5]]}
    """
    pages = list(sources)
    items = []
    for key, source in zip(_keys(pages), pages, strict=True):
        fields = {
            "id": key,
            "type": "webpage",
            "title": title_of(source),
            "URL": http_url(source.url),
            "container-title": one_line(source.domain) or None,
            "issued": _date_parts(source.published),
            "accessed": _date_parts(accessed),
        }
        items.append({name: value for name, value in fields.items() if value is not None})
    return items


def _date_parts(day: dt.date | None) -> dict[str, list[list[int]]] | None:
    return None if day is None else {"date-parts": [[day.year, day.month, day.day]]}
