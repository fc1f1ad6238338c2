"""Defaults of the magic: ``%config PerplexityMagics.recency = "month"``, or a profile's config.

One setting for each option that a command line can give, derived from Question and checked by it.
The key is deliberately no setting: ``%config PerplexityMagics`` prints all values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traitlets import Bool, Enum, HasTraits, Integer, TraitError, TraitType, Unicode, validate

from ipyperplexity.errors import PerplexityError
from ipyperplexity.notebook.line import QUESTION_FLAGS
from ipyperplexity.question import OPTIONS, SEARCH_OPTIONS, Question

#: Options of a single question only.
_NOT_SETTINGS = {"schema"}
SETTINGS = tuple(flag.name for flag in QUESTION_FLAGS if flag.name not in _NOT_SETTINGS)


class SettingError(TraitError):
    """A value that a setting cannot have; shown without frames."""

    def _render_traceback_(self) -> list[str]:
        return [f"SettingError: {self}"]


class OptionTrait(TraitType[Any, Any]):
    """A setting whose values are those of a Question's option."""

    def __init__(self, name: str) -> None:
        default = () if OPTIONS[name].repeatable else True if name == "search" else None
        super().__init__(default, allow_none=True, help=OPTIONS[name].help)
        self._option = name
        self.info_text = OPTIONS[name].help
        self.tag(config=True)

    def validate(self, obj: Any, value: Any) -> Any:
        """Check the value as a Question would."""
        problem = ""
        try:
            return getattr(Question("check", **{self._option: value}), self._option)
        except PerplexityError as error:
            problem = error.message
        raise SettingError(problem)


class _Own(HasTraits):
    backend = Enum(
        ("", "agent", "demo"),
        "",
        help="Whom to ask: agent, demo, or empty for IPYPERPLEXITY_BACKEND.",
    ).tag(config=True)
    base_url = Unicode("", help="Address of the service; empty for PERPLEXITY_BASE_URL.").tag(
        config=True
    )
    max_retries = Integer(2, min=0, help="How often to send again what failed early.").tag(
        config=True
    )
    stream = Bool(True, help="Whether to show the answer while it is written.").tag(config=True)
    conversation = Bool(
        False, help="Whether each question goes on from the last answer (--new starts afresh)."
    ).tag(config=True)

    @validate("base_url")
    def _check_base_url(self, proposal: Any) -> Any:
        from ipyperplexity.net.address import check_base_url

        problem = ""
        try:
            return check_base_url(proposal["value"]) if proposal["value"] else ""
        except PerplexityError as error:
            problem = error.message
        raise SettingError(problem)


#: All settings, as a base class of the magics.
Settings = type("Settings", (_Own,), {name: OptionTrait(name) for name in SETTINGS})


def given_settings(settings: Any, beside: Mapping[str, Any]) -> dict[str, Any]:
    """Return the question options that are set to something and go with those of the line.

    What a line says wins: a setting that could not stand beside it is left out.
    """
    values = {name: getattr(settings, name) for name in SETTINGS}
    if beside.get("search") in ("no", "false", "off"):
        left_out = set(SEARCH_OPTIONS)
    else:
        left_out = {name for given in beside for name in _REPLACES.get(given, ())}
    return {
        name: value
        for name, value in values.items()
        if value not in (None, ()) and name not in left_out
        if not (name == "search" and value is True)
    }


#: Option of a line -> settings that it replaces: a period is given in one way or the other.
_REPLACES = {"recency": ("after", "before"), "after": ("recency",), "before": ("recency",)}
