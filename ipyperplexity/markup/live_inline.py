"""The inline content of a text that is still arriving, without parsing a paragraph twice.

Invariant: a paragraph is cut only where nothing is pending, so that the HTML of its parts is the
HTML of the whole; and nothing is remembered that the last two rounds did not use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .links import Resolve
from .markdown import Html, inline_html, tokens_html

# A paragraph is cut once this many characters (code points) follow the last cut.
_PIECE = 160
# At such a blank nothing is pending: no line break, no code after a marker ("[1] = 5").
_CUT = re.compile(r"(?<=\S) (?=[^\W_])")
# Left over as plain text, each of these may still find its other half.
_PENDING = re.compile(r"[*_`\[]|~~|\$\$")


@dataclass(frozen=True)
class _Prefix:
    """The part of a growing paragraph that is rendered for good."""

    text: str = ""
    html: str = ""
    unresolved: bool = False

    def begins(self, content: str) -> bool:
        size = len(self.text)
        return content.startswith(self.text) and (size == 0 or bool(_CUT.match(content, size)))


class Inlines:
    """Renders inline content, remembering the last round's results and the growing paragraph."""

    def __init__(self, resolve: Resolve) -> None:
        self.unresolved = False
        self._resolve = resolve
        self._known: dict[str, Html] = {}
        self._previous: dict[str, Html] = {}
        self._prefix = _Prefix()
        self._try_at = _PIECE

    def next_round(self) -> None:
        """Forget what was last used two rounds ago."""
        self._previous, self._known = self._known, {}

    def __call__(self, content: str) -> str:
        html = self._known.get(content) or self._previous.get(content) or self._render(content)
        self._known[content] = html
        self.unresolved |= html[1]
        return html[0]

    def _render(self, content: str) -> Html:
        if len(content) <= _PIECE:
            return inline_html(content, self._resolve)
        prefix = self._prefix if self._prefix.begins(content) else _Prefix()
        rest = content[len(prefix.text) :]
        if prefix.text != self._prefix.text:
            self._try_at = _PIECE
        if len(rest) >= self._try_at:
            grown = self._grow(prefix, rest)
            self._try_at = _PIECE if grown is not prefix else len(rest) + _PIECE
            self._prefix = prefix = grown
            rest = content[len(prefix.text) :]
        html, unresolved = inline_html(rest, self._resolve)
        return prefix.html + html, prefix.unresolved or unresolved

    def _grow(self, prefix: _Prefix, rest: str) -> _Prefix:
        """Extend `prefix` to the last safe cut in `rest`, if there is one."""
        from .parser import inline

        cuts = [match.start() for match in _CUT.finditer(rest, 1)]
        if not cuts:
            return prefix
        piece = rest[: cuts[-1]]
        if "\\" in piece:
            return prefix
        tokens = inline(piece)
        if any(t.type == "text" and _PENDING.search(t.content) for t in tokens):
            return prefix
        html, unresolved = tokens_html(tokens, self._resolve)
        return _Prefix(prefix.text + piece, prefix.html + html, prefix.unresolved or unresolved)
