"""A top-level block of Markdown, apart from the parser so that naming it loads no parser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.token import Token


@dataclass(frozen=True)
class Block:
    """One top-level block.

    Attributes
    ----------
    kind : str
        The parser's name for it: ``paragraph``, ``fence``, ``bullet_list`` ...
    tokens : sequence of Token
        Its tokens; inline content not yet parsed.
    first, last : int
        Half-open span of source lines, counted from 0.
    """

    kind: str
    tokens: Sequence[Token]
    first: int
    last: int
