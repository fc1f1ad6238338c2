"""A block of thinking at the start of a text is told apart, wherever the stream cuts it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipyperplexity.events import Event, ReasoningDelta, TextDelta
from ipyperplexity.wire.thinking import ThinkSplitter

CASES = {
    "plain": ("It is.", "", "It is."),
    "empty": ("", "", ""),
    "blanks": (" \n ", "", " \n "),
    "thinking": ("<think>Hm.</think>Yes", "Hm.", "Yes"),
    "blank lines around": ("\n <think>\nHm.\n</think>\n\n Yes", "Hm.\n", "Yes"),
    "empty thinking": ("<think></think>Yes", "", "Yes"),
    "nothing but thinking": ("<think>Hm.</think>", "Hm.", ""),
    "never closed": ("<think>Hm. <b> </thin", "Hm. <b> </thin", ""),
    "only a beginning": ("<thi", "", "<thi"),
    "almost": ("<thinker>a</thinker>", "", "<thinker>a</thinker>"),
    "later in the text": ("See <think>this</think>.", "", "See <think>this</think>."),
    "twice": ("<think>a</think>b<think>c</think>", "a", "b<think>c</think>"),
    "blanks before plain text": ("  Yes", "", "  Yes"),
    "a closing tag alone": ("</think>Yes", "", "</think>Yes"),
}


def split(pieces: list[str]) -> tuple[str, str]:
    splitter = ThinkSplitter()
    events: list[Event] = []
    for piece in pieces:
        events += splitter.feed(piece)
    events += splitter.flush()
    assert all(event.text for event in events if isinstance(event, TextDelta | ReasoningDelta))
    return (
        "".join(event.text for event in events if isinstance(event, ReasoningDelta)),
        "".join(event.text for event in events if isinstance(event, TextDelta)),
    )


@pytest.mark.parametrize(("whole", "reasoning", "text"), CASES.values(), ids=CASES)
def test_reasoning_and_text_are_told_apart(whole: str, reasoning: str, text: str) -> None:
    assert split([whole]) == (reasoning, text)
    assert tuple(map(str.strip, split(list(whole)))) == (reasoning.strip(), text.strip())


@given(st.sampled_from(list(CASES.values())), st.data())
def test_the_cuts_do_not_matter(case: tuple[str, str, str], data: Any) -> None:
    whole, _, text = case
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole)))))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    reasoning, found = split(pieces)
    assert found == text
    assert reasoning.strip() == case[1].strip()


@given(st.lists(st.text(st.sampled_from("<think>/ \nab"), max_size=6)))
def test_no_character_of_the_text_is_lost(pieces: list[str]) -> None:
    reasoning, text = split(pieces)
    whole = "".join(pieces)
    if not whole.lstrip().startswith("<think>"):
        assert (reasoning, text) == ("", whole)


def test_a_beginning_that_may_become_a_tag_is_only_held_as_long_as_needed() -> None:
    splitter = ThinkSplitter()
    assert splitter.feed("<th") == []
    assert splitter.feed("e") == [TextDelta("<the")]
    assert splitter.passthrough
