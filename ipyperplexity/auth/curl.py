"""A copied cURL command, read for its cookies. Nothing is run, and no file that it names is read.

Browsers copy a request in three spellings: POSIX shells (``'...'``, and ``$'...'`` when a value
holds a quote), and cmd.exe (``^"..."``). What users shorten by hand is taken as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Curl:
    """What a command says.

    Attributes
    ----------
    host : str
        Where it goes; empty if it names no address.
    cookies : tuple of str
        ``Cookie`` headers, from ``-H`` and ``-b`` in any spelling.
    """

    host: str = ""
    cookies: tuple[str, ...] = field(default=(), repr=False)


_IS_CURL = re.compile(r"(?:[$>%]\s*)?(?:curl(?:\.exe)?|-H|--header|-b|--cookie)(?=[\s=^'\"])", re.I)
_OPTIONS = {"-H": "header", "--header": "header", "-b": "cookie", "--cookie": "cookie"}
_COOKIE_HEADER = re.compile(r"cookie\s*:\s*", re.I)
_WORD_PIECE = re.compile(
    r"""\$'(?P<ansi>(?:[^'\\]|\\.)*)'
      | '(?P<single>[^']*)'
      | "(?P<double>(?:[^"\\]|\\.)*)"
      | \\(?P<escaped>\r?\n|.)
      | (?P<blank>\s+)
      | (?P<plain>[^\s'"\\$]+|.)""",
    re.S | re.X,
)
_ANSI_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.S
)
_ANSI_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f"}


def is_curl(text: str) -> bool:
    """Whether a text is a cURL command, or the options of one."""
    return _IS_CURL.match(text.lstrip()) is not None


def read_curl(text: str) -> Curl:
    """Read a command; never raises.

    Examples
    --------
    >>> read_curl("curl 'https://www.perplexity.ai/' -H 'Cookie: a=1; b=2'").cookies
    ('a=1; b=2',)
    >>> read_curl("curl https://www.perplexity.ai/ --cookie=a=1").host
    'www.perplexity.ai'
    """
    if '^"' in text:  # copied for cmd.exe, which escapes by ^
        text = re.sub(r"\^(\r?\n|.)", lambda match: match[1].strip() or " ", text, flags=re.S)
    words = _words(text)
    host, cookies = "", []
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        kind, value = _option(word)
        if kind and value is None:
            value = words[position] if position < len(words) else ""
            position += 1
        if kind == "cookie" and value is not None:
            while value.endswith(";") and position < len(words) and _is_pair(words[position]):
                value += " " + words[position]  # not quoted, so that a blank parted it
                position += 1
            if "=" in value:  # else it names a file
                cookies.append(value)
        elif kind == "header" and value is not None and (match := _COOKIE_HEADER.match(value)):
            cookies.append(value[match.end() :])
        elif not kind and not host and re.match(r"https?://", word, re.I):
            host = _host(word)
    return Curl(host, tuple(cookies))


def _option(word: str) -> tuple[str, str | None]:
    """Return what an option is for, and its value if that is in the same word."""
    if word in _OPTIONS:
        return _OPTIONS[word], None
    name, equals, value = word.partition("=")
    if equals and name.startswith("--") and name in _OPTIONS:
        return _OPTIONS[name], value
    if word[:2] in _OPTIONS and not word.startswith("--"):
        return _OPTIONS[word[:2]], word[2:].removeprefix("=")
    return "", None


def _is_pair(word: str) -> bool:
    return "=" in word and not word.startswith("-")


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


def _words(text: str) -> list[str]:
    words: list[str] = []
    open_word = False
    for match in _WORD_PIECE.finditer(text):
        kind = match.lastgroup or "plain"
        if kind == "blank" or (kind == "escaped" and match[kind].isspace()):
            open_word = False  # an escaped line end, or one that a web form has taken out
            continue
        piece = _PLAIN.get(kind, str)(match[kind])
        if open_word:
            words[-1] += piece
        else:
            words.append(piece)
        open_word = True
    return words


def _ansi(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        for group, base in ((1, 16), (2, 16), (3, 16), (4, 8)):
            if match[group]:
                code = int(match[group], base)
                return chr(code) if code < 0x110000 else ""
        return _ANSI_LETTERS.get(match[5], match[5])

    return _ANSI_ESCAPE.sub(replace, text)


_PLAIN: dict[str, Callable[[str], str]] = {
    "ansi": _ansi,
    "double": lambda text: re.sub(r'\\([\\"$`])', r"\1", text).replace("\\\n", ""),
}
