"""What a worker reads: one slice, from the request that names it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from drawstring.model.read_task import ReadTask
from drawstring.reading import merge_plan_for, read_task
from drawstring.schema.projection import plan_projection
from drawstring.spark.read.task_codec import task_from_wire
from drawstring.spark.types import arrow_schema
from drawstring.spark.worker.plan_cache import KeptPlan, PlanCache, plan_key
from drawstring.storage import Storage, open_storage


@dataclass(frozen=True)
class SliceSource:
    """A slice of a table, to be read under a schema that may leave out columns and nested fields."""

    storage: Storage
    task: ReadTask
    table_schema: pa.Schema
    schema: pa.Schema

    @classmethod
    def of(cls, request: dict[str, Any]) -> SliceSource:
        """The slice that a request is about."""
        context = request["context"]
        task = task_from_wire(context["facts"], request["task"])
        table_schema = _table_schema(context["table_schema"])
        return cls(
            open_storage(request["root"], request.get("store")),
            task,
            table_schema,
            _requested(request["schema"]),
        )

    @property
    def columns(self) -> list[str]:
        """Names of the columns, as the table spells them; one when rows are only counted."""
        known = {name.lower(): name for name in self.table_schema.names}
        return [known.get(name.lower(), name) for name in self.schema.names] or self.table_schema.names[:1]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The slice's rows, merged, under the requested schema."""
        found = read_task(
            self.task,
            storage=self.storage,
            table_schema=self.table_schema,
            columns=self.columns,
            predicate=None,
        )
        return (self.fitted(batch) for batch in found)

    def merge_plan(self) -> KeptPlan:
        """The hidden rows of the base file, and the log records that win."""
        plan = merge_plan_for(
            self.task, storage=self.storage, table_schema=self.table_schema, columns=self.columns
        )
        return KeptPlan(len(plan.hidden), plan.hidden_bits(), plan.winners)

    def kept_merge_plan(self, request: dict[str, Any]) -> KeptPlan:
        """The merge plan, from the executor's cache when it is there."""
        if not request.get("cache"):
            return self.merge_plan()
        cache = PlanCache(request["cache"])
        return cache.find_or_make(plan_key(request), self.columns, self.merge_plan)

    def fitted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of whole columns cut to the requested nested fields."""
        if not self.schema.names:
            return batch.select([])
        if batch.schema.equals(self.schema):
            return batch
        return plan_projection(batch.schema, self.schema).apply(batch)


@lru_cache(maxsize=32)
def _table_schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


@lru_cache(maxsize=32)
def _requested(text: str) -> pa.Schema:
    return arrow_schema(text)
