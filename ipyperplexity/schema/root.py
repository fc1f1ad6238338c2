"""The whole of a form: the document that is sent, and the loaders of what comes back.

Invariant: the root of a document is an object, as the service demands, so every other root is
wrapped in one with a single field; only definitions that are referred to are sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

from ipyperplexity.schema.compiler import Compiler, Node, clean_name
from ipyperplexity.schema.form_kinds import FORM_KINDS, is_class
from ipyperplexity.schema.json_schema import Json, is_object, parts_of, ref_tokens, resolved
from ipyperplexity.schema.json_values import Load
from ipyperplexity.schema.keywords import checking
from ipyperplexity.schema.object_forms import Member, object_node
from ipyperplexity.schema.recognition import is_json_schema
from ipyperplexity.schema.strict import is_strict
from ipyperplexity.schema.value_forms import SCALARS


@dataclass(frozen=True)
class Root:
    """What `Schema` holds of a form.

    Attributes
    ----------
    name : str
        1-64 characters of ``A-Z a-z 0-9 _ -``.
    strict : bool
        Whether the service shall hold to the document strictly.
    document : dict
        The JSON schema that is sent.
    load : callable
        Loader of a whole document.
    load_bare : callable or None
        Loader of the value that the document wraps; None where it wraps none.
    value_schema : dict
        The part of the document that describes the value, without the wrapper.
    """

    name: str
    strict: bool
    document: Json
    load: Load
    load_bare: Load | None
    value_schema: Json


def compile_root(form: Any) -> Root:
    """Read a whole form, or a ``response_format`` dict with its name and strictness.

    Raises
    ------
    InvalidRequestError
        The form, or a member of it, is none that can be sent.
    """
    form, name, strict = _unwrapped(form)
    compiler = Compiler(FORM_KINDS)
    node = compiler.node(form, "")
    if is_json_schema(form) and is_object(resolved(form, form)):
        document = form  # sent as it is
        whole, wraps = Node(form, checking(form, form)), False
    else:
        top = resolved(node.schema, {"$defs": compiler.definitions})
        wraps = not is_object(top)
        key = "items" if top.get("type") == "array" else "answer"
        whole = _wrapper(node, key) if wraps else Node(top, node.load)
        document = compiler.document = _with_definitions(whole.schema, compiler.definitions)
    return Root(
        name=clean_name(name) or "answer",
        strict=bool(is_strict(document) if strict is None else strict),
        document=document,
        load=whole.load,
        load_bare=node.load if wraps else None,
        value_schema=node.schema if wraps else document,
    )


def _unwrapped(form: Any) -> tuple[Any, str, bool | None]:
    """Take a ``response_format`` apart: the JSON schema, its name, and its ``strict`` if given."""
    envelope = form.get("json_schema") if isinstance(form, dict) else None
    if (
        isinstance(envelope, dict)
        and form.get("type") == "json_schema"
        and is_json_schema(envelope.get("schema"))
    ):
        return envelope["schema"], str(envelope.get("name") or ""), envelope.get("strict")
    return form, _name_of(form), None


def _name_of(form: Any) -> str:
    if isinstance(form, dict):
        title = form.get("title") if is_json_schema(form) else None
        return title if isinstance(title, str) else ""
    if is_class(form):
        return "" if form in SCALARS else str(form.__name__)
    parts = form if isinstance(form, list | tuple) else get_args(form)
    return _name_of(parts[0]) if parts else ""


def _wrapper(node: Node, key: str) -> Node:
    return object_node({key: Member(node)}, lambda fields, path: fields[key])


def _with_definitions(top: Json, definitions: Json) -> Json:
    used: Json = {}
    waiting = [top]
    while waiting:
        for part in parts_of(waiting.pop()):
            name = ref_tokens(part["$ref"])[2] if "$ref" in part else None
            if name is not None and name not in used:
                used[name] = definitions[name]
                waiting.append(used[name])
    return {**top, "$defs": used} if used else top
