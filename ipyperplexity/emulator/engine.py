"""From a question to a plan: which searches, which results with which numbers, which answer.

Invariant: the same question over the same corpus gives the same plan, every ``[n]`` in the text
is the id of a result of the plan, and no question, however odd, raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date

from .compose import compose
from .conversation import Request, read_turn
from .corpus import Corpus, Passage
from .filters import Filters, blame
from .honest import nothing_found, nothing_more, nothing_on
from .index import Hit, Index
from .prose import tokens
from .query import query_terms, refine

__all__ = ["Engine", "Filters", "Plan", "Result", "Search"]


@dataclass(frozen=True)
class Result:
    """A source as the response shows it; ``id`` counts over the whole response."""

    id: int
    url: str
    title: str
    snippet: str
    date: date | None


@dataclass(frozen=True)
class Search:
    """One call of the search tool."""

    queries: tuple[str, ...]
    results: tuple[Result, ...]


@dataclass(frozen=True)
class Plan:
    """All that a response needs: the searches, the fetched page, and the text of the answer."""

    text: str
    searches: tuple[Search, ...] = ()
    fetched: tuple[Result, ...] = ()
    sentences: tuple[str, ...] = field(default=(), repr=False)
    shown: tuple[str, ...] = field(default=(), repr=False)

    @property
    def results(self) -> tuple[Result, ...]:
        """The results of all searches, in order."""
        return tuple(result for search in self.searches for result in search.results)


@dataclass(frozen=True)
class _Asked:
    """How a question is to be answered."""

    max_results: int
    searches: int
    filters: Filters
    today: date
    id_start: int


_MAX_QUESTION = 4000
_REMEMBERED = 4


def _clean(question: str) -> str:
    return " ".join(question.split())[:_MAX_QUESTION]


class Engine:
    """Answers questions from a corpus.

    Examples
    --------
    >>> plan = Engine(Corpus.builtin()).answer("What does the with statement do?")
    >>> plan.results[0].url
    'https://docs.python.org/3/reference/compound_stmts.html#with'
    """

    def __init__(self, corpus: Corpus, *, base_url: str = "") -> None:
        self.corpus = corpus
        self.index = Index(corpus)
        self.base_url = base_url

    def address(self, passage: Passage) -> str:
        """Return the absolute address of a passage."""
        return self.base_url + passage.url if passage.url.startswith("/") else passage.url

    def answer(
        self,
        question: str,
        *,
        max_results: int = 8,
        searches: int = 2,
        filters: Filters | None = None,
        history: Sequence[str] = (),
        today: date | None = None,
        id_start: int = 1,
    ) -> Plan:
        """Search and compose an answer.

        Parameters
        ----------
        question
            What is asked now.
        max_results
            Most results of each search.
        searches
            Most searches, 1 or 2.
        filters
            Domains and dates to keep to.
        history
            Earlier questions of the conversation, oldest first. They decide when the new question
            names no topic ("and why?"), else they break ties; what they were answered is not
            said again.
        today
            The day that recency counts from.
        id_start
            Number of the first result.
        """
        asked = _Asked(max_results, searches, filters or Filters(), today or date.today(), id_start)
        turns = [_clean(text) for text in (*history, question)]
        given: set[str] = set()
        first = max(0, len(turns) - 1 - _REMEMBERED)
        for at in range(first, len(turns) - 1):
            # An answer follows from its question, so what was said need not be kept to be known.
            given.update(self._plan(turns[at], turns[:at], frozenset(given), asked).shown)
        return self._plan(turns[-1], turns[:-1], frozenset(given), asked)

    def _plan(
        self, question: str, history: Sequence[str], given: frozenset[str], asked: _Asked
    ) -> Plan:
        turn = read_turn(question, history, self.index.vocabulary, len(self.corpus.passages))
        query = question if not turn.before else f"{question} ({turn.before})"
        nothing = (Search((query[:300],), ()),)
        if self._foreign(turn):
            text = nothing_found(self.corpus.name)
            if history and turn.unknown:
                text = nothing_on(turn.unknown, self.corpus.name, turn.topic)
            return Plan(text, nothing)
        allowed = self._allowed(asked.filters, asked.today)
        hits = self._search(turn, allowed, asked.max_results + 20)
        if not hits:
            return Plan(self._nothing(turn, asked, allowed), nothing)
        first = hits[: asked.max_results]
        found = [Search((query[:300],), self._results(first, asked.id_start))]
        second: list[Hit] = []
        if asked.searches > 1:
            refined = refine(first[0].passage, turn.terms, self.index)
            seen = {hit.passage.url for hit in first}
            more = self.index.search(tokens(refined), allowed=allowed, limit=asked.max_results + 12)
            second = [hit for hit in more if hit.passage.url not in seen]
            second = second[: min(asked.max_results, 4)]
            if second:
                start = asked.id_start + len(first)
                found.append(Search((refined,), self._results(second, start)))
        ranked = [
            (result.id, hit.passage)
            for search, group in zip(found, (first, second), strict=False)
            for result, hit in zip(search.results, group, strict=True)
        ]
        shown_before = frozenset() if turn.again else given
        terms = (*turn.terms, *turn.leaning) if turn.strong else turn.terms
        made = compose(ranked, terms, self.index, query, shown_before)
        if made is None:
            topic = turn.topic if turn.before else ()
            return Plan(nothing_more(self.corpus.name, topic), tuple(found))
        return Plan(made.text, tuple(found), sentences=made.sentences, shown=made.shown)

    def fetch(self, url: str, terms: Iterable[str]) -> Result | None:
        """Return the page of the corpus at an address, or None."""
        page = url.partition("#")[0].rstrip("/")
        same = [p for p in self.corpus.passages if self.address(p).partition("#")[0] == page]
        exact = [p for p in same if self.address(p) == url]
        if not same:
            return None
        wanted = set(terms)
        best = max(exact or same, key=lambda p: len(wanted.intersection(tokens(p.text))))
        return self._results([Hit(best, 0.0)], 0)[0]

    def terms(self, question: str) -> list[str]:
        """Return the stems that matter in a question."""
        return query_terms(question, self.index.vocabulary)

    def _foreign(self, turn: Request) -> bool:
        """Whether most of what is asked is not in the corpus: one shared word is no answer."""
        unknown = sum(1 for term in turn.terms if not self.index.vocabulary.get(term))
        return unknown * 2 >= len(turn.terms)

    def _search(self, turn: Request, allowed: frozenset[int] | None, limit: int) -> list[Hit]:
        """Return the hits for a question, without those that share only a faint part of it."""
        if not turn.leaning:
            hits = self.index.search(turn.terms, allowed=allowed, limit=limit)
        else:
            every = len(self.corpus.passages)
            lean = {
                id(hit.passage): hit.score for hit in self.index.search(turn.leaning, limit=every)
            }
            pull = (3.0 if turn.strong else 0.2) / max(lean.values(), default=1.0)
            found = self.index.search(turn.terms, allowed=allowed, limit=every)
            pulled = [
                Hit(hit.passage, hit.score * (1 + pull * lean.get(id(hit.passage), 0.0)))
                for hit in found
            ]
            hits = sorted(pulled, key=lambda hit: -hit.score)[:limit]
        return [hit for hit in hits if hit.score > 0.15 * hits[0].score]

    def _nothing(self, turn: Request, asked: _Asked, allowed: frozenset[int] | None) -> str:
        """Say that nothing was found, and which filters are to blame."""
        fitting = [hit.passage for hit in self._search(turn, None, len(self.corpus.passages))]
        if allowed is None or not fitting:
            return nothing_found(self.corpus.name)
        whose = "what fits the question" if allowed else "this corpus"
        pages = fitting if allowed else self.corpus.passages
        detail = blame(
            asked.filters,
            [(self.address(page), page.published) for page in pages],
            asked.today,
            whose,
            self.corpus.language,
        )
        return nothing_found(self.corpus.name, "that fits the filters", detail)

    def _results(self, hits: Sequence[Hit], start: int) -> tuple[Result, ...]:
        return tuple(
            Result(
                start + at,
                self.address(hit.passage),
                f"{hit.passage.title} — {hit.passage.site}"
                if hit.passage.site
                else hit.passage.title,
                _snippet(hit.passage),
                hit.passage.published,
            )
            for at, hit in enumerate(hits)
        )

    def _allowed(self, filters: Filters, today: date) -> frozenset[int] | None:
        if not filters.active:
            return None
        return frozenset(
            at
            for at, passage in enumerate(self.corpus.passages)
            if filters.allow(self.address(passage), passage.published, today, self.corpus.language)
        )


def _snippet(passage: Passage, limit: int = 600) -> str:
    text = passage.text
    if len(text) <= limit:
        return text
    cut = text.rfind(" ", 0, limit)
    return text[: cut if cut > 0 else limit] + " …"
