"""Markdown that is still arriving, as HTML at any moment, at the cost of a few renderings.

Invariant: fed in any pieces, ``finish()`` gives the very HTML that ``markdown.render`` gives for
the whole text. Two kinds of work are never repeated: a top-level block that nothing can change any
more is rendered once, and of a growing paragraph only the part after its last safe cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .block import Block
from .links import Resolve
from .live_inline import Inlines
from .live_list import Items, is_loose
from .markdown import block_html
from .preview import preview

if TYPE_CHECKING:
    pass


# A list item for sure: neither "-" (a heading underline?) nor "- -" (a rule?).
_ITEM = re.compile(r" {0,3}(?:[-+*]|\d{1,9}[.)])[ \t]+[^\n]*[^\W_]")
# So many characters of a line (code points) show what kind of line it is.
_DECISIVE = 12
# A line that can only be a paragraph, which saves asking the block parser.
_PLAIN_LINE = re.compile(r"[^\W\d_][^\n]*")
_MATH_OPENER = re.compile(r"\$\$|\\\[")
_OPEN_ENDED = frozenset({"bullet_list", "ordered_list", "code_block"})
_UNDECIDED = frozenset(" \t-+*0123456789")


@dataclass
class _Settled:
    block: Block
    html: str
    unresolved: bool


class LiveMarkdown:
    r"""Markdown that is still arriving.

    While the text is incomplete, a half-written construct is shown as what it is about to become
    (``**bo`` is bold, ``| a |`` a table); after :meth:`finish` the HTML is that of
    :func:`~ipyperplexity.markup.markdown.render`.

    Parameters
    ----------
    resolve : Resolve
        Finds the source of a marker; see :meth:`ipyperplexity.sources.Sources.resolve`.

    Examples
    --------
    >>> live = LiveMarkdown(lambda id, web=None: None)
    >>> live.append("Some **bo")
    >>> live.html()
    '<p>Some <strong>bo</strong></p>\n'
    >>> live.append("ld**.")
    >>> live.finish()
    '<p>Some <strong>bold</strong>.</p>\n'
    """

    def __init__(self, resolve: Resolve) -> None:
        self._inlines = Inlines(resolve)
        self._settled: list[_Settled] = []
        self._settled_html = ""
        self._tail = ""
        self._items: Items | None = None
        self._examined = 0
        self._may_open = True
        self._finished = False

    def append(self, delta: str) -> None:
        """Add a piece of text; cheap, the work is done in :meth:`html`."""
        self._tail += delta

    def update(self, resolve: Resolve) -> None:
        """Use a new set of sources; kept blocks with unresolved markers are rendered again."""
        self._inlines = Inlines(resolve)
        for index, kept in enumerate(self._settled):
            if kept.unresolved:
                self._settled[index] = self._rendered(kept.block)
        self._settled_html = "".join(kept.html for kept in self._settled)
        if self._items is not None:
            self._items.html = None

    def html(self) -> str:
        """Return the HTML of all the text so far."""
        from .parser import normalize

        if self._finished:
            return self._settled_html
        # A "\r" at the very end may be the first half of a line ending.
        half = "\r" if self._tail.endswith("\r") else ""
        self._tail = normalize(self._tail.removesuffix("\r"))
        found = self._advance() if self._may_settle() else None
        shown = preview(self._tail)
        self._inlines.next_round()
        if _PLAIN_LINE.fullmatch(shown) and self._items is None:
            html = f"<p>{self._inlines(shown.strip())}</p>\n"
        else:
            if found is None or shown != self._tail:
                found = self._blocks(shown)
            html = "".join(self._html(block) for block in found)
        self._tail += half
        return self._settled_html + html

    def finish(self) -> str:
        """Take the text as complete and return its HTML; :meth:`html` then gives the same."""
        from .parser import normalize

        if not self._finished:
            self._tail = normalize(self._tail)
            self._keep(self._blocks(self._tail))
            self._tail, self._finished = "", True
        return self._settled_html

    def _may_settle(self) -> bool:
        """Tell whether looking for settled blocks is worth it: a line ended, or has just begun."""
        line_start = self._tail.rfind("\n") + 1
        return line_start > 0 and self._examined < line_start + _DECISIVE

    def _advance(self) -> list[Block] | None:
        """Settle what can be settled; return the blocks of the tail if it was left as it is."""
        found = self._blocks(self._tail)
        lines = self._tail.split("\n")
        boundary = _settled_lines(found, lines)
        if boundary:
            self._keep([block for block in found if block.first < boundary])
            self._tail = "\n".join(lines[boundary:])
            self._examined = 0
            return None
        if self._may_open and len(found) == 1:
            row = self._set_items_aside(found[0], lines)
            if row:
                self._tail = "\n".join(lines[row:])
                self._examined = 0
                return None
        self._examined = len(self._tail)
        return found

    def _blocks(self, text: str) -> list[Block]:
        """Parse `text`, which may go on with the list whose first items are set aside."""
        from .parser import blocks

        found = blocks(text)
        items = self._items
        if items is None or (found and items.continued_by(found[0])):
            return found
        # It reads otherwise without its first items: put them back, and leave this list whole.
        self._items, self._may_open = None, False
        text = items.source + text
        self._tail = items.source + self._tail
        self._examined = 0
        return blocks(text)

    def _set_items_aside(self, block: Block, lines: list[str]) -> int:
        """Keep all items of a list but the last; return the line on which that one begins."""
        if block.kind not in ("bullet_list", "ordered_list") or block.first:
            return 0
        tokens = list(block.tokens)
        last = max(i for i, t in enumerate(tokens) if t.type == "list_item_open" and t.level == 1)
        row = (tokens[last].map or [0])[0]
        if row == 0 or any(lines[row + 1 :]) or not _ITEM.match(lines[row]):
            return 0
        loose = is_loose(tokens)
        if loose is None:
            return 0
        source = "\n".join(lines[:row]) + "\n"
        if self._items is None:
            self._items = Items(tokens[0], tokens[-1])
        self._items.add(tokens[1:last], loose, source, self._inlines)
        return row

    def _keep(self, found: Sequence[Block]) -> None:
        new = [self._settle(block) for block in found]
        self._settled += new
        self._settled_html += "".join(kept.html for kept in new)
        self._may_open = True

    def _settle(self, block: Block) -> _Settled:
        items = self._items
        if items is None or block.first:
            return self._rendered(block)
        self._items = None
        self._inlines.unresolved = False
        html = items.html_with(block, self._inlines)
        return _Settled(items.joined(block), html, self._inlines.unresolved)

    def _rendered(self, block: Block) -> _Settled:
        self._inlines.unresolved = False
        html = block_html(block.tokens, self._inlines)
        return _Settled(block, html, self._inlines.unresolved)

    def _html(self, block: Block) -> str:
        if self._items is not None and block.first == 0:
            return self._items.html_with(block, self._inlines)
        return block_html(block.tokens, self._inlines)


def _settled_lines(found: Sequence[Block], lines: Sequence[str]) -> int:
    """Return how many lines, from the top, no further text can change.

    A complete blank line ends every block but a list and indented code. Those, and blocks with no
    blank line after them, end when a line of another block follows that is complete. The one rule
    that looks further ahead is multi-line maths, and a blank line bounds it.
    """
    complete = len(lines) - 1
    boundary = 0
    for index, block in enumerate(found):
        follower = found[index + 1] if index + 1 < len(found) else None
        first = follower.first if follower else complete
        if not block.first < first <= complete:
            break
        blank = not lines[first - 1].strip(" \t")
        if follower is None:
            final = blank and block.last < first and block.kind not in _OPEN_ENDED
        elif blank and block.kind not in _OPEN_ENDED:
            final = True
        elif first < complete:
            final = blank or _interrupted(block, follower, lines)
        else:
            final = blank and lines[first][:1] not in _UNDECIDED
        if not final:
            break
        boundary = first
    return boundary


def _interrupted(block: Block, follower: Block, lines: Sequence[str]) -> bool:
    """Tell whether `follower` ends `block` for good, although no blank line is between them."""
    if follower.kind == "math_block" and follower.last >= len(lines):
        return False
    return not any(_MATH_OPENER.search(line) for line in lines[block.first : follower.first])
