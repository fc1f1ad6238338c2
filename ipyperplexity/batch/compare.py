"""Several answers side by side: what they share, what only one of them has, what each took.

Invariant: pages are compared by what their address names, not by how it is written
(:mod:`ipyperplexity.batch.page_key`); what is listed is always an address as an answer gives it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, overload

from ipyperplexity.answer import Answer
from ipyperplexity.batch.answer_table import AnswerTable
from ipyperplexity.batch.page_key import host_of, page_key
from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.markup.links import one_line
from ipyperplexity.markup.markers import find_markers
from ipyperplexity.tabular.columns import Column, Columns
from ipyperplexity.tabular.framed import Framed

COMPARISON_SCHEMA = (
    Column("label", "str"),
    Column("question", "str"),
    Column("status", "str"),
    Column("characters", "int32", nullable=False),
    Column("words", "int32", nullable=False),
    Column("sentences", "int32", nullable=False),
    Column("unsupported_sentences", "int32", nullable=False),
    Column("n_sources", "int32", nullable=False),
    Column("n_cited", "int32", nullable=False),
    Column("n_domains", "int32", nullable=False),
    Column("shared_domains", "int32", nullable=False),
    Column("unique_domains", "int32", nullable=False),
    Column("shared_urls", "int32", nullable=False),
    Column("unique_urls", "int32", nullable=False),
    Column("cost_usd", "float64"),
    Column("elapsed", "float64"),
    Column("total_tokens", "int64"),
)

#: Rows that a display shows; frames have all.
_SHOWN_ROWS = 20
_SHOWN_COLUMNS = {
    "label": "label",
    "status": "status",
    "words": "words",
    "sentences": "sentences",
    "unsupported_sentences": "unsupported",
    "n_sources": "sources",
    "n_cited": "cited",
    "unique_urls": "unique URLs",
    "cost_usd": "cost (USD)",
    "elapsed": "time (s)",
    "total_tokens": "tokens",
}


class Comparison(Framed):
    """Answers compared, as a table that frame libraries take as it is: one row an answer.

    *Shared* is what every one of the answers has, *unique* what no other has; with fewer than two
    answers nothing is shared. All sources count, cited or not.

    Columns: ``label``, ``question``, ``status``, ``characters`` (code points of the text),
    ``words`` (runs between blanks, without markers), ``sentences`` and ``unsupported_sentences``
    (as :mod:`ipyperplexity.claims` counts them), ``n_sources``, ``n_cited``, ``n_domains``,
    ``shared_domains``, ``unique_domains``, ``shared_urls``, ``unique_urls`` (how many),
    ``cost_usd``, ``elapsed`` (seconds), ``total_tokens``.

    Iterating gives rows (dicts); ``[0]`` is the first Answer, ``["words"]`` a column's list.

    Examples
    --------
    >>> both = compare([Answer("Why?", "So."), Answer("Why?", "So it is.")], labels=["a", "b"])
    >>> both["words"], both.shared_urls
    ([1, 3], [])
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, answers: AnswerTable, labels: Sequence[str]) -> None:
        self._answers = answers.answers
        self._labels = tuple(labels)

    def __len__(self) -> int:
        return len(self._answers)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_dicts())

    @overload
    def __getitem__(self, key: int) -> Answer: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | str) -> Answer | list[Any]:
        """``[0]`` is the first Answer, ``["words"]`` a column's list."""
        return self._columns().column(key) if isinstance(key, str) else self._answers[key]

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers themselves."""
        return self._answers

    @property
    def labels(self) -> tuple[str, ...]:
        """Their names, each once."""
        return self._labels

    @property
    def shared_urls(self) -> list[str]:
        """Pages that all answers have, as the first gives their addresses."""
        return self._shared(self._urls)

    @property
    def shared_domains(self) -> list[str]:
        """Domains that all answers have."""
        return self._shared(self._domains)

    def unique_urls(self, which: int | str) -> list[str]:
        """Return the pages that only this answer has.

        Parameters
        ----------
        which : int or str
            Position or label of the answer.

        Raises
        ------
        InvalidRequestError
            If there is no such answer.
        """
        return self._unique(self._urls, self._position(which))

    def unique_domains(self, which: int | str) -> list[str]:
        """Return the domains that only this answer has; parameters as of :meth:`unique_urls`."""
        return self._unique(self._domains, self._position(which))

    def _position(self, which: int | str) -> int:
        known = ", ".join(map(repr, self._labels)) or "none"
        if isinstance(which, str) and which in self._labels:
            return self._labels.index(which)
        if isinstance(which, int) and -len(self) <= which < len(self):
            return which % len(self)
        raise InvalidRequestError(
            f"which: got {which!r}; allowed: a position below {len(self)}, or a label ({known}).",
            field="which",
        )

    @cached_property
    def _urls(self) -> tuple[dict[str, str], ...]:
        """For each answer its pages: key -> address as given first."""
        pages: list[dict[str, str]] = []
        for answer in self._answers:
            found: dict[str, str] = {}
            for url in answer.sources["url"]:
                if url.strip():
                    found.setdefault(page_key(url), url)
            pages.append(found)
        return tuple(pages)

    @cached_property
    def _domains(self) -> tuple[dict[str, str], ...]:
        return tuple(
            {
                domain: domain
                for source in answer
                if (domain := source.domain or host_of(source.url))
            }
            for answer in self._answers
        )

    def _shared(self, sets: Sequence[dict[str, str]]) -> list[str]:
        if len(sets) < 2:
            return []
        first, *others = sets
        return [shown for key, shown in first.items() if all(key in other for other in others)]

    def _unique(self, sets: Sequence[dict[str, str]], position: int) -> list[str]:
        owners = Counter(key for one in sets for key in one)
        return [shown for key, shown in sets[position].items() if owners[key] == 1]

    def _columns(self) -> Columns:
        return self._table

    @cached_property
    def _table(self) -> Columns:
        shared_domains, shared_urls = len(self.shared_domains), len(self.shared_urls)
        rows = [
            {
                "label": label,
                **_measures(answer),
                "n_domains": len(self._domains[position]),
                "shared_domains": shared_domains,
                "unique_domains": len(self._unique(self._domains, position)),
                "shared_urls": shared_urls,
                "unique_urls": len(self._unique(self._urls, position)),
            }
            for position, (label, answer) in enumerate(
                zip(self._labels, self._answers, strict=True)
            )
        ]
        return Columns(
            COMPARISON_SCHEMA, {c.name: [row[c.name] for row in rows] for c in COMPARISON_SCHEMA}
        )

    def _summary(self) -> str:
        domains, urls = len(self.shared_domains), len(self.shared_urls)
        return f"{_count(len(self), 'answer')}; all share {_count(domains, 'domain')}, " + _count(
            urls, "URL"
        )

    def _shown(self) -> tuple[list[str], list[list[Any]]]:
        """Return the heads and rows of a display; the status only where it says something."""
        names = list(_SHOWN_COLUMNS)
        if set(self["status"]) <= {"completed"}:
            names.remove("status")
        columns = [self[name][:_SHOWN_ROWS] for name in names]
        rows = [list(row) for row in zip(*columns, strict=True)]
        return [_SHOWN_COLUMNS[name] for name in names], rows

    def __repr__(self) -> str:
        from ipyperplexity.markup import terminal

        heads, shown = self._shown()
        rows = [heads, *([_plain(cell) for cell in row] for row in shown)]
        widths = [max(map(terminal.display_width, column)) for column in zip(*rows, strict=True)]
        lines = [f"Comparison({self._summary()})"] + [
            "  ".join(
                cell + " " * (width - terminal.display_width(cell))
                for cell, width in zip(row, widths, strict=True)
            ).rstrip()
            for row in rows
        ]
        more = len(self) - _SHOWN_ROWS
        return "\n".join(
            [*lines, f"... and {more:,} more; to_pandas() has all"] if more > 0 else lines
        )

    def _repr_html_(self) -> str:
        from ipyperplexity.markup import page

        questions = dict.fromkeys(self["question"])
        heads, rows = self._shown()
        return page.data_table(
            heads,
            rows,
            total=len(self),
            label=self._summary(),
            row_heads=True,
            notes=[next(iter(questions))] if len(questions) == 1 else (),
        )


def compare(
    answers: AnswerTable | Iterable[Answer], labels: Iterable[str] | None = None
) -> Comparison:
    """Compare answers: shared and unique domains and URLs, lengths, support, cost, time.

    Answers that failed or were stopped are compared as far as they came; with one that has no
    sources, nothing is shared by all.

    Parameters
    ----------
    answers : AnswerTable or iterable of Answer
    labels : iterable of str, optional
        A name for each; the model's name if not given. Default names that occur more than once
        get `` (2)``, `` (3)`` ...

    Raises
    ------
    InvalidRequestError
        If something is no Answer, or the labels do not fit: another number, empty, or twice.

    Examples
    --------
    >>> low, high = Answer("Why?", "So.", model="low"), Answer("Why?", "Thus.", model="high")
    >>> compare([low, high]).labels
    ('low', 'high')
    """
    # Made anew of its answers: a row of a batch may have none.
    table = AnswerTable(answers.answers if isinstance(answers, AnswerTable) else answers)
    if labels is None:
        return Comparison(table, _default_labels(table.answers))
    return Comparison(table, _checked_labels(labels, len(table)))


def _default_labels(answers: Sequence[Answer]) -> list[str]:
    labels: dict[str, None] = {}
    for position, answer in enumerate(answers, start=1):
        name = label = one_line(answer.model or "") or f"answer {position}"
        n = 1
        while label in labels:
            n += 1
            label = f"{name} ({n})"
        labels[label] = None
    return list(labels)


def _checked_labels(labels: object, count: int) -> list[str]:
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise InvalidRequestError(
            f"labels: got a value of type {type(labels).__name__}; allowed: a list of texts, one "
            "an answer.",
            field="labels",
            hint="Answers go in one list: compare([a, b], labels=['low', 'high']).",
        )
    given = list(labels)
    for position, label in enumerate(given):
        if not isinstance(label, str) or not label.strip():
            raise InvalidRequestError(
                f"labels: item {position} is {label!r}; allowed: texts that are not empty.",
                field="labels",
            )
        if label in given[:position]:
            raise InvalidRequestError(
                f"labels: got {label!r} twice; allowed: each label once.", field="labels"
            )
    if len(given) != count:
        raise InvalidRequestError(
            f"labels: got {len(given)} for {_count(count, 'answer')}; allowed: one an answer.",
            field="labels",
        )
    return given


def _measures(answer: Answer) -> dict[str, Any]:
    row = answer.row()
    kept = ("question", "status", "n_sources", "n_cited", "cost_usd", "elapsed", "total_tokens")
    return {
        **{name: row[name] for name in kept},
        "characters": len(answer.text),
        "words": _count_words(answer.text),
        "sentences": len(answer.claims),
        "unsupported_sentences": len(answer.claims.unsupported),
    }


_WORD = re.compile(r"\w")


def _count_words(text: str) -> int:
    pieces, position = [], 0
    for marker in find_markers(text):
        pieces.append(text[position : marker.start])
        position = marker.end
    pieces.append(text[position:])
    return sum(1 for word in " ".join(pieces).split() if _WORD.search(word))


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _plain(cell: Any) -> str:
    from ipyperplexity.markup import terminal

    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:.4g}"
    if isinstance(cell, int):
        return f"{cell:,}"
    return terminal.fit(one_line(terminal.strip_controls(cell)), 30)
