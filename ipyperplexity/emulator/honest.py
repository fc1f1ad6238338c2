"""What the engine says when it cannot answer, or not in full.

Invariant: none of it has a citation marker, and all of it says that this is the demo.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["NO_PICTURES", "nothing_allowed", "nothing_found", "nothing_more", "nothing_on"]

_DEMO = (
    "This is the offline demo: it can only answer from that text, and it does not search the web."
)
NO_PICTURES = (
    "This offline demo cannot see pictures: what follows goes by the words of the question alone."
)


def nothing_found(corpus: str, reason: str = "", detail: str = "") -> str:
    """Return the honest answer of a corpus that has nothing on the question.

    Parameters
    ----------
    corpus
        Its name.
    reason
        What nothing there does: ``"that fits the filters"``.
    detail
        A sentence on why.
    """
    what = f"nothing {reason}" if reason else "nothing on this question"
    return " ".join(filter(None, (f"I found {what} in {corpus}.", detail, _DEMO)))


def nothing_on(words: Sequence[str], corpus: str, topic: Sequence[str] = ()) -> str:
    """Return the honest answer to a follow-up on words that the corpus does not know."""
    before = f"The question before was about {_quoted([' '.join(topic)])}." if topic else ""
    return " ".join(
        filter(None, (f"I found nothing on {_quoted(words)} in {corpus}.", before, _DEMO))
    )


def nothing_more(corpus: str, topic: Sequence[str] = ()) -> str:
    """Return the honest answer when all that fits was said before."""
    about = f" on {_quoted([' '.join(topic)])}" if topic else ""
    return (
        f"I found nothing more{about} in {corpus} than the answers above say. {_DEMO} "
        "Ask for it “again” to have it repeated."
    )


def nothing_allowed(advice: str = "Use a preset, or list the `web_search` tool.") -> str:
    """Return the honest answer to a request that allows no search; ``advice``: how it would."""
    return (
        "This is the offline demo: it writes nothing of its own, it only quotes its corpus, and "
        f"this request allows no search. {advice}"
    )


def _quoted(words: Sequence[str]) -> str:
    # Brackets of the user could pass for a citation.
    clean = [word.replace("[", "(").replace("]", ")") for word in words[:4]]
    return ", ".join(f"“{word}”" for word in clean)
