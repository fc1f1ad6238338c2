"""A JSON document that fits a schema, filled from an answer.

Invariant: required members are always there, enums and constants are taken from the schema, and a
recursive schema ends (optional parts are left out below a depth). Without sentences everything is
as empty as the schema allows, so that nothing looks like a fact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["fill", "fill_json"]

_DEEP = 6
_FORMATS = {
    "date": "2024-01-01", "date-time": "2024-01-01T00:00:00Z", "time": "00:00:00Z",
    "email": "demo@example.org", "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "127.0.0.1", "ipv6": "::1", "hostname": "docs.python.org", "duration": "P1D",
}  # fmt: skip
# What a reader of the format still takes, and nobody takes for a fact.
_EMPTY_FORMATS = {
    "date": "0001-01-01", "date-time": "0001-01-01T00:00:00Z", "time": "00:00:00Z",
    "uuid": "00000000-0000-0000-0000-000000000000", "ipv4": "0.0.0.0", "ipv6": "::",
    "duration": "PT0S",
}  # fmt: skip


def fill_json(
    schema: Any, sentences: Sequence[str], titles: Sequence[str], urls: Sequence[str]
) -> str:
    """Return :func:`fill` as JSON text."""
    return json.dumps(fill(schema, sentences, titles, urls), ensure_ascii=False)


def fill(schema: Any, sentences: Sequence[str], titles: Sequence[str], urls: Sequence[str]) -> Any:
    """Make a value that fits a JSON schema.

    Parameters
    ----------
    schema
        With ``$ref`` into itself, ``anyOf``, ``enum`` and so on.
    sentences, titles, urls
        What strings are filled with, best first. Without sentences, nothing was found: strings
        are empty, numbers 0, arrays empty, and what may be null is.

    Examples
    --------
    >>> shape = {"type": "object", "properties": {"n": {"type": "integer"}}}
    >>> fill(shape, ["It has 7 steps."], [], [])
    {'n': 7}
    """
    return _Filler(schema, sentences, titles, urls).value(schema, "", 0)


class _Filler:
    def __init__(
        self, root: Any, sentences: Sequence[str], titles: Sequence[str], urls: Sequence[str]
    ) -> None:
        self.root = root
        self.empty = not sentences
        self.sentences = list(sentences) or [""]
        self.titles = [""] if self.empty else list(titles) or [self.sentences[0][:60]]
        self.urls = [""] if self.empty else list(urls) or ["https://docs.python.org/3/"]
        digits = [found for text in sentences for found in re.findall(r"-?\d+(?:\.\d+)?", text)]
        self.numbers = [float(found) for found in digits if len(found) < 15]
        self.taken: dict[str, Iterator[Any]] = {}

    def _next(self, kind: str, pool: Sequence[Any]) -> Any:
        """Take the next of a pool, starting over at its end."""
        if kind not in self.taken:

            def turn() -> Iterator[Any]:
                while True:
                    yield from pool

            self.taken[kind] = turn()
        return next(self.taken[kind])

    def value(self, schema: Any, name: str, depth: int) -> Any:
        schema = self._resolve(schema)
        if not isinstance(schema, dict):
            return self._next("sentence", self.sentences)
        if "const" in schema:
            return schema["const"]
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return schema["enum"][0]
        for choice in ("anyOf", "oneOf"):
            if isinstance(schema.get(choice), list) and schema[choice]:
                rest = {key: inner for key, inner in schema.items() if key != choice}
                return self.value(_merge(rest, self._choose(schema[choice], depth)), name, depth)
        if isinstance(schema.get("allOf"), list):
            merged = {key: inner for key, inner in schema.items() if key != "allOf"}
            for part in schema["allOf"]:
                merged = _merge(merged, self._resolve(part))
            return self.value(merged, name, depth)
        if self.empty and isinstance(schema.get("type"), list) and "null" in schema["type"]:
            return None
        make = _MAKERS.get(self._kind(schema), _Filler._string)
        return make(self, schema, name, depth)

    def _resolve(self, schema: Any) -> Any:
        for _ in range(20):
            if not (isinstance(schema, dict) and isinstance(schema.get("$ref"), str)):
                return schema
            target = self.root
            for part in schema["$ref"].lstrip("#").strip("/").split("/"):
                part = part.replace("~1", "/").replace("~0", "~")
                if part and isinstance(target, dict):
                    target = target.get(part, {})
            rest = {key: inner for key, inner in schema.items() if key != "$ref"}
            schema = _merge(rest, target)
        return {}

    def _choose(self, choices: list[Any], depth: int) -> Any:
        solid = [c for c in map(self._resolve, choices) if self._kind(c) != "null"]
        if (depth >= _DEEP or self.empty) and len(solid) < len(choices):
            return {"type": "null"}
        plain = [c for c in solid if self._kind(c) not in ("object", "array")]
        return (plain if depth >= _DEEP and plain else solid or [{"type": "null"}])[0]

    @staticmethod
    def _kind(schema: Any) -> str:
        if not isinstance(schema, dict):
            return "string"
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((entry for entry in kind if entry != "null"), "null")
        if isinstance(kind, str):
            return kind
        return "object" if "properties" in schema else "array" if "items" in schema else "string"

    def _object(self, schema: dict[str, Any], name: str, depth: int) -> Any:
        members = schema.get("properties")
        members = members if isinstance(members, dict) else {}
        required = [key for key in schema.get("required") or [] if isinstance(key, str)]
        keep = (
            required if depth >= _DEEP else [*members, *(k for k in required if k not in members)]
        )
        made = {key: self.value(members.get(key, {}), key, depth + 1) for key in keep}
        extra = schema.get("additionalProperties")
        least = schema.get("minProperties", 0)
        if isinstance(extra, dict) and not made and depth < _DEEP:
            least = least if isinstance(least, int) else 0
            for at in range(least if self.empty else max(1, least)):
                made[f"item {at + 1}"] = self.value(extra, name, depth + 1)
        return made

    def _array(self, schema: dict[str, Any], name: str, depth: int) -> Any:
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        least = least if isinstance(least, int) else 0
        wanted = max(least, 3) if depth < _DEEP - 2 and not self.empty else least
        wanted = min(wanted, most) if isinstance(most, int) else wanted
        prefix = schema.get("prefixItems")
        made = (
            [self.value(item, name, depth + 1) for item in prefix]
            if isinstance(prefix, list)
            else []
        )
        items = schema.get("items", {})
        while items is not False and len(made) < wanted:
            entry = self.value(items, name, depth + 1)
            if schema.get("uniqueItems") and entry in made:
                if len(made) >= least:
                    break
                entry = f"{entry} ({len(made) + 1})" if isinstance(entry, str) else entry
                entry = len(made) if isinstance(entry, int) else entry
            made.append(entry)
        return made

    def _string(self, schema: dict[str, Any], name: str, depth: int) -> Any:
        form = schema.get("format")
        if form in ("uri", "url", "iri") or re.search(r"ur[il]s?$|link", name, re.IGNORECASE):
            text = self._next("url", self.urls)
        elif form in _FORMATS:
            return _EMPTY_FORMATS.get(form, "") if self.empty else _FORMATS[form]
        elif re.search(r"title|name|topic|heading|label", name, re.IGNORECASE):
            text = self._next("title", self.titles)
        else:
            text = self._next("sentence", self.sentences)
        most, least = schema.get("maxLength"), schema.get("minLength", 0)
        if isinstance(least, int) and len(text) < least:
            text = (text + " ") * (least // (len(text) + 1) + 1)
        return text[:most] if isinstance(most, int) else text

    def _number(self, schema: dict[str, Any], name: str, depth: int) -> Any:
        value: float = self._next("number", self.numbers) if self.numbers else 0.0
        low, high = _bound(schema, "minimum"), _bound(schema, "maximum")
        over, under = _bound(schema, "exclusiveMinimum"), _bound(schema, "exclusiveMaximum")
        whole = self._kind(schema) == "integer"
        step = _bound(schema, "multipleOf")
        gap = step or (1.0 if whole else 0.5)
        low = over + gap if over is not None else low
        high = under - gap if under is not None else high
        if low is not None and value < low:
            value = low
        if high is not None and value > high:
            value = high
        if step:
            value = (value // step) * step
            value = value + step if low is not None and value < low else value
        return int(value) if whole else value

    def _boolean(self, schema: dict[str, Any], name: str, depth: int) -> Any:
        return not self.empty

    def _null(self, schema: dict[str, Any], name: str, depth: int) -> Any:
        return None


_MAKERS = {
    "object": _Filler._object,
    "array": _Filler._array,
    "string": _Filler._string,
    "number": _Filler._number,
    "integer": _Filler._number,
    "boolean": _Filler._boolean,
    "null": _Filler._null,
}


def _bound(schema: dict[str, Any], name: str) -> float | None:
    value = schema.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _merge(first: Any, second: Any) -> Any:
    """Join two schemas that both hold; the second wins, members and required are united."""
    if not isinstance(first, dict) or not isinstance(second, dict):
        return second if second not in ({}, None) else first
    joined = {**first, **second}
    if isinstance(first.get("properties"), dict) and isinstance(second.get("properties"), dict):
        joined["properties"] = {**first["properties"], **second["properties"]}
    if isinstance(first.get("required"), list) and isinstance(second.get("required"), list):
        joined["required"] = list(dict.fromkeys([*first["required"], *second["required"]]))
    return joined
