"""Where things are kept: the platform's folders for settings, state and caches.

``IPYPERPLEXITY_HOME`` puts all of them into one folder; each path is worked out when it is asked
for, so that a changed variable counts at once. Nothing is made here.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

from ipyperplexity.errors import ConfigurationError

HOME_VARIABLE = "IPYPERPLEXITY_HOME"
_NAME = "ipyperplexity"


def config_dir() -> Path:
    """Return the folder of settings and credentials.

    Raises
    ------
    ConfigurationError
        If ``IPYPERPLEXITY_HOME`` cannot be a folder.
    """
    return _folder("config")


def state_dir() -> Path:
    """Return the folder of what must outlive a kernel: the ledger, jobs, checkpoints."""
    return _folder("state")


def cache_dir() -> Path:
    """Return the folder of what may be thrown away."""
    return _folder("cache")


def _folder(kind: str) -> Path:
    home = os.environ.get(HOME_VARIABLE, "").strip()
    if home:
        return _below(home, kind) if home.startswith("/") else _absolute(home) / kind
    import platformdirs

    # On macOS and Windows settings and state share a folder: the names of the files differ.
    places = {
        "config": platformdirs.user_config_path,
        "state": platformdirs.user_state_path,
        "cache": platformdirs.user_cache_path,
    }
    return places[kind](_NAME, appauthor=False)


@functools.lru_cache(maxsize=16)
def _below(home: str, kind: str) -> Path:
    """Return a path that depends on nothing else: each request asks for it several times."""
    return Path(home) / kind


def _absolute(home: str) -> Path:
    problem = ""
    try:
        return Path(home).expanduser().absolute()
    except RuntimeError:
        problem = "there is no such user"
    except OSError:
        problem = "the working directory is gone"
    raise ConfigurationError(
        f"{HOME_VARIABLE}: got {home!r}, and {problem}; allowed: a folder.", field=HOME_VARIABLE
    )
