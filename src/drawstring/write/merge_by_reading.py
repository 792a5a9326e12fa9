"""Writes base files of tables that merge columns of several versions (partial updates), by means of the reader.

The incoming rows are written as a private log file, and the new base file is what a reader makes of the old base file
and that log. So readers, compactions and writes follow one rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.model.commit_metadata import WriteStat
from drawstring.model.file_group import FileSlice, LogFile
from drawstring.model.file_names import log_file_name
from drawstring.model.read_task import MergeSpec, ReadTask
from drawstring.reading.task_reader import read_task
from drawstring.schema.meta_columns import COMMIT_TIME, RECORD_KEY
from drawstring.write.assignment import Bucket
from drawstring.write.base_files import BaseFileWriter, TaskContext, WriteContext
from drawstring.write.log_files import log_blocks
from drawstring.write.markers import staged_path
from drawstring.write.merge_group import MergeRules, row_groups


def merge_by_reading(
    context: WriteContext, task: TaskContext, bucket: Bucket, rows: pa.Table, rules: MergeRules
) -> Iterator[WriteStat]:
    """Write the base file of a group, new or not, as readers would see the group with the rows in a log."""
    assert rules.merge is not None
    path = _write_log(context, task, bucket, rows, rules)
    try:
        reads = _reads(context, bucket, path, rules.merge)
        yield from _write_merged(context, task, bucket, reads)
    finally:
        context.storage.delete(path)


def _write_log(
    context: WriteContext, task: TaskContext, bucket: Bucket, rows: pa.Table, rules: MergeRules
) -> str:
    name = log_file_name(bucket.group.file_id, context.requested_time, 1, task.write_token)
    path = staged_path(context.requested_time, f".merging/{name}")
    with context.storage.open_output(path) as sink:
        for block in log_blocks(context, task, replace(bucket, slice=None), rows, rules):
            sink.write(block.content)
    return path


def _reads(context: WriteContext, bucket: Bucket, path: str, merge: MergeSpec) -> ReadTask:
    log = LogFile(path, context.storage.stat(path).size, bucket.group.file_id, context.requested_time, 1)
    before = bucket.reads
    if before is None:
        return ReadTask(FileSlice(bucket.group, context.requested_time, bucket.base_file, (log,)), merge)
    # Files keep their own values of partition columns.
    return replace(
        before,
        slice=replace(before.slice, log_files=(log,)),
        merge=merge,
        partition_values={},
        row_count=None,
    )


def _write_merged(
    context: WriteContext, task: TaskContext, bucket: Bucket, reads: ReadTask
) -> Iterator[WriteStat]:
    stored = _stored_keys(context, reads)
    writer = BaseFileWriter(context, task, bucket.group.partition_path, bucket.group.file_id)
    inserts = updates = 0
    batches = read_task(
        reads, storage=context.storage, table_schema=context.schema, columns=context.schema.names
    )
    for table in row_groups(pa.Table.from_batches([batch]).cast(context.schema) for batch in batches):
        ours = np.asarray(pc.equal(table.column(COMMIT_TIME), context.requested_time))
        known = np.asarray(pc.is_in(table.column(RECORD_KEY), value_set=stored))
        inserts, updates = inserts + int((ours & ~known).sum()), updates + int((ours & known).sum())
        writer.write(table)
    base = bucket.base_file
    if base is None and not writer.rows:
        return
    size = writer.close()
    yield writer.stat(
        size,
        num_inserts=inserts,
        num_updates=updates,
        num_deletes=len(stored) - (writer.rows - inserts),
        prev_commit=base.instant if base else "null",
        prev_base_file=base.name if base else None,
    )


def _stored_keys(context: WriteContext, reads: ReadTask) -> pa.Array:
    if reads.slice.base_file is None:
        return pa.array([], pa.string())
    base = replace(reads, slice=replace(reads.slice, log_files=()), merge=None)
    batches = read_task(base, storage=context.storage, table_schema=context.schema, columns=[RECORD_KEY])
    return pa.concat_arrays([pa.array([], pa.string()), *(batch.column(0) for batch in batches)])
