"""Forms and values that the tests of this room share."""

from __future__ import annotations

import datetime as dt
import enum
from dataclasses import dataclass, field
from typing import Annotated, Any, NotRequired, TypedDict

from ipyperplexity.schema import Schema


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Grade(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass(frozen=True)
class Place:
    """Where a company sits."""

    city: Annotated[str, "without the district"]
    country: str | None


@dataclass
class Company:
    name: str
    founded: int
    hq: Place
    size: Size = Size.SMALL
    listed_on: dt.date | None = None
    tags: list[str] = field(default_factory=list, metadata={"description": "fields of business"})


@dataclass
class Tree:
    value: int
    children: list[Tree]


@dataclass
class Positive:
    n: int

    def __post_init__(self) -> None:
        if self.n <= 0:
            raise ValueError("n must be positive")


class Film(TypedDict):
    title: str
    year: NotRequired[int]


COMPANY = {
    "name": "Dune Inc.",
    "founded": 1965,
    "hq": {"city": "Arrakeen", "country": None},
    "size": "large",
    "listed_on": "1984-12-14",
    "tags": ["spice"],
}

RAW = {
    "title": "Reading list",
    "type": "object",
    "properties": {
        "books": {"type": "array", "items": {"$ref": "#/$defs/book"}, "minItems": 1},
        "kind": {"const": "list"},
        "mood": {"type": ["string", "null"], "enum": ["good", "bad", None]},
    },
    "required": ["books"],
    "additionalProperties": False,
    "$defs": {
        "book": {
            "type": "object",
            "properties": {
                "title": {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^[A-Z]"},
                "pages": {"type": "integer", "minimum": 1, "exclusiveMaximum": 1000},
                "out": {"type": "string", "format": "date"},
                "id": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
                "next": {"anyOf": [{"$ref": "#/$defs/book"}, {"type": "null"}]},
            },
            "required": ["title"],
        }
    },
}


def sent(spec: Any) -> dict[str, Any]:
    return Schema.of(spec).response_format()["json_schema"]
