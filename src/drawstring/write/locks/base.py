"""What every lock provider promises, and how all of them wait."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from drawstring.errors import CommitConflict

T = TypeVar("T")

_FIRST_PAUSE = 0.002
_LONGEST_PAUSES = ((0.5, 0.1), (float("inf"), 0.02))
"""Up to so many seconds of waiting, pauses are at most so long: who has waited for long looks more often."""


class Lease(Protocol):
    """A lock that was had; it may have been lost since."""

    @property
    def token(self) -> str:
        """What tells this turn from all others."""
        ...

    def is_held(self) -> bool:
        """Whether the lock still names this holder. Time alone never says yes: the lock itself is looked at."""
        ...

    def release(self, *, expected: bool = True) -> None:
        """Give the lock back. A lock that names somebody else by now is left alone.

        `expected` says that the lock should still be there, so that its loss is told: it is not where the folder
        that it lay in went away.
        """
        ...


class LockProvider(Protocol):
    """A way to let one writer of a table in at a time."""

    @property
    def path(self) -> str:
        """Where the lock lies below its storage; empty when it is no file."""
        ...

    def acquire(self, *, wait_seconds: float) -> Lease:
        """Take the lock; raises `CommitConflict` (`LOCK_NOT_ACQUIRED`) when it cannot be had in time."""
        ...


def wait_for(
    attempt: Callable[[], T | None], *, wait_seconds: float, failure: Callable[[], CommitConflict]
) -> T:
    """Repeat `attempt` until it yields something; raise `failure` when the time is up."""
    began = time.monotonic()
    for pause in _pauses(began):
        found = attempt()
        if found is not None:
            return found
        left = began + wait_seconds - time.monotonic()
        if left <= 0:
            raise failure()
        time.sleep(min(pause, left))
    raise AssertionError("pauses never end")


def _pauses(began: float) -> Iterator[float]:
    pause = _FIRST_PAUSE
    while True:
        waited = time.monotonic() - began
        longest = next(longest for limit, longest in _LONGEST_PAUSES if waited < limit)
        yield random.uniform(0.5, 1.0) * min(pause, longest)
        pause = min(pause * 1.6, 1.0)


def not_acquired(root: str, lock: str, *, holder: str, advice: str, waited: float) -> CommitConflict:
    """The error for a lock that stayed with its holder."""
    return CommitConflict(
        f"The table {root} is locked by {holder}: {lock} was not released within {waited:g} s. Nothing was "
        f"written. {advice}",
        condition="LOCK_NOT_ACQUIRED",
        path=root,
        lock=lock,
        holder=holder,
        waited_seconds=waited,
    )
