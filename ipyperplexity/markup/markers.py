"""The grammar of citation markers: ``[1]``, ``[1][3]``, ``[1, 3]``, ``[1-3]``, ``[web:0]``.

Invariant: what is a marker is decided by :func:`marker_at` alone. The Markdown parser calls it as
one of its inline rules, so :func:`find_markers` and the rendered page can never disagree: code,
link texts, image texts and maths never reach the rule.

A number in brackets is *not* a marker when

* any id is 0 or above 999 (``[2024]``), or a range falls or spans more than 50 ids;
* ``(`` follows: it is, or is about to become, a Markdown link;
* it follows a lone ``!`` (image syntax), whereas ``Great![1]`` is a marker;
* it indexes something that looks like code: a name with ``_`` inside, with ``$`` or ``@`` before,
  a dotted lower-case name (``a.b[1]``; ``example.com[1]`` and ``p.m.[1]`` are prose), camelCase
  (``rowData[1]``; ``iPhone[1]`` and ``macOS[1]`` are prose), lower-case letters and digits
  (``arr2[0]``; ``Q3[1]``, ``1990s[1]`` and ``v2[1]`` are prose), one of the letters that stand
  for a variable (``x[0]``; units such as ``5 m[1]`` are prose), a usual variable name (``arr``),
  a call (``f()[1]``), or any name when ``=`` or ``.name`` follows (``total[1] = 5``).

Reference links are switched off, so in ``[text][1]`` the ``[1]`` is a marker, and a line
``[1]: http://...`` defines nothing: it shows marker 1 and text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_ID = 999
MAX_SPAN = 50
# A run of markers is looked at as one, so that x[1][2] is code as a whole; the bound keeps a
# hostile run of ten thousand from costing quadratic time.
_MAX_RUN = 20
_MAX_NAME = 64

_ID = r"[1-9]\d{0,2}"
_IDS = rf"{_ID}(?: ?[,\-\u2013] ?{_ID}){{0,49}}"
#: The shape of a marker, as a piece of a pattern; :func:`marker_at` decides whether it is one.
MARKER = rf"\[(?:web:(?:0|{_ID})|{_IDS})\]"
_MARKER = re.compile(rf"\[(?:web:(?P<web>0|{_ID})|(?P<ids>{_IDS}))\]", re.ASCII)
_RANGE = re.compile(r" ?[-\u2013] ?")

_NAME = re.compile(r"[$@]?[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*", re.ASCII)
_OPERATORS = re.compile(r"[=+*/<>(,|&;:{\[]")
_CODE_AFTER = re.compile(r" ?[-+*/]?=|\.[a-z_]")
_CODE_SHAPES = re.compile(
    r"""[$@].+                           # $row, @list
    | .*[A-Za-z0-9]_+[A-Za-z0-9].*       # foo_bar
    | (?!v\d)[a-z]+\d+                   # arr2, but not v2
    | [a-z]{2,}(?:[A-Z][a-z]{2,})+\d*    # rowData, but neither iPhone nor macOS
    | [a-cijknp-rx-z]                    # x, i, but neither m nor h: those are units
    """,
    re.VERBOSE,
)
_CODE_NAMES = re.compile(r"arr|argv|k?w?args|buf|df|idx|lst|nums|ptr|res|ret|tmp|tup|vec|xs|ys")
_DOTTED_PROSE = re.compile(
    r"e\.g|i\.e|a\.m|p\.m|n\.b|.*\.(?:com|org|net|gov|edu|mil|int|info|biz|dev|app|news|wiki|html?"
    r"|pdf|csv|xml|json)"
)


@dataclass(frozen=True)
class Marker:
    """One citation marker in an answer's text.

    Attributes
    ----------
    start, end : int
        Half-open span in code points: ``text[start:end]`` is the marker with its brackets.
    ids : tuple of int
        The source ids it names, ranges expanded; empty for ``[web:N]``.
    web : int or None
        N of ``[web:N]``, counted from 0.
    """

    start: int
    end: int
    ids: tuple[int, ...]
    web: int | None = None


def marker_at(text: str, start: int, end: int | None = None) -> Marker | None:
    """Return the marker that begins at ``text[start]``, if there is one.

    The decision looks at the word before, back to the nearest blank, and at what follows; it
    knows nothing of code spans and links, which the Markdown parser handles before it asks.

    Examples
    --------
    >>> marker_at("tall.[1-3]", 5).ids
    (1, 2, 3)
    >>> marker_at("x[1]", 1) is None
    True
    """
    stop = len(text) if end is None else end
    match = _MARKER.match(text, start, stop)
    if match is None or text.startswith("(", match.end()):
        return None
    web = match["web"]
    ids = () if web else _ids(match["ids"])
    if not web and not ids:
        return None
    if _indexes_code(text, start, match.end()):
        return None
    return Marker(start, match.end(), ids, int(web) if web else None)


def find_markers(text: str) -> list[Marker]:
    """Return every citation marker of a Markdown text, in order.

    Parameters
    ----------
    text : str
        The answer's text, as received.

    Returns
    -------
    list of Marker
        Offsets are code points in `text` itself.

    Examples
    --------
    >>> [m.ids for m in find_markers("It is `a[1]` and [1][3].")]
    [(1,), (3,)]
    """
    if _MARKER.search(text) is None:
        return []
    from . import parser

    return [
        Marker(start, end, token.meta["marker"].ids, token.meta["marker"].web)
        for token, start, end in parser.located(text, "citation")
    ]


def sentences(text: str) -> list[tuple[int, int]]:
    """Return the spans of the sentences of a text; see :func:`ipyperplexity.markup.prose`."""
    from . import prose

    return prose.sentences(text)


def _ids(inner: str) -> tuple[int, ...]:
    """Expand ``1, 3-5`` to ids; empty if any part is out of bounds."""
    ids: dict[int, None] = {}
    for part in inner.split(","):
        ends = [int(n) for n in _RANGE.split(part.strip())]
        first, last = ends[0], ends[-1]
        if len(ends) > 2 or (len(ends) == 2 and not first < last < first + MAX_SPAN):
            return ()
        ids.update(dict.fromkeys(range(first, last + 1)))
    return tuple(ids) if len(ids) <= MAX_SPAN else ()


def _indexes_code(text: str, start: int, end: int) -> bool:
    """Tell whether the run of brackets around ``text[start:end]`` indexes a piece of code."""
    for _ in range(_MAX_RUN):
        opening = text.rfind("[", max(0, start - 16), start) if text[:start].endswith("]") else -1
        if opening < 0 or not _MARKER.fullmatch(text, opening, start):
            break
        start = opening
    for _ in range(_MAX_RUN):
        following = _MARKER.match(text, end)
        if following is None:
            break
        end = following.end()

    word = re.split(r"\s", text[max(0, start - _MAX_NAME) : start])[-1]
    if word == "!" or word.endswith("()"):
        return True
    name = _OPERATORS.split(word.strip("*_~\"'\u201c\u2018"))[-1]
    if not _NAME.fullmatch(name):
        return False
    if _CODE_NAMES.fullmatch(name) or _CODE_SHAPES.fullmatch(name):
        return True
    if _CODE_AFTER.match(text, end):
        return True
    tail = name.rpartition(".")[2]
    # A two-letter ending is a country (bbc.co.uk) or a library (node.js), seldom an attribute.
    return "." in name and name.islower() and len(tail) != 2 and not _DOTTED_PROSE.fullmatch(name)
