"""Merge plans: a merged slice is its base file without the hidden rows, followed by the winning rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.formats.log_blocks import LogBlock
from drawstring.formats.parquet import ParquetSource
from drawstring.merge.file_errors import naming_file
from drawstring.merge.fold import Folded, fold
from drawstring.merge.keys import key_columns, record_keys
from drawstring.merge.large_blocks import decoded_size, stream_records
from drawstring.merge.log_records import LogRecords, MergeColumns, read_records
from drawstring.merge.log_scan import blocks_of
from drawstring.merge.ordering import DATA, Index, Mask, normalised, older_stands
from drawstring.merge.partial import PartialFold, counts_as_given, fold_partial, keeps_newer
from drawstring.merge.spill import Parts, WinnerFile, parted
from drawstring.model.read_task import MergeSpec, ReadTask
from drawstring.schema.meta_columns import COMMIT_TIME
from drawstring.schema.projection import plan_projection
from drawstring.storage.base import Storage

WINNER_BATCH_ROWS = 65_536
DEFAULT_MEMORY_BYTES = 256 * 2**20
"""Bytes of log records that are merged in memory; more are partitioned by key into temporary files."""
_MOST_LEVELS = 3
"""How often a part that is still too large is split again; the events of one key cannot be split."""
_KEY_BATCH_ROWS, _WIDE_BATCH_ROWS = 1 << 20, 1 << 16
_EVENT_TIME = "EVENT_TIME_ORDERING"


@dataclass(frozen=True)
class MergePlan:
    """How to read a merged slice.

    - `hidden`: for each row of the base file, whether it is left out.
    - `winners`: the rows to append, in the requested schema; `winner_count` is how many, also without columns.
    - `base_footer`: the footer of the base file, for those who read on; it may be absent.
    """

    hidden: Mask
    winners: pa.Table
    winner_count: int
    base_footer: Any = field(default=None, repr=False, compare=False)

    @property
    def row_count(self) -> int:
        """The number of rows of the merged slice."""
        return len(self.hidden) - self.hidden_count + self.winner_count

    @property
    def hidden_count(self) -> int:
        """The number of base rows left out."""
        return int(np.count_nonzero(self.hidden))

    def hidden_bits(self) -> bytes:
        """The hidden rows as bits, the first row in the lowest bit of the first byte."""
        return np.packbits(self.hidden, bitorder="little").tobytes()

    def winner_batches(self) -> Iterator[pa.RecordBatch]:
        """The winners, batch by batch."""
        yield from self.winners.to_batches(max_chunksize=WINNER_BATCH_ROWS)


def build_merge_plan(
    task: ReadTask,
    *,
    storage: Storage,
    table_schema: pa.Schema,
    columns: Sequence[str],
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> MergePlan:
    """Merge the logs of a slice with its base file's keys.

    Args:
        task: the slice, with its merge rules.
        storage: where the files are.
        table_schema: the schema that is read.
        columns: the columns that winners shall have, in order.
        memory_bytes: bytes of log records to merge in memory at once.

    Raises:
        CorruptTable: a file is missing or damaged; the error names it.
    """
    merge = _Merge(task, storage, table_schema, tuple(columns), memory_bytes)
    return merge.plan_blocks(blocks_of(task, storage))


class _MergedParts:
    """The plans of parts of the keys, becoming one."""

    def __init__(self, winners: WinnerFile) -> None:
        self._hidden: Mask = np.zeros(0, dtype=bool)
        self._winners = winners
        self._count = 0

    def add(self, plan: MergePlan) -> None:
        """Add the plan of one part."""
        self._hidden = plan.hidden | self._hidden if len(self._hidden) else plan.hidden
        self._count += plan.winner_count
        self._winners.add(plan.winners)

    def plan(self, footer: Any) -> MergePlan:
        """The plan of all parts."""
        return MergePlan(self._hidden, self._winners.finish(), self._count, footer)


class _Merge:
    """One slice being merged."""

    def __init__(
        self,
        task: ReadTask,
        storage: Storage,
        table_schema: pa.Schema,
        columns: tuple[str, ...],
        memory_bytes: int,
    ) -> None:
        self._task = task
        self._storage = storage
        self._spec = task.merge or MergeSpec("COMMIT_TIME_ORDERING")
        self._columns = MergeColumns.of(task, table_schema, columns)
        self._requested = pa.schema([table_schema.field(name) for name in columns])
        self._footer: Any = None
        self._memory_bytes = memory_bytes

    def plan_blocks(self, blocks: Sequence[LogBlock]) -> MergePlan:
        """Merge blocks with the base file: at once when memory allows, else part by part of their keys."""
        memory = self._memory_bytes
        size = decoded_size(blocks, self._columns.schema, enough=memory)
        if size <= memory:
            return self.plan(read_records(self._task, blocks, self._columns))
        stream = stream_records(self._task, blocks, self._columns, max_bytes=memory // 4)
        with WinnerFile(self._requested) as winners:
            merged = _MergedParts(winners)
            with parted(stream, count=-(-2 * size // memory)) as parts:
                self._plan_parts(parts, merged)
            return merged.plan(self._footer)

    def _plan_parts(self, parts: Parts, merged: _MergedParts) -> None:
        """Merge each part with the whole base file; parts that are too large are split again."""
        for index in range(len(parts.paths)):
            size = parts.size(index)
            if size > self._memory_bytes and parts.level < _MOST_LEVELS:
                with parts.split(index, count=-(-2 * size // self._memory_bytes)) as smaller:
                    self._plan_parts(smaller, merged)
            else:
                records = parts.load(index, self._columns.schema.names, len(self._columns.ordering))
                if records is not None:
                    merged.add(self.plan(records))

    def plan(self, records: LogRecords) -> MergePlan:
        """Merge records with the base file."""
        if records.is_partial or self._spec.partial_update_mode:
            return self._partial_plan(records)
        folded = fold(records, by_event_time=self._by_event_time)
        hidden, standing = self._meet_base(records, folded)
        rows = records.rows[folded.events[standing & (folded.kinds == DATA)]]
        return MergePlan(hidden, self._winners(records, rows), len(rows), self._footer)

    @property
    def _by_event_time(self) -> bool:
        return self._spec.mode == _EVENT_TIME and bool(self._columns.ordering)

    def _winners(self, records: LogRecords, rows: Index) -> pa.Table:
        data = records.data.select(self._requested.names)
        if len(rows) == data.num_rows and np.array_equal(rows, np.arange(len(rows))):
            return data
        return data.take(pa.array(rows))

    def _meet_base(self, records: LogRecords, folded: Folded) -> tuple[Mask, Mask]:
        """Which base rows are hidden, and for which keys the record of the logs wins."""
        standing = np.ones(len(records.keys), dtype=bool)
        hidden: list[Mask] = []
        for batch, positions, ids in self._matches(records, self._base_schema(())):
            later = self._base_is_later(records, folded, batch, positions, ids)
            standing[ids[later]] = False
            mask = np.zeros(batch.num_rows, dtype=bool)
            mask[positions[~later]] = True
            hidden.append(mask)
        return np.concatenate(hidden) if hidden else np.zeros(0, dtype=bool), standing

    def _base_schema(self, columns: Sequence[str]) -> pa.Schema:
        names = [*columns, *key_columns(self._task.keys)]
        if self._by_event_time:
            names += [name.split(".")[0] for name in self._columns.ordering]
        fields = {name: self._columns.schema.field(name) for name in names}
        if self._task.keep_commit_times is not None:
            fields[COMMIT_TIME] = pa.field(COMMIT_TIME, pa.string())
        return pa.schema(fields.values())

    def _matches(
        self, records: LogRecords, wanted: pa.Schema
    ) -> Iterator[tuple[pa.RecordBatch, Index, Index]]:
        """Yield batches of the base file, with the rows that the logs know and their key ids.

        A key that the base file holds twice meets the logs once, at its first row, as in Hudi.
        """
        base = self._task.slice.base_file
        if base is None:
            return
        met = np.zeros(len(records.keys), dtype=bool)
        with (
            naming_file(base, self._task.slice.group.partition_path),
            ParquetSource(self._storage.open(base.path), base.path, footer=self._footer) as parquet,
        ):
            self._footer = parquet.footer
            plan = plan_projection(parquet.schema, wanted, mapping=self._task.mapping_for(base.path))
            few = len(wanted) <= 4
            rows = _KEY_BATCH_ROWS if few else _WIDE_BATCH_ROWS
            for found in parquet.batches(plan.file_columns, batch_rows=rows):
                batch = plan.apply(found)
                index = pc.index_in(record_keys(batch, self._task.keys), value_set=records.keys)
                positions = np.flatnonzero(np.asarray(index.is_valid()) & self._in_range(batch))
                ids = np.asarray(index.fill_null(0))[positions].astype(np.int64)
                _, first = np.unique(ids, return_index=True)
                first = first[~met[ids[first]]]
                met[ids] = True
                yield batch, positions[first], ids[first]

    def _in_range(self, batch: pa.RecordBatch) -> Any:
        """Where base rows take part: incremental reads pass over rows of other commits before merging, as Hudi does."""
        if self._task.keep_commit_times is None:
            return True
        kept = pa.array(sorted(self._task.keep_commit_times), pa.string())
        return np.asarray(pc.is_in(batch.column(COMMIT_TIME), value_set=kept))

    def _base_is_later(
        self, records: LogRecords, folded: Folded, batch: pa.RecordBatch, positions: Index, ids: Index
    ) -> Mask:
        """Where the base row's ordering value is greater than that of the logs' event."""
        if not self._by_event_time or not len(ids):
            return np.zeros(len(ids), dtype=bool)
        taken = pa.array(positions)
        base = [normalised(values.take(taken)) for values in self._columns.orderings(batch)]
        events = pa.array(folded.events[ids])
        logs = [values.take(events) for values in records.orderings]
        return older_stands(base, logs, newer_kinds=folded.kinds[ids])

    def _partial_plan(self, records: LogRecords) -> MergePlan:
        names = self._requested.names
        partial = fold_partial(records, self._spec, names)
        unmatched = partial.folded.kinds == DATA
        winner_count = 0
        hidden, merged = [], []
        for batch, positions, ids in self._matches(records, self._base_schema(names)):
            later = self._base_is_later(records, partial.folded, batch, positions, ids)
            is_data = partial.folded.kinds[ids] == DATA
            mask = np.zeros(batch.num_rows, dtype=bool)
            mask[positions[is_data | ~later]] = True
            hidden.append(mask)
            unmatched[ids] = False
            winner_count += int(np.count_nonzero(is_data))
            merged.append(
                self._merged(records, partial, batch, positions[is_data], ids[is_data], later[is_data])
            )
        merged.append(self._alone(records, partial, np.flatnonzero(unmatched)))
        winner_count += int(np.count_nonzero(unmatched))
        winners = pa.concat_tables(merged)
        return MergePlan(
            np.concatenate(hidden) if hidden else np.zeros(0, dtype=bool), winners, winner_count, self._footer
        )

    def _merged(
        self,
        records: LogRecords,
        partial: PartialFold,
        batch: pa.RecordBatch,
        positions: Index,
        ids: Index,
        base_is_later: Mask,
    ) -> pa.Table:
        """Base rows merged with the log records of their keys, column by column."""
        arrays = []
        for name in self._requested.names:
            base = batch.column(name).take(pa.array(positions))
            logged = partial.has_value(name, ids)
            base_given = counts_as_given(base, self._spec)
            base_first = base_is_later & (not keeps_newer(name, self._spec))
            from_logs = np.where(base_first, logged & ~base_given, logged)
            rows = np.where(
                from_logs, partial.sources[name][ids], records.data.num_rows + np.arange(len(ids))
            )
            both = pa.concat_arrays([*records.data.column(name).chunks, base])
            arrays.append(both.take(pa.array(rows)))
        return pa.Table.from_arrays(arrays, schema=self._requested)

    def _alone(self, records: LogRecords, partial: PartialFold, ids: Index) -> pa.Table:
        """Rows that only the logs know."""
        arrays = []
        for name in self._requested.names:
            rows = partial.sources[name][ids]
            arrays.append(records.data.column(name).take(pa.array(rows, mask=rows < 0)))
        return pa.Table.from_arrays(arrays, schema=self._requested)
