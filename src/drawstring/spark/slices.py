"""What a worker reads: one slice, from the request that names it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from drawstring.model.read_task import ReadTask
from drawstring.spark.task_codec import task_from_wire
from drawstring.spark.types import arrow_schema
from drawstring.storage import Storage, open_storage


@dataclass(frozen=True)
class SliceSource:
    """A slice of a table, to be read under a schema."""

    storage: Storage
    task: ReadTask
    schema: pa.Schema

    @classmethod
    def of(cls, request: dict[str, Any]) -> SliceSource:
        """The slice that a request is about."""
        task = task_from_wire(request["context"], request["task"])
        return cls(open_storage(request["root"]), task, arrow_schema(request["schema"]))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The slice's rows, merged, under the requested schema."""
        from drawstring.reading import read_task

        return iter(read_task(self.storage, self.task, self.schema))

    def merge_plan(self) -> Any:
        """The hidden rows of the base file and the log records that win."""
        from drawstring.reading import merge_plan_for

        return merge_plan_for(self.storage, self.task, self.schema)
