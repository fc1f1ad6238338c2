"""The lists of models: that of the Agent API and that of the web client.

Invariant: what is listed is taken, and what is not listed may be taken too: both lists age.
"""

from __future__ import annotations

from typing import Any

from .prices import DEMO_MODEL, MODELS
from .sending import Call, Sender

__all__ = ["list_models", "list_web_models"]

Json = dict[str, Any]


def _pricing(name: str) -> Json:
    read, written, cached = MODELS[name] if name != DEMO_MODEL else (0.0, 0.0, 0.0)
    price: Json = {"input": read, "output": written, "cache_read": cached}
    if name.startswith("anthropic/"):
        # Only some vendors ask for what is put into the cache.
        price["cache_write"] = round(read * 1.25, 6)
    return {**price, "unit": "usd_per_1m_tokens"}


def list_models(sender: Sender, call: Call) -> None:
    """Serve ``GET /v1/models`` (official-api 2.5)."""
    data = [
        {
            "id": name,
            "object": "model",
            "created": 0,
            "owned_by": name.partition("/")[0],
            "pricing": _pricing(name),
        }
        for name in MODELS
    ]
    sender.reply_json(200, {"object": "list", "data": data})


# Slug: label, provider, mode, tier, whether it thinks (consumer-web 1.6).
_WEB: dict[str, tuple[str, str, str, str, bool]] = {
    "turbo": ("Best", "PERPLEXITY", "search", "", False),
    "pplx_pro_upgraded": ("Pro", "PERPLEXITY", "search", "pro", False),
    "pplx_pro": ("Best", "PERPLEXITY", "search", "pro", False),
    "experimental": ("Sonar", "PERPLEXITY", "search", "pro", False),
    "pplx_alpha": ("Deep Research", "PERPLEXITY", "research", "pro", True),
    "pplx_beta": ("Labs", "PERPLEXITY", "studio", "pro", True),
    "gpt56_terra": ("GPT-5.6 Terra", "OPENAI", "search", "pro", False),
    "gpt56_sol": ("GPT-5.6 Sol", "OPENAI", "search", "max", False),
    "claude50sonnet": ("Claude Sonnet 5.0", "ANTHROPIC", "search", "pro", False),
    "claude50sonnetthinking": ("Claude Sonnet 5.0 Thinking", "ANTHROPIC", "search", "pro", True),
    "claude48opusthinking": ("Claude Opus 4.8 Thinking", "ANTHROPIC", "search", "max", True),
    "gemini38flash": ("Gemini 3.8 Flash", "GOOGLE", "search", "pro", False),
    "grok45low": ("Grok 4.5", "XAI", "search", "pro", False),
    "glm_5_3_thinking": ("GLM 5.3 Thinking", "ZAI", "search", "pro", True),
}


def list_web_models(sender: Sender, call: Call) -> None:
    """Serve ``GET /rest/models/config`` (consumer-web 1.6)."""
    models = {
        slug: {"label": label, "description": label, "mode": mode, "provider": maker}
        for slug, (label, maker, mode, _, _) in _WEB.items()
    }
    config = [
        {
            "label": label,
            "subscription_tier": tier,
            "non_reasoning_model": None if thinks else slug,
            "reasoning_model": slug if thinks else None,
            "text_only_model": False,
            "audience": None,
        }
        for slug, (label, _, mode, tier, thinks) in _WEB.items()
        if mode == "search" and tier
    ]
    defaults = {"search": "pplx_pro_upgraded", "research": "pplx_alpha", "studio": "pplx_beta"}
    sender.reply_json(200, {"models": models, "config": config, "default_models": defaults})
