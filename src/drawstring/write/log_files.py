"""Log files: rows of known keys appended to their file group, as blocks of records and of deletes.

A log file belongs to one instant and is written once and whole; a large one continues in a further version.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.config.log_options import PARQUET
from drawstring.formats.avro_encoder import AvroEncoder
from drawstring.formats.log_writer import (
    Positions,
    avro_block_of,
    data_headers,
    delete_blocks,
    parquet_block,
)
from drawstring.model.commit_metadata import WriteStat
from drawstring.model.file_names import join_path, log_file_name
from drawstring.schema.meta_columns import FILE_NAME, META_COLUMNS, RECORD_KEY
from drawstring.write.assignment import Bucket
from drawstring.write.base_files import TaskContext, WriteContext, constant
from drawstring.write.key_generator import check_partition_path
from drawstring.write.markers import staged_path
from drawstring.write.merge_group import DELETED, MergeRules, prepared_rows

ROW_POSITION = "_drawstring_row_position"
"""Column that tells the row of the group's base file which has the same key; rows may come without it."""
_BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class Block:
    """A block of a log file, with how many records and deletes the commit counts for it."""

    content: bytes
    rows: int = 0
    deletes: int = 0


def append_log(
    context: WriteContext, task: TaskContext, bucket: Bucket, rows: pa.Table, rules: MergeRules
) -> Iterator[WriteStat]:
    """Append rows and deletes to a group that is there, or make a group of logs alone."""
    yield from write_log(context, task, bucket, log_blocks(context, task, bucket, rows, rules))


def write_log(
    context: WriteContext, task: TaskContext, bucket: Bucket, blocks: Iterable[Block]
) -> list[WriteStat]:
    """Write blocks into the log files of one group and instant."""
    writer = _LogWriter(context, task, bucket)
    for block in blocks:
        writer.write(block)
    return writer.close()


def log_blocks(
    context: WriteContext, task: TaskContext, bucket: Bucket, rows: pa.Table, rules: MergeRules
) -> Iterator[Block]:
    """Yield blocks of records, then blocks of deletes."""
    deleted = rows.column(DELETED)
    if not pc.any(deleted).as_py():
        yield from _data_blocks(context, task, bucket, _by_position(bucket, rows))
    elif rules.merge is not None and not pc.all(deleted).as_py() and _repeats(rows):
        # Each version of a key meets the one before it: records that delete say so by their columns.
        yield from _data_blocks(context, task, bucket, rows)
    else:
        yield from _data_blocks(context, task, bucket, _by_position(bucket, rows.filter(pc.invert(deleted))))
        yield from _delete_blocks(context, bucket, _by_position(bucket, rows.filter(deleted)), rules)


def _by_position(bucket: Bucket, rows: pa.Table) -> pa.Table:
    """Sort rows by where they lie in the base file: the i-th position of a block is that of its i-th record."""
    if bucket.base_file is None or ROW_POSITION not in rows.column_names or _repeats(rows):
        return rows
    return rows.sort_by(ROW_POSITION)


def _repeats(rows: pa.Table) -> bool:
    return bool(pc.count_distinct(rows.column(RECORD_KEY)).as_py() < rows.num_rows)


def _data_blocks(context: WriteContext, task: TaskContext, bucket: Bucket, rows: pa.Table) -> Iterator[Block]:
    if not rows.num_rows:
        return
    positions = _positions(context, bucket, rows)
    prepared = prepared_rows(context, task, bucket.group.partition_path, rows)
    # Hudi names the file group here: which file a record is in may change by compactions of logs.
    place = prepared.schema.get_field_index(FILE_NAME)
    prepared = prepared.set_column(place, FILE_NAME, constant(bucket.group.file_id, rows.num_rows))
    if context.assigned_columns:
        prepared = prepared.select([*META_COLUMNS, *_in_order(context)])
    yield from record_blocks(context, prepared, positions)


def record_blocks(
    context: WriteContext, rows: pa.Table, positions: Positions | None = None
) -> Iterator[Block]:
    """Yield blocks of rows that have all their columns, in the format that the options ask for."""
    make = _parquet_blocks if context.files.logs.block_format == PARQUET else _avro_blocks
    yield from make(context, rows, positions)


def _avro_blocks(context: WriteContext, rows: pa.Table, positions: Positions | None) -> Iterator[Block]:
    encoder, limit = AvroEncoder(context.avro_schema), context.files.logs.max_block_size
    held: list[pa.Array] = []
    start = size = 0

    def block() -> Block:
        count = sum(map(len, held))
        return Block(avro_block_of(held, _headers(context, positions, start, count)), rows=count)

    for batch in rows.to_batches(max_chunksize=_BATCH_ROWS):
        for chunk in _parts(encoder.encode(batch, with_length=True), limit):
            if held and size + chunk.nbytes > limit:
                made = block()
                yield made
                start, size, held = start + made.rows, 0, []
            held.append(chunk)
            size += chunk.nbytes
    if held:
        yield block()


def _parts(chunks: Iterable[pa.Array], limit: int) -> Iterator[pa.Array]:
    """Part encoded rows that are together larger than a block may be."""
    for chunk in chunks:
        count = max(1, math.ceil(len(chunk) / max(1, math.ceil(chunk.nbytes / limit))))
        for start in range(0, len(chunk), count):
            yield chunk.slice(start, count)


def _parquet_blocks(context: WriteContext, rows: pa.Table, positions: Positions | None) -> Iterator[Block]:
    plain = rows.cast(pa.schema([context.schema.field(name) for name in rows.column_names]))
    limit = context.files.logs.max_block_size
    per_block = max(1, int(plain.num_rows * limit / max(plain.nbytes, 1)))
    codec = context.files.codec
    for start in range(0, plain.num_rows, per_block):
        part = plain.slice(start, per_block)
        headers = _headers(context, positions, start, part.num_rows)
        compression = "none" if codec == "uncompressed" else codec.replace("lz4_raw", "lz4")
        yield Block(parquet_block(part, headers, compression=compression), rows=part.num_rows)


def _headers(context: WriteContext, positions: Positions | None, start: int, count: int) -> dict[Any, str]:
    chosen = positions.take(np.arange(start, start + count)) if positions is not None else None
    partial = bool(context.assigned_columns)
    return data_headers(
        context.requested_time,
        context.avro_schema,
        positions=chosen,
        is_partial=partial,
        compacted=context.compacted,
    )


def _in_order(context: WriteContext) -> list[str]:
    return [name for name in context.data_schema.names if name in context.assigned_columns]


def _delete_blocks(
    context: WriteContext, bucket: Bucket, rows: pa.Table, rules: MergeRules
) -> Iterator[Block]:
    made = delete_blocks(
        context.requested_time,
        context.avro_schema,
        rows.column(RECORD_KEY).combine_chunks(),
        bucket.group.partition_path,
        [_stored(context, rows, name) for name in rules.ordering_fields],
        positions=_positions(context, bucket, rows),
    )
    for number, content in enumerate(made):
        yield Block(content, deletes=0 if number else rows.num_rows)


def _stored(context: WriteContext, rows: pa.Table, name: str) -> pa.Array:
    """Return ordering values in the type that the table keeps them in: deletes of another kind do not compare."""
    values, kept = rows.column(name).combine_chunks(), context.schema.field(name).type
    return values if values.type == kept else values.cast(kept)


def _positions(context: WriteContext, bucket: Bucket, rows: pa.Table) -> Positions | None:
    if bucket.base_file is None or ROW_POSITION not in rows.column_names or not rows.num_rows:
        return None
    found = rows.column(ROW_POSITION)
    if found.null_count or not context.files.logs.record_positions:
        return None
    places = found.to_numpy()
    if np.any(places[1:] <= places[:-1]):
        # Rows of one key that were not combined: a bitmap cannot tell them apart.
        return None
    return Positions(bucket.base_file.instant, places)


@dataclass
class _Counts:
    rows: int = 0
    deletes: int = 0
    size: int = 0


class _LogWriter:
    """The log files of one group and instant."""

    def __init__(self, context: WriteContext, task: TaskContext, bucket: Bucket) -> None:
        self._context, self._task, self._bucket = context, task, bucket
        self._path = check_partition_path(bucket.group.partition_path)
        self._stats: list[WriteStat] = []
        self._sink: Any = None
        self._written = _Counts()

    def write(self, block: Block) -> None:
        limit = self._context.files.logs.max_file_size
        if self._sink is not None and self._written.size + len(block.content) > limit:
            self._finish()
        if self._sink is None:
            path = staged_path(self._context.requested_time, join_path(self._path, self._name))
            self._sink = self._context.storage.open_output(path)
        self._sink.write(block.content)
        self._written.size += len(block.content)
        self._written.rows += block.rows
        self._written.deletes += block.deletes

    @property
    def _name(self) -> str:
        version = len(self._stats) + 1
        group, instant = self._bucket.group, self._context.requested_time
        return log_file_name(group.file_id, instant, version, self._task.write_token)

    def _finish(self) -> None:
        self._sink.close()
        self._sink = None
        known, written = self._bucket.slice is not None, self._written
        stat = WriteStat(
            num_updates=written.rows if known else 0,
            num_inserts=0 if known else written.rows,
            file_id=self._bucket.group.file_id,
            path=join_path(self._path, self._name),
            partition_path=self._path,
            num_writes=written.rows,
            num_deletes=written.deletes,
            file_size=written.size,
            log_files=(self._name,),
            prev_commit=self._context.requested_time,
        )
        self._stats.append(stat)
        self._written = _Counts()

    def close(self) -> list[WriteStat]:
        if self._sink is not None:
            self._finish()
        return self._stats
