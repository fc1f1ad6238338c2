"""One engine for all peers, and what our own client gets from it, to compare with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ipyperplexity import Answer, Client
from ipyperplexity.emulator import EmulatorServer

QUESTION = "What does the with statement do?"
KEY = "pplx-peers"


@pytest.fixture(scope="session")
def engine() -> Iterator[EmulatorServer]:
    with EmulatorServer(pace=0, api_key=KEY) as server:
        yield server


@pytest.fixture(scope="session")
def ours(engine: EmulatorServer) -> Client:
    return Client(api_key=KEY, base_url=engine.url)


@pytest.fixture(scope="session")
def answer(ours: Client) -> Answer:
    return ours.ask(QUESTION, model="low")
