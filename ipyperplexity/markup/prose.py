"""A Markdown text as prose: where its sentences are, and which parts are code.

Invariant: spans are code points in the text as received, come in order, and do not overlap; every
citation marker lies in the span of the sentence that it supports.
"""

from __future__ import annotations

import re

from .markers import MARKER

# After one of these a full stop does not end a sentence.
_ABBREVIATIONS = re.compile(
    r"dr|mrs?|ms|prof|st|jr|sr|vs|etc|approx|dept|est|figs?|nos?|vol|pp|eds?|al|cf|ca|inc|ltd|co"
    r"|corp|gen|gov|sen|rep|rev|hon|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|e\.g|i\.e|a\.m"
    r"|p\.m|u\.s|u\.k|u\.n|e\.u|ph\.d|d\.c|b\.c|a\.d|n\.b",
    re.IGNORECASE,
)
# "Acme Inc. The" and "in the U.S. It" end a sentence, "Dr. The" does not.
_MAY_END = re.compile(
    r"etc|inc|ltd|co|corp|a\.m|p\.m|u\.s|u\.k|u\.n|e\.u|ph\.d|d\.c|b\.c|a\.d|al|jr|sr",
    re.IGNORECASE,
)
_STARTERS = re.compile(
    r"the|an?|its?|this|that|these|those|s?he|they|we|[io]n|at|for|from|however|but|and|as|by"
    r"|with|while|when|if|there|according",
    re.IGNORECASE,
)
_CLOSERS = "[\"')\\]}\u201d\u2019*_~`\u00bb]*"
_END = re.compile(
    rf"(?P<stop>[.!?\u2026]+){_CLOSERS}(?P<marks>(?:[ ]?{MARKER})*){_CLOSERS}(?=\s|$)"
    rf"|[\u3002\uff01\uff1f]+[\u300d\u300f\u201d\uff09]*(?:[ ]?{MARKER})*"
    rf"|[.!?]+(?:{MARKER})+(?=[^\W\d_])"
)
_WORD_BEFORE = re.compile(r"(?:^|[\s(\[\"'\u201c*_])((?:\w\.)*\w+)$")
_NEXT_WORD = re.compile(r"\s+[\"'(\[*_\u201c]*(\w*)")


def mask_code(text: str, fill: str = " ") -> str:
    """Return `text` with all code replaced by `fill`, character for character.

    Code means fenced and indented blocks and code spans, with their delimiters; line ends stay.

    Examples
    --------
    >>> mask_code("Use `a[1]` now.", "x")
    'Use xxxxxx now.'
    """
    from .parser import blocks, located, normalize

    chars = list(text)

    def mask(start: int, end: int) -> None:
        for index in range(start, end):
            if chars[index] not in "\r\n":
                chars[index] = fill

    ends = [0, *(m.end() for m in re.finditer(r"\r\n?|\n", text)), len(text)]
    for block in blocks(normalize(text)):
        for token in block.tokens:
            if token.type in ("fence", "code_block") and token.map:
                first, last = token.map
                mask(ends[min(first, len(ends) - 1)], ends[min(last, len(ends) - 1)])
    for _, start, end in located(text, "code_inline"):
        mask(start, end)
    return "".join(chars)


def sentences(text: str) -> list[tuple[int, int]]:
    """Return the spans of the sentences of a Markdown text.

    A heading, a list item's lines and a table row are units of their own; a paragraph is cut where
    a sentence ends. Decimals, abbreviations, initials, code spans and links are not cut. Markers
    right after the end belong to the sentence before.

    Parameters
    ----------
    text : str
        The answer's text, as received.

    Returns
    -------
    list of (int, int)
        Half-open spans in code points, without surrounding blanks. Code blocks have none.

    Examples
    --------
    >>> text = "It is tall.[1] It cost $3.5 million, e.g. in 1990."
    >>> [text[a:b] for a, b in sentences(text)]
    ['It is tall.[1]', 'It cost $3.5 million, e.g. in 1990.']
    """
    from .parser import contents, inline

    spans: list[tuple[int, int]] = []
    row = -1
    for part in contents(text):
        if not part.content:
            continue
        if part.kind == "table":
            start, end = part.offset(0), part.offset(len(part.content) - 1) + 1
            if part.row == row:
                spans[-1] = (spans[-1][0], end)
            else:
                spans.append((start, end))
            row = part.row
            continue
        held = [
            t.meta["span"]
            for t in inline(part.content)
            if "span" in t.meta and t.type != "citation"
        ]
        begin = 0
        for cut in [*_cuts(part.content, held), len(part.content)]:
            inner = part.content[begin:cut]
            if inner.strip():
                start = begin + len(inner) - len(inner.lstrip())
                end = begin + len(inner.rstrip())
                spans.append((part.offset(start), part.offset(end - 1) + 1))
            begin = cut
    return spans


def _cuts(content: str, held: list[tuple[int, int]]) -> list[int]:
    """Return the offsets at which sentences end, none inside the `held` spans."""
    cuts = []
    for match in _END.finditer(content):
        if any(start < match.end() and match.start() < end for start, end in held):
            continue
        if match["stop"] == "." and _goes_on(content, match):
            continue
        cuts.append(match.end())
    return cuts


def _goes_on(content: str, match: re.Match[str]) -> bool:
    """Whether a sentence goes on after this stop: ``Dr. Smith``, ``in the U.S.[1] in 2020``."""
    word = _WORD_BEFORE.search(content, max(0, match.start() - 24), match.start())
    following = _NEXT_WORD.match(content, match.end())
    after = following[1] if following else ""
    marked = bool(match["marks"])
    if after[:1].islower():
        return True
    if word is None or (marked and not after):
        return False
    name = word[1]
    # Nobody puts a marker into the middle of a name or after the number of a line.
    if not marked and len(name) == 1 and name.isalpha() and name.isupper():
        return True  # an initial: J. Smith
    if not marked and name.isdigit() and not content[: word.start(1)].rpartition("\n")[2].strip():
        return True  # a number that opens the line: 1. Smith
    if not _ABBREVIATIONS.fullmatch(name):
        return False
    starts_anew = after[:1].isupper() if marked else bool(_STARTERS.fullmatch(after))
    return not (_MAY_END.fullmatch(name) and starts_anew)
