"""Finding stored keys with Spark: which rows of a DataFrame have their key in which file group.

Rows that were located have two columns more, both null for new keys: the partition path and the file id of the group
that they go to.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from drawstring.model.file_group import BaseFile, FileGroupId, FileSlice
from drawstring.schema.meta_columns import PARTITION_PATH, RECORD_KEY
from drawstring.spark.write.interpreter import worker_interpreter
from drawstring.spark.write.lean_tasks import lean
from drawstring.storage import Storage
from drawstring.write.executor import Counts
from drawstring.write.index import Index, LiveKeys, LookUp, SimpleIndex
from drawstring.write.log_files import ROW_POSITION
from drawstring.write.log_keys import keys_in_log
from drawstring.write.merge_group import DELETED
from drawstring.write.moved_rows import IS_NEW, MOVES, StoredVersions

KNOWN_PATH = "_drawstring_known_path"
FILE_ID = "_drawstring_file_id"
_PLACE = [RECORD_KEY, KNOWN_PATH, FILE_ID]
_PLACE_SCHEMA = ", ".join(f"{name} string" for name in _PLACE)
_FATE, _LEAVES = "_drawstring_fate", "_drawstring_leaves"
_ALIVE, _BEGAN = "_drawstring_alive", "_drawstring_began"
_PLAIN_PATH = re.compile(r"^(file:)?[A-Za-z0-9_./=+,@~-]+$")


def find_keys(df: DataFrame, lookup: LookUp, *, positions: bool = False) -> DataFrame:
    """Return key, path and file id of every stored record whose key is among the rows'.

    With `positions` also the record's row in the base file where the index knows it, null where several rows have the
    key.
    """
    if not isinstance(lookup.index, SimpleIndex):
        return _ask(df, lookup.storage, lookup.index, lookup.searched)
    stored = _stored_keys(df.sparkSession, lookup.storage, lookup.searched)
    wanted = [RECORD_KEY] if lookup.is_global else [RECORD_KEY, F.col(PARTITION_PATH).alias(KNOWN_PATH)]
    on = [RECORD_KEY] if lookup.is_global else [RECORD_KEY, KNOWN_PATH]
    found = stored.join(df.select(*wanted), on, "left_semi")
    if not positions:
        return found.drop(ROW_POSITION).distinct()
    only = F.when(F.count(F.lit(1)) == 1, F.max(ROW_POSITION)).alias(ROW_POSITION)
    return found.groupBy(*_PLACE).agg(only)


def without_dead_places(known: DataFrame, lookup: LookUp) -> DataFrame:
    """Leave out places of keys where logs have deleted them, of keys that are alive in another one."""
    if lookup.live_keys is None:
        return known
    key = [RECORD_KEY] if lookup.is_global else [RECORD_KEY, KNOWN_PATH]
    doubtful = known.withColumn("_drawstring_times", F.count(F.lit(1)).over(Window.partitionBy(*key)))
    doubtful = doubtful.filter("_drawstring_times > 1").select(*_PLACE)
    groups = doubtful.select(KNOWN_PATH, FILE_ID).distinct().collect()
    if not groups:
        return known
    live_keys = lookup.live_keys([FileGroupId(row[0], row[1]) for row in groups])
    alive, newest = F.col(_ALIVE), F.desc(_BEGAN)
    somewhere = F.max(alive).over(Window.partitionBy(*key))
    age = F.row_number().over(Window.partitionBy(*key).orderBy(newest, FILE_ID))
    told = _told_alive(doubtful, live_keys).select("*", somewhere.alias("somewhere"), age.alias("age"))
    dead = told.filter(~alive & (F.col("somewhere") | (F.col("age") > 1)))
    return known.join(dead.select(*_PLACE), _PLACE, "left_anti")


def _told_alive(places: DataFrame, live_keys: LiveKeys) -> DataFrame:
    """Let tasks tell which keys are alive in the groups where they were found, and when the groups began."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for group, mine in _by_group(batches):
            alive = pa.array(live_keys.alive(group, mine.column(RECORD_KEY).combine_chunks()))
            began = pa.repeat(live_keys.began[group], mine.num_rows)
            told = mine.select(_PLACE).append_column(_ALIVE, alive).append_column(_BEGAN, began)
            yield from told.combine_chunks().to_batches()

    schema = f"{_PLACE_SCHEMA}, {_ALIVE} boolean, {_BEGAN} string"
    return _in_tasks(places.repartition(KNOWN_PATH, FILE_ID), run, schema)


def _by_group(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[FileGroupId, pa.Table]]:
    """Yield rows by the group where their keys were found."""
    given = list(batches)
    if not given:
        return
    rows = pa.Table.from_batches(given)
    places = rows.select([KNOWN_PATH, FILE_ID])
    for group in places.group_by([KNOWN_PATH, FILE_ID]).aggregate([]).to_pylist():
        path, file_id = group[KNOWN_PATH], group[FILE_ID]
        mine = pc.and_(pc.equal(places.column(0), path), pc.equal(places.column(1), file_id))
        yield FileGroupId(path, file_id), rows.filter(mine)


def locate(df: DataFrame, known: DataFrame | None, *, is_global: bool = False) -> DataFrame:
    """Add where each row's key lies, null for new keys.

    A key that lies in several file groups yields a row for each of them, as all must be updated.
    """
    if known is None:
        nothing = F.lit(None).cast("string")
        return df.withColumn(KNOWN_PATH, nothing).withColumn(FILE_ID, nothing)
    if is_global:
        return df.join(known, RECORD_KEY, "left")
    same = known.withColumn(PARTITION_PATH, F.col(KNOWN_PATH))
    return df.join(same, [RECORD_KEY, PARTITION_PATH], "left")


def count_rows(located: DataFrame) -> Counts:
    """Count located rows by where they go."""
    goes_to = F.coalesce(KNOWN_PATH, PARTITION_PATH)
    rows = located.groupBy(goes_to, FILE_ID).count().collect()
    updates = {FileGroupId(row[0], row[1]): row[2] for row in rows if row[1] is not None}
    inserts = {row[0]: row[2] for row in rows if row[1] is None}
    return Counts(updates, inserts)


def with_moves(df: DataFrame, known: DataFrame, lookup: LookUp) -> DataFrame:
    """Locate rows of a global index, where those whose key lies in another partition move to their own.

    A row that moves comes twice: it deletes in the old group, and is new in its partition.
    """
    assert lookup.moves is not None
    located = locate(df, known, is_global=True)
    elsewhere = located.filter(F.col(PARTITION_PATH) != F.col(KNOWN_PATH))
    names = [RECORD_KEY, KNOWN_PATH, FILE_ID, DELETED, *lookup.ordering]
    groups = elsewhere.select(KNOWN_PATH, FILE_ID).distinct().collect()
    if not groups:
        return located
    stored = lookup.moves([FileGroupId(row[0], row[1]) for row in groups])
    at_home = located.filter(F.col(PARTITION_PATH) == F.col(KNOWN_PATH)).select(RECORD_KEY)
    outcomes = _inserted_once(_outcomes(elsewhere.select(*names), stored), at_home)
    return _applied(located.join(outcomes, _PLACE, "left"), lookup.ordering)


def _inserted_once(outcomes: DataFrame, at_home: DataFrame) -> DataFrame:
    """Tell which of a key's moves inserts it: one, unless it is updated in its own partition."""
    first = F.row_number().over(Window.partitionBy(RECORD_KEY, _FATE).orderBy(KNOWN_PATH, FILE_ID)) == 1
    home = at_home.distinct().withColumn("_drawstring_home", F.lit(True))
    joined = outcomes.withColumn("_drawstring_first", first).join(home, RECORD_KEY, "left")
    inserts = F.col("_drawstring_first") & F.col("_drawstring_home").isNull()
    return joined.select(*_PLACE, _FATE, inserts.alias("_drawstring_inserts"))


def _applied(located: DataFrame, ordering: Sequence[str]) -> DataFrame:
    moves, is_new = F.col(_FATE) == MOVES, F.col(_FATE) == IS_NEW
    inserts = F.coalesce(F.col("_drawstring_inserts"), F.lit(False))
    # One row in place of each: what stays; what leaves; what leaves here and comes there.
    copies = (
        F.when(moves & inserts, F.array(F.lit(True), F.lit(False)))
        .when(moves, F.array(F.lit(True)))
        .when(is_new & ~inserts, F.array().cast("array<boolean>"))
        .otherwise(F.array(F.lit(False)))
    )
    leaves = F.col(_LEAVES)
    placed = F.col(_FATE).isNull() | leaves | ~(moves | is_new)
    rows = located.withColumn(_LEAVES, F.explode(copies))
    told = [name for name in (KNOWN_PATH, FILE_ID, ROW_POSITION) if name in located.columns]
    rows = rows.withColumns({name: F.when(placed, F.col(name)) for name in told})
    # Without values of the ordering columns, which would stand in the way of the key's return.
    rows = rows.withColumns({name: F.when(~leaves, F.col(name)) for name in ordering})
    return rows.withColumn(DELETED, F.col(DELETED) | leaves).drop(_FATE, _LEAVES, "_drawstring_inserts")


def _outcomes(elsewhere: DataFrame, stored: StoredVersions) -> DataFrame:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for group, mine in _by_group(batches):
            found = stored.outcomes(group, mine, mine.column(DELETED).to_numpy())
            told = mine.select(_PLACE).append_column(_FATE, pa.array(found, pa.int32()))
            yield from told.combine_chunks().to_batches()

    schema = f"{_PLACE_SCHEMA}, {_FATE} int"
    return _in_tasks(elsewhere.repartition(KNOWN_PATH, FILE_ID), run, schema).dropDuplicates(_PLACE)


def _ask(df: DataFrame, storage: Storage, index: Index, slices: Sequence[FileSlice]) -> DataFrame:
    """Let tasks ask an index, each for some of the keys."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = [batch.column(0) for batch in batches]
        keys = pa.chunked_array(parts, pa.string()).unique()
        for located in index.locate(storage, keys, slices) if len(keys) else ():
            found = keys.take(pa.array(np.unique(located.keys)))
            yield _places(found, located.slice.group.partition_path, located.slice.group.file_id)

    return _in_tasks(df.select(RECORD_KEY).repartition(RECORD_KEY), run, _PLACE_SCHEMA)


def _stored_keys(spark: SparkSession, storage: Storage, slices: Sequence[FileSlice]) -> DataFrame:
    """Return the places of all keys of slices, and their rows in base files."""
    files = [found.base_file for found in slices if found.base_file is not None]
    # Spark takes some characters for patterns, and its file systems trip over others.
    plain = [file for file in files if _PLAIN_PATH.match(f"{storage.root}/{file.path}")]
    others = [file for file in files if not _PLAIN_PATH.match(f"{storage.root}/{file.path}")]
    logs = {log.path: found.group for found in slices for log in found.log_files}
    parts = [_read_by_spark(spark, storage, plain)] if plain else []
    parts += [_read_by_tasks(spark, storage, others)] if others or not (plain or logs) else []
    parts += [_read_logs(spark, storage, logs)] if logs else []
    return reduce(DataFrame.union, parts)


def _read_logs(spark: SparkSession, storage: Storage, groups: Mapping[str, FileGroupId]) -> DataFrame:
    """Return the keys of log files by path; records of logs have no row."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for path in (path for batch in batches for path in batch.column(0).to_pylist()):
            for keys in keys_in_log(storage, path):
                places = _places(keys, groups[path].partition_path, groups[path].file_id)
                yield _with_rows(places, pa.nulls(len(keys), pa.int64()))

    return _by_file(spark, list(groups), run)


def _read_by_spark(spark: SparkSession, storage: Storage, files: list[BaseFile]) -> DataFrame:
    paths = [f"{storage.root}/{file.path}" for file in files]
    return (
        spark.read.schema(f"{RECORD_KEY} string, {PARTITION_PATH} string")
        # Without this Spark would take directories for partition columns.
        .option("recursiveFileLookup", "true")
        .parquet(*paths)
        .select(
            RECORD_KEY,
            F.col(PARTITION_PATH).alias(KNOWN_PATH),
            F.substring_index("_metadata.file_name", "_", 1).alias(FILE_ID),
            F.col("_metadata.row_index").alias(ROW_POSITION),
        )
    )


def _read_by_tasks(spark: SparkSession, storage: Storage, files: list[BaseFile]) -> DataFrame:
    by_path = {file.path: file.file_id for file in files}

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for path in (path for batch in batches for path in batch.column(0).to_pylist()):
            start = 0
            with storage.open(path) as source:
                for keys in pq.ParquetFile(source).iter_batches(columns=[RECORD_KEY]):
                    places = _places(keys.column(0), path.rpartition("/")[0], by_path[path])
                    yield _with_rows(places, pa.array(np.arange(start, start + keys.num_rows)))
                    start += keys.num_rows

    return _by_file(spark, list(by_path), run)


def _by_file(spark: SparkSession, paths: list[str], run: Any) -> DataFrame:
    listed = spark.createDataFrame([(path,) for path in paths], "path string")
    tasks = max(1, min(len(paths), spark.sparkContext.defaultParallelism))
    return _in_tasks(listed.repartition(tasks), run, f"{_PLACE_SCHEMA}, {ROW_POSITION} long")


def _with_rows(places: pa.RecordBatch, rows: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([*places.columns, rows], names=[*_PLACE, ROW_POSITION])


def _places(keys: pa.Array, path: str, file_id: str) -> pa.RecordBatch:
    arrays = [keys, pa.repeat(path, len(keys)), pa.repeat(file_id, len(keys))]
    return pa.RecordBatch.from_arrays(arrays, names=_PLACE)


def _in_tasks(df: DataFrame, run: Any, schema: str) -> DataFrame:
    with warnings.catch_warnings(), worker_interpreter(df.sparkSession):
        warnings.simplefilter("ignore", FutureWarning)
        return df.mapInArrow(lean(run), schema)
