"""A terminal shows the answer and obeys none of it."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.markup.terminal import (
    ControlStripper,
    answer_text,
    display_width,
    fit,
    sources_text,
    status_text,
    strip_controls,
)
from tests.markup.html_reading import Page


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain \u00fc \U0001f5fc\n\ttab", "plain \u00fc \U0001f5fc\n\ttab"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Hx", "x"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;ZXZpbA==\x07x", "x"),
        ("\x1bP1$r0m\x1b\\x", "x"),
        ("\x1b_payload\x1b\\x", "x"),
        ("\x9b31mred", "red"),
        ("\x9d0;title\x9cx", "x"),
        ("\x1b(0x\x1bcy\x1b7z", "xyz"),
        ("a\rb\r\nc", "a\nb\nc"),
        ("a\x08\x00\x07\x7f\x85b", "ab"),
        ("abc\u202edcba\u202c \u2066x\u2069", "abcdcba x"),
        ("\u200eltr\u200f\u061c", "ltr"),
        ("\U0001f468\u200d\U0001f469", "\U0001f468\u200d\U0001f469"),
        ("\ud800x", "x"),
        ("cut \x1b[3", "cut [3"),
        ("\x1b\x1b[31mx", "x"),
        ("a\r\x1b[0m\nb", "a\n\nb"),
    ],
)
def test_nothing_that_a_terminal_obeys_is_left(text: str, shown: str) -> None:
    assert strip_controls(text) == shown
    strip = ControlStripper()
    assert "".join(map(strip.feed, text)) + strip.finish() == shown


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                *"ab m;?0[]()\\",
                "\x1b",
                "\x1b[",
                "\x1b]",
                "\x07",
                "\r",
                "\n",
                "\x9b",
                "\x9c",
                "\x1bP",
            ]
        ),
        max_size=30,
    ),
    st.data(),
)
def test_cuts_between_deltas_change_nothing(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    strip = ControlStripper()
    parts = [strip.feed(text[a:b]) for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert "".join(parts) + strip.finish() == strip_controls(text)
    assert not any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 for c in "".join(parts))


def test_an_escape_that_never_ends_does_not_swallow_the_answer() -> None:
    strip = ControlStripper()
    shown = strip.feed("\x1b]0;") + "".join(strip.feed("word " * 100) for _ in range(20))
    assert shown.count("word") > 1000


def test_sources_are_numbered_by_id_with_the_url_below(sources: list[Page]) -> None:
    lines = sources_text(sources, 80).split("\n")
    assert lines[0] == "[1]  First \u2014 one.example, 2026-01-02"
    assert lines[1] == "     https://one.example/a"
    assert lines[6].startswith("[11] Eleventh")


@pytest.mark.parametrize("width", [20, 40, 79])
def test_titles_are_cut_to_the_width_and_urls_are_not(width: int) -> None:
    source = Page(
        7,
        "\u9577\u3044\u984c\u540d" * 30,
        "https://a.example/" + "p" * 100,
        published=date(2026, 1, 2),
    )
    title, url = sources_text([source], width).split("\n")
    assert display_width(title) <= width
    assert "\u2026" in title
    assert url.strip() == source.url


def test_wide_characters_count_two_columns_and_marks_none() -> None:
    assert display_width("a\u5854e\u0301") == 4
    assert fit("\u5854\u5854\u5854", 5) == "\u5854\u5854\u2026"


def test_a_hostile_title_or_url_stays_on_its_line() -> None:
    source = Page(1, "a\n\x1b[2Jb\u202e", "https://a.example/\n\x1b]0;x\x07y")
    assert sources_text([source], 80).split("\n") == [
        "[1]  a b \u2014 example.com",
        "     https://a.example/ y",
    ]


def test_an_answer_reads_from_text_to_status(sources: list[Page]) -> None:
    text = answer_text(
        "It is tall.[1]", sources[:1], status="low \u00b7 2 s", notices=["cut"], width=80
    )
    assert text == (
        "It is tall.[1]\n\n(cut)\n\n[1]  First \u2014 one.example, 2026-01-02\n"
        "     https://one.example/a\n\nlow \u00b7 2 s"
    )
    assert status_text("a\nb", 80) == "a b"
