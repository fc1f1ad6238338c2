"""The answer that a cell returns is already on the screen: the shell shows it no second time.

Only as the result of the execution that streamed it: ``_`` and ``Out[n]`` are filled as ever, and
everywhere else, ``display(answer)`` included, an answer shows itself. Tied to the execution, not
to a flag on the answer, which would be left set when the answer is not the cell's result.
"""

from __future__ import annotations

from typing import Any

_MOMENTS = ("pre_execute", "post_execute")
_HELD = ("write_output_prompt", "compute_format_data")


class SecondDisplay:
    """Keeps one shell from showing what has just been streamed."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._streamed: list[Any] = []
        # Before, too: a callback between two cells may have streamed one.
        for moment in _MOMENTS:
            shell.events.register(moment, self.allow)

    def suppress(self, answer: Any) -> None:
        """Have the shell show this answer no second time, until the execution is over."""
        if not self._streamed:
            self._hold()
        self._streamed.append(answer)

    def allow(self) -> None:
        """Let answers show themselves again: called by the shell around each execution."""
        if self._streamed:
            self._streamed.clear()
            for name in _HELD:
                self._shell.displayhook.__dict__.pop(name, None)

    def close(self) -> None:
        """Leave the shell as it was."""
        self.allow()
        for moment in _MOMENTS:
            self._shell.events.unregister(moment, self.allow)

    def _hold(self) -> None:
        """Give what has been streamed no form to show, and write ``Out[n]:`` for the rest only."""
        hook = self._shell.displayhook
        write_prompt, compute = hook.write_output_prompt, hook.compute_format_data

        def compute_others(result: Any) -> Any:
            if any(result is answer for answer in self._streamed):
                return {}, {}
            write_prompt()
            return compute(result)

        hook.write_output_prompt = lambda: None
        hook.compute_format_data = compute_others
