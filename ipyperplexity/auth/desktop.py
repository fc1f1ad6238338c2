"""The login of Perplexity's desktop app on macOS (consumer-web 3.3).

It is looked for when a user logs in, and never for a question: reading another program's settings
is something to be asked for.
"""

from __future__ import annotations

import os
import subprocess
import sys

from ipyperplexity.auth.cookies import is_sendable
from ipyperplexity.auth.login_record import WebLogin
from ipyperplexity.auth.web_login import may_borrow
from ipyperplexity.net.redact import Secret

_COMMAND = ("defaults", "read", "ai.perplexity.mac", "authToken")
_TIMEOUT = 5.0
#: pi-perplexity's name; it is about the desktop app alone.
_NO_BORROW_OF_PI = "PI_AUTH_NO_BORROW"


def find_desktop_login(platform: str = sys.platform) -> WebLogin | None:
    """Return the login of the desktop app, or None if there is none or it may not be used.

    Parameters
    ----------
    platform : str
        As ``sys.platform``.
    """
    if platform != "darwin" or not may_borrow() or os.environ.get(_NO_BORROW_OF_PI) == "1":
        return None
    token = _ask_defaults()
    return WebLogin(token, origin="the Perplexity desktop app") if token else None


def _ask_defaults() -> Secret | None:
    try:
        found = subprocess.run(
            _COMMAND,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=True,
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    token = found.stdout.strip()
    usable = token and token != "(null)" and " " not in token and is_sendable(token)
    return Secret(token) if usable else None
