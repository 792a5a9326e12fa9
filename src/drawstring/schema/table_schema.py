"""The schema of a table, from what commits, properties and files say about it."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from drawstring.schema.avro_arrow import arrow_schema_from_avro, is_string_type
from drawstring.schema.internal_schema import InternalSchema, parse_internal_schema
from drawstring.schema.meta_columns import prepend_meta_columns

OPERATIONS_WITHOUT_SCHEMA = frozenset({"CLUSTER", "COMPACT", "INDEX", "LOG_COMPACT"})
"""Operations that rewrite data: the schema they record is not a change of the table's."""


def internal_schema_from_extra_metadata(extra_metadata: Mapping[str, str]) -> InternalSchema | None:
    """Return the schema with column ids that a commit records, if the table uses schema-on-read."""
    text = extra_metadata.get("latest_schema")
    return parse_internal_schema(text) if text else None


def table_schema_from_avro(avro: str) -> pa.Schema:
    """Return the Arrow schema of an Avro table schema, the meta columns first whether it has them or not."""
    return prepend_meta_columns(arrow_schema_from_avro(avro))


def table_schema_from_file(file_schema: pa.Schema) -> pa.Schema:
    """Return the table schema that a base file implies, for tables whose commits record none."""
    fields = [
        pa.field(field.name, canonical_type(field.type), nullable=field.nullable) for field in file_schema
    ]
    return prepend_meta_columns(pa.schema(fields))


def canonical_type(arrow: pa.DataType) -> pa.DataType:
    """Return the one type by which tables speak of `arrow`: file readers have several for one meaning."""
    types = pa.types
    if types.is_dictionary(arrow):
        return canonical_type(arrow.value_type)
    if types.is_struct(arrow):
        return pa.struct([field.with_type(canonical_type(field.type)) for field in arrow])
    if types.is_map(arrow):
        item = arrow.item_field
        return pa.map_(
            canonical_type(arrow.key_type),
            pa.field("value", canonical_type(item.type), nullable=item.nullable),
        )
    if types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow):
        element = arrow.value_field
        return pa.list_(pa.field("element", canonical_type(element.type), nullable=element.nullable))
    return _canonical_primitive(arrow)


def _canonical_primitive(arrow: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_timestamp(arrow):
        # Nanoseconds without a zone are how Arrow reads INT96, which holds instants.
        is_instant = arrow.tz is not None or arrow.unit == "ns"
        return pa.timestamp("us", tz="UTC" if is_instant else None)
    if types.is_int8(arrow) or types.is_int16(arrow):
        return pa.int32()
    if is_string_type(arrow):
        return pa.string()
    if types.is_large_binary(arrow) or types.is_fixed_size_binary(arrow):
        return pa.binary()
    return arrow
