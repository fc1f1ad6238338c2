"""Every claim's mark: which source each ``[n]`` in a text means, and for which sentence.

The grammar of markers is in :mod:`ipyperplexity.markup.markers`; this module joins them with
the sources. A marker whose source is unknown is kept and flagged, never guessed away.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass

from ipyperplexity.markup.markers import find_markers, sentences
from ipyperplexity.sources import Source, Sources


@dataclass(frozen=True)
class Citation:
    """One source named by one marker of an answer's text.

    Attributes
    ----------
    id : int or None
        The source's number; None for ``[web:n]`` when no fetched page stands at that position.
    start, end : int
        Where the marker stands in the text, in code points.
    sentence : str
        The sentence that the marker belongs to.
    source : Source or None
        None when no source has that number.
    by_position : bool
        Whether the source was found by position (``[web:0]``: the first fetched page), which the
        service does not document.
    """

    id: int | None
    start: int
    end: int
    sentence: str
    source: Source | None
    by_position: bool = False


def find_citations(text: str, sources: Sources) -> tuple[Citation, ...]:
    """Return the citations in ``text``, in order; a marker such as ``[1, 3]`` gives two.

    Examples
    --------
    >>> sources = Sources([Source(1, "Dune", "https://d.example")])
    >>> [c.source.title for c in find_citations("It is tall.[1]", sources)]
    ['Dune']
    """
    markers = find_markers(text)
    if not markers:
        return ()
    spans = sentences(text)
    starts = [start for start, _ in spans]
    found: list[Citation] = []
    for marker in markers:
        index = bisect_right(starts, marker.start) - 1
        sentence = text[slice(*spans[index])].strip() if index >= 0 else ""
        if marker.web is not None:
            page = sources.fetched(marker.web)
            found.append(
                Citation(page.id if page else None, marker.start, marker.end, sentence, page, True)
            )
            continue
        found += [
            Citation(id, marker.start, marker.end, sentence, sources.get(id)) for id in marker.ids
        ]
    return tuple(found)


def count_citations(text: str, sources: Sources) -> Sources:
    """Return ``sources`` with ``cited`` and ``n_cited`` as ``text`` has them."""
    return sources.counting(
        lambda plain: Counter(
            citation.source.id for citation in find_citations(text, plain) if citation.source
        )
    )
