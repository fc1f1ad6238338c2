"""Which sentences of a passage answer a question best.

Invariant: a sentence is chosen as it stands in its passage, but for a capital and a full stop, and
never one that the conversation has already given.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from .corpus import Passage
from .index import Index
from .prose import sentences, tokens
from .tables import Table

__all__ = ["DANGLES", "Scorer", "finish", "is_name", "prose_of"]

_DEFINES = re.compile(
    r"\b(is used (?:to|for|when)|are used (?:to|for)|used to|is an?|are an?|is the|"
    r"convenient way|are (?:typically|most|immutable|mutable|created|always)|returns?|allows?|"
    r"lets|specif(?:y|ies)|defines?|means|causes?|provides?|raise[sd]?|creates?|introduces?|"
    r"represents?|(?:may|can) be used)\b",
    re.IGNORECASE,
)
DANGLES = re.compile(
    r"^(This|These|That|Those|It|They|Its|Such|Also|However|Otherwise|Thus|Therefore|Hence|But|"
    r"And|Or|See|Note|In (?:this|that) case|In addition|Furthermore|The following|For example|"
    r"As a result|As above|If it|When this|Then|Again|Here|Both|The (?:former|latter)|Finally|"
    r"Similarly|Given|Because of)\b",
)
_REFERS_AWAY = re.compile(
    r"\b(see (?:also|section|the)|below|above|described in|documentation for|(?:can|may) be found|"
    r"in section|footnote|the table|for more information|"
    r"additional information)\b",
    re.IGNORECASE,
)
_INTRODUCES = re.compile(r"\b(?:following table|table (?:below|summari[sz]es|lists|shows))\b", re.I)
# What breaks off at an example says nothing without it: "behaves like one defined with:".
_LEADS_UP = re.compile(r"\b(?:with|by|of|for|as|to|is|are|like|follows|following|this|this one):$")
_ENDS = (".", "!", "?", ")", "”", "`")


class Scorer:
    """Scores sentences by how much of the question they cover.

    Parameters
    ----------
    terms
        Stems of the question.
    index
        Gives the weight of each stem.
    given
        Sentences, examples and tables that were given before.
    """

    def __init__(
        self, terms: Sequence[str], index: Index, given: Collection[str] = frozenset()
    ) -> None:
        self.terms = list(dict.fromkeys(terms))
        self.index = index
        self.given = given
        self.total = sum(index.weight(term) for term in self.terms) or 1.0

    def coverage(self, text: str) -> float:
        words = set(tokens(text))
        return sum(self.index.weight(term) for term in self.terms if term in words) / self.total

    def score(self, sentence: str, at: int) -> float:
        length = len(sentence)
        value = 1.4 * self.coverage(sentence) + 1.0 / (1 + 0.5 * at)
        value += 0.5 if _DEFINES.search(sentence) else 0.0
        value -= 0.9 if DANGLES.match(sentence) else 0.0
        value -= 0.4 if _REFERS_AWAY.search(sentence) else 0.0
        value -= max(0.0, (length - 260) / 200) + (0.6 if length < 30 else 0.0)
        return value

    def fresh(self, passage: Passage) -> list[str]:
        """Return the sentences of a passage that were not given before."""
        prose = prose_of(passage)
        if not self.given:
            return prose
        return [s for s in prose if finish(s) not in self.given and not _LEADS_UP.search(s)]

    def worth(self, passage: Passage) -> bool:
        """Whether a passage has a fresh sentence that can stand first in an answer."""
        if not self.given:
            return True
        about = 1.0 if is_name(passage.title) else self.coverage(passage.title)
        return any(
            len(sentence) >= 12
            and not DANGLES.match(sentence)
            and not _REFERS_AWAY.search(sentence)
            and about + self.coverage(sentence) >= 0.2
            for sentence in (*self.fresh(passage), *self._fresh_rows(passage))
        )

    def _fresh_rows(self, passage: Passage) -> list[str]:
        rows = [row for table in passage.tables for row in table.sentences]
        return [row for row in rows if row not in self.given]

    def fit(self, passage: Passage, table: Table) -> float:
        """Return how much of the question a table is about: its heading, or one of its rows."""
        about = f"{passage.title} {' '.join(table.header)}"
        return max(self.coverage(f"{about} {row}") for row in table.sentences)

    def paragraph(
        self, number: int, passage: Passage, more: int, used: list[str], *, table: bool = False
    ) -> str:
        """Write the leading sentence of a passage and up to ``more`` that go with it.

        It leads with the row of a table if that is what is asked for. With ``table``, a table is
        to follow, and the sentence that introduces it is enough.
        """
        opening = self._row(passage)
        prose = [s for s in self.fresh(passage) if s not in self._fresh_rows(passage)]
        if table and not opening:
            if not prose:
                return ""
            opening = next((finish(s) for s in prose if _INTRODUCES.search(s)), "")
        if opening:
            used.append(opening)
            return f"{opening}[{number}]"
        at, lead = self.lead(passage)
        chosen = [lead, *self.support(passage, at, more)]
        used += chosen
        if is_name(passage.title):
            # "Return a list of the words" wants to be told of what it speaks.
            chosen[0] = f"`{passage.title}`: {chosen[0]}"
        return " ".join(f"{sentence}[{number}]" for sentence in chosen)

    def _row(self, passage: Passage) -> str:
        """Return the row that has more of the question than heading, header and prose have."""
        rows = self._fresh_rows(passage)
        if not rows:
            return ""
        best = max(rows, key=self.coverage)
        headers = [" ".join(table.header) for table in passage.tables]
        prose = [s for s in self.fresh(passage) if s not in rows]
        most = max(map(self.coverage, [passage.title, *headers, *prose]))
        return best if self.coverage(best) > most + 0.05 else ""

    def lead(self, passage: Passage) -> tuple[int, str]:
        """Return the sentence that answers first, and its place among those of the passage."""
        prose = self.fresh(passage)
        if not prose:
            return 0, f"{passage.title} is a section of the corpus."
        if is_name(passage.title):
            return 0, finish(prose[0])
        scored = [(self.score(sentence, at), -at) for at, sentence in enumerate(prose[:24])]
        at = -max(scored)[1]
        return at, finish(prose[at])

    def support(self, passage: Passage, lead_at: int, most: int) -> list[str]:
        """Return further sentences of a passage, in their order."""
        prose = self.fresh(passage)
        chosen: list[tuple[float, int]] = []
        for at, sentence in enumerate(prose[:30]):
            if at == lead_at or sentence.endswith(":") or len(sentence) > 340:
                continue
            value = 1.2 * self.coverage(sentence) + (0.7 if at == lead_at + 1 else 0.0)
            value += 0.3 if _DEFINES.search(sentence) else 0.0
            value += 0.35 / (1 + abs(at - lead_at))
            value -= 1.2 if DANGLES.match(sentence) and at - 1 != lead_at else 0.0
            value -= 1.2 if _REFERS_AWAY.search(sentence) or len(sentence) < 25 else 0.0
            chosen.append((value, -at))
        keep = sorted(-at for value, at in sorted(chosen, reverse=True)[:most] if value > 0.45)
        return [finish(prose[at]) for at in keep]

    def pair(self, ranked: Sequence[tuple[int, Passage]]) -> list[tuple[int, Passage]]:
        """Return one passage for each thing that is compared; nothing if they share one."""
        found: list[tuple[int, Passage]] = []
        for term in self.terms:
            fitting = []
            for at, (number, passage) in enumerate(ranked):
                title = [stem for stem in tokens(passage.title) if stem not in _GENERIC]
                if title.count(term) and not is_name(passage.title):
                    fitting.append((-1 / len(title), at, (number, passage)))
            if fitting and (chosen := min(fitting)[2]) not in found:
                found.append(chosen)
        return found[:3] if len(found) > 1 else []


_GENERIC = frozenset(
    tokens("the a of statement clause operator expression expressions object type types")
)


def is_name(title: str) -> bool:
    """Whether a heading is a described name: ``str.split``, ``zip()``, ``ValueError``."""
    if not re.fullmatch(r"[A-Za-z_][\w.]*(?:\(\))?", title):
        return False
    return "." in title or title.endswith("()") or bool(re.search(r"[a-z][A-Z]", title))


def prose_of(passage: Passage) -> list[str]:
    """Return the sentences of a passage that can stand alone."""
    for kind in ("para", "item"):
        texts = [block.text for block in passage.blocks if block.kind == kind]
        found = [s for text in texts for s in sentences(text) if _is_sentence(s)]
        # A piece without an end was cut off by an example: "hence," or "is the same as".
        whole = [s for s in found if s.endswith((*_ENDS, ":"))]
        if whole or found:
            return whole or found
    return [row for table in passage.tables for row in table.sentences]


def _is_sentence(text: str) -> bool:
    return text.count(" ") >= 2 and bool(re.match(r"[\"“(`*]*\w", text))


def finish(sentence: str) -> str:
    """Make a sentence that can stand in the answer: a capital first, a full stop last."""
    sentence = _cap(sentence)
    if sentence.endswith((":", ";", ",")):
        return sentence[:-1] + "."
    return sentence if sentence.endswith(_ENDS[:4]) else sentence + "."


def _cap(text: str) -> str:
    return text[:1].upper() + text[1:] if text[:1].islower() else text
