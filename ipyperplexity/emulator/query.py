"""The words of a question: which of them matter, what form it asks for, what to try next.

Invariant: terms are stems of the same stemmer that the index uses, so they can be matched as they
are, and a keyword of Python is never lost as a stop word when the question is about it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from .corpus import Passage
from .index import Index
from .prose import tokens

__all__ = [
    "KEYWORDS", "content_words", "is_pair", "query_terms", "refers_back", "refine", "wants_table",
    "words_of",
]  # fmt: skip


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


_STOP = words_of(
    """
    a about again all am an and any are as at be been being between both but by can could describe
    did difference differences differ do does doing done each ever every example examples explain
    few for from get give go had has have having he hello hey hi her him his how i if in into is
    it its just kindly know let like made main make makes many may mean meaning means me might
    more most much must my need no not of on only or other our out over own please python python's
    same say shall she should show so some such take takes tell than thank thanks that the their
    them then there these they thing things this those through to too under understand up us use
    used uses using versus very vs want was way we were what whats what's when where which while
    who whom whose why will with work works would write writing you your happens happen called
    """
)
_NAMING = words_of(
    """
    block blocks clause construct expression expressions keyword keywords loop loops operator
    operators statement statements
    """
)
KEYWORDS = words_of(
    """
    and as assert async await break case class continue def del elif else except false finally for
    from global if import in is lambda match none nonlocal not or pass raise return true try type
    while with yield list dict tuple set
    """
)
_GENERIC = words_of("keyword keywords construct constructs")
_IDENTITY = re.compile(r"\bis\b\W+(?:and|or|vs\.?|versus)\W+==|==\W+(?:and|or|vs\.?|versus)\W+is\b")
_ALIASES = {
    ":=": "assignment expression", "==": "value comparison", "!=": "value comparison",
    "**kwargs": "keyword arguments calls", "*args": "positional arguments calls", "**": "power",
    "//": "floor division binary arithmetic", "%": "modulo binary arithmetic", "<<": "shifting",
    ">>": "shifting", "&": "bitwise", "^": "bitwise", "|": "bitwise", "@": "decorator",
    "+=": "augmented assignment", "{}": "dict", "[]": "list", "...": "ellipsis", "[:]": "slicing",
    "->": "annotation function", "f-string": "formatted string literal",
    "f-strings": "formatted string literal", "f string": "formatted string literal",
    "f strings": "formatted string literal", "ternary": "conditional expression",
    "dunder": "special method", "dunders": "special method", "generator": "yield",
    "generators": "yield", "dictionary": "dict", "dictionaries": "dict", "hashmap": "dict",
    "file": "open", "files": "open",
}  # fmt: skip
_WORD = re.compile(r"[^\W_][\w'’-]*|_+\w+")
_PRONOUN = re.compile(r"\b(it|its|this|that|these|those|they|them|former|latter)\b", re.IGNORECASE)
_AS_TABLE = re.compile(
    r"\b(?:in|as|with|into)\s+(?:an?|one|the)?\s*(?:small\s+)?tables?\b", re.IGNORECASE
)
_COMPARE = re.compile(r"^\W*(?:please\s+|can you\s+|could you\s+)?compare\b", re.IGNORECASE)
_PAIR = re.compile(
    r"\b(differs?|differences?|vs\.?|versus|compare[ds]?|between|rather than|better than|or)\b",
    re.IGNORECASE,
)


def query_terms(question: str, vocabulary: Mapping[str, int]) -> list[str]:
    """Return the stems that matter in a question, each once.

    Parameters
    ----------
    question
        Any text.
    vocabulary
        The stems of the corpus.

    Examples
    --------
    >>> query_terms("What does the with statement do?", {"with": 9, "statement": 9})
    ['with', 'statement']
    """
    return list(dict.fromkeys(stem for _, stem in _kept(question, vocabulary)))


def content_words(question: str, vocabulary: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the words that matter in a question as they are written there, each with its stem.

    Examples
    --------
    >>> content_words("And what about Numpy arrays?", {"array": 1})
    [('Numpy', 'numpy'), ('arrays', 'array')]
    """
    written = {word.lower(): word for word in reversed(_WORD.findall(question))}
    pairs = [(written[w], stem) for w, stem in _kept(question, vocabulary) if w in written]
    return list(dict.fromkeys(pairs))


def _kept(question: str, vocabulary: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the (word, stem) pairs that matter; words that an alias adds are among them."""
    text = _COMPARE.sub(" ", _AS_TABLE.sub(" ", question)).lower()
    for written, meaning in _ALIASES.items():
        if re.search(rf"(?:^|[\s`\"'(]){re.escape(written)}(?:$|[\s`\"')?,.;:!])", text):
            text = f"{text} {meaning}"
    if _IDENTITY.search(text):
        text += " identity"
    spans = re.findall(r"[`\"']([^`\"']{1,40})[`\"']", text)
    quoted = {word for span in spans for word in _WORD.findall(span)}
    words = _WORD.findall(text)
    kept: list[tuple[str, str]] = []
    for at, written in enumerate(words):
        word = written
        after = words[at + 1] if at + 1 < len(words) else ""
        named = word in KEYWORDS and after in _NAMING
        if word in _STOP and not named and word not in quoted:
            continue
        if word in _GENERIC and at and words[at - 1] in KEYWORDS:
            # "the global keyword" asks about global, not about keywords.
            word = "statement"
        kept.extend((written, stem) for stem in tokens(word))
    if not any(vocabulary.get(stem) for _, stem in kept):
        # "What is if?": with nothing else left, the keyword is what the question is about.
        kept.extend((word, stem) for word in words if word in KEYWORDS for stem in tokens(word))
        if len({stem for _, stem in kept}) > 1:
            kept = [pair for pair in kept if pair[1] != "is"]
    return kept


def is_pair(question: str) -> bool:
    """Whether a question sets two things side by side."""
    keywords = {w for w in _WORD.findall(question.lower()) if w in KEYWORDS and w not in _STOP}
    return bool(_PAIR.search(question)) or len(keywords) > 1


def wants_table(question: str) -> bool:
    """Whether a question asks for its answer as a table."""
    return bool(_AS_TABLE.search(question) or _COMPARE.search(question))


def refers_back(question: str) -> bool:
    """Whether a question has a word such as "it" that stands for something said before."""
    return bool(_PRONOUN.search(question))


def refine(best: Passage, terms: Sequence[str], index: Index) -> str:
    """Return the words of a second search: the heading found, and what its text speaks of."""
    heading = _WORD.findall(best.title.lower())
    words = [word for word in heading if word not in _STOP or word in KEYWORDS]
    covered = {*terms, *(stem for word in words for stem in tokens(word))}
    prose = " ".join(block.text for block in best.blocks if block.kind == "para")
    counts = Counter(word for word in re.findall(r"[a-z]{4,}", prose.lower()) if word not in _STOP)
    weighed: list[tuple[float, str]] = []
    for word, count in counts.items():
        stem = (tokens(word) or [""])[0]
        if stem not in covered:
            weighed.append((-(count**0.5) * index.weight(stem), word))
    extra = [word for _, word in sorted(weighed)[:2]]
    return " ".join(dict.fromkeys([*words, *extra])) or best.title
