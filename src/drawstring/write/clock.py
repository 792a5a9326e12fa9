"""Instant times: later than everything on the timeline, and no further ahead of the clock than needed."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterable

from drawstring.model.instant import Instant
from drawstring.timeline.layout_v2 import instant_of_epoch

Clock = Callable[[], int]
"""Returns epoch milliseconds; a parameter, so that tests can turn it."""

_FORMAT = "%Y%m%d%H%M%S%f"
_LONGEST_WAIT_SECONDS = 2.0


def system_clock() -> int:
    """Return the machine's time in epoch milliseconds."""
    return time.time_ns() // 1_000_000


def newest_time(instants: Iterable[Instant]) -> str:
    """Return the newest requested or completion time, an empty string when there is none."""
    times = [time for i in instants for time in (i.requested_time, i.completion_time) if time]
    return max(times, default="")


def next_time(newest: str, *, clock: Clock, timezone: str) -> str:
    """Return a time later than `newest`, the clock's when that is late enough.

    When the timeline is a little ahead of the clock, this waits: Hudi itself takes the clock as it is, so
    that an instant from the future would sort after what Hudi commits next.
    """
    deadline = time.monotonic() + _LONGEST_WAIT_SECONDS
    while True:
        now_ms = clock()
        now = instant_of_epoch(now_ms, timezone)
        if now > newest:
            return now
        soon = instant_of_epoch(now_ms + int(_LONGEST_WAIT_SECONDS * 1000), timezone)
        if newest > soon or time.monotonic() > deadline:
            return after(newest)
        time.sleep(0.001)


def after(instant: str) -> str:
    """Return the time one millisecond after an instant."""
    moment = dt.datetime.strptime(instant[:17].ljust(17, "9"), _FORMAT) + dt.timedelta(milliseconds=1)
    return moment.strftime(_FORMAT)[:17]
