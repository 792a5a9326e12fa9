"""Arrow types as Spark DDL text, the spelling that both sides of the bridge read."""

from __future__ import annotations

import pyarrow as pa

from drawstring.schema.avro_arrow import is_string_type

_NAMES: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.null(): "void",
}


def type_text(arrow: pa.DataType) -> str:
    """Return the type as Spark DDL; field names are quoted by backticks."""
    types = pa.types
    if arrow in _NAMES:
        return _NAMES[arrow]
    if types.is_dictionary(arrow):
        return type_text(arrow.value_type)
    if types.is_struct(arrow):
        return f"struct<{', '.join(f'{_quoted(field.name)}: {type_text(field.type)}' for field in arrow)}>"
    if types.is_map(arrow):
        return f"map<{type_text(arrow.key_type)}, {type_text(arrow.item_type)}>"
    if types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow):
        return f"array<{type_text(arrow.value_type)}>"
    if types.is_decimal(arrow):
        return f"decimal({arrow.precision},{arrow.scale})"
    if types.is_timestamp(arrow):
        return "timestamp" if arrow.tz else "timestamp_ntz"
    if types.is_date(arrow):
        return "date"
    if types.is_time(arrow):
        return "int" if types.is_time32(arrow) else "bigint"
    return "string" if is_string_type(arrow) else "binary"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
