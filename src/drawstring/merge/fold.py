"""Folding log records of each key into the one that meets the base row."""

from __future__ import annotations

from dataclasses import dataclass

from drawstring.merge.log_records import LogRecords
from drawstring.merge.ordering import Index, Kinds, last_per_key, winner_per_key


@dataclass(frozen=True)
class Folded:
    """What the logs say of each key: the kind of the event that stands, and which event it is.

    A commit-time delete has no ordering value to compare: it stands against any base row.
    """

    kinds: Kinds
    events: Index


def fold(records: LogRecords, *, by_event_time: bool) -> Folded:
    """Fold whole records: the last event of each key, or the latest by ordering value."""
    ids, key_count = records.key_ids, len(records.keys)
    if by_event_time:
        events = winner_per_key(ids, records.kinds, records.orderings, key_count)
    else:
        events = last_per_key(ids, key_count)
    return Folded(records.kinds[events], events)
