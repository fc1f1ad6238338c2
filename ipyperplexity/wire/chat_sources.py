"""The sources of a chat completion: three lists, of which one says what ``[n]`` in the text means.

``search_results`` counts; ``citations`` (addresses only) stands in where it is absent; annotations
of a message (OpenRouter, LiteLLM) come last. The lists ride on any chunk, and mostly the same one
on each. The newest is right, but nothing that was found before is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ipyperplexity.sources import Sources
from ipyperplexity.wire import values
from ipyperplexity.wire.source_collector import SourceCollector


class ChatSources:
    """Reads the lists as they come.

    Attributes
    ----------
    sources : Sources
        All so far.
    is_odd : bool
        Whether a list came in a form that cannot be read.

    Examples
    --------
    >>> found = ChatSources()
    >>> found.take({"citations": ["https://a.example"]}), found.take({"citations": None})
    (True, False)
    >>> found.sources[0].url
    'https://a.example'
    """

    def __init__(self) -> None:
        self.sources = Sources()
        self.is_odd = False
        self._last: tuple[Any, Any] = (None, None)
        self._results: list[Any] | None = None
        self._citations: list[Any] = []
        self._earlier: list[Any] = []
        self._annotations: dict[str, dict[str, Any]] = {}

    def take(self, record: Mapping[str, Any]) -> bool:
        """Take the lists of a chunk or a reply; return whether there is anything new."""
        newest = (record.get("search_results"), record.get("citations"))
        if newest in (self._last, (None, None)):
            return False
        self._last = newest
        results, citations = newest
        if isinstance(results, list):
            self._results = self._newer(self._results or [], results)
        if isinstance(citations, list):
            self._citations = self._newer(self._citations, citations)
        self.is_odd = self.is_odd or any(
            not isinstance(found, list | None) for found in (results, citations)
        )
        return self._collect()

    def annotate(self, annotations: Any) -> bool:
        """Take the annotations of a message; return whether there is anything new."""
        before = len(self._annotations)
        for note in values.objects(annotations):
            entry = _entry(note)
            if url := values.text(entry.get("url")).strip():
                self._annotations.setdefault(url, entry)
        return len(self._annotations) > before and self._collect()

    def _newer(self, known: list[Any], newest: list[Any]) -> list[Any]:
        if len(newest) < len(known) and _urls(newest) == _urls(known[: len(newest)]):
            return known
        if known is self._results:
            self._earlier += known
        return newest

    def _collect(self) -> bool:
        collector = SourceCollector()
        numbered = self._citations if self._results is None else self._results
        for number, entry in enumerate(map(_entry, numbered), 1):
            if any(values.text(entry.get(name)).strip() for name in ("url", "title")):
                _add(collector, entry, id=number)
        for entry in map(_entry, self._earlier):
            _add(collector, entry)
        for entry in self._annotations.values():
            _add(collector, entry, kind="annotation")
        sources = collector.sources()
        is_new = list(sources) != list(self.sources)
        self.sources = sources
        return is_new


def _entry(value: Any) -> dict[str, Any]:
    """Return a source as an object: it may be an address alone, or wrapped in its type."""
    if isinstance(value, str):
        return {"url": value}
    if not isinstance(value, dict):
        return {}
    inner = value.get("url_citation")
    return inner if isinstance(inner, dict) else value


def _urls(entries: Iterable[Any]) -> list[Any]:
    return [_entry(entry).get("url") for entry in entries]


def _add(collector: SourceCollector, entry: Mapping[str, Any], **how: Any) -> None:
    fields = ("url", "title", "snippet", "date", "last_updated")
    found = {name: values.clean(values.text(entry.get(name))) for name in fields}
    collector.add(**found, **how)
