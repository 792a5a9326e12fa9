"""Turning one read task into Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drawstring.errors import UnsupportedTable
from drawstring.model.read_task import ReadTask
from drawstring.schema.projection import plan_projection
from drawstring.storage.base import Storage


def read_task(
    task: ReadTask,
    *,
    storage: Storage,
    table_schema: pa.Schema,
    columns: Sequence[str],
    predicate: Any = None,
) -> Iterator[pa.RecordBatch]:
    """Read a task whose slice has a base file only."""
    if task.slice.log_files or task.slice.base_file is None:
        raise UnsupportedTable("Slices with log files are not read yet.")
    wanted = list(dict.fromkeys([*(["_hoodie_commit_time"] if task.keep_commit_times else []), *columns]))
    requested = pa.schema([table_schema.field(name) for name in wanted])
    with storage.open(task.slice.base_file.path) as file:
        parquet = pq.ParquetFile(file)
        mapping = task.mapping_for(task.slice.base_file.path)
        plan = plan_projection(parquet.schema_arrow, requested, mapping=mapping)
        for batch in parquet.iter_batches(columns=plan.file_columns):
            yield _finish(plan.apply(batch), task).select(list(columns))


def _finish(batch: pa.RecordBatch, task: ReadTask) -> pa.RecordBatch:
    for name, value in task.partition_values.items():
        index = batch.schema.get_field_index(name)
        if index >= 0:
            field = batch.schema.field(index)
            batch = batch.set_column(index, field, pa.array([value] * batch.num_rows, field.type))
    if task.keep_commit_times is not None:
        kept = pa.array(sorted(task.keep_commit_times), pa.string())
        batch = batch.filter(pc.is_in(batch.column("_hoodie_commit_time"), value_set=kept))
    return batch
