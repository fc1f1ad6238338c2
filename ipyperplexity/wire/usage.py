"""What an answer took, out of a service's record of it (official-api 3.4 and 8).

Every field may be missing: parts that are zero are left out, and there is none until a run has
completed. Nothing is ever added up over several records: the last one counts everything.
"""

from __future__ import annotations

from typing import Any

from ipyperplexity.answer import Usage
from ipyperplexity.wire import values


def read_usage(usage: Any) -> Usage:
    """Read ``usage`` of the Agent API or a chat completion; what it leaves out is None.

    Examples
    --------
    >>> read_usage({"prompt_tokens": 5, "completion_tokens": 2, "cost": {"total_cost": 0.005}})
    Usage(input_tokens=5, output_tokens=2, total_tokens=None, reasoning_tokens=None, \
searches=None, cost_usd=0.005)
    """
    if not isinstance(usage, dict):
        return Usage()
    cost = usage.get("cost")
    calls = usage.get("tool_calls_details")
    searches = None
    if isinstance(calls, dict):
        counts = [
            values.whole(call.get("invocation")) or 0
            for tool, call in calls.items()
            if isinstance(call, dict) and tool in ("search_web", "web_search")
        ]
        searches = sum(counts) if counts else None
    thinking = [usage, *(usage.get(f"{name}_tokens_details") for name in ("output", "completion"))]
    return Usage(
        input_tokens=_first(usage.get("input_tokens"), usage.get("prompt_tokens")),
        output_tokens=_first(usage.get("output_tokens"), usage.get("completion_tokens")),
        total_tokens=_first(usage.get("total_tokens")),
        reasoning_tokens=_first(
            *(details.get("reasoning_tokens") for details in thinking if isinstance(details, dict))
        ),
        searches=_first(searches, usage.get("num_search_queries")),
        cost_usd=values.amount(cost.get("total_cost") if isinstance(cost, dict) else cost),
    )


def _first(*counts: Any) -> int | None:
    numbers = (values.whole(count) for count in counts)
    return next((number for number in numbers if number is not None), None)
