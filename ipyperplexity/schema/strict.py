"""The rules of strict structured outputs: every property required, no other one allowed.

Invariant: a user's JSON schema is only judged here; only the schema of a model is changed.
"""

from __future__ import annotations

from ipyperplexity.schema.json_schema import Json, is_object, parts_of

NOT_STRICT = {"oneOf", "allOf", "not", "patternProperties", "prefixItems", "if"}


def is_strict(document: Json) -> bool:
    """Whether the schema keeps the rules of strict structured outputs."""
    return not any(
        part.keys() & NOT_STRICT or _is_loose_object(part) for part in parts_of(document)
    )


def _is_loose_object(part: Json) -> bool:
    return (is_object(part) or "properties" in part) and (
        part.get("additionalProperties") is not False
        or set(part.get("required", ())) != set(part.get("properties", ()))
    )


def tightened(document: Json) -> Json:
    """Give a model's own schema the strict form, in place."""
    for part in parts_of(document):
        part.pop("default", None)
        part.pop("discriminator", None)
        if "oneOf" in part:
            part["anyOf"] = part.pop("oneOf")
        if "properties" in part:
            part.update(required=list(part["properties"]), additionalProperties=False)
    return document
