"""The records of log blocks as Arrow columns, with what merging needs to know of each.

Blocks of one schema are decoded together, whatever stands between them. `LogRecords` then lists *events* in merge
order: an event is a data row or a delete, with its key, kind and ordering values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from drawstring.errors import CorruptTable
from drawstring.formats.avro import block_rows, block_schema, decode_blocks
from drawstring.formats.delete_blocks import decode_delete_block
from drawstring.formats.log_blocks import BlockType, LogBlock
from drawstring.formats.parquet import ParquetSource
from drawstring.merge.file_errors import naming_file
from drawstring.merge.keys import deleted_keys, key_columns, record_keys
from drawstring.merge.ordering import (
    COMMIT_DELETE,
    DATA,
    EVENT_DELETE,
    Index,
    Kinds,
    Mask,
    as_column,
    event_kinds,
    normalised,
)
from drawstring.model.file_group import LogFile
from drawstring.model.read_task import ReadTask
from drawstring.schema.meta_columns import IS_DELETED, OPERATION
from drawstring.schema.projection import Projection, plan_projection

_DELETING_OPERATIONS = ("D", "-U")


@dataclass(frozen=True)
class MergeColumns:
    """Which columns merging looks at, beside those that were asked for."""

    schema: pa.Schema
    requested: tuple[str, ...]
    ordering: tuple[str, ...]

    @classmethod
    def of(cls, task: ReadTask, table_schema: pa.Schema, columns: Sequence[str]) -> MergeColumns:
        """Work out the columns of a task. The schema has the requested ones first."""
        merge = task.merge
        ordering = merge.ordering_fields if merge and merge.mode == "EVENT_TIME_ORDERING" else ()
        known = [name for name in (_spelled(field, table_schema) for field in ordering) if name]
        wanted = [*columns, *key_columns(task.keys), *map(_top, known)]
        if merge and merge.delete_field and merge.delete_marker:
            wanted.append(_top(_spelled(merge.delete_field, table_schema) or merge.delete_field))
        fields = {
            name: table_schema.field(name) for name in dict.fromkeys(wanted) if name in table_schema.names
        }
        for field in (pa.field(IS_DELETED, pa.bool_()), pa.field(OPERATION, pa.string())):
            known_as = field.name in table_schema.names
            fields.setdefault(field.name, table_schema.field(field.name) if known_as else field)
        for name in key_columns(task.keys):
            fields.setdefault(name, pa.field(name, pa.string()))
        return cls(pa.schema(fields.values()), tuple(columns), tuple(known))

    def orderings(self, batch: pa.RecordBatch | pa.Table) -> list[pa.Array]:
        """The ordering values of a batch, as stored."""
        return [_one(_nested(batch, name)) for name in self.ordering]

    @property
    def ordering_types(self) -> list[pa.DataType]:
        """The types of the ordering fields."""
        return [array.type for array in self.orderings(self.schema.empty_table())]


@dataclass(frozen=True)
class Segment:
    """The events of one block: `events` is their range, `columns` what a partial block assigns (None: all)."""

    events: range
    columns: frozenset[str] | None = None


@dataclass(frozen=True)
class LogRecords:
    """All events of some log blocks, oldest first.

    - `data`: the data rows; `rows` gives each event's row in it, -1 for deletes.
    - `key_ids`: each event's key as an index into `keys`, which are distinct.
    - `orderings`: normalised ordering values of each event, per ordering field.
    """

    data: pa.Table
    keys: pa.Array
    key_ids: Index
    kinds: Kinds
    rows: Index
    orderings: tuple[pa.Array, ...]
    segments: tuple[Segment, ...]

    @property
    def is_partial(self) -> bool:
        """Whether some block holds only the columns that were assigned."""
        return any(segment.columns is not None for segment in self.segments)


@dataclass
class _Piece:
    """Events of one block or part of one, before they are joined."""

    keys: pa.Array
    kinds: Kinds
    rows: Index
    orderings: list[pa.Array]
    columns: frozenset[str] | None = None


def read_records(task: ReadTask, blocks: Sequence[LogBlock], columns: MergeColumns) -> LogRecords:
    """Decode blocks into events."""
    tables, starts = _decode_data(task, blocks, columns)
    data = pa.concat_tables(tables) if tables else columns.schema.empty_table()
    data = data.combine_chunks()
    pieces: list[_Piece] = []
    for index, block in enumerate(blocks):
        if index in starts:
            start, count = starts[index]
            pieces.append(_data_piece(task, data.slice(start, count), start, columns, block))
        else:
            pieces += _delete_pieces(task, block, columns)
    return _joined(data, pieces, columns)


def records_of(task: ReadTask, table: pa.Table, block: LogBlock, columns: MergeColumns) -> LogRecords:
    """The events of rows of one block, decoded already."""
    data = table.combine_chunks()
    return _joined(data, [_data_piece(task, data, 0, columns, block)], columns)


def decoding_plan(task: ReadTask, block: LogBlock, found: pa.Schema, wanted: pa.Schema) -> Projection:
    """How rows of a block come to the schema that merging wants."""
    return plan_projection(found, wanted, mapping=task.mapping_for(block.path, block.instant_time))


def _decode_data(
    task: ReadTask, blocks: Sequence[LogBlock], columns: MergeColumns
) -> tuple[list[pa.Table], dict[int, tuple[int, int]]]:
    """Decode the data blocks, and tell where the rows of each begin and how many they are."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index, block in enumerate(blocks):
        if block.type is not BlockType.DELETE:
            mapping = task.mapping_for(block.path, block.instant_time)
            groups.setdefault((block.type, block.schema_json, mapping), []).append(index)
    tables: list[pa.Table] = []
    starts: dict[int, tuple[int, int]] = {}
    offset = 0
    for (kind, _, mapping), members in groups.items():
        decode = _decode_avro if kind is BlockType.AVRO_DATA else _decode_parquet
        for counts, table in decode(task, [(i, blocks[i]) for i in members], columns.schema, mapping):
            for member, count in counts:
                starts[member] = (offset, count)
                offset += count
            tables.append(table)
    return tables, starts


def _decode_avro(
    task: ReadTask, members: list[tuple[int, LogBlock]], wanted: pa.Schema, mapping: Any
) -> list[tuple[list[tuple[int, int]], pa.Table]]:
    first = members[0][1]
    with naming_file(log_of(task, first), task.slice.group.partition_path, instant=first.instant_time):
        plan = plan_projection(block_schema(first.schema_json), wanted, mapping=mapping)
        contents = [block.content() for _, block in members]
        counts = [
            (index, block_rows(content).count) for (index, _), content in zip(members, contents, strict=True)
        ]
        try:
            decoded = decode_blocks(first.schema_json or "", contents, columns=plan.file_columns)
            batches = [plan.apply(batch) for batch in decoded]
        except CorruptTable:
            if len(members) == 1:
                raise
            return [found for m in members for found in _decode_avro(task, [m], wanted, mapping)]
    return [(counts, pa.Table.from_batches(batches, schema=wanted))]


def _decode_parquet(
    task: ReadTask, members: list[tuple[int, LogBlock]], wanted: pa.Schema, mapping: Any
) -> list[tuple[list[tuple[int, int]], pa.Table]]:
    found = []
    for index, block in members:
        with (
            naming_file(log_of(task, block), task.slice.group.partition_path, instant=block.instant_time),
            ParquetSource(pa.BufferReader(block.content()), block.path) as parquet,
        ):
            plan = plan_projection(parquet.schema, wanted, mapping=mapping)
            batches = [plan.apply(batch) for batch in parquet.batches(plan.file_columns)]
            found.append(([(index, parquet.num_rows)], pa.Table.from_batches(batches, schema=wanted)))
    return found


def log_of(task: ReadTask, block: LogBlock) -> LogFile:
    """The log file of a block."""
    return next(log for log in task.slice.log_files if log.path == block.path)


def _data_piece(task: ReadTask, data: pa.Table, start: int, columns: MergeColumns, block: LogBlock) -> _Piece:
    stored = columns.orderings(data)
    keys = _one(record_keys(data, task.keys))
    if keys.null_count:
        raise CorruptTable(
            f"{keys.null_count} records of log file {block.path} (partition {task.slice.group.partition_path!r}, "
            f"instant {block.instant_time}) have no record key. Restore the file, or roll the instant back.",
            condition="RECORD_WITHOUT_KEY",
            path=block.path,
            partition=task.slice.group.partition_path,
            instant=block.instant_time,
        )
    deleted = _deleted(task, data)
    kinds = np.full(len(data), DATA, dtype=np.int8) if deleted is None else event_kinds(deleted, stored)
    assigned = _assigned(task, block, columns.schema) if block.is_partial else None
    rows = np.arange(start, start + len(data), dtype=np.int64)
    return _Piece(keys, kinds, rows, [normalised(values) for values in stored], assigned)


def _assigned(task: ReadTask, block: LogBlock, wanted: pa.Schema) -> frozenset[str]:
    """The columns that a partial block has values for, as the table names them."""
    plan = decoding_plan(task, block, block_schema(block.schema_json), wanted)
    return frozenset(wanted.names) - frozenset(plan.missing_columns)


def _deleted(task: ReadTask, data: pa.Table) -> Mask | None:
    """Where data rows stand for deletes; None when nowhere."""
    found: list[Mask] = []
    for name, test in _delete_tests(task, data.schema):
        if _top(name) not in data.schema.names:
            continue
        values = _one(_nested(data, name))
        if values.null_count < len(values):
            found.append(np.asarray(pc.fill_null(test(values), False)))
    return np.logical_or.reduce(found) if found else None


def _delete_tests(task: ReadTask, schema: pa.Schema) -> list[tuple[str, Any]]:
    tests: list[tuple[str, Any]] = []
    if pa.types.is_boolean(schema.field(IS_DELETED).type):
        tests.append((IS_DELETED, lambda values: values))
    operations = pa.array(_DELETING_OPERATIONS)
    tests.append((OPERATION, lambda values: pc.is_in(values.cast(pa.string()), value_set=operations)))
    merge = task.merge
    if merge and merge.delete_field and merge.delete_marker:
        marker = merge.delete_marker
        tests.append(
            (
                _spelled(merge.delete_field, schema) or merge.delete_field,
                lambda values: pc.equal(values.cast(pa.string()), marker),
            )
        )
    return tests


def _delete_pieces(task: ReadTask, block: LogBlock, columns: MergeColumns) -> list[_Piece]:
    with naming_file(log_of(task, block), task.slice.group.partition_path, instant=block.instant_time):
        batches = decode_delete_block(block.content())
    pieces = []
    types = columns.ordering_types
    for batch in batches:
        keys = deleted_keys(batch.keys, task.keys)
        unordered = task.merge is not None and task.merge.deletes_unordered
        orderings = None if unordered else _typed_orderings(batch.orderings, types)
        kind = COMMIT_DELETE if orderings is None else EVENT_DELETE
        nulls = [normalised(pa.nulls(len(keys), type=arrow)) for arrow in types]
        values = nulls if orderings is None else [normalised(array) for array in orderings]
        count = len(keys)
        pieces.append(
            _Piece(keys, np.full(count, kind, dtype=np.int8), np.full(count, -1, dtype=np.int64), values)
        )
    return pieces


def _typed_orderings(found: Sequence[pa.Array], types: Sequence[pa.DataType]) -> list[pa.Array] | None:
    """A delete's ordering values in the columns' types; None for none, or for values that cannot compare."""
    if not found or len(found) != len(types):
        return None
    typed = [as_column(values, arrow) for values, arrow in zip(found, types, strict=True)]
    return None if any(values is None for values in typed) else [v for v in typed if v is not None]


def _joined(data: pa.Table, pieces: Sequence[_Piece], columns: MergeColumns) -> LogRecords:
    keys = pa.chunked_array([piece.keys for piece in pieces], type=pa.string())
    encoded = _one(keys).dictionary_encode()
    segments, start = [], 0
    for piece in pieces:
        segments.append(Segment(range(start, start + len(piece.kinds)), piece.columns))
        start += len(piece.kinds)
    types = [normalised(pa.array([], arrow)).type for arrow in columns.ordering_types]
    orderings = tuple(
        _one(pa.chunked_array([piece.orderings[index] for piece in pieces], type=arrow))
        for index, arrow in enumerate(types)
    )
    return LogRecords(
        data,
        encoded.dictionary,
        np.asarray(encoded.indices).astype(np.int64),
        _concatenated([piece.kinds for piece in pieces], np.int8),
        _concatenated([piece.rows for piece in pieces], np.int64),
        orderings,
        tuple(segments),
    )


def _concatenated(arrays: Sequence[npt.NDArray[Any]], dtype: Any) -> npt.NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=dtype)


def _one(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], type=column.type)


def _spelled(path: str, schema: pa.Schema) -> str | None:
    """A dotted path with its first part as the schema spells it; None when it has no such column."""
    head = _top(path)
    alike = [name for name in schema.names if name == head] or [
        name for name in schema.names if name.lower() == head.lower()
    ]
    return alike[0] + path[len(head) :] if alike else None


def _top(path: str) -> str:
    return path.split(".")[0]


def _nested(batch: pa.RecordBatch | pa.Table, path: str) -> Any:
    if path in batch.schema.names:
        return batch.column(path)
    head, *rest = path.split(".")
    values = batch.column(head)
    for name in rest:
        values = pc.struct_field(values, name)
    return values
