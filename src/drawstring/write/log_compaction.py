"""Compaction of logs: the log blocks of a file slice merged with one another, not with its base file.

What a key's events fold into is written as one block of records and one of deletes, which name the instants that they
stand for. The old logs stay until the slice is cleaned; Hudi's readers may read both, for the new block says once more
what the old ones end in. Rows keep the commit time that they have.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa

from drawstring.formats.delete_blocks import DeleteBatch, decode_delete_block
from drawstring.formats.log_blocks import BlockType, LogBlock
from drawstring.formats.log_writer import data_headers, delete_block
from drawstring.merge.fold import fold
from drawstring.merge.large_blocks import decoded_size
from drawstring.merge.log_records import LogRecords, MergeColumns, read_records
from drawstring.merge.log_scan import blocks_of
from drawstring.merge.merge_plan import DEFAULT_MEMORY_BYTES
from drawstring.merge.ordering import Index
from drawstring.model.commit_metadata import WriteStat
from drawstring.model.read_task import ReadTask
from drawstring.storage.base import Storage
from drawstring.write.assignment import Bucket
from drawstring.write.base_files import TaskContext, WriteContext
from drawstring.write.log_files import Block, record_blocks, write_log
from drawstring.write.steps import advancing

OPERATION = "LOG_COMPACT"
_EVENT_TIME = "EVENT_TIME_ORDERING"


def has_many_blocks(storage: Storage, task: ReadTask, table_schema: pa.Schema, *, many: int) -> bool:
    """Whether a slice has so many live blocks that can become one.

    They cannot where versions of a record complete one another, and are left to compaction where they fill memory.
    """
    merge, blocks = task.merge, blocks_of(task, storage)
    if (
        len(blocks) < many
        or any(block.is_partial for block in blocks)
        or (merge and merge.partial_update_mode)
    ):
        return False
    return decoded_size(blocks, table_schema, enough=DEFAULT_MEMORY_BYTES) <= DEFAULT_MEMORY_BYTES


def compact_log(context: WriteContext, task: TaskContext, merged: ReadTask) -> list[WriteStat]:
    """Write the log that stands for the logs of a slice, and return what the commit says of it."""
    blocks = blocks_of(merged, context.storage)
    named = replace(context, compacted=tuple(sorted({block.instant_time for block in blocks})))
    columns = MergeColumns.of(merged, context.schema, context.schema.names)
    records = read_records(merged, blocks, columns)
    by_event_time = merged.merge is not None and merged.merge.mode == _EVENT_TIME
    events = fold(records, by_event_time=by_event_time).events
    bucket = Bucket(0, merged.slice.group, merged.slice)
    written = write_log(named, task, bucket, _folded_blocks(named, merged, blocks, records, events))
    return [_stat(stat, merged) for stat in written]


def _stat(stat: WriteStat, merged: ReadTask) -> WriteStat:
    logs = merged.slice.log_files
    return replace(
        stat,
        num_updates=0,
        prev_commit=merged.slice.base_instant,
        compacted_logs=len(logs),
        compacted_bytes=sum(log.size for log in logs),
    )


def _folded_blocks(
    context: WriteContext, merged: ReadTask, blocks: Sequence[LogBlock], records: LogRecords, events: Index
) -> Iterator[Block]:
    rows = np.sort(records.rows[events])
    kept = records.data.take(pa.array(rows[rows >= 0]))
    if kept.num_rows:
        yield from record_blocks(context, kept.select(context.schema.names).cast(context.schema))
    deletes = np.flatnonzero(records.rows < 0)
    stands = np.isin(deletes, events)
    headers = data_headers(context.requested_time, context.avro_schema, compacted=context.compacted)
    path = merged.slice.group.partition_path
    for batch in _standing(_delete_batches(blocks), stands):
        content = delete_block(headers, batch.keys, path, batch.orderings)
        yield Block(content, deletes=len(batch.keys))


def _delete_batches(blocks: Sequence[LogBlock]) -> list[DeleteBatch]:
    """Return all deletes in the order of their events, with ordering values as they are stored."""
    deletes = (block for block in blocks if block.type is BlockType.DELETE)
    return [batch for block in deletes for batch in decode_delete_block(block.content())]


def _standing(
    batches: Sequence[DeleteBatch], stands: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> list[DeleteBatch]:
    """Return the deletes that stand, those of one kind together: hudi-rs refuses blocks that mix kinds."""
    kinds: dict[tuple[pa.DataType, ...], list[DeleteBatch]] = {}
    start = 0
    for batch in batches:
        chosen = pa.array(np.flatnonzero(stands[start : start + len(batch.keys)]))
        start += len(batch.keys)
        if len(chosen):
            values = tuple(array.take(chosen) for array in batch.orderings)
            kind = tuple(array.type for array in values)
            kinds.setdefault(kind, []).append(DeleteBatch(batch.keys.take(chosen), values))
    return [
        DeleteBatch(
            pa.concat_arrays([one.keys for one in found]),
            tuple(
                pa.concat_arrays(list(arrays))
                for arrays in zip(*(one.orderings for one in found), strict=True)
            ),
        )
        for found in kinds.values()
    ]


def compact_logs(context: WriteContext, tasks: Sequence[tuple[TaskContext, ReadTask]]) -> list[WriteStat]:
    """Compact the logs of slices in threads of this process."""
    with ThreadPoolExecutor(max(1, os.cpu_count() or 1)) as pool:
        found = advancing(pool.map(lambda task: compact_log(context, *task), tasks))
        return [stat for stats in found for stat in stats]
