"""A JSON schema as a document: its parts, its references, and what a part says of null and objects.

Invariant: nothing here changes a schema, and no ring of references keeps a walk from ending.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

Json = dict[str, Any]

NAMED_PARTS = ("properties", "patternProperties", "$defs", "definitions")
LISTED_PARTS = ("anyOf", "oneOf", "allOf", "prefixItems")
SINGLE_PARTS = ("items", "additionalProperties", "not")


def parts_of(schema: Any) -> Iterator[Json]:
    """Yield a schema and every schema in it (not through ``$ref``)."""
    if not isinstance(schema, dict):
        return
    yield schema
    for key in NAMED_PARTS:
        if isinstance(schema.get(key), dict):
            for part in schema[key].values():
                yield from parts_of(part)
    for key in LISTED_PARTS:
        if isinstance(schema.get(key), list):
            for part in schema[key]:
                yield from parts_of(part)
    for key in SINGLE_PARTS:
        yield from parts_of(schema.get(key))


def ref_tokens(ref: str) -> list[str]:
    """Return the steps of a ``$ref``, without its escapes; the first is ``#`` in this document.

    Examples
    --------
    >>> ref_tokens("#/$defs/a~1b%20c")
    ['#', '$defs', 'a/b c']
    """
    return [unquote(part).replace("~1", "/").replace("~0", "~") for part in ref.split("/")]


def lookup(ref: str, root: Json) -> Any:
    """Return what a ``$ref`` of the document `root` means.

    Raises
    ------
    LookupError, TypeError, ValueError
        It leads nowhere, or out of the document.
    """
    head, *tokens = ref_tokens(ref)
    if head != "#":
        raise LookupError(ref)
    found: Any = root
    for token in tokens:
        found = found[int(token)] if isinstance(found, list) else found[token]
    return found


def resolved(schema: Any, root: Json) -> Json:
    """Follow ``$ref`` and alternatives that are none, down to the schema that says something."""
    for _ in range(100):  # a ring of references ends nowhere
        if not isinstance(schema, dict):
            return {}
        if "$ref" in schema:
            target = lookup(schema["$ref"], root)
        elif len(parts := schema.get("anyOf") or schema.get("allOf") or []) == 1:
            target = parts[0]
        else:
            return schema
        rest = {k: v for k, v in schema.items() if k not in ("$ref", "anyOf", "allOf")}
        schema = {**target, **rest} if isinstance(target, dict) else target
    return {}


def is_object(schema: Json) -> bool:
    return schema.get("type") == "object" or ("type" not in schema and "properties" in schema)


def is_nullable(schema: Any) -> bool:
    """Whether a schema says itself (not by a reference) that null fits."""
    if not isinstance(schema, dict):
        return False
    kind = schema.get("type")
    return (
        kind == "null"
        or (isinstance(kind, list) and "null" in kind)
        or (kind is None and None in schema.get("enum", ()))
        or any(is_nullable(part) for key in ("anyOf", "oneOf") for part in schema.get(key, ()))
    )


def without_null(alternatives: list[Any]) -> list[Any]:
    return [part for part in alternatives if part != {"type": "null"}]
