"""The one Markdown parser: text to blocks, blocks to inline tokens, tokens back to text offsets.

Invariant: raw HTML, images and reference definitions are off, so a block never depends on another
block, and a text that grows never changes a block that a blank line has closed. Citation markers
and maths are inline rules here; whoever needs to know what is code, link or marker asks this
parser, and nobody scans the text a second way.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from .block import Block
from .links import http_url
from .markers import marker_at

BlockRule = Callable[[StateBlock, int, int, bool], bool]
InlineRule = Callable[[StateInline, bool], bool]

_NEWLINES = re.compile(r"\r\n?")
_UNUSABLE = re.compile("[\x00\ud800-\udfff]")
_MATH_CLOSERS = {"\\(": "\\)", "\\[": "\\]", "$$": "$$"}
# TeX that links, styles, loads, or redefines commands for the whole page has no place in an
# answer; maths that uses it stays text.
_MATH_UNSAFE = re.compile(
    r"\\(?:href|url|html|class|cssId|style|data|bbox|require|include|image|img|unicode|def|gdef"
    r"|edef|xdef|let|futurelet|newcommand|renewcommand|providecommand|newenvironment"
    r"|renewenvironment|DeclareMathOperator|csname|mmlToken|texttip|tooltip|toggle|action|char"
    r"|definecolor|verb|input|catcode|expandafter|special)",
    re.IGNORECASE,
)


def normalize(text: str) -> str:
    r"""Return `text` with every line ending as ``\n``, NUL and lone surrogates as U+FFFD."""
    return _UNUSABLE.sub("\ufffd", _NEWLINES.sub("\n", text))


def blocks(text: str) -> list[Block]:
    """Split a normalized text into its top-level blocks, inline content not yet parsed."""
    engine = _engine()
    tokens: list[Token] = []
    engine.block.parse(text, engine, {}, tokens)
    found = []
    begin = 0
    for index, token in enumerate(tokens):
        if token.level == 0 and token.nesting <= 0:
            opening = tokens[begin]
            first, last = opening.map or (0, 0)
            kind = opening.type.removesuffix("_open")
            found.append(Block(kind, tokens[begin : index + 1], first, last))
            begin = index + 1
    return found


def inline(content: str) -> list[Token]:
    """Parse the content of one paragraph, heading or table cell."""
    engine = _engine()
    return engine.inline.parse(content, engine, {}, [])


def located(text: str, *kinds: str) -> Iterator[tuple[Token, int, int]]:
    """Yield the inline tokens of these kinds, with their span in `text` (code points)."""
    for part in contents(text):
        for token in inline(part.content):
            if token.type in kinds:
                start, end = token.meta["span"]
                yield token, part.offset(start), part.offset(end - 1) + 1


@dataclass(frozen=True)
class Content:
    """The text of a paragraph, heading or cell, and where each of its lines lies.

    Attributes
    ----------
    kind : str
        ``paragraph``, ``heading`` or ``table``.
    content : str
        What the inline parser gets: indentation and block markers taken off.
    row : int
        First source line, counted from 0.
    """

    kind: str
    content: str
    row: int
    _lines: tuple[tuple[int, int], ...]
    _original: Callable[[int], int]
    _escaped_pipes: bool

    def offset(self, position: int) -> int:
        """Translate an offset in ``content`` to an offset in the text."""
        index = bisect_right(self._lines, position, key=lambda line: line[0]) - 1
        begin, source = self._lines[index]
        extra = self.content.count("|", begin, position) if self._escaped_pipes else 0
        return self._original(source + position - begin + extra)


def contents(text: str) -> Iterator[Content]:
    """Yield every piece of inline content of `text`, in order."""
    source = normalize(text)
    original = _offset_map(text)
    for block in blocks(source):
        row, cursor = -1, 0
        for token in block.tokens:
            if token.type != "inline":
                continue
            kind, starts = token.meta["kind"], token.meta["starts"]
            first = (token.map or [0])[0]
            if kind == "table":
                if first != row:
                    row, cursor = first, starts[0]
                # In a cell every pipe was written with a backslash, which is gone by now.
                cell = re.compile(re.escape(token.content).replace("\\|", "\\\\\\|"))
                match = cell.search(source, cursor)
                if match is None:  # pragma: no cover - the cell came from this very line
                    continue
                cursor = match.end()
                lines = [(0, match.start())]
            elif kind == "heading":
                lines = [(0, source.index(token.content, starts[0]) if token.content else 0)]
            else:
                begins = [0, *accumulate(len(s) + 1 for s in token.content.split("\n"))]
                lines = [
                    (begin + len(line) - len(line.lstrip(" \t")), start)
                    for begin, line, start in zip(
                        begins, token.content.split("\n"), starts, strict=False
                    )
                ]
            yield Content(kind, token.content, first, tuple(lines), original, kind == "table")


def _offset_map(text: str) -> Callable[[int], int]:
    """Return the function from offsets in the normalized text to offsets in `text`."""
    dropped = [m.start() for m in re.finditer(r"\r(?=\n)", text)]
    if not dropped:
        return lambda offset: offset
    # The k-th dropped character sits at dropped[k] - k of the normalized text.
    shifted = [position - k for k, position in enumerate(dropped)]
    return lambda offset: offset + bisect_right(shifted, offset - 1)


class _Engine(MarkdownIt):
    """The parser, with one rule for links: http and https, or it stays text."""

    def validateLink(self, url: str) -> bool:
        return http_url(url) is not None


@lru_cache(maxsize=1)
def _engine() -> _Engine:
    engine = _Engine("js-default", {"html": False, "linkify": False, "maxNesting": 40})
    engine.disable(["reference", "html_block", "html_inline"])
    block, span = engine.block.ruler, engine.inline.ruler
    interrupted = ["paragraph", "reference", "blockquote", "list"]
    block.before("fence", "math_block", _math_block, {"alt": interrupted})
    for rule in block.__rules__:
        if rule.name in ("paragraph", "heading", "lheading", "table"):
            kind = rule.name.removeprefix("l")
            block.at(rule.name, _with_starts(rule.fn, kind), {"alt": rule.alt})
    span.before("escape", "math", _math)
    span.after("image", "citation", _citation)
    for inline_rule in span.__rules__:
        if inline_rule.name in ("backticks", "link"):
            span.at(inline_rule.name, _with_span(inline_rule.fn))
    return engine


def _citation(state: StateInline, silent: bool) -> bool:
    # In silent mode a bracket is being weighed as part of a link label; were a marker to swallow
    # it there, "[see [1]](http://...)" would count as a link within a link.
    if silent or state.linkLevel or state.src[state.pos] != "[":
        return False
    marker = marker_at(state.src, state.pos, state.posMax)
    if marker is None:
        return False
    token = state.push("citation", "sup", 0)
    token.content = state.src[marker.start : marker.end]
    token.meta = {"marker": marker, "span": (marker.start, marker.end)}
    state.pos = marker.end
    return True


def _math(state: StateInline, silent: bool) -> bool:
    opener = state.src[state.pos : state.pos + 2]
    closer = _MATH_CLOSERS.get(opener)
    if closer is None:
        return False
    end = state.src.find(closer, state.pos + 2, state.posMax)
    body = state.src[state.pos + 2 : end]
    if end < 0 or not body.strip() or _MATH_UNSAFE.search(body):
        return False
    if not silent:
        token = state.push("math", "span", 0)
        token.content = opener + body + closer
        token.meta = {"span": (state.pos, end + 2)}
    state.pos = end + 2
    return True


def _math_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Display maths over several lines, which a list or heading rule would tear apart."""
    if state.is_code_block(start):
        return False
    begin = state.bMarks[start] + state.tShift[start]
    opener = state.src[begin : begin + 2]
    closer = _MATH_CLOSERS.get(opener)
    if closer is None or opener == "\\(" or closer in state.src[begin + 2 : state.eMarks[start]]:
        return False
    line = start + 1
    # TeX forbids blank lines in display maths, and that bounds the search.
    while line < end and not state.isEmpty(line) and state.sCount[line] >= state.blkIndent:
        text = state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].rstrip()
        if closer in text:
            break
        line += 1
    else:
        return False
    if not text.endswith(closer) or text.index(closer) != len(text) - 2:
        return False
    body = state.getLines(start, line + 1, state.blkIndent, False).strip()
    if _MATH_UNSAFE.search(body) or not body[2:-2].strip():
        return False
    if not silent:
        token = state.push("math_block", "div", 0)
        token.content = body
        token.map = [start, line + 1]
        state.line = line + 1
    return True


def _with_starts(rule: BlockRule, kind: str) -> BlockRule:
    """Let `rule` note on its inline tokens where their source lines begin."""

    def noting(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        before = len(state.tokens)
        if not rule(state, start, end, silent):
            return False
        if not silent:
            for token in state.tokens[before:]:
                if token.type == "inline":
                    first, last = token.map or (start, state.line)
                    token.meta["kind"] = kind
                    token.meta["starts"] = [
                        state.bMarks[line] + state.tShift[line] for line in range(first, last)
                    ]
        return True

    return noting


def _with_span(rule: InlineRule) -> InlineRule:
    """Let `rule` note on the token it makes which part of the content it took."""

    def noting(state: StateInline, silent: bool) -> bool:
        before, start = len(state.tokens), state.pos
        if not rule(state, silent):
            return False
        if not silent:
            for token in state.tokens[before:]:
                if token.type in ("code_inline", "link_open"):
                    token.meta["span"] = (start, state.pos)
                    break
        return True

    return noting
