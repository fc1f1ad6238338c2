"""Answers that need not be asked again: the checkpoint of a batch, and the cache of this user.

Invariant: an answer is on disk before it is counted. One that somebody stopped or that broke off is
kept nowhere: it is asked again.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterable
from pathlib import Path

from ipyperplexity import answer_record
from ipyperplexity.answer import Answer
from ipyperplexity.citations import count_citations
from ipyperplexity.errors import InvalidRequestError, PerplexityError
from ipyperplexity.question import Question
from ipyperplexity.schema import SchemaMismatch
from ipyperplexity.store.answer_store import AnswerStore

#: How old an answer of the cache may be, and how large the cache, in bytes of answers.
CACHE_MAX_AGE = dt.timedelta(days=7)
CACHE_MAX_BYTES = 512 * 2**20


def open_cache() -> AnswerStore:
    """Return the cache of this user: answers of the last seven days, 512 MiB at most."""
    return AnswerStore(max_age=CACHE_MAX_AGE, max_bytes=CACHE_MAX_BYTES)


class KeptAnswers:
    """The places where answers are kept, the checkpoint first.

    Parameters
    ----------
    checkpoint : Path or None
        A file of the user's.
    cache : bool
        Whether to use the cache as well.
    hide : callable
        Takes the key out of what goes to disk: somebody may have pasted it into a question.

    Raises
    ------
    ConfigurationError
        If the checkpoint cannot be written: now, before anything is paid for.
    """

    def __init__(self, checkpoint: Path | None, *, cache: bool, hide: Callable[[str], str]) -> None:
        self._hide = hide
        self._stores: list[AnswerStore] = []
        if checkpoint is not None:
            store = AnswerStore(checkpoint)
            store.check()
            self._stores.append(store)
        if cache:
            self._stores.append(open_cache())

    def find(self, questions: Iterable[tuple[str, Question]]) -> dict[str, Answer]:
        """Return the answers that there are, by key.

        Parameters
        ----------
        questions : iterable of (str, Question)
            Keys, and what was asked.
        """
        wanted = dict(questions)
        found: dict[str, Answer] = {}
        for store in self._stores:
            missing = [key for key in wanted if key not in found]
            for key, document in store.get_many(missing).items():
                answer = _read(document, wanted[key])
                if answer is not None:
                    found[key] = answer
        return found

    def keep(self, answers: Iterable[tuple[str, Answer]]) -> None:
        """Keep whole answers, by key; they are on disk when this returns.

        Raises
        ------
        ConfigurationError
            If the checkpoint cannot be written.
        """
        if not self._stores:
            return
        documents = [(key, self._document(answer)) for key, answer in answers]
        for store in self._stores:
            store.put_many(documents)

    def _document(self, answer: Answer) -> str:
        fields = {each.name: getattr(answer, each.name) for each in dataclasses.fields(answer)}
        # Typed values, and what the text cites, are made again of the text.
        made = {"data": None, "data_layout": None, "sources": answer.sources.uncounted()}
        return self._hide(answer_record.dumps({**fields, **made}, compact=True))

    def close(self) -> None:
        """Let go of the files."""
        for store in self._stores:
            store.close()


def _read(document: str, question: Question) -> Answer | None:
    """Return a kept answer; None for one of a later version, or that does not fit the schema."""
    try:
        answer = Answer(**answer_record.loads(document.encode(), "A kept answer"))
        sources = count_citations(answer.text, answer.sources)
        answer = dataclasses.replace(answer, cached=True, sources=sources)
        return with_data(answer, question)
    except PerplexityError:
        return None


def with_data(answer: Answer, question: Question) -> Answer:
    """Return an answer with the value that its question's schema makes of its text.

    Raises
    ------
    InvalidRequestError
        If the text does not fit.
    """
    if question.schema is None:
        return answer
    problem = ""
    try:
        data = question.schema.parse(answer.text)
    except SchemaMismatch as error:
        problem = str(error)
    else:
        return dataclasses.replace(answer, data=data, data_layout=question.schema.layout)
    raise InvalidRequestError(problem, field="schema")
