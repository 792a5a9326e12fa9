"""Base files: Arrow rows in, Parquet files with Hudi's columns and their write statistics out."""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.file_options import FileOptions
from drawstring.formats.bloom import FooterKeys
from drawstring.formats.parquet_writer import ParquetWriter
from drawstring.model.commit_metadata import WriteStat
from drawstring.model.file_names import base_file_name, file_id_prefix, join_path
from drawstring.schema.arrays import counted_texts, number_array, numbers_of, text_array
from drawstring.schema.meta_columns import (
    COMMIT_SEQNO,
    COMMIT_TIME,
    FILE_NAME,
    META_COLUMNS,
    PARTITION_PATH,
    RECORD_KEY,
    strip_meta_columns,
)
from drawstring.schema.projection import Projection, plan_projection
from drawstring.storage.base import Storage
from drawstring.write.key_generator import (
    KeyGenerator,
    check_keys,
    check_partition_path,
    partition_paths,
    record_keys,
)
from drawstring.write.markers import staged_path

ROW_GROUP_BYTES = 32 << 20
"""Arrow bytes that are collected before a row group is written."""
TASK_BYTES = 256 << 20
"""Arrow bytes that one task holds back at most, over all partitions."""
OPEN_FILES = 128
"""Files that one task keeps open at most."""
_SYNCED_TOGETHER, _MOST_CLOSING = 2, 16
"""Finished files that are brought to disk at a time, and that wait for it at most."""

_SAMPLE_ROWS = 8192
_FEW_CHUNKS = 8


@dataclass(frozen=True)
class WriteContext:
    """What every file of one write has in common; travels to executors.

    `schema` is that of the files: meta columns first, then the table's; `avro_schema` the same as text, for log
    files. Where `assigned_columns` are given, logs hold those alone, and `avro_schema` is of them. With a `rule` the
    rows come without key and path, which the tasks make. Ids of new file groups derive from `seed`, so that every
    attempt of a task has the same. `change_capture` is the mode of a table that captures changes. Log blocks stand for
    those of the `compacted` instants.
    """

    storage: Storage
    requested_time: str
    schema: pa.Schema
    files: FileOptions
    key_fields: tuple[str, ...] = ()
    rule: KeyGenerator | None = None
    avro_schema: str = ""
    assigned_columns: tuple[str, ...] = ()
    change_capture: str = ""
    compacted: tuple[str, ...] = ()
    seed: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def data_schema(self) -> pa.Schema:
        """The table's own columns."""
        return strip_meta_columns(self.schema)


@dataclass
class TaskContext:
    """One task attempt: its write token, and a row counter for sequence numbers."""

    partition: int
    stage: int = 0
    attempt: int = 0
    rows: int = 0

    @property
    def write_token(self) -> str:
        """The part of file names that tells attempts apart."""
        return f"{self.partition}-{self.stage}-{self.attempt}"

    def sequence_numbers(self, requested_time: str, count: int) -> pa.Array:
        """Return the next sequence numbers, unique within the instant."""
        numbers = counted_texts(f"{requested_time}_{self.partition}_", self.rows, count)
        self.rows += count
        return numbers


class BaseFileWriter:
    """Writes one base file; rows come with all columns but the file's own name."""

    def __init__(
        self,
        context: WriteContext,
        task: TaskContext,
        partition_path: str,
        file_id: str,
    ) -> None:
        self._context = context
        self.partition_path = check_partition_path(partition_path)
        self.file_id = file_id
        self.name = base_file_name(file_id, task.write_token, context.requested_time)
        self._path = join_path(partition_path, self.name)
        self._staged = staged_path(context.requested_time, self._path)
        self._sink: Any = None
        self._writer: Any = None
        self._keys = FooterKeys(context.files.bloom)
        self._began = time.perf_counter()
        self.rows = 0

    @property
    def is_open(self) -> bool:
        """Whether the file exists yet."""
        return self._writer is not None

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return int(self._writer.size) if self.is_open else 0

    def write(self, table: pa.Table, dictionary_columns: list[str] | None = None) -> None:
        """Write rows as row groups; `_hoodie_file_name` is set here.

        The first rows tell which columns get dictionaries, unless the caller knows.
        """
        if not self.is_open:
            self._open(repeating_columns(table) if dictionary_columns is None else dictionary_columns)
        position = table.schema.get_field_index(FILE_NAME)
        named = table.set_column(position, FILE_NAME, constant(self.name, table.num_rows))
        self._writer.write_table(
            named.cast(self._file_schema) if named.schema != self._file_schema else named
        )
        keys = table.column(RECORD_KEY)
        for part in keys.chunks if keys.num_chunks <= _FEW_CHUNKS else [keys.combine_chunks()]:
            self._keys.add(part)
        self.rows += table.num_rows

    def _open(self, dictionary_columns: list[str]) -> None:
        self._sink = self._context.storage.open_output(self._staged)
        codec = self._context.files.codec
        self._writer = ParquetWriter(
            self._sink,
            self._file_schema,
            compression="none" if codec == "uncompressed" else codec.replace("lz4_raw", "lz4"),
            use_dictionary=dictionary_columns,
            # Readers must not see Arrow's own types: dictionaries are only how constants are handed over.
            store_schema=False,
            # Without them a flipped bit may read as another value.
            write_page_checksum=True,
        )

    @property
    def _file_schema(self) -> pa.Schema:
        return file_schema(self._context.schema)

    def close(self) -> int:
        """Finish the file, also when no row was written, and return its size."""
        size, sink = self.finish()
        sink.close()
        return size

    def finish(self) -> tuple[int, Any]:
        """Write the file to its end, and return its size and what must be closed before it counts."""
        if not self.is_open:
            self._open([])
        self._writer.close(self._keys.metadata())
        return int(self._sink.tell()), self._sink

    def stat(self, size: int, **facts: Any) -> WriteStat:
        """Return what a commit says of this file."""
        return WriteStat(
            file_id=self.file_id,
            path=self._path,
            partition_path=self.partition_path,
            num_writes=self.rows,
            file_size=size,
            runtime_ms=round((time.perf_counter() - self._began) * 1000),
            **facts,
        )


@dataclass
class _Partition:
    """Rows of one partition that are held back, and the file that the next of them go to."""

    path: str
    prefix: str
    files: int = 0
    held: list[pa.RecordBatch] = field(default_factory=list)
    held_bytes: int = 0
    writer: BaseFileWriter | None = None


class _Closing:
    """Closes finished files while the next ones are made: until the disk has a file takes as long as making it."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_SYNCED_TOGETHER, thread_name_prefix="drawstring-close")
        self._pending: deque[Future[None]] = deque()

    def add(self, sink: Any) -> None:
        """Close a file soon; raises what went wrong with earlier ones."""
        self._pending.append(self._pool.submit(sink.close))
        while len(self._pending) > _MOST_CLOSING:
            self._pending.popleft().result()

    def wait(self) -> None:
        """Return when all files are closed; raises what went wrong."""
        with self._pool:
            while self._pending:
                self._pending.popleft().result()


class PartitionedWriter:
    """Writes rows of any partitions, as they come, into new file groups of the target size."""

    def __init__(self, context: WriteContext, task: TaskContext) -> None:
        self._context, self._task = context, task
        self._closing = _Closing()
        self._partitions: dict[str, _Partition] = {}
        self._stats: list[WriteStat] = []
        self._projection: Projection | None = None
        self._dictionary_columns: list[str] | None = None
        self._held_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Take rows; record key and partition path are told from the other columns when they are missing."""
        rule = self._context.rule
        keys = batch.column(RECORD_KEY) if rule is None else record_keys(batch, rule)
        paths = (
            batch.column(PARTITION_PATH).dictionary_encode() if rule is None else partition_paths(batch, rule)
        )
        check_keys(keys, batch, self._context.key_fields)
        columns = [keys, *self._projected(batch).columns]
        rows = pa.RecordBatch.from_arrays(columns, names=[RECORD_KEY, *self._context.data_schema.names])
        for path, part in split_by_path(rows, paths):
            self._hold(path, part)

    def write_partition(self, path: str, batch: pa.RecordBatch) -> None:
        """Take rows of one partition, their record key first."""
        columns = [batch.column(0), *self._projected(batch).columns]
        names = [RECORD_KEY, *self._context.data_schema.names]
        self._hold(path, pa.RecordBatch.from_arrays(columns, names=names))

    def _projected(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._projection is None:
            self._projection = plan_projection(batch.schema, self._context.data_schema)
        return self._projection.apply(batch)

    def _hold(self, path: str, batch: pa.RecordBatch) -> None:
        partition = self._partitions.get(path)
        if partition is None:
            unique = uuid.uuid5(uuid.UUID(self._context.seed), f"{self._task.partition}/{path}")
            prefix = file_id_prefix(unique)
            partition = self._partitions[path] = _Partition(check_partition_path(path), prefix)
        partition.held.append(batch)
        size = batch.nbytes
        partition.held_bytes += size
        self._held_bytes += size
        if partition.held_bytes >= ROW_GROUP_BYTES:
            self._flush(partition)
        elif self._held_bytes >= TASK_BYTES:
            self._flush(max(self._partitions.values(), key=lambda p: p.held_bytes))

    def _flush(self, partition: _Partition) -> None:
        if not partition.held:
            return
        if partition.writer is None:
            file_id = f"{partition.prefix}-{partition.files}"
            partition.files += 1
            partition.writer = BaseFileWriter(self._context, self._task, partition.path, file_id)
        rows = pa.Table.from_batches(partition.held)
        named = with_meta_columns(rows, partition.path, self._context, self._task)
        partition.writer.write(named, self._repeating_columns(named))
        self._held_bytes -= partition.held_bytes
        partition.held, partition.held_bytes = [], 0
        if partition.writer.size >= self._context.files.max_file_size or self._too_many_open():
            self._finish(partition)

    def _repeating_columns(self, rows: pa.Table) -> list[str]:
        """Tell once for all files of the task, from the first rows that are enough to tell by."""
        if self._dictionary_columns is not None:
            return self._dictionary_columns
        found = repeating_columns(rows)
        if rows.num_rows >= _SAMPLE_ROWS:
            self._dictionary_columns = found
        return found

    def _too_many_open(self) -> bool:
        return sum(p.writer is not None for p in self._partitions.values()) > OPEN_FILES

    def _finish(self, partition: _Partition) -> None:
        writer = partition.writer
        if writer is not None:
            size, sink = writer.finish()
            self._closing.add(sink)
            self._stats.append(writer.stat(size, num_inserts=writer.rows))
            partition.writer = None

    def close(self) -> list[WriteStat]:
        """Write what is held back, finish all files and return their statistics."""
        for partition in self._partitions.values():
            self._flush(partition)
            self._finish(partition)
        self._closing.wait()
        return self._stats


def file_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema handed to the Parquet writer: constants as dictionaries, else the same."""
    constants = {COMMIT_TIME, PARTITION_PATH, FILE_NAME}
    return pa.schema(
        [f.with_type(pa.dictionary(pa.int32(), pa.string())) if f.name in constants else f for f in schema]
    )


def repeating_columns(table: pa.Table) -> list[str]:
    """Return the columns that a dictionary makes smaller, told from a sample.

    For values that hardly repeat, building a dictionary costs more than writing them, and compresses worse.
    """
    sample = table.slice(0, _SAMPLE_ROWS)
    return [name for name in sample.column_names if sample.num_rows and _repeats(sample.column(name))]


def _repeats(column: pa.ChunkedArray) -> bool:
    if pa.types.is_dictionary(column.type):
        return True
    if pa.types.is_nested(column.type) or pa.types.is_boolean(column.type):
        return False
    return bool(pc.count_distinct(column).as_py() * 2 <= len(column))


def constant(value: str, count: int) -> pa.Array:
    """Return a column of one value, as a dictionary, which costs next to nothing to write."""
    zeros = number_array(np.zeros(count, dtype=np.int32))
    return pa.DictionaryArray.from_arrays(zeros, text_array([value]))


def with_meta_columns(rows: pa.Table, path: str, context: WriteContext, task: TaskContext) -> pa.Table:
    """Return rows of one partition, key first, with all meta columns; the file's name is not known yet."""
    count = rows.num_rows
    meta = {
        COMMIT_TIME: constant(context.requested_time, count),
        COMMIT_SEQNO: task.sequence_numbers(context.requested_time, count),
        RECORD_KEY: rows.column(RECORD_KEY),
        PARTITION_PATH: constant(path, count),
        FILE_NAME: constant("", count),
    }
    arrays = [meta[name] for name in META_COLUMNS] + rows.columns[1:]
    return pa.Table.from_arrays(arrays, schema=file_schema(context.schema))


def split_by_path(batch: pa.RecordBatch, paths: pa.DictionaryArray) -> Iterable[tuple[str, pa.RecordBatch]]:
    """Yield the rows of each partition path, in the order they came."""
    return split_rows(batch, rows_by_path(paths))


def split_rows(
    batch: pa.RecordBatch, places: Sequence[tuple[str, np.ndarray]]
) -> Iterable[tuple[str, pa.RecordBatch]]:
    """Yield the rows of some paths. They are moved together, which costs less than path by path."""
    if not places:
        return
    rows = np.concatenate([numbers for _, numbers in places])
    is_whole = len(places) == 1 and len(rows) == batch.num_rows
    moved, start = batch if is_whole else batch.take(number_array(rows)), 0
    for path, numbers in places:
        yield path, moved.slice(start, len(numbers))
        start += len(numbers)


def rows_by_path(paths: pa.DictionaryArray) -> list[tuple[str, np.ndarray]]:
    """Return the numbers of each partition path's rows, in the order they came."""
    codes = numbers_of(paths.indices)
    if not len(codes):
        return []
    names = paths.dictionary.to_pylist()
    if len(names) == 1:
        return [(names[0], np.arange(len(codes)))]
    # Small numbers are sorted by counting them.
    codes = codes.astype(np.min_scalar_type(len(names)))
    order = np.argsort(codes, kind="stable")
    bounds = np.flatnonzero(np.diff(codes[order])) + 1
    return [(names[codes[rows[0]]], rows) for rows in np.split(order, bounds)]
