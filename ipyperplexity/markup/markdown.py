"""Markdown to safe HTML.

Invariant: every tag is written here, from a table; whatever came from the service is escaped, and
then passes a second, independent lock (nh3) that knows the allowed tags, attributes, classes and
URL schemes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING

from .links import Resolve, SourceLike, anchor, http_url

if TYPE_CHECKING:
    import nh3
    from markdown_it.token import Token

    from .markers import Marker

UNKNOWN = "no source with this number"
BY_POSITION = "resolved by position"

_LANGUAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+#.\-]{0,31}")
_ALIGN = {"text-align:left": "left", "text-align:center": "center", "text-align:right": "right"}
_HEADINGS = {"h1": "h3", "h2": "h4", "h3": "h5", "h4": "h6", "h5": "h6", "h6": "h6"}
_TAGS = {
    *("p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "hr", "br", "div"),
    *("table", "thead", "tbody", "tr", "th", "td"),
    *("strong", "em", "s", "code", "a", "sup", "span"),
}
_MATH = "mathjax_process tex2jax_process"
_CLASSES = {
    "sup": {"pplx-cite", "pplx-unknown", "pplx-by-position"},
    "span": {"pplx-unknown", *_MATH.split()},
    "div": {"pplx-math", *_MATH.split()},
}
_ATTRIBUTES = {
    "a": {"href", "title", "target"},
    "sup": {"title"},
    "span": {"title"},
    "code": {"class"},
}

Inline = Callable[[str], str]
Html = tuple[str, bool]
"""HTML, and whether it holds a marker that no source answers yet."""


def render(text: str, resolve: Resolve) -> str:
    r"""Turn a whole Markdown text into safe HTML.

    Parameters
    ----------
    text : str
        The answer's text, as received.
    resolve : Resolve
        Finds the source of a marker; see :meth:`ipyperplexity.sources.Sources.resolve`.

    Returns
    -------
    str
        HTML without a wrapper. To show it, put it into
        :func:`~ipyperplexity.markup.page.answer_page`, which keeps ``$5 to $10`` from being
        typeset as maths.

    Examples
    --------
    >>> render("Hello *world*", lambda id, web=None: None)
    '<p>Hello <em>world</em></p>\n'
    """
    from .parser import blocks, normalize

    def inline(content: str) -> str:
        return inline_html(content, resolve)[0]

    return "".join(block_html(block.tokens, inline) for block in blocks(normalize(text)))


def inline_html(content: str, resolve: Resolve) -> Html:
    """Render the content of one paragraph, heading or cell."""
    from .parser import inline

    return tokens_html(inline(content), resolve)


def block_html(tokens: Iterable[Token], inline: Inline) -> str:
    """Render block tokens, with `inline` for the texts in them."""
    return "".join(
        inline(token.content) if token.type == "inline" else _BLOCKS[token.type](token)
        for token in tokens
    )


def _opening(tag: str, end: str = "") -> Callable[[Token], str]:
    return lambda token: f"<{tag}>{end}"


def _paragraph(token: Token) -> str:
    if token.hidden:
        return ""
    return "<p>" if token.nesting > 0 else "</p>\n"


def _heading(token: Token) -> str:
    tag = _HEADINGS[token.tag]
    return f"<{tag}>" if token.nesting > 0 else f"</{tag}>\n"


def _ordered_list(token: Token) -> str:
    start = token.attrs.get("start")
    return "<ol>\n" if start is None else f'<ol start="{int(start)}">\n'


def _cell(token: Token) -> str:
    align = _ALIGN.get(str(token.attrs.get("style", "")))
    scope = ' scope="col"' if token.tag == "th" else ""
    return f"<{token.tag}{scope}" + (f' class="pplx-{align}">' if align else ">")


def _code(token: Token) -> str:
    language = _LANGUAGE.match(token.info.strip())
    kind = f' class="language-{language[0]}"' if language else ""
    return _clean(f"<pre><code{kind}>{escape(token.content)}</code></pre>") + "\n"


def _math_block(token: Token) -> str:
    return _clean(f'<div class="pplx-math {_MATH}">{escape(token.content)}</div>') + "\n"


_BLOCKS: dict[str, Callable[[Token], str]] = {
    "paragraph_open": _paragraph,
    "paragraph_close": _paragraph,
    "heading_open": _heading,
    "heading_close": _heading,
    "bullet_list_open": _opening("ul", "\n"),
    "bullet_list_close": _opening("/ul", "\n"),
    "ordered_list_open": _ordered_list,
    "ordered_list_close": _opening("/ol", "\n"),
    "list_item_open": _opening("li"),
    "list_item_close": _opening("/li", "\n"),
    "blockquote_open": _opening("blockquote", "\n"),
    "blockquote_close": _opening("/blockquote", "\n"),
    "table_open": _opening("table", "\n"),
    "table_close": _opening("/table", "\n"),
    "thead_open": _opening("thead"),
    "thead_close": _opening("/thead", "\n"),
    "tbody_open": _opening("tbody"),
    "tbody_close": _opening("/tbody", "\n"),
    "tr_open": _opening("tr"),
    "tr_close": _opening("/tr", "\n"),
    "th_open": _cell,
    "th_close": _opening("/th"),
    "td_open": _cell,
    "td_close": _opening("/td"),
    "hr": _opening("hr", "\n"),
    "fence": _code,
    "code_block": _code,
    "math_block": _math_block,
}

_INLINES: dict[str, Callable[[Token], str]] = {
    "text": lambda token: escape(token.content, quote=False),
    "text_special": lambda token: escape(token.content, quote=False),
    "softbreak": lambda token: "\n",
    "hardbreak": lambda token: "<br>\n",
    "code_inline": lambda token: f"<code>{escape(token.content)}</code>",
    "math": lambda token: f'<span class="{_MATH}">{escape(token.content)}</span>',
    **{
        f"{tag}_{side}": _opening(slash + tag)
        for tag in ("em", "strong", "s")
        for side, slash in (("open", ""), ("close", "/"))
    },
}


def tokens_html(tokens: Iterable[Token], resolve: Resolve) -> Html:
    """Render inline tokens, through the second lock."""
    out: list[str] = []
    unresolved = False
    # HTML has no link within a link; Markdown has (an image, or a <URL>, in a link's text).
    depth = 0
    for token in tokens:
        handler = _INLINES.get(token.type)
        if handler is not None:
            out.append(handler(token))
        elif token.type == "citation":
            html, missing = _citation(token.meta["marker"], token.content, resolve)
            out.append(html)
            unresolved |= missing
        elif token.type == "link_open":
            if depth == 0:
                title = str(token.attrs.get("title", ""))
                out.append(anchor(str(token.attrs["href"]), "", title).removesuffix("</a>"))
            depth += 1
        elif token.type == "link_close":
            depth -= 1
            if depth == 0:
                out.append("</a>")
        elif token.type == "image":
            label = escape(token.content) or "image"
            out.append(label if depth else anchor(str(token.attrs["src"]), label))
        else:  # pragma: no cover - every rule that is switched on is in the tables
            out.append(escape(token.content))
    return _clean("".join(out)), unresolved


def _citation(marker: Marker, written: str, resolve: Resolve) -> Html:
    """Link a marker straight to its sources: anchors within the page do not survive saving."""
    if marker.web is not None:
        source = resolve(None, marker.web)
        if source is None:
            return _unknown(written), True
        label = _linked(source, f"[web:{marker.web}]", f" ({BY_POSITION})")
        return f'<sup class="pplx-cite pplx-by-position" title="{BY_POSITION}">{label}</sup>', False
    found = [(number, resolve(number)) for number in marker.ids]
    if not any(source for _, source in found):
        return _unknown(written), True
    if len(found) == 1:
        number, source = found[0]
        inner = _linked(source, f"[{number}]") if source else ""
    else:
        parts = (
            _linked(source, str(number))
            if source
            else f'<span class="pplx-unknown" title="{UNKNOWN}">{number}</span>'
            for number, source in found
        )
        inner = f"[{', '.join(parts)}]"
    return f'<sup class="pplx-cite">{inner}</sup>', not all(source for _, source in found)


def _unknown(written: str) -> str:
    return f'<sup class="pplx-cite pplx-unknown" title="{UNKNOWN}">{escape(written)}</sup>'


def _linked(source: SourceLike, label: str, note: str = "") -> str:
    title = " \u2014 ".join(part for part in (source.title, source.domain) if part)
    return anchor(source.url, label, title + note)


@lru_cache(maxsize=1)
def cleaner() -> nh3.Cleaner:
    """Return the second lock, which knows nothing of how the HTML was made."""
    import nh3

    def keep(tag: str, attribute: str, value: str) -> str | None:
        if tag == "code":
            return value if _LANGUAGE.fullmatch(value.removeprefix("language-")) else None
        if attribute == "href":
            return value if http_url(value) else None
        return value

    return nh3.Cleaner(
        tags=_TAGS,
        clean_content_tags={"script", "style"},
        attributes=_ATTRIBUTES,
        attribute_filter=keep,
        allowed_classes=_CLASSES,
        link_rel="noopener noreferrer nofollow",
        url_schemes={"http", "https"},
        url_relative="deny",
    )


# What a page cannot show, and what turns the reading direction to make text look like other text.
# Line ends stay: they are white space in HTML.
_CONTROLS = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def _clean(html: str) -> str:
    html = _CONTROLS.sub("", html)
    # Plain text has no tag to lock; most cells and many sentences are plain.
    return cleaner().clean(html) if "<" in html else html
