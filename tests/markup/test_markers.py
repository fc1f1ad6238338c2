"""What counts as a citation marker, where it is, and which sentence it supports."""

from __future__ import annotations

import pytest

from ipyperplexity.markup.markers import find_markers, sentences
from ipyperplexity.markup.prose import mask_code


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("It is tall.[1]", [(1,)]),
        ("tall.[1][3]", [(1,), (3,)]),
        ("tall [1, 3]", [(1, 3)]),
        ("tall [1,3]", [(1, 3)]),
        ("tall [1-3]", [(1, 2, 3)]),
        ("tall [1\u20133, 7]", [(1, 2, 3, 7)]),
        ("tall [2, 2]", [(2,)]),
        ("Paris[1]", [(1,)]),
        ("**Paris**[1]", [(1,)]),
        ("meet[1][2]", [(1,), (2,)]),
        ("the company's[4] share", [(4,)]),
        ("see example.com[1]", [(1,)]),
        ("at 5 p.m.[1]", [(1,)]),
        ("in Q3[1] and the 1990s[2]", [(1,), (2,)]),
        ("an iPhone[1] with macOS[2] on 5 m[3]", [(1,), (2,), (3,)]),
        ("\u5854\u5f88\u9ad8[1]\u3002", [(1,)]),
        ("Great![2]", [(2,)]),
        ('"quoted"[1] (2020)[2] 50%[3]', [(1,), (2,), (3,)]),
        ("[text][1]", [(1,)]),
        ("[1]: http://example.com", [(1,)]),
        ("# Heading [11]", [(11,)]),
        ("> quoted [1]\n> more [2]", [(1,), (2,)]),
        ("- a [1]\n  - b [2]\n\n    c [3]", [(1,), (2,), (3,)]),
        ("| a [1] | b |\n|---|---|\n| `x\\|y` | z [2] |", [(1,), (2,)]),
        ("**bold [1]** *it [2]* ~~no [3]~~", [(1,), (2,), (3,)]),
        ("[999] but not [1000]", [(999,)]),
        ("", []),
        ("`a[1]` and ``b `[2]` ``", []),
        ("```\n[1]\n```", []),
        ("~~~\n[1]", []),
        ("    indented [1]", []),
        ("[1](http://example.com)", []),
        ("[see [1] there](http://example.com)", []),
        ("<http://example.com/[1]>", []),
        ("![1](http://example.com/i.png) ![1]", []),
        ("\\[1] \\[2\\] $$a[1]$$ \\(b[2]\\)", []),
        ("[2024] [0] [01] [1.5] [-1] [1-] [^1] [a] []", []),
        ("[3-1] [1-200] [5-5]", []),
        ("[1, 2024] [0-9]", []),
        ("x[0] y[1] arr[1] arr2[3] foo_bar[2] a.b[1] self.items[4] rowData[1] $row[2]", []),
        ("x[1][2] f()[1] total[1] = 5 data[2].name", []),
        ("[1\n] [1 , 2]".replace(" , ", "  ,"), []),
    ],
)
def test_a_marker_is_a_number_in_brackets_that_stands_in_prose(
    text: str, ids: list[tuple[int, ...]]
) -> None:
    assert [m.ids for m in find_markers(text)] == ids


def test_a_position_marker_counts_from_zero() -> None:
    (marker,) = find_markers("lines to 79 characters. [web:0]")
    assert (marker.web, marker.ids, marker.start, marker.end) == (0, (), 24, 31)


OFFSETS = """\
\U0001f5fc is tall.[1]

> quote [2]
>\tmore [3]

1. a

\t b [4]

| a\\|[5] | b |
|---|---|
| \\|\\| [6] | `[7]` [8] |

## H [9] ##
x [10]
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_offsets_are_code_points_of_the_text_as_received(newline: str) -> None:
    text = OFFSETS.replace("\n", newline)
    found = [text[m.start : m.end] for m in find_markers(text)]
    assert found == ["[1]", "[2]", "[3]", "[4]", "[5]", "[6]", "[8]", "[9]", "[10]"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "One is so.[1] Two is not. [2][3] Three",
            ["One is so.[1]", "Two is not. [2][3]", "Three"],
        ),
        ("It costs $3.5 million, e.g. in 1990.", ["It costs $3.5 million, e.g. in 1990."]),
        ("Dr. Smith met J. R. Tolkien.", ["Dr. Smith met J. R. Tolkien."]),
        ("In the U.S. Senate they met. It rained.", ["In the U.S. Senate they met.", "It rained."]),
        ("He lives in the U.S. He works.", ["He lives in the U.S.", "He works."]),
        ("Use `a. B` here. Now.", ["Use `a. B` here.", "Now."]),
        ("See [A. B](http://a.example). Now.", ["See [A. B](http://a.example).", "Now."]),
        ('He said "Go!" Then he left.', ['He said "Go!"', "Then he left."]),
        ("**It rose.**[1] More.", ["**It rose.**[1]", "More."]),
        ("It rose.[1]More fell.", ["It rose.[1]", "More fell."]),
        ("Wait\u2026 What?! Yes.", ["Wait\u2026", "What?!", "Yes."]),
        ("\u5854\u9ad8\u3002[1]\u6b21\u3002", ["\u5854\u9ad8\u3002[1]", "\u6b21\u3002"]),
        ("# A title\nText.", ["A title", "Text."]),
        ("- one [1]\n- two\n\nend", ["one [1]", "two", "end"]),
        ("| a | b |\n|---|---|\n| x. Y | z [1] |", ["a | b", "x. Y | z [1]"]),
        ("```\nA. B. C.\n```\nText.", ["Text."]),
        ("two\nlines here. More", ["two\nlines here.", "More"]),
    ],
)
def test_a_sentence_ends_where_a_reader_would_end_it(text: str, expected: list[str]) -> None:
    assert [text[a:b] for a, b in sentences(text)] == expected


def test_code_is_masked_in_place() -> None:
    text = "a `b` c\r\n\r\n```\r\nd\r\n```\r\n\r\n    e\r\n\r\nf `g"
    masked = mask_code(text, "x")
    assert masked == "a xxx c\r\n\r\nxxx\r\nx\r\nxxx\r\n\r\nxxxxx\r\n\r\nf `g"
