"""What a half-written Markdown text is about to become, so that the page does not flicker.

Invariant: only the last block is touched, and only for display. It is a guess, never a parse: a
wrong guess lasts until the next piece of text arrives, and the finished text never comes here.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})(.*)$")
# A line of these alone may become a list item, a heading, a rule, a fence, a table ...
_FRAGMENT = re.compile(r"[ \t>]*(?:[-+=#>~`_*|:]+|\d{1,9}[.)]?)?[ \t]*")
_BLOCK_START = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)]|#{1,6})[ \t]+")
_DELIMITER_ROW = re.compile(r"\|?[ \t:|-]*")
_CODE_OR_ESCAPE = re.compile(r"\\.|(`+)(?:(?!`).|(?!\1(?!`))`)*?(?<!`)\1(?!`)", re.DOTALL)
_HALF_MARKER = re.compile(r"\[(?:\d[\d, \u2013-]*|w|we|web|web:\d*)?$")
_HALF_LINK = re.compile(r"!?\[([^\[\]\n]+)\]\([^()\n]*$|!?\[([^\[\]\n]{1,200})$|!$")
_HALF_URL = re.compile(r"<https?:[^\s<>]*$")
# How far back (code points) a half-written link may begin.
_REACH = 600
_STARS = re.compile(r"\*+|~~")


def preview(text: str) -> str:
    """Return `text` with its last, half-written construct completed or held back."""
    lines = text.split("\n")
    fence = _open_fence(lines)
    if fence:
        # Part of the closing fence is not code.
        half = len(lines) > fence[1] + 1 and set(lines[-1].strip()) == {fence[0]}
        return "\n".join(lines[:-1]) if half else text
    if lines[-1] and _FRAGMENT.fullmatch(lines[-1]):
        lines[-1] = ""
        text = "\n".join(lines)
    start = len(lines)
    while start and lines[start - 1].strip():
        start -= 1
    if start == len(lines) and len(lines) > 1 and not lines[-1]:
        start -= 1
        while start and lines[start - 1].strip():
            start -= 1
    last = lines[start:]
    if last and last[0].lstrip().startswith("|"):
        return "\n".join([*lines[:start], *_table(last)])
    while start < len(lines) - 1 and not _BLOCK_START.match(lines[-1]):
        lines[-2:] = [lines[-2] + "\n" + lines[-1]]
    return "\n".join([*lines[:-1], _spans(lines[-1])])


def _open_fence(lines: list[str]) -> tuple[str, int] | None:
    """Return the fence character and line number of a fence that is still open."""
    fence: tuple[str, int] | None = None
    size = 0
    for number, line in enumerate(lines):
        match = _FENCE.match(line)
        if match is None:
            continue
        mark, info = match[1], match[2]
        if fence is None:
            if mark[0] == "~" or "`" not in info:
                fence, size = (mark[0], number), len(mark)
        elif mark[0] == fence[0] and len(mark) >= size and not info.strip():
            fence = None
    return fence


def _table(lines: list[str]) -> list[str]:
    """Complete the delimiter row, without which a table is a paragraph of pipes."""
    if len(lines) > 2 and lines[2]:
        return lines
    header = lines[0].rstrip()
    if len(lines) > 1 and not _DELIMITER_ROW.fullmatch(lines[1]):
        return lines
    columns = max(1, len(re.findall(r"(?<!\\)\|", header.rstrip("|"))))
    if len(lines) > 1 and lines[1].count("-") and lines[1].rstrip().count("|") > columns:
        return lines
    if header.strip() == "|":
        return []
    return [header.rstrip("|") + "|", "|" + "---|" * columns, ""]


def _spans(text: str) -> str:
    """Close what is open in the last paragraph."""
    if len(text) > 2 * _REACH:
        cut = text.rfind(" ", 0, len(text) - _REACH)
        if cut > 0 and text.count("`", 0, cut) % 2 == 0:
            return text[:cut] + _spans(text[cut:])
    bare = text
    if "`" in text or "\\" in text:
        bare = _CODE_OR_ESCAPE.sub(lambda m: "x" * len(m[0]), text)
    tick = bare.find("`")
    if tick >= 0:
        run = re.match(r"`+", text[tick:])
        body = text[tick:].lstrip("`")
        return text + run[0] if run and body.strip() and not body.endswith("`") else text[:tick]
    for pattern in (_HALF_MARKER, _HALF_URL):
        match = pattern.search(bare, max(0, len(bare) - _REACH))
        if match:
            text, bare = text[: match.start()], bare[: match.start()]
    match = _HALF_LINK.search(bare, max(0, len(bare) - _REACH))
    if match:
        group = 1 if match[1] else 2
        label = text[slice(*match.span(group))] if match[group] else ""
        text, bare = text[: match.start()] + label, bare[: match.start()] + (match[group] or "")
    return _emphasis(text, bare)


def _emphasis(text: str, bare: str) -> str:
    if "*" not in bare and "~~" not in bare:
        return text
    open_runs: list[str] = []
    for match in _STARS.finditer(bare):
        run = match[0]
        before = bare[match.start() - 1 : match.start()]
        after = bare[match.end() : match.end() + 1]
        if not after and (not before or before.isspace() or before in "([\"'"):
            # An opener with nothing in it yet.
            text = text[: match.start()]
        elif not after and open_runs and open_runs[-1] != run and open_runs[-1].startswith(run):
            text = text[: match.start()]
        elif before and not before.isspace() and open_runs and run == open_runs[-1]:
            open_runs.pop()
        elif after and not after.isspace() and (not before or not before.isalnum()):
            open_runs.append(run)
    if not open_runs:
        return text
    return text.rstrip() + "".join(reversed(open_runs))
