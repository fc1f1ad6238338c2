"""The names of the backends, for what must be light: settings, options, completion."""

from __future__ import annotations

BACKEND_NAMES = ("agent", "chat", "web", "demo")
#: Not a backend of answers: ``%perplexity -b search`` gives sources alone.
SEARCH = "search"
