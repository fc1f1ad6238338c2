"""A source as the renderer sees it, and a reader of the HTML that it writes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from html.parser import HTMLParser

from ipyperplexity.markup.links import Resolve, SourceLike


@dataclass(frozen=True)
class Page:
    """A web source, as the renderer sees it."""

    id: int
    title: str = "A title"
    url: str = "https://example.com/a"
    domain: str = "example.com"
    published: date | None = None
    updated: date | None = None
    cited: bool = True
    n_cited: int = 1
    snippet: str | None = None
    kind: str = "search"


@dataclass
class Dom(HTMLParser):
    """What a browser would find in a piece of HTML: elements, their attributes, their text."""

    html: str
    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    text: str = ""
    styles: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(self.html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute twice in <{tag}>"
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "style" and self.cdata_elem == "style":
            self.styles += data
        else:
            self.text += data

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def with_class(self, name: str) -> list[dict[str, str]]:
        return [a for _, a in self.elements if name in a.get("class", "").split()]


def resolver(sources: Iterable[SourceLike]) -> Resolve:
    """Return a look-up over sources: by id, or the N-th fetched page."""
    by_id: dict[int, SourceLike] = {}
    fetched: list[SourceLike] = []
    for source in sources:
        by_id.setdefault(source.id, source)
        if source.kind == "fetch":
            fetched.append(source)

    def resolve(id: int | None, web: int | None = None) -> SourceLike | None:
        if web is not None:
            return fetched[web] if 0 <= web < len(fetched) else None
        return by_id.get(id) if id is not None else None

    return resolve
