"""Remarks of this package on the screen: a line each, without a place in our code.

Python shows a warning with the file and the line that gave it, and of the same text only the first.
Of a remark about a cell neither tells its reader anything.
"""

from __future__ import annotations

import warnings
from typing import Any

from ipyperplexity.errors import PerplexityWarning

_OTHERS = "_ipyperplexity_others"


def remark(text: str) -> None:
    """Give a warning that is shown whenever it is given."""
    # Without a registry there is no memory of what has been shown.
    warnings.warn_explicit(text, PerplexityWarning, "ipyperplexity", 1)


def register() -> None:
    """Have our warnings shown as a line each; others stay as they are."""
    others = warnings.formatwarning

    def formatwarning(
        message: Any, category: type[Warning], filename: str, lineno: int, line: str | None = None
    ) -> str:
        if not issubclass(category, PerplexityWarning):
            return others(message, category, filename, lineno, line)
        from ipyperplexity.markup import terminal

        text = " ".join(terminal.strip_controls(str(message)).split())
        return f"{category.__name__}: {text}\n"

    setattr(formatwarning, _OTHERS, others)
    warnings.formatwarning = formatwarning


def unregister() -> None:
    """Leave nothing behind."""
    others = getattr(warnings.formatwarning, _OTHERS, None)
    if others is not None:  # else somebody else has put theirs in its place
        warnings.formatwarning = others
