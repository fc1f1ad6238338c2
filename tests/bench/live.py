"""An answer of 40 KB while it streams: CPU time spent in drawing it, and bytes sent to the page.

The clock is the answer's own: 400 pieces, one every 0.05 s, whatever the machine takes for them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from tests.bench.report import Row
from tests.support.raw_server import RawServer, agent_stream, sse_response

PIECES = 400
SECONDS = 0.05
CASES = {"text of 40 KB": 40_000, "text of 10 KB": 10_000}

_SECTION = """\
## Part {n}: what was found

The first thing to say is **bold**, the second *emphasis*, and both are from one page.[1] The
figures are $5 and $10 a month[2][3], which `price(n)` computes; see [the page](https://a.example).

- One point with a source[4]
- Another with `code` and **weight**[5]
  - nested, too

| year | value | note |
| --- | --- | --- |
| 2024 | {n}.5 | first[6] |
| 2025 | {n}.7 | second |

```python
def f(x):
    return x ** {n}
```

"""


def markdown(size: int) -> str:
    return "".join(_SECTION.format(n=n) for n in range(1 + size // len(_SECTION)))[:size]


class Screen:
    """Takes what a kernel would send, and does a kernel's work on it."""

    def __init__(self) -> None:
        self.bytes = self.messages = 0

    def publish(self, data: Any, metadata: Any = None, **options: Any) -> None:
        self.messages += 1
        self.bytes += len(json.dumps({"data": data, "metadata": metadata or {}}).encode())


def measure(quick: bool = False) -> list[Row]:
    from IPython.core.interactiveshell import InteractiveShell

    shell: Any = InteractiveShell.instance()
    publisher = shell.display_pub
    rows = []
    try:
        for case, size in CASES.items():
            rows += _measure_case(shell, case, size, runs=2 if quick else 5)
    finally:
        shell.display_pub = publisher
        InteractiveShell.clear_instance()
    return rows


def _measure_case(shell: Any, case: str, size: int, runs: int) -> list[Row]:
    case = f"{case} in {PIECES} pieces over {PIECES * SECONDS:.0f} s, total CPU time of its display"
    text = markdown(size)
    step = -(-size // PIECES)
    pieces = [text[at : at + step] for at in range(0, size, step)]
    sources = [{"url": f"https://site{n}.example/", "title": f"Page {n}"} for n in range(1, 11)]
    reply = sse_response(agent_stream(text, sources, deltas=pieces))
    script = [b"".join(step for step in reply if isinstance(step, bytes))]
    with RawServer(script) as server:
        ours = [_ours(shell, server.url) for _ in range(runs)]
    once = min(_cpu(lambda answer=answer: _draw_anew(shell, answer)) for _, _, answer in ours)
    plain = [_plain(shell, pieces) for _ in range(runs)]
    cost, screen, _ = min(ours, key=lambda run: run[0])
    plain_cost, plain_screen = min(plain, key=lambda run: run[0])
    return [
        Row(case, "one final rendering", once * 1e3, "ms"),
        Row(
            case,
            "ipyperplexity KernelDisplay",
            cost * 1e3,
            "ms",
            _note(screen, size) + f"; {cost / once:.1f} x one rendering",
            "at most 3 x one rendering",
            cost <= 3 * once,
        ),
        Row(
            case,
            "update_display(Markdown) at 10/s",
            plain_cost * 1e3,
            "ms",
            _note(plain_screen, size) + "; drawn by the browser",
        ),
    ]


def _note(screen: Screen, size: int) -> str:
    return f"{screen.messages} messages, {screen.bytes / 1e6:.2f} MB = {screen.bytes / size:.0f} x text"


def _cpu(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def _ours(shell: Any, url: str) -> tuple[float, Screen, Any]:
    from ipyperplexity import Client
    from ipyperplexity.events import TextDelta
    from ipyperplexity.notebook.live import KernelDisplay

    screen = shell.display_pub = Screen()
    now, cost = 0.0, 0.0
    with Client("any-key", base_url=url) as client, client.stream("What was found?") as stream:
        display = KernelDisplay(stream, clock=lambda: now)
        for event in stream:
            now += SECONDS if isinstance(event, TextDelta) else 0
            cost += _cpu(lambda event=event: display.event(event))
        answer = stream.answer
        answer.sources.cited.domains()  # counting citations is no drawing; the answer keeps it
        cost += _cpu(lambda: display.finish(answer))
    return cost, screen, answer


def _draw_anew(shell: Any, answer: Any) -> None:
    from ipyperplexity.notebook.live import show

    shell.display_pub = Screen()
    show({"text/plain": answer.to_text(), "text/html": answer.to_html()})


def _plain(shell: Any, pieces: list[str]) -> tuple[float, Screen]:
    from IPython.display import Markdown, display

    screen = shell.display_pub = Screen()
    cost, text = 0.0, ""
    handle: Any = None
    for number, piece in enumerate(pieces):
        text += piece
        if number % 2 == 0 or number == len(pieces) - 1:
            began = time.thread_time()
            if handle is None:
                handle = display(Markdown(text), display_id=True)
            else:
                handle.update(Markdown(text))
            cost += time.thread_time() - began
    return cost, screen
