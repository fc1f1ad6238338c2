"""After a fork parent and child share nothing: not a socket, not a lock, not the demo engine."""

from __future__ import annotations

import multiprocessing
import os

import pytest

import ipyperplexity as pplx
from ipyperplexity.emulator import Behavior, EmulatorServer

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning"),
]


INHERITED: list[pplx.Client] = []


def ask(topic: str) -> tuple[str, str]:
    answer = INHERITED[0].ask(f"What is a {topic}?", timeout=30)
    return topic, answer.sources[0].title


def test_each_process_gets_the_answer_to_its_own_question() -> None:
    topics = ["lambda", "tuple", "generator", "lambda", "tuple", "generator"]
    with EmulatorServer(behavior=Behavior(pace=0)) as server:
        INHERITED[:] = [pplx.Client(api_key="k", base_url=server.url)]
        expected = dict(map(ask, topics))  # leaves a connection open
        fork = multiprocessing.get_context("fork")
        with fork.Pool(3) as pool:
            found = pool.map(ask, topics)
            assert ask("lambda") == ("lambda", expected["lambda"])
    assert found == [(topic, expected[topic]) for topic in topics]


def _inherited(queue: multiprocessing.Queue[str]) -> None:
    queue.put(CLIENT.ask("What is a tuple?", timeout=30).status)


CLIENT = pplx.Client(backend="demo")


def test_a_child_uses_the_client_and_the_demo_engine_of_before_the_fork() -> None:
    assert CLIENT.ask("What is a lambda?").status == "completed"
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    child = fork.Process(target=_inherited, args=(queue,))
    with CLIENT._lock:  # as another thread of the parent might, at the moment of the fork
        child.start()
    assert queue.get(timeout=60) == "completed"
    child.join(30)
    assert CLIENT.ask("What is a generator?").status == "completed"
