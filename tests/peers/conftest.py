"""One engine for all peers, and what our own client gets from it, to compare with.

A peer is used as its users use it: nothing of it is replaced, it only asks another address.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from ipyperplexity import Answer, Client
from ipyperplexity.emulator import EmulatorServer

QUESTION = "What does the with statement do?"
OTHER_QUESTION = "What is a lambda?"
KEY = "pplx-peers"
MODEL = "openai/gpt-6-luna"
OFFERED = {
    "name": "add",
    "description": "Add two numbers.",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
}
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "year": {"type": "integer"}},
    "required": ["name", "year"],
    "additionalProperties": False,
}
_PREFIXES = ("OPENAI_", "PERPLEXITY_", "PPLX_", "LANGCHAIN_", "LANGSMITH_", "LLM_")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


@pytest.fixture(scope="session", autouse=True)
def _peers_of_a_new_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No key, address, proxy or log of this machine reaches a peer, and none is left behind."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(_PREFIXES) or name.lower() in _PROXIES:
                patch.delenv(name)
        patch.setenv("LLM_USER_PATH", str(tmp_path_factory.mktemp("llm")))
        yield


@pytest.fixture(scope="session")
def engine() -> Iterator[EmulatorServer]:
    with EmulatorServer(pace=0, api_key=KEY) as server:
        yield server


@pytest.fixture(autouse=True)
def _behaviors_are_used_up(engine: EmulatorServer) -> Iterator[None]:
    """What a failed test had still planned does not reach the next one."""
    yield
    while engine.take_behavior() is not engine.behavior:
        pass


@pytest.fixture(scope="session")
def ours(engine: EmulatorServer) -> Client:
    return Client(api_key=KEY, base_url=engine.url)


@pytest.fixture(scope="session")
def answer(ours: Client) -> Answer:
    return ours.ask(QUESTION, model="low")


@pytest.fixture(scope="session")
def chat_answer(engine: EmulatorServer) -> Answer:
    client = Client(api_key=KEY, base_url=engine.url, backend="chat")
    return client.ask(QUESTION, model="sonar")


def messages(text: str = QUESTION) -> list[Any]:
    return [{"role": "user", "content": text}]


def assert_is_wholly_typed(model: Any) -> None:
    """Check a parsed reply again: the SDKs take what does not fit without a word."""
    type(model).model_validate(model.to_dict())
