"""Reading one task: base file alone, merged with its logs, or logs alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.support import found_in_files
from drawstring.formats.parquet import DEFAULT_BATCH_ROWS, ParquetSource
from drawstring.merge.file_errors import naming_file
from drawstring.merge.merge_plan import MergePlan, build_merge_plan
from drawstring.model.file_group import BaseFile
from drawstring.model.read_task import ReadTask
from drawstring.predicates.arrow_filter import filter_batch
from drawstring.predicates.ast import Predicate, columns_of
from drawstring.reading.change_data import read_change_data
from drawstring.reading.changes import COMPARED, read_changes
from drawstring.schema.meta_columns import COMMIT_TIME
from drawstring.schema.projection import plan_projection
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
    requested = pa.schema([table_schema.field(name) for name in needed])
    for batch in _rows(task, storage, table_schema, requested, batch_rows):
        kept = _kept(_with_partition_values(batch, task), task, predicate)
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
            lambda each, schema: read_task(each, storage=storage, table_schema=schema, columns=schema.names),
            storage=storage,
        )
        yield from _filtered(rows, columns, predicate)
        return
    told = {field.name for field in change_columns(commits=task.change.commit is not None)}
    stored = pa.schema([field for field in table_schema if field.name not in told])
    wanted = _needed(replace(task, keep_commit_times=None), table_schema, columns, predicate)
    names = [name for name in dict.fromkeys([*wanted, *COMPARED]) if name not in told]
    found = read_changes(
        task.change,
        lambda each, some: read_task(each, storage=storage, table_schema=stored, columns=some),
        schema=pa.schema([stored.field(name) for name in names]),
    )
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
    batches = [_with_partition_values(batch, task) for batch in plan.winners.to_batches()]
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


def _rows(
    task: ReadTask, storage: Storage, table_schema: pa.Schema, requested: pa.Schema, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    base = task.slice.base_file
    if not task.needs_merge:
        if base is not None:
            yield from _base_rows(task, storage, base, requested, batch_rows)
        return
    plan = build_merge_plan(task, storage=storage, table_schema=table_schema, columns=requested.names)
    yield from plan.winner_batches()
    if base is None or plan.hidden_count == len(plan.hidden):
        return
    start = 0
    for batch in _base_rows(task, storage, base, requested, batch_rows, footer=plan.base_footer):
        hidden = plan.hidden[start : start + batch.num_rows]
        start += batch.num_rows
        yield batch.filter(pa.array(np.logical_not(hidden))) if hidden.any() else batch


def _base_rows(
    task: ReadTask,
    storage: Storage,
    base: BaseFile,
    requested: pa.Schema,
    batch_rows: int,
    *,
    footer: Any = None,
) -> Iterator[pa.RecordBatch]:
    if base.extension != "parquet":
        raise found_in_files("BASE_FILE_FORMAT_NOT_SUPPORTED", path=base.path, found=base.extension.upper())
    with (
        naming_file(base, task.slice.group.partition_path),
        ParquetSource(storage.open(base.path), base.path, footer=footer) as parquet,
    ):
        plan = plan_projection(parquet.schema, requested, mapping=task.mapping_for(base.path))
        for batch in parquet.batches(plan.file_columns, batch_rows=batch_rows):
            yield plan.apply(batch)


def _with_partition_values(batch: pa.RecordBatch, task: ReadTask) -> pa.RecordBatch:
    for name, value in task.partition_values.items():
        index = batch.schema.get_field_index(name)
        if index >= 0:
            field = batch.schema.field(index)
            column = pa.repeat(pa.scalar(value, type=field.type), batch.num_rows)
            batch = batch.set_column(index, field, column)
    return batch


def _kept(batch: pa.RecordBatch, task: ReadTask, predicate: Predicate | None) -> pa.RecordBatch:
    if task.keep_commit_times is not None:
        kept = pa.array(sorted(task.keep_commit_times), pa.string())
        batch = batch.filter(pc.is_in(batch.column(COMMIT_TIME), value_set=kept))
    return batch if predicate is None else filter_batch(batch, predicate)
