"""A function of the notebook that the model may call.

Invariant: whatever the model writes and whatever the function does, ``run`` gives back a text to
tell the model; only what is meant for the user (an interrupt, an exit, a stop) comes through.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from ipyperplexity.errors import InvalidRequestError

if TYPE_CHECKING:
    from ipyperplexity.tools.parameters import Parameters

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_MESSAGE = 2000
_MAX_TRACEBACK = 20_000


@dataclass(frozen=True)
class ToolResult:
    """What a call came to.

    Attributes
    ----------
    output : str
        What the model is told, errors too.
    error : str or None
        What went wrong, such as ``"ValueError: no such city"``.
    traceback : str or None
        Where the function raised.
    """

    output: str
    error: str | None = None
    traceback: str | None = None


@dataclass(frozen=True, eq=False)
class Tool:
    """A function with what the model is told of it; made with :meth:`of`.

    Attributes
    ----------
    function : callable
    name : str
        1 to 64 of ``A-Z a-z 0-9 _ -``.
    description : str
        The first paragraph of the docstring; may be empty.
    parameters : Parameters
    """

    function: Callable[..., Any]
    name: str
    description: str
    parameters: Parameters

    @classmethod
    def of(cls, function: Any) -> Tool:
        """Make a tool of a function, method, partial or object with ``__call__``.

        The JSON schema of its parameters comes from the annotations: what a structured answer can
        have (``str int float bool date datetime Literal Enum list dataclass TypedDict`` and
        pydantic models), and ``dict``, sets and ``Any``. A parameter without annotation takes a
        value like its default, else a text, a number or true or false. Parameters with a default
        may be left out.

        Parameters
        ----------
        function : callable
            Plain or ``async``. What it is for stands in the first paragraph of its docstring, what
            its parameters mean in numpy, Google or Sphinx style.

        Raises
        ------
        InvalidRequestError
            If it has no usable name (a lambda), is a class, or has parameters that a JSON object
            cannot give.

        Examples
        --------
        >>> def add(a: int, b: int = 1) -> int:
        ...     "Add two numbers."
        ...     return a + b
        >>> Tool.of(add).declaration()["parameters"]["required"]
        ['a']
        >>> Tool.of(add).run('{"a": 2}').output
        '3'
        """
        if isinstance(function, cls):
            return function
        if isinstance(function, type):
            _refuse(f"got the class {function.__name__}")
        if not callable(function):
            _refuse(f"got a value of type {type(function).__name__}")
        name = _name_of(function)
        if not _NAME.fullmatch(name):
            what = "a lambda" if name == "<lambda>" else f"a function named {name[:80]!r}"
            _refuse(f"got {what}")
        from ipyperplexity.tools.docstring import parameter_notes, summary
        from ipyperplexity.tools.parameters import parameters_of

        doc = _doc_of(function)
        return cls(
            function, name, summary(doc), parameters_of(function, name, parameter_notes(doc))
        )

    @property
    def is_coroutine(self) -> bool:
        """Whether calling it gives a coroutine."""
        function: Any = self.function
        while isinstance(function, functools.partial):
            function = function.func
        call = type(function).__call__
        return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)

    def declaration(self) -> dict[str, Any]:
        """Return the entry of the request's ``tools`` (official-api 2.2)."""
        words = {"description": self.description} if self.description else {}
        return {
            "type": "function",
            "name": self.name,
            **words,
            "parameters": self.parameters.document,
            # Said in any case: services differ in what they take for granted.
            "strict": self.parameters.strict,
        }

    def run(self, arguments: str, watch: Callable[[], None] = lambda: None) -> ToolResult:
        """Call the function with arguments as the model wrote them.

        Parameters
        ----------
        arguments : str
            A JSON object.
        watch : callable
            Called about every 0.05 s while a coroutine runs; what it raises ends that and comes
            through.

        Raises
        ------
        MissingLibrary
            If coroutines shall run on the kernel's loop, and nest_asyncio is not installed.

        Examples
        --------
        >>> def half(number: float) -> float:
        ...     return number / 2
        >>> Tool.of(half).run('{"nmber": 4}').output
        'Error: the arguments do not fit: nmber: unknown key; expected number'
        """
        from ipyperplexity.schema import SchemaMismatch

        problem = ""
        try:
            given = self.parameters.load(_parse(arguments), "")
        except SchemaMismatch as mismatch:
            problem = f"{mismatch.path}: {mismatch.reason}" if mismatch.path else mismatch.reason
        except Exception as error:  # a check of the user's own class may raise anything
            problem = _said(error)
        if problem:
            problem = f"the arguments do not fit: {problem[:_MAX_MESSAGE]}"
            return ToolResult(f"Error: {problem}", problem)
        return self._call(given, watch)

    def _call(self, given: dict[str, Any], watch: Callable[[], None]) -> ToolResult:
        from ipyperplexity.tools.output import to_text

        raised: BaseException | None = None
        try:
            value = self.function(**given)
        except Exception as error:
            raised = error
        if raised is None and inspect.isawaitable(value):
            from ipyperplexity import tools
            from ipyperplexity.tools import coroutines

            outcome = coroutines.settle(value, watch, tools.run_coroutines_on)
            value, raised = outcome.value, outcome.error
            if raised is not None and not isinstance(raised, Exception):
                _pass_on(raised)
        if raised is None:
            try:
                return ToolResult(to_text(value))
            except Exception as error:  # its repr, or a generator's body: the function's own code
                raised = error
        return _failed(raised)


def _refuse(given: str) -> NoReturn:
    raise InvalidRequestError(
        f"tools: {given}; allowed: functions with a name of 1 to 64 letters, digits, _ or -.",
        field="tools",
        hint="Write it with def: its name and docstring tell the model what it is for.",
    )


def _name_of(function: Any) -> str:
    name = getattr(function, "__name__", None)
    if isinstance(name, str):
        return name
    if isinstance(function, functools.partial):
        return _name_of(function.func)
    return type(function).__name__


def _doc_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function):
        call = inspect.getdoc(type(function).__call__)
        # What every object's method says of itself is not about this one.
        own = call if call != inspect.getdoc(type(_doc_of).__call__) else None
        return own or inspect.getdoc(function) or ""
    return inspect.getdoc(function) or ""


def _parse(arguments: str) -> Any:
    from ipyperplexity.schema import SchemaMismatch

    if not arguments.strip():  # so some models call a function that takes nothing
        return {}
    try:
        return json.loads(arguments)
    except RecursionError:
        problem = "they are nested too deeply"
    except ValueError as error:
        problem = f"they are no JSON ({error})"
    raise SchemaMismatch("", problem)


def _pass_on(error: BaseException) -> None:
    import asyncio

    # A coroutine that cancels itself has failed; an interrupt or exit() is not the model's matter.
    if not isinstance(error, asyncio.CancelledError):
        raise error


def _said(error: BaseException) -> str:
    try:
        message = " ".join(str(error).split())
    except Exception:  # a `__str__` is the user's code
        message = ""
    return f"{type(error).__name__}: {message}"[:_MAX_MESSAGE] if message else type(error).__name__


def _failed(error: BaseException) -> ToolResult:
    from ipyperplexity.tabular.cells import clean_text

    said = clean_text(_said(error))
    try:
        where = "".join(traceback.format_exception(type(error), error, _own_part(error)))
    except Exception:
        where = said
    error.__traceback__ = None  # its frames hold whatever the function had at hand
    return ToolResult(f"Error: {said}", said, clean_text(where[-_MAX_TRACEBACK:]))


def _own_part(error: BaseException) -> TracebackType | None:
    """Return the traceback from the function on, without the frames of this package above it."""
    part = error.__traceback__
    while part is not None and part.tb_frame.f_globals.get("__package__") == __package__:
        part = part.tb_next
    return part
