from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from ipyperplexity.emulator import Corpus
from ipyperplexity.emulator.engine import Engine, Plan

LAMBDA = ["What is a lambda?"]
LAMBDA_PAGE = "reference/expressions.html#lambda"


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(Corpus.builtin())


def pages(plan: Plan) -> list[str]:
    """The pages that the text cites, in the order of the text."""
    urls = {result.id: result.url for result in plan.results}
    ids = dict.fromkeys(int(n) for n in re.findall(r"(?<![a-z])\[(\d+)\]", plan.text))
    return [urls[n].removeprefix("https://docs.python.org/3/") for n in ids]


def dialogue(engine: Engine, questions: Sequence[str]) -> list[Plan]:
    return [engine.answer(q, history=questions[:at]) for at, q in enumerate(questions)]


@pytest.mark.parametrize(
    ("history", "question", "page"),
    [
        (LAMBDA, "And what is a tuple?", "library/stdtypes.html#tuples"),
        (LAMBDA, "and a tuple?", "library/stdtypes.html#tuples"),
        (LAMBDA, "How do I use it with sorted()?", "library/functions.html#sorted"),
        (["What does zip do?"], "And enumerate?", "library/functions.html#enumerate"),
        (["What does zip do?"], "What does it return?", "library/functions.html#zip"),
        (["how does try finally work"], "and what about else?", "compound_stmts.html#else-clause"),
        (["difference between list and tuple"], "And a set?", "library/functions.html#func-set"),
        (["How do I write a generator?"], "What about with?", "compound_stmts.html#with"),
        (["How do I write a generator?"], "Can you show more of it?", "simple_stmts.html#yield"),
        (["What is a decorator?"], "Can it take arguments?", "compound_stmts.html#function"),
        (["What is the operator precedence in Python?"], "What about lambda?", LAMBDA_PAGE),
        ([*LAMBDA, "and a tuple?", "and numpy arrays?"], "repeat that", "stdtypes.html#tuples"),
    ],
)
def test_the_words_of_a_follow_up_decide_what_it_is_about(
    engine: Engine, history: list[str], question: str, page: str
) -> None:
    plan = engine.answer(question, history=history)
    assert pages(plan)[0].endswith(page), plan.text


@pytest.mark.parametrize(
    "questions",
    [
        [*LAMBDA, "And what is a closure?", "Can you give an example?"],
        [*LAMBDA, "How do I use it with sorted()?", "Why?", "Tell me more"],
        ["How do I write a generator?", "Can you show more of it?", "Is that all of it?"],
        [
            "What does the with statement do?",
            "And a context manager?",
            "How do I write one myself?",
        ],
        ["What is a decorator?", "Can it take arguments?", "Does that work on classes too?"],
        ["how does try finally work", "and what about else?", "Give an example"],
        ["What is the operator precedence in Python?", "And for bitwise operators?"],
        ["difference between list and tuple", "Which is faster?", "And a set?"],
        ["What are f-strings?", "What about format()?", "And the alignment of numbers?"],
        ["What does zip do?", "What does it return?", "More please", "More please", "More please"],
    ],
)
def test_no_sentence_is_given_twice_in_a_conversation(engine: Engine, questions: list[str]) -> None:
    given: list[str] = []
    for plan in dialogue(engine, questions):
        assert set(plan.shown).isdisjoint(given), plan.text
        given += plan.shown
    assert given


def test_a_follow_up_on_what_the_corpus_lacks_says_so_and_names_the_topic_before(
    engine: Engine,
) -> None:
    plan = engine.answer("and what about numpy?", history=LAMBDA)
    assert plan.text.startswith(
        "I found nothing on “numpy” in the Python language reference. "
        "The question before was about “lambda”."
    )
    assert plan.results == ()


def test_what_is_asked_for_again_is_given_again(engine: Engine) -> None:
    first = engine.answer(LAMBDA[0])
    assert engine.answer(LAMBDA[0], history=LAMBDA).text == first.text
    assert first.sentences[0] in engine.answer("Say that again, please", history=LAMBDA).sentences


def test_a_conversation_that_has_used_up_the_corpus_says_so() -> None:
    from ipyperplexity.emulator.corpus import Passage
    from ipyperplexity.emulator.prose import Block

    block = Block("para", "A dune is a hill of loose sand.")
    engine = Engine(Corpus("notes", (Passage("Dunes", "https://a.example/", (block,)),)))
    assert engine.answer("What is a dune?").sentences == (block.text,)
    more = engine.answer("Tell me more", history=["What is a dune?"])
    assert more.text.startswith("I found nothing more on “dune” in notes")
    assert more.sentences == ()


def test_the_same_can_be_had_as_a_table(engine: Engine) -> None:
    questions = ["difference between list and tuple", "Show that in a table"]
    plan = dialogue(engine, questions)[-1]
    assert "| Topic | What it is |\n| --- | --- |\n| Lists | Lists are mutable" in plan.text
    assert "| Tuples | Tuples are immutable" in plan.text


def test_a_question_without_a_past_is_not_changed_by_how_conversations_are_read(
    engine: Engine,
) -> None:
    assert engine.answer("What is a lambda?") == engine.answer("What is a lambda?", history=[])
    assert engine.answer("What is a lambda?", history=["", "hello"]).text.startswith("Lambda")
