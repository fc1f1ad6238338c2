from __future__ import annotations

from pathlib import Path

import pytest

from tests.auth.signing_in import isolate


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A user who has never logged in: own folders, no variables, no keyring."""
    return isolate(monkeypatch, tmp_path)
