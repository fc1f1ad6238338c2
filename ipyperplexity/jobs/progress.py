"""What there is to tell while a run goes on, and how it reads in one line."""

from __future__ import annotations

from dataclasses import dataclass

_WORDS = {"queued": "queued", "in_progress": "in progress", "unknown": "not known to the service"}


@dataclass(frozen=True)
class Progress:
    """How far a job is.

    Attributes
    ----------
    id : str
        The run's.
    status : str
        As of :class:`~ipyperplexity.jobs.Job`.
    seconds : float
        Since the question was asked.
    searches, sources : int
        How many searches have been made, and how many pages they have found.
    problem : str
        Why it cannot be looked at just now, if so; it is tried again.
    """

    id: str
    status: str
    seconds: float
    searches: int = 0
    sources: int = 0
    problem: str = ""


def progress_line(progress: Progress) -> str:
    """Return how far a job is, in one line.

    Examples
    --------
    >>> progress_line(Progress("resp_1", "in_progress", 65, searches=3, sources=24))
    'in progress · 1 min 05 s · 3 searches · 24 sources'
    """
    facts = [_WORDS.get(progress.status, progress.status), duration(progress.seconds)]
    if progress.searches:
        facts.append(_count(progress.searches, "search", "searches"))
    if progress.sources:
        facts.append(_count(progress.sources, "source", "sources"))
    if progress.problem:
        facts.append("trying again: " + " ".join(progress.problem.split()))
    line = " · ".join(facts)
    # A problem may quote the service, and a terminal obeys what it is sent.
    return "".join(char if char.isprintable() else " " for char in line)


def duration(seconds: float) -> str:
    """Return a time span for people.

    Examples
    --------
    >>> [duration(s) for s in (4.4, 75, 7500, 200_000)]
    ['4 s', '1 min 15 s', '2 h 05 min', '2 days']
    """
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    hours = minutes // 60
    if hours >= 48:
        return f"{hours // 24} days"
    if hours:
        return f"{hours} h {minutes % 60:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _count(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"
