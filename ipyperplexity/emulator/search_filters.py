"""The filters of a request that has them at its top: the Search API and chat completions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from .checks import DATES, parse_date
from .filters import Filters

__all__ = ["read_filters"]


def read_filters(given: Mapping[str, Any]) -> Filters:
    """Return the filters of a request whose fields were checked.

    Examples
    --------
    >>> read_filters({"search_domain_filter": ["-a.org"], "search_mode": "sec"}).mode
    'sec'
    """

    def day(name: str) -> date | None:
        return parse_date(given[name]) if name in given else None

    after, before, updated_after, updated_before = map(day, DATES)
    people = given.get("search_type") == "people"
    return Filters(
        domains=tuple(given.get("search_domain_filter", ())),
        recency=given.get("search_recency_filter"),
        after=after,
        before=before,
        updated_after=updated_after,
        updated_before=updated_before,
        languages=tuple(given.get("search_language_filter", ())),
        mode="people" if people else given.get("search_mode", "web"),
    )
