from __future__ import annotations

from collections.abc import Iterator

import pytest

from ipyperplexity.emulator import EmulatorServer


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    with EmulatorServer(pace=0) as running:
        yield running


@pytest.fixture(scope="session")
def shared_server() -> Iterator[EmulatorServer]:
    with EmulatorServer(pace=0) as running:
        yield running
