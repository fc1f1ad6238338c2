"""The line after ``%perplexity``: options, a command, or a question; read without running anything.

Options come first; what follows them is the question, byte by byte, whatever quotes, dashes or
braces it holds. Options of a question are derived from :data:`ipyperplexity.question.OPTIONS`.
"""

from __future__ import annotations

import difflib
import keyword
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ipyperplexity.backend_names import BACKEND_NAMES, SEARCH
from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.notebook import help_topics
from ipyperplexity.notebook.command_table import COMMANDS, command_lines, read_command
from ipyperplexity.option_checks import Option, did_you_mean, refuse
from ipyperplexity.question import OPTIONS
from ipyperplexity.search_query import OTHER_NAMES, SEARCH_OPTIONS


@dataclass(frozen=True)
class Flag:
    """One command-line option of the magic.

    Attributes
    ----------
    name : str
        Where its value goes: a question option's name, or one of the magic's own.
    option : Option
    takes : str
        ``value``, ``nothing``, or ``maybe`` (a value if the next word is one).
    """

    name: str
    option: Option
    takes: str = "value"


#: Options that are about the cell, not about the question.
MAGIC_FLAGS = (
    Flag("out", Option("Keep the answer in this variable.", ("-o", "--out"), "NAME")),
    Flag("quiet", Option("Show nothing; only keep the answer.", ("-q", "--quiet")), "nothing"),
    Flag(
        "backend",
        Option(
            "Whom to ask: agent, chat, web or demo; search: sources alone, without an answer.",
            ("-b", "--backend"),
            "NAME",
            choices=(*BACKEND_NAMES, SEARCH),
        ),
    ),
    Flag(
        "follow",
        Option(
            "Go on from the last answer, or from the one in a variable.",
            ("-c", "--continue"),
            "[NAME]",
        ),
        "maybe",
    ),
    Flag("new", Option("Start afresh, whatever --continue a setting says.", ("--new",)), "nothing"),
    Flag(
        "background",
        Option("Leave it to the service, and go on: the cell's value is a Job.", ("--background",)),
        "nothing",
    ),
    Flag(
        "each",
        Option(
            "Ask it of each row of this table; {column} is the row's value.", ("--each",), "NAME"
        ),
    ),
    Flag("no_stream", Option("Wait for the whole answer.", ("--no-stream",)), "nothing"),
    Flag("no_vars", Option("Leave {{name}} as it is.", ("--no-vars",)), "nothing"),
    Flag("raw", Option("Show the answer's Markdown as plain text.", ("--raw",)), "nothing"),
)
QUESTION_FLAGS = tuple(Flag(name, option) for name, option in OPTIONS.items() if option.flags)
_ASKING = {spelling for flag in (*QUESTION_FLAGS, *MAGIC_FLAGS) for spelling in flag.option.flags}
#: Options of a search that a question does not have.
SEARCH_FLAGS = tuple(
    Flag(name, option)
    for name, option in SEARCH_OPTIONS.items()
    if option.flags and not _ASKING.intersection(option.flags)
)
#: What a search takes several of and a question one.
_LISTED_IN_SEARCH = tuple(
    name
    for name, option in OPTIONS.items()
    if not option.repeatable and SEARCH_OPTIONS.get(OTHER_NAMES.get(name, name), option).repeatable
)
FLAGS = (*QUESTION_FLAGS, *MAGIC_FLAGS, *SEARCH_FLAGS)
BY_SPELLING: dict[str, Flag] = {spelling: flag for flag in FLAGS for spelling in flag.option.flags}


@dataclass(frozen=True)
class Line:
    """What a line says.

    Attributes
    ----------
    question : dict
        Options of the Question, or of a search that have the same flags.
    search : dict
        Options that only a search has.
    magic : dict
        Options of the magic itself.
    text : str
        What follows the options.
    notices : tuple of str
        What the user should know.
    literal : bool
        Whether ``--`` says that what follows is a question, whatever it looks like.
    """

    question: dict[str, Any] = field(default_factory=dict)
    magic: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    notices: tuple[str, ...] = ()
    literal: bool = False
    search: dict[str, Any] = field(default_factory=dict)

    @property
    def is_search(self) -> bool:
        """Whether it asks for sources alone."""
        return self.magic.get("backend") == SEARCH

    @property
    def command(self) -> tuple[str, str] | None:
        """The command and its argument, if the line is one.

        Raises
        ------
        InvalidRequestError
            If it looks like a command and there is no such command.
        """
        if self.literal or self.question or self.magic or self.search:
            return None
        return read_command(self.text)


_WORD = re.compile(r"""\s*(?:"([^"\n]*)"|'([^'\n]*)'|(\S+))""")
# Anything that begins like an option is one, known or not: sent as text it would be paid for.
_OPTION = re.compile(r"\s*(--?[A-Za-z][^\s=]*)(?:=(?=\S)|(?=\s|$|=))")


def parse(line: str, is_answer: Callable[[str], bool] = lambda name: False) -> Line:
    """Read a line.

    Parameters
    ----------
    line : str
        As IPython gives it, with nothing expanded.
    is_answer : callable
        Tells whether a word is the name of an answer that ``--continue`` may mean.

    Raises
    ------
    InvalidRequestError
        For an unknown option, one without its value, or a variable name that is none.

    Examples
    --------
    >>> line = parse("-m fast --domain python.org what's new in {x}?")
    >>> line.question, line.text
    ({'model': 'fast', 'domains': ['python.org']}, "what's new in {x}?")
    """
    if line.strip() in _HELP_SPELLINGS:
        return Line(text="help")
    question: dict[str, Any] = {}
    magic: dict[str, Any] = {}
    search: dict[str, Any] = {}
    position = 0
    while match := _OPTION.match(line, position):
        # The Python way of writing a name is taken too: --max_tokens is --max-tokens.
        spelling, attached = match[1].replace("_", "-"), match[0].endswith("=")
        flag = BY_SPELLING.get(spelling)
        if flag is None:
            raise _unknown(spelling)
        position = match.end()
        value: Any = True
        if flag.takes == "nothing" and attached:
            raise InvalidRequestError(f"{spelling}: it takes no value.", field=flag.name)
        if flag.takes == "value":
            value, position = _value(flag, spelling, line, position)
        elif flag.takes == "maybe":
            value, position = _maybe(flag, spelling, line, position, attached, is_answer)
        if flag.name == "backend" and value not in flag.option.choices:
            near = did_you_mean(value, flag.option.choices)
            raise refuse(spelling, value, ", ".join(flag.option.choices) + near)
        kinds = ((QUESTION_FLAGS, question), (SEARCH_FLAGS, search), (MAGIC_FLAGS, magic))
        target = next(values for flags, values in kinds if flag in flags)
        if flag.option.repeatable:
            target.setdefault(flag.name, []).append(value)
        elif flag.name in _LISTED_IN_SEARCH and flag.name in target:
            target[flag.name] += f", {value}"  # which a question refuses, and says why
        else:
            target[flag.name] = value
    rest = line[position:].strip()
    literal = re.match(r"--(\s|$)", rest) is not None
    parsed = Line(
        question,
        magic,
        rest[2:].strip() if literal else rest,
        () if literal else _late_options(rest),
        literal=literal,
        search=search,
    )
    _check_kind(parsed)
    return parsed


#: Options of the cell that mean nothing for a search.
_NOT_FOR_SEARCH = ("follow", "new", "background", "each", "no_stream", "raw")


def fits_search(flag: Flag) -> bool:
    """Whether a search has the option."""
    if flag in MAGIC_FLAGS:
        return flag.name not in _NOT_FOR_SEARCH
    return OTHER_NAMES.get(flag.name, flag.name) in SEARCH_OPTIONS


def _check_kind(line: Line) -> None:
    """Refuse what a search has and a question has not, or the other way round."""
    if not line.is_search:
        for name in line.search:
            spelling = SEARCH_OPTIONS[name].flags[0]
            raise InvalidRequestError(
                f"{spelling}: only a search has it.",
                field=name,
                hint=f"%perplexity -b search {spelling} ... finds sources, without an answer.",
            )
        return
    for flag in FLAGS:
        if flag.name in {**line.question, **line.magic} and not fits_search(flag):
            raise InvalidRequestError(
                f"{flag.option.flags[-1]}: a search has no such option.",
                field=flag.name,
                hint="%perplexity help search lists those that it has.",
            )


_HELP_SPELLINGS = ("-h", "--help")


def _value(flag: Flag, spelling: str, line: str, position: int) -> tuple[str, int]:
    word = _WORD.match(line, position)
    if word is None or word[0].strip() in BY_SPELLING:
        raise InvalidRequestError(
            f"{spelling}: a {flag.option.metavar or 'value'} must follow it.", field=flag.name
        )
    value = next(group for group in word.groups() if group is not None)
    if word[3] is not None and value[0] in "\"'":
        raise InvalidRequestError(
            f"{spelling}: the quotation mark before {value[1:40]!r} is never closed.",
            field=flag.name,
        )
    if flag.name == "out" and (not value.isidentifier() or keyword.iskeyword(value)):
        raise InvalidRequestError(
            f"{spelling}: got {value!r}; allowed: the name of a variable.", field="out"
        )
    return value, word.end()


def _maybe(
    flag: Flag,
    spelling: str,
    line: str,
    position: int,
    attached: bool,
    is_answer: Callable[[str], bool],
) -> tuple[str | bool, int]:
    """Read the name of an answer, if there is one; else what follows is the question."""
    word = _WORD.match(line, position)
    name = word[0].strip() if word else ""
    if word and is_answer(name):
        return name, word.end()
    if attached:
        raise InvalidRequestError(
            f"{spelling}: got {name!r}; allowed: a variable that holds an answer.", field=flag.name
        )
    return True, position


def _unknown(spelling: str) -> InvalidRequestError:
    near = difflib.get_close_matches(spelling, BY_SPELLING, 1, 0.5)
    guess = f" Did you mean {near[0]}?" if near else ""
    return InvalidRequestError(
        f"{spelling}: there is no such option.{guess}",
        field=spelling.lstrip("-"),
        hint="%perplexity? lists them. Put -- before a question that begins with a dash.",
    )


def _late_options(text: str) -> tuple[str, ...]:
    """Notice a known long option inside the question: it is sent as text, maybe by mistake."""
    late = [
        word for word in re.findall(r"(?<!\S)--[a-z][a-z-]*(?!\S)", text) if word in BY_SPELLING
    ]
    if not late:
        return ()
    return (f"{late[0]} was sent as part of the question: options go before it.",)


def option_lines(flags: tuple[Flag, ...] = FLAGS, indent: str = "  ") -> str:
    """Return the help text of options, one or two lines each."""
    lines = []
    for flag in flags:
        spelled = ", ".join(flag.option.flags)
        if flag.takes != "nothing" and flag.option.metavar:
            spelled += f" {flag.option.metavar}"
        help_text = flag.option.help
        if flag.option.repeatable:
            help_text += " May be repeated."
        lead = f"{indent}{spelled}"
        lines.append(
            f"{lead:<28} {help_text}" if len(lead) < 28 else f"{lead}\n{'':<28} {help_text}"
        )
    return "\n".join(lines)


EXAMPLES = """\
  %%perplexity --recency month -o news
  What changed in Python packaging?

  answer = %perplexity -m fast --domain docs.python.org What is a lambda?
  answer.to_pandas()

  sources = %perplexity -b search --limit 5 python packaging news

  %%perplexity -c
  And how do I use it with sorted()?

  %%perplexity
  Which of these grew fastest? {{df}}"""


def help_text(topic: str = "") -> str:
    """Return the help of the magic: all of it, or a topic: ``options``, ``search`` ...."""
    parts = {
        "options": "Options of a question:\n"
        + option_lines(QUESTION_FLAGS)
        + "\n\nOptions of the cell:\n"
        + option_lines(MAGIC_FLAGS),
        "search": "Options of %perplexity -b search QUERY (a cell may hold up to 5, one a line):\n"
        + option_lines(tuple(Flag(n, o) for n, o in SEARCH_OPTIONS.items() if o.flags)),
        "commands": "Commands:\n" + command_lines(),
        "examples": "Examples:\n" + EXAMPLES,
    }
    if topic in parts:
        return parts[topic]
    flags = tuple(flag for flag in FLAGS if flag.name == topic)
    if flags:
        return option_lines(flags, "")
    if topic in OPTIONS:
        return f"{topic}: {OPTIONS[topic].help} (In Python only.)"
    if topic in COMMANDS:
        more = help_topics.OF_COMMANDS.get(topic)
        return command_lines({topic: COMMANDS[topic]}, "") + (f"\n\n{more}" if more else "")
    if topic in help_topics.TOPICS:
        return help_topics.TOPICS[topic]
    if topic == "errors":
        return help_topics.errors_overview()
    if found := help_topics.error_help(topic):
        return found
    parts["search"] = "Options that only -b search has (help search lists all of them):\n"
    parts["search"] += option_lines(SEARCH_FLAGS)
    parts["topics"] = (
        "More: %perplexity help TOPIC, of backends, costs, privacy, errors, an error's code, or\n"
        "the name of an option or a command."
    )
    order = ("examples", "options", "search", "commands", "topics")
    lead = f"There is no help on {topic!r}.\n\n" if topic else ""
    return lead + _OVERVIEW + "\n\n".join(parts[part] for part in order)


_OVERVIEW = """\
Ask Perplexity; the answer streams below the cell, with its sources.

  %%perplexity [options]                      the cell's text is the question; words after the
                                              options on this line are its beginning
  answer = %perplexity [options] question     the rest of the line is the question

The answer is an object: str(answer) is its text, answer.to_pandas() the table of its sources,
answer.follow_up("...") goes on. It is also in _, in %perplexity last and, with -o NAME, in NAME.
{{name}} puts a variable into the question; single braces and $ are left alone.

"""
