"""A list that is still growing: its finished items, kept apart from the one that grows.

Invariant: an item is an independent text, except for one thing: whether the list is loose (a blank
line anywhere between its items gives every item paragraphs). That is settled for all items at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .block import Block
from .live_inline import Inlines
from .markdown import block_html

if TYPE_CHECKING:
    from markdown_it.token import Token


class Items:
    """The first items of a list, whose last item is still in the text to come."""

    def __init__(self, opening: Token, closing: Token) -> None:
        self.source = ""
        self.html: str | None = ""
        self._opening, self._closing = opening, closing
        self._tokens: list[Token] = []
        self._loose = False
        self._shown_loose = False
        self._unresolved = False

    def continued_by(self, block: Block) -> bool:
        """Tell whether `block` is the rest of this list."""
        opening = block.tokens[0]
        return (
            block.first == 0
            and (opening.type, opening.markup) == (self._opening.type, self._opening.markup)
            and is_loose(block.tokens) is not None
        )

    def add(self, tokens: list[Token], loose: bool, source: str, inlines: Inlines) -> None:
        """Add finished items; `loose` is the state of the list that they came from."""
        self.source += source
        self._tokens += tokens
        self._loose |= loose
        if self.html is not None and self._loose == self._shown_loose:
            self.html += self._render(tokens, inlines)
        else:
            self.html = None

    def html_with(self, rest: Block, inlines: Inlines) -> str:
        """Return the HTML of the whole list."""
        loose = self._loose or bool(is_loose(rest.tokens))
        if self.html is None or loose != self._shown_loose:
            self._shown_loose, self._unresolved = loose, False
            self.html = self._render(self._tokens, inlines)
        inner = rest.tokens[1:-1]
        _set_loose(inner, loose)
        html = block_html(inner, inlines)
        inlines.unresolved |= self._unresolved
        ends = [block_html([token], inlines) for token in (self._opening, self._closing)]
        return f"{ends[0]}{self.html}{html}{ends[1]}"

    def joined(self, rest: Block) -> Block:
        """Return the whole list as one block."""
        tokens = [self._opening, *self._tokens, *rest.tokens[1:-1], self._closing]
        return Block(rest.kind, tokens, rest.first, rest.last)

    def _render(self, tokens: Sequence[Token], inlines: Inlines) -> str:
        before, inlines.unresolved = inlines.unresolved, False
        _set_loose(tokens, self._shown_loose)
        html = block_html(tokens, inlines)
        self._unresolved |= inlines.unresolved
        inlines.unresolved |= before
        return html


def is_loose(tokens: Sequence[Token]) -> bool | None:
    """Tell whether a list is loose; ``None`` if it has no paragraph to tell by."""
    for token in tokens:
        if token.type == "paragraph_open" and token.level == 2:
            return not token.hidden
    return None


def _set_loose(tokens: Sequence[Token], loose: bool) -> None:
    for token in tokens:
        if token.level == 2 and token.type in ("paragraph_open", "paragraph_close"):
            token.hidden = not loose
