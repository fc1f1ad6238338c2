"""The walk over a form: it makes the JSON schema of each part together with the part's loader.

Invariant: schema and loader of a `Node` come from one reading of the form, so they cannot disagree;
a class that is met again, also inside itself, is the same definition.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ipyperplexity.schema.json_schema import Json, is_nullable
from ipyperplexity.schema.json_values import Load
from ipyperplexity.schema.refusal import brief, refusal


@dataclass(frozen=True)
class Node:
    """A part of a form: its JSON schema, and the loader of the values that it describes."""

    schema: Json
    load: Load

    def described(self, text: str | None) -> Node:
        if not text:
            return self
        # Strict structured outputs allow no word beside a $ref.
        schema = {"anyOf": [self.schema]} if "$ref" in self.schema else self.schema
        return Node({**schema, "description": text}, self.load)

    def or_null(self) -> Node:
        if is_nullable(self.schema):
            return self
        inner = {key: rule for key, rule in self.schema.items() if key != "description"}
        alternatives = inner["anyOf"] if inner.keys() == {"anyOf"} else [inner]
        node = Node(
            {"anyOf": [*alternatives, {"type": "null"}]},
            lambda value, path: None if value is None else self.load(value, path),
        )
        return node.described(self.schema.get("description"))


#: Reads one kind of form; its last argument is the path in the form, for messages.
Reader = Callable[["Compiler", Any, str], Node]
#: What a kind of form is recognized by, and who reads it.
FormKind = tuple[Callable[[Any], bool], Reader]


class Compiler:
    """Walks one form; keeps the named parts that recursive classes and ``$ref`` refer to.

    Attributes
    ----------
    definitions : dict
        The named parts, as in ``$defs``.
    document : dict
        The whole JSON schema; there once the walk is done, for loaders that follow references.
    """

    def __init__(self, kinds: Sequence[FormKind]) -> None:
        self.definitions: Json = {}
        self.document: Json = {}
        self._kinds = kinds
        self._names: dict[type, str] = {}
        self._loads: dict[str, Load] = {}

    def node(self, form: Any, where: str) -> Node:
        """Read a form by the first kind that fits it."""
        for fits, read in self._kinds:
            if fits(form):
                return read(self, form, where)
        raise refusal(where, brief(form))

    def named(self, cls: type, make: Callable[[], Node]) -> Node:
        """Return a reference to the definition of a class, made when the class is first met."""
        name = self._names.get(cls)
        if name is None:
            # The name is kept before the members are read: a recursive class meets itself there.
            name = self._names[cls] = self.reserve(cls.__name__)
            node = make()
            self.definitions[name], self._loads[name] = node.schema, node.load
        return Node({"$ref": f"#/$defs/{name}"}, lambda value, path: self._loads[name](value, path))

    def reserve(self, wish: str) -> str:
        """Return a name for a definition that no other one has."""
        base = clean_name(wish) or "Item"
        name, count = base, 1
        while name in self.definitions:
            count += 1
            name = f"{base}_{count}"
        self.definitions[name] = {}
        return name


def clean_name(text: str) -> str:
    """Return a name of the characters that the service takes, 64 at most; may be empty."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", text)[:64].strip("_")


def doc_of(cls: type) -> str | None:
    """Return the first paragraph of a class's own docstring on one line, if it has one."""
    text = inspect.cleandoc(cls.__dict__.get("__doc__") or "")
    if text.startswith(f"{cls.__name__}("):  # what @dataclass writes where there is none
        return None
    return " ".join(text.split("\n\n")[0].split()) or None
