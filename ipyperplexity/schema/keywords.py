"""The keywords of JSON schema: whether the rule of each is well formed, and its check of a value.

Invariant: a document whose rules are well formed and whose references lead somewhere never breaks a
check: a value fits, or `SchemaMismatch` says where it does not. Keywords that are not in the table
are left to the service.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ipyperplexity.schema.json_schema import Json, lookup
from ipyperplexity.schema.json_values import (
    FORMATS,
    TYPES,
    Load,
    first_fit,
    index_of,
    is_integer,
    is_number,
    load_format,
)
from ipyperplexity.schema.mismatch import (
    SchemaMismatch,
    misfit,
    missing_key,
    path_to,
    unknown_key,
)

# (rule, value, path, the schema that has the rule, the whole document)
_Check = Callable[[Any, Any, str, Json, Json], None]


class Keyword(NamedTuple):
    is_well_formed: Callable[[Any], bool]
    check: _Check


def check(schema: Any, value: Any, path: str, root: Json) -> Any:
    """Return `value` if it fits the JSON `schema` (part of the document `root`)."""
    if schema is False:
        raise SchemaMismatch(path, "the schema allows nothing here")
    if isinstance(schema, dict):
        for keyword, rule in schema.items():
            if keyword in KEYWORDS:
                KEYWORDS[keyword].check(rule, value, path, schema, root)
    return value


def checking(schema: Any, root: Json) -> Load:
    """Return the loader that passes a value on as it is, once it is checked."""
    return lambda value, path: check(schema, value, path, root)


# --- checks of a value -------------------------------------------------------------------------


def _check_type(rule: Any, value: Any, path: str, schema: Json, root: Json) -> None:
    names = [rule] if isinstance(rule, str) else rule
    if not any(TYPES[name].fits(value) for name in names):
        misfit(path, " or ".join(TYPES[name].phrase for name in names), value)


def _check_enum(rule: Any, value: Any, path: str, schema: Json, root: Json) -> None:
    index_of(value, rule, path)


def _check_const(rule: Any, value: Any, path: str, schema: Json, root: Json) -> None:
    index_of(value, [rule], path)


def _check_properties(rule: Any, value: Any, path: str, schema: Json, root: Json) -> None:
    if isinstance(value, dict):
        for name in rule.keys() & value.keys():
            check(rule[name], value[name], path_to(path, name), root)


def _check_additional(rule: Any, value: Any, path: str, schema: Json, root: Json) -> None:
    known = schema.get("properties", {})
    for name in value if isinstance(value, dict) else ():
        if name not in known:
            if rule is False:
                unknown_key(path, name, known)
            check(rule, value[name], path_to(path, name), root)


def _check_required(rule: Any, value: Any, path: str, schema: Json, root: Json) -> None:
    for name in rule if isinstance(value, dict) else ():
        if name not in value:
            missing_key(path, name)


def _check_items(rule: Any, value: Any, path: str, schema: Json, root: Json) -> None:
    for index, item in enumerate(value if isinstance(value, list) else ()):
        check(rule, item, path_to(path, index), root)


def _check_any(rule: Any, value: Any, path: str, schema: Json, root: Json) -> None:
    first_fit((checking(part, root) for part in rule), value, path)


def _check_all(rule: Any, value: Any, path: str, schema: Json, root: Json) -> None:
    for part in rule:
        check(part, value, path, root)


def _check_ref(rule: Any, value: Any, path: str, schema: Json, root: Json) -> None:
    check(lookup(rule, root), value, path, root)


def _check_format(rule: Any, value: Any, path: str, schema: Json, root: Json) -> None:
    if rule in FORMATS and isinstance(value, str):
        load_format(rule, value, path)


def _limit(kind: str, phrase: str, holds: Callable[[Any, Any], bool]) -> _Check:
    def check_limit(rule: Any, value: Any, path: str, schema: Json, root: Json) -> None:
        if TYPES[kind].fits(value) and not holds(value, rule):
            misfit(path, phrase.format(rule), value)

    return check_limit


def _is_as_long(value: Any, length: int) -> bool:
    return len(value) >= length


def _is_as_short(value: Any, length: int) -> bool:
    return len(value) <= length


def _matches(text: str, pattern: str) -> bool:
    try:
        return re.search(pattern, text) is not None
    except re.error:  # JSON schema patterns are ECMAScript's; what Python cannot read, it lets pass
        return True


# --- what a rule must be -----------------------------------------------------------------------


def is_schema(rule: Any) -> bool:
    return isinstance(rule, dict | bool)


def are_schemas(rule: Any) -> bool:
    return isinstance(rule, list) and bool(rule) and all(map(is_schema, rule))


def are_named_schemas(rule: Any) -> bool:
    return isinstance(rule, dict) and all(map(is_schema, rule.values()))


def is_type_rule(rule: Any) -> bool:
    names = rule if isinstance(rule, list) and rule else [rule]
    return all(isinstance(name, str) and name in TYPES for name in names)


def are_choices(rule: Any) -> bool:
    return isinstance(rule, list) and bool(rule)


def _is_anything(rule: Any) -> bool:
    return True


def _is_count(rule: Any) -> bool:
    return is_integer(rule) and rule >= 0


def _is_text(rule: Any) -> bool:
    return isinstance(rule, str)


def _are_texts(rule: Any) -> bool:
    return isinstance(rule, list) and all(map(_is_text, rule))


KEYWORDS: dict[str, Keyword] = {
    "type": Keyword(is_type_rule, _check_type),
    "enum": Keyword(are_choices, _check_enum),
    "const": Keyword(_is_anything, _check_const),
    "properties": Keyword(are_named_schemas, _check_properties),
    "additionalProperties": Keyword(is_schema, _check_additional),
    "required": Keyword(_are_texts, _check_required),
    "items": Keyword(is_schema, _check_items),
    "anyOf": Keyword(are_schemas, _check_any),
    "oneOf": Keyword(are_schemas, _check_any),
    "allOf": Keyword(are_schemas, _check_all),
    "$ref": Keyword(_is_text, _check_ref),
    "format": Keyword(_is_text, _check_format),
    "pattern": Keyword(_is_text, _limit("string", "text like {}", _matches)),
    "minimum": Keyword(is_number, _limit("number", "at least {}", operator.ge)),
    "maximum": Keyword(is_number, _limit("number", "at most {}", operator.le)),
    "exclusiveMinimum": Keyword(is_number, _limit("number", "more than {}", operator.gt)),
    "exclusiveMaximum": Keyword(is_number, _limit("number", "less than {}", operator.lt)),
    "minLength": Keyword(_is_count, _limit("string", "{}+ characters", _is_as_long)),
    "maxLength": Keyword(_is_count, _limit("string", "<= {} characters", _is_as_short)),
    "minItems": Keyword(_is_count, _limit("array", "{}+ items", _is_as_long)),
    "maxItems": Keyword(_is_count, _limit("array", "<= {} items", _is_as_short)),
}
