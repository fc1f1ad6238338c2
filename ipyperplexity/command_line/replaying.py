"""``ipyperplexity replay lesson.tape``: a recorded lesson, at its own pace, in a terminal."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ipyperplexity.answer_stream import AnswerStream, Call
from ipyperplexity.command_line.asking import Progress, tolerate_narrow_pipes
from ipyperplexity.errors import PerplexityError
from ipyperplexity.markup import terminal
from ipyperplexity.net import sessions
from ipyperplexity.question import Question
from ipyperplexity.service import Service
from ipyperplexity.store.tape_file import TapedExchange
from ipyperplexity.tapes import deck
from ipyperplexity.wire import agent, chat, consumer
from ipyperplexity.wire.base import Wire, WireRequest

#: Path of a question -> the wire that understands the answer, and its backend.
_WIRES: dict[str, tuple[Wire, str]] = {
    "/v1/responses": (agent.WIRE, "agent"),
    "/chat/completions": (chat.WIRE, "chat"),
    "/rest/sse/perplexity_ask": (consumer.WIRE, "web"),
}


def add_replay(commands: Any) -> None:
    """Add the command to a parser's commands."""
    replay = commands.add_parser(
        "replay",
        help="show a recorded tape: its questions, and their answers as they came",
        description="Needs no key and no network. One question of it: ipyperplexity ask --replay.",
    )
    replay.add_argument("tape", type=Path)
    replay.add_argument(
        "--speed", default=1.0, metavar="N", help="4: four times as fast; 0: at once (default 1)"
    )
    replay.add_argument("--list", action="store_true", help="only list the questions")
    replay.set_defaults(run=run_replay)


def run_replay(options: argparse.Namespace) -> int:
    """Show a tape."""
    tolerate_narrow_pipes()
    tape = deck.replay(options.tape, deck.checked_speed(options.speed), strict=True)
    try:
        shown = [exchange for exchange in tape.exchanges if exchange.path in _WIRES]
        if options.list:
            print("\n".join(terminal.strip_controls(exchange.asked) for exchange in shown))
            return 0
        for number, exchange in enumerate(shown):
            print(f"{chr(10) if number else ''}> {terminal.strip_controls(exchange.asked)}\n")
            _play(exchange)
        if not shown:
            print("There is no question on this tape.")
        return 0
    finally:
        deck.stop_replaying()


def _play(exchange: TapedExchange) -> None:
    wire, backend = _WIRES[exchange.path]
    request = WireRequest(exchange.path, exchange.body, method=exchange.method)
    as_it_was: Callable[..., WireRequest] = lambda *args, **options: request  # noqa: E731
    played = Wire(wire.name, as_it_was, wire.fold, wire.fold_body)
    service = Service(backend, "http://127.0.0.1", sessions.make_session)
    stream = AnswerStream(Question(exchange.asked or "?"), Call(service, played, None))
    show = Progress(quiet=True, streams=True)
    failure: PerplexityError | None = None
    try:
        with stream:
            for event in stream:
                show.event(event)
    except PerplexityError as error:
        failure = error
    if failure is None or stream.answer.text:
        show.finish(stream.answer)
    if failure is not None:
        print(f"({type(failure).__name__}: {failure.message})")
