"""The task of a bulk insert. A fresh worker loads all that this module imports before its first row: keep it little."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from drawstring.spark.write.task_results import stat_batch, task_context
from drawstring.write.base_files import PartitionedWriter, WriteContext

AppendTask = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def append_task(context: WriteContext) -> AppendTask:
    """Return what writes the rows of a task into new file groups."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer = PartitionedWriter(context, task_context())
        for batch in batches:
            writer.write(batch)
        yield stat_batch(writer.close())

    return run
