"""A request's body as strictly as a service reads it: UTF-8, no ``NaN``, no half characters."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from .rules import RequestError

__all__ = ["read_json", "read_object"]


def read_json(body: bytes) -> Any:
    r"""Return the value of a JSON document.

    Halves of surrogate pairs become question marks: they could not be sent back.

    Raises
    ------
    ValueError, RecursionError
        If it is none.

    Examples
    --------
    >>> read_json(b'{"input": "\\ud800 lambda"}')
    {'input': '? lambda'}
    """
    text = body.decode("utf-8")
    value = json.loads(text, parse_constant=_refuse)
    if "\\u" in text:
        whole = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        value = json.loads(whole)
    return value


def read_object(body: bytes) -> Any:
    """Return the value of a JSON body.

    Raises
    ------
    RequestError
        It is no JSON (400).
    """
    try:
        return read_json(body)
    except (ValueError, RecursionError):
        raise RequestError("request body is not valid JSON") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
