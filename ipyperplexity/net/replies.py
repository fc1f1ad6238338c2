"""A reply that is no stream: its JSON, or the error that says what came instead."""

from __future__ import annotations

import json
from typing import Any

from ipyperplexity.errors import ChallengeError, StreamError
from ipyperplexity.net.transport import Head
from ipyperplexity.wire import problems


def content_type(head: Head) -> str:
    """Return the media type of a reply, in lower case and without parameters."""
    return head.headers.get("content-type", "").partition(";")[0].strip().lower()


def read_json(head: Head, body: bytes) -> Any:
    """Return the JSON value of a body.

    Raises
    ------
    ChallengeError
        If a browser check stands in its place.
    StreamError
        If it is something else that is not JSON.
    """
    try:
        return json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        pass
    if problems.is_challenge(head.headers, body):
        raise ChallengeError(
            "A browser check (Cloudflare) answered, not Perplexity.", status_code=head.status
        )
    raise StreamError(
        f"The service answered with {content_type(head) or 'something'} instead of an answer.",
        hint="Check PERPLEXITY_BASE_URL: this may be some other server.",
        status_code=head.status,
    )
