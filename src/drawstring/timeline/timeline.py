"""The timeline: an immutable sequence of instants, and the questions readers ask of it."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from drawstring.model.instant import WRITE_ACTIONS, Action, Instant, State

COMPLETES_AS = {
    Action.COMPACTION: Action.COMMIT,
    Action.CLUSTERING: Action.REPLACECOMMIT,
    Action.LOGCOMPACTION: Action.DELTACOMMIT,
}
"""Actions that change their name when they complete."""

_PROGRESS = {State.REQUESTED: 0, State.INFLIGHT: 1, State.COMPLETED: 2}


@dataclass(frozen=True)
class Timeline:
    """The active timeline at one moment.

    1. Each instant appears once, in its most advanced state.
    2. Instants are sorted by requested time.
    """

    ascending_instants: tuple[Instant, ...] = ()

    @classmethod
    def of(cls, found: Iterable[Instant]) -> Timeline:
        """Build a timeline from instants' files: of several of one instant the most advanced counts."""
        latest: dict[tuple[str, Action], Instant] = {}
        for instant in found:
            key = (instant.requested_time, COMPLETES_AS.get(instant.action, instant.action))
            known = latest.get(key)
            if known is None or _PROGRESS[instant.state] > _PROGRESS[known.state]:
                latest[key] = instant
        return cls(tuple(sorted(latest.values(), key=attrgetter("requested_time", "action"))))

    @cached_property
    def completed_writes(self) -> tuple[Instant, ...]:
        """Completed commits, deltacommits and replacecommits, by requested time."""
        return tuple(i for i in self.ascending_instants if i.is_completed and i.action in WRITE_ACTIONS)

    @cached_property
    def savepoints(self) -> tuple[Instant, ...]:
        """Completed savepoints; their requested time is that of the commit they protect."""
        return tuple(i for i in self.ascending_instants if i.is_completed and i.action is Action.SAVEPOINT)

    @cached_property
    def completed_cleans(self) -> tuple[Instant, ...]:
        """Completed cleans, by requested time."""
        return tuple(i for i in self.ascending_instants if i.is_completed and i.action is Action.CLEAN)

    @cached_property
    def pending(self) -> tuple[Instant, ...]:
        """Instants that have not completed."""
        return tuple(i for i in self.ascending_instants if not i.is_completed)

    @cached_property
    def pending_compactions(self) -> tuple[Instant, ...]:
        """Compactions that were planned and have not completed."""
        return tuple(i for i in self.pending if i.action is Action.COMPACTION)

    @cached_property
    def by_requested_time(self) -> dict[str, Instant]:
        """Completed writes by requested time."""
        return {instant.requested_time: instant for instant in self.completed_writes}

    @cached_property
    def _pending_times(self) -> frozenset[str]:
        return frozenset(i.requested_time for i in self.pending)

    @cached_property
    def start(self) -> str | None:
        """Requested time of the first completed write that no savepoint has kept behind the others."""
        savepointed = {instant.requested_time for instant in self.savepoints}
        kept = [i.requested_time for i in self.completed_writes if i.requested_time not in savepointed]
        times = kept or [i.requested_time for i in self.completed_writes]
        return times[0] if times else None

    def is_committed(self, requested_time: str) -> bool:
        """Whether files of this instant are visible: it completed, or is older than the active timeline."""
        if requested_time in self.by_requested_time:
            return True
        if requested_time in self._pending_times:
            return False
        return self.start is not None and requested_time < self.start

    def completion_time(self, requested_time: str) -> str | None:
        """When a write of the active timeline completed."""
        instant = self.by_requested_time.get(requested_time)
        return instant.completion_time if instant else None

    def writes_until(self, requested_time: str | None) -> tuple[Instant, ...]:
        """Completed writes requested at or before a time; all of them for None."""
        if requested_time is None:
            return self.completed_writes
        return tuple(i for i in self.completed_writes if i.requested_time <= requested_time)

    @cached_property
    def fingerprint(self) -> str:
        """A digest that changes whenever an instant appears, advances or vanishes."""
        names = "\n".join(f"{i.file_name}:{i.completion_time}" for i in self.ascending_instants)
        return hashlib.sha256(names.encode()).hexdigest()[:16]

    def to_text(self) -> str:
        """The timeline as a short text from which `from_text` makes it again."""
        lines = [
            f"{i.requested_time} {i.action.value} {i.state.value} {i.completion_time or '-'} {i.file_name}"
            for i in self.ascending_instants
        ]
        return base64.b64encode(zlib.compress("\n".join(lines).encode())).decode()

    @classmethod
    def from_text(cls, text: str) -> Timeline:
        """The timeline that `to_text` wrote: what was seen then, whatever has happened since."""
        lines = zlib.decompress(base64.b64decode(text)).decode().splitlines()
        return cls(tuple(_instant(line) for line in lines))


def _instant(line: str) -> Instant:
    requested, action, state, completed, file_name = line.split(" ", 4)
    return Instant(
        requested, Action(action), State(state), None if completed == "-" else completed, file_name
    )
