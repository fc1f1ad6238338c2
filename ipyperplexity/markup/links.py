"""What may become a link: the shape of a source, and the one test a URL must pass.

Invariant: a URL that fails :func:`http_url` never reaches an ``href``; it is shown as text.
"""

from __future__ import annotations

import re
from datetime import date
from html import escape
from typing import Protocol


class SourceLike(Protocol):
    """The part of a web source that rendering needs."""

    @property
    def id(self) -> int:
        """The number that ``[n]`` in an answer's text means."""

    @property
    def title(self) -> str:
        """Title of the page, as the service gave it."""

    @property
    def url(self) -> str:
        """Address of the page, unchecked."""

    @property
    def domain(self) -> str:
        """Host name in lower case, without a leading ``www.``."""

    @property
    def published(self) -> date | None:
        """Day of publication, if known."""

    @property
    def updated(self) -> date | None:
        """Day of the last change, if known."""

    @property
    def cited(self) -> bool:
        """Whether the text refers to it."""

    @property
    def n_cited(self) -> int:
        """How many markers refer to it."""

    @property
    def snippet(self) -> str | None:
        """An extract of the page, if given."""

    @property
    def kind(self) -> str:
        """How it was found: ``search``, ``fetch`` or ``annotation``."""


class Resolve(Protocol):
    """Finds the source that a marker means."""

    def __call__(self, id: int | None, web: int | None = None) -> SourceLike | None:
        """Return the source numbered `id`, or the `web`-th fetched page from 0; or None."""


# Host first, so that "https:evil" and "https:///evil" (which browsers repair) are no links.
_HTTP = re.compile(r"https?://[^\s/\\?#@:\x00-\x20\"'<>`]", re.IGNORECASE)
_UNSAFE = re.compile(
    r"[\x00-\x20\x7f-\x9f\"'<>`\\\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def http_url(url: str) -> str | None:
    """Return `url` ready for an ``href`` if it is http or https, else ``None``.

    Characters that a URL may not hold (blanks, quotes, angle brackets, controls, bidirectional
    overrides) are percent-encoded, not dropped: dropping can turn a harmless string into another
    scheme. The result still has to be HTML-escaped, as ``&`` is a legal character.

    Examples
    --------
    >>> http_url("https://example.com/a b")
    'https://example.com/a%20b'
    >>> http_url("javascript:alert(1)") is None
    True
    """
    url = url.strip()
    if not _HTTP.match(url):
        return None
    return _UNSAFE.sub(_percent, url)


def _percent(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace"))


_CONTROLS = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def one_line(text: str) -> str:
    """Return `text` without control and bidirectional characters, and with blanks collapsed."""
    return " ".join(_CONTROLS.sub(" ", text).split())


def anchor(url: str, label_html: str, title: str = "") -> str:
    """Return an ``<a>`` around `label_html` (already HTML), or the label alone if `url` is unsafe.

    `url` and `title` are raw text. The link opens a new tab, and tells the target nothing.
    """
    href = http_url(url)
    if href is None:
        return label_html
    hint = f' title="{escape(one_line(title))}"' if title else ""
    return (
        f'<a href="{escape(href)}"{hint} rel="noopener noreferrer nofollow" '
        f'target="_blank">{label_html}</a>'
    )
