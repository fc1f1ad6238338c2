"""What a user pastes into a document, a bibliography or a spreadsheet, and how safe it is."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from ipyperplexity.export import safe_cell, to_bibtex, to_csl_json, to_markdown
from ipyperplexity.tools import ToolCall

ACCESSED = dt.date(2026, 1, 5)


@dataclass(frozen=True)
class Page:
    id: int = 1
    title: str = "The with statement"
    url: str = "https://docs.python.org/3/with"
    domain: str = "docs.python.org"
    published: dt.date | None = dt.date(2025, 3, 2)
    updated: dt.date | None = None
    cited: bool = True
    n_cited: int = 1
    snippet: str | None = None
    kind: str = "search"


HOSTILE = [
    "](<javascript:alert(1)>) [x",
    "<script>alert(1)</script>",
    "<!-- hidden",
    "a]\n\n# Heading\n\n[b",
    "![img](https://evil.example/x.png)",
    "`code` *em* __strong__ ~~gone~~ $x$ \\( \\] &lt; &#60;",
    "[x]: https://evil.example",
    "</a><img src=x onerror=alert(1)>",
    "\\",
    "``",
    "1. one",
    "- one",
    "=== ",
    "} , @article{evil, title={",
    "{{{",
    "100% & more_less #1 ~ ^ $5 \\end{document}",
    "\u202egnp.exe",
    "\ud83d",
    "会社の概要",
    "",
]
TEXT = st.text(max_size=30) | st.sampled_from(HOSTILE)
MARKS = st.text(alphabet="\\[](){}<>!`*_~#&;$%^@\"'\n\r\t :/x1", max_size=20)
URLS = st.builds("https://a.example/{}".format, MARKS | TEXT) | TEXT | MARKS


# --- Markdown ----------------------------------------------------------------------------------


def tokens(markdown: str) -> Iterator[Token]:
    for token in MarkdownIt("commonmark", {"html": True}).enable("strikethrough").parse(markdown):
        yield token
        yield from token.children or ()


def visible(markdown: str) -> str:
    """The text that a reader sees of one line."""
    return "".join(token.content for token in tokens(markdown) if token.type == "text")


def test_the_document_has_the_question_the_text_as_it_is_and_numbered_sources():
    text = "Use `with` [3][1].\n\n| a |\n|---|\n| 1 |"
    pages = [Page(), Page(3, "Files", "https://d.example/f?a=1&b=2", "d.example", None)]
    assert to_markdown("How do I close a file?", text, pages, accessed=ACCESSED) == (
        "# How do I close a file?\n\n"
        f"{text}\n\n"
        "## Sources\n\n"
        "- \\[1\\] [The with statement](<https://docs.python.org/3/with>), docs.python.org, 2025-03-02\n"
        "- \\[3\\] [Files](<https://d.example/f?a=1&b=2>), d.example\n\n"
        "Accessed 2026-01-05.\n"
    )


def test_markers_in_the_text_and_the_numbers_of_the_list_read_the_same():
    html = MarkdownIt("commonmark").render(to_markdown("Q", "So it is [1][3].", [Page(), Page(3)]))
    assert "So it is [1][3]." in html
    assert re.findall(r"\[(\d)\] <a", html) == ["1", "3"]


def test_a_title_takes_the_place_of_the_question_which_is_quoted():
    found = to_markdown("Why is *x*?\nAnd <y>?", "So.", [], title="Notes")
    assert found == "# Notes\n\n> Why is \\*x\\*?\n> And &lt;y&gt;?\n\nSo.\n"
    assert to_markdown("One?\nTwo?", "So.", []).startswith("# Answer\n\n> One?\n> Two?\n")
    assert to_markdown("", "So.", []) == "# Answer\n\nSo.\n"


def test_a_text_cut_off_in_a_code_block_does_not_swallow_the_sources():
    found = to_markdown("Q", "```python\n~~~\nwith open(", [Page()])
    assert "with open(\n```\n\n## Sources" in found
    closed = "````\n```\n````\ntext ``` here"
    assert f"{closed}\n\n## Sources" in to_markdown("Q", closed, [Page()])


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "report.pdf", "", "https://", "//a.example"]
)
def test_only_http_urls_become_links(url):
    found = to_markdown("Q", "A", [Page(url=url)])
    assert "- \\[1\\] The with statement, docs.python.org, 2025-03-02\n" in found
    assert not any(token.type == "link_open" for token in tokens(found))


def test_an_entity_in_a_url_stays_as_it_is():
    found = to_markdown("Q", "A", [Page(url="https://a.example/?a=1&copy;=2&b=3")])
    links = [token.attrs["href"] for token in tokens(found) if token.type == "link_open"]
    assert links == ["https://a.example/?a=1&copy;=2&b=3"]


@given(title=TEXT | MARKS, url=URLS, domain=TEXT | MARKS, question=TEXT | MARKS)
@settings(max_examples=400, deadline=None)
@example(title="](<javascript:alert(1)>)", url="https://a.example/>)<b>", domain="<i>", question="")
def test_no_title_url_or_question_can_add_structure_to_the_document(title, url, domain, question):
    document = to_markdown(question, "A", [Page(title=title, url=url, domain=domain)])
    document.encode()
    found = [token.type for token in tokens(document)]
    harmless = {"inline", "text", "text_special", "softbreak"}
    blocks = "heading paragraph blockquote list_item bullet_list link".split()  # noqa: SIM905
    assert set(found) <= harmless | {f"{b}_{end}" for b in blocks for end in ("open", "close")}
    assert found.count("heading_open") == 2
    assert found.count("list_item_open") == 1
    links = [token for token in tokens(document) if token.type == "link_open"]
    assert len(links) <= 1
    assert all(re.match("https?://", str(link.attrs["href"]), re.IGNORECASE) for link in links)


@pytest.mark.parametrize("title", [title for title in HOSTILE if title not in ("", "\ud83d")])
def test_a_title_reads_as_it_was_written(title):
    line = to_markdown("Q", "A", [Page(title=title, domain="", published=None)]).splitlines()[-1]
    assert visible(line) == "[1] " + " ".join(title.replace("\u202e", "").split())


@pytest.mark.parametrize("title", ["", " \n", "\ud83d"])
def test_a_source_without_a_readable_title_is_named_by_its_domain(title):
    assert "[docs.python.org](<" in to_markdown("Q", "A", [Page(title=title)])


# --- functions in Markdown -----------------------------------------------------------------------


def test_functions_that_were_run_are_listed_below_the_sources():
    calls = [
        ToolCall("population_of", '{"city": "Ghent"}', "272657"),
        ToolCall("population_of", '{"city": "Gent"}', "Error: x", "KeyError: 'Gent'"),
        ToolCall("plot", "", "", "not run: max_steps=3 was reached"),
    ]
    found = to_markdown("Q", "A", [Page()], accessed=ACCESSED, calls=calls)
    assert found.endswith(
        "Accessed 2026-01-05.\n\n## Functions\n\n"
        "- `population_of(city='Ghent')`: 272657\n"
        "- `population_of(city='Gent')` failed: KeyError: 'Gent'\n"
        "- `plot()` not run: max\\_steps=3 was reached\n"
    )
    assert "Functions" not in to_markdown("Q", "A", [Page()])


def test_of_many_functions_the_first_are_listed():
    found = to_markdown("Q", "A", [], calls=[ToolCall("f", "{}", "x" * 9000)] * 60)
    assert found.count("`f()`") == 50 and found.endswith("- ... and 10 more\n")
    assert len(found) < 20_000


@given(
    name=TEXT | MARKS,
    arguments=TEXT | MARKS | MARKS.map(lambda text: json.dumps({"a": text})),
    output=TEXT | MARKS,
    error=st.none() | TEXT | MARKS,
)
@settings(max_examples=400, deadline=None)
@example(name="```", arguments="", output="", error=None)
@example(name="f", arguments='{"a": "``` `"}', output="``` x", error="~~~")
def test_no_function_call_can_add_structure_to_the_document(name, arguments, output, error):
    document = to_markdown("Q", "A", [], calls=[ToolCall(name, arguments, output, error)])
    document.encode()
    found = [token.type for token in tokens(document)]
    harmless = {"inline", "text", "text_special", "softbreak", "code_inline"}
    blocks = "heading paragraph list_item bullet_list".split()  # noqa: SIM905
    assert set(found) <= harmless | {f"{b}_{end}" for b in blocks for end in ("open", "close")}
    assert found.count("heading_open") == 2
    assert found.count("list_item_open") == found.count("code_inline") == 1


# --- BibTeX ------------------------------------------------------------------------------------


def test_a_source_becomes_an_online_entry():
    assert to_bibtex([Page()], ACCESSED) == (
        "@online{docspython2025with,\n"
        "  title = {{The with statement}},\n"
        "  url = {https://docs.python.org/3/with},\n"
        "  urldate = {2026-01-05},\n"
        "  date = {2025-03-02},\n"
        "  organization = {docs.python.org},\n"
        "}\n"
    )


def test_latex_specials_are_escaped_in_text_and_encoded_in_urls():
    page = Page(title=r"a&b%c$d#e_f{g}h~i^j\k", url="https://a.example/{x}_%20~y#z?q=ü&r=\\")
    entry = to_bibtex([page], dt.datetime(2026, 1, 5, 10, 30))
    assert (
        r"title = {{a\&b\%c\$d\#e\_f\textbraceleft{}g\textbraceright{}h"
        r"\textasciitilde{}i\textasciicircum{}j\textbackslash{}k}}"
    ) in entry
    assert "url = {https://a.example/%7Bx%7D_%20~y#z?q=%C3%BC&r=%5C}" in entry
    assert "urldate = {2026-01-05}" in entry


def test_a_source_without_a_date_or_web_address_has_no_such_fields():
    entry = to_bibtex([Page(url="report.pdf", domain="", published=None)], ACCESSED)
    assert re.findall(r"^  (\w+)", entry, re.MULTILINE) == ["title", "urldate"]


@pytest.mark.parametrize(
    ("page", "key"),
    [
        (Page(), "docspython2025with"),
        (Page(published=None), "docspythonwith"),
        (Page(domain="www.bbc.co.uk", title="Été à Paris"), "bbc2025ete"),
        (Page(domain="localhost", title="The"), "localhost2025"),
        (Page(domain="10.0.0.1", title="Router"), "100012025router"),
        (Page(id=7, domain="", title="会社"), "source72025"),
    ],
    ids=str,
)
def test_a_key_tells_site_year_and_first_telling_word(page, key):
    assert f"@online{{{key},\n" in to_bibtex([page], ACCESSED)


@given(st.lists(st.builds(Page, id=st.integers(1, 9), title=TEXT, domain=TEXT), max_size=40))
@settings(max_examples=50, deadline=None)
def test_keys_are_plain_unique_and_do_not_change_when_sources_follow(pages):
    keys = [item["id"] for item in to_csl_json(pages, ACCESSED)]
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch("[a-z0-9-]+", key) for key in keys)
    assert [item["id"] for item in to_csl_json(pages[:5], ACCESSED)] == keys[:5]


def test_many_twins_all_have_their_own_key():
    keys = [item["id"] for item in to_csl_json([Page()] * 40, ACCESSED)]
    assert keys[:3] == ["docspython2025with", "docspython2025withb", "docspython2025withc"]
    assert len(set(keys)) == 40


@given(st.lists(st.builds(Page, title=TEXT | MARKS, url=URLS, domain=TEXT | MARKS), max_size=4))
@settings(max_examples=300, deadline=None)
def test_braces_are_always_balanced_and_nothing_leaves_its_field(pages):
    text = to_bibtex(pages, ACCESSED)
    text.encode()
    depth = 0
    for at, mark in enumerate(text):
        depth += {"{": 1, "}": -1}.get(mark, 0)
        assert depth >= 0
        # BibTeX starts an entry at any @ outside of braces.
        if mark == "@" and not depth:
            assert text.startswith("@online{", at)
    assert depth == 0
    # Each special character has its backslash, URLs aside (a verbatim field).
    for line in text.splitlines():
        if line.startswith(("  title", "  organization")):
            assert not re.search(r"(?<!\\)[&%$#_~^]", line)


def bibtexparser_entries(text: str) -> list[dict[str, str]]:
    # The parser of its version 1.
    bparser = pytest.importorskip("bibtexparser.bparser", reason="a BibTeX parser to check against")
    bibtexparser = pytest.importorskip("bibtexparser")
    parser = bparser.BibTexParser(ignore_nonstandard_types=False, interpolate_strings=False)
    return [
        {"key": entry["ID"], **{k: v for k, v in entry.items() if k not in ("ID", "ENTRYTYPE")}}
        for entry in bibtexparser.loads(text, parser).entries
    ]


def pybtex_entries(text: str) -> list[dict[str, str]]:
    database = pytest.importorskip("pybtex.database", reason="a BibTeX parser to check against")
    parsed = database.parse_string(text, "bibtex").entries
    return [{"key": key, **dict(parsed[key].fields)} for key in parsed]


def latex_text(field: str) -> str:
    """Undo the escapes of a field, by a reading of its own."""
    names = {"braceleft": "{", "braceright": "}", "backslash": "\\", "asciitilde": "~"}
    names["asciicircum"] = "^"
    return re.sub(
        r"\\text(\w+)\{\}|\\(.)", lambda m: names[m[1]] if m[1] else m[2], field.strip("{}")
    )


@pytest.mark.parametrize("entries", [bibtexparser_entries, pybtex_entries])
def test_a_bibtex_parser_reads_back_what_was_written(entries):
    pages = [Page(id=n, title=f"x{title}x") for n, title in enumerate(HOSTILE, 1)]
    pages += [Page(url="https://a.example/{%_&#~^\\}"), Page(published=None)]
    found = entries(to_bibtex(pages, ACCESSED))
    assert [entry["key"] for entry in found] == [i["id"] for i in to_csl_json(pages, ACCESSED)]
    for entry, item in zip(found, to_csl_json(pages, ACCESSED), strict=True):
        assert latex_text(entry["title"]) == item["title"]
        assert entry["urldate"] == "2026-01-05"
    assert found[-2]["url"] == "https://a.example/%7B%_&#~%5E%5C%7D"


@given(st.builds(Page, title=MARKS | TEXT, domain=MARKS))
@settings(max_examples=100, deadline=None)
@pytest.mark.parametrize("entries", [bibtexparser_entries, pybtex_entries])
def test_a_bibtex_parser_finds_one_entry_whatever_the_title(entries, page):
    found = entries(to_bibtex([page], ACCESSED))
    assert len(found) == 1
    assert set(found[0]) <= {"key", "title", "url", "urldate", "date", "organization"}


# --- CSL-JSON ----------------------------------------------------------------------------------


def test_a_source_becomes_a_csl_webpage():
    items = to_csl_json([Page(), Page(2, "Files", "report.pdf", "", None)], ACCESSED)
    assert json.loads(json.dumps(items)) == [
        {
            "id": "docspython2025with",
            "type": "webpage",
            "title": "The with statement",
            "URL": "https://docs.python.org/3/with",
            "container-title": "docs.python.org",
            "issued": {"date-parts": [[2025, 3, 2]]},
            "accessed": {"date-parts": [[2026, 1, 5]]},
        },
        {
            "id": "files",
            "type": "webpage",
            "title": "Files",
            "accessed": {"date-parts": [[2026, 1, 5]]},
        },
    ]


# --- spreadsheets ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1+1",
        "-1+1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\nx",
        "  =1",
        "\ufeff=1",
        "＝1+1",
        "-",
        '=HYPERLINK("https://evil.example","x")',
        "=cmd|' /C calc'!A0",
        "-2+3+cmd|' /C calc'!A0",
    ],
)
def test_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text):
    assert safe_cell(text) == f"'{text}"
    assert safe_cell(safe_cell(text)) == f"'{text}"


@pytest.mark.parametrize(
    "value",
    [
        -5,
        -5.2,
        None,
        True,
        "-5",
        "+3.25",
        "-1e-3",
        ".5",
        "a=b",
        "a@b.example",
        "1-2",
        "",
        "'=1",
        [1],
    ],
    ids=repr,
)
def test_numbers_and_plain_text_stay_as_they_are(value):
    assert safe_cell(value) is value


@given(st.text(alphabet="=+-@\t\r\n 019.eE'\"a,;|＝", max_size=12))
@settings(max_examples=300, deadline=None)
def test_no_cell_of_a_csv_starts_like_a_formula(text):
    file = io.StringIO(newline="")
    csv.writer(file).writerow([safe_cell(text), "end"])
    read = next(csv.reader(io.StringIO(file.getvalue(), newline="")))[0]
    assert read in (text, f"'{text}")
    if not re.fullmatch(r"\s*[-+]?[\d.]+([eE][-+]?\d+)?\s*", read):
        assert not read.lstrip().startswith(("=", "+", "-", "@", "＝"))


@pytest.mark.parametrize(
    "text", ["a\n<script>x//", "a\n\n<!-- note", "a\n<textarea>", "a\n<details>"]
)
def test_html_left_open_in_an_answer_does_not_swallow_the_sources(text: str) -> None:
    html = MarkdownIt().render(to_markdown("q", text, [Page(1)]))
    assert "<h2>Sources" in html and "&lt;" in html


def test_html_in_code_and_links_of_an_answer_stay_as_they_are() -> None:
    text = "`<b>` and <https://a.example> and 1 < 2\n\n```\n<i>\n```"
    assert text in to_markdown("q", text, [])
