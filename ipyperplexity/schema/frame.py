"""The frame of a parsed value: its columns and rows.

Invariant: the columns follow from the schema alone, never from a value, and every row has a cell
for each of them.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ipyperplexity.schema.json_schema import (
    Json,
    is_nullable,
    is_object,
    resolved,
    without_null,
)
from ipyperplexity.schema.json_values import TYPES, to_date

if TYPE_CHECKING:
    from ipyperplexity.tabular.cells import Kind

#: name, kind and nullability
ColumnTriple: TypeAlias = "tuple[str, Kind, bool]"


@dataclass(frozen=True)
class Layout:
    """Where the records of a value are, and the columns of one."""

    key: str | None  # the one field of the root that holds the records
    many: bool
    columns: tuple[ColumnTriple, ...]
    scalar: bool  # a record is one cell


# --- columns -----------------------------------------------------------------------------------

_KINDS: dict[str, Kind] = {
    "string": "str",
    "integer": "int64",
    "number": "float64",
    "boolean": "bool",
    "date": "date",
    "date-time": "timestamp",
}


def layout_of(schema: Any, root: Json, name: str = "answer", many: bool = False) -> Layout:
    """Return the layout of the values of a schema, which is a part of the document `root`."""
    inner, nullable = _record(schema, root)
    if inner.get("type") == "array" and not many:
        return layout_of(inner.get("items"), root, "item", many=True)
    fields = inner.get("properties") if is_object(inner) else None
    if not fields:
        return Layout(None, many, ((name, _kind(schema, root) or "str", nullable),), True)
    if len(fields) == 1 and not many:
        key, part = next(iter(fields.items()))
        held, _ = _record(part, root)
        item, _ = _record(held.get("items"), root)
        if held.get("type") == "array" and is_object(item) and item.get("properties"):
            return dataclasses.replace(layout_of(held, root), key=key)
    return Layout(None, many, tuple(_columns(inner, root, nullable)), False)


def _record(schema: Any, root: Json) -> tuple[Json, bool]:
    """Return the schema behind a reference and an ``| None``, and whether it may be null."""
    schema = resolved(schema, root)
    parts = without_null(schema.get("anyOf", []))
    inner = resolved(parts[0], root) if len(parts) == 1 else schema
    return inner, is_nullable(schema)


def _columns(record: Json, root: Json, nullable: bool) -> Iterator[ColumnTriple]:
    required = record.get("required", ())
    for name, part in record["properties"].items():
        missing = nullable or name not in required or is_nullable(resolved(part, root))
        yield name, _kind(part, root) or "str", missing


def _kind(schema: Any, root: Json) -> Kind | None:
    """Kind of the column for values of this schema; None where they are kept as JSON text."""
    schema = resolved(schema, root)
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if alternatives:
        kinds = {_kind(part, root) for part in without_null(alternatives)}
        if kinds == {"int64", "float64"}:
            return "float64"
        return kinds.pop() if len(kinds) == 1 else None
    kind = _json_type(schema)
    if kind == "array":
        items = schema.get("items")
        return "str_list" if _kind(items, root) == "str" and not is_nullable(items) else None
    form = schema.get("format")
    return _KINDS.get(form if kind == "string" and form in _KINDS else kind or "")


def _json_type(schema: Json) -> str | None:
    """Return the one type of the values but null, also where only an ``enum`` tells it."""
    kind = schema.get("type")
    if isinstance(kind, list):
        named = [name for name in kind if name != "null"]
        kind = named[0] if len(named) == 1 else None
    if kind is None and "enum" in schema:
        fitting = (n for n in _KINDS if n in TYPES and all(map(TYPES[n].fits, schema["enum"])))
        kind = next(fitting, None)
    return kind


# --- rows --------------------------------------------------------------------------------------


def _text_cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=_json_default)


#: what the cells of a column are made with
_CELLS: dict[Kind, Callable[[Any], Any]] = {
    "int64": int,
    "float64": float,
    "bool": bool,
    "str": _text_cell,
    "date": lambda value: to_date(value) if isinstance(value, str) else value,
    "timestamp": lambda v: dt.datetime.fromisoformat(v) if isinstance(v, str) else v,
    "str_list": lambda value: [str(_bare(item)) for item in value],
}


def rows_of(value: Any, layout: Layout) -> list[dict[str, Any]]:
    """Return the rows of a parsed value, with the keys that the layout's columns name."""
    if layout.key is not None and value is not None:
        value = _plain(value).get(layout.key)
    records = (() if value is None else value) if layout.many else (value,)
    return [_row(record, layout) for record in records]


def _row(record: Any, layout: Layout) -> dict[str, Any]:
    if layout.scalar:
        record = {layout.columns[0][0]: record}
    held = {} if record is None else _plain(record)
    return {name: _cell(held.get(name), kind) for name, kind, _ in layout.columns}


def _cell(value: Any, kind: Kind) -> Any:
    bare = _bare(value)
    return None if bare is None else _CELLS[kind](bare)


def _bare(value: Any) -> Any:
    return value.value if isinstance(value, enum.Enum) else value


def _plain(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    if hasattr(value, "model_dump"):
        return typing.cast("Mapping[str, Any]", value.model_dump(by_alias=True))
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _json_default(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    return value.isoformat() if hasattr(value, "isoformat") else _plain(value)
