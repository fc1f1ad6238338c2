"""What a question may cost before it is asked, and what it cost where the service does not say.

Only for estimates: prices change without notice, and the service's own figure always wins
(official-api 9).
"""

from __future__ import annotations

from dataclasses import dataclass

from ipyperplexity.answer_parts import Usage, format_cost
from ipyperplexity.store.ledger import Ledger

#: USD for a whole run: the dearest that was recorded, for `high` and its like estimated
#: (official-api 9). For the last two there is no figure: `xhigh` asks a model of twice the price
#: of that of `high` (official-api 2.4), `wide-research` runs long in the background.
PRESET_USD = {
    "fast": 0.0018,
    "low": 0.004,
    "medium": 0.016,
    "high": 0.9,
    "xhigh": 1.8,
    "wide-research": 5.0,
}
#: Other names of them (official-api 2.1, 2.4).
_ALIASES = {
    "fast-search": "fast",
    "pro-search": "low",
    "deep-research": "high",
    "advanced-deep-research": "xhigh",
    "sonar": "fast",
    "sonar-pro": "low",
    "sonar-reasoning": "medium",
    "sonar-reasoning-pro": "medium",
    "sonar-deep-research": "high",
}
#: The Search API, a request (official-api 9).
SEARCH_USD = 0.005
#: USD for a million tokens read and written (official-api 9, which names no vendor of the last 3).
MODEL_USD_PER_1M = {
    "perplexity/sonar": (0.25, 2.50),
    "openai/gpt-6-luna": (0.10, 0.50),
    "openai/gpt-6-sol": (2.0, 10.0),
    "openai/gpt-6.1-sol": (2.0, 10.0),
    "openai/gpt-6-astra": (10.0, 50.0),
    "openai/gpt-5.6-luna": (0.20, 1.20),
    "anthropic/claude-opus-5-5": (4.0, 20.0),
    "anthropic/claude-sonnet-5-5": (2.0, 10.0),
    "anthropic/claude-haiku-5-5": (0.10, 0.50),
    "gemini-3.8-flash": (0.75, 3.75),
    "grok-4.7": (2.0, 6.0),
    "glm-5.3": (1.40, 4.40),
}
_DEAREST = max(MODEL_USD_PER_1M.values())
#: What a question to a model by name is taken to need: three searches, their pages, a long answer.
_TOKENS_READ, _TOKENS_WRITTEN, _SEARCHES, _SEARCH_CALL_USD = 20_000, 2_000, 3, 0.0025
#: How many of the newest recorded costs are looked at.
_RECENT = 5


@dataclass(frozen=True)
class Estimate:
    """What a question may cost.

    Attributes
    ----------
    usd : float
        US dollars.
    why : str
        Where the figure comes from, in a few words.
    """

    usd: float
    why: str


def estimate_cost(asked_model: str, ledger: Ledger) -> Estimate:
    """Return what a question to a preset or model may cost.

    It is the highest of its five newest recorded costs: one question may cost several times
    another, and a budget that is kept by the average is passed. Without records it is the
    documented price of a preset, or made of the model's token prices; an unknown model counts as
    the dearest known one.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> empty = Ledger(pathlib.Path(tempfile.mkdtemp()) / "ledger.db")
    >>> estimate_cost("low", empty)
    Estimate(usd=0.004, why='what such a run usually costs')
    """
    costs = ledger.recent_costs(asked_model, _RECENT)
    if costs:
        which = f"the highest of its last {len(costs)}" if len(costs) > 1 else "as it did last"
        return Estimate(max(costs), which)
    if asked_model == "search":
        return Estimate(SEARCH_USD, "the price of a search")
    preset = _ALIASES.get(asked_model, asked_model)
    if preset in PRESET_USD:
        return Estimate(PRESET_USD[preset], "what such a run usually costs")
    prices = _prices(asked_model)
    usd = _by_tokens(prices or _DEAREST, _TOKENS_READ, _TOKENS_WRITTEN)
    usd += _SEARCHES * _SEARCH_CALL_USD
    why = "a guess by its prices per token" if prices else "a guess: its price is not known"
    return Estimate(usd, why)


def token_cost(model: str, usage: Usage) -> float | None:
    """Return what an answer cost by its tokens and searches; None if that cannot be told.

    Examples
    --------
    >>> token_cost("openai/gpt-6-sol", Usage(input_tokens=1000, output_tokens=1000, searches=1))
    0.0145
    """
    prices = _prices(model)
    if prices is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    tokens = _by_tokens(prices, usage.input_tokens, usage.output_tokens)
    return round(tokens + (usage.searches or 0) * _SEARCH_CALL_USD, 8)


def _prices(model: str) -> tuple[float, float] | None:
    return MODEL_USD_PER_1M.get(model) or MODEL_USD_PER_1M.get(model.rpartition("/")[2])


def _by_tokens(prices: tuple[float, float], read: int, written: int) -> float:
    return (read * prices[0] + written * prices[1]) / 1e6


def usual_cost(asked_model: str) -> str:
    """Return a preset's documented cost for a list, such as ``about $0.0040``; or nothing."""
    usd = PRESET_USD.get(asked_model)
    return f"about {format_cost(usd)}" if usd is not None else ""
