"""Arrow schemas <-> Spark's JSON schemas, without importing Spark."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

from drawstring.errors import IncompatibleSchema

_TO_SPARK: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.date32(): "date",
    pa.null(): "void",
}
_TO_ARROW: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
    "null": pa.null(),
}
_DECIMAL = re.compile(r"^decimal\((\d+),\s*(\d+)\)$")


def spark_schema(schema: pa.Schema) -> str:
    """The Spark schema, as JSON, under which a table's Arrow schema is shown; everything is nullable."""
    return json.dumps({"type": "struct", "fields": [_spark_field(field) for field in schema]})


def arrow_schema(spark_json: str) -> pa.Schema:
    """The Arrow schema that holds the values of a Spark schema given as JSON."""
    return pa.schema(_arrow_fields(json.loads(spark_json)["fields"]))


def arrow_primitive(name: str) -> pa.DataType:
    """The Arrow type of one of Spark's atomic types, by its name in JSON."""
    decimal = _DECIMAL.match(name)
    if decimal:
        return pa.decimal128(int(decimal.group(1)), int(decimal.group(2)))
    if name.startswith(("char(", "varchar(", "string collate")):
        return pa.string()
    if name in _TO_ARROW:
        return _TO_ARROW[name]
    raise IncompatibleSchema(
        f"Hudi tables have no type for Spark's type {name}. Cast the column before writing, or leave it out.",
        condition="TYPE_NOT_IN_HUDI",
        type=name,
    )


def _spark_field(field: pa.Field) -> dict[str, Any]:
    return {"name": field.name, "type": _spark_type(field.type), "nullable": True, "metadata": {}}


def _spark_type(kind: pa.DataType) -> Any:
    if kind in _TO_SPARK:
        return _TO_SPARK[kind]
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_fixed_size_binary(kind):
        return "binary"
    return _spark_nested(kind)


def _spark_nested(kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [_spark_field(field) for field in kind]}
    if pa.types.is_map(kind):
        key, value = _spark_type(kind.key_type), _spark_type(kind.item_type)
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "elementType": _spark_type(kind.value_type), "containsNull": True}
    raise IncompatibleSchema(
        f"A column of Arrow type {kind} has no Spark type. Read the table with to_arrow(), or leave it out.",
        condition="TYPE_NOT_IN_SPARK",
        type=str(kind),
    )


def _arrow_fields(fields: list[dict[str, Any]]) -> list[pa.Field]:
    return [pa.field(field["name"], _arrow_type(field["type"]), nullable=True) for field in fields]


def _arrow_type(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        return arrow_primitive(kind)
    if kind["type"] == "struct":
        return pa.struct(_arrow_fields(kind["fields"]))
    if kind["type"] == "array":
        return pa.list_(pa.field("element", _arrow_type(kind["elementType"])))
    if kind["type"] == "map":
        return pa.map_(_arrow_type(kind["keyType"]), _arrow_type(kind["valueType"]))
    return arrow_primitive(str(kind["type"]))
