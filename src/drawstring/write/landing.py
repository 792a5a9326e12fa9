"""Whether an instant landed: the one proof without which nothing of a write is deleted."""

from __future__ import annotations

from drawstring.errors import CorruptTable
from drawstring.planning.table_state import TableState
from drawstring.storage.base import Storage
from drawstring.write import slots
from drawstring.write.table_facts import load_state


def has_landed(storage: Storage, requested_time: str) -> bool | None:
    """Whether an instant is committed, or decided to be: None when that cannot be told now.

    False is a proof only for one who knows that nobody can decide the instant any more: its own writer, or whoever
    holds the lock and takes the next slot.
    """
    try:
        decided = slots.holds(storage, requested_time, since=0)
        return decided or is_completed(load_state(storage), requested_time)
    except (OSError, CorruptTable):
        return None


def is_completed(state: TableState, requested_time: str) -> bool:
    """Whether a write is completed, on the active timeline or archived."""
    if requested_time in state.timeline.by_requested_time:
        return True
    if any(instant.requested_time == requested_time for instant in state.timeline.pending):
        return False
    return requested_time in state.history.completion_times
