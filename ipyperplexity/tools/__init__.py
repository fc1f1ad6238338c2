"""Python functions that the model may call: how each is declared, run and told of.

From the bottom: what a docstring says (`docstring`), a signature as a JSON schema (`parameters`), a
result as text (`output`), where coroutines run (`coroutines`), the record of a call (`tool_call`),
and on top `Tool`, one function with all of it. Nothing here knows a wire or a notebook.
"""

from __future__ import annotations

from typing import Literal

from ipyperplexity.tools.tool import Tool, ToolResult
from ipyperplexity.tools.tool_call import ToolCall

__all__ = ["Tool", "ToolCall", "ToolResult", "run_coroutines_on"]

#: Where coroutine functions run: on a loop of a helper thread's own, which works everywhere, or on
#: the kernel's loop, which needs the extra ``nest`` and suits what is bound to that loop.
run_coroutines_on: Literal["helper thread", "kernel"] = "helper thread"
