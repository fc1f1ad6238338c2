"""The registry of backends, the names of the settings, and the record of what is configured."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

from ipyperplexity.errors import ConfigurationError
from ipyperplexity.wire import agent, chat, consumer, consumer_constants
from ipyperplexity.wire.base import Wire

DEFAULT_BASE_URL = "https://api.perplexity.ai"
BASE_URL_VARIABLE = "PERPLEXITY_BASE_URL"
BACKEND_VARIABLE = "IPYPERPLEXITY_BACKEND"
MODEL_VARIABLE = "IPYPERPLEXITY_MODEL"


@dataclass(frozen=True)
class Backend:
    """One line of the registry: a wire, and what it needs.

    Attributes
    ----------
    wire : Wire
    credential : str
        ``key``, ``key unless local``, ``web login`` or ``none``.
    about : str
        One line for users.
    default_model : str
        What is asked when nobody names a model.
    base_url : str
        Where it is unless the user says otherwise.
    follows_variable : bool
        Whether ``PERPLEXITY_BASE_URL`` moves it: a login for one site is not sent to another.
    has_jobs : bool
        Whether a question can be left to it and fetched later.
    """

    wire: Wire
    credential: str
    about: str
    default_model: str
    base_url: str = DEFAULT_BASE_URL
    follows_variable: bool = True
    has_jobs: bool = False


BACKENDS: dict[str, Backend] = {
    "agent": Backend(
        agent.WIRE,
        "key",
        "Perplexity's Agent API; needs an API key",
        agent.DEFAULT_PRESET,
        has_jobs=True,
    ),
    "chat": Backend(
        chat.WIRE,
        "key unless local",
        "chat-completions, for gateways and local servers; Perplexity itself retired it",
        chat.DEFAULT_MODEL,
    ),
    "web": Backend(
        consumer.WIRE,
        "web login",
        "perplexity.ai with your own subscription; unofficial",
        consumer_constants.DEFAULT_MODEL,
        consumer_constants.ORIGIN,
        follows_variable=False,
    ),
    "demo": Backend(
        agent.WIRE,
        "none",
        "the embedded engine: offline, no key, Python's own docs",
        agent.DEFAULT_PRESET,
        has_jobs=True,
    ),
}
DEFAULT_BACKEND = "agent"


@dataclass(frozen=True)
class Status:
    """What is configured, without asking the service.

    Attributes
    ----------
    state : str
        ``ready``, ``missing-credential`` or ``misconfigured``.
    backend, base_url, model : str
        What the next question would use.
    key : str
        Where the key or the login comes from, never its value.
    problem, hint : str
        What is wrong, and what to do.
    options : str
        Defaults that were set for questions, such as ``recency=month``.
    others : tuple of (str, str)
        Credentials that this backend does not use, and where they come from.
    """

    state: str
    backend: str
    base_url: str
    model: str
    key: str
    problem: str = ""
    hint: str = ""
    options: str = ""
    others: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return self.state == "ready"

    def lines(self) -> dict[str, str]:
        """Return the facts to show, in order."""
        about = BACKENDS[self.backend].about if self.backend in BACKENDS else ""
        facts = {
            "status": self.state,
            "backend": f"{self.backend} ({about})" if about else self.backend,
            "address": self.base_url,
            "model": self.model,
            "options": self.options,
            "login" if self.backend == "web" else "key": self.key,
            **dict(self.others),
            "problem": self.problem,
            "what to do": self.hint,
        }
        return {name: fact for name, fact in facts.items() if fact}

    def __repr__(self) -> str:
        from ipyperplexity.markup import terminal

        wrap = textwrap.TextWrapper(
            terminal.columns(),
            subsequent_indent=" " * 12,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return "\n".join(wrap.fill(f"{name:>10}  {fact}") for name, fact in self.lines().items())


def known_backend(name: Any, origin: str) -> str:
    """Return a backend's name if there is one of that name.

    Raises
    ------
    ConfigurationError
        Naming ``origin``, where the name came from, and those that there are.
    """
    if not isinstance(name, str) or name not in BACKENDS:
        listed = "; ".join(f"{known}: {backend.about}" for known, backend in BACKENDS.items())
        raise ConfigurationError(
            f"{origin}: got {name!r}; allowed: {', '.join(BACKENDS)}.", field="backend", hint=listed
        )
    return str(name)
