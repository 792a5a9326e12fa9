"""Folding records that may leave columns to older versions: partial updates.

The fold goes block by block, all keys of a block at once. For each key and column it keeps not a value but the
number of the data row that provides it, so that values are gathered once, at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.merge.fold import Folded
from drawstring.merge.log_records import LogRecords, Segment
from drawstring.merge.ordering import COMMIT_DELETE, DATA, Index, Kinds, Mask, older_stands
from drawstring.model.read_task import MergeSpec

_META_COLUMNS = frozenset(
    f"_hoodie_{name}" for name in ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
)
IGNORE_DEFAULTS, FILL_UNAVAILABLE = "IGNORE_DEFAULTS", "FILL_UNAVAILABLE"


@dataclass(frozen=True)
class PartialFold:
    """What the logs say of each key, column by column.

    `sources[name]` is, per key, the data row that provides the column, -1 when none does; `given[name]` tells,
    per data row, whether its value counts as given.
    """

    folded: Folded
    sources: dict[str, Index]
    given: dict[str, Mask]

    def has_value(self, name: str, keys: Index) -> Mask:
        """For which keys the logs give the column a value."""
        rows = self.sources[name][keys]
        return (rows >= 0) & self.given[name][rows] if len(self.given[name]) else np.zeros(len(keys), bool)


def counts_as_given(values: pa.Array | pa.ChunkedArray, spec: MergeSpec) -> Mask:
    """Where a value counts as given, rather than as left to an older version."""
    if spec.partial_update_mode == IGNORE_DEFAULTS:
        return np.asarray(values.is_valid())
    textual = pa.types.is_string(values.type) or pa.types.is_binary(values.type)
    if spec.partial_update_mode == FILL_UNAVAILABLE and textual and spec.unavailable_value is not None:
        marker = pa.scalar(spec.unavailable_value.encode()).cast(values.type)
        return np.asarray(pc.fill_null(pc.not_equal(values, marker), True))
    return np.ones(len(values), dtype=bool)


def keeps_newer(column: str, spec: MergeSpec) -> bool:
    """Whether the column comes from the newer record even where the older one wins."""
    return spec.meta_from_newer and column in _META_COLUMNS


def fold_partial(records: LogRecords, spec: MergeSpec, columns: Sequence[str]) -> PartialFold:
    """Fold records column by column, for the given columns."""
    fold = _Fold(records, spec, columns)
    for segment in records.segments:
        for events in _rounds(records, segment):
            fold.merge(events, segment.columns)
    return PartialFold(Folded(fold.kinds, fold.events), fold.sources, fold.given)


def _rounds(records: LogRecords, segment: Segment) -> Iterator[Index]:
    """Split a block's events so that no key repeats within a round."""
    remaining = np.arange(segment.events.start, segment.events.stop)
    while len(remaining):
        _, first = np.unique(records.key_ids[remaining], return_index=True)
        yield remaining[np.sort(first)]
        remaining = np.delete(remaining, first)


class _Fold:
    """The state of a fold: per key the standing event, and per column the row that provides it."""

    def __init__(self, records: LogRecords, spec: MergeSpec, columns: Sequence[str]) -> None:
        key_count = len(records.keys)
        self._records = records
        self._spec = spec
        self._by_event_time = spec.mode == "EVENT_TIME_ORDERING" and bool(records.orderings)
        self.kinds: Kinds = np.zeros(key_count, dtype=np.int8)
        self.events: Index = np.full(key_count, -1, dtype=np.int64)
        self.sources: dict[str, Index] = {name: np.full(key_count, -1, dtype=np.int64) for name in columns}
        self.given: dict[str, Mask] = {
            name: counts_as_given(records.data.column(name), spec) for name in columns
        }
        for segment in records.segments:
            self._mark_missing(segment)

    def _mark_missing(self, segment: Segment) -> None:
        if segment.columns is None:
            return
        rows = self._records.rows[segment.events.start : segment.events.stop]
        for name, given in self.given.items():
            if name not in segment.columns:
                given[rows] = False

    def merge(self, events: Index, assigned: frozenset[str] | None) -> None:
        """Merge one event into each of as many keys."""
        keys = self._records.key_ids[events]
        kinds, standing = self._records.kinds[events], self.kinds[keys]
        is_data = kinds == DATA
        wins = self._wins(events, keys) & ~((standing == COMMIT_DELETE) & ~is_data)
        meeting = _Meeting(keys, self._records.rows[events], wins, is_data, standing == DATA, assigned)
        for name, source in self.sources.items():
            source[keys] = self._merged_source(name, source[keys], meeting)
        self.kinds[keys[wins]] = kinds[wins]
        self.events[keys[wins]] = events[wins]

    def _wins(self, events: Index, keys: Index) -> Mask:
        standing = self.events[keys]
        kinds = self._records.kinds
        if not self._by_event_time:
            return np.ones(len(events), dtype=bool)
        older = [values.take(pa.array(np.maximum(standing, 0))) for values in self._records.orderings]
        newer = [values.take(pa.array(events)) for values in self._records.orderings]
        stands = older_stands(older, newer, newer_kinds=kinds[events], older_kinds=kinds[standing])
        wins: Mask = (standing < 0) | ~stands
        return wins

    def _merged_source(self, name: str, old: Index, meeting: _Meeting) -> Index:
        """The row that provides a column of each key after the meeting; `old` did before."""
        rows, wins, is_data = meeting.rows, meeting.wins, meeting.is_data
        new_given = is_data & self._is_given(name, rows)
        old_given = (old >= 0) & self._is_given(name, old)
        missing = meeting.assigned is not None and name not in meeting.assigned
        fresh = np.full(len(rows), -1, dtype=np.int64) if missing else rows
        result = np.where(wins & is_data & ~meeting.over_data, fresh, old)
        result = np.where(wins & is_data & meeting.over_data & new_given, rows, result)
        result = np.where(wins & ~is_data, -1, result)
        yields = keeps_newer(name, self._spec) | ~old_given
        return np.where(~wins & is_data & meeting.over_data & yields & new_given, rows, result)

    def _is_given(self, name: str, rows: Index) -> Mask:
        given = self.given[name]
        return given[rows] if len(given) else np.zeros(len(rows), dtype=bool)


@dataclass(frozen=True)
class _Meeting:
    """New events meeting what stands, key by key.

    `over_data` tells where a data record stands; `assigned` names the columns that the new records have.
    """

    keys: Index
    rows: Index
    wins: Mask
    is_data: Mask
    over_data: Mask
    assigned: frozenset[str] | None
