"""Full-text index of a corpus: SQLite FTS5 with bm25, in memory.

Invariant: no text of a user is ever read as query syntax (terms are stems of letters, digits and
underscores, quoted), and one lock guards the one connection, so any thread may ask.
"""

from __future__ import annotations

import math
import sqlite3
import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

from .corpus import Corpus, Passage
from .prose import tokens

__all__ = ["Hit", "Index"]

_WEIGHTS = (6.0, 3.0, 1.0)


@dataclass(frozen=True)
class Hit:
    """One passage found, with its score (higher is better)."""

    passage: Passage
    score: float


class Index:
    """Ranked search over the passages of a corpus; built at the first search.

    Examples
    --------
    >>> index = Index(Corpus.builtin())
    >>> index.search(["lambda"])[0].passage.title
    'Lambdas'
    """

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._titles: list[frozenset[str]] = []
        self._keywords: list[frozenset[str]] = []

    def _build(self) -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        connection.execute("create virtual table passage using fts5(title, keywords, body)")
        rows = []
        for at, passage in enumerate(self.corpus.passages):
            title, keywords = tokens(passage.title), tokens(passage.keywords)
            self._titles.append(frozenset(title))
            self._keywords.append(frozenset(keywords))
            body = " ".join(tokens(passage.text))
            rows.append((at, " ".join(title), " ".join(keywords), body))
        connection.executemany(
            "insert into passage(rowid, title, keywords, body) values (?, ?, ?, ?)", rows
        )
        connection.execute("create virtual table word using fts5vocab(passage, row)")
        return connection

    def _ready(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._build()
        return self._connection

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        """Stem -> number of passages that use it."""
        with self._lock:
            return dict(self._ready().execute("select term, doc from word"))

    def weight(self, term: str) -> float:
        """Return the inverse document frequency of a stem; 0 if no passage has it."""
        seen = self.vocabulary.get(term, 0)
        return math.log(1 + len(self.corpus.passages) / seen) if seen else 0.0

    def search(
        self, terms: Iterable[str], *, allowed: Collection[int] | None = None, limit: int = 20
    ) -> list[Hit]:
        """Return the passages that have any of the terms, best first.

        Parameters
        ----------
        terms
            Stems, as :func:`~ipyperplexity.emulator.prose.tokens` makes them.
        allowed
            Positions in ``corpus.passages`` to choose from; None for all.
        limit
            Most hits to return.
        """
        wanted = [term for term in dict.fromkeys(terms) if self.vocabulary.get(term)]
        if not wanted:
            return []
        match = " OR ".join(f'"{term}"' for term in wanted)
        with self._lock:
            rows = self._ready().execute(
                "select rowid, bm25(passage, ?, ?, ?) from passage where passage match ?",
                (*_WEIGHTS, match),
            )
            found = [(at, -rank) for at, rank in rows if allowed is None or at in allowed]
        total = sum(self.weight(term) for term in wanted)
        scored = [(self._rerank(at, rank, wanted, total), at) for at, rank in found]
        scored.sort(key=lambda pair: (-pair[0], pair[1]))
        return [Hit(self.corpus.passages[at], score) for score, at in scored[:limit]]

    def _rerank(self, at: int, rank: float, wanted: list[str], total: float) -> float:
        """Raise a passage whose heading is what was asked about: learners ask for headings."""
        title, keywords = self._titles[at], self._keywords[at]
        named = sum(self.weight(term) for term in wanted if term in title)
        tagged = sum(self.weight(term) for term in wanted if term in keywords)
        inside = len(title.intersection(wanted)) / max(1, len(title))
        return rank * (1 + named / total + 0.6 * tagged / total + 0.6 * inside)

    def close(self) -> None:
        """Free the memory; the next search builds the index again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
