"""The executor for DataFrames: Spark evaluates the rows once, brings them together, and runs the tasks.

Rows that are few are collected at once, or when they were counted, and located by this process: that saves every
shuffle, and on a small update most of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from drawstring.config.write_options import DELETE
from drawstring.model.commit_metadata import WriteStat
from drawstring.model.read_task import ReadTask
from drawstring.schema.meta_columns import IS_DELETED, PARTITION_PATH, RECORD_KEY
from drawstring.spark.types import arrow_schema
from drawstring.spark.write import jobs, key_lookup
from drawstring.spark.write.few_rows import as_dataframe, collect_few, starts_at_once
from drawstring.spark.write.keys import column, data_type, key_column, path_column
from drawstring.write.assignment import Assignment, Layout
from drawstring.write.base_files import TaskContext, WriteContext
from drawstring.write.bucket_index import BucketRule
from drawstring.write.compaction import compact_slices
from drawstring.write.executor import Counts
from drawstring.write.in_process import ArrowRows
from drawstring.write.index import LookUp
from drawstring.write.key_generator import check_keys, is_derivable
from drawstring.write.merge_group import DELETED, POSITION, MergeRules
from drawstring.write.plan import WritePlan

COLLECTED_BYTES = 128 << 20
"""Rows of at most about so many bytes are collected and located by the driver."""
SCANNED_BYTES = 16 << 30
"""… where the base files of their partitions have together at most so many: the driver reads their keys."""


class SparkRows:
    """The rows of a DataFrame."""

    def __init__(self, df: DataFrame) -> None:
        self._df = df
        self._plan: WritePlan | None = None
        self._keyed: DataFrame | None = None
        self._known: DataFrame | None = None
        self._located: DataFrame | None = None
        self._is_kept = False
        self._few: ArrowRows | None = None
        self._table: pa.Table | None = None
        self._counts: jobs.InputSize | None = None
        self._streamed = False

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows as they come."""
        return arrow_schema(self._df.schema.json())

    def can_repeat(self) -> bool:
        """Whether the rows are kept for another try, or were not needed yet: those written as they come are not."""
        return not self._streamed

    def prepare(self, plan: WritePlan, requested_time: str) -> None:
        """Give the rows their keys and paths; once they are counted the same rows are kept for later steps."""
        if self._plan is not None and plan.rule != self._plan.rule:
            # Another table came in place of the one that the keys were made for.
            self.close()
        self._plan = plan
        if plan.goes_by_group and self._keyed is None:
            self._keyed = self._with_keys(requested_time)

    def count_rows(self) -> Mapping[str, int]:
        """Count rows by partition path."""
        if self._counts is None:
            self._counts = self._collected_at_once() or self._measured()
        return self._counts.rows_by_partition

    def _collected_at_once(self) -> jobs.InputSize | None:
        """Collect the rows if they are few, and count them here; None where they are many."""
        if not starts_at_once(self._prepared):
            self._keep()
        found = collect_few(self._prepared)
        if found is None:
            return None
        check_keys(
            found.column(RECORD_KEY).combine_chunks(),
            found.drop_columns([DELETED, POSITION]),
            self._planned.rule.key_fields,
        )
        self._few, self._table = ArrowRows.of_keyed(found), found
        return jobs.InputSize(self._few.count_rows(), found.nbytes)

    def _measured(self) -> jobs.InputSize:
        self._keep()
        return jobs.measure_input(self._prepared, self._planned.rule.key_fields)

    def _keep(self) -> None:
        """Evaluate the rows once: what later steps decide holds for the same rows."""
        if not self._is_kept:
            self._keyed, self._is_kept = self._prepared.persist(StorageLevel.MEMORY_AND_DISK), True

    def _leave_to_spark(self) -> None:
        """Let Spark locate rows that were collected: these rows, as another evaluation might yield others."""
        if self._table is not None and not self._is_kept:
            self._keyed, self._is_kept = as_dataframe(self._prepared, self._table), True
        self._few, self._table = None, None

    def locate(self, lookup: LookUp) -> Counts:
        """Find the file groups that hold keys of the rows."""
        assert self._counts is not None
        self._release_known()
        if self._are_few(sum(found.size for found in lookup.searched)):
            return self._collected().locate(lookup)
        self._leave_to_spark()
        if not lookup.searched:
            self._located = key_lookup.locate(self._prepared, None)
            return Counts({}, self._counts.rows_by_partition)
        self._located = self._locate(lookup)
        return key_lookup.count_rows(self._located)

    def _locate(self, lookup: LookUp) -> DataFrame:
        rows = self._prepared
        if lookup.is_global and lookup.combines:
            rows = jobs.latest_of_each_key(rows, lookup.ordering, of=[RECORD_KEY])
        known = key_lookup.find_keys(self._prepared, lookup, positions=self._tells_positions)
        self._known = known.persist(StorageLevel.MEMORY_AND_DISK)
        known = key_lookup.without_dead_places(self._known, lookup)
        if lookup.moves is not None:
            return key_lookup.with_moves(rows, known, lookup)
        return key_lookup.locate(rows, known, is_global=lookup.is_global)

    def count_buckets(self, rule: BucketRule) -> Mapping[tuple[str, int], int]:
        """Count rows by path and bucket number; all of them count as new keys."""
        self._release_known()
        if self._are_few(0):
            return self._collected().count_buckets(rule)
        self._leave_to_spark()
        self._located = key_lookup.locate(self._prepared, None)
        return jobs.count_buckets(self._prepared, rule)

    def _are_few(self, scanned: int) -> bool:
        assert self._counts is not None
        return self._counts.size <= COLLECTED_BYTES and scanned <= SCANNED_BYTES

    def _collected(self) -> ArrowRows:
        self._few = self._few or ArrowRows.of_keyed(jobs.collect_arrow(self._prepared))
        return self._few

    @property
    def _tells_positions(self) -> bool:
        appends = self._planned.layout is not Layout.COPY_ON_WRITE
        return appends and self._planned.options.files.logs.record_positions

    def write_groups(
        self, context: WriteContext, assignment: Assignment, rules: MergeRules
    ) -> list[WriteStat]:
        """Bring each bucket's rows to one task, and write its file."""
        if self._few is not None:
            if self._df.sparkSession.sparkContext.master.startswith("local"):
                return self._few.write_groups(context, assignment, rules)
            return jobs.write_collected(self._df.sparkSession, self._few, context, assignment, rules)
        assert self._located is not None, "locate comes first"
        located = self._located
        if self._planned.operation == DELETE and assignment.rule is None:
            located = located.filter(F.col(key_lookup.FILE_ID).isNotNull())
        return jobs.write_buckets(located, context, assignment, rules)

    def append(self, context: WriteContext) -> list[WriteStat]:
        """Write the rows into new file groups, without moving them unless the options ask for an order."""
        plan, options = self._planned, self._planned.options
        self._streamed = True
        # Unless Spark itself needs keys and paths, tasks make them: that saves handing two texts per row over.
        own = self._own_columns()
        as_is = options.sort_mode == "NONE" and not options.combine_before_insert
        if as_is and is_derivable(plan.rule, arrow_schema(own.schema.json())):
            return jobs.append_rows(own, replace(context, rule=plan.rule))
        rows = self._with_keys(context.requested_time)
        if options.combine_before_insert:
            rows = jobs.latest_of_each_key(rows, plan.ordering)
        return jobs.append_rows(self._arranged(rows), context)

    def compact(
        self, context: WriteContext, tasks: Sequence[tuple[TaskContext, ReadTask]]
    ) -> list[WriteStat]:
        """Merge slices into new base files, each in a task of Spark's; locally in this process."""
        spark = self._df.sparkSession
        if spark.sparkContext.master.startswith("local"):
            return compact_slices(context, tasks)
        return jobs.compact_slices(spark, context, tasks)

    def close(self) -> None:
        """Let go of the rows that were kept."""
        self._release_known()
        if self._keyed is not None and self._is_kept:
            self._keyed.unpersist()
        self._keyed, self._few, self._table, self._counts = None, None, None, None
        self._is_kept = False

    def _release_known(self) -> None:
        if self._known is not None:
            self._known.unpersist()
        self._known, self._located = None, None

    @property
    def _planned(self) -> WritePlan:
        assert self._plan is not None, "prepare comes first"
        return self._plan

    @property
    def _prepared(self) -> DataFrame:
        assert self._keyed is not None, "prepare comes first"
        return self._keyed

    def _own_columns(self) -> DataFrame:
        return self._df.select(self._own(self._df))

    def _own(self, df: DataFrame) -> list[Any]:
        names = {name.lower(): name for name in self._planned.table_schema.names}
        return [column(df, n).alias(names[n.lower()]) for n in df.columns if n.lower() in names]

    def _with_keys(self, requested_time: str) -> DataFrame:
        """The rows with key and path in front, their own columns as they are."""
        df, plan = self._df, self._planned
        own = [] if plan.operation == DELETE else self._own(df)
        key = key_column(df, plan.rule, requested_time).alias(RECORD_KEY)
        return df.select(key, path_column(df, plan.rule).alias(PARTITION_PATH), *self._marks(df), *own)

    def _marks(self, df: DataFrame) -> list[Any]:
        """Whether each row deletes, and its place in the input, for operations that bring rows together by key."""
        if not self._planned.goes_by_group:
            return []
        position = F.monotonically_increasing_id().alias(POSITION)
        if self._planned.operation == DELETE:
            return [F.lit(True).alias(DELETED), position]
        is_flag = isinstance(data_type(df.schema, IS_DELETED), T.BooleanType)
        flag = F.coalesce(column(df, IS_DELETED), F.lit(False)) if is_flag else F.lit(False)
        mark = self._planned.deletes_by
        if mark is not None and data_type(df.schema, mark.field) is not None:
            marked = column(df, mark.field).cast("string") == mark.marker
            flag = flag | F.coalesce(marked, F.lit(False))
        return [flag.alias(DELETED), position]

    def _arranged(self, rows: DataFrame) -> DataFrame:
        mode, count = self._planned.options.sort_mode, self._planned.options.bulk_insert_parallelism
        if mode == "GLOBAL_SORT":
            ranged = (PARTITION_PATH, RECORD_KEY)
            rows = rows.repartitionByRange(count, *ranged) if count else rows.repartitionByRange(*ranged)
            return rows.sortWithinPartitions(*ranged)
        if mode.startswith("PARTITION_PATH_REPARTITION"):
            rows = rows.repartition(count, PARTITION_PATH) if count else rows.repartition(PARTITION_PATH)
        if mode == "PARTITION_SORT" and count:
            rows = rows.coalesce(count)
        if mode in ("PARTITION_SORT", "PARTITION_PATH_REPARTITION_AND_SORT"):
            rows = rows.sortWithinPartitions(PARTITION_PATH, RECORD_KEY)
        return rows
