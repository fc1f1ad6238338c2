"""The list of models: ``GET /v1/models`` (official-api 2.5, end), with the presets before it.

The service lists models only. Presets have no price: what model one means changes without notice.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from ipyperplexity.errors import StreamError
from ipyperplexity.models_table import ModelInfo
from ipyperplexity.question import OPTIONS
from ipyperplexity.wire import problems, values
from ipyperplexity.wire.agent import PRESETS
from ipyperplexity.wire.base import WireRequest

PATH = "/v1/models"
#: The only unit that was seen; a price in another one would be wrong by orders of magnitude.
UNIT = "usd_per_1m_tokens"
#: Column -> field of the service's ``pricing``.
_PRICES = {
    "input_usd_per_1m": "input",
    "output_usd_per_1m": "output",
    "cache_read_usd_per_1m": "cache_read",
    "cache_write_usd_per_1m": "cache_write",
}


def request() -> WireRequest:
    """Return the request for the list of models; it needs the key, and costs nothing."""
    return WireRequest(PATH, None, method="GET")


def read(reply: Any, *, with_presets: bool = True) -> tuple[ModelInfo, ...]:
    """Return presets, then the models of a reply in the service's order.

    Parameters
    ----------
    reply : JSON value
        The whole reply.
    with_presets : bool
        Whether the presets come first: they are Perplexity's own, no gateway's.

    Raises
    ------
    StreamError
        If it is no list of models.
    PerplexityError
        If it reports a failure.

    Examples
    --------
    >>> infos = read({"data": [{"id": "openai/gpt-6-luna", "owned_by": "openai", "pricing":
    ...     {"input": 0.1, "output": 0.5, "unit": "usd_per_1m_tokens"}}]})
    >>> infos[0].name, infos[-1].output_usd_per_1m
    ('fast', 0.5)
    """
    if isinstance(reply, dict) and reply.get("error"):
        raise problems.from_run(reply["error"])
    entries = reply.get("data") if isinstance(reply, dict) else reply
    if not isinstance(entries, list):
        raise StreamError(
            "The service answered with something that is no list of models.",
            hint="Check PERPLEXITY_BASE_URL: this may be some other server.",
        )
    models = (_model(entry) for entry in values.objects(entries))
    first = presets() if with_presets else ()
    return (*first, *(model for model in models if model is not None))


def presets() -> tuple[ModelInfo, ...]:
    """Return the presets that are offered today; the older names are taken, but not offered."""
    offered = OPTIONS["model"].suggestions
    return tuple(ModelInfo(name, "preset", "perplexity") for name in PRESETS if name in offered)


def _model(entry: dict[str, Any]) -> ModelInfo | None:
    name = _text(entry.get("id"))
    if not name:
        return None
    pricing = entry.get("pricing")
    if not isinstance(pricing, dict) or pricing.get("unit") != UNIT:
        pricing = {}
    prices: dict[str, Any] = {
        column: price
        for column, field in _PRICES.items()
        if (price := values.amount(pricing.get(field))) is not None and price >= 0
    }
    owner = _text(entry.get("owned_by")) or None
    return ModelInfo(name, owner=owner, created=_time(entry.get("created")), **prices)


def _text(value: Any) -> str:
    cleaned: str = values.clean(values.text(value))
    return cleaned.strip()


def _time(seconds: Any) -> dt.datetime | None:
    """Return a time from seconds since the epoch; 0 is how "not known" is written."""
    number = values.amount(seconds)
    if not number or not 0 < number < _YEAR_9999:
        return None
    return dt.datetime.fromtimestamp(number, dt.UTC)


_YEAR_9999 = 253_370_764_800
