"""The reference that every Python carries, as passages with their docs.python.org addresses.

Invariant: each topic of ``pydoc_data`` has the page and the anchor under which the same text
stands in the published documentation; the label of a topic *is* its anchor there.
"""

from __future__ import annotations

import builtins
import inspect
import re
import sys
import urllib.parse
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path

from .corpus import Passage
from .prose import Block, parse_blocks
from .tables import take_tables

__all__ = ["PAGES", "python_passages", "topic_url"]

BASE = "https://docs.python.org/3/"
SITE = f"Python {sys.version_info.major}.{sys.version_info.minor} documentation"

_PAGE_TOPICS = {
    "reference/simple_stmts.html": (
        "assert assignment augassign break continue del global import nonlocal pass raise return "
        "yield"
    ),
    "reference/compound_stmts.html": "async class compound else for function if try while with",
    "reference/expressions.html": (
        "assignment-expressions atom-identifiers atom-literals attribute-references await binary "
        "bitwise booleans calls comparisons conversions dict exprlists in lambda lists "
        "operator-summary power shifting slicings subscriptions unary"
    ),
    "reference/datamodel.html": (
        "attribute-access callable-types context-managers customization numeric-types objects "
        "sequence-types specialnames types"
    ),
    "reference/executionmodel.html": "dynamic-features exceptions execmodel naming",
    "reference/lexical_analysis.html": (
        "floating id-classes identifiers imaginary integers numbers strings"
    ),
    "library/stdtypes.html": (
        "bltin-code-objects bltin-ellipsis-object bltin-null-object bltin-type-objects "
        "specialattrs string-methods truth typesfunctions typesmapping typesmethods typesmodules "
        "typesseq "
        "typesseq-mutable"
    ),
    "library/string.html": "formatstrings",
    "library/pdb.html": "debugger",
    "library/__main__.html": "__main__",
}
PAGES: dict[str, str] = {
    topic: page for page, topics in _PAGE_TOPICS.items() for topic in topics.split()
}
"""Topic label -> page of the documentation, for the topics of Python 3.11 to 3.14."""

# Words of learners for what the reference calls otherwise, by heading.
_KEYWORDS = {
    "string and bytes literals": "f-string formatted string literal interpolation raw",
    "format string syntax": "placeholder replacement field",
    "format specification mini-language": "f-string decimal places rounding align padding",
    "yield expressions": "generator generators",
    "the yield statement": "generator generators generator function write create",
    "sequence types - list, tuple, range": "difference list tuple",
    "lists": "list tuple difference mutable",
    "tuples": "list tuple difference immutable",
    "mapping types - dict": "dictionary dictionaries hash map key value",
    "dictionary displays": "dict comprehension",
    "list displays": "list comprehension comprehensions",
    "function definitions": "def decorator default argument parameters keyword define",
    "calls": "args kwargs positional keyword unpack call function argument",
    "assignment expressions": "walrus operator",
    "conditional expressions": "ternary inline if else",
    "comparisons": "equality identity difference is ==",
    "the try statement": "exception error catch except finally handling",
    "the raise statement": "exception error throw",
    "the match statement": "pattern matching switch case",
    "the import statement": "module package",
    "lambdas": "lambda anonymous function",
    "class definitions": "class define object inheritance",
    "context managers": "with",
    "the for statement": "for loop iterate",
    "the while statement": "while loop",
    "slicings": "slice slicing",
    "truth value testing": "truthy falsy boolean bool true false",
    "pdb - the python debugger": "debug breakpoint debugger",
    "naming and binding": "scope variable namespace local",
    "integer literals": "hex binary octal",
    "coroutines": "async await asyncio",
}

_UNDERLINE = re.compile(r"([*=\-~^\"])\1+$")
_SIGNATURE = re.compile(
    r"(?:(?:class|static|classmethod|async|exception|abstractmethod)\s+)*"
    r"(?P<name>[A-Za-z_][\w.]*)(?:\(.*\)?.*)?$"
)


def topic_url(topic: str) -> str:
    """Return the published address of a pydoc topic.

    Parameters
    ----------
    topic
        Its label, such as ``"typesmapping"``. One unknown to the table leads to the search page
        of the documentation, which finds it.

    Examples
    --------
    >>> topic_url("with")
    'https://docs.python.org/3/reference/compound_stmts.html#with'
    """
    page = PAGES.get(topic)
    if page is None:
        return f"{BASE}search.html?q={urllib.parse.quote(topic)}"
    # docutils takes leading and trailing underscores off an anchor.
    return f"{BASE}{page}#{topic.strip('_')}"


def _plain(title: str) -> str:
    return title.replace('"', "").replace("*", "").replace("`", "").strip()


def _slug(title: str) -> str:
    """Make the anchor that docutils makes of a heading."""
    return re.sub(r"[^a-z0-9]+", "-", _plain(title).lower()).strip("-").lstrip("0123456789-")


def _published() -> date | None:
    """Read the day on which the reference was made from the first lines of its source."""
    from pydoc_data import topics

    try:
        with Path(topics.__file__).open(encoding="utf-8") as source:
            first = source.readline() + source.readline()
    except (OSError, UnicodeDecodeError, TypeError):
        return None
    found = re.search(r"on \w{3} (\w{3} +\d+ [\d:]+ \d{4})", first)
    if found is None:
        return None
    try:
        return datetime.strptime(" ".join(found.group(1).split()), "%b %d %H:%M:%S %Y").date()
    except ValueError:
        return None


def python_passages() -> Iterator[Passage]:
    """Yield the sections of all topics of the running Python, then its built-in names."""
    from pydoc_data.topics import topics

    published = _published()
    titles = {
        _plain(text.strip().partition("\n")[0]): topic
        for topic, text in sorted(topics.items(), reverse=True)
    }
    seen: set[str] = set()
    documented: set[str] = set()
    # A long topic contains sections that are topics themselves; the small ones come first.
    for topic in sorted(topics, key=lambda name: (len(topics[name]), name)):
        for title, anchor, body in _sections(topics[topic]):
            own = titles.get(title)
            page = topic_url(own or topic).partition("#")[0]
            if anchor is None:
                anchor = own.strip("_") if own else _slug(title)
                key = f"{page}#{title}"
            else:
                key = f"{page}#{anchor}"
                documented.add(title)
            rest, tables = take_tables(body, quotes_are_code=True)
            blocks = tuple(parse_blocks(rest, quotes_are_code=True))
            if key in seen or not (blocks or tables):
                continue
            seen.add(key)
            url = topic_url(own or topic) if "?" in page else f"{page}#{anchor}"
            yield Passage(title, url, blocks, SITE, published, _keywords(title, own), tables)
    yield from _builtin_passages(published, documented)


def _keywords(title: str, topic: str | None) -> str:
    heading = title.lower().replace("—", "-")
    return f"{(topic or '').replace('-', ' ')} {_KEYWORDS.get(heading, '')}"


def _sections(text: str) -> Iterator[tuple[str, str | None, str]]:
    """Yield (title, anchor or None, body) for each heading and each described name."""
    lines = text.splitlines()
    title = ""
    section: list[str] = []
    name: str | None = None
    described: list[str] = []
    for at, line in enumerate(lines):
        below = lines[at + 1] if at + 1 < len(lines) else ""
        if line.strip() and line[:1] != " " and _UNDERLINE.match(below) and len(below) == len(line):
            if name:
                yield name, name, "\n".join(described)
            if title:
                yield title, None, "\n".join(section)
            title, section, name = _plain(line), [], None
            continue
        if _UNDERLINE.match(line) and at and len(line) == len(lines[at - 1]):
            continue
        found = _described(lines, at)
        if found is not None:
            if name and any(text.strip() for text in described):
                yield name, name, "\n".join(described)
                name = None
            # Names described together share the text; the first one is its anchor.
            name, described = name or found, []
        elif name and (line[:1] == " " or not line):
            described.append(line)
        else:
            # Prose back at the margin belongs to the section, not to the last name.
            if name:
                yield name, name, "\n".join(described)
                name = None
            section.append(line)
    if name:
        yield name, name, "\n".join(described)
    if title:
        yield title, None, "\n".join(section)


def _described(lines: list[str], at: int) -> str | None:
    """Return the name that a line at the margin describes (``str.split(sep=None)``), or None."""
    line = lines[at]
    if not line or line[:1] in ' *"+|[(' or line.endswith((".", ":", ",", ";")):
        return None
    found = _SIGNATURE.match(line)
    if found is None or not ("." in found["name"] or line.startswith("class ")):
        return None
    after = next((text for text in lines[at + 1 :] if text.strip()), "")
    is_one_of_many = bool(_SIGNATURE.match(after)) and not after.startswith(" ")
    if not (after.startswith("   ") or is_one_of_many) or (
        not is_one_of_many and at + 1 < len(lines) and lines[at + 1].strip()
    ):
        return None
    return found["name"]


def _builtin_passages(published: date | None, documented: set[str]) -> Iterator[Passage]:
    for name, value in sorted(vars(builtins).items()):
        # The site module adds helpers (exit, license) that are instances: not part of the language.
        if name.startswith("_") or name in documented or not isinstance(value, _BUILTIN_KINDS):
            continue
        doc = inspect.getdoc(value)
        if not doc or value.__name__ != name:
            continue
        if isinstance(value, type) and issubclass(value, BaseException):
            page, kind = f"library/exceptions.html#{name}", "exception"
        elif isinstance(value, type):
            anchor = f"func-{name}" if name in _FUNC_ANCHORS else name
            page, kind = f"library/functions.html#{anchor}", "built-in type"
        else:
            page, kind = f"library/functions.html#{name}", "built-in function"
        blocks = _doc_blocks(name, doc)
        if blocks:
            title = name if kind == "exception" else f"{name}()"
            yield Passage(title, BASE + page, blocks, SITE, published, f"{name} {kind}")


_BUILTIN_KINDS = (type, type(len))
_FUNC_ANCHORS = {
    "bytearray", "bytes", "dict", "frozenset", "list", "memoryview", "range", "set", "str", "tuple",
}  # fmt: skip


def _doc_blocks(name: str, doc: str) -> tuple[Block, ...]:
    """Make prose of a docstring, whose first lines are often signatures."""
    kept: list[str] = []
    signatures: list[str] = []
    for line in doc.splitlines():
        if (
            re.match(rf"{re.escape(name)}\(.*\)(?:\s*->.*)?(?:\s*--.*)?$", line.strip())
            and not kept
        ):
            signature, _, rest = line.strip().partition(" -- ")
            signatures.append(signature)
            if rest:
                kept.append(rest)
        else:
            kept.append(line)
    blocks = parse_blocks("\n".join(kept))
    head = [Block("code", "\n".join(signatures))] if signatures else []
    return (*blocks, *head)
