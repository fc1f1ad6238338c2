"""A Python type or a JSON schema, and the checked values that an answer's text holds.

From the bottom: JSON values and what does not fit (`mismatch`, `json_values`), JSON schemas as
documents (`json_schema`, `strict`, `keywords`, `recognition`), forms and the walk over them
(`compiler`, `value_forms`, `embedding`, `object_forms`, `form_kinds`, `root`), an answer's text
(`reading`), columns and rows (`frame`), and on top the public class. `Schema` is imported when it
is first used: who only handles the error pays for no compiler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipyperplexity.schema.mismatch import SchemaMismatch

if TYPE_CHECKING:
    from ipyperplexity.schema.schema import Schema

__all__ = ["Schema", "SchemaMismatch"]


def __getattr__(name: str) -> Any:
    if name != "Schema":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ipyperplexity.schema.schema import Schema

    globals()[name] = Schema
    return Schema


def __dir__() -> list[str]:
    return __all__
