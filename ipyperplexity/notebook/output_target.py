"""An answer that streams into an ``ipywidgets.Output``, from whatever thread.

The widget's content is set as a whole, and nothing is captured: what a thread prints lands in the
cell that happens to run (ipykernel 7 and later), and the ``with output:`` block is not for threads.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from ipyperplexity.errors import InvalidRequestError, PerplexityError
from ipyperplexity.markup import terminal
from ipyperplexity.markup.pieces import wrap
from ipyperplexity.notebook.live import KernelDisplay

if TYPE_CHECKING:
    from ipyperplexity.answer import Answer
    from ipyperplexity.answer_stream import AnswerStream


class OutputDisplay(KernelDisplay):
    """Shows an answer in an Output widget, as a cell shows it.

    Parameters
    ----------
    stream : AnswerStream
    output : ipywidgets.Output
    """

    def __init__(self, stream: AnswerStream, output: Any) -> None:
        super().__init__(stream)
        self._output = output

    def _show(self, bundle: dict[str, str]) -> None:
        show_in(self._output, bundle)
        self._handle = self._output
        self._drawn, self._due = self._clock(), False


def show_in(output: Any, bundle: dict[str, str]) -> None:
    """Show a bundle in an Output, in place of what it showed."""
    output.outputs = ({"output_type": "display_data", "data": bundle, "metadata": {}},)


def failure_bundle(failure: PerplexityError) -> dict[str, str]:
    """Return an error as its own few lines."""
    lines = [f"{type(failure).__name__}: {failure.message}", *(failure.hint or "").splitlines()]
    html = "<br>".join(escape(line) for line in lines)
    return {
        "text/plain": terminal.strip_controls("\n".join(lines)),
        "text/html": wrap(f"<p>{html}</p>"),
    }


def draw_into(stream: AnswerStream, output: Any) -> Answer:
    """Run a stream to its end, showing it in an Output; return the answer.

    Raises
    ------
    InvalidRequestError
        If that is no Output.
    PerplexityError
        As iterating the stream; what had come is shown.
    """
    if not hasattr(output, "outputs") or not hasattr(output, "comm"):
        raise InvalidRequestError(
            f"output: got a value of type {type(output).__name__}; allowed: an ipywidgets.Output.",
            field="output",
        )
    display = OutputDisplay(stream, output)
    failure: PerplexityError | None = None
    try:
        with stream:
            stream.on_wait = display.tick
            for event in stream:
                display.event(event)
    except PerplexityError as error:
        failure = error
    finally:
        display.finish(stream.answer)
    if failure is None:
        return stream.answer
    if not stream.answer.text:
        show_in(output, failure_bundle(failure))
    raise failure.with_traceback(None)
