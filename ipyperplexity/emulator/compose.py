"""The words of an answer: the best sentences of the passages found, each followed by its number.

Invariant: every sentence of an answer stands in the passage whose number follows it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from .corpus import Passage
from .index import Index
from .picking import DANGLES, Scorer, finish, is_name, prose_of
from .prose import parse_blocks, sentences
from .query import is_pair, wants_table
from .tables import Table, take_tables

__all__ = ["Composed", "compose", "page_answer"]

_WANTS_EXAMPLE = re.compile(r"\bexamples?\b", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\b(?:SUITE|TARGET|EXPRESSION|ITER)\b")


class _Page(Protocol):
    """A page as the engine fetched it."""

    @property
    def url(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def snippet(self) -> str: ...


def page_answer(pages: Sequence[_Page], terms: Sequence[str], index: Index) -> str:
    """Write an answer from fetched pages alone; ``[web:n]`` is the n-th page, counted from 0."""
    scorer = Scorer(terms, index)
    parts = []
    for number, page in enumerate(pages):
        rest, tables = take_tables(page.snippet)
        passage = Passage(page.title, page.url, tuple(parse_blocks(rest)), tables=tables)
        at, lead = scorer.lead(passage)
        words = [lead, *scorer.support(passage, at, 2)]
        parts.append(" ".join(f"{sentence} [web:{number}]" for sentence in words))
    if not parts:
        return (
            "I could not read that page: this is the offline demo, which has only its own corpus."
        )
    return "\n\n".join(parts)


@dataclass(frozen=True)
class Composed:
    """An answer in words.

    Attributes
    ----------
    text
        Markdown with ``[n]`` markers.
    sentences
        The bare sentences that it uses.
    shown
        All that it shows: the sentences, and the text of its examples and tables.
    """

    text: str
    sentences: tuple[str, ...]
    shown: tuple[str, ...]


def compose(
    ranked: Sequence[tuple[int, Passage]],
    terms: Sequence[str],
    index: Index,
    question: str,
    given: Collection[str] = frozenset(),
) -> Composed | None:
    """Write a Markdown answer with ``[n]`` markers.

    Parameters
    ----------
    ranked
        Pairs of a number and its passage, the best first.
    terms
        Stems of the question.
    index
        Gives the weight of each stem.
    question
        The words of the user; "how" asks for an example, "in a table" for a table.
    given
        What earlier answers of the conversation have shown; it is not shown again.

    Returns
    -------
    Composed or None
        None if everything that fits has been given before.
    """
    scorer = Scorer(terms, index, given)
    ranked = [entry for entry in ranked if scorer.worth(entry[1])]
    if not ranked:
        return None
    if given and _WANTS_EXAMPLE.search(question):
        # Sentences alone are no example: a passage that still has one goes first.
        ranked.sort(key=lambda entry: _example(entry[1], scorer, ()) is None)
    pair = scorer.pair(ranked) if is_pair(question) else []
    used: list[str] = []
    others: list[str] = []
    rows: list[str] = []
    as_table = wants_table(question)
    if as_table and not pair and _table(ranked, scorer, True) is None:
        pair = ranked[:3]
    if pair and as_table:
        parts = [_side_by_side(pair, scorer, used)]
    elif pair:
        parts = [scorer.paragraph(number, passage, 1, used) for number, passage in pair]
    else:
        parts = _about(ranked, scorer, used, others, rows, question)
    rest = [entry for entry in ranked if entry not in (pair or ranked[:1])]
    related = _related(rest, scorer, used)
    if related:
        parts.append("Related:\n\n" + "\n".join(related))
    return Composed("\n\n".join(parts), tuple(dict.fromkeys([*used, *rows])), (*used, *others))


def _side_by_side(pair: Sequence[tuple[int, Passage]], scorer: Scorer, used: list[str]) -> str:
    """Write a table with one row for each thing that is compared."""
    lines = ["| Topic | What it is |", "| --- | --- |"]
    for number, passage in pair:
        at, lead = scorer.lead(passage)
        words = [lead, *scorer.support(passage, at, 1)]
        used += words
        name = f"`{passage.title}`" if is_name(passage.title) else passage.title
        row = Table(("", ""), ((name, " ".join(words)),))
        lines.append(row.markdown(number).splitlines()[-1])
    return "\n".join(lines)


def _about(
    ranked: Sequence[tuple[int, Passage]],
    scorer: Scorer,
    used: list[str],
    others: list[str],
    rows: list[str],
    question: str,
) -> list[str]:
    """Write the paragraphs on the best passage: sentences, its table or list, its example."""
    number, passage = ranked[0]
    chosen = _table(ranked, scorer, wants_table(question))
    own = chosen is not None and chosen[1] is passage
    lead = scorer.paragraph(number, passage, 2, used, table=own)
    parts = [lead] if lead else []
    if chosen is not None:
        source, _, table = chosen
        parts.append(_written(table, source, scorer))
        others.append(table.text)
        rows += sorted(table.sentences, key=scorer.coverage, reverse=True)[:_MOST_ROWS]
    steps = _steps(passage, scorer) if chosen is None else None
    if steps is not None:
        head, items, ordered = steps
        lines = [f"{f'{n}.' if ordered else '-'} {s}[{number}]" for n, s in enumerate(items, 1)]
        opening = "" if head.removesuffix(":") + "." in used else f"{head}\n\n"
        parts.append(opening + "\n".join(lines))
        used.extend(items)
    code = _example(passage, scorer, used)
    if code is not None:
        intro, listing = code
        parts.append(f"{intro}\n\n```python\n{listing}\n```")
        others.append(listing)
    return parts


_MOST_ROWS = 24


def _table(
    ranked: Sequence[tuple[int, Passage]], scorer: Scorer, wanted: bool
) -> tuple[int, Passage, Table] | None:
    """Return the table that belongs into the answer, with its source; None if there is none."""
    for number, passage in ranked[: 4 if wanted else 1]:
        tables = [table for table in passage.tables if table.text not in scorer.given]
        if tables:
            best = max(tables, key=lambda table: scorer.fit(passage, table))
            if scorer.fit(passage, best) >= (0.3 if wanted else 0.6):
                return number, passage, best
    return None


def _written(table: Table, number: int, scorer: Scorer) -> str:
    """Write a table; of a long one, the rows that have to do with the question."""
    count = len(table.rows)
    if count <= _MOST_ROWS:
        return table.markdown(number)
    fitting = [at for at, row in enumerate(table.sentences) if scorer.coverage(row) > 0]
    rows = (fitting or list(range(count)))[:_MOST_ROWS]
    note = f"\n\nThese are {len(rows)} of its {count} rows." if len(rows) < count else ""
    return table.markdown(number, rows) + note


def _steps(passage: Passage, scorer: Scorer) -> tuple[str, list[str], bool] | None:
    """Return the first list of the passage worth showing, with the sentence that opens it."""
    blocks = passage.blocks
    for at, block in enumerate(blocks):
        if block.kind != "item" or (at and blocks[at - 1].kind == "item"):
            continue
        items: list[str] = []
        for later in blocks[at:]:
            if later.kind == "item":
                items.append(later.text)
            elif later.kind == "code" or not items or len(items) >= 9:
                break
        opener = blocks[at - 1].text if at and blocks[at - 1].kind == "para" else ""
        head = sentences(opener)[-1] if opener else ""
        if len(items) < 2 or not head.endswith(":"):
            continue
        short = [finish(sentences(item)[0]) for item in items[:9] if item]
        short = [item for item in short if 12 <= len(item) <= 260 and item not in scorer.given]
        if len(short) >= 2 and scorer.coverage(head + " ".join(short)) > 0.3:
            return head, short, "follows" in head
    return None


def _example(passage: Passage, scorer: Scorer, used: Sequence[str]) -> tuple[str, str] | None:
    """Return the first code example that has to do with the question, and a line before it."""
    for at, block in enumerate(passage.blocks):
        if block.kind != "code" or len(block.text.splitlines()) > 16 or len(block.text) > 700:
            continue
        if block.text in scorer.given:
            continue
        before = passage.blocks[at - 1].text if at and passage.blocks[at - 1].kind == "para" else ""
        last = sentences(before)[-1] if before else ""
        near = scorer.coverage(f"{last} {block.text}") > 0.3 or scorer.coverage(before) > 0.6
        if not near and not is_name(passage.title):
            continue
        intro = last if last.endswith(":") and len(last) < 160 else "For example:"
        if finish(intro) in used:
            intro = "For example:"
        if _PLACEHOLDER.search(block.text):
            intro = "The general form:"
        elif re.match(r"(?:is|The following|could|can be|which|this)\b", intro):
            intro = "For example:"
        return intro, block.text
    return None


def _related(ranked: Sequence[tuple[int, Passage]], scorer: Scorer, used: list[str]) -> list[str]:
    """Return up to three lines, each one sentence of a further passage."""
    lines: list[str] = []
    for number, passage in ranked:
        if len(lines) == 3:
            break
        rows = [max(table.sentences, key=scorer.coverage) for table in passage.tables]
        prose = [s for s in prose_of(passage)[:20] if not s.endswith(":") and len(s) <= 300]
        prose += [row for row in rows if row not in prose and len(row) <= 300]
        fresh = [s for s in map(finish, prose) if s not in used and s not in scorer.given]
        if not fresh:
            continue
        value, _, sentence = max((scorer.score(s, at), -at, s) for at, s in enumerate(fresh))
        fits = scorer.coverage(f"{passage.title} {passage.keywords} {sentence}")
        if fits < 0.3 or value < 0.5 or DANGLES.match(sentence):
            continue
        name = f"`{passage.title}`" if is_name(passage.title) else passage.title
        lines.append(f"- **{name}**: {sentence}[{number}]")
        used.append(sentence)
    return lines
