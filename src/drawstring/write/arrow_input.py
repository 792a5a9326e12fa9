"""Converts incoming Arrow data to types that files can hold: views, unsigned numbers, nanoseconds, extensions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from drawstring.errors import IncompatibleSchema, InvalidInput
from drawstring.schema.avro_arrow import is_string_type
from drawstring.schema.projection import is_list

_ROW_LABELS = re.compile(r"__index_level_\d+__")


def as_rows(data: Any) -> pa.Table | pa.RecordBatchReader:
    """Take rows in any form that Arrow understands; raises `InvalidInput` for anything else.

    A value that the stored type cannot hold, such as a fraction of a microsecond, is refused, not rounded.
    """
    if isinstance(data, pa.RecordBatchReader):
        return _stored_reader(data)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    elif not isinstance(data, pa.Table) and hasattr(data, "__arrow_c_stream__"):
        data = _without_row_labels(pa.table(data))
    if isinstance(data, pa.Table):
        return _cast(data, storable_schema(data.schema))
    raise InvalidInput(
        f"The rows are a {type(data).__name__}; expected a pyarrow Table, RecordBatch or RecordBatchReader, or an "
        "object that exports an Arrow stream, such as a data frame of pandas or polars.",
        condition="ROWS_NOT_ARROW",
    )


def _without_row_labels(rows: pa.Table) -> pa.Table:
    """Leave out the column that pandas makes of an unnamed index (the row labels) without being asked."""
    known = (rows.schema.pandas_metadata or {}).get("index_columns", ())
    labels = [name for name in known if isinstance(name, str) and _ROW_LABELS.fullmatch(name)]
    return rows.drop_columns([name for name in labels if name in rows.column_names])


def storable_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with each type that no file has replaced by the one whose values are the same."""
    return pa.schema([field.with_type(_storable(field.type)) for field in schema])


def _storable(arrow: pa.DataType) -> pa.DataType:
    types = pa.types
    if isinstance(arrow, pa.BaseExtensionType):
        return _storable(arrow.storage_type)
    if types.is_dictionary(arrow):
        value = _storable(arrow.value_type)
        return arrow if value == arrow.value_type else value
    if types.is_struct(arrow):
        return pa.struct([field.with_type(_storable(field.type)) for field in arrow])
    if types.is_map(arrow):
        item = arrow.item_field
        return pa.map_(_storable(arrow.key_type), item.with_type(_storable(item.type)))
    if is_list(arrow):
        return _storable_list(arrow)
    return _storable_value(arrow)


def _storable_list(arrow: pa.DataType) -> pa.DataType:
    element = arrow.value_field.with_type(_storable(arrow.value_type))
    if element == arrow.value_field:
        return arrow
    return pa.large_list(element) if pa.types.is_large_list(arrow) else pa.list_(element)


def _storable_value(arrow: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_uint8(arrow) or types.is_uint16(arrow):
        return pa.int32()
    if types.is_uint32(arrow):
        return pa.int64()
    if types.is_date64(arrow):
        return pa.date32()
    if types.is_time32(arrow):
        return pa.time32("ms")
    if types.is_time64(arrow):
        return pa.time64("us")
    if types.is_timestamp(arrow):
        return pa.timestamp("us", arrow.tz)
    if types.is_binary_view(arrow):
        return pa.binary()
    return pa.string() if is_string_type(arrow) and not types.is_large_string(arrow) else arrow


def _stored_reader(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    schema = storable_schema(reader.schema)
    if schema.equals(reader.schema):
        return reader
    return pa.RecordBatchReader.from_batches(schema, _stored_batches(reader, schema))


def _stored_batches(reader: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        yield from _cast(pa.Table.from_batches([batch]), schema).to_batches()


def _cast(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = [_cast_column(column, field) for column, field in zip(rows.columns, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def _cast_column(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    try:
        return column if column.type == field.type else column.cast(field.type)
    except pa.ArrowException as error:
        raise IncompatibleSchema(
            f"Column {field.name} is {column.type} in the rows, which a table stores as {field.type}, and a value does "
            f"not become that: {error}. Cast the column before writing. Nothing was written.",
            condition="COLUMN_TYPE_MISMATCH",
            column=field.name,
            found=str(column.type),
            expected=str(field.type),
        ) from error
