"""Records of AVRO_DATA log blocks, decoded to Arrow.

A block's content is: int32 block version, int32 record count, then per record an int32 length and the record.
The records are never touched in Python: with a first field of four raw bytes added to the schema, the content
*is* a sequence of Avro rows, and the native decoder takes it whole. The lengths come back as that column, and
must add up to the bytes of the block: a record that was decoded askew does not go unnoticed.

Schemas that the native decoder does not know go through fastavro, row by row.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from drawstring.config.support import found_in_files
from drawstring.errors import CorruptTable
from drawstring.formats.avro_native import NativeDecodeError, Rows, decode_rows
from drawstring.model.flipped_names import flipped_name
from drawstring.schema.avro_arrow import arrow_schema_from_avro
from drawstring.schema.meta_columns import META_COLUMNS

DATA_BLOCK_VERSION = 3
_READABLE_VERSIONS = (1, 2, 3)
"""Those differ in blocks of deletes only; Hudi up to 0.10 wrote 1, up to 0.13 it wrote 2."""
_PREFIX = struct.Struct(">ii")
_RECORD_LENGTH = struct.Struct(">i")
_LENGTH = "__drawstring_length"
_LENGTH_TYPE = {"type": "fixed", "size": 4, "name": "drawstring_length", "namespace": "drawstring"}


def block_rows(content: pa.Buffer) -> Rows:
    """Split the content of an AVRO_DATA (or CDC_DATA) block into its record count and its records."""
    return Rows(row_count(content, content.size), content.slice(_PREFIX.size))


def row_count(beginning: pa.Buffer, content_length: int) -> int:
    """The number of records of a block, from the first bytes of its content."""
    if beginning.size < _PREFIX.size:
        raise unreadable_block(f"its content has only {beginning.size} bytes")
    version, count = _PREFIX.unpack(beginning.slice(0, _PREFIX.size))
    if version not in _READABLE_VERSIONS:
        raise found_in_files("UNSUPPORTED_AVRO_BLOCK", found=version, known="1, 2 and 3")
    size = content_length - _PREFIX.size
    if not 0 <= count <= size // 4:
        raise unreadable_block(f"it claims {count} records in {size} bytes")
    return int(count)


def row_pieces(read: Callable[[int, int], pa.Buffer], content_length: int, max_bytes: int) -> Iterator[Rows]:
    """Cut a block's records into pieces of at most so many bytes; a larger record is a piece of its own.

    `read` fetches bytes of the content, by offset and length. Records are of any length, so finding where they
    begin takes a step per record: small beside decoding them, and only blocks too large for memory need it.
    """
    count = row_count(read(0, _PREFIX.size), content_length)
    position, found = _PREFIX.size, 0
    while position < content_length:
        piece = _whole_records(read(position, min(max_bytes, content_length - position)))
        if not piece.count:
            piece = _whole_records(read(position, _record_size(read(position, 4), content_length - position)))
        yield piece
        position, found = position + piece.data.size, found + piece.count
    if found != count:
        raise unreadable_block(f"it claims {count} records and has {found}")


def _whole_records(data: pa.Buffer) -> Rows:
    """The records that lie wholly in the bytes."""
    position, count, size, unpack = 0, 0, data.size, _RECORD_LENGTH.unpack_from
    while position + 4 <= size:
        length = unpack(data, position)[0]
        if length < 0 or position + 4 + length > size:
            break
        position += 4 + length
        count += 1
    return Rows(count, data.slice(0, position))


def _record_size(beginning: pa.Buffer, available: int) -> int:
    """The bytes of one record with its length; an error when they are not there."""
    length = _RECORD_LENGTH.unpack(beginning)[0] if beginning.size == 4 else -1
    if not 0 <= length <= available - 4:
        raise unreadable_block(f"a record claims {length} bytes where {max(0, available - 4)} are left")
    return 4 + int(length)


def block_schema(schema_json: str | None) -> pa.Schema:
    """The Arrow schema of a data block's records, from the Avro schema in its header."""
    try:
        schema = arrow_schema_from_avro(schema_json or "null")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise unreadable_block(f"its schema makes no sense ({type(error).__name__}: {error})") from error
    if not schema.names:
        raise unreadable_block("its schema has no fields")
    flipped = flipped_name(schema.names, META_COLUMNS)
    if flipped is not None:
        raise unreadable_block(f"its schema has a damaged name, {flipped!r}")
    return schema


def decode_blocks(
    schema_json: str, contents: Sequence[pa.Buffer], *, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Decode the contents of blocks that share one schema, in order.

    Args:
        schema_json: the blocks' Avro schema.
        contents: their contents.
        columns: the top-level columns wanted, in order; those the schema lacks are left out. None means all.

    Yields:
        Batches with the Arrow schema of the Avro schema, restricted to `columns`.

    Raises:
        CorruptTable: the bytes are not records of that schema.
    """
    return decode_records(schema_json, [block_rows(content) for content in contents], columns=columns)


def decode_records(
    schema_json: str, parts: Sequence[Rows], *, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Decode records of one schema, in order; see `decode_blocks`."""
    schema = _wanted(block_schema(schema_json), columns)
    try:
        yield from _decode_native(json.loads(schema_json), schema, parts)
    except NativeDecodeError as native_error:
        yield from _decode_slowly(schema_json, schema, parts, native_error)


def _wanted(schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    if columns is None:
        return schema
    return pa.schema([schema.field(name) for name in columns if schema.get_field_index(name) >= 0])


def _decode_native(
    avro_schema: dict[str, Any], schema: pa.Schema, parts: Sequence[Rows]
) -> list[pa.RecordBatch]:
    """Decode everything before handing out anything: a fallback must not repeat rows."""
    length_field = {"name": _LENGTH, "type": _LENGTH_TYPE}
    framed = {**avro_schema, "fields": [length_field, *avro_schema["fields"]]}
    columns = [_LENGTH, *schema.names]
    batches = list(decode_rows(framed, parts, filler=_first_record(parts), columns=columns))
    _check_lengths(batches, parts)
    return [_typed(batch, schema) for batch in batches]


def _first_record(parts: Sequence[Rows]) -> bytes:
    data = next((part.data for part in parts if part.count), pa.py_buffer(b""))
    length = int.from_bytes(data.slice(0, min(4, data.size)), "big")
    return bytes(data.slice(0, min(4 + length, data.size)))


def _check_lengths(batches: Sequence[pa.RecordBatch], parts: Sequence[Rows]) -> None:
    rows = sum(batch.num_rows for batch in batches)
    total = sum(_sum_of_lengths(batch.column(0)) for batch in batches)
    if rows != sum(part.count for part in parts) or total + 4 * rows != sum(part.data.size for part in parts):
        raise NativeDecodeError("the lengths of the records do not add up to the bytes of their block")


def _sum_of_lengths(column: pa.Array) -> int:
    raw = np.frombuffer(column.buffers()[1], dtype=">i4", count=len(column), offset=4 * column.offset)
    return int(raw.sum(dtype=np.int64))


def _typed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Give the columns their house types: names inside lists and UTC's spelling differ, not the bytes."""
    arrays = []
    for index, field in enumerate(schema, start=1):
        column = batch.column(index)
        try:
            arrays.append(column if column.type == field.type else column.cast(field.type))
        except pa.ArrowInvalid as error:
            # Below a null struct, Arrow does not cast fields that are declared not to be null.
            raise NativeDecodeError(f"column {field.name}: {error}") from error
    return pa.RecordBatch.from_arrays(arrays, schema=schema) if arrays else _rows_only(batch.num_rows)


def _rows_only(count: int) -> pa.RecordBatch:
    empty = pa.StructArray.from_buffers(pa.struct([]), count, [None])
    return pa.RecordBatch.from_struct_array(empty)


def _decode_slowly(
    schema_json: str, schema: pa.Schema, parts: Sequence[Rows], native_error: Exception
) -> Iterator[pa.RecordBatch]:
    import fastavro

    if "-millis" in schema_json:
        # Raw integers are taken as microseconds below.
        raise unreadable_block(str(native_error))
    try:
        parsed = fastavro.parse_schema(_without_temporal(json.loads(schema_json)))
        records = [record for part in parts for record in _records(parsed, part)]
        columns = [_column([record[field.name] for record in records], field.type) for field in schema]
    except CorruptTable:
        raise
    except Exception as error:
        raise unreadable_block(f"{error} (native decoder: {native_error})") from error
    if columns:
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
    elif records:
        yield _rows_only(len(records))


def _records(parsed: Any, part: Rows) -> Iterator[dict[str, Any]]:
    import fastavro

    data, position = memoryview(part.data).cast("B"), 0
    for _ in range(part.count):
        length = int.from_bytes(data[position : position + 4], "big")
        position += 4
        stream = io.BytesIO(data[position : position + length])
        yield fastavro.schemaless_reader(stream, parsed, None)
        position += length
        if stream.tell() != length or position > len(data):
            raise unreadable_block("a record does not fill its declared length")
    if position != len(data):
        raise unreadable_block(f"{len(data) - position} bytes follow the last record")


def _without_temporal(avro: Any) -> Any:
    """Drop the logical types of int and long: raw numbers reach Arrow without passing through datetime."""
    if isinstance(avro, list):
        return [_without_temporal(branch) for branch in avro]
    if not isinstance(avro, dict):
        return avro
    kept = {key: value for key, value in avro.items() if key != "default"}
    if avro.get("type") in ("int", "long", "string"):
        kept.pop("logicalType", None)
    for key in ("type", "items", "values"):
        if key in kept:
            kept[key] = _without_temporal(kept[key])
    if "fields" in kept:
        kept["fields"] = [_without_temporal(field) for field in kept["fields"]]
    return kept


def _column(values: list[Any], arrow: pa.DataType) -> pa.Array:
    physical = _physical(arrow)
    return pa.array([_plain(value, physical) for value in values], type=physical).cast(arrow)


def _physical(arrow: pa.DataType) -> pa.DataType:
    """The type with every date, time and timestamp as the integer it is stored as."""
    if pa.types.is_date32(arrow) or pa.types.is_time32(arrow):
        return pa.int32()
    if pa.types.is_timestamp(arrow) or pa.types.is_time64(arrow):
        return pa.int64()
    if pa.types.is_struct(arrow):
        return pa.struct([field.with_type(_physical(field.type)) for field in arrow])
    if pa.types.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(_physical(arrow.value_type)))
    if pa.types.is_map(arrow):
        return pa.map_(arrow.key_type, arrow.item_field.with_type(_physical(arrow.item_type)))
    return arrow


def _plain(value: Any, arrow: pa.DataType) -> Any:
    """Maps as pairs, at every depth, as Arrow wants them."""
    if value is None:
        return None
    if pa.types.is_map(arrow):
        return [(key, _plain(item, arrow.item_type)) for key, item in value.items()]
    if pa.types.is_list(arrow):
        return [_plain(item, arrow.value_type) for item in value]
    if pa.types.is_struct(arrow):
        return {field.name: _plain(value[field.name], field.type) for field in arrow}
    return value


def unreadable_block(reason: str) -> CorruptTable:
    """The error for a block whose records cannot be read."""
    return CorruptTable(
        f"A block of Avro records cannot be read: {reason}.", condition="LOG_BLOCK_UNREADABLE"
    )
