"""Which dicts are JSON schemas and no short forms, and which of them are fit to send.

Invariant: a JSON schema that passes `verify` cannot break a check of a value, whatever the value.
"""

from __future__ import annotations

from typing import Any

from ipyperplexity.schema.json_schema import (
    LISTED_PARTS,
    NAMED_PARTS,
    SINGLE_PARTS,
    Json,
    lookup,
    parts_of,
)
from ipyperplexity.schema.keywords import (
    KEYWORDS,
    are_choices,
    are_named_schemas,
    are_schemas,
    is_type_rule,
)
from ipyperplexity.schema.refusal import brief, refusal
from ipyperplexity.schema.strict import NOT_STRICT

#: keywords that say nothing of a value, or that only the service checks
_ANNOTATIONS = {
    *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
    *("multipleOf", "uniqueItems", "minProperties", "maxProperties", "propertyNames"),
    *("contains", "then", "else", "discriminator"),
}
_KNOWN = {*KEYWORDS, *_ANNOTATIONS, *NAMED_PARTS, *SINGLE_PARTS, *LISTED_PARTS, *NOT_STRICT}


def is_json_schema(form: Any) -> bool:
    """Tell a JSON schema from a short form; `Schema.of` documents the rule."""
    if not isinstance(form, dict) or not _is_json(form):
        return False
    telling = (
        any(key.startswith("$") for key in form)
        or (bool(form.get("properties")) and are_named_schemas(form["properties"]))
        or any(are_schemas(form.get(key)) for key in ("anyOf", "oneOf", "allOf"))
        or are_choices(form.get("enum"))
        or is_type_rule(form.get("type"))
    )
    # {"type": "string", "founded": "integer"} has a key that no schema has: it is a short form.
    alien = any(not key.startswith(("$", "x-")) for key in form.keys() - _KNOWN)
    return telling and not (alien and form.get("type") not in ("object", "array"))


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, str | int | float | bool)


def verify(document: Json, where: str) -> None:
    """Refuse a malformed JSON schema before it is sent, and before it can break a check."""
    for part in parts_of(document):
        for keyword, rule in part.items():
            if keyword in KEYWORDS and not KEYWORDS[keyword].is_well_formed(rule):
                raise refusal(where, f"JSON schema with {keyword}: {brief(rule)}")
        if "$ref" in part:
            try:
                lookup(part["$ref"], document)
            except (LookupError, TypeError, ValueError):
                what = f"JSON schema whose $ref {part['$ref']!r} leads nowhere in it"
                raise refusal(where, what) from None
