"""The commands of ``%perplexity``: their words, what may follow them, and their help.

A first word is a command only if the rest of the line is that command's own arguments; otherwise
the line is a question. A slip of the keyboard is refused: sent as a question it would be paid for.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.question import OPTIONS
from ipyperplexity.stored_settings import SETTING_NAMES


@dataclass(frozen=True)
class Command:
    """One command.

    Attributes
    ----------
    usage, about : str
        For the help.
    words : tuple of str
        Arguments that stand alone, also offered by completion.
    pattern : str
        Regular expression of other arguments that are the command's own; none by default.
    """

    usage: str
    about: str
    words: tuple[str, ...] = ()
    pattern: str = r"(?!)"

    def takes(self, arguments: str) -> bool:
        """Whether these arguments are the command's own."""
        given = arguments.split()
        if not given or arguments in self.words:
            return True
        flags = [word for word in self.words if word.startswith("-")]
        return all(word in flags for word in given) or bool(re.fullmatch(self.pattern, arguments))


_TOPICS = (
    *("options", "commands", "examples", "search"),
    *("backends", "costs", "privacy", "errors"),
)
_HELP = ("--help", "-h")
#: ``NAME``, ``NAME=VALUE``, and ``NAME VALUE`` of a setting that there is.
_SETTING = rf"[\w-]+|[\w-]+\s*=.*|(?:{'|'.join(SETTING_NAMES)})\s+\S+"
#: A lone word, or what looks like a key wherever it stands: a key is sent nowhere as a question.
_MAYBE_A_KEY = r"\S+(\s+--?\S+)*|(--?\S+\s+)+\S+|.*\b(pplx-|eyJ)\S+.*"
COMMANDS: dict[str, Command] = {
    "status": Command("status", "what is configured, where from, and what is missing"),
    "demo": Command(
        "demo [on|off]", "ask the offline demo engine: no key, no network", ("on", "off")
    ),
    "login": Command(
        "login [--web]",
        "store an API key, typed unseen; --web: log in to perplexity.ai",
        ("--web", "--force", "--refresh", "-f", "--browser", "--cookie", "--manual", *_HELP),
        _MAYBE_A_KEY,
    ),
    "logout": Command(
        "logout [--web|--key]",
        "forget the stored key and the stored login",
        ("--web", "--key", *_HELP),
    ),
    "config": Command(
        "config [--show]",
        "choose the model; --show: all settings; NAME=VALUE: set one",
        ("--show", *_HELP),
        _SETTING,
    ),
    "models": Command("models", "presets and models, with prices and what each cost last"),
    "usage": Command(
        "usage [--all]",
        "this notebook's requests and costs; --all: of all notebooks",
        ("--all",),
    ),
    "jobs": Command("jobs", "what was asked with --background, also before a restart"),
    "cache": Command(
        "cache [--clear]",
        "answers that tables need not pay for again; --clear: forget them",
        ("--clear",),
    ),
    "record": Command(
        "record FILE.tape|stop",
        "record answers as they come, for a class without keys; stop: end it",
        ("stop",),
        r"(?!-)\S+\.tape|[\"'].+\.tape[\"']",
    ),
    "replay": Command(
        "replay FILE.tape|stop",
        "replay a tape [--speed N] [--strict]: no key, no network; stop: end it",
        ("stop",),
        r"((?!-)\S+\.tape|[\"'].+\.tape[\"'])(\s+(--strict|--speed[ =]\S+))*",
    ),
    "panel": Command("panel", "a widget that asks beside the cells, while the kernel stays free"),
    "history": Command("history", "what was asked in this notebook, as a table with the answers"),
    "last": Command("last", "the newest answer, also a stopped or broken one"),
    "help": Command(
        "help [topic]", "options, commands, examples, backends, costs, privacy, errors, or a name"
    ),
}
HELP_TOPICS = (*_TOPICS, *COMMANDS, *OPTIONS)
COMMANDS["help"] = Command(COMMANDS["help"].usage, COMMANDS["help"].about, HELP_TOPICS, r"[\w-]+")


def read_command(text: str) -> tuple[str, str] | None:
    """Return the command that a line is, and its arguments; None if it is a question.

    Raises
    ------
    InvalidRequestError
        If it looks like a command and there is no such command.

    Examples
    --------
    >>> read_command("demo on"), read_command("demo a lambda")
    (('demo', 'on'), None)
    """
    word, *rest = text.split(maxsplit=1) or [""]
    arguments = rest[0].strip() if rest else ""
    if word in COMMANDS and COMMANDS[word].takes(arguments):
        return word, arguments
    _refuse_slip(word, arguments, text)
    return None


def _refuse_slip(word: str, arguments: str, text: str) -> None:
    near: list[str] = []
    command = COMMANDS.get(word.lower())
    if not arguments and (part := word.partition("."))[0] in COMMANDS and part[1]:
        raise InvalidRequestError(
            f"{text}: a command gives a value, and has no parts.",
            field="question",
            hint=f"value = %perplexity {part[0]}   and then   value.{part[2]}",
        )
    if word == "search" and arguments:
        raise InvalidRequestError(
            f"{text}: there is no such command.",
            field="question",
            hint=f"Pages alone: %perplexity -b search {arguments}   As a question: "
            f"%perplexity -- {text}",
        )
    if not arguments:
        near = difflib.get_close_matches(word.lower(), COMMANDS, 1, 0.8)
    elif command is not None and len(arguments.split()) == 1:
        found = difflib.get_close_matches(arguments.lower(), command.words, 1, 0.6)
        near = [f"{word.lower()} {argument}" for argument in found]
        if not near and arguments.startswith("-"):
            near = [command.usage]
    if near:
        raise InvalidRequestError(
            f"{text}: there is no such command. Did you mean %perplexity {near[0]}?",
            field="question",
            hint=f"To ask it as a question: %perplexity -- {text}",
        )


def command_lines(table: Mapping[str, Command] = COMMANDS, indent: str = "  ") -> str:
    """Return the help text of commands."""
    width = max(len(command.usage) for command in COMMANDS.values())
    return "\n".join(
        f"{indent}%perplexity {command.usage:<{width}}  {command.about}"
        for command in table.values()
    )
