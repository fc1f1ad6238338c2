"""Forms of a single value or a list: scalars, descriptions, alternatives, choices, lists."""

from __future__ import annotations

import datetime as dt
import enum
import types
from collections.abc import Callable, Iterator
from typing import Any, get_args, get_origin

from ipyperplexity.schema.compiler import Compiler, Node, doc_of
from ipyperplexity.schema.json_schema import Json
from ipyperplexity.schema.json_values import (
    Load,
    first_fit,
    index_of,
    is_number,
    load_format,
    require_type,
    type_name,
)
from ipyperplexity.schema.mismatch import path_to
from ipyperplexity.schema.refusal import brief, refusal

# --- scalars -----------------------------------------------------------------------------------


def _typed(name: str, convert: Callable[[Any], Any] | None = None) -> Node:
    def load(value: Any, path: str) -> Any:
        require_type(name, value, path)
        return convert(value) if convert else value

    return Node({"type": name}, load)


def _formatted(name: str) -> Node:
    def load(value: Any, path: str) -> Any:
        require_type("string", value, path)
        return load_format(name, value, path)

    return Node({"type": "string", "format": name}, load)


SCALARS: dict[Any, Node] = {
    str: _typed("string"),
    int: _typed("integer", int),
    float: _typed("number", float),
    bool: _typed("boolean"),
    dt.date: _formatted("date"),
    dt.datetime: _formatted("date-time"),
    types.NoneType: _typed("null"),
}

#: Strings that, as the value of a short form, are a type and no description.
_TYPE_NAMES: dict[str, type] = {
    **{cls.__name__: cls for cls in (str, int, float, bool, dt.date, dt.datetime)},
    **{"string": str, "integer": int, "number": float, "boolean": bool},
}


def read_scalar(compiler: Compiler, form: Any, where: str) -> Node:
    return SCALARS[types.NoneType if form is None else form]


def read_text(compiler: Compiler, form: str, where: str) -> Node:
    if not where:
        raise refusal(where, f"the text {brief(form)}")
    named = _TYPE_NAMES.get(form)
    return SCALARS[named] if named else SCALARS[str].described(form)


# --- descriptions ------------------------------------------------------------------------------


def read_pair(compiler: Compiler, form: tuple[Any, ...], where: str) -> Node:
    if len(form) != 2 or not isinstance(form[1], str):
        raise refusal(where, brief(form))
    return compiler.node(form[0], where).described(form[1])


def read_annotated(compiler: Compiler, form: Any, where: str) -> Node:
    inner, *notes = get_args(form)
    texts = (
        note if isinstance(note, str) else getattr(note, "documentation", None) for note in notes
    )
    return compiler.node(inner, where).described(next(filter(None, texts), None))


# --- alternatives and choices ------------------------------------------------------------------


def read_union(compiler: Compiler, form: Any, where: str) -> Node:
    members = [member for member in get_args(form) if member is not types.NoneType]
    nodes = [compiler.node(member, where) for member in members]
    node = nodes[0] if len(nodes) == 1 else _alternatives(nodes)
    return node if len(members) == len(get_args(form)) else node.or_null()


def _alternatives(nodes: list[Node]) -> Node:
    loads: list[Load] = [node.load for node in nodes]
    return Node(
        {"anyOf": [node.schema for node in nodes]},
        lambda value, path: first_fit(loads, value, path),
    )


def read_literal(compiler: Compiler, form: Any, where: str) -> Node:
    meanings = [value for value in get_args(form) if value is not None]
    values = [value.value if isinstance(value, enum.Enum) else value for value in meanings]
    node = _choice(values, meanings, form, where)
    return node if len(meanings) == len(get_args(form)) else node.or_null()


def read_enum(compiler: Compiler, form: type[enum.Enum], where: str) -> Node:
    members = list(form)
    node = _choice([member.value for member in members], members, form, where)
    if node.schema.get("type") == "string":
        return node.described(doc_of(form))
    # A model cannot know what 1 and 2 stand for.
    return node.described(", ".join(f"{member.value} = {member.name}" for member in members))


def _choice(values: list[Any], meanings: list[Any], form: Any, where: str) -> Node:
    if not values or not all(isinstance(v, str | bool) or is_number(v) for v in values):
        raise refusal(where, brief(form))
    names = set(map(type_name, values))
    schema: Json = {"type": names.pop()} if len(names) == 1 else {}
    return Node(
        {**schema, "enum": values}, lambda value, path: meanings[index_of(value, values, path)]
    )


# --- lists -------------------------------------------------------------------------------------


def read_list(compiler: Compiler, form: Any, where: str) -> Node:
    items = form if isinstance(form, list) else list(get_args(form))
    build: Callable[[Iterator[Any]], Any] = list
    if get_origin(form) is tuple:
        build, items = tuple, items[:1] if items[1:] == [...] else []
    if len(items) != 1:
        raise refusal(where, brief(form))
    item = compiler.node(items[0], f"{where}[]")

    def load(value: Any, path: str) -> Any:
        require_type("array", value, path)
        return build(item.load(one, path_to(path, index)) for index, one in enumerate(value))

    return Node({"type": "array", "items": item.schema}, load)
