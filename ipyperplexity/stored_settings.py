"""The defaults of this user: what the settings file may hold, checked as arguments are.

A default goes for every notebook, and comes last: argument > magic option > ``%config`` >
environment > this file > built-in default. The file never holds a key.
"""

from __future__ import annotations

import datetime as dt
import math
import os
from collections.abc import Callable, Mapping
from typing import Any

from ipyperplexity.backend_names import BACKEND_NAMES
from ipyperplexity.errors import InvalidRequestError, PerplexityError
from ipyperplexity.option_checks import did_you_mean, one_of, refuse, whole_number
from ipyperplexity.question import OPTIONS, Question, beside
from ipyperplexity.secret_patterns import MASK, hide_secrets
from ipyperplexity.store.settings_file import SettingsFile, settings_path

__all__ = [
    "SETTING_NAMES",
    "load_settings",
    "model_setting",
    "save_setting",
    "settings_for",
    "settings_path",
]

#: Options of a question that can be a default: those of a command line, but for a variable's name.
_QUESTION_OPTIONS = tuple(
    name for name, option in OPTIONS.items() if option.flags and name != "schema"
)


def load_settings() -> dict[str, Any]:
    """Return the stored defaults, checked; what is not set is not in it.

    Costs microseconds while the file is unchanged, so each question asks anew. A name that is
    unknown and a value that is not allowed are left out with a ``PerplexityWarning``, once for
    each state of the file. Three are too dear to be left out: a bad ``budget`` counts as 0, so that
    nothing is spent, and a bad ``backend`` or ``base_url`` stays, so that the question is refused
    and does not go elsewhere.

    Examples
    --------
    >>> isinstance(load_settings(), dict)
    True
    """
    return _file.load()


def model_setting(backend: str) -> str:
    """Return the name of the setting that holds a backend's model.

    Examples
    --------
    >>> model_setting("agent"), model_setting("web")
    ('model', 'web_model')
    """
    name = f"{backend}_model"
    return name if name in _MODELS else "model"


def settings_for(backend: str, stored: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the stored defaults as they go for a backend: its own model is the ``model``.

    Parameters
    ----------
    backend : str
        The one that is asked.
    stored : mapping, optional
        What :func:`load_settings` returned, if it has been called.

    Examples
    --------
    >>> settings_for("web", {"model": "low", "web_model": "gpt54", "recency": "day"})
    {'recency': 'day', 'model': 'gpt54'}
    """
    stored = load_settings() if stored is None else stored
    settings = {name: value for name, value in stored.items() if name not in ("model", *_MODELS)}
    model = stored.get(model_setting(backend))
    return settings if model is None else {**settings, "model": model}


def save_setting(name: str, value: Any) -> dict[str, Any]:
    """Store one default, or clear it with None or blank text.

    What could not stand beside the new value is cleared with it (a period is given as ``recency``
    or as ``after`` and ``before``).

    Parameters
    ----------
    name : str
        One of :data:`SETTING_NAMES`.
    value : object
        As for a question; text is read as on a command line.

    Returns
    -------
    dict
        Name -> its value now: the one that was set, and None for each that was cleared.

    Raises
    ------
    InvalidRequestError
        If there is no such setting, or the value is not allowed, or looks like a key.
    ConfigurationError
        If the file cannot be written.
    """
    checked = check_setting(name, value)
    changed: dict[str, Any] = {name: checked}

    def change(record: dict[str, Any]) -> dict[str, Any]:
        if checked is None:
            return {known: kept for known, kept in record.items() if known != name}
        kept = beside(record, {name: checked})
        changed.update(dict.fromkeys(set(record) - set(kept) - {name}))
        options = {known: kept[known] for known in _QUESTION_OPTIONS if known in kept}
        if name in OPTIONS:
            _refuse_clash(name, {**options, name: checked})
        return {**kept, name: _plain(checked)}

    _file.update(change)
    return changed


def check_setting(name: str, value: Any) -> Any:
    """Return a setting's value in its one form; None for one that is not set.

    Raises
    ------
    InvalidRequestError
        If there is no such setting, or the value is not allowed.

    Examples
    --------
    >>> check_setting("budget", "2.50"), check_setting("domains", "python.org, -x.com")
    (2.5, ('python.org', '-x.com'))
    """
    if name not in SETTING_NAMES:
        raise _unknown(name)
    if _holds_secret(value):
        # Before any check: a refusal says what was given.
        raise InvalidRequestError(
            f"{name}: got what looks like a key; allowed: anything but a key.",
            field=name,
            hint=_NO_KEY,
        )
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    return _CHECKS[name](value, name)


# --- the checks -----------------------------------------------------------------------------------


def _of_question(value: Any, name: str) -> Any:
    return getattr(Question("check", **{name: value}), name)


def _model(value: Any, name: str) -> Any:
    return _of_question(value, "model")


def _base_url(value: Any, name: str) -> str:
    from ipyperplexity.net.address import check_base_url

    problem = ""
    try:
        return check_base_url(value)
    except PerplexityError as error:
        problem = error.message
    raise InvalidRequestError(problem, field=name)


def _shown_address(value: Any) -> str:
    from ipyperplexity.net.address import shown

    return shown(value)


def _amount(value: Any, name: str) -> float:
    number = math.nan
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        text = value.strip().removeprefix("$") if isinstance(value, str) else value
        try:
            number = float(text)
        except (ValueError, OverflowError):
            number = math.nan
    if not 0 <= number < math.inf:
        raise refuse(name, value, "US dollars, from 0 up")
    return number


_WORDS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}


def _yes_or_no(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return value
    word = _WORDS.get(value.strip().lower()) if isinstance(value, str) else None
    if word is None:
        raise refuse(name, value, "yes or no")
    return word


#: Backends whose models have names of their own: `model` is that of the others.
_MODELS = ("chat_model", "web_model")
_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(_QUESTION_OPTIONS, _of_question),
    **dict.fromkeys(_MODELS, _model),
    "backend": one_of(BACKEND_NAMES),
    "base_url": _base_url,
    "max_retries": whole_number(0, None),
    "budget": _amount,
    "stream": _yes_or_no,
    "conversation": _yes_or_no,
}
#: Names of all settings that can be stored.
SETTING_NAMES: tuple[str, ...] = tuple(_CHECKS)
#: What stands for a value that is not allowed, where leaving it out could cost or leak.
_INSTEAD: dict[str, Callable[[Any], Any]] = {
    "budget": lambda value: 0.0,
    "backend": lambda value: hide_secrets(str(value))[:60],
    "base_url": lambda value: hide_secrets(_shown_address(value)),
}
_EFFECTS = {
    "budget": "Until it is mended nothing may be spent.",
    "backend": "Until it is mended no question is asked.",
    "base_url": "Until it is mended no question is asked.",
}
_NO_KEY = "A key is stored with %perplexity login (in a shell: ipyperplexity login)."
_KEY_NAMES = ("key", "apikey", "token", "cookie", "password", "secret")
_KEY_VARIABLES = ("PERPLEXITY_API_KEY", "PPLX_API_KEY", "PERPLEXITY_SESSION_TOKEN")


def _unknown(name: str) -> InvalidRequestError:
    if _is_key_name(name):
        return InvalidRequestError(
            "There is no setting for a key: settings are shown and saved.",
            field="config",
            hint=f"{_NO_KEY} If you typed one, clear this cell and its output.",
        )
    near = did_you_mean(name, SETTING_NAMES)
    return InvalidRequestError(
        f"{hide_secrets(name)[:40]!r}: there is no such setting{near}.",
        field="config",
        hint=f"Settings: {', '.join(SETTING_NAMES)}.",
    )


def _is_key_name(name: str) -> bool:
    word = name.lower().replace("_", "").replace("-", "")
    # `max_tokens` with a slip in it is not meant.
    return any(word.endswith(ending) for ending in _KEY_NAMES)


def _holds_secret(value: Any) -> bool:
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    if isinstance(value, list | tuple):
        return any(map(_holds_secret, value))
    if not isinstance(value, str):
        return False
    known = (os.environ.get(name, "").strip() for name in _KEY_VARIABLES)
    return hide_secrets(value) != value or any(len(key) >= 8 and key in value for key in known)


# --- reading and writing --------------------------------------------------------------------------


def _read(record: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    path = settings_path()
    settings: dict[str, Any] = {}
    complaints: list[str] = []
    for name, value in record.items():
        problem: InvalidRequestError | None = None
        try:
            checked = check_setting(name, value)
        except InvalidRequestError as error:
            problem, checked = error, None
        if problem is not None:
            secret = name not in SETTING_NAMES or _holds_secret(value)
            instead = _INSTEAD.get(name)
            if instead is not None:
                checked = instead(MASK if secret else value)
            effect = _EFFECTS.get(name, "It does not count.")
            hint = problem.hint if secret and problem.hint else ""
            complaints.append(f"{problem.message} {effect} (In {path}.) {hint}".strip())
        if checked is not None:
            settings[name] = checked
    return _without_clashes(settings, complaints, str(path)), complaints


def _without_clashes(settings: dict[str, Any], complaints: list[str], path: str) -> dict[str, Any]:
    """Return the settings without those that cannot stand beside others of them."""
    while True:
        options = {name: settings[name] for name in _QUESTION_OPTIONS if name in settings}
        try:
            Question("check", **options)
        except InvalidRequestError as error:
            message, field = error.message, error.field
        else:
            return settings
        if field not in options:
            return settings
        complaints.append(f"{message} It does not count. (In {path}.)")
        settings = {name: value for name, value in settings.items() if name != field}


def _refuse_clash(name: str, options: dict[str, Any]) -> None:
    """Refuse a value that cannot stand beside others of the file; what else is wrong stays."""
    good: dict[str, Any] = {}
    for option, value in options.items():
        try:
            checked = check_setting(option, value)
        except InvalidRequestError:
            continue
        if checked is not None:
            good[option] = checked
    problem = ""
    try:
        Question("check", **good)
    except InvalidRequestError as error:
        problem = error.message
    if problem:
        raise InvalidRequestError(
            problem,
            field=name,
            hint="%perplexity config --show lists what is set; NAME= clears it.",
        )


def _plain(value: Any) -> Any:
    if isinstance(value, dt.date):
        return value.isoformat()
    return list(value) if isinstance(value, tuple) else value


_file = SettingsFile(_read)
