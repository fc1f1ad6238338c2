"""The parameters of a function: the JSON schema that the model sees, and the loader of arguments.

Invariant: what the schema allows is what the loader takes, and what the loader gives is what the
annotation promises (dates, Enum members, dataclasses). A function that could not be called by a
JSON object of its arguments is refused when it is given, not when the model first calls it.
"""

from __future__ import annotations

import collections.abc
import enum
import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Any, get_args, get_origin

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.schema.compiler import Compiler, FormKind, Node
from ipyperplexity.schema.form_kinds import FORM_KINDS
from ipyperplexity.schema.json_schema import Json, parts_of
from ipyperplexity.schema.json_values import Load, require_type
from ipyperplexity.schema.keywords import checking
from ipyperplexity.schema.mismatch import path_to
from ipyperplexity.schema.object_forms import Member, as_dict, object_node
from ipyperplexity.schema.refusal import refusal
from ipyperplexity.schema.strict import is_strict


@dataclass(frozen=True)
class Parameters:
    """What a function takes.

    Attributes
    ----------
    document : dict
        JSON schema of an object with one property a parameter; required are those without default.
    strict : bool
        Whether the schema keeps the rules of strict structured outputs: all parameters required.
    load : callable
        ``load(value, path)``: a JSON object to keyword arguments; raises ``SchemaMismatch``.
    """

    document: Json
    strict: bool
    load: Load


def parameters_of(function: Callable[..., Any], name: str, notes: Mapping[str, str]) -> Parameters:
    """Read the signature of a function.

    Parameters
    ----------
    function : callable
    name : str
        What messages call it.
    notes : mapping
        Descriptions of its parameters, from the docstring.

    Raises
    ------
    InvalidRequestError
        If it cannot be called by names, or an annotation has no JSON schema.
    """
    given = _given_parameters(function, name)
    hints = _hints(function, name, given)
    compiler = Compiler((*_MORE_KINDS, *FORM_KINDS))
    members: dict[str, Member] = {}
    for parameter in given:
        node = _node(compiler, parameter, hints, name)
        if note := notes.get(parameter.name):
            node = node if "description" in node.schema else node.described(note)
        members[parameter.name] = Member(node, parameter.default is not Parameter.empty)
    document: Json = {
        "type": "object",
        "properties": {p.name: _shown(members[p.name].node.schema, p.default) for p in given},
        "required": [key for key, member in members.items() if not member.optional],
        "additionalProperties": False,
    }
    if compiler.definitions:
        document["$defs"] = compiler.definitions
    compiler.document = document
    strict = is_strict(document) and all(part.keys() & _TYPED for part in parts_of(document))
    return Parameters(document, strict, object_node(members, as_dict).load)


#: Keywords of which one has to say what a value is, where a schema is strict.
_TYPED = {"type", "anyOf", "enum", "$ref"}


def _refuse(name: str, problem: str, allowed: str) -> InvalidRequestError:
    return InvalidRequestError(f"tools: {name}: {problem}; allowed: {allowed}.", field="tools")


def _given_parameters(function: Callable[..., Any], name: str) -> list[Parameter]:
    problem = ""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError, NameError) as error:
        problem = f"its signature cannot be read ({error})"
    if problem:
        raise _refuse(name, problem, "a function written in Python, whose annotations can be read")
    # What a partial gives by name is settled, and no matter of the model's.
    settled = function.keywords if isinstance(function, functools.partial) else {}
    given = [p for p in signature.parameters.values() if p.name not in settled]
    for position, parameter in enumerate(given):
        if parameter.kind in _BY_NAME and not (position == 0 and parameter.name in ("self", "cls")):
            continue
        problem = _KINDS.get(parameter.kind, "{} is not bound").format(parameter.name)
        raise _refuse(
            name, problem, "parameters that each have a name, as the model gives them by name"
        )
    return given


_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_KINDS: dict[Any, str] = {
    Parameter.POSITIONAL_ONLY: "{} is positional-only",
    Parameter.VAR_POSITIONAL: "it takes *{}",
    Parameter.VAR_KEYWORD: "it takes **{}",
}


def _hints(function: Callable[..., Any], name: str, given: list[Parameter]) -> dict[str, Any]:
    """Return the annotation of each parameter that has one, with names looked up."""
    annotations = {p.name: p.annotation for p in given if p.annotation is not Parameter.empty}
    base: Any = function
    while isinstance(base, functools.partial):
        base = base.func
    if not inspect.isroutine(base):
        base = type(base).__call__
    names = getattr(inspect.unwrap(getattr(base, "__func__", base)), "__globals__", {})
    # Of the parameters only: the name of what is returned is often there for type checkers alone.
    holder = type(name, (), {"__annotations__": annotations})
    problem = ""
    try:
        return typing.get_type_hints(holder, names, {}, include_extras=True)
    except (NameError, TypeError, SyntaxError, AttributeError) as error:
        problem = f"an annotation cannot be read ({error})"
    raise _refuse(name, problem, "annotations whose names can be found in the function's module")


def _node(compiler: Compiler, parameter: Parameter, hints: Mapping[str, Any], name: str) -> Node:
    if parameter.name not in hints:
        return _unannotated(parameter.default)
    message = ""
    try:
        return compiler.node(hints[parameter.name], f"({parameter.name})")
    except InvalidRequestError as error:
        message = error.message.removeprefix("schema")
    except RecursionError:
        message = f"({parameter.name}): its annotation contains itself"
    raise InvalidRequestError(f"tools: {name}{message}", field="tools")


def _unannotated(default: Any) -> Node:
    """Return a schema for values like the default; without one, for any single value."""
    schema = next((schema for cls, schema in _LIKE.items() if type(default) is cls), _SINGLE_VALUE)
    return Node(schema, checking(schema, schema))


#: Default's type -> schema. An integer default is often a number that was written short.
_LIKE: dict[type, Json] = {
    bool: {"type": "boolean"},
    int: {"type": "number"},
    float: {"type": "number"},
    str: {"type": "string"},
}
_SINGLE_VALUE: Json = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}


def _shown(schema: Json, default: Any) -> Json:
    value = default.value if isinstance(default, enum.Enum) else default
    if "$ref" in schema or type(value) not in _LIKE:
        return schema
    return {**schema, "default": value}


# --- forms of parameters that no structured answer has -------------------------------------------


def _read_any(compiler: Compiler, form: Any, where: str) -> Node:
    return Node({}, lambda value, path: value)


_COLLECTIONS: dict[Any, Callable[[Any], Any]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: list,
    collections.abc.Iterable: list,
    collections.abc.Collection: list,
}
_MAPPINGS = (dict, collections.abc.Mapping)


def _is_open_collection(form: Any) -> bool:
    """Whether it is a bare collection, or one that is no list of a structured answer."""
    kind = get_origin(form) or form
    if not any(kind is known for known in _COLLECTIONS):
        return False
    return not get_args(form) or kind not in (list, tuple, collections.abc.Sequence)


def _read_collection(compiler: Compiler, form: Any, where: str) -> Node:
    build = _COLLECTIONS[get_origin(form) or form]
    (inner,) = get_args(form) or (Any,)
    item = compiler.node(inner, f"{where}[]")

    def load(value: Any, path: str) -> Any:
        require_type("array", value, path)
        return build(item.load(one, path_to(path, index)) for index, one in enumerate(value))

    return Node({"type": "array", "items": item.schema}, load)


def _is_mapping(form: Any) -> bool:
    return any(kind is (get_origin(form) or form) for kind in _MAPPINGS)


def _read_mapping(compiler: Compiler, form: Any, where: str) -> Node:
    key, inner = get_args(form) or (str, Any)
    if key not in (str, Any):
        raise refusal(where, "a dict whose keys are no text")
    item = compiler.node(inner, f"{where}[...]")

    def load(value: Any, path: str) -> Any:
        require_type("object", value, path)
        return {name: item.load(one, path_to(path, name)) for name, one in value.items()}

    return Node({"type": "object", "additionalProperties": item.schema}, load)


_MORE_KINDS: tuple[FormKind, ...] = (
    (lambda form: form is Any or form is object, _read_any),
    (_is_open_collection, _read_collection),
    (_is_mapping, _read_mapping),
)
