"""What holds for all tests: no setting of this machine leaks in, nothing leaves it."""

from __future__ import annotations

import os

import pytest

SETTINGS = (
    "PERPLEXITY_API_KEY",
    "PPLX_API_KEY",
    "PERPLEXITY_BASE_URL",
    "IPYPERPLEXITY_BACKEND",
    "IPYPERPLEXITY_MODEL",
)


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(request, monkeypatch):
    if "live" in request.keywords and os.environ.get("PERPLEXITY_LIVE") == "1":
        return
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
