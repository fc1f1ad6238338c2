"""The functions of one question: which calls of the model they answer, and what became of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ipyperplexity import tools
from ipyperplexity.events import ToolCalled, ToolReturned
from ipyperplexity.option_checks import declared_name
from ipyperplexity.tools import Tool, ToolCall, ToolResult


class FunctionCalls:
    """Runs functions for the model, and keeps a record of each call.

    Parameters
    ----------
    given : iterable
        ``Question.tools``: our functions, and dicts of the service's own tools.
    hide : callable
        Takes secrets out of a text that is kept.

    Attributes
    ----------
    made : list of ToolCall
        All calls so far.
    is_waiting : bool
        Whether the answer ended with calls that nothing here has answered.

    Raises
    ------
    MissingLibrary
        If coroutines shall run on the kernel's loop, and nest_asyncio is not installed.

    Examples
    --------
    >>> def twice(number: int) -> int:
    ...     return 2 * number
    >>> calls = FunctionCalls([Tool.of(twice)], str)
    >>> calls.run(ToolCalled("c1", "twice", '{"number": 4}'), lambda: None).output
    '8'
    """

    def __init__(self, given: Iterable[Any], hide: Callable[[str], str]) -> None:
        given = list(given)
        self._tools = {tool.name: tool for tool in given if isinstance(tool, Tool)}
        #: functions that were declared as a dict: whoever did so answers their calls
        self._foreign = {
            declared_name(tool)
            for tool in given
            if isinstance(tool, dict) and tool["type"] == "function"
        }
        self._hide = hide
        self.made: list[ToolCall] = []
        self.is_waiting = False
        if any(tool.is_coroutine for tool in self._tools.values()):
            from ipyperplexity.tools import coroutines

            coroutines.check_place(tools.run_coroutines_on)

    def __bool__(self) -> bool:
        return bool(self._tools)

    def can_answer(self, calls: Sequence[ToolCalled]) -> bool:
        """Whether the answer goes on after these calls: a wrong name is told to the model."""
        return bool(calls and self._tools) and not any(call.name in self._foreign for call in calls)

    def run(self, call: ToolCalled, watch: Callable[[], None]) -> ToolReturned:
        """Run the function that is called, in this thread.

        Parameters
        ----------
        call : ToolCalled
        watch : callable
            Called about every 0.05 s while a coroutine runs; what it raises comes through.
        """
        began = time.monotonic()
        tool = self._tools.get(call.name)
        try:
            result = tool.run(call.arguments, watch) if tool else self._unknown(call.name)
        except BaseException as error:
            ended = f"not finished: {type(error).__name__}"
            self._keep(call, ToolResult("", ended), began)
            raise
        self._keep(call, result, began)
        return ToolReturned(call.call_id, call.name, result.output, result.error)

    def leave(self, calls: Iterable[ToolCalled], why: str | None = None) -> None:
        """Keep a record of calls with which the answer ends."""
        for call in calls:
            self.is_waiting = True
            self._keep(call, ToolResult("", why), time.monotonic())

    def _unknown(self, name: str) -> ToolResult:
        problem = f"there is no function {name!r}; there are: {', '.join(self._tools)}"
        return ToolResult(f"Error: {problem}", problem)

    def _keep(self, call: ToolCalled, result: ToolResult, began: float) -> None:
        hide = self._hide
        self.made.append(
            ToolCall(
                hide(call.name),
                hide(call.arguments),
                hide(result.output),
                hide(result.error) if result.error else None,
                time.monotonic() - began,
                hide(result.traceback) if result.traceback else None,
            )
        )
