"""What the reader sees: citations that lead to their sources, money as money, maths as maths."""

from __future__ import annotations

import html as html_module
import re
from dataclasses import replace
from datetime import date

import pytest

from ipyperplexity.markup import page
from ipyperplexity.markup.links import http_url
from ipyperplexity.markup.markdown import render
from tests.markup.html_reading import Dom, Page, resolver


def test_a_marker_links_straight_to_its_source_by_id(sources: list[Page]) -> None:
    dom = Dom(render("Tall.[11]", resolver(sources)))
    (link,) = dom.all("a")
    assert link["href"] == "https://eleven.example/d"
    assert link["title"] == "Eleventh \u2014 eleven.example"
    assert dom.text == "Tall.[11]\n"


def test_a_list_of_ids_links_each_of_them(sources: list[Page]) -> None:
    dom = Dom(render("Tall.[1-3, 7]", resolver(sources)))
    assert [a["href"] for a in dom.all("a")] == [s.url for s in sources[:3]]
    assert dom.text == "Tall.[1, 2, 3, 7]\n"
    assert dom.with_class("pplx-unknown")[0]["title"] == "no source with this number"


def test_an_unknown_id_stays_and_says_so(sources: list[Page]) -> None:
    dom = Dom(render("Tall.[99]", resolver(sources)))
    assert dom.all("a") == []
    assert dom.text == "Tall.[99]\n"
    (mark,) = dom.with_class("pplx-unknown")
    assert mark["title"] == "no source with this number"


def test_a_position_marker_says_that_it_was_resolved_by_position(sources: list[Page]) -> None:
    dom = Dom(render("79 characters. [web:0] [web:1]", resolver(sources)))
    (mark,) = dom.with_class("pplx-by-position")
    assert mark["title"] == "resolved by position"
    assert [a["href"] for a in dom.all("a")] == ["https://fetched.example/e"]
    assert len(dom.with_class("pplx-unknown")) == 1


def test_a_source_without_a_usable_url_is_named_but_not_linked() -> None:
    dom = Dom(render("Tall.[1]", resolver([Page(1, url="ftp://x")])))
    assert dom.all("a") == []
    assert dom.text == "Tall.[1]\n"


@pytest.mark.parametrize(
    ("text", "maths"),
    [
        ("Plan A is $5, plan B is $10 per month.", []),
        ("from $5 million to $7 million", []),
        ("`\\(x\\)` and ```$$y$$```", []),
        ("inline \\(x_1 < y\\) here", ["\\(x_1 < y\\)"]),
        ("shown \\[a*b*c\\] here", ["\\[a*b*c\\]"]),
        ("shown $$a_1 + b_1$$ here", ["$$a_1 + b_1$$"]),
        ("$$\na\n= b\n+ c\n- d\n$$", ["$$\na\n= b\n+ c\n- d\n$$"]),
        ("text\n\\[\n- x\n\\]\nmore", ["\\[\n- x\n\\]"]),
        ("- item\n\n  $$\n  x\n  $$", ["$$\nx\n$$"]),
        ("open \\(x and \\[ y and $$ z", []),
        ("$$ $$ and \\(\\)", []),
        ("\\(\\href{javascript:x}{y}\\)", []),
        ("$$\n\\def\\x{y}\n$$", []),
        ("| \\(a\\) | $5 |\n|---|---|\n| $6 | $7 |", ["\\(a\\)"]),
        ("$x$ stays text", []),
    ],
)
def test_maths_is_typeset_and_money_is_not(text: str, maths: list[str]) -> None:
    html = page.answer_page(body_html=render(text, resolver([])))
    assert Dom(html).elements[0] == ("div", {"class": "pplx mathjax_ignore tex2jax_ignore"})
    shown = re.findall(r'class="[^"]*mathjax_process tex2jax_process">(.*?)</', html, re.DOTALL)
    assert [html_module.unescape(s) for s in shown] == maths
    assert Dom(html).text.count("$") == text.count("$")


def test_headings_fit_below_those_of_the_notebook() -> None:
    html = render("# a\n## b\n### c\n#### d\n##### e\n###### f", resolver([]))
    assert re.findall(r"<(h\d)>", html) == ["h3", "h4", "h5", "h6", "h6", "h6"]


def test_a_code_fence_keeps_its_language_and_mermaid_stays_code() -> None:
    html = render("```mermaid\ngraph TD\n```\n\n```c++\nx\n```", resolver([]))
    assert re.findall(r'<code class="([^"]+)">', html) == ["language-mermaid", "language-c++"]


def test_a_table_has_column_headers_and_alignment() -> None:
    dom = Dom(render("| a | b |\n|:--|--:|\n| 1 | 2 |", resolver([])))
    assert [th.get("scope") for th in dom.all("th")] == ["col", "col"]
    assert [td.get("class") for td in dom.all("td")] == ["pplx-left", "pplx-right"]


def test_the_source_list_is_numbered_by_id(sources: list[Page]) -> None:
    dom = Dom(page.sources_list(sources))
    assert [li["value"] for li in dom.all("li")] == ["1", "2", "3", "11", "12"]
    assert [a["href"] for a in dom.all("a")] == [s.url for s in sources]
    assert len(dom.with_class("pplx-uncited")) == 1
    assert "not cited" in dom.text
    assert "one.example \u00b7 2026-01-02" in dom.text


def test_of_a_long_source_list_the_cited_stay_in_sight_and_the_rest_is_folded() -> None:
    many = [Page(n, cited=n in (2, 9), n_cited=int(n in (2, 9))) for n in range(1, 13)]
    html = page.sources_list(many)
    shown, _, rest = html.partition("<details>")
    assert [li["value"] for li in Dom(shown).all("li")] == ["2", "9"]
    assert len(Dom(rest).all("li")) == 10
    assert "10 more, not cited" in rest
    assert Dom(page.sources_list(many, folded=False)).all("details") == [{"open": ""}]
    assert Dom(page.sources_list(many[:8])).all("details") == []


def test_a_long_list_without_a_citation_is_folded_whole() -> None:
    html = page.sources_list([Page(n, cited=False, n_cited=0) for n in range(1, 13)])
    assert html.startswith("<details>")
    assert "12 sources, 0 cited" in html


def test_the_source_table_says_when_and_how_often(sources: list[Page]) -> None:
    dom = Dom(page.sources_table([replace(sources[0], n_cited=3), sources[1]]))
    assert all(th["scope"] == "col" for th in dom.all("th"))
    for part in ("First", "2026-01-02", "3\u00d7", "two.example"):
        assert part in dom.text
    assert Dom(page.sources_table([Page(n) for n in range(1, 22)])).all("details") == [{}]


def test_what_a_search_found_is_not_said_to_be_uncited() -> None:
    found = [Page(n, cited=False, n_cited=0) for n in range(1, 22)]
    few, many = page.sources_table(found[:3]), page.sources_table(found)
    for html in (few, many):
        dom = Dom(html)
        assert "cited" not in dom.text and len(dom.all("th")) == 4
        assert len(dom.all("td")) == 4 * (len(dom.all("tr")) - 1)
    assert "<summary>21 sources</summary>" in many
    mixed = Dom(page.sources_table([*found, Page(30)]))
    assert len(mixed.all("th")) == 5 and "22 sources, 1 cited" in mixed.text


def test_no_source_is_an_empty_list_and_an_empty_table() -> None:
    assert page.sources_list([]) == ""
    assert Dom(page.sources_table([])).all("td") == []


def test_a_stopped_answer_says_so_in_words() -> None:
    html = page.answer_page(body_html="<p>a</p>", status_line="3 s", state="stopped")
    dom = Dom(html)
    assert "stopped \u00b7 3 s" in dom.text
    assert dom.with_class("pplx-status")[0]["role"] == "status"


def test_only_the_status_line_is_read_aloud() -> None:
    html = page.answer_page(
        body_html="<p>a</p>", status_line="x", notices=["n"], searches=["q"], sources=[Page(1)]
    )
    assert html.count("aria-live") == html.count("role=") == 1


def test_a_search_shows_what_it_looks_for() -> None:
    dom = Dom(page.searching_line(["tallest tower", "height"], 12))
    assert dom.text.strip() == "Searching: tallest tower; height \u00b7 12 sources"
    assert "1 source" in Dom(page.searching_line([], 1)).text


@pytest.mark.parametrize(
    "unit", ["<p>word &amp; <strong>bold</strong></p>\n", "a &amp; b ", "<li>"]
)
def test_a_body_over_the_limit_is_shortened_and_stays_well_formed(unit: str) -> None:
    html = page.answer_page(body_html=unit * 40_000, status_line="done")
    assert len(html) < 400_000
    assert "shortened, see answer.text" in html
    assert html.count("<strong>") == html.count("</strong>")
    assert html.count("<li>") == html.count("</li>")
    assert "&am " not in html
    assert "&am<" not in html


def test_a_source_is_dated_by_its_last_change_if_nothing_else_is_known() -> None:
    assert "updated 2026-03-04" in page.sources_list([Page(1, updated=date(2026, 3, 4))])


def test_every_selector_of_the_style_stays_within_the_page() -> None:
    styles = Dom(page.wrap("")).styles
    for rule in re.findall(r"([^{}]+)\{", styles):
        assert all(part.strip().startswith(".pplx") for part in rule.split(",")), rule
    assert not re.search(r"#[0-9a-f]{3}|\brgb|url\(|@import|[<>]{2}", styles)


@pytest.mark.parametrize(
    ("url", "href"),
    [
        ("https://a.example/b?c=d&e=f#g", "https://a.example/b?c=d&e=f#g"),
        ("HTTP://A.example", "HTTP://A.example"),
        ("https://a.example/ü", "https://a.example/ü"),
        ("http://[::1]:8000/", "http://[::1]:8000/"),
        (' https://a.example/"x y" ', "https://a.example/%22x%20y%22"),
        ("https://", None),
        ("https:///a", None),
        ("ftp://a.example", None),
        ("javascript://a.example/%0aalert(1)", None),
    ],
)
def test_only_web_addresses_become_links(url: str, href: str | None) -> None:
    assert http_url(url) == href
