"""A Python function is declared to the model as it is written, and run as the model asks."""

from __future__ import annotations

import asyncio
import contextvars
import datetime as dt
import enum
import functools
import gc
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import numpy as np
import pandas as pd
import polars as pl
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity import Answer, Question, Source, Sources, tools
from ipyperplexity.errors import InvalidRequestError, PerplexityError
from ipyperplexity.tools import Tool, ToolResult, coroutines
from ipyperplexity.tools.output import MAX_ITEMS, MAX_OUTPUT
from tests.net.asking import eventually

if TYPE_CHECKING:
    from somewhere_else import Unknown


class Unit(enum.Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


@dataclass
class Place:
    city: str
    country: str | None = None


class Span(TypedDict):
    start: dt.date
    days: int


class Model(pydantic.BaseModel):
    name: str


def properties(function: Any) -> dict[str, Any]:
    shown: dict[str, Any] = Tool.of(function).declaration()["parameters"]["properties"]
    return shown


def call(function: Any, /, **arguments: Any) -> ToolResult:
    return Tool.of(function).run(json.dumps(arguments))


# --- what the model is told ---------------------------------------------------------------------


def test_a_function_is_declared_by_its_name_docstring_and_annotations() -> None:
    def weather(city: str, unit: Unit = Unit.CELSIUS, days: int = 1) -> str:
        """Look up
        the weather.

        More that the model is not told.

        Parameters
        ----------
        city : str
            Its name,
            in English.
        days
            How many.
        """

    assert Tool.of(weather).declaration() == {
        "type": "function",
        "name": "weather",
        "description": "Look up the weather.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Its name, in English."},
                "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
                "days": {"type": "integer", "description": "How many.", "default": 1},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
        "strict": False,
    }


def test_a_function_whose_parameters_are_all_required_is_strict() -> None:
    def none() -> None: ...
    def two(a: int, b: list[Place]) -> None: ...
    def loose(a: dict[str, int]) -> None: ...
    def anything(a: Any) -> None: ...

    strict = {f.__name__: Tool.of(f).declaration()["strict"] for f in (none, two, loose, anything)}
    assert strict == {"none": True, "two": True, "loose": False, "anything": False}


GOOGLE = """Do.

    Args:
        city (str): Its name,
            in English.
        days (int, optional): How many.

    Returns:
        str: nothing: at all.
    """
SPHINX = """Do.

    :param city: Its name,
        in English.
    :param int days: How many.
    :returns: nothing
    """
NUMPY = """Do.

    Parameters
    ----------
    city : str
        Its name, in English.
    days : int, optional
        How many.

    Returns
    -------
    other : str
        Nothing.
    """


@pytest.mark.parametrize("doc", [GOOGLE, SPHINX, NUMPY], ids=["google", "sphinx", "numpy"])
def test_descriptions_of_parameters_are_taken_from_the_usual_styles(doc: str) -> None:
    def find(city: str, days: int, other: str) -> None: ...

    find.__doc__ = doc
    notes = {name: shown.get("description") for name, shown in properties(find).items()}
    assert notes == {"city": "Its name, in English.", "days": "How many.", "other": None}
    assert Tool.of(find).description == "Do."


def test_a_description_in_the_annotation_goes_before_that_of_the_docstring() -> None:
    def find(city: Annotated[str, "a capital"]) -> None:
        """Do.

        :param city: any city
        """

    assert properties(find)["city"]["description"] == "a capital"


@settings(max_examples=200)
@given(st.text(alphabet="ab :-*()\n\tParametrsArgs", max_size=200))
def test_any_docstring_is_read_without_a_failure(doc: str) -> None:
    def find(city: str = "") -> None: ...

    find.__doc__ = doc
    assert len(Tool.of(find).description) <= 1000


FORMS: list[tuple[Any, dict[str, Any]]] = [
    (str, {"type": "string"}),
    (bool, {"type": "boolean"}),
    (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (dt.date, {"type": "string", "format": "date"}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (Sequence[str], {"type": "array", "items": {"type": "string"}}),
    (tuple[float, ...], {"type": "array", "items": {"type": "number"}}),
    (set[int], {"type": "array", "items": {"type": "integer"}}),
    (list, {"type": "array", "items": {}}),
    (dict, {"type": "object", "additionalProperties": {}}),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (Mapping[str, list[int]], {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}}),
    (Any, {}),
    (object, {}),
]  # fmt: skip


@pytest.mark.parametrize(("form", "schema"), FORMS)
def test_each_annotation_has_its_schema(form: Any, schema: dict[str, Any]) -> None:
    def take(value): ...

    take.__annotations__["value"] = form
    assert properties(take)["value"] == schema


def test_without_annotation_a_parameter_takes_a_value_like_its_default_else_a_single_one() -> None:
    def take(a, b=1, c="x", d=True, e=None): ...

    single = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}
    assert properties(take) == {
        "a": single,
        "b": {"type": "number", "default": 1},
        "c": {"type": "string", "default": "x"},
        "d": {"type": "boolean", "default": True},
        "e": single,
    }
    received: list[Any] = []

    def keep(a, b=1):
        received.append((a, b))

    call(keep, a=3, b=2.5)
    call(keep, a="3")
    assert received == [(3, 2.5), ("3", 1)] and type(received[0][0]) is int


def test_what_a_function_returns_need_not_be_known() -> None:
    def load(name: str) -> Unknown: ...

    assert list(properties(load)) == ["name"]


class Finder:
    """Finds."""

    def __init__(self, found: str = "it") -> None:
        self.found = found

    def find(self, name: str) -> str:
        """Find by name."""
        return f"{self.found}: {name}"

    @classmethod
    def of_class(cls, name: str) -> str:
        return name

    def __call__(self, name: str) -> str:
        return self.find(name)


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return inner


@decorated
def wrapped(name: str) -> str:
    """Go round."""
    return name


def joined(left: str, right: str, end: str = "") -> str:
    """Join."""
    return left + right + end


CALLABLES: list[tuple[Any, str, str, list[str]]] = [
    (Finder().find, "find", "Find by name.", ["name"]),
    (Finder.of_class, "of_class", "", ["name"]),
    (Finder(), "Finder", "Finds.", ["name"]),
    (wrapped, "wrapped", "Go round.", ["name"]),
    (functools.partial(joined, "a"), "joined", "Join.", ["right", "end"]),
    (functools.partial(joined, left="a"), "joined", "Join.", ["right", "end"]),
    (functools.partial(Finder().find), "find", "Find by name.", ["name"]),
]


@pytest.mark.parametrize(("function", "name", "description", "parameters"), CALLABLES)
def test_methods_partials_wrapped_functions_and_callable_objects_will_do(
    function: Any, name: str, description: str, parameters: list[str]
) -> None:
    tool = Tool.of(function)
    assert (tool.name, tool.description) == (name, description)
    assert list(properties(function)) == parameters
    result = tool.run(json.dumps(dict.fromkeys(parameters, "b")))
    assert result.error is None and "b" in result.output


# --- what is refused ----------------------------------------------------------------------------


def positional(a: int, /) -> None: ...
def many(*values: int) -> None: ...
def free(**values: int) -> None: ...
def complicated(a: complex) -> None: ...
def deep(places: list[complex]) -> None: ...
def keyed(a: dict[int, str]) -> None: ...
def unreadable(a: Unknown) -> None: ...


odd = Finder().find.__func__
named_oddly = lambda: None  # noqa: E731
named_oddly.__name__ = "a b"
REFUSED: list[tuple[Any, str]] = [
    (lambda x: x, "got a lambda"),
    (named_oddly, "'a b'"),
    (Finder, "the class Finder"),
    (Finder.find, "self is not bound"),
    (positional, "positional: a is positional-only"),
    (many, "many: it takes *values"),
    (free, "free: it takes **values"),
    (complicated, "complicated(a): complex is not supported"),
    (deep, "deep(places)[]: complex is not supported"),
    (keyed, "keyed(a): a dict whose keys are no text"),
    (unreadable, "unreadable: an annotation cannot be read (name 'Unknown' is not defined)"),
    (max, "signature"),
    ([joined, joined], "'joined'"),
    ([joined, {"type": "function", "name": "joined"}], "'joined'"),
    ([joined, 3], "got 3"),
]


@pytest.mark.parametrize(("given_tools", "said"), REFUSED, ids=range(len(REFUSED)))
def test_what_the_model_could_not_call_is_refused_when_it_is_given(
    given_tools: Any, said: str
) -> None:
    with pytest.raises(InvalidRequestError) as raised:
        Question("Why?", tools=given_tools)
    assert raised.value.field == "tools"
    assert raised.value.message.startswith("tools: ")
    assert said in raised.value.message
    assert "allowed: " in raised.value.message


def test_functions_stand_beside_names_and_dicts_and_are_recorded_nowhere() -> None:
    own = {"type": "mcp", "server_label": "a", "server_url": "https://a.example"}
    question = Question("Why?", tools=[joined, "fetch_url", own])
    tool, *others = question.tools
    assert isinstance(tool, Tool) and tool.function is joined
    assert others == [{"type": "fetch_url"}, own]
    assert question.given() == {}
    assert Question("Why?", tools=joined).tools[0].name == "joined"
    assert Question("Why?", tools=question.tools).tools == question.tools


# --- arguments ----------------------------------------------------------------------------------


def test_arguments_arrive_as_what_the_annotations_promise() -> None:
    received: dict[str, Any] = {}

    def take(day: dt.date, place: Place, span: Span, model: Model, unit: Unit, tags: set[str], counts: dict[str, int]) -> None:  # fmt: skip
        received.update(locals())

    result = call(
        take,
        day="2026-01-05",
        place={"city": "Ghent"},
        span={"start": "2026-01-06", "days": 2},
        model={"name": "m"},
        unit="f",
        tags=["a", "a"],
        counts={"x": 1},
    )
    assert result == ToolResult("null")
    received.pop("received", None)
    assert received == {
        "day": dt.date(2026, 1, 5),
        "place": Place("Ghent"),
        "span": {"start": dt.date(2026, 1, 6), "days": 2},
        "model": Model(name="m"),
        "unit": Unit.FAHRENHEIT,
        "tags": {"a"},
        "counts": {"x": 1},
    }


def test_arguments_that_are_left_out_or_null_have_their_defaults() -> None:
    for arguments in ('{"left": "a", "right": "b"}', '{"left": "a", "right": "b", "end": null}'):
        assert Tool.of(joined).run(arguments).output == "ab"

    def either(a: int | None = 3) -> Any:
        return a

    assert call(either).output == "3"
    assert call(either, a=None).output == "null"


@pytest.mark.parametrize("arguments", ["", " ", "{}"])
def test_a_function_without_parameters_takes_nothing(arguments: str) -> None:
    def now() -> str:
        return "noon"

    assert Tool.of(now).run(arguments).output == "noon"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ('{"left": "a"}', "right: is missing"),
        ('{"left": "a", "right": 3}', "right: expected a string, found 3"),
        ('{"left": "a", "right": "b", "ende": ""}', "ende: unknown key; expected left, right, end"),
        ('{"left": "a", "ri', "they are no JSON"),
        ("[1]", "expected an object, found a list of 1"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_wrong_arguments_are_told_to_the_model_and_run_nothing(arguments: str, said: str) -> None:
    result = Tool.of(joined).run(arguments)
    assert result.error is not None and said in result.error
    assert result.output == f"Error: {result.error}"
    assert result.traceback is None


@settings(max_examples=200)
@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_whatever_the_model_writes_gives_an_answer_to_it(arguments: str) -> None:
    result = Tool.of(joined).run(arguments)
    assert result.output


# --- results ------------------------------------------------------------------------------------


class Plain:
    def __str__(self) -> str:
        return "plain"


FRAME = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
PAGES = Sources([Source(1, "Dune", "https://d.example", "d.example")])
LOOP: list[Any] = []
LOOP.append(LOOP)
RESULTS: list[tuple[Any, str]] = [
    ("text\nas it is", "text\nas it is"),
    (None, "null"),
    (True, "true"),
    (1.5, "1.5"),
    ({"é": [1, None]}, '{"é": [1, null]}'),
    ((1, 2), "[1, 2]"),
    ({3}, "[3]"),
    ({dt.date(2026, 1, 5): 2}, '{"2026-01-05": 2}'),
    ([dt.datetime(2026, 1, 5, 12)], '["2026-01-05T12:00:00"]'),
    (Unit.CELSIUS, "c"),
    (dt.date(2026, 1, 5), "2026-01-05"),
    (b"raw", "b'raw'"),
    (Place("Ghent", "BE"), '{"city": "Ghent", "country": "BE"}'),
    (Model(name="m"), '{"name": "m"}'),
    (np.arange(3), "[0, 1, 2]"),
    ({"n": np.int64(3)}, '{"n": 3}'),
    (Plain(), "plain"),
    ({"p": Plain()}, '{"p": "plain"}'),
    (iter([1, 2]), "[1, 2]"),
    (LOOP, "[[...]]"),
    ("half \ud800", "half \ufffd"),
]


@pytest.mark.parametrize(("value", "text"), RESULTS, ids=range(len(RESULTS)))
def test_a_result_is_told_as_text(value: Any, text: str) -> None:
    def give() -> Any:
        return value

    assert call(give) == ToolResult(text)


def test_a_frame_is_told_as_a_short_table() -> None:
    for frame in (FRAME, pl.DataFrame({"a": [1, 2], "b": ["x", "y"]})):

        def give(frame: Any = frame) -> Any:
            return frame

        tool = Tool(give, "give", "", Tool.of(lambda_free).parameters)
        table = tool.run("{}").output
        assert table.startswith("Table of 2 rows x 2 columns")
        assert "| 1 | x |" in table
        assert "| 1 | x |" in call_value({"table": frame})


def lambda_free() -> None: ...


def call_value(value: Any) -> str:
    def give() -> Any:
        return value

    return call(give).output


def test_an_answer_and_sources_are_told_with_their_pages() -> None:
    answer = Answer("Which?", "It is tall.[1]", sources=PAGES)
    assert "It is tall.[1]" in call_value(answer) and "https://d.example" in call_value(answer)
    assert json.loads(call_value(PAGES))[0]["url"] == "https://d.example"
    assert "https://d.example" in call_value([answer])


def test_a_long_result_is_cut_and_says_so() -> None:
    output = call_value("x" * (MAX_OUTPUT + 5))
    assert output == "x" * MAX_OUTPUT + "\n[cut here: 100,000 of 100,005 characters]"


def test_an_endless_generator_ends() -> None:
    def count() -> Iterator[int]:
        n = 0
        while True:
            yield (n := n + 1)

    assert len(json.loads(call(count).output)) == MAX_ITEMS


# --- errors -------------------------------------------------------------------------------------


def test_what_a_function_raises_is_told_to_the_model_and_its_place_to_the_user() -> None:
    def divide(a: float) -> float:
        secret_local = "hidden"  # noqa: F841
        return a / 0

    result = call(divide, a=1)
    assert result.output == "Error: ZeroDivisionError: float division by zero"
    assert result.error == "ZeroDivisionError: float division by zero"
    assert result.traceback is not None
    assert "return a / 0" in result.traceback and "in divide" in result.traceback
    assert "tool.py" not in result.traceback, "our own frames are of no use to the user"


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Unwritable:
    def __str__(self) -> str:
        raise ValueError("no text")

    __repr__ = __str__


def test_an_error_that_cannot_be_written_is_told_by_its_type() -> None:
    def fail() -> None:
        raise Unspeakable

    assert call(fail).output == "Error: Unspeakable"
    assert call_value(Unwritable()) == "Error: ValueError: no text"


def test_an_error_of_this_package_in_a_function_is_an_error_of_the_function() -> None:
    def ask() -> None:
        raise PerplexityError("inner")

    assert call(ask).output == "Error: PerplexityError: inner"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_or_exit_in_a_function_comes_through(kind: type[BaseException]) -> None:
    def stop() -> None:
        raise kind

    async def stop_too() -> None:
        raise kind

    for function in (stop, stop_too):
        with pytest.raises(kind):
            call(function)

    async def fine() -> str:
        return "fine"

    assert call(fine).output == "fine", "the helper's loop has survived"


# --- coroutines ---------------------------------------------------------------------------------

LANGUAGE: contextvars.ContextVar[str] = contextvars.ContextVar("language", default="none")


async def where(pause: float = 0.001) -> str:
    await asyncio.sleep(pause)
    return f"{threading.current_thread().name} {id(asyncio.get_running_loop())} {LANGUAGE.get()}"


class AsyncFinder:
    async def __call__(self) -> str:
        return "found"


def test_a_coroutine_runs_on_a_helper_thread_which_keeps_its_loop() -> None:
    token = LANGUAGE.set("nl")
    first, second = call(where).output, call(where).output
    LANGUAGE.reset(token)
    assert first == second, "a connection pool of the user's stays usable"
    assert first.startswith("ipyperplexity-tools ") and first.endswith(" nl")


def test_a_coroutine_runs_where_a_loop_runs_already() -> None:
    async def main() -> ToolResult:
        return call(where)

    assert asyncio.run(main()).output.startswith("ipyperplexity-tools")


def test_anything_awaitable_will_do() -> None:
    def plain() -> Any:
        return where()

    assert call(plain).error is None
    assert call(AsyncFinder()).output == "found"
    assert [Tool.of(f).is_coroutine for f in (where, AsyncFinder(), functools.partial(where), plain)] == [
        True, True, True, False]  # fmt: skip


def test_what_a_coroutine_raises_is_told_with_its_place() -> None:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise LookupError("not there")

    result = call(fail)
    assert result.output == "Error: LookupError: not there"
    assert result.traceback is not None and "in fail" in result.traceback
    assert "coroutines.py" not in result.traceback


def test_a_coroutine_that_cancels_itself_has_failed() -> None:
    async def give_up() -> None:
        raise asyncio.CancelledError

    assert call(give_up).error == "CancelledError"


def test_a_coroutine_tool_may_ask_for_another() -> None:
    async def outer() -> str:
        return call(middle).output

    async def middle() -> str:
        return call(where).output

    assert call(outer).output.startswith("ipyperplexity-tools")


class Sleeper:
    """A coroutine that waits until it is cancelled."""

    def __init__(self, *, stubborn: bool = False) -> None:
        self.began, self.cancelled = threading.Event(), threading.Event()
        self.stubborn = stubborn
        self.release, self.was_released = threading.Event(), True

    async def sleep(self) -> None:
        self.began.set()
        if self.stubborn:
            self.was_released = self.release.wait(20)  # blocks the loop, as no coroutine should
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@pytest.mark.parametrize("stubborn", [False, True])
def test_an_interrupt_cancels_the_coroutine_at_once(stubborn: bool) -> None:
    sleeper = Sleeper(stubborn=stubborn)

    def interrupt() -> None:
        assert sleeper.began.wait(5)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        call(sleeper.sleep)
    thread.join()
    assert sleeper.cancelled.is_set() is not stubborn
    assert call(where).error is None, "whatever the last one does, the next one runs"
    sleeper.release.set()
    assert sleeper.cancelled.wait(5) and sleeper.was_released


def test_what_the_watcher_raises_cancels_the_coroutine_and_comes_through() -> None:
    sleeper = Sleeper()

    def watch() -> None:
        if sleeper.began.is_set():
            raise PerplexityError("enough")

    with pytest.raises(PerplexityError, match="enough"):
        Tool.of(sleeper.sleep).run("{}", watch)
    assert sleeper.cancelled.is_set()


def test_helpers_that_were_let_go_end() -> None:
    def helpers() -> int:
        gc.collect()
        return sum(t.name == "ipyperplexity-tools" for t in threading.enumerate())

    async def outer() -> str:
        return call(where).output

    call(outer)
    assert eventually(lambda: helpers() == 1)


def in_a_new_process(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


ON_THE_KERNELS_LOOP = """
import asyncio, os, signal, sys, threading
from ipyperplexity import tools
from ipyperplexity.tools import Tool
assert "nest_asyncio" not in sys.modules
tools.run_coroutines_on = "kernel"
cancelled = []
async def where():
    await asyncio.sleep(0.001)
    return f"{threading.current_thread().name} {asyncio.get_running_loop() is loop}"
async def sleep():
    loop.call_later(0.1, os.kill, os.getpid(), signal.SIGINT)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        cancelled.append(True)
        raise
async def fail():
    raise LookupError("x")
async def cell():
    print(Tool.of(where).run("{}").output)
    print(Tool.of(fail).run("{}").output)
    try:
        Tool.of(sleep).run("{}")
    except KeyboardInterrupt:
        print("interrupted", cancelled)
    print(Tool.of(where).run("{}").output)
    return "nest_asyncio" in sys.modules
async def outside():
    return threading.current_thread().name
print(Tool.of(outside).run("{}").output, "nest_asyncio" in sys.modules)
# As the kernel runs: without asyncio's own way of taking an interrupt.
loop = asyncio.new_event_loop()
print(loop.run_until_complete(cell()))
"""


def test_on_demand_a_coroutine_runs_on_the_kernels_own_loop() -> None:
    assert in_a_new_process(ON_THE_KERNELS_LOOP).splitlines() == [
        "ipyperplexity-tools False",
        "MainThread True",
        "Error: LookupError: x",
        "interrupted [True]",
        "MainThread True",
        "True",
    ]


WITHOUT_THE_LIBRARY = """
import asyncio, sys
sys.modules["nest_asyncio"] = None
import importlib.util, importlib.machinery
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "nest_asyncio" else find(name, *rest)
from ipyperplexity import tools, Client, errors
from ipyperplexity.tools import Tool
tools.run_coroutines_on = "kernel"
async def where(): return "here"
async def cell():
    for attempt in (lambda: Tool.of(where).run("{}"), lambda: Client(backend="demo").stream("Why?", tools=[where])):
        try:
            attempt()
        except errors.MissingLibrary as error:
            print(error)
asyncio.run(cell())
"""


def test_without_the_library_the_extra_is_named_before_anything_is_asked() -> None:
    said = in_a_new_process(WITHOUT_THE_LIBRARY).splitlines()
    assert len(said) == 2
    assert all("pip install 'ipyperplexity[nest]'" in line for line in said)


def test_where_coroutines_run_by_default() -> None:
    assert tools.run_coroutines_on == "helper thread"
    assert coroutines.check_place("helper thread") is None
