"""A question on a line may end in ``?``, although IPython takes such a line for a call of help.

Without this, ``%perplexity What is a lambda?`` shows the help of ``lambda`` and asks nothing. Only
``%perplexity?`` itself stays a call of help. Works on tokens, so text inside strings is left alone.
"""

from __future__ import annotations

import tokenize
from typing import Any

from IPython.core.inputtransformer2 import EscapedCommand, MagicAssign, TokenTransformBase

NAME = "perplexity"


class QuestionLine(TokenTransformBase):
    """Turns ``%perplexity ...`` and ``name = %perplexity ...`` into calls, before help can."""

    priority = 1  # IPython's HelpEnd has 5, all others 10

    def __init__(self, start: tuple[int, int], magic: tuple[int, int], assigned: bool) -> None:
        super().__init__(start)  # type: ignore[no-untyped-call, unused-ignore]
        plain: Any = MagicAssign if assigned else EscapedCommand
        self._plain = plain(magic)

    @classmethod
    def find(cls, tokens_by_line: list[list[tokenize.TokenInfo]]) -> QuestionLine | None:
        """Return the first of our lines, if there is one."""
        for line in tokens_by_line:
            words = [token for token in line if token.type not in _LAYOUT]
            at = _magic_at(words)
            if at is not None:
                return cls(words[0].start, words[at].start, assigned=at > 0)
        return None

    def transform(self, lines: list[str]) -> list[str]:
        """Do what IPython does with a magic on a line."""
        transformed: list[str] = self._plain.transform(lines)
        return transformed


_LAYOUT = {tokenize.INDENT, tokenize.DEDENT, tokenize.NL, tokenize.COMMENT, tokenize.ENCODING}


def _magic_at(words: list[tokenize.TokenInfo]) -> int | None:
    """Return the position of our ``%``: at the start of a line, or after its first ``=``."""
    strings = [word.string for word in words]
    at = 0
    if strings[:1] != ["%"]:
        if "=" not in strings:
            return None
        at = strings.index("=") + 1
    if strings[at : at + 2] != ["%", NAME] or words[at].end != words[at + 1].start:
        return None
    rest = words[at + 2 : at + 3]
    is_help = bool(rest) and rest[0].string == "?" and rest[0].start == words[at + 1].end
    return None if is_help else at


def register(shell: Any) -> None:
    """Have the shell read our lines so."""
    shell.input_transformer_manager.token_transformers.append(QuestionLine)


def unregister(shell: Any) -> None:
    """Leave nothing behind."""
    transformers = shell.input_transformer_manager.token_transformers
    # By name, not by identity: after %autoreload the class is another one.
    transformers[:] = [kind for kind in transformers if kind.__name__ != QuestionLine.__name__]
