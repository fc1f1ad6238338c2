"""When the next question may be sent: the generic cell rate algorithm, for many threads.

Invariant: the slots that are given out keep apart, so that in any 60 seconds there are never more
of them than the limit (rounded up; the highest that was in force), and nobody sends before his
slot. Since only 97 % of the limit is used, jitter on the way does not pass it either. Time stands
still during a pause: who waits keeps his place, and afterwards all go on one by one.

Sending late is not made up for: a thread that wakes 0.1 s after its slot may come closer to the
next one by that much. What was sent before the first limit was learned does not count.
"""

from __future__ import annotations

import email.utils
import math
import re
import threading
import time
from collections.abc import Callable, Mapping

from ipyperplexity.option_checks import refuse

#: Of the limit that is used. At the limit itself jitter made 8 of 60 requests fail, at this none.
SHARE = 0.97
#: Seconds that a reported reset is waited for at most: the clocks may differ.
MAX_RESET_WAIT = 60.0
_LONGEST_PAUSE = 24 * 3600.0
#: Seconds; what an Event waits for has an upper bound.
_LONGEST_SLEEP = 60.0


class Pacer:
    """Gives out the moments at which requests may be sent.

    A burst of as many as come in one second is let through after a quiet time, and at least one.

    Parameters
    ----------
    rpm : float, optional
        Requests a minute that the service allows; if not given, it is learned, and until then
        nothing is held back.
    clock : callable
        Seconds that never go back.

    Raises
    ------
    InvalidRequestError
        If ``rpm`` is no number above 0.

    Examples
    --------
    >>> pacer = Pacer(60 / 0.97)  # one each second
    >>> slots = [pacer.reserve(now=100.0) for _ in range(3)]
    >>> [round(pacer.delay(slot, now=100.0), 6) for slot in slots]
    [0.0, 1.0, 2.0]
    """

    def __init__(
        self, rpm: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._is_given = rpm is not None
        self._clock = clock
        self._lock = threading.Lock()
        self._rpm: float | None = None
        #: Seconds between two slots, and how much earlier a slot may be after a quiet time.
        self._interval = self._tolerance = 0.0
        #: The theoretical arrival time of the next request, on a clock that stands in pauses.
        self._due = -math.inf
        #: All pauses together, the one that lasts included to its end.
        self._stood_still = 0.0
        self._paused_until = -math.inf
        if rpm is not None:
            self._allow(_checked(rpm))

    @property
    def rpm(self) -> float | None:
        """Requests a minute that the service allows, as given or learned; None if unknown."""
        return self._rpm

    @property
    def pause_left(self) -> float:
        """Seconds until a pause ends; 0 if there is none."""
        return max(0.0, self._paused_until - self._clock())

    def wait(self, stopped: threading.Event) -> bool:
        """Block until the caller may send; False, at once, when it shall not any more.

        Parameters
        ----------
        stopped : threading.Event
            Set to give up; a slot that was waited for is then lost.

        Examples
        --------
        >>> Pacer().wait(threading.Event())
        True
        """
        if stopped.is_set():
            return False
        slot = self.reserve(self._clock())
        # Again after each sleep: a pause may have moved the slot.
        while (delay := self.delay(slot, self._clock())) > 0:
            if stopped.wait(min(delay, _LONGEST_SLEEP)):
                return False
        return not stopped.is_set()

    def reserve(self, now: float) -> float:
        """Take the next slot, and return it: a time on a clock that stands in pauses.

        Parameters
        ----------
        now : float
            Seconds, as ``clock`` gives them.
        """
        with self._lock:
            earliest = max(now, self._paused_until) - self._stood_still
            slot = max(earliest, self._due - self._tolerance)
            self._due = max(self._due, slot) + self._interval
            return slot

    def delay(self, slot: float, now: float) -> float:
        """Return the seconds from ``now`` to a slot, as far as is known; 0 if it is there."""
        with self._lock:
            return max(0.0, slot + self._stood_still - now)

    def pause(self, seconds: float) -> None:
        """Let nobody send for so long, as a ``Retry-After`` asks; of several the longest counts.

        Examples
        --------
        >>> pacer = Pacer()
        >>> pacer.pause(30.0)
        >>> pacer.pause(5.0)
        >>> 29 < pacer.pause_left <= 30
        True
        """
        if not seconds > 0:
            return
        with self._lock:
            now = self._clock()
            until = max(self._paused_until, now + min(seconds, _LONGEST_PAUSE))
            self._stood_still += until - max(self._paused_until, now)
            self._paused_until = until

    def learn(self, headers: Mapping[str, str], now: float | None = None) -> None:
        """Take over what a reply tells of the limit, unless ``rpm`` was given (official-api 7).

        ``x-ratelimit-limit`` is the number of requests a minute. With an ``x-ratelimit-remaining``
        of 0 nobody sends until ``x-ratelimit-reset`` (epoch seconds), at most 60 s.

        Parameters
        ----------
        headers : mapping
            Of any reply, looked up without regard to case. What is not understood is passed over.
        now : float, optional
            Seconds since the epoch; where there is a ``Date``, the service's own clock counts.

        Examples
        --------
        >>> pacer = Pacer()
        >>> pacer.learn({"x-ratelimit-limit": "50", "x-ratelimit-remaining": "49"})
        >>> pacer.rpm
        50.0
        """
        if self._is_given:
            return
        limit = _number(headers, "x-ratelimit-limit")
        if limit:
            self._allow(limit)
        reset = _number(headers, "x-ratelimit-reset")
        if reset is not None and _number(headers, "x-ratelimit-remaining") == 0:
            left = reset - _time_there(headers, time.time() if now is None else now)
            self.pause(min(left, MAX_RESET_WAIT))

    def _allow(self, rpm: float) -> None:
        used = SHARE * rpm
        burst = max(1, int(used / 60))
        with self._lock:
            self._rpm = rpm
            self._interval = 60 / used
            self._tolerance = (burst - 1) * self._interval


def _checked(rpm: object) -> float:
    number = math.nan
    if not isinstance(rpm, bool | str | bytes):
        try:
            number = float(rpm)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = math.nan
    if not 0 < number < math.inf:  # nothing holds for not-a-number
        raise refuse("rpm", rpm, "requests a minute, as a number above 0")
    return number


def _number(headers: Mapping[str, str], name: str) -> float | None:
    value = (headers.get(name) or "").strip()
    return float(value) if re.fullmatch(r"\d{1,11}", value, re.ASCII) else None


def _time_there(headers: Mapping[str, str], now: float) -> float:
    parsed = email.utils.parsedate_tz(headers.get("date") or "")
    try:
        return now if parsed is None else float(email.utils.mktime_tz(parsed))
    except (ValueError, OverflowError):
        return now
