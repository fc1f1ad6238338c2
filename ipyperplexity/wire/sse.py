"""Server-sent events: bytes in, frames out.

A :class:`Decoder` follows the WHATWG rules for ``text/event-stream`` whatever the cuts between
the chunks: feeding a stream in one piece, in single bytes or in anything between gives the same
frames, each released by the very chunk that brings its blank line. It knows no socket and no
clock, and its work is linear in the bytes fed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ipyperplexity.errors import StreamError

__all__ = ["MAX_EVENT_BYTES", "Decoder", "Frame", "decode"]

MAX_EVENT_BYTES: Final = 8 * 1024 * 1024
"""Default cap on the size of one event, in bytes: 8 MiB."""

_LF: Final = 0x0A  # `in` finds a byte given as a number three times as fast
_CR: Final = 0x0D
_BYTE_ORDER_MARK: Final = "\ufeff"
_MAX_RETRY_DIGITS: Final = 15  # 31,000 years; int() itself refuses more than 4,300 digits


class Frame(NamedTuple):
    """One event of the stream, as the WHATWG rules dispatch it.

    Attributes
    ----------
    event : str
        The event's type; ``""`` when the stream named none (a browser calls that ``message``).
    data : str
        The ``data`` lines joined by LF.
    id : str
        The last event id so far: it is kept from one event to the next.
    complete : bool
        False for a last frame that the stream left without its blank line. A browser drops
        such a frame; its data may be cut anywhere, so check before trusting it.
    """

    event: str = ""
    data: str = ""
    id: str = ""
    complete: bool = True


# Half the time of `Frame(...)`, whose generated constructor is a Python function: it would be a
# fifth of the decoder's time.
_new_frame = tuple.__new__


class Decoder:
    r"""Decode a stream of server-sent events fed in chunks of any size.

    Parameters
    ----------
    max_event_bytes : int, default 8 MiB
        The largest size of one event in bytes, its comments included and CR LF counted as one.
        A stream that never sends a blank line would otherwise fill the memory.

    Attributes
    ----------
    retry : int or None
        The last reconnection time that the stream asked for, in milliseconds.

    Examples
    --------
    >>> decoder = Decoder()
    >>> decoder.feed(b"event: greeting\ndata: hel")
    []
    >>> decoder.feed(b"lo\n\n")
    [Frame(event='greeting', data='hello', id='', complete=True)]
    >>> decoder.close()
    []
    """

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self.retry: int | None = None
        self._max_event_bytes = max_event_bytes
        self._pending: list[bytes] = []  # the unfinished event; joined once, at its blank line
        self._pending_bytes = 0
        self._last_id = ""
        self._after_cr = False  # the chunk before ended in CR: an LF now belongs to it
        self._at_start = True

    def feed(self, data: bytes) -> list[Frame]:
        """Take the next bytes and return the frames that they complete, in order.

        Raises
        ------
        StreamError
            One event is larger than `max_event_bytes`. Frames before it in the same chunk are
            returned first; the error then comes with the next call.
        """
        if self._pending_bytes > self._max_event_bytes:
            raise self._too_large()
        if self._after_cr and data:
            self._after_cr = False
            if data.startswith(b"\n"):
                data = data[1:]
        if _CR in data:
            self._after_cr = data.endswith(b"\r")
            data = _lines_ended_by_lf(data)
        if not data:
            return []

        # Every line now ends in LF, so an event ends at LF LF: inside this chunk, or across its
        # beginning. Only then are the parts of the event joined and looked into.
        pending = self._pending
        end = data.rfind(b"\n\n") + 1 if _LF in data else 0
        if not end and not (data[0] == _LF and pending and pending[-1][-1] == _LF):
            pending.append(data)
            self._pending_bytes += len(data)
            if self._pending_bytes > self._max_event_bytes:
                raise self._too_large()
            return []
        if pending:
            pending.append(data[:end])
            finished = b"".join(pending)
            self._pending = []
            self._pending_bytes = 0
        else:
            finished = data[:end]
        if len(finished) > self._max_event_bytes:
            finished = self._before_oversized(finished)
        frames = self._frames(finished)
        rest = data[end + 1 :]
        if rest:
            self._pending.append(rest)
            self._pending_bytes += len(rest)
        if self._pending_bytes > self._max_event_bytes and not frames:
            raise self._too_large()
        return frames

    def close(self) -> list[Frame]:
        """End the stream: return the last frame if it lacks only its blank line.

        The frame comes with ``complete=False``. Closing twice is harmless.

        Raises
        ------
        StreamError
            The stream had ended in an event larger than `max_event_bytes`.
        """
        if self._pending_bytes > self._max_event_bytes:
            raise self._too_large()
        unfinished = b"".join(self._pending)
        self._pending = []
        self._pending_bytes = 0
        return self._frames(unfinished + b"\n", complete=False)

    def _before_oversized(self, finished: bytes) -> bytes:
        fitting: list[bytes] = []
        for event in finished.removesuffix(b"\n").split(b"\n\n"):
            size = len(event) + 1  # its last LF is one of its bytes
            if size > self._max_event_bytes:
                self._pending_bytes = size  # the next call raises
                break
            fitting += event, b"\n\n"
        return b"".join(fitting)

    def _frames(self, lines: bytes, *, complete: bool = True) -> list[Frame]:
        """Apply the WHATWG field rules to whole events, each closed by its blank line."""
        # Decoding before splitting is safe: no UTF-8 sequence, broken or not, swallows an LF.
        text = lines.decode("utf-8", "replace")
        if self._at_start:
            self._at_start = False
            text = text.removeprefix(_BYTE_ORDER_MARK)
        frames: list[Frame] = []
        append, last_id = frames.append, self._last_id
        event = ""
        data: list[str] = []
        for line in text.split("\n"):
            # The two spellings that make up nearly every stream come first; the general rules
            # below give the same for them, at twice the time.
            if line[:6] == "data: ":
                data.append(line[6:])
            elif not line:
                if data:
                    append(_new_frame(Frame, (event, "\n".join(data), last_id, complete)))
                    data = []
                event = ""
            elif line[:7] == "event: ":
                event = line[7:]
            else:
                name, _, value = line.partition(":")
                value = value.removeprefix(" ")
                match name:  # "" is a comment
                    case "data":
                        data.append(value)
                    case "event":
                        event = value
                    case "id" if "\0" not in value:
                        last_id = value
                    case "retry" if value.isascii() and value.isdigit():
                        if len(value) <= _MAX_RETRY_DIGITS:
                            self.retry = int(value)
                    case _:
                        pass
        self._last_id = last_id
        return frames

    def _too_large(self) -> StreamError:
        return StreamError(
            f"the service sent one event larger than {self._max_event_bytes:,} bytes",
            hint="Ask again; if it persists, the address may not be an event stream at all.",
        )


def _lines_ended_by_lf(data: bytes) -> bytes:
    # `bytes.splitlines` knows exactly the newlines of this format, and is five times as fast
    # as `replace` on a long event.
    lines = data.splitlines()
    if data.endswith((b"\n", b"\r")):
        lines.append(b"")
    return b"\n".join(lines)


def decode(chunks: Iterable[bytes], *, max_event_bytes: int = MAX_EVENT_BYTES) -> Iterator[Frame]:
    r"""Yield the frames of a whole stream, the last one even without its blank line.

    Raises
    ------
    StreamError
        One event is larger than `max_event_bytes`; the frames before it were yielded.

    Examples
    --------
    >>> [frame.data for frame in decode([b"data: one\n\nda", b"ta: two\r\n\r\n"])]
    ['one', 'two']
    """
    decoder = Decoder(max_event_bytes=max_event_bytes)
    for chunk in chunks:
        yield from decoder.feed(chunk)
    yield from decoder.close()
