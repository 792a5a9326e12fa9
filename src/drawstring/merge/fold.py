"""Folding log records of each key into the one that meets the base row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drawstring.merge.log_records import COMMIT_DELETE, DATA, Kinds, LogRecords
from drawstring.merge.ordering import Index, latest_per_key


@dataclass(frozen=True)
class Folded:
    """What the logs say of each key: the kind of the event that stands, and which event it is.

    A commit-time delete has no ordering value to compare: it stands against any base row.
    """

    kinds: Kinds
    events: Index


def fold(records: LogRecords, *, by_event_time: bool) -> Folded:
    """Fold whole records: the last event of each key, or the latest by ordering value."""
    events = _latest_by_event_time(records) if by_event_time else _last(records)
    return Folded(records.kinds[events], events)


def _last(records: LogRecords) -> Index:
    last = np.empty(len(records.keys), dtype=np.int64)
    last[records.key_ids] = np.arange(len(records.key_ids))
    return last


def _latest_by_event_time(records: LogRecords) -> Index:
    """The latest event of each key.

    1. A commit-time delete makes everything before it void.
    2. Deletes right after it change nothing; from the first data record on, ordering values decide.
    3. Where only the commit-time delete is left, it stands.
    """
    ids, kinds, key_count = records.key_ids, records.kinds, len(records.keys)
    everything = np.arange(len(ids))
    voids = everything[kinds == COMMIT_DELETE]
    if not len(voids):
        return latest_per_key(ids, records.orderings, everything, key_count)
    void = np.full(key_count, -1, dtype=np.int64)
    void[ids[voids]] = voids
    after = everything > void[ids]
    first_data = np.full(key_count, len(ids), dtype=np.int64)
    data_after = everything[after & (kinds == DATA)][::-1]
    first_data[ids[data_after]] = data_after
    counts = after & ((void[ids] < 0) | (everything >= first_data[ids]))
    latest = latest_per_key(ids, records.orderings, everything[counts], key_count)
    return np.where(latest < 0, void, latest)
