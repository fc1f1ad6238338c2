"""Signing in at the web endpoint: the code by e-mail, and the session (consumer-web 3.1, 1.7).

Invariant: no step passes without the CSRF token and its cookie, and a code works once.
"""

from __future__ import annotations

import time
from typing import Any

from .json_body import read_json
from .recorded import RecordedRequest
from .rules import RequestError
from .sending import Call, Sender
from .web_state import SESSION_COOKIE, account_id

__all__ = ["give_csrf", "send_code", "session_cookie", "take_code", "tell_session"]

_MONTH = 30 * 24 * 3600
_CSRF_COOKIES = ("next-auth.csrf-token", "__Host-next-auth.csrf-token")


def session_cookie(token: str) -> str:
    """Return the ``Set-Cookie`` that hands a session over."""
    return f"{SESSION_COOKIE}={token}; Path=/; Max-Age={_MONTH}; HttpOnly; Secure; SameSite=Lax"


def _refused(status: int, text: str, code: str) -> RequestError:
    return RequestError(text, status=status, reply={"text": text, "error_code": code})


def give_csrf(sender: Sender, call: Call) -> None:
    """Serve ``GET /api/auth/csrf``."""
    token = sender.emulator.web.new_csrf()
    name = sender.behavior.csrf_cookie
    headers = {}
    if name != "none":
        value = f"{token}%7C{token[::-1]}"
        headers["Set-Cookie"] = f"{name}={value}; Path=/; HttpOnly; Secure; SameSite=Lax"
    sender.reply_json(200, {"csrfToken": token}, headers=headers)


def _read(sender: Sender, request: RecordedRequest, *names: str) -> dict[str, str]:
    """Return the fields of a login step, once its CSRF token and cookie fit."""
    try:
        body: Any = read_json(request.body)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or not all(isinstance(body.get(name), str) for name in names):
        raise _refused(400, f"{', '.join(names)} must be given", "INVALID_REQUEST")
    cookie = next((request.cookies[name] for name in _CSRF_COOKIES if name in request.cookies), "")
    if not sender.emulator.web.knows_csrf(body["csrfToken"], cookie):
        raise _refused(403, "The CSRF token is missing or wrong.", "CSRF_MISMATCH")
    if "@" not in body["email"]:
        raise _refused(400, "That is no e-mail address.", "INVALID_EMAIL")
    return {name: body[name] for name in names}


def send_code(sender: Sender, call: Call) -> None:
    """Serve ``POST /api/auth/signin-email``."""
    given = _read(sender, call.request, "email", "csrfToken")
    sender.emulator.web.send_code(given["email"])
    sender.reply_json(200, {"success": "Email sign in triggered"})


def take_code(sender: Sender, call: Call) -> None:
    """Serve ``POST /api/auth/signin-otp``."""
    given = _read(sender, call.request, "email", "otp", "csrfToken")
    web = sender.emulator.web
    if not web.use_code(given["email"], given["otp"].strip()):
        raise _refused(401, "The code is wrong or has expired.", "INVALID_OTP")
    token = web.open_session(given["email"])
    reply = {"status": "success"}
    if sender.behavior.login_token != "cookie":
        reply[sender.behavior.login_token] = token
    sender.reply_json(200, reply, headers={"Set-Cookie": session_cookie(token)})


def tell_session(sender: Sender, call: Call) -> None:
    """Serve ``GET /api/auth/session``: the user, or ``{}``; rotates the cookie."""
    web, cookies = sender.emulator.web, call.request.cookies
    email = web.account(cookies)
    if not email:
        sender.reply_json(200, {})
        return
    expires = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() + _MONTH))
    user = {
        "id": account_id(email),
        "email": email,
        "subscription_status": "active",
        "payment_tier": "pro",
    }
    wanted = sender.behavior.rotate_session
    headers = {}
    if wanted != "":
        headers["Set-Cookie"] = session_cookie(web.open_session(email, wanted or ""))
    sender.reply_json(200, {"user": user, "expires": expires}, headers=headers)
