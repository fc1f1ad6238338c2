"""The registry of backends, the names of the settings, and the record of what is configured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ipyperplexity.errors import ConfigurationError
from ipyperplexity.wire import agent
from ipyperplexity.wire.base import Wire

DEFAULT_BASE_URL = "https://api.perplexity.ai"
BASE_URL_VARIABLE = "PERPLEXITY_BASE_URL"
BACKEND_VARIABLE = "IPYPERPLEXITY_BACKEND"
MODEL_VARIABLE = "IPYPERPLEXITY_MODEL"


@dataclass(frozen=True)
class Backend:
    """One line of the registry: a wire, and what it needs."""

    wire: Wire
    needs_key: bool
    about: str


BACKENDS: dict[str, Backend] = {
    "agent": Backend(agent.WIRE, True, "Perplexity's Agent API; needs an API key"),
    "demo": Backend(agent.WIRE, False, "the embedded engine: offline, no key, Python's own docs"),
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
        Where the key comes from, never the key.
    problem, hint : str
        What is wrong, and what to do.
    options : str
        Defaults that were set for questions, such as ``recency=month``.
    """

    state: str
    backend: str
    base_url: str
    model: str
    key: str
    problem: str = ""
    hint: str = ""
    options: str = ""

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
            "key": self.key,
            "problem": self.problem,
            "what to do": self.hint,
        }
        return {name: fact for name, fact in facts.items() if fact}

    def __repr__(self) -> str:
        return "\n".join(f"{name:>10}  {fact}" for name, fact in self.lines().items())


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
