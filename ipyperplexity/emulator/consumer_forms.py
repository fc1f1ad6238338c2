"""The forms in which blocks travel: snapshots and patches (consumer-web 2.4 to 2.7).

Invariant: whatever the form, a reader that applies all blocks has the same documents at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .behavior import Behavior

__all__ = ["BlockWriter", "Documents", "patches"]

Json = dict[str, Any]
Documents = Mapping[str, tuple[str, Json]]
"""Field and document by ``intended_usage``."""


def patches(old: Any, new: Any, path: str = "") -> Iterator[Json]:
    """Yield RFC 6902 patches that turn one document into another.

    Examples
    --------
    >>> list(patches({"a": [1]}, {"a": [1, 2]}))
    [{'op': 'add', 'path': '/a/1', 'value': 2}]
    >>> list(patches(None, {"a": 1}))
    [{'op': 'replace', 'path': '', 'value': {'a': 1}}]
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for name in old.keys() - new.keys():
            yield {"op": "remove", "path": f"{path}/{_escaped(name)}"}
        for name, value in new.items():
            place = f"{path}/{_escaped(name)}"
            if name in old:
                yield from patches(old[name], value, place)
            else:
                yield {"op": "add", "path": place, "value": value}
    elif isinstance(old, list) and isinstance(new, list):
        for at in range(len(old) - 1, len(new) - 1, -1):
            yield {"op": "remove", "path": f"{path}/{at}"}
        for at, value in enumerate(new):
            if at < len(old):
                yield from patches(old[at], value, f"{path}/{at}")
            else:
                yield {"op": "add", "path": f"{path}/{at}", "value": value}
    elif old != new:
        yield {"op": "replace", "path": path, "value": new}


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


class BlockWriter:
    """Writes the blocks of one stream.

    Parameters
    ----------
    diffs
        Whether documents travel as patches.
    behavior
        How snapshots give their chunks, and how odd patches are.
    """

    def __init__(self, behavior: Behavior, *, diffs: bool) -> None:
        self._behavior = behavior
        self._diffs = diffs
        self._sent: dict[str, Json] = {}

    def blocks(self, documents: Documents) -> list[Json]:
        """Return the blocks that bring a reader to these documents."""
        found: list[Json] = []
        for usage, (field, document) in documents.items():
            old = self._sent.get(usage)
            if old == document:
                continue
            self._sent[usage] = document
            if self._diffs:
                made = self._diff(field, old, document)
            else:
                made = {field: self._snapshot(old or {}, document)}
            found.append({"intended_usage": usage, **made})
        return found

    def _snapshot(self, old: Json, new: Json) -> Json:
        if "chunks" not in new:
            return new
        had, has = old.get("chunks", []), new["chunks"]
        # Chunks that were already sent stay away, unless one of them has changed.
        pairs = zip(had, has, strict=False)
        start = next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(had), len(has)))
        start = {"resend": max(0, start - 1), "whole": 0}.get(self._behavior.web_chunks, start)
        shown = {**new, "chunks": has[start:], "chunk_starting_offset": start}
        if old and had == has and self._behavior.web_chunks != "whole":
            # An empty list with an offset would cut the text off there.
            del shown["chunks"], shown["chunk_starting_offset"]
            if self._behavior.nulls:
                shown["chunks"] = None
        if self._behavior.nulls:
            shown.setdefault("answer", None)
        return shown

    def _diff(self, field: str, old: Json | None, new: Json) -> Json:
        made = list(patches(old, new))
        if self._behavior.web_odd_patches and old is not None:
            made = [*_odd(field, made), *_MEANINGLESS]
        return {"diff_block": {"field": field, "patches": made}}


_MEANINGLESS = (
    {"op": "shuffle", "path": "/chunks"},
    {"op": "replace", "path": "/no/such/place", "value": 1},
)


def _odd(field: str, made: list[Json]) -> Iterator[Json]:
    """Yield the same patches in the other spellings that were seen."""
    for patch in made:
        odd = dict(patch)
        head, _, last = odd["path"].rpartition("/")
        if odd["op"] == "add" and last.isdigit():
            odd["path"] = f"{head}/-"
        elif odd["op"] == "replace" and odd["path"]:
            odd["path"] = f"/{field}{odd['path']}"
            del odd["op"]
        yield odd
