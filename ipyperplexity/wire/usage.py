"""What an answer took, out of the Agent API's record of it (official-api 3.4).

Every field may be missing: parts that are zero are left out, and there is none until a run has
completed. Nothing is ever added up over several records: the last one counts everything.
"""

from __future__ import annotations

from typing import Any

from ipyperplexity.answer import Usage
from ipyperplexity.wire import values


def read_usage(usage: Any) -> Usage:
    """Read the service's ``usage`` (official-api 3.4); what it leaves out is None."""
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("output_tokens_details")
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
    return Usage(
        input_tokens=values.whole(usage.get("input_tokens")),
        output_tokens=values.whole(usage.get("output_tokens")),
        total_tokens=values.whole(usage.get("total_tokens")),
        reasoning_tokens=values.whole(details.get("reasoning_tokens"))
        if isinstance(details, dict)
        else None,
        searches=searches,
        cost_usd=values.amount(cost.get("total_cost") if isinstance(cost, dict) else cost),
    )
