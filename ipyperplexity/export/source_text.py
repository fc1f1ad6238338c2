"""A source's title and dates as every export writes them.

Invariant: a title is never empty and has one line.
"""

from __future__ import annotations

import datetime as dt

from ipyperplexity.markup.links import SourceLike, http_url, one_line


def title_of(source: SourceLike) -> str:
    return one_line(source.title) or one_line(source.domain) or http_url(source.url) or "Untitled"


def iso_date(day: dt.date | None) -> str | None:
    if day is None:
        return None
    # A datetime is a date too, but writes its time of day.
    return (day.date() if isinstance(day, dt.datetime) else day).isoformat()
