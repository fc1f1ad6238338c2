"""Sources that the tests of this room share."""

from __future__ import annotations

from datetime import date

import pytest

from tests.markup.html_reading import Page


@pytest.fixture
def sources() -> list[Page]:
    """Ids with gaps, as the service gives them; one page that was fetched."""
    return [
        Page(1, "First", "https://one.example/a", "one.example", date(2026, 1, 2)),
        Page(2, "Second", "https://two.example/b", "two.example", cited=False, n_cited=0),
        Page(3, "Third", "https://three.example/c", "three.example"),
        Page(11, "Eleventh", "https://eleven.example/d", "eleven.example"),
        Page(12, "Fetched", "https://fetched.example/e", "fetched.example", kind="fetch"),
    ]
