"""Defaults of the magic: ``%config PerplexityMagics.recency = "month"``, or a profile's config.

One setting for each option that a command line can give, derived from Question and checked by it.
The key is deliberately no setting: ``%config PerplexityMagics`` prints all values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from traitlets import (
    Bool,
    Enum,
    Float,
    HasTraits,
    Integer,
    TraitError,
    TraitType,
    Unicode,
    observe,
    validate,
)

from ipyperplexity.backend_names import BACKEND_NAMES
from ipyperplexity.errors import PerplexityError
from ipyperplexity.notebook.line import QUESTION_FLAGS
from ipyperplexity.question import OPTIONS, Question
from ipyperplexity.question import beside as defaults_beside

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
        ("", *BACKEND_NAMES),
        "",
        help="Whom to ask: agent, chat, web, demo, or empty for IPYPERPLEXITY_BACKEND.",
    ).tag(config=True)
    base_url = Unicode("", help="Address of the service; empty for PERPLEXITY_BASE_URL.").tag(
        config=True
    )
    max_retries = Integer(
        None, min=0, allow_none=True, help="How often to send again what failed early; None for 2."
    ).tag(config=True)
    budget = Float(
        None,
        allow_none=True,
        help="US dollars that this kernel may spend: a question that would pass it is refused.",
    ).tag(config=True)
    nest_asyncio = Bool(
        False,
        help="Run coroutine tools on the kernel's own loop; needs ipyperplexity[nest].",
    ).tag(config=True)
    stream = Bool(
        None,
        allow_none=True,
        help="Whether to show the answer while it is written; None for yes.",
    ).tag(config=True)
    conversation = Bool(
        None,
        allow_none=True,
        help="Whether each question goes on from the last answer (--new starts afresh); "
        "None for no.",
    ).tag(config=True)

    replay = Unicode(
        "", help="A tape to answer from, without a key or a network: lesson.tape; empty for none."
    ).tag(config=True)

    @validate("replay")
    def _check_tape(self, proposal: Any) -> Any:
        """Replay it: what cannot be replayed is no value."""
        from pathlib import Path

        from ipyperplexity.tapes import deck

        problem = ""
        try:
            if proposal["value"]:
                deck.replay(Path(proposal["value"]).expanduser())
        except PerplexityError as error:
            problem = error.message
        if problem:
            raise SettingError(problem)
        return proposal["value"]

    @observe("replay")
    def _end_tape(self, change: Any) -> None:
        from ipyperplexity.tapes import deck

        if not change["new"]:
            deck.stop_replaying()

    @validate("budget")
    def _check_budget(self, proposal: Any) -> Any:
        budget = proposal["value"]
        if budget is not None and not 0 <= budget < math.inf:
            raise SettingError(f"budget: got {budget}; allowed: US dollars from 0 up, or None.")
        return budget

    @validate("nest_asyncio")
    def _check_nest(self, proposal: Any) -> Any:
        problem = ""
        if proposal["value"]:
            from ipyperplexity.tools.coroutines import check_place

            try:
                check_place("kernel")
            except ImportError as error:
                problem = f"nest_asyncio: {error}"
        if problem:
            raise SettingError(problem)
        return proposal["value"]

    @observe("nest_asyncio")
    def _place_coroutines(self, change: Any) -> None:
        from ipyperplexity import tools

        tools.run_coroutines_on = "kernel" if change["new"] else "helper thread"

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
    given = {
        name: value
        for name, value in values.items()
        if value not in (None, ()) and not (name == "search" and value is True)
    }
    return defaults_beside(given, beside)
