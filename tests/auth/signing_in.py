"""A user of their own, a perplexity.ai to sign in to, and a search for secrets in what is shown."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ipyperplexity.net.redact import Secret
from tests.support.raw_server import RawConnection, RawRequest, RawServer, http_head

# In pieces, so that source lines, which a traceback quotes, do not hold them.
TOKEN = "eyJ" + "hbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..aXZpdml2." + "Y2lwaGVy" * 3 + ".dGFn"
NEW = "eyJ" + "hbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..bmV3bmV3." + "cm90YXRl" * 3 + ".dGFn"
CSRF = "csrf" + "-5ecre7-0123456789"
CODE = "9f3e2" + "-knzol"
KEY = "pplx-" + "5ecre7" * 4
EMAIL = "ada@example.org"
SESSION = "__Secure-next-auth.session-token"
VARIABLES = (
    "PERPLEXITY_API_KEY",
    "PPLX_API_KEY",
    "PERPLEXITY_SESSION_TOKEN",
    "PI_PERPLEXITY_TOKEN",
    "PI_PERPLEXITY_AUTH_TOKEN",
    "PERPLEXITY_COOKIE",
    "PI_PERPLEXITY_COOKIE",
    "PI_PERPLEXITY_COOKIES",
    "PERPLEXITY_EMAIL",
    "PI_PERPLEXITY_EMAIL",
    "PERPLEXITY_OTP",
    "PI_PERPLEXITY_OTP",
    "PERPLEXITY_NO_BORROW",
    "PI_AUTH_NO_BORROW",
)


def isolate(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """Give the test a home folder, no variables and no keyring; return where settings are kept."""
    import keyring
    from keyring.backends import fail

    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder / "home"))
    monkeypatch.setenv("USERPROFILE", str(folder / "home"))
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(folder / "ours"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    keyring.set_keyring(fail.Keyring())
    return folder / "ours" / "config"


def write_pi_login(folder: Path, record: Any) -> Path:
    """Put a login of pi-perplexity there."""
    path = folder / "home" / ".config" / "pi-perplexity" / "auth.json"
    path.parent.mkdir(parents=True)
    path.write_text(record if isinstance(record, str) else json.dumps(record))
    return path


# --- perplexity.ai ----------------------------------------------------------------------------


def reply(status: int = 200, body: Any = None, *cookies: str, **headers: str) -> bytes:
    """Return a response with a ``Set-Cookie`` line for each of these cookies."""
    text = body if isinstance(body, str) else json.dumps({} if body is None else body)
    kind = "text/html" if text.startswith("<") else "application/json"
    data = text.encode()
    head = http_head(
        status,
        {
            "Content-Type": kind,
            "Content-Length": str(len(data)),
            **{k.replace("_", "-"): v for k, v in headers.items()},
        },
    )
    lines = "".join(f"Set-Cookie: {cookie}\r\n" for cookie in cookies).encode()
    return head.removesuffix(b"\r\n") + lines + b"\r\n" + data


CHALLENGE = "<html><head><title>Just a moment...</title></head></html>"
CSRF_COOKIES = (
    "__Host-next-auth.csrf-token=abc%7Cdef; Path=/; HttpOnly; Secure; SameSite=Lax",
    "cf_clearance=clear; Path=/; Expires=Wed, 01 Jan 2098 00:00:00 GMT",
    "old=; Max-Age=0",
)


@dataclass
class SignIn:
    """Answers of the sign-in pages, by the last part of their path."""

    csrf: bytes = field(default_factory=lambda: reply(200, {"csrfToken": CSRF}, *CSRF_COOKIES))
    signin_email: bytes = field(
        default_factory=lambda: reply(200, {"success": "Email sign in triggered"})
    )
    signin_otp: bytes = field(
        default_factory=lambda: reply(200, {"token": TOKEN, "status": "success"})
    )
    session: bytes = field(
        default_factory=lambda: reply(
            200,
            {"user": {"id": "u1", "email": EMAIL, "payment_tier": "pro"}, "expires": "2098-01-01"},
        )
    )

    def __call__(self, request: RawRequest, connection: RawConnection) -> None:
        name = request.path.rsplit("/", 1)[1].replace("-", "_")
        connection.send(getattr(self, name))


def paths(server: RawServer) -> list[str]:
    return [f"{request.method} {request.path}" for request in server.requests]


class Never:
    """Prompts that must not be used."""

    def __call__(self, *arguments: Any) -> Any:
        raise AssertionError("the user was asked")


def answering(value: Any) -> Callable[..., Any]:
    return lambda *arguments: value


def typed(value: str) -> Callable[..., Secret]:
    return lambda *arguments: Secret(value)


# --- looking for secrets ----------------------------------------------------------------------


def shown(error: BaseException) -> str:
    """Return all that a traceback, a debugger or an error reporter shows of an error.

    Frames of the tests themselves are left out: they hold the secrets that they give.
    """
    parts: list[str] = []
    for link in _chain(error):
        parts += [repr(link), str(link), repr(vars(link)), repr(link.args)]
        parts += list(traceback.TracebackException.from_exception(link).format())
        walker = link.__traceback__
        while walker is not None:
            if "/tests/" not in walker.tb_frame.f_code.co_filename:
                parts += [inside(value) for value in walker.tb_frame.f_locals.values()]
            walker = walker.tb_next
    return "\n".join(parts)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    pending = [error]
    while pending:
        link = pending.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            yield link
            pending += [link.__cause__, link.__context__]


def inside(value: Any, depth: int = 3) -> str:
    """Return the repr of a value and of what it holds; not what a Secret holds, on purpose."""
    text = repr(value)
    if (
        depth
        and not isinstance(value, Secret)
        and type(value).__module__.startswith("ipyperplexity")
    ):
        text += "".join(inside(part, depth - 1) for part in getattr(value, "__dict__", {}).values())
    return text
