from __future__ import annotations

from collections.abc import Iterator

import pytest

from ipyperplexity.emulator import EmulatorServer

from .web_help import EMAIL, TOKEN


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    with EmulatorServer(pace=0) as running:
        yield running


@pytest.fixture
def web() -> Iterator[EmulatorServer]:
    """A server that knows one session of the web endpoint."""
    with EmulatorServer(pace=0, chunk_chars=60, web_sessions={TOKEN: EMAIL}) as running:
        yield running


@pytest.fixture(scope="session")
def shared_server() -> Iterator[EmulatorServer]:
    with EmulatorServer(pace=0) as running:
        yield running
