"""The Spark jobs of a write: where keys live, how many rows go where, and the tasks that write files."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from drawstring.errors import DrawstringError, InvalidInput, error_class
from drawstring.model.commit_metadata import WriteStat
from drawstring.model.file_group import FileGroupId, FileSlice
from drawstring.schema.meta_columns import PARTITION_PATH, RECORD_KEY
from drawstring.write.assignment import HASH_RANGE, Assignment
from drawstring.write.base_files import PartitionedWriter, TaskContext, WriteContext
from drawstring.write.keys import missing_key
from drawstring.write.merge_group import MergeRules, write_bucket

FILE_ID = "_drawstring_file_id"
BUCKET = "_drawstring_bucket"
_STAT_SCHEMA = "stat string"
_MOST_TASKS = 4096
_BATCH_ROWS_KEY = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BATCH_ROWS = 1 << 16
_RAISED = re.compile(r"drawstring\.errors\.(\w+): \[([A-Z_]+)\] ([^\n]*)")


@dataclass(frozen=True)
class Counts:
    """How many incoming rows there are: of known keys by file group, of new keys by partition path."""

    updates: dict[FileGroupId, int]
    inserts: dict[str, int]


def write_as_they_come(df: DataFrame, context: WriteContext) -> list[WriteStat]:
    """Write rows into new file groups without moving them between tasks."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        writer = PartitionedWriter(context, _task())
        for batch in batches:
            writer.write(batch)
        yield _stat_batch(writer.close())

    return _collect_stats(df, run)


def write_buckets(
    df: DataFrame, context: WriteContext, assignment: Assignment, rules: MergeRules
) -> list[WriteStat]:
    """Bring each bucket's rows into one task and write its file."""
    tasks = max(1, min(len(assignment.buckets), _MOST_TASKS))
    salts = partition_salts(tasks)
    buckets = {_salt(bucket.number, tasks, salts): bucket for bucket in assignment.buckets}

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = _task()
        for salt, rows in _by_bucket(batches):
            stat = write_bucket(context, task, buckets[salt], rows, rules)
            if stat is not None:
                yield _stat_batch([stat])

    spread = _with_bucket(df, assignment, tasks, salts).repartition(tasks, BUCKET)
    if len(assignment.buckets) > tasks:
        spread = spread.sortWithinPartitions(BUCKET)
    return _collect_stats(spread, run)


def locate(df: DataFrame, storage_root: str, slices: Sequence[FileSlice]) -> DataFrame:
    """Add the file id that holds each row's key, null for new keys.

    A key that lies in several file groups yields a row for each of them, as all must be updated.
    """
    paths = [f"{storage_root}/{s.base_file.path}" for s in slices if s.base_file is not None]
    if not paths:
        return df.withColumn(FILE_ID, F.lit(None).cast("string"))
    keys = [PARTITION_PATH, RECORD_KEY]
    index = (
        df.sparkSession.read.schema(f"{RECORD_KEY} string, {PARTITION_PATH} string")
        # Without this Spark would take directories for partition columns.
        .option("recursiveFileLookup", "true")
        .parquet(*[_literal_path(path) for path in paths])
        .select(*keys, F.substring_index("_metadata.file_name", "_", 1).alias(FILE_ID))
    )
    known = index.join(df.select(*keys), keys, "left_semi")
    return df.join(known, keys, "left")


def count_paths(df: DataFrame) -> dict[str, int]:
    """Count incoming rows by partition path."""
    return {row[0]: row[1] for row in df.groupBy(PARTITION_PATH).count().collect()}


def count_rows(df: DataFrame, key_fields: tuple[str, ...]) -> Counts:
    """Count located rows; raises `InvalidInput` with an example when a row has no key."""
    no_key = F.sum(F.col(RECORD_KEY).isNull().cast("long"))
    rows = df.groupBy(PARTITION_PATH, FILE_ID).agg(F.count(F.lit(1)), no_key).collect()
    if any(row[3] for row in rows):
        example = df.filter(F.col(RECORD_KEY).isNull()).limit(1).collect()[0].asDict()
        raise missing_key(key_fields, {k: v for k, v in example.items() if not k.startswith("_drawstring")})
    updates = {FileGroupId(row[0], row[1]): row[2] for row in rows if row[1] is not None}
    inserts = {row[0]: row[2] for row in rows if row[1] is None}
    return Counts(updates, inserts)


def latest_of_each_key(df: DataFrame, ordering: Sequence[Column]) -> DataFrame:
    """Keep one row per key and path: the highest by ordering, of equal ones the last that came."""
    from pyspark.sql import Window

    numbered = df.withColumn("_drawstring_row", F.monotonically_increasing_id())
    best = [order.desc_nulls_last() for order in ordering] + [F.desc("_drawstring_row")]
    window = Window.partitionBy(PARTITION_PATH, RECORD_KEY).orderBy(*best)
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
    spark = df.sparkSession
    located = df.withColumn(BUCKET, F.lit(None).cast("int"))
    if assignment.by_group:
        located = _join_updates(spark, located, assignment, tasks, salts)
    if assignment.ranges:
        located = _join_inserts(spark, located, assignment, tasks, salts)
    return located.drop(FILE_ID)


def _join_updates(
    spark: SparkSession, df: DataFrame, assignment: Assignment, tasks: int, salts: list[int]
) -> DataFrame:
    rows = [
        (group.partition_path, group.file_id, _salt(number, tasks, salts))
        for group, number in assignment.by_group.items()
    ]
    table = spark.createDataFrame(rows, f"{PARTITION_PATH} string, {FILE_ID} string, _number int")
    joined = df.join(F.broadcast(table), [PARTITION_PATH, FILE_ID], "left")
    return joined.withColumn(BUCKET, F.col("_number")).drop("_number")


def _join_inserts(
    spark: SparkSession, df: DataFrame, assignment: Assignment, tasks: int, salts: list[int]
) -> DataFrame:
    rows = [(r.partition_path, r.low, r.high, _salt(r.bucket, tasks, salts)) for r in assignment.ranges]
    table = F.broadcast(spark.createDataFrame(rows, "_path string, _low long, _high long, _number int"))
    place = F.pmod(F.xxhash64(F.col(RECORD_KEY)), F.lit(HASH_RANGE))
    # New keys only: a null path never joins.
    path = F.when(F.col(FILE_ID).isNull(), F.col(PARTITION_PATH))
    condition = (path == F.col("_path")) & (place >= F.col("_low")) & (place < F.col("_high"))
    joined = df.join(table, condition, "left")
    return joined.withColumn(BUCKET, F.coalesce(BUCKET, "_number")).drop("_path", "_low", "_high", "_number")


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
    with warnings.catch_warnings(), _worker_interpreter(spark), _large_batches(spark):
        warnings.simplefilter("ignore", FutureWarning)
        try:
            rows = df.mapInArrow(run, _STAT_SCHEMA).collect()
        except Exception as error:
            raise as_drawstring_error(error) or error from None
    return [_stat(row[0]) for row in rows]


@contextmanager
def _large_batches(spark: SparkSession) -> Iterator[None]:
    """Hand rows over in batches large enough that their number does not matter."""
    before = spark.conf.get(_BATCH_ROWS_KEY)
    spark.conf.set(_BATCH_ROWS_KEY, str(max(_BATCH_ROWS, int(before))))
    try:
        yield
    finally:
        spark.conf.set(_BATCH_ROWS_KEY, before)


@contextmanager
def _worker_interpreter(spark: SparkSession) -> Iterator[None]:
    """Let tasks run with the configured interpreter, or locally with this one: the default is any python3."""
    context = spark.sparkContext
    before = context.pythonExec
    configured = context.getConf().get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
    local = sys.executable if context.master.startswith("local") else before
    context.pythonExec = configured or local
    try:
        yield
    finally:
        context.pythonExec = before


def as_drawstring_error(error: BaseException) -> DrawstringError | None:
    """Return the drawstring error that a task raised, found in the text of what Spark raised."""
    if isinstance(error, DrawstringError):
        return error
    match = _RAISED.search(str(error))
    if match is None:
        return None
    name, condition, message = match.groups()
    return error_class(name)(message, condition=condition)


def _task() -> TaskContext:
    from pyspark import TaskContext as SparkTask

    task = SparkTask.get()
    assert task is not None, "runs in a Spark task only"
    return TaskContext(task.partitionId(), task.stageId(), task.taskAttemptId())


def _stat_batch(stats: list[WriteStat]) -> pa.RecordBatch:
    texts = [json.dumps(asdict(stat)) for stat in stats]
    return pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], names=["stat"])


def _stat(text: str) -> WriteStat:
    values = json.loads(text)
    tuples = {key: tuple(values[key]) for key in ("log_files", "cdc_files")}
    return WriteStat(**(values | tuples))


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


def _literal_path(path: str) -> str:
    """Escape what Hadoop would take for a pattern."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)
