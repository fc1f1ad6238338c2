"""The lines of the files that come back from a batch: for each question a reply or an error.

A line is ``{custom_id, response: {status_code, request_id, body}, error: {code, message}}``, of
which one of the last two is null. Nothing about them is taken for granted: lines may come in any
order, twice, damaged, for questions nobody asked, or not at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ipyperplexity.errors import PerplexityError, ServerError, StreamError
from ipyperplexity.wire import batches, problems, values


@dataclass(frozen=True)
class Result:
    """What became of one line: either a reply or an error.

    Attributes
    ----------
    custom_id : str
    reply : dict or None
        The Agent API's record, as ``wire.agent_reading.fold_body`` takes it.
    error : PerplexityError or None
    """

    custom_id: str
    reply: dict[str, Any] | None = None
    error: PerplexityError | None = None


def read_results(
    lines: Iterable[bytes], wanted: Collection[str], why_missing: PerplexityError | None = None
) -> Iterator[Result]:
    """Read the lines of both files; yield each line that is wanted once, the good ones first.

    Lines may come in any order, twice, damaged, or not at all. Of two results for one question a
    reply counts more than an error, and the first more than the second.

    Parameters
    ----------
    lines : iterable of bytes
        Without their ends.
    wanted : collection of str
        Their ``custom_id``.
    why_missing : PerplexityError, optional
        What became of those that are in neither file; they are left out if it is not given.

    Examples
    --------
    >>> reply = b'{"custom_id": "a", "response": {"status_code": 200, "body": {"id": "resp_1"}}}'
    >>> [(result.custom_id, result.reply) for result in read_results([reply, b"?"], {"a"})]
    [('a', {'id': 'resp_1'})]
    """
    left = set(wanted)
    errors: dict[str, PerplexityError] = {}
    for data in lines:
        result = read_line(data)
        if result is None or result.custom_id not in left:
            continue
        if result.error is not None:
            errors.setdefault(result.custom_id, result.error)
            continue
        left.discard(result.custom_id)
        yield result
    for custom_id in wanted:
        if custom_id in left and (error := errors.get(custom_id, why_missing)) is not None:
            left.discard(custom_id)
            yield Result(custom_id, error=error)


def read_line(data: bytes) -> Result | None:
    """Read one line of either file; None for one that names no question."""
    known = values.parse(data.decode("utf-8", "replace"))
    if not isinstance(known, dict):
        return _damaged(data)
    custom_id = values.text(known.get("custom_id"))
    if not custom_id:
        return None
    response = known.get("response")
    if isinstance(response, dict):
        status = values.whole(response.get("status_code")) or 200
        body = response.get("body")
        if 200 <= status < 300:
            if isinstance(body, dict):
                return Result(custom_id, body)
            return Result(custom_id, error=_unreadable())
        headers = {"x-request-id": values.text(response.get("request_id"))}
        error = problems.from_http(status, headers, json.dumps(body).encode(), 0.0)
        error.request_id = error.request_id or None
        return Result(custom_id, error=error)
    if known.get("error"):
        return Result(custom_id, error=_line_error(known["error"]))
    return Result(custom_id, error=_unreadable())


_NAMED = re.compile(rb'"custom_id"\s*:\s*"([\w-]{1,200})"')


def _damaged(data: bytes) -> Result | None:
    named = _NAMED.search(data)
    return Result(named.group(1).decode(), error=_unreadable()) if named else None


def _line_error(error: Any) -> PerplexityError:
    code = values.text(error.get("code")) if isinstance(error, dict) else ""
    make = _BY_CODE.get(code)
    return make() if make is not None else problems.from_run(error)


def _unreadable() -> PerplexityError:
    return StreamError("The line with the answer is damaged, or holds none.")


def _failed() -> PerplexityError:
    return ServerError("The batch failed before this question was answered.")


_BY_CODE: dict[str, Callable[[], PerplexityError]] = {
    "batch_expired": batches.expired,
    "batch_cancelled": batches.cancelled,
    "batch_canceled": batches.cancelled,
    "batch_failed": _failed,
}
