"""What each option of a question may be: one check an option, from any value to a good one.

A check returns the value in its one form, or raises an InvalidRequestError that names the option,
what was given and what is allowed. What was given is shown only where it cannot hold a secret.
"""

from __future__ import annotations

import datetime as dt
import difflib
import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.images import MAX_REQUEST_BYTES, image_url
from ipyperplexity.tabular.cells import clean_text
from ipyperplexity.tools import Tool

if TYPE_CHECKING:
    from ipyperplexity.schema import Schema

RECENCIES = ("hour", "day", "week", "month", "year")
CONTEXT_SIZES = ("low", "medium", "high")
REASONING_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
#: Built-in tools that take no argument of ours (official-api 2.2).
TOOL_NAMES = (
    "web_search",
    "fetch_url",
    "image_search",
    "people_search",
    "finance_search",
    "sandbox",
)
#: What the other built-in tools need is given as a dict with these types.
TOOL_TYPES = (*TOOL_NAMES, "function", "mcp", "connector")
MAX_DOMAINS = 20
#: Seconds; a longer one is no limit, and sockets refuse to wait for it.
MAX_TIMEOUT = 7 * 24 * 3600
_MAX_TOKENS = 2**31 - 1
#: Body fields that decide how the reply is read: they have options or calls of their own.
_RESERVED_EXTRA = {
    "stream": "stream() or ask()",
    "input": "the question's text",
    "background": "submit()",
}


@dataclass(frozen=True)
class Option:
    """How a field of a question or a search shows on a command line: never spelled twice.

    Attributes
    ----------
    help : str
        One sentence for ``--help``, ``%perplexity?`` and a tooltip.
    flags : tuple of str
        Command-line spellings; empty for what only Python can give.
    metavar : str
        What stands for the value in help texts.
    choices : tuple of str
        The only values, where there is a list.
    suggestions : tuple of str
        Values to offer for completion, where others are valid too.
    repeatable : bool
        Whether the flag may be given several times.
    """

    help: str
    flags: tuple[str, ...] = ()
    metavar: str = ""
    choices: tuple[str, ...] = ()
    suggestions: tuple[str, ...] = ()
    repeatable: bool = False


def refuse(name: str, given: Any, allowed: str) -> InvalidRequestError:
    """Return the error that says which option, what was given, and what is allowed."""
    return InvalidRequestError(f"{name}: got {shown(given)}; allowed: {allowed}.", field=name)


def shown(value: Any) -> str:
    """Return a value on one short line; of bytes, containers and objects only the type.

    Those may be large or hold a secret (a tool's headers), and their ``repr`` may fail.
    """
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "...")
    if getattr(value, "ndim", None) == 0 and callable(item := getattr(value, "item", None)):
        value = item()  # numpy's numbers
    if isinstance(value, int) and value.bit_length() > 64:
        return f"a whole number of {value.bit_length()} bits"
    if value is None or isinstance(value, int | float | dt.date):
        return str(value)
    return f"a value of type {type(value).__name__}"


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise refuse("question", value, "text that is not blank")
    return clean_text(str.__str__(value))


def _optional_text(value: Any, name: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise refuse(name, value, "text")
    return clean_text(str.__str__(value)) if value.strip() else None


def _model(value: Any, name: str) -> str | None:
    word = _optional_text(value, name)
    if word is None:
        return None
    word = word.strip()
    if len(word) > 200 or not word.isprintable() or re.search(r"\s", word):
        raise refuse(name, value, "a preset or a model's name, without blanks")
    return word


def one_of(allowed: tuple[str, ...]) -> Callable[[Any, str], str | None]:
    """Return the check of an option that has a list of words."""

    def check(value: Any, name: str) -> str | None:
        if value is None:
            return None
        word = value.strip().lower() if isinstance(value, str) else ""
        if word not in allowed:
            raise refuse(name, value, ", ".join(allowed) + did_you_mean(word, allowed))
        return word

    return check


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return `` (did you mean 'x'?)``, or nothing when nothing is near."""
    near = difflib.get_close_matches(word[:60], list(known), 1, cutoff)
    return f" (did you mean {near[0]!r}?)" if near else ""


def items_of(value: Any) -> list[Any] | None:
    """Return the items of any iterable but a dict or bytes; None if there are none to take."""
    if isinstance(value, Mapping | bytes | bytearray | memoryview):
        return None
    try:
        return list(islice(value, 1000))  # more than any list here may hold, also if it is endless
    except TypeError:
        return None


def _date(value: Any, name: str) -> dt.date | None:
    if value is None:
        return None
    date = _read_date(value)
    if date is None:
        raise refuse(name, value, "a date, as YYYY-MM-DD or datetime.date")
    return date


def _read_date(value: Any) -> dt.date | None:
    if getattr(value, "ndim", None) == 0 and hasattr(value, "astype"):  # numpy.datetime64
        value = value.item()
    if isinstance(value, dt.datetime):  # a pandas Timestamp is one too, and so is its NaT
        return value.date() if value == value else None
    if isinstance(value, dt.date):
        return value
    if not isinstance(value, str):
        return None
    text = value.strip()
    for read in _DATE_READERS:
        try:
            return read(text).date()
        except ValueError:
            continue
    return None


_DATE_READERS: tuple[Callable[[str], dt.datetime], ...] = (
    dt.datetime.fromisoformat,
    lambda text: dt.datetime.strptime(text, "%Y-%m-%d"),  # 2025-3-2
)


_DOMAIN = re.compile(r"-?\.?\w[\w-]*(\.\w[\w-]*)*\.?(/\S*)?")


def _domains(value: Any, name: str) -> tuple[str, ...]:
    if value is None:
        return ()
    given = [value] if isinstance(value, str) else items_of(value)
    if given is None:
        raise refuse(name, value, "sites such as python.org, or -x.com to leave one out")
    entries: list[Any] = []
    for entry in given:  # one text may name several: "arxiv.org, -x.com"
        several = isinstance(entry, str) and ("," in entry or isinstance(value, str))
        entries += filter(None, re.split(r"[,\s]+", entry)) if several else [entry]
    sites: dict[str, None] = {}
    for entry in entries:
        site = str.__str__(entry).strip() if isinstance(entry, str) else ""
        if "://" in site:
            raise refuse(name, entry, "a site without https://, such as python.org or -x.com")
        if len(site) > 253 or not site.isprintable() or not _DOMAIN.fullmatch(site):
            raise refuse(name, entry, "a site such as python.org, or -x.com to leave one out")
        sites[site] = None
    if len(sites) > MAX_DOMAINS:
        raise refuse(name, f"{len(sites)} sites", f"at most {MAX_DOMAINS}")
    return tuple(sites)


def _letters(what: str, upper: bool) -> Callable[[Any, str], str | None]:
    def check(value: Any, name: str) -> str | None:
        if value is None:
            return None
        if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z]{2}", value.strip()):
            raise refuse(name, value, what)
        return value.strip().upper() if upper else value.strip().lower()

    return check


def whole_number(low: int, high: int | None) -> Callable[[Any, str], int | None]:
    """Return the check of an option that counts, from ``low`` to ``high`` or with no end."""
    bound = _MAX_TOKENS if high is None else high
    allowed = f"a whole number from {low} " + ("up" if high is None else f"to {high}")

    def check(value: Any, name: str) -> int | None:
        if value is None:
            return None
        try:
            number = int(value) if isinstance(value, str) else operator.index(value)
        except (TypeError, ValueError):
            number = None
        if number is None or isinstance(value, bool) or not low <= number <= bound:
            raise refuse(name, value, allowed)
        return number

    return check


def _number(fits: Callable[[float], bool], allowed: str) -> Callable[[Any, str], float | None]:
    def check(value: Any, name: str) -> float | None:
        if value is None:
            return None
        number = math.nan
        if not isinstance(value, bool | bytes | bytearray):
            try:
                number = float(value)
            except (TypeError, ValueError, OverflowError):
                number = math.nan
        if not fits(number):  # nothing holds for not-a-number
            raise refuse(name, value, allowed)
        return number

    return check


_SEARCH_WORDS: dict[str, bool | str] = {
    "yes": True, "true": True, "on": True, "no": False, "false": False, "off": False,
    "force": "force",
}  # fmt: skip


def _search(value: Any, name: str) -> bool | str:
    if value is None:
        return True
    if isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b":
        return bool(value)
    word = _SEARCH_WORDS.get(value.strip().lower()) if isinstance(value, str) else None
    if word is None:
        raise refuse(name, value, "True, False or 'force' (yes, no, force)")
    return word


def _schema(value: Any, name: str) -> Schema | None:
    if value is None:
        return None
    from ipyperplexity.schema import Schema

    return value if isinstance(value, Schema) else Schema.of(value)


def _images(value: Any, name: str) -> tuple[str, ...]:
    if value is None:
        return ()
    several = isinstance(value, list | tuple | set | frozenset)
    urls = tuple(image_url(image) for image in (value if several else (value,)))
    if (size := sum(map(len, urls))) > MAX_REQUEST_BYTES:
        given = f"{len(urls)} pictures of {size / 2**20:.0f} MiB as sent"
        raise InvalidRequestError(
            f"{name}: got {given}; allowed: {MAX_REQUEST_BYTES // 2**20} MiB together.", field=name
        )
    return urls


def _tools(value: Any, name: str) -> tuple[Any, ...]:
    if value is None:
        return ()
    allowed = f"functions, names of tools ({', '.join(TOOL_NAMES)}), or dicts with a known 'type'"
    is_one = isinstance(value, str | Mapping | Tool) or callable(value)
    tools = [value] if is_one else items_of(value)
    if tools is None:
        raise refuse(name, value, allowed)
    checked = tuple(_checked_tool(tool, name, allowed) for tool in tools)
    names = [tool.name if isinstance(tool, Tool) else declared_name(tool) for tool in checked]
    for tool in checked:
        if isinstance(tool, Tool) and names.count(tool.name) > 1:
            raise refuse(name, tool.name, "another name, as two of the tools have this one")
    return checked


def declared_name(tool: Mapping[str, Any]) -> Any:
    """Return the name in a tool's dict, flat or nested as in chat-completions; None without one.

    Examples
    --------
    >>> declared_name({"type": "function", "function": {"name": "add"}})
    'add'
    """
    nested = tool.get("function")
    return tool.get("name") or (nested.get("name") if isinstance(nested, Mapping) else None)


def _checked_tool(tool: Any, name: str, allowed: str) -> Any:
    if isinstance(tool, Tool) or (callable(tool) and not isinstance(tool, Mapping)):
        return Tool.of(tool)
    kind = tool.get("type") if isinstance(tool, Mapping) else tool
    known = TOOL_TYPES if isinstance(tool, Mapping) else TOOL_NAMES
    if not isinstance(kind, str) or kind not in known:
        near = did_you_mean(kind, known) if isinstance(kind, str) else ""
        raise refuse(name, kind, allowed + near)
    return _json_object(tool if isinstance(tool, Mapping) else {"type": tool}, name)


def _follow(value: Any, name: str) -> Any:
    if value is None:
        return None
    # Answer itself stands on a floor above.
    is_answer = callable(getattr(value, "conversation", None)) and isinstance(
        getattr(value, "text", None), str
    )
    if not is_answer:
        raise refuse(name, value, "an Answer, as ask() returns it")
    if not value.text and not value.id:
        raise InvalidRequestError(
            f"{name}: got an Answer without text; allowed: an Answer with text.", field=name
        )
    return value


def _json_object(value: Any, name: str) -> dict[str, Any]:
    """Return a copy of a dict, as deep as it goes, in which there is only what JSON can hold."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise refuse(name, value, "a dict with text keys")
    try:
        copy: dict[str, Any] = json.loads(json.dumps(dict(value), allow_nan=False))
    except (TypeError, ValueError) as error:
        problem = str(error)
    except RecursionError:
        problem = "it is nested too deeply"
    else:
        return copy
    raise refuse(name, value, f"values that JSON can hold ({problem})")


def _extra(value: Any, name: str) -> dict[str, Any]:
    fields = _json_object(value, name)
    for reserved, instead in _RESERVED_EXTRA.items():
        if reserved in fields:
            raise refuse(name, reserved, f"any field but this: use {instead}")
    return fields


CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "text": _text,
    "model": _model,
    "system": _optional_text,
    "recency": one_of(RECENCIES),
    "after": _date,
    "before": _date,
    "domains": _domains,
    "context": one_of(CONTEXT_SIZES),
    "country": _letters("two letters (ISO 3166), such as BE or US", upper=True),
    "language": _letters("two letters (ISO 639-1), such as en or nl", upper=False),
    "limit": whole_number(1, 50),
    "search": _search,
    "max_tokens": whole_number(1, None),
    "max_steps": whole_number(1, 100),
    "reasoning": one_of(REASONING_EFFORTS),
    "temperature": _number(lambda number: 0 <= number <= 2, "a number from 0 to 2"),
    "schema": _schema,
    "images": _images,
    "tools": _tools,
    "follow": _follow,
    "timeout": _number(
        lambda number: 0 < number <= MAX_TIMEOUT, "seconds, above 0 and at most a week"
    ),
    "extra": _extra,
}
