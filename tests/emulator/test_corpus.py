from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from datetime import date
from pathlib import Path
from pydoc_data.topics import topics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.emulator import Corpus
from ipyperplexity.emulator.corpus import Passage
from ipyperplexity.emulator.engine import Engine
from ipyperplexity.emulator.prose import parse_blocks, sentences, tidy, tokens
from ipyperplexity.emulator.pydocs import PAGES, topic_url

OTHER_VERSIONS = ["assignment-expressions", "__main__"]


def test_every_topic_of_the_running_python_has_its_page() -> None:
    assert sorted(set(topics) - set(PAGES)) == []


@pytest.mark.parametrize(
    ("topic", "place"),
    [
        ("with", "reference/compound_stmts.html#with"),
        ("typesmapping", "library/stdtypes.html#typesmapping"),
        ("yield", "reference/simple_stmts.html#yield"),
        ("strings", "reference/lexical_analysis.html#strings"),
        ("naming", "reference/executionmodel.html#naming"),
        ("formatstrings", "library/string.html#formatstrings"),
        ("debugger", "library/pdb.html#debugger"),
        ("assignment-expressions", "reference/expressions.html#assignment-expressions"),
        ("__main__", "library/__main__.html#main"),
        ("unheard of", "search.html?q=unheard%20of"),
    ],
)
def test_a_topic_leads_to_its_published_place(topic: str, place: str) -> None:
    assert topic_url(topic) == f"https://docs.python.org/3/{place}"


def test_every_topic_is_in_the_corpus_under_its_own_address() -> None:
    urls = {passage.url for passage in Corpus.builtin().passages}
    pages = {url.partition("#")[0] for url in urls}
    assert {topic_url(topic).partition("#")[0] for topic in topics} <= pages
    own = [topic for topic in topics if topic_url(topic) in urls]
    # "if" is published under "else" too; a heading over nothing but subsections has no passage.
    assert len(own) >= len(topics) - 8
    assert {"with", "lambda", "try", "for", "typesseq", "customization"} - set(own) <= {
        "customization"
    }


def test_methods_and_built_ins_have_anchors_of_their_own() -> None:
    urls = {
        passage.url.removeprefix("https://docs.python.org/3/")
        for passage in Corpus.builtin().passages
    }
    assert {
        "library/stdtypes.html#str.split",
        "reference/datamodel.html#object.__enter__",
        "library/functions.html#zip",
        "library/exceptions.html#ValueError",
    } <= urls
    assert not any("#exit" in url or "#license" in url for url in urls)


def test_the_prose_of_the_corpus_reads_well() -> None:
    for passage in Corpus.builtin().passages:
        for block in passage.blocks:
            if block.kind == "code":
                continue
            assert "\n" not in block.text
            assert not re.match(r"(New|Added|Changed) in version", block.text), passage.url
            assert "::=" not in block.text, passage.url
            assert not re.search(
                r"(?<![\w`*])\*\w[\w ]*\w\*(?![\w*])", re.sub(r"`[^`]*`", "", block.text)
            ), block.text
            assert not set(block.text) <= set("=-*~^+| "), passage.url


def test_code_and_lists_are_told_from_prose() -> None:
    passage = next(p for p in Corpus.builtin().passages if p.url.endswith("#with"))
    kinds = [block.kind for block in passage.blocks]
    assert kinds.count("item") == 7
    assert "code" in kinds
    assert passage.blocks[0].text == (
        "The `with` statement is used to wrap the execution of a block with methods defined by a context manager."
    ) or passage.blocks[0].text.startswith("The `with` statement is used to wrap")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('The "with" statement', "The `with` statement"),
        ("a *mapping* object", "a mapping object"),
        ("2 * 3 * 4 stays", "2 * 3 * 4 stays"),
        ('equal to "{"one": 1, "two": 2}".', 'equal to `{"one": 1, "two": 2}`.'),
        ("a [link](https://x.org/a_(b)) here", "a link here"),
        (":ref:`the page <label>` and :func:`len`", "`the page` and `len`"),
        ("Objects (see section Objects) exist", "Objects exist"),
    ],
)
def test_leftovers_of_markup_are_taken_out(written: str, read: str) -> None:
    assert tidy(written, quotes_are_code=True) == read


def test_quoted_words_of_a_note_stay_words() -> None:
    assert parse_blocks('She said "hello world".')[0].text == 'She said "hello world".'


def test_a_long_line_of_odd_quotes_takes_no_time() -> None:
    start = time.perf_counter()
    for odd in ('"{ ', '"a ', "*a ", "[a](", "(see "):
        tidy(odd * 20_000, quotes_are_code=True)
    assert time.perf_counter() - start < 5


def test_sentences_end_where_they_end() -> None:
    text = "It works, e.g. Here. Call `a. B`. Is it 3.5? Yes."
    assert sentences(text) == ["It works, e.g. Here.", "Call `a. B`.", "Is it 3.5?", "Yes."]


def test_word_forms_share_a_stem() -> None:
    assert tokens("Generators") == tokens("generator") == tokens("GENERATING"[:-3] + "or")
    assert tokens("__enter__") == ["enter"]
    assert tokens("f-strings") == tokens("f-string")


def test_notes_are_split_by_heading_with_titles_and_dates(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(
        "---\ntitle: My trip\ndate: 2024-05-06\n---\n# Day 1\n\nWe saw *dunes*.\n\n```\n# no heading\n```\n\n"
        "Day 2\n-----\n\n- It rained.\n- We read.\n",
        encoding="utf-8",
    )
    note = tmp_path / "sub" / "plain note.txt"
    note.parent.mkdir()
    note.write_text("Just one line of text.", encoding="utf-8")
    os.utime(note, (1_700_000_000, 1_700_000_000))
    (tmp_path / "r.rst").write_text("Title\n=====\n\nBody text here.\n", encoding="utf-8")
    (tmp_path / ".hidden.md").write_text("# Hidden\n\nx\n", encoding="utf-8")
    (tmp_path / "image.png").write_bytes(b"\x89PNG")
    corpus = Corpus.from_folder(tmp_path)
    seen = {(p.title, p.site, p.published) for p in corpus.passages}
    assert seen == {
        ("Day 1", "My trip", date(2024, 5, 6)),
        ("Day 2", "My trip", date(2024, 5, 6)),
        ("plain note", "", date.fromtimestamp(1_700_000_000)),
        ("Title", "", date.fromtimestamp((tmp_path / "r.rst").stat().st_mtime)),
    }
    by_title = {p.title: p for p in corpus.passages}
    assert by_title["Day 1"].blocks[0].text == "We saw dunes."
    assert [b.kind for b in by_title["Day 2"].blocks] == ["item", "item"]
    assert by_title["plain note"].url == "/corpus/sub/plain%20note.txt"


def test_a_folder_that_cannot_be_a_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="not found"):
        Corpus.from_folder(tmp_path / "none")
    file = tmp_path / "a.md"
    file.write_text("x", encoding="utf-8")
    with pytest.raises(NotADirectoryError):
        Corpus.from_folder(file)
    file.write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="no readable document"):
        Corpus.from_folder(tmp_path)


def test_a_note_that_is_not_text_is_left_out_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_bytes(b"\xff\xfe\x00bad")
    (tmp_path / "good.md").write_text("# Good\n\nText.\n", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"bad\.md"):
        corpus = Corpus.from_folder(tmp_path)
    assert [p.title for p in corpus.passages] == ["Good"]


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("# Secret\n\nx y z\n", encoding="utf-8")
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "good.md").write_text("# Good\n\nText.\n", encoding="utf-8")
    (folder / "link.md").symlink_to(outside)
    assert [p.title for p in Corpus.from_folder(folder).passages] == ["Good"]


def test_markdown_tables_and_fences_do_not_become_prose() -> None:
    blocks = parse_blocks(
        "Intro text.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\nx = 1\n\ny = 2\n```\n"
    )
    assert [(b.kind, b.text) for b in blocks] == [
        ("para", "Intro text."),
        ("code", "x = 1\n\ny = 2"),
    ]


@settings(max_examples=150, deadline=None)
@given(
    text=st.text(
        alphabet=st.sampled_from("ab C.:;\n\n \t*#-_`'\"|=>~[](){}1é💥"), min_size=1, max_size=200
    ),
    question=st.text(alphabet="ab C1é", max_size=12),
)
def test_no_note_whatever_its_markup_breaks_an_answer(text: str, question: str) -> None:
    blocks = tuple(parse_blocks(text))
    if blocks:
        passage = Passage("a C", "https://x.example/a", blocks, "", None)
        plan = Engine(Corpus("notes", (passage, replace(passage, title="b 1")))).answer(question)
        assert plan.text


def test_what_an_old_page_says_is_found_and_so_is_what_corrects_it() -> None:
    engine = Engine(Corpus.builtin())
    found = engine.answer("When does support for Python 2 end?")
    years = {result.date.year for result in found.results if result.date}
    assert "ends in 2015" in found.text and "ended on 1 January 2020" in found.text
    assert {2011, 2020} <= years
    order = engine.answer("Does a dictionary keep the order of its keys?")
    assert "guarantees" in order.text and "arbitrary" in order.text


def test_pages_beside_the_reference_have_addresses_that_are_nobodys() -> None:
    others = [p for p in Corpus.builtin().passages if "docs.python.org" not in p.url]
    assert others
    for passage in others:
        assert re.match(r"https://[\w-]+\.example\.(org|net|com)/", passage.url)
        assert passage.published and passage.published < date.today()


def test_the_releases_are_a_table_with_dates() -> None:
    plan = Engine(Corpus.builtin()).answer("Which versions of Python were released, and when?")
    assert "| 3.13 | 2024-10-07 |" in plan.text
