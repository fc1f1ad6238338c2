"""What a question means after earlier ones: its own words decide, the earlier topic helps.

Invariant: an earlier question never outweighs words of the new one that the corpus knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .query import content_words, query_terms, refers_back, words_of

__all__ = ["Request", "read_turn"]

# Words that ask for more of the same, or for another form of it, and name no topic.
_ASKING = words_of(
    """
    actually advantage advantages again already another answer answers bad benefit benefits best
    better bit brief briefly clear clearer code common commonly concrete continue deeper detail
    detailed details disadvantage disadvantages easier elaborate exactly expand far fast faster
    following further good great hm hmm important interesting itself last later less little long
    longer meant more myself next nice no ok okay one ones part point previous purpose question
    quick quickly really recommended remind repeat right second short shorter simple simpler
    simply slow slower small so sorry start still summarize summary sure tip tips true typical
    useful usually well words works yes yet yourself
    """
)
# Keywords of Python that any sentence may have.
_LITTLE = words_of("and as for from if in is not or try while with")
_AGAIN = re.compile(r"\b(?:again|repeat|once more|one more time|remind)\b", re.IGNORECASE)
# The same once more in another form.
_FORM = re.compile(
    r"\b(?:that|this|it|them|these|those)\s+(?:all\s+)?(?:in|as|into)\s+an?\b", re.IGNORECASE
)
_COMMON = 0.1


@dataclass(frozen=True)
class Request:
    """A question, read together with those before it.

    Attributes
    ----------
    terms
        Stems to search for.
    leaning
        Stems of the earlier topic, which only break ties.
    strong
        Whether they weigh more: the question says "it".
    unknown
        Words of the question that the corpus does not have.
    topic
        Words of the earlier topic, as they were written.
    before
        The question that the topic comes from; ``""`` if the new one stands alone.
    again
        Whether what was given may be given again.
    """

    terms: tuple[str, ...]
    leaning: tuple[str, ...] = ()
    strong: bool = False
    unknown: tuple[str, ...] = ()
    topic: tuple[str, ...] = ()
    before: str = ""
    again: bool = False


def read_turn(
    question: str, history: Sequence[str], vocabulary: Mapping[str, int], passages: int
) -> Request:
    """Read a question of a conversation.

    Parameters
    ----------
    question
        What is asked now.
    history
        The questions before it, oldest first.
    vocabulary
        Stem -> number of passages that use it.
    passages
        Number of passages of the corpus.

    Examples
    --------
    >>> words = {"lambda": 2, "closur": 1}
    >>> read_turn("and a closure?", ["What is a lambda?"], words, 9).terms
    ('closur',)
    >>> read_turn("Can you give an example?", ["What is a lambda?"], words, 9).terms
    ('lambda',)
    """
    terms = query_terms(question, vocabulary)
    if not history:
        return Request(tuple(terms))
    before, topic, carried, older = _topic(history, vocabulary)
    again = bool(_AGAIN.search(question) or _FORM.search(question))
    own = _own(question, vocabulary)
    back = refers_back(question)
    if not own:
        older = tuple(term for term in older if term not in carried)
        return Request(carried or tuple(terms), older, topic=topic, before=before, again=again)
    again = again or any(set(terms) == set(query_terms(old, vocabulary)) for old in history)
    known = [stem for _, stem in own if stem in vocabulary]
    unknown = tuple(dict.fromkeys(word for word, stem in own if stem not in vocabulary))
    common = all(vocabulary[stem] > max(3, _COMMON * passages) for stem in known)
    if known and common and back and not unknown:
        # "What does it return?": every other passage has such a word, so the topic must count.
        joined = tuple(dict.fromkeys([*terms, *carried, *older]))
        return Request(joined, topic=topic, before=before, again=again)
    leaning = tuple(term for term in (*carried, *older) if term not in terms)
    return Request(tuple(terms), leaning, back, unknown, topic, before if back else "", again)


def _own(question: str, vocabulary: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the words that name a topic of their own."""
    pairs = content_words(question, vocabulary)
    # "What about with?" is about a keyword; "Is that all?" and "What is it for?" are not.
    last = re.sub(r"\W+$", "", question).lower().split()[-1:]
    about = [] if refers_back(question) else last
    return [
        (word, stem)
        for word, stem in pairs
        if word.lower() not in _ASKING
        and (word.lower() not in _LITTLE or word.lower() in about or f"`{word}`" in question)
    ]


def _topic(
    history: Sequence[str], vocabulary: Mapping[str, int]
) -> tuple[str, tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Find the last question that names a topic the corpus knows.

    Returns
    -------
    tuple
        That question, its words, its stems, and the stems of the topic that it refers back to.
    """
    for at in range(len(history) - 1, -1, -1):
        question = history[at]
        own = _own(question, vocabulary)
        known = [word for word, stem in own if stem in vocabulary]
        if len(known) * 2 > len(own):
            terms = tuple(query_terms(question, vocabulary))
            older: tuple[str, ...] = ()
            if refers_back(question):
                # "Can it take arguments?" went on with a topic, which still counts.
                _, _, older, _ = _topic(history[max(0, at - 2) : at], vocabulary)
            return question, tuple(dict.fromkeys(known)), terms, older
    return "", (), (), ()
