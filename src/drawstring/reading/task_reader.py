"""Reading one task: base file alone, merged with its logs, or logs alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.formats.parquet import DEFAULT_BATCH_ROWS
from drawstring.merge.merge_plan import MergePlan, build_merge_plan
from drawstring.model.read_task import ReadTask
from drawstring.predicates.arrow_filter import filter_batch
from drawstring.predicates.ast import Predicate, columns_of
from drawstring.reading.change_data import read_change_data
from drawstring.reading.changes import COMPARED, read_changes
from drawstring.reading.slice_rows import SliceReader, with_partition_values
from drawstring.schema.meta_columns import COMMIT_TIME
from drawstring.schema.row_kinds import change_columns, with_commit
from drawstring.storage.base import Storage


def read_task(
    task: ReadTask,
    *,
    storage: Storage,
    table_schema: pa.Schema,
    columns: Sequence[str],
    predicate: Predicate | None = None,
    batch_rows: int = DEFAULT_BATCH_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Read one task, a batch at a time.

    Args:
        task: what to read.
        storage: where the table's files are.
        table_schema: the schema that is read.
        columns: the columns to return, in order.
        predicate: keep only rows for which it is true.
        batch_rows: the most rows per batch.

    Raises:
        CorruptTable: a file is missing or damaged; the error names file, partition and instant.
    """
    if task.change is not None:
        yield from _changes(task, storage, table_schema, columns, predicate)
        return
    # One column at least: batches without any do not survive every step with their number of rows.
    needed = _needed(task, table_schema, columns, predicate) or table_schema.names[:1]
    for batch in SliceReader(storage, table_schema, batch_rows).rows(task, needed):
        kept = _kept(batch, task, predicate)
        if kept.num_rows:
            yield kept.select(list(columns))


def _changes(
    task: ReadTask,
    storage: Storage,
    table_schema: pa.Schema,
    columns: Sequence[str],
    predicate: Predicate | None,
) -> Iterator[pa.RecordBatch]:
    assert task.change is not None
    if task.change.images is not None:
        rows = read_change_data(
            task.change,
            task.change.images,
            storage=storage,
        )
        yield from _filtered(rows, columns, predicate)
        return
    told = {field.name for field in change_columns(commits=task.change.commit is not None)}
    stored = pa.schema([field for field in table_schema if field.name not in told])
    wanted = _needed(replace(task, keep_commit_times=None), table_schema, columns, predicate)
    names = [name for name in dict.fromkeys([*wanted, *COMPARED]) if name not in told]
    found = read_changes(task.change, SliceReader(storage, stored), columns=names)
    if task.change.commit is not None:
        found = with_commit(found, task.change.commit)
    yield from _filtered(found, columns, predicate)


def _filtered(
    rows: pa.Table, columns: Sequence[str], predicate: Predicate | None
) -> Iterator[pa.RecordBatch]:
    for batch in rows.to_batches():
        kept = batch if predicate is None else filter_batch(batch, predicate)
        if kept.num_rows:
            yield kept.select(list(columns))


def merge_plan_for(
    task: ReadTask, *, storage: Storage, table_schema: pa.Schema, columns: Sequence[str]
) -> MergePlan:
    """How to read a merged slice: the base rows to hide, and the rows to append with exactly `columns`."""
    plan = build_merge_plan(task, storage=storage, table_schema=table_schema, columns=columns)
    if not task.partition_values:
        return plan
    batches = [with_partition_values(batch, task) for batch in plan.winners.to_batches()]
    winners = pa.Table.from_batches(batches, schema=plan.winners.schema)
    return replace(plan, winners=winners)


def _needed(
    task: ReadTask, table_schema: pa.Schema, columns: Sequence[str], predicate: Predicate | None
) -> list[str]:
    """The columns to read: those asked for, and those that filters look at."""
    known = {name.lower(): name for name in reversed(table_schema.names)}
    wanted = [*columns]
    if predicate is not None:
        paths = (column.path[0] for column in columns_of(predicate))
        wanted += [name if name in table_schema.names else known[name.lower()] for name in paths]
    if task.keep_commit_times is not None:
        wanted.append(COMMIT_TIME)
    return list(dict.fromkeys(wanted))


def _kept(batch: pa.RecordBatch, task: ReadTask, predicate: Predicate | None) -> pa.RecordBatch:
    if task.keep_commit_times is not None:
        kept = pa.array(sorted(task.keep_commit_times), pa.string())
        batch = batch.filter(pc.is_in(batch.column(COMMIT_TIME), value_set=kept))
    return batch if predicate is None else filter_batch(batch, predicate)
