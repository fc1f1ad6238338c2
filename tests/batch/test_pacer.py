"""Questions go out as fast as the service allows, and never faster; no test here waits."""

from __future__ import annotations

import email.utils
import itertools
import math
import sys
import threading
from bisect import bisect_right
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.batch.pacer import Pacer
from ipyperplexity.errors import InvalidRequestError

EPOCH = 1_800_000_000.0


class Clock(threading.Event):
    """A clock, and an Event that lets its time pass in place of waiting."""

    def __init__(self, now: float = 1000.0) -> None:
        super().__init__()
        self.now = now

    def __call__(self) -> float:
        return self.now

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None and 0 < timeout < math.inf
        self.now += timeout
        return self.is_set()


def sent(pacer: Pacer, clock: Clock, count: int) -> list[float]:
    """Return when each of so many requests is sent by one who sends as soon as he may."""
    times = []
    for _ in range(count):
        assert pacer.wait(clock)
        times.append(clock.now)
    return times


def most_in_a_minute(times: list[float]) -> int:
    """Return the largest number of times in any 60 s, both ends included."""
    times = sorted(times)
    return max((bisect_right(times, start + 60) - at for at, start in enumerate(times)), default=0)


# --- the pace -------------------------------------------------------------------------------------


def test_without_a_limit_nothing_is_held_back() -> None:
    clock = Clock()
    assert sent(Pacer(clock=clock), clock, 1000) == [1000.0] * 1000


def test_questions_are_spread_over_the_minute_at_97_percent_of_the_limit() -> None:
    clock = Clock()
    times = sent(Pacer(50, clock), clock, 200)
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert times[0] == 1000.0
    assert gaps == [pytest.approx(60 / 48.5)] * 199


def test_after_a_quiet_time_as_many_as_come_in_a_second_go_at_once() -> None:
    clock = Clock()
    pacer = Pacer(600, clock)  # 9.7 a second
    burst, rest = [1000.0] * 9, [1000.0 + 60 / 582 * n for n in range(1, 20)]
    assert sent(pacer, clock, 28) == [pytest.approx(time) for time in burst + rest]
    clock.now = 2000.0
    assert sent(pacer, clock, 9) == [pytest.approx(2000.0)] * 9
    assert sent(pacer, clock, 1) == [pytest.approx(2000 + 60 / 582)]


def test_a_slow_limit_lets_one_through_at_once() -> None:
    clock = Clock()
    assert sent(Pacer(1, clock), clock, 2) == [1000.0, pytest.approx(1000 + 60 / 0.97)]


@pytest.mark.parametrize("rpm", [1, 50, 150, 500, 1000, 2000])
def test_all_that_is_allowed_is_used_but_for_3_percent(rpm: int) -> None:
    clock = Clock()
    times = sent(Pacer(rpm, clock), clock, rpm * 5)
    assert times[-1] - times[0] <= 5 * 60 / 0.97
    assert most_in_a_minute(times) <= rpm


# A use is a wait before it and what it is: a request, or a pause of so many seconds.
uses = st.lists(
    st.tuples(
        st.one_of(st.just(0.0), st.floats(0, 0.1), st.floats(0, 100)),
        st.one_of(st.just("send"), st.just("send"), st.floats(0.01, 90)),
    ),
    max_size=300,
)


@settings(max_examples=300, deadline=None)
@given(
    rpm=st.one_of(st.integers(1, 3000), st.floats(0.2, 4000)),
    uses=uses,
    begun=st.sampled_from([0.0, 12.3, 5e6]),
)
def test_in_no_minute_are_there_more_than_the_limit_whenever_they_come(
    rpm: float, uses: list[tuple[float, str | float]], begun: float
) -> None:
    clock = Clock(begun)
    pacer = Pacer(rpm, clock)
    waiting: list[float] = []  # slots, in the order in which they were taken
    times: list[float] = []
    pauses: list[tuple[float, float]] = []

    def let_go(until: float) -> None:
        while waiting and (time := clock.now + pacer.delay(waiting[0], clock.now)) <= until:
            waiting.pop(0)
            times.append(time)

    for gap, use in uses:
        let_go(clock.now + gap)
        clock.now += gap
        if use == "send":
            waiting.append(pacer.reserve(clock.now))
            let_go(clock.now)
        else:
            pacer.pause(float(use))
            pauses.append((clock.now, clock.now + float(use)))
    let_go(math.inf)
    assert len(times) == sum(use == "send" for _, use in uses)
    assert all(a <= b + 1e-6 for a, b in itertools.pairwise(times))  # in turn
    assert most_in_a_minute(times) <= math.ceil(rpm)
    for start, end in pauses:
        assert not [time for time in times if start + 1e-6 < time < end - 1e-6]


@settings(max_examples=100, deadline=None)
@given(limits=st.lists(st.integers(1, 600), min_size=1, max_size=8), each=st.integers(1, 80))
def test_while_limits_change_the_highest_of_them_is_kept(limits: list[int], each: int) -> None:
    clock = Clock()
    pacer = Pacer(clock=clock)
    times: list[float] = []
    for limit in limits:
        pacer.learn({"x-ratelimit-limit": str(limit)})
        times += sent(pacer, clock, each)
    assert most_in_a_minute(times) <= max(limits)


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_threads_get_a_slot_each() -> None:
    pacer = Pacer(60, clock=lambda: 5.0)
    slots: list[float] = []
    begin = threading.Barrier(8)

    def take() -> None:
        begin.wait()
        for _ in range(200):
            slots.append(pacer.reserve(5.0))

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gaps = [b - a for a, b in itertools.pairwise(sorted(slots))]
    assert len(slots) == 1600
    assert gaps == [pytest.approx(60 / 58.2)] * 1599


@pytest.mark.parametrize("rpm", [0, -1, math.nan, math.inf, True, "50", b"5", 10**400, [50], 1j])
def test_a_limit_that_is_none_is_refused(rpm: object) -> None:
    with pytest.raises(InvalidRequestError, match="rpm: got") as caught:
        Pacer(rpm)  # type: ignore[arg-type]
    assert caught.value.field == "rpm"


def test_a_limit_may_be_any_number() -> None:
    np = pytest.importorskip("numpy")
    assert [Pacer(rpm).rpm for rpm in (50, 2.5, np.int64(50), np.float32(2.5))] == [50, 2.5] * 2
    assert Pacer().rpm is None


# --- stopping -------------------------------------------------------------------------------------


def test_who_is_stopped_does_not_send_even_if_he_may() -> None:
    clock, stopped = Clock(), threading.Event()
    stopped.set()
    pacer = Pacer(60, clock)
    assert pacer.wait(stopped) is False
    assert sent(pacer, clock, 1) == [1000.0]  # and he has taken no slot from others


def test_a_stop_ends_the_wait_for_a_slot_or_a_pause() -> None:
    results: list[bool] = []
    for pacer in (Pacer(0.001), Pacer()):
        if pacer.rpm:
            pacer.reserve(pacer._clock())
        else:
            pacer.pause(3600)
        stopped = threading.Event()
        threads = [
            threading.Thread(target=lambda p=pacer, s=stopped: results.append(p.wait(s)))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        stopped.set()
        for thread in threads:
            thread.join(timeout=30)
    assert results == [False] * 8


def test_a_stop_that_comes_together_with_the_slot_counts() -> None:
    class StoppedWhileAsleep(Clock):
        def wait(self, timeout: float | None = None) -> bool:
            super().wait(timeout)
            self.set()
            return False  # it came after the wait and before the next look

    clock = StoppedWhileAsleep()
    pacer = Pacer(50, clock)
    assert pacer.wait(clock) is True
    assert pacer.wait(clock) is False


# --- pauses ---------------------------------------------------------------------------------------


def test_a_pause_holds_all_back_and_the_longest_counts() -> None:
    clock = Clock()
    pacer = Pacer(clock=clock)
    pacer.pause(10)
    pacer.pause(3)
    assert pacer.pause_left == 10
    clock.now += 4
    pacer.pause(20)
    pacer.pause(1)
    assert pacer.pause_left == 20
    assert sent(pacer, clock, 3) == [1024.0] * 3
    assert pacer.pause_left == 0


def test_who_waits_already_is_held_back_too_and_they_do_not_all_go_at_once_afterwards() -> None:
    clock = Clock()
    pacer = Pacer(50, clock)
    slots = [pacer.reserve(clock.now) for _ in range(5)]
    gap = 60 / 48.5
    clock.now += 0.5
    pacer.pause(30)
    due = [clock.now + pacer.delay(slot, clock.now) for slot in slots]
    # The first was there already; whoever has not sent yet keeps his place behind it.
    assert due == [pytest.approx(1030 + n * gap) for n in range(5)]
    clock.now += 30
    late = pacer.reserve(clock.now)
    assert clock.now + pacer.delay(late, clock.now) == pytest.approx(1030 + 5 * gap)


def test_a_pause_that_comes_during_a_wait_makes_it_longer() -> None:
    class PausedWhileAsleep(Clock):
        def wait(self, timeout: float | None = None) -> bool:
            if pacer.pause_left == 0:
                pacer.pause(100)
            return super().wait(timeout)

    clock = PausedWhileAsleep()
    pacer = Pacer(50, clock)
    first, second = sent(pacer, clock, 2)
    assert first == 1000.0
    assert second == pytest.approx(1100 + 60 / 48.5)


def test_a_quiet_time_is_no_pause_and_a_pause_no_quiet_time() -> None:
    clock = Clock()
    pacer = Pacer(600, clock)
    sent(pacer, clock, 9)
    pacer.pause(50)  # in which nobody could send: no burst is saved up
    times = sent(pacer, clock, 3)
    assert times == [pytest.approx(1050 + n * 60 / 582) for n in (1, 2, 3)]


@pytest.mark.parametrize("seconds", [0, -5, math.nan, -math.inf])
def test_a_pause_of_nothing_is_none(seconds: float) -> None:
    clock = Clock()
    pacer = Pacer(50, clock)
    pacer.pause(seconds)
    assert sent(pacer, clock, 2) == [1000.0, pytest.approx(1000 + 60 / 48.5)]


def test_a_pause_without_end_can_still_be_waited_for() -> None:
    clock = Clock()
    pacer = Pacer(50, clock)
    pacer.pause(math.inf)
    assert sent(pacer, clock, 1) == [1000.0 + 24 * 3600]


# --- what replies tell ----------------------------------------------------------------------------


def reply(remaining: int, reset: float = EPOCH + 20, limit: object = 50) -> dict[str, str]:
    return {
        "x-ratelimit-limit": str(limit),
        "x-ratelimit-remaining": str(remaining),
        "x-ratelimit-used": str(50 - remaining),
        "x-ratelimit-reset": str(int(reset)),
    }


def test_the_limit_is_learned_from_a_reply() -> None:
    clock = Clock()
    pacer = Pacer(clock=clock)
    assert sent(pacer, clock, 3) == [1000.0] * 3
    pacer.learn(reply(47), EPOCH)
    assert pacer.rpm == 50
    times = sent(pacer, clock, 49)
    assert times == [pytest.approx(1000 + n * 60 / 48.5) for n in range(49)]


def test_a_new_limit_replaces_the_earlier() -> None:
    clock = Clock()
    pacer = Pacer(clock=clock)
    for limit in (50, 500, 150):
        pacer.learn(reply(9, limit=limit), EPOCH)
        assert pacer.rpm == limit
    assert sent(pacer, clock, 3)[2] == pytest.approx(1000 + 60 / 145.5)


def test_when_nothing_is_left_nobody_sends_until_the_reset() -> None:
    clock = Clock()
    pacer = Pacer(clock=clock)
    pacer.learn(reply(0), EPOCH)
    assert pacer.pause_left == 20
    assert sent(pacer, clock, 1) == [1020.0]


@pytest.mark.parametrize(
    ("ahead", "waited"), [(20, 20), (60, 60), (61, 60), (7200, 60), (0, 0), (-30, 0), (-7200, 0)]
)
def test_a_reset_far_away_is_a_clock_that_is_wrong(ahead: float, waited: float) -> None:
    pacer = Pacer(clock=Clock())
    pacer.learn(reply(0, EPOCH + ahead), EPOCH)
    assert pacer.pause_left == waited


@pytest.mark.parametrize("skew", [-7200, -5, 5, 7200])
def test_where_the_service_tells_its_time_a_wrong_clock_here_does_not_matter(skew: float) -> None:
    pacer = Pacer(clock=Clock())
    headers = {**reply(0), "date": email.utils.formatdate(EPOCH, usegmt=True)}
    pacer.learn(headers, EPOCH + skew)
    assert pacer.pause_left == 20


def test_who_gave_a_limit_keeps_it() -> None:
    pacer = Pacer(2000, Clock())
    pacer.learn(reply(0), EPOCH)
    assert pacer.rpm == 2000
    assert pacer.pause_left == 0


@pytest.mark.parametrize(
    "headers",
    [
        {},
        reply(3, limit=0),
        reply(3, limit=-5),
        reply(3, limit="1e3"),
        reply(3, limit="10, 10;w=1"),
        reply(3, limit="٥٠"),
        reply(3, limit="9" * 400),
        {"x-ratelimit-remaining": "0"},
        {"x-ratelimit-reset": str(int(EPOCH + 20))},
        {"x-ratelimit-remaining": "none", "x-ratelimit-reset": str(int(EPOCH + 20))},
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon"},
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "30"},  # seconds from now, maybe
        {"date": "yesterday"},
    ],
)
def test_what_is_not_understood_changes_nothing(headers: dict[str, str]) -> None:
    clock = Clock()
    pacer = Pacer(clock=clock)
    pacer.learn(headers, EPOCH)
    assert pacer.rpm is None
    assert sent(pacer, clock, 2) == [1000.0] * 2


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["date", *reply(0)]),
        st.one_of(st.text(max_size=12), st.integers(-5, 10**12).map(str), st.just("0")),
    )
)
def test_whatever_a_reply_says_questions_go_on(headers: dict[str, str]) -> None:
    clock = Clock()
    pacer = Pacer(clock=clock)
    pacer.learn(headers, EPOCH)
    assert pacer.pause_left <= 60
    assert len(sent(pacer, clock, 2)) == 2
    assert clock.now <= 1000 + 60 + 60 / 0.97


def test_a_response_of_requests_is_read_whatever_its_case() -> None:
    from requests.structures import CaseInsensitiveDict

    pacer = Pacer(clock=Clock())
    pacer.learn(CaseInsensitiveDict({k.title(): v for k, v in reply(0).items()}), EPOCH)
    assert (pacer.rpm, pacer.pause_left) == (50, 20)
