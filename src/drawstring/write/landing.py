"""Whether an instant is completed: the proof without which nothing of a write is deleted."""

from __future__ import annotations

from drawstring.planning.table_state import TableState


def is_completed(state: TableState, requested_time: str) -> bool:
    """Whether a write is completed, on the active timeline or archived."""
    if requested_time in state.timeline.by_requested_time:
        return True
    if any(instant.requested_time == requested_time for instant in state.timeline.pending):
        return False
    return requested_time in state.history.completion_times
