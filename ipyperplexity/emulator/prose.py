"""Plain text and Markdown as blocks of readable prose.

Invariant: a block is one paragraph, one list item or one piece of code; the text of a prose block
is a single line, free of markup leftovers, in which inline code stands between backticks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

__all__ = ["Block", "parse_blocks", "sentences", "tokens", "tidy"]

Kind = Literal["para", "item", "more", "code"]


@dataclass(frozen=True)
class Block:
    """One paragraph, list item or code example.

    Attributes
    ----------
    kind
        ``"para"``, ``"item"``, ``"more"`` (a further paragraph of an item) or ``"code"``.
    text
        Prose on one line, or code with its line breaks.
    """

    kind: Kind
    text: str


_ITEM = re.compile(r"(?:[*+\-•]|\d{1,2}[.)])\s+")
_LABEL = re.compile(r"(?:Note|Tip|Important|Warning|Caution|Hint):?\s*$")
_NOISE = re.compile(
    r"(?:\*\*)?(?:New in version|Added in version|Changed in version|Deprecated since|"
    r"Removed in version|See also|CPython implementation detail|Footnotes|\[\d+\] )",
    re.IGNORECASE,
)
_CODE_HINT = re.compile(
    r">>>|^\s*(?:def|class|import|from|for|while|with|if|try|return|print|async|await|lambda|match|"
    r"case|else|finally|except|raise|del|assert|type)\b.*[:()]|\w\(.*\)\s*(?:#.*)?$|[^\s=!<>]\s*=\s*[^=\s]|"
    r":\s*$|^\s*[#@(\[{]",
)
_PROSE_END = re.compile(r"[.:?!;)](?:[”\"'’])?$")
_QUOTED = re.compile(
    r"(?<![\w\"`])\"(?:([\[{(][^`]{0,200}?[\]})])|([^\"`\n][^`\n]{0,200}?))\"(?=$|[\s.,;:)\]’—–?!/…-])"
)
_EMPHASIS = re.compile(r"(?<![\w*\\`])(\*\*?)(?=[^\s*])([^*`\n]+?)(?<=[^\s*])\1(?![\w*])")
_FOOTNOTE = re.compile(r"\s\[\d{1,2}\](?=[\s.,;:]|$)")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\((?:[^()\s]|\([^()]*\))*(?:\s+\"[^\"]*\")?\)")
_ROLE = re.compile(r":[a-z:+-]+:`~?([^`<]+?)(?:\s*<[^>]*>)?`")


def tidy(text: str, *, quotes_are_code: bool = False) -> str:
    """Take the leftovers of reST and Markdown out of one paragraph.

    Parameters
    ----------
    text
        The paragraph.
    quotes_are_code
        Whether straight quotes mark code, as in the plain text that Python carries.

    Examples
    --------
    >>> tidy('The "with" statement wraps a *block*.', quotes_are_code=True)
    'The `with` statement wraps a block.'
    """
    text = " ".join(text.split())
    text = _ROLE.sub(r"`\1`", text).replace("``", "`")
    text = _LINK.sub(r"\1", text)
    # A word that was broken at its hyphen: "read- only", "built- in".
    text = re.sub(r"(?<=\w)- (?!(?:and|or|to)\b)(?=[a-z\"])", "-", text)
    if quotes_are_code:
        text = _QUOTED.sub(lambda found: f"`{found.group(1) or found.group(2)}`", text)
    text = _EMPHASIS.sub(r"\2", text)
    text = re.sub(r"\s*\(see (?:section |also )?[^()]*\)", "", text, flags=re.IGNORECASE)
    text = re.sub(r"[;,] see (?:also |section |the section )?[^.;()]*(?=\.$|\. )", "", text)
    return _FOOTNOTE.sub("", text).strip()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _chunks(lines: list[str]) -> Iterator[list[str]]:
    """Yield runs of non-blank lines; a list item opens a run of its own."""
    run: list[str] = []
    for line in lines:
        starts_item = bool(_ITEM.match(line.lstrip())) and not line.lstrip().startswith("- -")
        if not line.strip() or (starts_item and run and _indent(line) <= _indent(run[0])):
            if run:
                yield run
            run = []
        if line.strip():
            run.append(line)
    if run:
        yield run


def _is_table(run: list[str]) -> bool:
    return all(line.lstrip()[:1] in "+|" or set(line.strip()) <= set("=- ") for line in run)


def _is_grammar(run: list[str]) -> bool:
    return any("::=" in line for line in run) or run[0].lstrip().startswith("| ")


_OPENS_SUITE = re.compile(r"\s*(?:class|def|for|while|with|if|try)\b.*:\s*$")


def _is_code(run: list[str], context: int, after_colon: bool) -> bool:
    if len(run) > 1 and _OPENS_SUITE.match(run[0]) and _indent(run[1]) > _indent(run[0]):
        return True
    if _indent(run[0]) <= context:
        return run[0].lstrip().startswith(">>>")
    hints = sum(bool(_CODE_HINT.search(line)) for line in run)
    if run[0].lstrip().startswith(">>>"):
        return True
    joined = " ".join(line.strip() for line in run)
    prose = joined[:1].isupper() and bool(_PROSE_END.search(joined)) and joined.count(" ") > 4
    if prose and not (after_colon and hints == len(run)):
        return False
    return hints * 2 >= len(run) or after_colon


def _dedent(run: list[str]) -> str:
    edge = min(_indent(line) for line in run)
    return "\n".join(line[edge:].rstrip() for line in run)


def parse_blocks(text: str, *, quotes_are_code: bool = False) -> list[Block]:
    """Split plain text (reST as text, or Markdown) into blocks, dropping tables and grammars.

    Parameters
    ----------
    text
        The body of one section, without its heading.
    quotes_are_code
        See :func:`tidy`.

    Returns
    -------
    list of Block
        In the order of the text.
    """
    blocks: list[Block] = []
    for is_fence, lines in _fences(text):
        if is_fence:
            blocks.append(Block("code", "\n".join(lines).strip("\n")))
        else:
            _parse_runs(lines, blocks, quotes_are_code)
    return [block for block in blocks if block.text.strip()]


def _fences(text: str) -> Iterator[tuple[bool, list[str]]]:
    """Yield the text in turns: outside of a ``` fence, inside of one."""
    held: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")) and set(line.strip()) != {"~"}:
            yield inside, held
            held, inside = [], not inside
        else:
            held.append(line)
    yield inside, held


def _parse_runs(lines: list[str], blocks: list[Block], quotes_are_code: bool) -> None:
    margin = min((_indent(line) for line in lines if line.strip()), default=0)
    context = margin
    in_item = False
    skip_deeper: int | None = None
    after_colon = False
    in_code = False
    for run in _chunks(lines):
        depth = _indent(run[0])
        if skip_deeper is not None and depth > skip_deeper:
            continue
        skip_deeper = None
        first = run[0].strip()
        if _LABEL.match(first) and len(run) == 1:
            context = depth + 2
            continue
        marker = _ITEM.match(first)
        if _NOISE.match(first[marker.end() :] if marker else first):
            skip_deeper = depth
            in_code = False
            continue
        if _is_table(run) or _is_grammar(run):
            after_colon = in_code = False
            continue
        goes_on = in_code and depth > context
        if not marker and (
            (goes_on and not _reads_as_prose(run)) or _is_code(run, context, after_colon)
        ):
            _add_code(blocks, run, joined=goes_on)
            in_code, after_colon = True, False
            continue
        in_code = False
        in_item = bool(marker) or (in_item and depth > margin)
        context = depth + (marker.end() if marker else 0)
        prose = tidy(_prose_of(run, marker.end() if marker else 0), quotes_are_code=quotes_are_code)
        blocks.append(Block("item" if marker else "more" if in_item else "para", prose))
        after_colon = prose.endswith(":")


def _prose_of(run: list[str], skip: int) -> str:
    first = run[0].strip()[skip:]
    rest = " ".join(line.strip() for line in run[1:])
    term = len(run) > 1 and not skip and _indent(run[1]) > _indent(run[0])
    if term and len(first) < 60 and not _PROSE_END.search(first):
        # A term with its definition: "Sets" over "These represent a mutable set."
        return f"{first}: {rest}"
    return f"{first} {rest}"


def _reads_as_prose(run: list[str]) -> bool:
    joined = " ".join(line.strip() for line in run)
    return joined[:1].isupper() and bool(_PROSE_END.search(joined)) and joined.count(" ") > 6


def _add_code(blocks: list[Block], run: list[str], *, joined: bool) -> None:
    code = _dedent(run)
    if joined and blocks and blocks[-1].kind == "code":
        # A blank line inside an example ends a run of lines, not the example.
        blocks[-1] = Block("code", f"{blocks[-1].text}\n\n{code}")
    else:
        blocks.append(Block("code", code))


_ABBREVIATIONS = (
    "e.g.",
    "i.e.",
    "etc.",
    "cf.",
    "vs.",
    "approx.",
    "Dr.",
    "Mr.",
    "Mrs.",
    "St.",
    "No.",
)
_SENTENCE_END = re.compile(r"[.!?](?:[)\]”’\"'`]*)(?=\s+[\"“(\[`A-Z0-9])")


def sentences(text: str) -> list[str]:
    """Split a tidy paragraph into sentences, leaving abbreviations and inline code whole.

    Examples
    --------
    >>> sentences("Use `a. B`. It works, e.g. Here.")
    ['Use `a. B`.', 'It works, e.g. Here.']
    """
    found: list[str] = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        piece = text[start : match.end()]
        if piece.count("`") % 2 or piece.endswith(_ABBREVIATIONS):
            continue
        found.append(piece.strip())
        start = match.end()
    rest = text[start:].strip()
    return [*found, rest] if rest else found


_WORD = re.compile(r"[^\W_]+(?:['’][a-z]+)?|_+[^\W_]\w*")
_ENDINGS = (
    ("ies", "y"), ("sses", "ss"), ("ations", "at"), ("ation", "at"), ("ators", "at"),
    ("ator", "at"), ("ating", "at"), ("ated", "at"), ("ates", "at"), ("ate", "at"),
    ("ings", ""), ("ing", ""),
    ("ers", "er"), ("ed", ""), ("ly", ""), ("es", ""), ("s", ""), ("e", ""),
)  # fmt: skip
_STEMS: dict[str, str] = {}


def _stem(word: str) -> str:
    if len(word) <= 3 or word.isdigit() or word == "finally":
        return word
    for ending, put in _ENDINGS:
        if word.endswith(ending) and not word.endswith("ss") and len(word) - len(ending) >= 3:
            root = word[: -len(ending)] + put
            if (
                len(root) > 3
                and root[-1] == root[-2]
                and root[-1] in "bdgmnprt"
                and ending in ("ing", "ed")
            ):
                root = root[:-1]
            return root
    return word


def tokens(text: str) -> list[str]:
    """Return the stems of the words of a text, lower case, in order.

    Examples
    --------
    >>> tokens("Iterating over generators")
    ['iterat', 'over', 'generat']
    """
    found = []
    for match in _WORD.finditer(text.lower().replace("f-string", "fstring")):
        word = match.group().strip("_").replace("’", "'")
        word = word.removesuffix("'s")
        stem = _STEMS.get(word)
        if stem is None:
            if len(_STEMS) > 50_000:
                _STEMS.clear()
            stem = _STEMS[word] = _stem(word)
        if stem:
            found.append(stem)
    return found
