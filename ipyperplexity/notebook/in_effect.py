"""Which value each setting has at the moment, and where it comes from.

Order: ``%config`` > environment > settings file > built-in default; an argument and an option of
the line come before all of them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ipyperplexity.backends import (
    BACKEND_VARIABLE,
    BACKENDS,
    BASE_URL_VARIABLE,
    DEFAULT_BACKEND,
    MODEL_VARIABLE,
)
from ipyperplexity.stored_settings import SETTING_NAMES, load_settings, settings_for

#: Setting -> the environment variable that comes before the file.
VARIABLES = {
    "backend": BACKEND_VARIABLE,
    "base_url": BASE_URL_VARIABLE,
    "model": MODEL_VARIABLE,
}
_BUILT_IN = {
    "backend": DEFAULT_BACKEND,
    "max_retries": 2,
    "stream": True,
    "search": True,
    "conversation": False,
}
CONFIG = "%config"


@dataclass(frozen=True)
class InEffect:
    """A setting, its value, and where that comes from."""

    name: str
    value: Any
    origin: str


def in_effect(settings: Any = None, stored: Mapping[str, Any] | None = None) -> list[InEffect]:
    """Return all settings with the values that the next question would have.

    Parameters
    ----------
    settings : HasTraits, optional
        What ``%config`` has set.
    stored : mapping, optional
        What the settings file holds, if it has been read.

    Examples
    --------
    >>> [setting.name for setting in in_effect(stored={})][:2]
    ['backend', 'model']
    """
    stored = load_settings() if stored is None else stored
    traits: Mapping[str, Any] = settings.traits(config=True) if settings is not None else {}
    lead = ("backend", "model")
    names = dict.fromkeys((*lead, *SETTING_NAMES, *traits))
    found: dict[str, InEffect] = {}
    for name in names:
        given = getattr(settings, name) if name in traits else None
        variable = VARIABLES.get(name, "")
        value = os.environ.get(variable, "").strip() if variable else ""
        if name in traits and not _is_unset(given, traits[name].default_value):
            found[name] = InEffect(name, given, CONFIG)
        elif value:
            found[name] = InEffect(name, value, f"environment, {variable}")
        elif name == "model" and "model" in (own := settings_for(_backend_of(found), stored)):
            found[name] = InEffect(name, own["model"], "file")
        elif name in stored and name != "model":
            found[name] = InEffect(name, stored[name], "file")
        else:
            backend = BACKENDS.get(_backend_of(found)) if found else None
            of_backend = {"model": "default_model", "base_url": "base_url"}.get(name)
            default = getattr(backend, of_backend, None) if of_backend else _BUILT_IN.get(name)
            if default is None and name in traits:
                default = traits[name].default_value
            found[name] = InEffect(name, default, "default")
    return list(found.values())


def _backend_of(found: Mapping[str, InEffect]) -> str:
    return str(found["backend"].value)


def _is_unset(value: Any, default: Any) -> bool:
    return value is None or value in ("", ()) or value == default
