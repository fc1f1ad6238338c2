"""The session of a client goes by the environment as it is now."""

from __future__ import annotations

import pytest

from ipyperplexity.net.sessions import make_session


def test_an_environment_that_changes_between_requests_counts_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = make_session()
    url = "https://api.perplexity.ai/v1/responses"
    settings = session.merge_environment_settings(url, {}, True, None, None)
    assert not settings["proxies"].get("https")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    settings = session.merge_environment_settings(url, {}, True, None, None)
    assert settings["proxies"]["https"] == "http://127.0.0.1:9"
    monkeypatch.setenv("NO_PROXY", "perplexity.ai")
    assert not session.merge_environment_settings(url, {}, True, None, None)["proxies"].get("https")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/ca.pem")
    settings = session.merge_environment_settings(url, {}, True, None, None)
    assert settings["verify"] == "/nowhere/ca.pem"
