"""The record that an answer keeps of a function that was run for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ToolCall:
    """One call of a function by the model.

    Attributes
    ----------
    name : str
        The function, as the model named it.
    arguments : str
        JSON of its arguments, as the model wrote it.
    output : str
        What the model was told; empty if the function was not run.
    error : str or None
        What went wrong, such as ``"ValueError: no such city"``.
    elapsed : float
        Seconds that it took.
    traceback : str or None
        Where the function raised, for you; the model sees only ``error``.

    Examples
    --------
    >>> ToolCall("add", '{"a": 1, "b": 2}', "3").output
    '3'
    """

    name: str
    arguments: str
    output: str = ""
    error: str | None = None
    elapsed: float = 0.0
    traceback: str | None = None
