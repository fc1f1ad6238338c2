"""The blocks of a perplexity.ai stream, put together: snapshots are merged, patches applied.

A stream sends each block whole, in pieces (``chunks`` from ``chunk_starting_offset`` on), or as
RFC 6902 patches, and may change its way in between (consumer-web 2.5 to 2.7). Each block usage has
one document, whichever way it came. What a document says of a change is exact enough that a reader
needs to look at new chunks only.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from typing import Any

from ipyperplexity.wire import values
from ipyperplexity.wire.consumer_constants import DIFF_BLOCK, MARKDOWN_BLOCK

UNCHANGED = sys.maxsize
#: Chunks that are filled in where a stream left some out; a longer gap is no gap but nonsense.
MAX_GAP = 10_000
_USAGE = "intended_usage"
_RFC_6902 = ("add", "replace", "remove", "move", "copy", "test")
#: Members that never hold text, though they change all the time.
_NO_TEXT = ("status", "progress", "eta_seconds_remaining", "pct_complete", "final", "uuid")
_CHUNK = re.compile(r"(?:^|/)chunks/([0-9]{1,9}|-)$")


def splice(chunks: list[str], pieces: list[str], offset: Any) -> int:
    """Put new chunks in their place, and cut what was behind it (consumer-web 2.6).

    Parameters
    ----------
    chunks : list of str
        Changed in place.
    pieces : list of str
        The new chunks.
    offset : int
        Index into ``chunks`` where they begin; anything that is no number, or is negative,
        replaces all.

    Returns
    -------
    int
        Index of the first chunk that differs from before.

    Examples
    --------
    >>> chunks = ["Hello ", "wor"]
    >>> splice(chunks, ["world"], 1), chunks
    (1, ['Hello ', 'world'])
    """
    at = max(0, _index(offset) or 0)
    before = len(chunks)
    if at > before:
        if at - before > MAX_GAP:
            at = before
        chunks.extend([""] * (at - before))  # a skipped event: its place is kept
    same, end = at, min(len(chunks), at + len(pieces))
    while same < end and chunks[same] == pieces[same - at]:
        same += 1
    chunks[same:] = pieces[same - at :]
    return min(same, before) if at > before else same


def _index(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value)


class Document:
    """All that a stream has said for one block usage.

    Attributes
    ----------
    usage : str
        Its ``intended_usage``.
    fields : dict
        Payload name, such as ``markdown_block``, to payload.
    changed_from : int
        Index of the first chunk that changed since somebody looked; ``UNCHANGED`` if none did.
    """

    def __init__(self, usage: str) -> None:
        self.usage = usage
        self.fields: dict[str, Any] = {}
        self.changed_from = UNCHANGED

    def take(self, block: dict[str, Any]) -> None:
        """Take one block of a record."""
        for field, payload in block.items():
            if field == DIFF_BLOCK:
                self._take_patches(payload)
            elif field == MARKDOWN_BLOCK and isinstance(payload, dict):
                self._take_markdown(payload)
            elif field != _USAGE and payload is not None:
                earlier = self.fields.get(field)
                if isinstance(earlier, dict):
                    if not isinstance(payload, dict):
                        continue
                    payload = {**earlier, **_said(payload)}
                self.fields[field] = payload
                self.changed_from = 0

    def looked_at(self) -> int:
        """Return ``changed_from``, and begin anew."""
        changed_from, self.changed_from = self.changed_from, UNCHANGED
        return changed_from

    # --- snapshots ----------------------------------------------------------------------------

    def _take_markdown(self, payload: dict[str, Any]) -> None:
        document = self._object(MARKDOWN_BLOCK)
        said = _said(payload)
        pieces, offset = said.pop("chunks", None), said.pop("chunk_starting_offset", None)
        answer = said.pop("answer", None)
        has_answer = isinstance(answer, str) and bool(answer.strip())
        if has_answer:
            document["answer"] = answer
            self.changed_from = 0
        document.update(said)
        # An empty list without an offset says nothing: it would wipe out what has been told.
        if isinstance(pieces, list) and (pieces or _index(offset) is not None):
            chunks = document.setdefault("chunks", [])
            first = splice(chunks, _texts(pieces), offset)
            anew = bool(pieces) and (_index(offset) or 0) <= 0
            self._chunks_changed(document, first, has_answer=has_answer, anew=anew)

    def _chunks_changed(
        self, document: dict[str, Any], first: int, *, has_answer: bool, anew: bool
    ) -> None:
        self.changed_from = min(self.changed_from, first)
        answer = document.get("answer")
        if has_answer or not isinstance(answer, str):
            return
        # A stray chunk does not outweigh a whole answer (consumer-web 2.6, row 14).
        if anew or len(answer) < sum(map(len, document["chunks"])):
            del document["answer"]
            self.changed_from = 0

    # --- patches ------------------------------------------------------------------------------

    def _take_patches(self, diff: Any) -> None:
        if not isinstance(diff, dict) or not isinstance(field := diff.get("field"), str):
            return
        has_answer = any(
            isinstance(patch.get("path"), str) and patch["path"].endswith("/answer")
            for patch in values.objects(diff.get("patches"))
        )
        for patch in values.objects(diff.get("patches")):
            if isinstance(path := patch.get("path"), str):
                self._patch(field, self._inner(field, path), patch, has_answer=has_answer)

    def _inner(self, field: str, path: str) -> str:
        """Return a path without the field's own name, with which some streams begin it."""
        if (path + "/").startswith(f"/{field}/") and field not in self._object(field):
            return path[len(field) + 1 :]
        return path

    def _patch(self, field: str, path: str, patch: dict[str, Any], *, has_answer: bool) -> None:
        if path == "":
            self._whole(field, patch)
            return
        document, parts, op = self._object(field), path.split("/"), patch.get("op")
        is_chunk = _CHUNK.search(path)
        if is_chunk and "value" in patch and not isinstance(patch["value"], str):
            patch = {**patch, "value": ""}
        in_chunks = field == MARKDOWN_BLOCK and parts[1:2] == ["chunks"]
        if op in ("add", "replace", None):
            _make_room(document, parts, pad=in_chunks)
        before = len(document["chunks"]) if in_chunks and "chunks" in document else UNCHANGED
        if not _apply(document, path, patch):
            return
        first = 0
        if op not in ("move", "copy"):
            if is_chunk:
                first = before if is_chunk[1] == "-" else int(is_chunk[1])
            elif parts[-1] in _NO_TEXT:
                first = UNCHANGED
        if not in_chunks:
            self.changed_from = min(self.changed_from, first)
            return
        if not is_chunk or op in ("move", "copy"):
            document["chunks"] = _texts(document.get("chunks"))
        self._chunks_changed(document, first, has_answer=has_answer, anew=len(parts) == 2)

    def _whole(self, field: str, patch: dict[str, Any]) -> None:
        value = patch.get("value")
        if patch.get("op") not in ("add", "replace", None) or not isinstance(value, dict):
            return
        if isinstance(value.get(field), dict):
            value = value[field]
        if field == MARKDOWN_BLOCK:  # it may be a part only, with an offset
            self._take_markdown(value)
        else:
            self.fields[field] = value
            self.changed_from = 0

    def _object(self, field: str) -> dict[str, Any]:
        if not isinstance(self.fields.get(field), dict):
            self.fields[field] = {}
        document: dict[str, Any] = self.fields[field]
        return document


def _said(payload: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if value is not None}


def _texts(chunks: Any) -> list[str]:
    """Return a list of chunks, with an empty text for what is none: the others keep their place."""
    found = chunks if isinstance(chunks, list) else []
    if all(type(chunk) is str for chunk in found):
        return found
    return [chunk if isinstance(chunk, str) else "" for chunk in found]


def _make_room(document: dict[str, Any], parts: list[str], *, pad: bool) -> None:
    """Make room for an item whose list, or whose forerunners, never came."""
    if len(parts) != 3 or not re.fullmatch(r"[0-9]{1,9}|-", parts[2]):
        return
    if parts[1] not in document and (pad or parts[2] in ("0", "-")):
        document[parts[1]] = []
    if pad and parts[2] != "-":
        gap = int(parts[2]) - len(document["chunks"])
        if 0 < gap <= MAX_GAP:
            document["chunks"].extend([""] * gap)


def _apply(document: dict[str, Any], path: str, patch: dict[str, Any]) -> bool:
    """Apply one patch; return whether that was possible. If not, the others still count."""
    op = patch.get("op")
    if op is not None and op not in _RFC_6902:
        return False
    if op in ("add", "remove", "test", "move", "copy"):
        return _apply_as(document, op, path, patch)
    # No word, or one for a member that never came: what the site does is to set it.
    return _apply_as(document, "replace", path, patch) or _apply_as(document, "add", path, patch)


def _apply_as(document: dict[str, Any], op: str, path: str, patch: dict[str, Any]) -> bool:
    import jsonpatch  # most streams have no patches

    operation = {**patch, "op": op, "path": path}
    try:
        made = jsonpatch.JsonPatch([operation])
        # A move is two steps, of which the second may fail.
        result = made.apply(document, in_place=op != "move")
    except (
        jsonpatch.JsonPatchException,
        jsonpatch.JsonPointerException,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        RecursionError,
    ):
        return False
    if result is not document:
        document.clear()
        document.update(result)
    return True


class Documents:
    """The documents of a stream, in the order in which their usages came.

    Examples
    --------
    >>> documents = Documents()
    >>> for chunk, at in (("Hello ", 0), ("world", 1)):
    ...     block = {"chunks": [chunk], "chunk_starting_offset": at}
    ...     touched = documents.take([{"intended_usage": "ask_text", "markdown_block": block}])
    >>> documents.named("ask_text").fields["markdown_block"]["chunks"]
    ['Hello ', 'world']
    """

    def __init__(self) -> None:
        self._by_usage: dict[str, Document] = {}

    def take(self, blocks: Any) -> list[Document]:
        """Take the ``blocks`` of one record; return the documents that they belong to."""
        touched: dict[str, Document] = {}
        for block in values.objects(blocks):
            usage = values.text(block.get(_USAGE))
            document = self._by_usage.setdefault(usage, Document(usage))
            document.take(block)
            touched[usage] = document
        return list(touched.values())

    def __iter__(self) -> Iterator[Document]:
        return iter(self._by_usage.values())

    def named(self, usage: str) -> Document | None:
        """Return the document of a usage, if it came."""
        return self._by_usage.get(usage)

    def blocks(self) -> list[dict[str, Any]]:
        """Return all as the service writes its own last record."""
        return [{**document.fields, _USAGE: document.usage} for document in self]
