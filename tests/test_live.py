"""One question to the real service: only with PERPLEXITY_LIVE=1 and a key."""

from __future__ import annotations

import os

import pytest

import ipyperplexity as pplx

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(
        os.environ.get("PERPLEXITY_LIVE") != "1",
        reason="asks the real service and costs money: set PERPLEXITY_LIVE=1 and PERPLEXITY_API_KEY",
    ),
]


def test_the_real_service_answers_with_sources_that_the_text_cites():
    with (
        pplx.Client(backend="agent") as client,
        client.stream("Which river flows through Ghent? One sentence.", model="fast") as running,
    ):
        events = list(running)
    answer = running.answer
    assert answer.status == "completed"
    assert answer.text
    assert "".join(e.text for e in events if type(e).__name__ == "TextDelta") == answer.text
    assert answer.sources.cited
    assert answer.usage.cost_usd is not None and answer.usage.cost_usd < 0.1
