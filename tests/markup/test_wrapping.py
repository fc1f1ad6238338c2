"""Text that arrives in pieces is wrapped at words, for a terminal."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ipyperplexity.markup.terminal import display_width
from ipyperplexity.markup.wrapping import WordWrapper


def wrapped(text: str, width: int, *cuts: int) -> str:
    wrapper = WordWrapper(width)
    ends = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in pairwise(ends)]
    return "".join(map(wrapper.feed, pieces)) + wrapper.finish()


def test_lines_end_at_words() -> None:
    assert wrapped("one two three four", 9) == "one two\nthree\nfour"


def test_a_list_item_goes_on_under_its_text() -> None:
    assert wrapped("1. one two three\n   - four five six", 13) == (
        "1. one two\n   three\n   - four\n     five six"
    )


def test_code_and_table_rows_keep_their_lines() -> None:
    text = "```python\nx = a_very_long_name + another_one\n```\n| a long cell | another |\n"
    assert wrapped(text, 12) == text


def test_a_word_wider_than_the_line_stays_whole() -> None:
    assert wrapped("see https://example.org/long now", 10) == "see\nhttps://example.org/long\nnow"


TEXTS = st.text(st.sampled_from("ab -1.`|\n界"), max_size=80)


@given(TEXTS, st.integers(5, 30), st.lists(st.integers(0, 80), max_size=5))
def test_cuts_change_nothing_and_no_word_is_lost(text: str, width: int, cuts: list[int]) -> None:
    whole = wrapped(text, width)
    assert wrapped(text, width, *cuts) == whole
    assert whole.split() == text.split()


@given(TEXTS, st.integers(5, 30))
def test_no_line_of_several_words_is_wider_than_the_terminal(text: str, width: int) -> None:
    if "`" in text or "|" in text:
        return
    for line in wrapped(text, width).splitlines():
        assert display_width(line.rstrip()) <= width or len(line.split()) == 1 or not line.strip()
