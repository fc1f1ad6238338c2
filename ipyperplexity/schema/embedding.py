"""JSON schemas made elsewhere, the user's own and those of models, as parts of one document.

Invariant: a reference inside such a schema still leads where it led, and two of them may use one
name for different things. Pydantic is never imported: a model is known by its methods.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from ipyperplexity.schema.compiler import Compiler, Node
from ipyperplexity.schema.json_schema import Json, parts_of, ref_tokens
from ipyperplexity.schema.keywords import check
from ipyperplexity.schema.mismatch import SchemaMismatch, path_to, shown
from ipyperplexity.schema.strict import tightened


def embed(compiler: Compiler, schema: Json, wish: str) -> Node:
    """Take a whole JSON schema document in as a part of the compiler's; `wish` is its name."""
    schema = copy.deepcopy(schema)
    pool = {**schema.pop("definitions", {}), **schema.pop("$defs", {})}
    if pool or any("$ref" in part for part in parts_of(schema)):
        top = compiler.reserve(wish)
        names = {old: compiler.reserve(old) for old in pool}
        compiler.definitions.update({names[old]: part for old, part in pool.items()})
        compiler.definitions[top] = schema
        for part in [part for whole in (schema, *pool.values()) for part in parts_of(whole)]:
            if "$ref" in part:
                part["$ref"] = _moved(part["$ref"], top, names)
        schema = {"$ref": f"#/$defs/{top}"}
    # The document is not there before the walk is done.
    return Node(schema, lambda value, path: check(schema, value, path, compiler.document))


def _moved(ref: str, top: str, names: Mapping[str, str]) -> str:
    head, *steps = ref.split("/")
    tokens = ref_tokens(ref)[1:]
    if len(tokens) > 1 and tokens[0] in ("$defs", "definitions"):
        return "/".join([head, "$defs", names[tokens[1]], *steps[2:]])
    return "/".join([head, "$defs", top, *steps])


def is_model(cls: type) -> bool:
    return hasattr(cls, "model_json_schema") and hasattr(cls, "model_validate")


def read_model(compiler: Compiler, form: Any, where: str) -> Node:
    node = embed(compiler, tightened(copy.deepcopy(form.model_json_schema())), form.__name__)
    # JSON mode, where there is one: a strict model takes a date from JSON text, not from a str.
    from_json = getattr(form, "model_validate_json", None)

    def load(value: Any, path: str) -> Any:
        try:
            return from_json(json.dumps(value)) if from_json else form.model_validate(value)
        except ValueError as error:
            raise _mismatch(error, path) from None

    return Node(node.schema, load)


def _mismatch(error: ValueError, path: str) -> SchemaMismatch:
    details: list[Any] = error.errors() if hasattr(error, "errors") else []
    if not details:
        return SchemaMismatch(path, str(error))
    for key in details[0]["loc"]:
        path = path_to(path, key)
    return SchemaMismatch(path, f"{details[0]['msg']}, found {shown(details[0].get('input'))}")
