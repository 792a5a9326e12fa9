"""Timing, and figures that know whether they keep their promise."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Action = Callable[[], Any]


@dataclass(frozen=True)
class Figure:
    """One measured thing. `value` is a ratio, or seconds, or a rate; `limit` is what was promised of it.

    `at_least` turns the promise round: rates are to reach their limit, ratios and times are to stay below it.
    """

    workload: str
    what: str
    value: float
    unit: str
    limit: float | None = None
    at_least: bool = False
    detail: str = ""

    @property
    def kept(self) -> bool | None:
        """Whether the promise is kept; None when nothing was promised."""
        if self.limit is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def consume(frame: Any) -> None:
    """Run a query and throw its rows away."""
    frame.write.format("noop").mode("overwrite").save()


def seconds(action: Action) -> float:
    """How long one call takes."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def median_seconds(action: Action, *, times: int = 3, warm_up: int = 1) -> float:
    """The median of some calls after a warm-up."""
    for _ in range(warm_up):
        action()
    return statistics.median(seconds(action) for _ in range(times))


def compare(action: Action, baseline: Action, *, times: int = 5, warm_up: int = 2) -> tuple[float, float]:
    """Median seconds of both, measured in turns, so that a noisy neighbour disturbs both alike.

    Who goes first changes from turn to turn: what one leaves behind (garbage, a warm cache) is the other's to bear.
    """
    for _ in range(warm_up):
        baseline()
        action()
    measured, base = [], []
    for turn in range(times):
        for each, taken in [(action, measured), (baseline, base)][:: 1 if turn % 2 else -1]:
            taken.append(seconds(each))
    return statistics.median(measured), statistics.median(base)


def ratio(
    workload: str,
    what: str,
    action: Action,
    baseline: Action,
    *,
    limit: float,
    times: int = 5,
    warm_up: int = 2,
) -> Figure:
    """Compare two actions as a figure."""
    measured, base = compare(action, baseline, times=times, warm_up=warm_up)
    return Figure(
        workload, what, measured / base, "×", limit, detail=f"{measured:.2f} s against {base:.2f} s"
    )
