"""What holds for all tests: no setting of this machine leaks in, nothing leaves it."""

from __future__ import annotations

import os
import signal

import pytest

# Interrupts arrive also where the tests were started in the background, with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

SETTINGS = (
    "PERPLEXITY_API_KEY",
    "PPLX_API_KEY",
    "PERPLEXITY_BASE_URL",
    "IPYPERPLEXITY_BACKEND",
    "IPYPERPLEXITY_MODEL",
    "IPYPERPLEXITY_LEDGER",
    "JPY_SESSION_NAME",
    "PERPLEXITY_SESSION_TOKEN",
    "PI_PERPLEXITY_TOKEN",
    "PI_PERPLEXITY_AUTH_TOKEN",
    "PERPLEXITY_COOKIE",
    "PI_PERPLEXITY_COOKIE",
    "PI_PERPLEXITY_COOKIES",
    "PERPLEXITY_EMAIL",
    "PI_PERPLEXITY_EMAIL",
    "PERPLEXITY_OTP",
    "PI_PERPLEXITY_OTP",
    "PERPLEXITY_NO_BORROW",
    "PI_AUTH_NO_BORROW",
)


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(request, monkeypatch, tmp_path_factory):
    """Each test is a new user: an empty home, no stored key or login, no keyring."""
    if "live" in request.keywords and os.environ.get("PERPLEXITY_LIVE") == "1":
        return
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(home / "ipyperplexity"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
