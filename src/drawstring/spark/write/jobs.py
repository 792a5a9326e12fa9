"""The Spark jobs of a write: how many rows there are, where they go, and the tasks that write files."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from drawstring.errors import DrawstringError, InvalidInput, error_class
from drawstring.model.commit_metadata import WriteStat
from drawstring.model.read_task import ReadTask
from drawstring.schema.meta_columns import PARTITION_PATH, RECORD_KEY
from drawstring.spark.write.append_task import append_task
from drawstring.spark.write.arrow_batches import quick_batches
from drawstring.spark.write.buckets import bucket_column, register_hash
from drawstring.spark.write.interpreter import worker_interpreter
from drawstring.spark.write.key_lookup import FILE_ID, KNOWN_PATH
from drawstring.spark.write.keys import column
from drawstring.spark.write.lean_tasks import lean, spare_the_next_task
from drawstring.spark.write.ordering import latest_first
from drawstring.spark.write.task_results import stat_batch, stat_of, stat_text, task_context
from drawstring.write.assignment import HASH_RANGE, Assignment, Bucket
from drawstring.write.base_files import TaskContext, WriteContext
from drawstring.write.bucket_index import BucketRule
from drawstring.write.compaction import compact_slice
from drawstring.write.group_writers import write_bucket
from drawstring.write.in_process import ArrowRows
from drawstring.write.key_generator import missing_key
from drawstring.write.merge_group import DELETED, MergeRules

BUCKET = "_drawstring_bucket"
_STAT_SCHEMA = "stat string"
_MOST_TASKS = 4096
_FEW_BUCKETS = 64
_RAISED = re.compile(r"drawstring\.errors\.(\w+): \[([A-Z_]+)\] ([^\n]*)")


@dataclass(frozen=True)
class InputSize:
    """How many rows came, by partition path, and about how many bytes they are as Arrow."""

    rows_by_partition: Mapping[str, int]
    size: int


def append_rows(df: DataFrame, context: WriteContext) -> list[WriteStat]:
    """Write rows into new file groups without moving them between tasks."""
    return _collect_stats(df, append_task(context))


def compact_slices(
    spark: SparkSession, context: WriteContext, tasks: Sequence[tuple[TaskContext, ReadTask]]
) -> list[WriteStat]:
    """Merge each slice of a compaction into its new base file, in a task of its own."""
    by_number = dict(enumerate(tasks))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                planned, merged = by_number[number]
                # A copy of a task must not write to the file of the other one.
                task = replace(planned, attempt=task_context().attempt)
                yield stat_batch([compact_slice(context, task, merged)])

    count = max(1, min(len(tasks), _MOST_TASKS))
    return _collect_stats(spark.range(0, len(tasks), 1, count), run)


def write_buckets(
    df: DataFrame, context: WriteContext, assignment: Assignment, rules: MergeRules
) -> list[WriteStat]:
    """Bring each bucket's rows into one task and write its file."""
    if assignment.rule is not None:
        register_hash(df.sparkSession)
    tasks = max(1, min(len(assignment.buckets), _MOST_TASKS))
    salts = partition_salts(tasks)
    buckets = {_salt(bucket.number, tasks, salts): bucket for bucket in assignment.buckets}

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = task_context()
        for salt, rows in _by_bucket(batches):
            yield stat_batch(write_bucket(context, task, buckets[salt], rows, rules))

    spread = _with_bucket(df, assignment, tasks, salts).repartition(tasks, BUCKET)
    if len(assignment.buckets) > tasks:
        spread = spread.sortWithinPartitions(BUCKET)
    return _collect_stats(spread, run)


def measure_input(df: DataFrame, key_fields: tuple[str, ...]) -> InputSize:
    """Count incoming rows by partition path; raises `InvalidInput` with an example when a row has no key."""
    no_key = F.sum(F.col(RECORD_KEY).isNull().cast("long"))
    texts = [f.name for f in df.schema.fields if isinstance(f.dataType, (T.StringType, T.BinaryType))]
    lengths = [F.coalesce(F.sum(F.length(column(df, name))), F.lit(0)) for name in texts]
    rows = df.groupBy(PARTITION_PATH).agg(F.count(F.lit(1)), no_key, sum(lengths, F.lit(0))).collect()
    if any(row[2] for row in rows):
        example = df.filter(F.col(RECORD_KEY).isNull()).limit(1).collect()[0].asDict()
        raise missing_key(key_fields, {k: v for k, v in example.items() if not k.startswith("_drawstring")})
    fixed = sum(_width(field.dataType) for field in df.schema.fields)
    size = sum(row[1] * fixed + row[3] for row in rows)
    return InputSize({row[0]: row[1] for row in rows}, size)


def count_buckets(df: DataFrame, rule: BucketRule) -> dict[tuple[str, int], int]:
    """Count rows by partition path and bucket number."""
    register_hash(df.sparkSession)
    rows = df.groupBy(PARTITION_PATH, bucket_column(rule)).count().collect()
    return {(row[0], row[1]): row[2] for row in rows}


def _width(kind: T.DataType) -> int:
    """About how many bytes a value takes beside the characters of a text; for nested ones a guess."""
    if isinstance(kind, T.StructType):
        return sum(_width(field.dataType) + 16 for field in kind.fields)
    if isinstance(kind, (T.ArrayType, T.MapType)):
        return 512
    return 16 if isinstance(kind, T.DecimalType) else 8


def collect_arrow(df: DataFrame) -> pa.Table:
    """Bring all rows to the driver, as Arrow."""
    if hasattr(df, "toArrow"):
        return df.toArrow()
    batches = df._collect_as_arrow()
    return pa.Table.from_batches(batches) if batches else _empty(df)


def _empty(df: DataFrame) -> pa.Table:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(df.schema).empty_table()


def write_collected(
    spark: SparkSession, rows: ArrowRows, context: WriteContext, assignment: Assignment, rules: MergeRules
) -> list[WriteStat]:
    """Send each bucket's rows from the driver to a task of its own, and write its file."""
    rows_of = rows.rows_by_bucket(assignment)
    work = [
        (bucket, _to_ipc(rows.rows_of_bucket(bucket, rows_of[bucket.number])))
        for bucket in assignment.buckets
    ]

    def run(item: tuple[Bucket, bytes]) -> list[str]:
        spare_the_next_task()
        bucket, content = item
        table = pa.ipc.open_stream(content).read_all()
        return [stat_text(stat) for stat in write_bucket(context, task_context(), bucket, table, rules)]

    with worker_interpreter(spark):
        try:
            texts = spark.sparkContext.parallelize(work, len(work)).flatMap(run).collect()
        except Exception as error:
            raise as_drawstring_error(error) or error from None
    return [stat_of(text) for text in texts]


def _to_ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def latest_of_each_key(
    df: DataFrame, ordering: tuple[str, ...], *, of: Sequence[str] = (PARTITION_PATH, RECORD_KEY)
) -> DataFrame:
    """Keep one row per key and path: the latest by the ordering columns, of equal ones the last in the input."""
    from pyspark.sql import Window

    numbered = df.withColumn("_drawstring_row", F.monotonically_increasing_id())
    best = [*latest_first(df, ordering), F.desc("_drawstring_row")]
    window = Window.partitionBy(*of).orderBy(*best)
    ranked = numbered.withColumn("_drawstring_rank", F.row_number().over(window))
    return ranked.filter("_drawstring_rank = 1").drop("_drawstring_rank", "_drawstring_row")


def partition_salts(partitions: int) -> list[int]:
    """Return, for each shuffle partition, a number that Spark's hash sends there.

    Buckets are shuffled by such numbers, so that no two of them meet in one task by chance.
    """
    found: dict[int, int] = {}
    number = 0
    while len(found) < partitions:
        found.setdefault(_murmur3_int(number) % partitions, number)
        number += 1
    return [found[target] for target in range(partitions)]


def _salt(bucket: int, tasks: int, salts: list[int]) -> int:
    # Beyond the number of tasks chance decides; negative numbers keep clear of the salts.
    return salts[bucket % tasks] if bucket < tasks else -bucket


def _with_bucket(df: DataFrame, assignment: Assignment, tasks: int, salts: list[int]) -> DataFrame:
    def number(bucket: int) -> int:
        return _salt(bucket, tasks, salts)

    updates = [
        (group.partition_path, group.file_id, number(bucket)) for group, bucket in assignment.by_group.items()
    ]
    inserts = [(r.partition_path, r.low, r.high, number(r.bucket)) for r in assignment.ranges]
    # Few buckets are told by an expression; many by joins, which small writes need not pay for.
    few = len(updates) + len(inserts) <= _FEW_BUCKETS
    place_by = _place_by_cases if few else _place_by_joins
    placed = place_by(df, updates, inserts, _place(assignment)).drop(KNOWN_PATH, FILE_ID)
    # Deletes for buckets that nobody ever wrote to.
    return placed.filter(F.col(BUCKET).isNotNull() | ~F.col(DELETED))


def _place_by_cases(df: DataFrame, updates: list[Any], inserts: list[Any], place: Column) -> DataFrame:
    path, known_path, file_id = F.col(PARTITION_PATH), F.col(KNOWN_PATH), F.col(FILE_ID)
    cases = F.when(F.lit(False), F.lit(0))
    for group_path, group_id, number in updates:
        cases = cases.when((file_id == group_id) & (known_path == group_path), F.lit(number))
    for new_path, low, high, number in inserts:
        within = (F.col("_place") >= low) & (F.col("_place") < high)
        cases = cases.when(file_id.isNull() & (path == new_path) & within, F.lit(number))
    return df.withColumn("_place", place).withColumn(BUCKET, cases).drop("_place")


def _place_by_joins(df: DataFrame, updates: list[Any], inserts: list[Any], place: Column) -> DataFrame:
    spark = df.sparkSession
    known = spark.createDataFrame(updates, f"{KNOWN_PATH} string, {FILE_ID} string, _known int")
    ranges = spark.createDataFrame(inserts, "_path string, _low long, _high long, _new int")
    # New keys only: a null path never joins.
    path = F.when(F.col(FILE_ID).isNull(), F.col(PARTITION_PATH))
    within = (
        (path == F.col("_path")) & (F.col("_place") >= F.col("_low")) & (F.col("_place") < F.col("_high"))
    )
    joined = (
        df.withColumn("_place", place)
        .join(F.broadcast(known), [KNOWN_PATH, FILE_ID], "left")
        .join(F.broadcast(ranges), within, "left")
    )
    helpers = ("_place", "_known", "_path", "_low", "_high", "_new")
    return joined.withColumn(BUCKET, F.coalesce("_known", "_new")).drop(*helpers)


def _place(assignment: Assignment) -> Column:
    if assignment.rule is not None:
        return bucket_column(assignment.rule)
    return F.pmod(F.xxhash64(F.col(RECORD_KEY)), F.lit(HASH_RANGE))


def _by_bucket(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.Table]]:
    """Yield each bucket's rows; the next bucket begins where the number changes."""
    held: dict[int, list[pa.RecordBatch]] = {}
    for batch in batches:
        numbers = batch.column(BUCKET)
        rows = batch.drop_columns([BUCKET])
        for number in numbers.unique().to_pylist():
            if number is None:
                raise InvalidInput(
                    "A row falls into no file group: the rows changed between two evaluations of the DataFrame. "
                    "Cache it before writing. Nothing was written.",
                    condition="ROWS_CHANGED",
                )
            mask = pc.equal(numbers, number)
            held.setdefault(number, []).append(rows.filter(mask))
    for number in list(held):
        yield number, pa.Table.from_batches(held.pop(number))


def _collect_stats(df: DataFrame, run: Any) -> list[WriteStat]:
    spark = df.sparkSession
    with warnings.catch_warnings(), worker_interpreter(spark), quick_batches(spark, df.schema):
        warnings.simplefilter("ignore", FutureWarning)
        try:
            rows = df.mapInArrow(lean(run), _STAT_SCHEMA).collect()
        except Exception as error:
            raise as_drawstring_error(error) or error from None
    return [stat_of(row[0]) for row in rows]


def as_drawstring_error(error: BaseException) -> DrawstringError | None:
    """Return the drawstring error that a task raised, found in the text of what Spark raised."""
    if isinstance(error, DrawstringError):
        return error
    match = _RAISED.search(str(error))
    if match is None:
        return None
    name, condition, message = match.groups()
    return error_class(name)(message, condition=condition)


def _murmur3_int(value: int, seed: int = 42) -> int:
    """Hash an int as Spark's `hash` function does."""
    mask = 0xFFFFFFFF
    k = (value * 0xCC9E2D51) & mask
    k = ((k << 15) | (k >> 17)) & mask
    h = seed ^ ((k * 0x1B873593) & mask)
    h = ((h << 13) | (h >> 19)) & mask
    h = (h * 5 + 0xE6546B64) & mask
    h ^= 4
    h ^= h >> 16
    h = (h * 0x85EBCA6B) & mask
    h ^= h >> 13
    h = (h * 0xC2B2AE35) & mask
    h ^= h >> 16
    return h - (1 << 32) if h >= 1 << 31 else h
