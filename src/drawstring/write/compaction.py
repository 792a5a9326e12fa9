"""Compaction of merge-on-read file groups: which slices, and a slice merged into a new base file.

Rows keep their commit time and sequence number, for a compaction changes nothing that a reader sees. Who deletes a
row wins here for good: the new base file does not have it.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum

import pyarrow as pa

from drawstring.model.commit_metadata import WriteStat
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.model.read_task import ReadTask
from drawstring.reading.task_reader import read_task
from drawstring.write.base_files import ROW_GROUP_BYTES, BaseFileWriter, TaskContext, WriteContext
from drawstring.write.steps import advancing

OPERATION = "COMPACT"
_MEGABYTE = 1 << 20


class CompactionOrder(str, Enum):
    """Which slices come first (`hoodie.compaction.strategy`): the default of Hudi, and others by their class."""

    LOG_SIZE = "LogFileSizeBasedCompactionStrategy"
    LOG_NUMBER = "LogFileNumBasedCompactionStrategy"
    BOUNDED = "BoundedIOCompactionStrategy"
    UNBOUNDED = "UnBoundedCompactionStrategy"


@dataclass(frozen=True)
class CompactionLimits:
    """How much one plan takes, with the defaults of Hudi 1.2.

    - `target_io_mb`: megabytes read and written (`hoodie.compaction.target.io`); the slice that exceeds it is the
      last. The unbounded order knows no such limit.
    - `min_log_bytes`, `min_log_files`: slices with less are left alone by the order that goes by it.
    """

    order: CompactionOrder = CompactionOrder.LOG_SIZE
    target_io_mb: int = 512_000
    min_log_bytes: int = 0
    min_log_files: int = 0


def select_slices(
    slices: Iterable[FileSlice], limits: CompactionLimits, *, busy: Collection[FileGroupId] = ()
) -> list[FileSlice]:
    """Return the slices that a plan compacts: those with logs, but for groups that another plan has.

    The caller gives slices of completed instants only, see `FileSystemView`: what comes later stays beside the new
    base file.
    """
    found = [one for one in slices if one.log_files and one.group not in busy]
    if limits.order is CompactionOrder.LOG_SIZE:
        found = [one for one in found if _log_bytes(one) >= limits.min_log_bytes]
        found.sort(key=_log_bytes, reverse=True)
    elif limits.order is CompactionOrder.LOG_NUMBER:
        found = [one for one in found if len(one.log_files) >= limits.min_log_files]
        found.sort(key=lambda one: len(one.log_files), reverse=True)
    if limits.order is CompactionOrder.UNBOUNDED:
        return found
    return list(_within(found, limits.target_io_mb))


def _within(slices: Iterable[FileSlice], target_mb: int) -> Iterator[FileSlice]:
    left = target_mb
    for found in slices:
        yield found
        written = found.base_file.size if found.base_file else 0
        left -= (found.size + written) // _MEGABYTE
        if left <= 0:
            return


def _log_bytes(found: FileSlice) -> int:
    return sum(log.size for log in found.log_files)


def compact_slice(context: WriteContext, task: TaskContext, merged: ReadTask) -> WriteStat:
    """Write the new base file of a slice, a row group at a time, and return what the commit says of it.

    Args:
        context: the compaction's instant, and the schema with meta columns that the file gets.
        task: the attempt that writes.
        merged: how to read the slice. What paths tell of partition columns is left aside: files keep their own
            values.
    """
    group, base = merged.slice.group, merged.slice.base_file
    writer = BaseFileWriter(context, task, group.partition_path, group.file_id)
    rows = read_task(
        replace(merged, partition_values={}),
        storage=context.storage,
        table_schema=context.schema,
        columns=context.schema.names,
    )
    for table in _row_groups(rows, context.schema):
        writer.write(table)
    size = writer.close()
    return writer.stat(
        size,
        num_updates=0,
        compacted_logs=len(merged.slice.log_files),
        compacted_bytes=_log_bytes(merged.slice),
        prev_commit=base.instant if base else "null",
        prev_base_file=base.name if base else None,
    )


def compact_slices(context: WriteContext, tasks: Sequence[tuple[TaskContext, ReadTask]]) -> list[WriteStat]:
    """Compact slices in threads of this process."""
    with ThreadPoolExecutor(max(1, os.cpu_count() or 1)) as pool:
        return list(advancing(pool.map(lambda task: compact_slice(context, *task), tasks)))


def _row_groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size >= ROW_GROUP_BYTES:
            yield pa.Table.from_batches(held).cast(schema)
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held).cast(schema)
