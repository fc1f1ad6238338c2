"""Token counts and dollars of an answer, by the documented prices.

Invariant: an estimate that looks like the service's own ``usage``; sums add up, zero parts of the
tool costs are left out. Nothing is billed by the demo.
"""

from __future__ import annotations

from typing import Any

__all__ = ["DEMO_MODEL", "MODELS", "count_tokens", "usage"]

DEMO_MODEL = "demo/offline-search"
CHARS_PER_TOKEN = 4
# USD per million tokens: input, output, cache read (official-api 9).
MODELS: dict[str, tuple[float, float, float]] = {
    DEMO_MODEL: (0.10, 0.50, 0.0),
    "perplexity/sonar": (0.25, 2.50, 0.0625),
    "openai/gpt-6-luna": (0.10, 0.50, 0.01),
    "openai/gpt-6-sol": (2.0, 10.0, 0.2),
    "openai/gpt-6.1-sol": (2.0, 10.0, 0.2),
    "openai/gpt-6-astra": (10.0, 50.0, 1.0),
    "openai/gpt-5.6-luna": (0.20, 1.20, 0.02),
    "anthropic/claude-opus-5-5": (4.0, 20.0, 0.4),
    "anthropic/claude-sonnet-5-5": (2.0, 10.0, 0.2),
    "anthropic/claude-haiku-5-5": (0.10, 0.50, 0.01),
}
SEARCH_PRICE = {"web": 0.0025, "fast": 0.001}
FETCH_PRICE = 0.0005


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text (four characters each, rounded up)."""
    return -(-len(text) // CHARS_PER_TOKEN)


def usage(
    *,
    model: str,
    input_text: int,
    output_tokens: int,
    searches: int,
    fetches: int,
    search_type: str,
) -> dict[str, Any]:
    """Return the ``usage`` object of a response.

    Parameters
    ----------
    model
        Name that sets the price; an unknown one costs as the demo model.
    input_text
        Tokens read.
    output_tokens
        Tokens written.
    searches, fetches
        Calls of the tools.
    search_type
        ``"web"`` or ``"fast"``.
    """
    price_in, price_out, _ = MODELS.get(model, MODELS[DEMO_MODEL])
    tools: dict[str, tuple[int, float]] = {
        "search_web": (searches, round(searches * SEARCH_PRICE.get(search_type, 0.0025), 6)),
        "fetch_url": (fetches, round(fetches * FETCH_PRICE, 6)),
    }
    used = {name: pair for name, pair in tools.items() if pair[0]}
    input_cost = round(input_text * price_in / 1e6, 8)
    output_cost = round(output_tokens * price_out / 1e6, 8)
    tool_cost = round(sum(cost for _, cost in used.values()), 6)
    cost: dict[str, Any] = {
        "currency": "USD",
        "input_cost": input_cost,
        "output_cost": output_cost,
        "total_cost": round(input_cost + output_cost + tool_cost, 8),
    }
    counted: dict[str, Any] = {
        "input_tokens": input_text,
        "output_tokens": output_tokens,
        "total_tokens": input_text + output_tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
        "cost": cost,
    }
    if used:
        cost["tool_calls_cost"] = tool_cost
        cost["tool_calls_cost_details"] = {name: dollars for name, (_, dollars) in used.items()}
        counted["tool_calls_details"] = {
            name: {"invocation": calls, "cost_usd": dollars}
            for name, (calls, dollars) in used.items()
        }
    return counted
