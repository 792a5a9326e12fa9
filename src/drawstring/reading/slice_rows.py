"""Rows of a file slice: its base file alone, with its logs, or logs alone; and how two sights of a group differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from drawstring.config.support import found_in_files
from drawstring.formats.parquet import DEFAULT_BATCH_ROWS, ParquetSource
from drawstring.merge.file_errors import naming_file
from drawstring.merge.merge_plan import MergePlan, build_merge_plan
from drawstring.model.file_group import BaseFile
from drawstring.model.read_task import ReadTask
from drawstring.reading.same_places import Differing, differing_rows
from drawstring.schema.projection import plan_projection
from drawstring.storage.base import Storage

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class SliceReader:
    """Reads rows of slices under one schema. Which of them are kept is for others to say."""

    storage: Storage
    table_schema: pa.Schema
    batch_rows: int = DEFAULT_BATCH_ROWS

    def rows(self, task: ReadTask, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows of one slice, a batch at a time."""
        base = task.slice.base_file
        if not task.needs_merge:
            if base is not None:
                yield from self._base_rows(task, base, columns)
            return
        plan = self._plan(task, columns)
        yield from _shown(plan.winner_batches(), task)
        if base is None or plan.hidden_count == len(plan.hidden):
            return
        start = 0
        for batch in self._base_rows(task, base, columns, footer=plan.base_footer):
            hidden = plan.hidden[start : start + batch.num_rows]
            start += batch.num_rows
            yield batch.filter(pa.array(np.logical_not(hidden))) if hidden.any() else batch

    def differing(self, before: ReadTask | None, after: ReadTask | None, columns: Sequence[str]) -> Differing:
        """The rows of two sights of one file group, but for those that are plainly the same versions.

        The columns by which versions are compared are among `columns`.
        """
        if before is None or after is None:
            old, new = (list(self.rows(task, columns)) if task else [] for task in (before, after))
            return Differing((old, new))
        base = before.slice.base_file
        if base is not None and base == after.slice.base_file:
            return self._differing_on(base, before, after, columns)
        return differing_rows(self.rows(before, columns), self.rows(after, columns))

    def _differing_on(
        self, base: BaseFile, before: ReadTask, after: ReadTask, columns: Sequence[str]
    ) -> Differing:
        """Rows of the base file that both sights show are the same; it is read once, for those that one shows."""
        plans = [self._plan(task, columns) if task.needs_merge else None for task in (before, after)]
        old, new = (
            [*_shown(plan.winner_batches(), task)] if plan is not None else []
            for plan, task in zip(plans, (before, after), strict=True)
        )
        hidden_then, hidden_now = _hidden_of_both(plans)
        if (hidden_then != hidden_now).any():
            start = 0
            for batch in self._base_rows(after, base, columns):
                then, now = (mask[start : start + batch.num_rows] for mask in (hidden_then, hidden_now))
                start += batch.num_rows
                old.append(batch.filter(pa.array(now & ~then)))
                new.append(batch.filter(pa.array(then & ~now)))
        return Differing((old, new))

    def _plan(self, task: ReadTask, columns: Sequence[str]) -> MergePlan:
        return build_merge_plan(task, storage=self.storage, table_schema=self.table_schema, columns=columns)

    def _base_rows(
        self, task: ReadTask, base: BaseFile, columns: Sequence[str], *, footer: Any = None
    ) -> Iterator[pa.RecordBatch]:
        if base.extension != "parquet":
            raise found_in_files(
                "BASE_FILE_FORMAT_NOT_SUPPORTED", path=base.path, found=base.extension.upper()
            )
        requested = pa.schema([self.table_schema.field(name) for name in columns])
        with (
            naming_file(base, task.slice.group.partition_path),
            ParquetSource(self.storage.open(base.path), base.path, footer=footer) as parquet,
        ):
            plan = plan_projection(parquet.schema, requested, mapping=task.mapping_for(base.path))
            found = parquet.batches(plan.file_columns, batch_rows=self.batch_rows)
            yield from _shown((plan.apply(batch) for batch in found), task)


def _hidden_of_both(plans: Sequence[MergePlan | None]) -> tuple[Mask, Mask]:
    """The rows of one base file that each side hides; a side without logs, or without records in them, hides none."""
    found = [np.zeros(0, dtype=bool) if plan is None else plan.hidden for plan in plans]
    count = max(map(len, found))
    before, after = (np.pad(mask, (0, count - len(mask))) for mask in found)
    return before, after


def _shown(batches: Iterator[pa.RecordBatch], task: ReadTask) -> Iterator[pa.RecordBatch]:
    return (with_partition_values(batch, task) for batch in batches)


def with_partition_values(batch: pa.RecordBatch, task: ReadTask) -> pa.RecordBatch:
    """The batch with what the path tells of partition columns in place of what files hold."""
    for name, value in task.partition_values.items():
        index = batch.schema.get_field_index(name)
        if index >= 0:
            field = batch.schema.field(index)
            column = pa.repeat(pa.scalar(value, type=field.type), batch.num_rows)
            batch = batch.set_column(index, field, column)
    return batch
