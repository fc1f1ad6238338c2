"""What is asked: the text and every option, validated here and nowhere else.

The magic, the panel and the command line derive their options from the fields of
:class:`Question`; a wire turns one into a request. A Question that exists is a valid one: bad
input is refused when it is made, before anything is sent or paid for.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.option_checks import (
    CHECKS,
    CONTEXT_SIZES,
    REASONING_EFFORTS,
    RECENCIES,
    Option,
    did_you_mean,
    refuse,
    shown,
)

if TYPE_CHECKING:
    from ipyperplexity.answer import Answer


def _option(help: str, *flags: str, default: Any = None, **details: Any) -> Any:
    return dataclasses.field(
        default=default, metadata={"option": Option(help, flags, **details)}, kw_only=True
    )


@dataclass(frozen=True, eq=False)
class Question:
    """A question and its options.

    Parameters
    ----------
    text : str
        The question, in any language; not blank.
    model, system, recency, after, before, domains, context, country, language, limit, search, \
max_tokens, max_steps, reasoning, temperature, schema, images, tools, follow, timeout, extra
        See each field's ``metadata["option"].help``, or :func:`options`.

    Raises
    ------
    InvalidRequestError
        If a value is not allowed; ``error.field`` names it. Nothing has been sent.

    Examples
    --------
    >>> question = Question("What is new in Python?", recency="month", domains="python.org,-x.com")
    >>> question.domains
    ('python.org', '-x.com')
    """

    text: str
    model: str | None = _option(
        "A preset (fast low medium high xhigh wide-research), or provider/name. "
        "Old sonar names are mapped.",
        "-m",
        "--model",
        metavar="NAME",
        suggestions=("fast", "low", "medium", "high", "xhigh", "wide-research"),
    )
    system: str | None = _option(
        "Instructions to the model, such as its role or the form of the answer.",
        "-s",
        "--system",
        metavar="TEXT",
    )
    recency: str | None = _option(
        "Only pages from the last hour, day, week, month or year.",
        "--recency",
        metavar="PERIOD",
        choices=RECENCIES,
    )
    after: dt.date | None = _option(
        "Only pages published on or after this date (YYYY-MM-DD).", "--after", metavar="DATE"
    )
    before: dt.date | None = _option(
        "Only pages published on or before this date (YYYY-MM-DD).", "--before", metavar="DATE"
    )
    domains: tuple[str, ...] = _option(
        "Only these sites (python.org), or not these (-x.com); at most 20.",
        "--domain",
        default=(),
        metavar="SITE",
        repeatable=True,
    )
    context: str | None = _option(
        "How much of the pages the model reads: low, medium or high.",
        "--context",
        metavar="SIZE",
        choices=CONTEXT_SIZES,
    )
    country: str | None = _option(
        "Search as from this country (two letters, such as BE).", "--country", metavar="CODE"
    )
    language: str | None = _option(
        "Language of the answer (two letters, such as nl).", "--language", metavar="CODE"
    )
    limit: int | None = _option("At most this many sources, 1 to 50.", "--limit", metavar="N")
    search: bool | str = _option(
        "Whether to search the web: yes, no, or force (in Python True, False, 'force').",
        "--search",
        default=True,
        metavar="HOW",
        choices=("yes", "no", "force"),
    )
    max_tokens: int | None = _option("Longest answer, in tokens.", "--max-tokens", metavar="N")
    max_steps: int | None = _option(
        "Most rounds of searching, reading and calling functions, 1 to 100.",
        "--max-steps",
        metavar="N",
    )
    reasoning: str | None = _option(
        "How hard to think: none, minimal, low, medium, high or xhigh.",
        "--reasoning",
        metavar="EFFORT",
        choices=REASONING_EFFORTS,
    )
    temperature: float | None = _option("0 (steady) to 2 (wild).", "--temperature", metavar="T")
    schema: Any = _option(
        "Form of a structured answer: in Python a type or JSON schema, here a variable's name.",
        "--schema",
        metavar="NAME",
    )
    images: tuple[str, ...] = _option(
        "Pictures to ask about: paths, https URLs, bytes, PIL images or figures.",
        default=(),
    )
    tools: tuple[Any, ...] = _option(
        "Functions that the model may call, which run in this notebook; or more of the service's "
        "tools, such as fetch_url, by name or as a dict.",
        default=(),
    )
    follow: Answer | None = _option("The Answer that this question follows.")
    timeout: float | None = _option(
        "Seconds that the whole answer may take.", "--timeout", metavar="SECONDS"
    )
    extra: Mapping[str, Any] = _option(
        "Raw fields of the request body, merged last.",
        default=None,
    )

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        for name, check in CHECKS.items():
            set_(self, name, check(getattr(self, name), name))
        if self.recency and (self.after or self.before):
            clash = "after" if self.after else "before"
            raise refuse("recency", self.recency, f"nothing beside {clash}: give one or the other")
        if self.after and self.before and self.after > self.before:
            raise refuse("after", self.after.isoformat(), f"a date not past before={self.before}")
        if self.search is False:
            for name in SEARCH_OPTIONS:
                if getattr(self, name):
                    raise refuse(name, getattr(self, name), "nothing while search is off")

    @classmethod
    def make(cls, text: str, **options: Any) -> Question:
        """Build a Question, with a helpful error for an option that does not exist.

        Raises
        ------
        InvalidRequestError
            For an unknown option (naming the nearest) or a value that is not allowed.
        """
        for name in options:
            if name not in OPTIONS:
                raise InvalidRequestError(
                    f"{name}: there is no such option{did_you_mean(name, OPTIONS, 0.5)}.",
                    field=name,
                    hint="Options: " + ", ".join(OPTIONS) + ".",
                )
        return cls(text, **options)

    def given(self) -> dict[str, Any]:
        """Options that differ from their defaults, in values that JSON can hold.

        Pictures, tools and raw fields are left out: they may be large, or private.
        """
        values: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in _NOT_RECORDED or value == field.default or value is None:
                continue
            if isinstance(value, dt.date):
                value = value.isoformat()
            elif isinstance(value, tuple):
                value = list(value)
            values[field.name] = value
        return values

    def __repr__(self) -> str:
        options = "".join(
            f", {name}={shown(value) if isinstance(value, str) else repr(value)}"
            for name, value in self.given().items()
        )
        return f"Question({shown(self.text)}{options})"


def beside(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults that go with the options that are given.

    What is given wins: a default that could not stand beside it is left out.

    Examples
    --------
    >>> beside({"recency": "month", "country": "BE"}, {"after": "2026-01-01"})
    {'country': 'BE'}
    """
    left_out = {name for option in given for name in _REPLACES.get(option, ())}
    if given.get("search") in (False, "no", "false", "off"):
        left_out |= set(SEARCH_OPTIONS)
    return {
        name: value
        for name, value in defaults.items()
        if name not in left_out and name not in given
    }


#: Option -> defaults that it replaces: a period is given in one way or the other.
_REPLACES = {"recency": ("after", "before"), "after": ("recency",), "before": ("recency",)}
#: Options that only mean something when the web is searched.
SEARCH_OPTIONS = ("recency", "after", "before", "domains", "context", "country", "limit")
_NOT_RECORDED = {"text", "schema", "images", "tools", "follow", "extra"}

#: Name -> Option of each field, in the order of help texts.
OPTIONS: dict[str, Option] = {
    field.name: field.metadata["option"]
    for field in dataclasses.fields(Question)
    if "option" in field.metadata
}
