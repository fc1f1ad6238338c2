"""Forms of an object: short forms, dataclasses and TypedDicts.

Invariant: a key that the form does not have is a misfit, never dropped in silence: a misspelt one
would turn into a missing value.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NotRequired, Required, get_args, get_origin

from ipyperplexity.schema.compiler import Compiler, Node, doc_of
from ipyperplexity.schema.embedding import embed
from ipyperplexity.schema.json_schema import Json, is_nullable
from ipyperplexity.schema.json_values import require_type
from ipyperplexity.schema.mismatch import SchemaMismatch, missing_key, path_to, unknown_key
from ipyperplexity.schema.recognition import is_json_schema, verify
from ipyperplexity.schema.refusal import brief, refusal

_Build = Callable[[Json, str], Any]  # (fields, path) -> Python value, or SchemaMismatch
_Members = Iterable[tuple[str, "Member"]]


@dataclass(frozen=True)
class Member:
    """A field of an object; an optional one may be null or absent, and is then not set."""

    node: Node
    optional: bool = False


def object_node(members: dict[str, Member], build: _Build, doc: str | None = None) -> Node:
    """Return the strict form of an object; `build` makes its value of the loaded fields."""
    shapes = {n: m.node.or_null() if m.optional else m.node for n, m in members.items()}
    schema: Json = {"type": "object"}
    if doc:
        schema["description"] = doc
    schema["properties"] = {name: node.schema for name, node in shapes.items()}
    schema.update(required=list(members), additionalProperties=False)

    def load(value: Any, path: str) -> Any:
        require_type("object", value, path)
        for name in value:
            if name not in members:
                unknown_key(path, name, members)
        fields: Json = {}
        for name, member in members.items():
            nullable = is_nullable(member.node.schema)
            absent = name not in value or (value[name] is None and not nullable)
            if absent and member.optional:
                continue
            if name not in value and not nullable:
                missing_key(path, name)
            fields[name] = member.node.load(value.get(name), path_to(path, name))
        return build(fields, path)

    return Node(schema, load)


def as_dict(fields: Json, path: str) -> Json:
    return fields


# --- dicts -------------------------------------------------------------------------------------


def read_dict(compiler: Compiler, form: Json, where: str) -> Node:
    if is_json_schema(form):
        verify(form, where)
        return embed(compiler, form, form.get("title") or "Item")
    if not form:
        raise refusal(where, "an empty short form")
    members: dict[str, Member] = {}
    for name, inner in form.items():
        if not isinstance(name, str) or not name:
            raise refusal(where, f"the field name {brief(name)}")
        members[name] = Member(compiler.node(inner, f"{where}.{name}"))
    return object_node(members, as_dict)


# --- classes -----------------------------------------------------------------------------------


def read_dataclass(compiler: Compiler, form: type, where: str) -> Node:
    def build(fields: Json, path: str) -> Any:
        try:
            return form(**fields)
        except (TypeError, ValueError) as error:
            raise SchemaMismatch(path, f"{form.__name__} refuses it: {error}") from None

    return _class_node(compiler, form, _dataclass_members(compiler, form, where), build, where)


def _dataclass_members(compiler: Compiler, form: Any, where: str) -> Iterator[tuple[str, Member]]:
    hints = _hints(form, where)
    missing = dataclasses.MISSING
    for field in dataclasses.fields(form):
        if field.init:
            node = compiler.node(hints[field.name], f"{where}.{field.name}")
            text = field.metadata.get("description") or getattr(field, "doc", None)
            optional = field.default is not missing or field.default_factory is not missing
            yield field.name, Member(node.described(text), optional)


def is_typed_dict(cls: type) -> bool:
    return hasattr(cls, "__optional_keys__")


def read_typed_dict(compiler: Compiler, form: Any, where: str) -> Node:
    return _class_node(compiler, form, _typed_dict_members(compiler, form, where), as_dict, where)


def _typed_dict_members(compiler: Compiler, form: Any, where: str) -> Iterator[tuple[str, Member]]:
    for name, hint in _hints(form, where).items():
        optional = name in form.__optional_keys__
        if get_origin(hint) in (NotRequired, Required):
            optional, hint = get_origin(hint) is NotRequired, get_args(hint)[0]
        yield name, Member(compiler.node(hint, f"{where}.{name}"), optional)


def _class_node(
    compiler: Compiler, cls: type, members: _Members, build: _Build, where: str
) -> Node:
    def make() -> Node:
        # Read here and not before: a recursive class needs its name while it is read.
        found = dict(members)
        if not found:
            raise refusal(where, f"{brief(cls)}, which has no fields,")
        return object_node(found, build, doc_of(cls))

    return compiler.named(cls, make)


def _hints(cls: type, where: str) -> dict[str, Any]:
    try:
        # A class defined in a function is not found by its name when it refers to itself.
        return typing.get_type_hints(cls, None, {cls.__name__: cls}, include_extras=True)
    except (NameError, TypeError, SyntaxError) as error:
        what = f"{brief(cls)} with an annotation that cannot be read ({error})"
        raise refusal(where, what) from None
