"""Pictures that go with a question, as URLs that the service reads: ``https:`` or ``data:``.

A path is read here, before anything is sent, so that a missing file costs nothing.
"""

from __future__ import annotations

import base64
import io
import mimetypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ipyperplexity.errors import InvalidRequestError

#: What the service takes as a whole request (official-api 2).
MAX_REQUEST_BYTES = 32 * 2**20
#: Bytes of one picture: base64 adds a third.
MAX_IMAGE_BYTES = 20 * 2**20

ALLOWED = (
    "a path, a URL (https: or data:image/), bytes, a PIL image, or a matplotlib figure or axes"
)

# First bytes -> MIME type (the registered signatures of each format).
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
)


def image_url(image: Any) -> str:
    """Return ``image`` as a URL to put into a request.

    Parameters
    ----------
    image : str, os.PathLike, bytes, PIL.Image.Image, matplotlib Figure or Axes
        What to show. A string is a URL if it starts with ``https:`` or ``data:image/``, else a
        path.

    Raises
    ------
    InvalidRequestError
        If it is none of these, is not a picture, is empty, cannot be read, or is over 20 MiB.

    Examples
    --------
    >>> image_url("https://example.org/map.png")
    'https://example.org/map.png'
    """
    if isinstance(image, str) and image.lower().startswith("data:image/"):
        if len(image) > MAX_REQUEST_BYTES or "," not in image:
            raise _refused("a data URL", "it is too large, or holds nothing")
        return image
    if isinstance(image, str) and "://" in image:
        return _web_address(image)
    if isinstance(image, str | os.PathLike):
        return _from_path(image)
    if isinstance(image, bytes | bytearray | memoryview):
        return _data_url(bytes(image), None, "bytes")
    figure = getattr(image, "figure", image)  # matplotlib Axes know their figure
    for source, method, details in (
        (figure, "savefig", {"format": "png", "bbox_inches": "tight"}),
        (image, "save", {"format": "PNG"}),
    ):
        write = getattr(source, method, None)
        if callable(write) and not isinstance(source, type):
            return _data_url(_drawn(write, details, image), "image/png", type(image).__name__)
    raise _refused(image, "it is none of these")


def _web_address(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme.lower() != "https" or not parts.netloc or not url.isprintable() or " " in url:
        raise _refused(url, "only whole https: addresses are fetched by the service")
    return url


def _drawn(write: Callable[..., Any], details: dict[str, Any], image: Any) -> bytes:
    buffer = io.BytesIO()
    try:
        write(buffer, **details)
    except Exception as error:  # whatever somebody's drawing raises, it is no picture
        reason = f"it cannot be drawn ({type(error).__name__}: {error})"
    else:
        return buffer.getvalue()
    raise _refused(image, reason)


def _from_path(given: str | os.PathLike[Any]) -> str:
    shown = given if isinstance(given, str) else type(given).__name__
    try:
        path = Path(os.fsdecode(given)).expanduser()
        shown = str(path)
        if path.exists() and not path.is_file():  # a device never ends
            reason = "it is not a file"
        elif path.stat().st_size > MAX_IMAGE_BYTES:
            reason = f"it has over {MAX_IMAGE_BYTES:,} bytes"
        else:
            return _data_url(path.read_bytes(), mimetypes.guess_type(path.name)[0], path.name)
    except OSError as error:
        reason = error.strerror or "it cannot be read"
    except (ValueError, RuntimeError, TypeError) as error:  # a NUL in it; ~nobody
        reason = str(error)
    raise _refused(shown, reason)


def _data_url(data: bytes, mime: str | None, what: str) -> str:
    if not data:
        raise _refused(what, "it is empty")
    if len(data) > MAX_IMAGE_BYTES:
        raise _refused(what, f"it has {len(data):,} bytes, over {MAX_IMAGE_BYTES:,}")
    for signature, kind in _SIGNATURES:
        if data.startswith(signature):
            mime = kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        mime = "image/webp"
    if mime is None or not mime.startswith("image/"):
        raise _refused(what, "it does not look like a picture")
    return f"data:{mime};base64,{base64.b64encode(data).decode('ascii')}"


def _refused(given: Any, reason: str) -> InvalidRequestError:
    shown = given if isinstance(given, str) else type(given).__name__
    shown = shown if len(shown) <= 120 else shown[:117] + "..."
    return InvalidRequestError(
        f"images: {shown!r} cannot be used: {reason[:200]}. Allowed: {ALLOWED}.", field="images"
    )
