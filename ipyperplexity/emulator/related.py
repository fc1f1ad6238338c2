"""Questions to ask next, from the pages that a search found."""

from __future__ import annotations

from .engine import Plan

__all__ = ["related_questions"]


def related_questions(plan: Plan, most: int = 3) -> tuple[str, ...]:
    """Return questions about the last pages of a plan: the first ones were just quoted.

    Examples
    --------
    >>> related_questions(Plan("Nothing."))
    ()
    """
    titles = [result.title.partition(" — ")[0] for result in plan.results[::-1]]
    return tuple(f"What is {title}?" for title in dict.fromkeys(titles))[:most]
