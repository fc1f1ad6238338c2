"""A search: sent, read, paid for; a list of queries again one by one where a reply mixes them."""

from __future__ import annotations

import datetime as dt
import time
import warnings

from ipyperplexity import spending
from ipyperplexity.errors import BudgetError, PerplexityError, PerplexityWarning
from ipyperplexity.search_query import SearchQuery
from ipyperplexity.search_results import UNGROUPED, SearchResults
from ipyperplexity.service import CALL_TIMEOUT, Service
from ipyperplexity.sources import Sources
from ipyperplexity.store.ledger_entry import LedgerEntry
from ipyperplexity.wire import search as wire

#: Addresses whose replies to a list do not tell the queries apart: they are not asked so again.
_mixing: set[str] = set()
_ASKED = "search"


def search(
    service: Service, query: SearchQuery, budget: float | None, timeout: float | None
) -> Sources | SearchResults:
    """Search, and return what was found.

    Parameters
    ----------
    service : Service
    query : SearchQuery
    budget : float or None
        US dollars that this process may spend.
    timeout : float or None
        Seconds for each request.

    Returns
    -------
    Sources
        Of one query; of a list the SearchResults, by query.

    Raises
    ------
    PerplexityError
    """
    if not query.several:
        return _request(service, query, budget, timeout)[query.queries[0]]
    if len(query.queries) == 1:
        return _request(service, query, budget, timeout)
    mixed: SearchResults | None = None
    if service.base_url not in _mixing:
        mixed = _request(service, query, budget, timeout)
        if mixed.grouped:
            return mixed
        _mixing.add(service.base_url)
    return _one_by_one(service, query, budget, timeout, mixed)


def _one_by_one(
    service: Service,
    query: SearchQuery,
    budget: float | None,
    timeout: float | None,
    mixed: SearchResults | None,
) -> SearchResults:
    """Search for each query alone. What was found before a failure is paid for, and is kept."""
    found: dict[str, Sources] = {}
    failure: PerplexityError | None = None
    for single in query.singly():
        text = single.queries[0]
        try:
            found[text] = _request(service, single, budget, timeout)[text]
        except PerplexityError as error:
            failure = error.with_traceback(None)
            break
    if failure is None:
        return SearchResults(found)
    if mixed is None and not found:
        raise failure
    missing = [text for text in query.queries if text not in found]
    cost = " (It was not sent.)" if isinstance(failure, BudgetError) else ""
    if mixed is not None:
        said = f"{UNGROUPED}, and asking for each alone failed: {failure.message}{cost}"
        warnings.warn(said, PerplexityWarning, stacklevel=4)
        return mixed
    said = f"No results for {', '.join(map(repr, missing))}: {failure.message}{cost}"
    warnings.warn(said, PerplexityWarning, stacklevel=4)
    return SearchResults({**found, **dict.fromkeys(missing, Sources())})


def _request(
    service: Service, query: SearchQuery, budget: float | None, timeout: float | None
) -> SearchResults:
    began, asked = time.monotonic(), dt.datetime.now(dt.UTC)
    price = wire.most_usd(query)  # no reply names its cost
    reserved = spending.reserve(budget, _ASKED, price=price)
    failure: PerplexityError | None = None
    results: SearchResults | None = None
    try:
        # No variable of this frame holds the reply: it may repeat the key.
        results = wire.read(
            service.fetch(wire.request(query), timeout=timeout or CALL_TIMEOUT), query
        )
    except PerplexityError as error:
        failure = error.with_traceback(None)
    finally:
        cost: float | None = price if results is not None else None
        if service.backend in spending.FREE_BACKENDS or (
            failure is not None and spending.is_unbilled(failure)
        ):
            cost = 0.0
        reserved.finish_entry(
            LedgerEntry(
                "search",
                asked_model=_ASKED,
                backend=service.backend,
                status="completed" if results is not None else "failed",
                searches=len(query.queries),
                cost_usd=cost,
                elapsed_s=time.monotonic() - began,
                question=service.hide("; ".join(query.queries)),
                at=asked,
            )
        )
    if results is None:
        assert failure is not None
        raise service.cleaned(failure)
    return results
