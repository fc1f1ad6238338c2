"""``%perplexity config``: choose the default model, show every setting and where it comes from.

What is set here goes into the settings file and so for all notebooks; ``%config PerplexityMagics``
is for one. Nothing is asked where nobody can answer: it is said how to set it by name instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ipyperplexity.answer_parts import format_cost
from ipyperplexity.backends import BACKENDS
from ipyperplexity.errors import Interrupted, InvalidRequestError
from ipyperplexity.markup import terminal
from ipyperplexity.net.address import shown as shown_address
from ipyperplexity.notebook.in_effect import CONFIG, InEffect, in_effect
from ipyperplexity.notebook.line import BY_SPELLING
from ipyperplexity.question import Question
from ipyperplexity.secret_patterns import hide_secrets
from ipyperplexity.stored_settings import (
    SETTING_NAMES,
    check_setting,
    model_setting,
    save_setting,
    settings_path,
)

USAGE = """\
%perplexity config [--show] [NAME=VALUE]

  config                choose the default model
  config --show         all settings, and where each comes from
  config NAME           one setting
  config NAME=VALUE     set a default for all notebooks: config recency=month
  config NAME=          back to the built-in default

%config PerplexityMagics.NAME = ... sets it for this notebook alone.
Settings: """ + ", ".join(SETTING_NAMES)


@dataclass(frozen=True)
class Choice:
    """A model to choose.

    Attributes
    ----------
    name : str
        As in ``model=``.
    label : str
        Its name for people, if it has another one.
    note : str
        What else is worth knowing, such as its cost.
    """

    name: str
    label: str = ""
    note: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.label})" if self.label else self.name


def run_config(
    arguments: Sequence[str],
    settings: Any = None,
    *,
    ask: Callable[[str], str] | None = None,
    models: Callable[[], Sequence[Choice]] | Sequence[Choice] | None = None,
) -> None:
    """Show or change the stored defaults, and say what was done.

    Parameters
    ----------
    arguments : sequence of str
        The words after ``config``; see :data:`USAGE`.
    settings : HasTraits, optional
        What ``%config`` has set in this notebook.
    ask : callable, optional
        Asks a question and returns the answer; ``input`` unless given.
    models : sequence of Choice, or callable that returns one, optional
        What to choose from; the presets unless given, or the known models of the web backend.

    Raises
    ------
    InvalidRequestError
        Naming the setting, what was given, and what is allowed.
    ConfigurationError
        If the settings file cannot be written.
    Interrupted
        If the user stops the choice; nothing has then changed.
    """
    text = " ".join(arguments).strip()
    if any(argument in ("-h", "--help") for argument in arguments):
        print(USAGE)
    elif text == "--show":
        _show(in_effect(settings))
    elif text.startswith("-"):
        raise InvalidRequestError(
            f"config: there is no option {hide_secrets(text.split()[0].partition('=')[0])[:20]}.",
            field="config",
            hint=USAGE,
        )
    elif text:
        _one(text, settings)
    else:
        _choose(settings, ask or input, models)


# --- showing --------------------------------------------------------------------------------------


def _show(settings: Sequence[InEffect]) -> None:
    values = [terminal.fit(_words(setting), 48) for setting in settings]
    widths = max(len(s.name) for s in settings), max(map(terminal.display_width, values))
    for setting, value in zip(settings, values, strict=True):
        gap = " " * (widths[1] - terminal.display_width(value))
        print(f"{setting.name:<{widths[0]}}  {value}{gap}  {setting.origin}")
    there = "" if settings_path().exists() else " (not there yet)"
    print(f"\nThe file is {settings_path()}{there}.")
    print("%perplexity config NAME=VALUE sets a default for all notebooks.")


def _words(setting: InEffect) -> str:
    value = setting.value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value in ("", ()):
        return "not set"
    if setting.name == "base_url":
        return shown_address(value)
    text = ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
    return hide_secrets(" ".join(terminal.strip_controls(text).split()))


# --- one setting ----------------------------------------------------------------------------------

_ASSIGNMENT = re.compile(r"(?P<name>[^\s=]+)(?P<rest>\s*=\s*|\s+|$)(?P<value>.*)", re.DOTALL)


def _one(text: str, settings: Any) -> None:
    match = _ASSIGNMENT.fullmatch(text)
    if match is None:  # it begins with "="
        raise InvalidRequestError(
            "config: a setting's name is missing.", field="config", hint=USAGE
        )
    name, value = _setting_name(match["name"]), _unquoted(match["value"])
    if not match["rest"]:
        known = [setting for setting in in_effect(settings) if setting.name == name]
        if known:
            print(f"{name}: {_words(known[0])} ({known[0].origin})")
            return
    if name == "model":
        backend = _backend(settings)
        if value:
            _check_model(value, backend)
        name = model_setting(backend)
    changed = save_setting(name, value)
    after = {setting.name: setting for setting in in_effect(settings)}
    if changed[name] is None:
        print(f"{name} is no longer set in the file; it is now {_words(after[name])}.")
    else:
        stored = _words(InEffect(name, changed[name], "file"))
        print(f"{name} is now {stored} for all notebooks, in {settings_path()}.")
    for other in changed.keys() - {name}:
        print(f"{other} was cleared: it cannot stand beside {name}.")
    _tell_what_comes_first(after[name])


def _setting_name(word: str) -> str:
    """Return the name that a word means: also a flag's spelling, such as ``domain``."""
    name = word.replace("-", "_")
    if name in SETTING_NAMES:
        return name
    flag = BY_SPELLING.get("--" + word.replace("_", "-"))
    return flag.name if flag is not None and flag.name in SETTING_NAMES else word


def _unquoted(value: str) -> str:
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _tell_what_comes_first(setting: InEffect) -> None:
    if setting.origin in ("file", "default"):
        return
    where = setting.origin.removeprefix("environment, ")
    where = f"%config PerplexityMagics.{setting.name}" if where == CONFIG else where
    print(f"But {where} is {_words(setting)}, and comes first.")


# --- choosing a model -----------------------------------------------------------------------------


def _choose(
    settings: Any,
    ask: Callable[[str], str],
    models: Callable[[], Sequence[Choice]] | Sequence[Choice] | None,
) -> None:
    now = {setting.name: setting for setting in in_effect(settings)}
    backend, current = str(now["backend"].value), str(now["model"].value or "")
    choices = _choices(backend) if models is None else models() if callable(models) else models
    if current and current not in [choice.name for choice in choices]:
        choices = (*choices, Choice(current))
    _list(choices, current, backend)
    word = _answer(ask, len(choices))
    if word is None:
        return
    if not word:
        print("Unchanged.")
        return
    choice = _chosen(word, choices)
    if choice.name not in [known.name for known in choices]:
        _check_model(choice.name, backend)
    save_setting(model_setting(backend), choice.name)
    print(
        f"The default model of {backend} is now {choice}, for all notebooks, in {settings_path()}."
    )
    after = {setting.name: setting for setting in in_effect(settings)}
    _tell_what_comes_first(after["model"])


def _choices(backend: str) -> tuple[Choice, ...]:
    if backend == "web":
        from ipyperplexity.wire import consumer_constants

        return tuple(Choice(slug, label) for slug, label in consumer_constants.MODELS.items())
    if backend == "chat":
        return (Choice(BACKENDS["chat"].default_model),)
    from ipyperplexity import spending
    from ipyperplexity.prices import usual_cost
    from ipyperplexity.wire.models import presets

    costs = spending.ledger().last_costs()

    def cost(name: str) -> str:
        if name not in costs:
            return usual_cost(name)
        usd, at = costs[name]
        return f"{format_cost(usd)} on {at.astimezone():%Y-%m-%d}"

    return tuple(Choice(preset.name, note=cost(preset.name)) for preset in presets())


def _list(choices: Sequence[Choice], current: str, backend: str) -> None:
    widths = [max((len(choice.name) for choice in choices), default=0)]
    widths.append(max((len(choice.label) for choice in choices), default=0))
    print(f"Models of the {backend} backend:")
    for number, choice in enumerate(choices, 1):
        line = f"{number:>4}  {choice.name:<{widths[0]}}  {choice.label:<{widths[1]}}"
        mark = "[current]" if choice.name == current else ""
        # Two columns of their own: a mark does not push the costs aside.
        print(f"{line.rstrip():<{8 + sum(widths)}}  {choice.note:<22}  {mark}".rstrip())
    print("Others can be named too; %perplexity models lists what the service offers.")


def _answer(ask: Callable[[str], str], count: int) -> str | None:
    """Return what the user types; None if there is nobody to ask."""
    from IPython.core.error import StdinNotImplementedError

    interrupted = False
    try:
        return ask(f"1 to {count}, or a name (empty: unchanged): ").strip()
    except (EOFError, OSError, StdinNotImplementedError):
        print("Nobody can be asked here. Set it by name: %perplexity config model=NAME")
    except KeyboardInterrupt:
        interrupted = True
    if interrupted:
        raise Interrupted("stopped; the default model is unchanged")
    return None


def _chosen(word: str, choices: Sequence[Choice]) -> Choice:
    if word.isdecimal():
        number = int(word) if len(word) < 6 else 0
        if not 1 <= number <= len(choices):
            raise InvalidRequestError(
                f"model: got {word[:20]}; allowed: a number from 1 to {len(choices)}, or a name.",
                field="model",
            )
        return choices[number - 1]
    named = [choice for choice in choices if choice.name == word]
    return named[0] if named else Choice(word)


def _backend(settings: Any) -> str:
    return str(next(s for s in in_effect(settings) if s.name == "backend").value)


def _check_model(name: str, backend: str) -> None:
    """Refuse what the backend in use would refuse with each question."""
    check_setting("model", name)  # first of all: it may be a key, and what is refused is shown
    if backend not in BACKENDS:
        return
    problem = ""
    try:
        BACKENDS[backend].wire.request(Question("check", model=name))
    except InvalidRequestError as error:
        problem = error.message
    if problem:
        raise InvalidRequestError(
            problem,
            field="model",
            hint=f"So on the {backend} backend. Others: config web_model=NAME, chat_model=NAME.",
        )
