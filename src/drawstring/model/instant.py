"""Instants: the points of a Hudi timeline."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Action(str, Enum):
    """What an instant does. A completed compaction appears as COMMIT, clustering as REPLACECOMMIT."""

    COMMIT = "commit"
    DELTACOMMIT = "deltacommit"
    REPLACECOMMIT = "replacecommit"
    CLUSTERING = "clustering"
    COMPACTION = "compaction"
    LOGCOMPACTION = "logcompaction"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    RESTORE = "restore"
    INDEXING = "indexing"
    SCHEMACOMMIT = "schemacommit"

    # As they compare: that of enumerations is written in Python, and long timelines look up every instant.
    __hash__ = str.__hash__


WRITE_ACTIONS = frozenset({Action.COMMIT, Action.DELTACOMMIT, Action.REPLACECOMMIT})
"""The actions under which data becomes visible once completed."""


class State(str, Enum):
    """How far an instant got; its most advanced file decides."""

    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"

    __hash__ = str.__hash__


@dataclass(frozen=True)
class Instant:
    """One point of the timeline.

    Invariants: `completion_time` is set exactly when `state` is COMPLETED (version 6: it equals
    `requested_time`).
    Times are digit strings that compare as strings.
    """

    requested_time: str
    action: Action
    state: State
    completion_time: str | None = None
    file_name: str = ""

    @property
    def is_completed(self) -> bool:
        """Whether readers may see what this instant wrote."""
        return self.state is State.COMPLETED
