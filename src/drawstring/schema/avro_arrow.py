"""Avro schemas to Arrow schemas and back, with Hudi's naming rules.

Arrow types follow the house rules: strings are `string`, instants `timestamp[us, tz=UTC]`, local timestamps
`timestamp[us]`, decimals `decimal128` (256 beyond 38 digits), lists have a child called `element`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Union

import pyarrow as pa

from drawstring.config.support import found_in_files
from drawstring.errors import CorruptTable, IncompatibleSchema

_HUDI_TYPES = ("vector", "variant")
MAX_DEPTH = 64
"""How deep a schema may nest; deeper ones are refused instead of exhausting the stack."""

AvroType = Union[str, "list[Any]", "dict[str, Any]"]

_PRIMITIVES: dict[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL: dict[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.time32("ms"),
    ("long", "time-micros"): pa.time64("us"),
    ("long", "timestamp-millis"): pa.timestamp("us", tz="UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", tz="UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_AVRO_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


def arrow_schema_from_avro(schema: str | Mapping[str, Any]) -> pa.Schema:
    """Convert an Avro record schema (JSON text or parsed) to the Arrow schema of its records.

    Raises `CorruptTable` when it is no Avro record schema, `UnsupportedTable` when it is recursive, nests
    deeper than `MAX_DEPTH` or has arrays of nothing.
    """
    parsed = _parse(schema)
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise CorruptTable(
            f"Expected an Avro schema of type record, found {str(parsed)[:100]!r}.",
            condition="INVALID_AVRO_SCHEMA",
        )
    try:
        struct, _ = _FromAvro().convert(parsed, "", 0)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CorruptTable(
            f"An Avro schema cannot be understood: {error!r}.", condition="INVALID_AVRO_SCHEMA"
        ) from error
    return pa.schema(list(struct))


def avro_schema_from_arrow(schema: pa.Schema, *, name: str, namespace: str) -> dict[str, Any]:
    """Convert an Arrow schema to the Avro record `name` in `namespace`, as Hudi's Spark writer names things.

    Nested records take their field's name and the path of enclosing records as namespace; a decimal is a
    `fixed` of the smallest size, called `fixed`, in a namespace that ends with its field's name. Nullable
    fields are `["null", T]` with default null.
    """
    return _record_to_avro(list(schema), name, namespace, 0)


def _parse(schema: str | Mapping[str, Any]) -> Any:
    if not isinstance(schema, str):
        return schema
    try:
        return json.loads(schema)
    except (ValueError, RecursionError) as error:
        raise CorruptTable(
            f"An Avro schema is not valid JSON ({error}): {schema[:100]!r}", condition="INVALID_AVRO_SCHEMA"
        ) from error


class _FromAvro:
    """One conversion: remembers named types, and which of them are being defined (to refuse recursion)."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[pa.DataType, bool]] = {}
        self._open: set[str] = set()

    def convert(self, avro: Any, namespace: str, depth: int) -> tuple[pa.DataType, bool]:
        """Return the Arrow type and whether it admits null."""
        if depth > MAX_DEPTH:
            raise found_in_files("SCHEMA_TOO_DEEP", limit=MAX_DEPTH)
        if isinstance(avro, list):
            return self._union(avro, namespace, depth)
        if isinstance(avro, str):
            return self._reference(avro, namespace)
        kind = avro.get("type") if isinstance(avro, dict) else None
        if kind in ("record", "error", "enum", "fixed"):
            return self._define(avro, kind, namespace, depth)
        if kind == "array":
            element, nullable = self.convert(avro.get("items"), namespace, depth + 1)
            _refuse_empty_items(element, avro.get("items"))
            return pa.list_(pa.field("element", element, nullable=nullable)), False
        if kind == "map":
            value, nullable = self.convert(avro.get("values"), namespace, depth + 1)
            return pa.map_(pa.string(), pa.field("value", value, nullable=nullable)), False
        if isinstance(kind, (dict, list)):
            return self.convert(kind, namespace, depth + 1)
        return self._primitive(avro, kind, namespace)

    def _primitive(self, avro: Any, kind: Any, namespace: str) -> tuple[pa.DataType, bool]:
        if not isinstance(kind, str):
            raise _unknown(avro)
        logical = avro.get("logicalType")
        if logical == "decimal" and kind == "bytes":
            return _decimal(avro), False
        if (kind, logical) in _LOGICAL:
            return _LOGICAL[(kind, logical)], False
        return self._reference(kind, namespace)

    def _reference(self, name: str, namespace: str) -> tuple[pa.DataType, bool]:
        if name in _PRIMITIVES:
            return _PRIMITIVES[name], name == "null"
        for full_name in (_full_name(name, namespace), name):
            if full_name in self._open:
                raise found_in_files("RECURSIVE_SCHEMA", name=full_name)
            if full_name in self._named:
                return self._named[full_name]
        raise _unknown(name)

    def _define(
        self, avro: dict[str, Any], kind: str, namespace: str, depth: int
    ) -> tuple[pa.DataType, bool]:
        name = str(avro.get("name", ""))
        _refuse_hudi_type(avro)
        full_name = _full_name(name, str(avro.get("namespace", namespace) or ""))
        if kind in ("record", "error"):
            self._open.add(full_name)
            arrow: pa.DataType = self._record(avro, full_name.rpartition(".")[0], depth)
            self._open.discard(full_name)
        elif kind == "fixed" and avro.get("logicalType") == "decimal":
            arrow = _decimal(avro)
        else:
            arrow = pa.string() if kind == "enum" else pa.binary()
        self._named[full_name] = (arrow, False)
        return arrow, False

    def _record(self, avro: dict[str, Any], namespace: str, depth: int) -> pa.DataType:
        fields = []
        for field in avro.get("fields", ()):
            arrow, nullable = self.convert(field.get("type"), namespace, depth + 1)
            fields.append(pa.field(str(field["name"]), arrow, nullable=nullable))
        return pa.struct(fields)

    def _union(self, branches: list[Any], namespace: str, depth: int) -> tuple[pa.DataType, bool]:
        others = [branch for branch in branches if branch != "null"]
        nullable = len(others) < len(branches)
        if not others:
            return pa.null(), True
        if len(others) == 1:
            return self.convert(others[0], namespace, depth)[0], nullable
        types = [self.convert(branch, namespace, depth + 1)[0] for branch in others]
        if set(types) == {pa.int32(), pa.int64()}:
            return pa.int64(), nullable
        if set(types) == {pa.float32(), pa.float64()}:
            return pa.float64(), nullable
        # Spark's reading of a union of several types: a struct of which one member is set.
        return pa.struct([pa.field(f"member{i}", arrow) for i, arrow in enumerate(types)]), nullable


def _refuse_hudi_type(avro: Mapping[str, Any]) -> None:
    """Refuse types that Hudi shows as something else than the bytes that it stores for them."""
    found = avro.get("logicalType")
    if found in _HUDI_TYPES:
        raise found_in_files("COLUMN_TYPE_NOT_SUPPORTED", found=found, column=avro.get("name"))


def _refuse_empty_items(element: pa.DataType, items: Any) -> None:
    """Refuse arrays whose items take no bytes: a few bytes of data could claim any number of them."""
    empty_fixed = isinstance(items, dict) and items.get("type") == "fixed" and not items.get("size")
    if _has_no_data(element) or empty_fixed:
        raise found_in_files("EMPTY_ARRAY_ITEMS", found=str(items)[:100])


def _has_no_data(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_null(arrow)) or (
        bool(pa.types.is_struct(arrow)) and all(_has_no_data(field.type) for field in arrow)
    )


def _decimal(avro: Mapping[str, Any]) -> pa.DataType:
    precision, scale = int(avro["precision"]), int(avro.get("scale", 0))
    return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _unknown(avro: Any) -> CorruptTable:
    return CorruptTable(
        f"An Avro schema uses {str(avro)[:100]!r}, which is neither an Avro type nor a name defined before.",
        condition="INVALID_AVRO_SCHEMA",
    )


def _record_to_avro(fields: list[pa.Field], name: str, namespace: str, depth: int) -> dict[str, Any]:
    child_namespace = f"{namespace}.{name}" if namespace else name
    return {
        "type": "record",
        "name": name,
        "namespace": namespace,
        "fields": [_field_to_avro(field, child_namespace, depth + 1) for field in fields],
    }


def _field_to_avro(field: pa.Field, namespace: str, depth: int) -> dict[str, Any]:
    if not _AVRO_NAME.match(field.name):
        raise IncompatibleSchema(
            f"Column {field.name!r} cannot be stored: Avro names start with a letter or underscore and hold "
            "only letters, digits and underscores. Rename it.",
            condition="INVALID_COLUMN_NAME",
            column=field.name,
        )
    avro = _nullable(_type_to_avro(field.type, field.name, namespace, depth), field.nullable)
    return (
        {"name": field.name, "type": avro, "default": None}
        if field.nullable
        else {"name": field.name, "type": avro}
    )


def _nullable(avro: AvroType, nullable: bool) -> AvroType:
    return ["null", avro] if nullable and avro != "null" else avro


def _type_to_avro(arrow: pa.DataType, name: str, namespace: str, depth: int) -> AvroType:
    if depth > MAX_DEPTH:
        raise found_in_files("SCHEMA_TOO_DEEP", limit=MAX_DEPTH)
    types = pa.types
    if isinstance(arrow, pa.BaseExtensionType):
        return _type_to_avro(arrow.storage_type, name, namespace, depth + 1)
    if types.is_dictionary(arrow):
        return _type_to_avro(arrow.value_type, name, namespace, depth + 1)
    if types.is_struct(arrow):
        return _record_to_avro(list(arrow), name, namespace, depth)
    if types.is_map(arrow):
        return _map_to_avro(arrow, name, namespace, depth)
    if _is_list(arrow):
        element = arrow.value_field
        items = _type_to_avro(element.type, name, namespace, depth + 1)
        return {"type": "array", "items": _nullable(items, element.nullable)}
    if types.is_decimal(arrow):
        return _decimal_to_avro(arrow, name, namespace)
    return _primitive_to_avro(arrow, name)


def _map_to_avro(arrow: pa.DataType, name: str, namespace: str, depth: int) -> AvroType:
    if not is_string_type(arrow.key_type):
        raise IncompatibleSchema(
            f"Column {name!r} is a map with {arrow.key_type} keys; Hudi stores maps with string keys only.",
            condition="UNSUPPORTED_MAP_KEY",
            column=name,
        )
    item = arrow.item_field
    values = _type_to_avro(item.type, name, namespace, depth + 1)
    return {"type": "map", "values": _nullable(values, item.nullable)}


def _decimal_to_avro(arrow: pa.DataType, name: str, namespace: str) -> AvroType:
    return {
        "type": "fixed",
        "name": "fixed",
        "namespace": f"{namespace}.{name}",
        "size": decimal_size(arrow.precision),
        "logicalType": "decimal",
        "precision": arrow.precision,
        "scale": arrow.scale,
    }


def _primitive_to_avro(arrow: pa.DataType, name: str) -> AvroType:
    types = pa.types
    if types.is_int64(arrow) or types.is_uint32(arrow):
        return "long"
    if types.is_integer(arrow) and not types.is_uint64(arrow):
        return "int"
    if is_string_type(arrow):
        return "string"
    if types.is_binary(arrow) or types.is_large_binary(arrow) or types.is_fixed_size_binary(arrow):
        return "bytes"
    if types.is_timestamp(arrow):
        return {"type": "long", "logicalType": f"{'local-' if arrow.tz is None else ''}timestamp-micros"}
    if types.is_date(arrow):
        return {"type": "int", "logicalType": "date"}
    if types.is_time(arrow):
        return (
            {"type": "int", "logicalType": "time-millis"}
            if types.is_time32(arrow)
            else {"type": "long", "logicalType": "time-micros"}
        )
    for avro, primitive in _PRIMITIVES.items():
        if arrow == primitive:
            return avro
    raise IncompatibleSchema(
        f"Column {name!r} has type {arrow}, which Hudi tables cannot store. Cast it to another type.",
        condition="UNSUPPORTED_TYPE",
        column=name,
        type=str(arrow),
    )


def decimal_size(precision: int) -> int:
    """Return the fewest bytes whose two's complement holds every decimal of this precision."""
    largest: int = 10**precision - 1
    return (largest.bit_length() + 8) // 8


def is_string_type(arrow: pa.DataType) -> bool:
    """Whether this is one of Arrow's text types."""
    types = pa.types
    return bool(types.is_string(arrow) or types.is_large_string(arrow) or types.is_string_view(arrow))


def _is_list(arrow: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow))
