"""``%perplexity record`` and ``%perplexity replay``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.tapes import deck
from ipyperplexity.tapes.asked import shorten

#: Questions of a tape that are listed.
_LISTED = 12


def run_record(arguments: str) -> None:
    """Begin or end a recording, or say what is being recorded."""
    if arguments == "stop":
        ended = deck.stop_recording()
        if ended is None:
            print("Nothing is being recorded.")
            return
        print(f"{_count(ended.n_recorded)} recorded on {ended.path}.")
        return
    if not arguments:
        running = deck.recording()
        if running is None:
            print("Nothing is being recorded. %perplexity record lesson.tape begins.")
        else:
            print(f"{running.path} is being recorded: {_count(running.n_recorded)} so far.")
        return
    (path,) = _words(arguments)
    running = deck.record(Path(path).expanduser())
    before = f" after the {_count(running.n_before)} that are on it" if running.n_before else ""
    print(f"Recording on {running.path}{before}. %perplexity record stop ends it.")


def run_replay(arguments: str) -> None:
    """Begin or end replaying, or say what is being replayed."""
    if arguments == "stop":
        ended = deck.stop_replaying()
        print(f"{ended.path} is no longer replayed." if ended else "Nothing is being replayed.")
        return
    if not arguments:
        running = deck.replaying()
        if running is None:
            print("Nothing is being replayed. %perplexity replay lesson.tape begins.")
        else:
            print(f"{running.path} is being replayed{_how(running)}. It knows:")
            print_questions(running)
        return
    path, speed, strict = _options(arguments)
    running = deck.replay(Path(path).expanduser(), speed, strict)
    print(
        f"{_count(len(running.exchanges))} of {running.path} replayed{_how(running)}, without a "
        "key or a network. %perplexity replay stop ends it."
    )


def print_questions(replaying: deck.Replaying) -> None:
    """Print what a tape answers."""
    questions = list(dict.fromkeys(exchange.asked for exchange in replaying.exchanges))
    for question in questions[:_LISTED]:
        print(f"  {shorten(question)}")
    if len(questions) > _LISTED:
        print(f"  ... and {len(questions) - _LISTED:,} more")


def _how(replaying: deck.Replaying) -> str:
    words = []
    if replaying.speed != 1:
        words.append("at once" if not replaying.speed else f"{replaying.speed:g} times as fast")
    if replaying.strict:
        words.append("strictly")
    return f" {', '.join(words)}" if words else ""


def _options(arguments: str) -> tuple[str, float, bool]:
    path, *rest = _words(re.sub(r"--speed\s+", "--speed=", arguments))
    speed = 1.0
    for word in rest:
        if word.startswith("--speed="):
            speed = deck.checked_speed(word.removeprefix("--speed="))
    return path, speed, "--strict" in rest


def _words(arguments: str) -> Sequence[str]:
    problem = ""
    try:
        return shlex.split(arguments, posix=True)
    except ValueError as error:
        problem = str(error)
    raise InvalidRequestError(f"path: got {arguments!r}: {problem}.", field="path")


def _count(number: int) -> str:
    return f"{number:,} repl{'y' if number == 1 else 'ies'}"
