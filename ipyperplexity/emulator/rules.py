"""Checks of which the table of a request is built.

Invariant: a check takes a value and the path that names it, returns nothing, and raises
``RequestError`` when the service would refuse the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = [
    "Check", "RequestError", "anything", "flag", "list_of", "number", "object_of", "pattern",
    "refuse", "tagged", "text", "typed", "unprocessable", "words",
]  # fmt: skip

Check = Callable[[Any, str], None]


class RequestError(Exception):
    """A request that the service refuses.

    Attributes
    ----------
    status
        HTTP status.
    kind
        ``error.type``.
    param
        Name of the field at fault, or None.
    reply
        A body in place of the usual envelope, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str = "invalid_request",
        param: str | None = None,
        status: int = 400,
        reply: Any = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.param = param
        self.status = status
        self.reply = reply

    def envelope(self) -> Any:
        """Return the body of the reply."""
        if self.reply is not None:
            return self.reply
        error: dict[str, Any] = {"message": self.message, "type": self.kind, "code": self.status}
        if self.param is not None:
            error["param"] = self.param
        return {"error": error}


def refuse(path: str, says: str) -> RequestError:
    """Return the refusal of a field; ``path`` names it from the top."""
    return RequestError(f"{path}: {says}" if path else says, param=path or None)


def unprocessable(field: str, message: str, kind: str = "value_error") -> RequestError:
    """Return a refusal of the older endpoints: 422 with a list of details (official-api 7)."""
    steps: list[str | int] = ["body"]
    for step in re.findall(r"[^.\[\]]+", field):
        steps.append(int(step) if step.isdigit() else step)
    detail = [{"loc": steps, "msg": message, "type": kind}]
    return RequestError(message, param=field, status=422, reply={"detail": detail})


def text(most: int | None = None, least: int = 0) -> Check:
    """Take a string of ``least`` to ``most`` characters."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, str):
            raise refuse(path, "must be a string")
        if len(value) < least or (most is not None and len(value) > most):
            raise refuse(path, f"must have {least} to {most} characters, has {len(value)}")

    return check


def number(low: float, high: float | None = None, *, whole: bool = False, says: str = "") -> Check:
    """Take a number from ``low`` to ``high``; ``says`` is the message out of range."""

    def check(value: Any, path: str) -> None:
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            raise refuse(path, "must be an integer" if whole else "must be a number")
        if value < low or (high is not None and value > high):
            limit = (
                f"must be at least {low}" if high is None else f"must be between {low} and {high}"
            )
            raise RequestError(says, param=path) if says else refuse(path, limit)

    return check


def flag(value: Any, path: str) -> None:
    """Take true or false."""
    if not isinstance(value, bool):
        raise refuse(path, "must be true or false")


def anything(value: Any, path: str) -> None:
    """Take anything: free-form JSON such as a schema."""


def words(*allowed: str) -> Check:
    """Take one of some words."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, str) or value not in allowed:
            raise refuse(path, f"invalid value {value!r}; must be one of {', '.join(allowed)}")

    return check


def pattern(form: str, says: str) -> Check:
    """Take a string that fits a regular expression as a whole."""
    compiled = re.compile(form)

    def check(value: Any, path: str) -> None:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            raise refuse(path, f"{says}, got {value!r}")

    return check


def list_of(item: Check, most: int | None = None, least: int = 0) -> Check:
    """Take an array of ``least`` to ``most`` entries."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, list):
            raise refuse(path, "must be an array")
        if len(value) < least:
            raise refuse(path, f"must have at least {least} entries")
        if most is not None and len(value) > most:
            raise refuse(path, f"must have at most {most} entries, has {len(value)}")
        for at, entry in enumerate(value):
            item(entry, f"{path}[{at}]")

    return check


def object_of(fields: Mapping[str, Check], required: Sequence[str] = ()) -> Check:
    """Take an object with these fields and no others, at any depth."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise refuse(path, "must be an object")
        for name, inner in value.items():
            if name not in fields:
                raise RequestError(f'json: unknown field "{name}"', param=name)
            if inner is not None:
                fields[name](inner, f"{path}.{name}" if path else name)
        for name in required:
            if value.get(name) is None:
                raise refuse(f"{path}.{name}" if path else name, "is required")

    return check


def tagged(kinds: Mapping[str, Check], default: str | None = None) -> Check:
    """Take an object by the entry of ``kinds`` that its ``type`` names."""

    def check(value: Any, path: str) -> None:
        if not isinstance(value, dict):
            raise refuse(path, "must be an object")
        kind = value.get("type") or default
        chosen = kinds.get(kind) if isinstance(kind, str) else None
        if chosen is None:
            raise refuse(path, f"invalid type {kind!r}; must be one of {', '.join(kinds)}")
        chosen(value, path)

    return check


def typed(required: Sequence[str] = (), **fields: Check) -> Check:
    """Take an object with a ``type`` and these fields."""
    return object_of({"type": text(), **fields}, required)
