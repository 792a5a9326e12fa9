"""Schema-on-read: schemas whose columns carry ids, their history, and mappings between two of them."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from drawstring.errors import CorruptTable
from drawstring.model.read_task import ColumnMapping

_PRIMITIVES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "time_millis": pa.time32("ms"),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_millis": pa.timestamp("us", tz="UTC"),
    "local_timestamp_millis": pa.timestamp("us"),
    "local_timestamp_micros": pa.timestamp("us"),
    "string": pa.string(),
    "uuid": pa.string(),
    "binary": pa.binary(),
}
_DECIMAL = re.compile(r"^decimal\w*\(\s*(\d+)\s*,\s*(\d+)\s*\)")


@dataclass(frozen=True)
class InternalField:
    """A column, struct field, list element, map key or map value with its id.

    `children` are a struct's fields, a list's `element`, or a map's `key` and `value`.
    """

    id: int
    name: str
    type: pa.DataType
    nullable: bool = True
    children: tuple[InternalField, ...] = ()


@dataclass(frozen=True)
class InternalSchema:
    """One version of a schema, in force from the instant `version_id` until the next version."""

    version_id: int
    fields: tuple[InternalField, ...]

    @property
    def arrow_schema(self) -> pa.Schema:
        """The schema as Arrow, including the meta columns it lists."""
        return pa.schema([pa.field(field.name, field.type, nullable=field.nullable) for field in self.fields])


@dataclass(frozen=True)
class SchemaHistory:
    """All versions of a table's schema, oldest first."""

    schemas: tuple[InternalSchema, ...]

    @property
    def latest(self) -> InternalSchema:
        """The newest version."""
        return self.schemas[-1]

    def at(self, instant: str) -> InternalSchema:
        """Return the version that a file written at `instant` has (the oldest for still older files)."""
        position = bisect_right([schema.version_id for schema in self.schemas], int(instant))
        return self.schemas[max(position - 1, 0)]

    def mappings_from(self, instant: str, *, to: InternalSchema) -> tuple[ColumnMapping, ...] | None:
        """Map the columns of `to` to a file written at `instant`; None when the file has that version."""
        version = self.at(instant)
        return None if version.version_id == to.version_id else column_mappings(to, version)


def parse_internal_schema(schema: str | Mapping[str, Any]) -> InternalSchema:
    """Parse an InternalSchema, as found under `latest_schema` in commit metadata."""
    parsed = _load(schema)
    try:
        return InternalSchema(int(parsed.get("version_id", 0)), tuple(map(_field, parsed["fields"])))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise _corrupt(schema, error) from error


def parse_schema_history(content: str | bytes) -> SchemaHistory | None:
    """Parse a file of `.hoodie/.schema`; None when it lists no schema."""
    try:
        text = content.decode("utf-8") if isinstance(content, bytes) else content
    except UnicodeDecodeError as error:
        raise _corrupt(repr(content[:100]), error) from error
    parsed = _load(text)
    if not isinstance(parsed, dict) or not isinstance(parsed.get("schemas"), list):
        raise _corrupt(text, "no list of schemas")
    return schema_history(parse_internal_schema(schema) for schema in parsed["schemas"])


def schema_history(schemas: Iterable[InternalSchema]) -> SchemaHistory | None:
    """Order versions; the first of two with one id counts. None when there are none."""
    by_version: dict[int, InternalSchema] = {}
    for schema in schemas:
        by_version.setdefault(schema.version_id, schema)
    return SchemaHistory(tuple(by_version[version] for version in sorted(by_version))) if by_version else None


def column_mappings(requested: InternalSchema, file_version: InternalSchema) -> tuple[ColumnMapping, ...]:
    """Map every column of `requested` to the one with its id in `file_version`, nested ones too.

    A column that `file_version` lacks has no source, even when the file holds a column of the same name:
    that one was dropped, and the new one has another id.
    """
    return _map_fields(requested.fields, file_version.fields)


def _map_fields(
    requested: tuple[InternalField, ...], found: tuple[InternalField, ...]
) -> tuple[ColumnMapping, ...]:
    by_id = {field.id: field for field in found}
    return tuple(_map_field(field, by_id.get(field.id)) for field in requested)


def _map_field(requested: InternalField, found: InternalField | None) -> ColumnMapping:
    if found is None:
        return ColumnMapping(requested.name, None)
    return ColumnMapping(requested.name, found.name, _map_fields(requested.children, found.children))


def _load(schema: str | Mapping[str, Any]) -> Any:
    if not isinstance(schema, str):
        return schema
    try:
        return json.loads(schema)
    except (ValueError, RecursionError) as error:
        raise _corrupt(schema, error) from error


def _corrupt(schema: Any, why: object) -> CorruptTable:
    return CorruptTable(
        f"Not a schema with column ids ({why}): {str(schema)[:100]!r}", condition="INVALID_INTERNAL_SCHEMA"
    )


def _field(parsed: Mapping[str, Any]) -> InternalField:
    return _typed(int(parsed["id"]), str(parsed["name"]), parsed["type"], bool(parsed.get("optional", True)))


def _typed(field_id: int, name: str, declared: Any, nullable: bool) -> InternalField:
    if isinstance(declared, str):
        return InternalField(field_id, name, _primitive(declared), nullable)
    children = _children(declared)
    return InternalField(field_id, name, _nested(declared["type"], children), nullable, children)


def _children(declared: Mapping[str, Any]) -> tuple[InternalField, ...]:
    kind = declared["type"]
    if kind == "record":
        return tuple(map(_field, declared["fields"]))
    if kind == "array":
        return (_part(declared, "element"),)
    if kind == "map":
        return _part(declared, "key"), _part(declared, "value")
    raise KeyError(kind)


def _part(declared: Mapping[str, Any], name: str) -> InternalField:
    field_id = declared[f"{name}_id"] if f"{name}_id" in declared else declared[f"{name}-id"]
    return _typed(int(field_id), name, declared[name], bool(declared.get(f"{name}_optional", name != "key")))


def _nested(kind: str, children: tuple[InternalField, ...]) -> pa.DataType:
    fields = [pa.field(child.name, child.type, nullable=child.nullable) for child in children]
    if kind == "record":
        return pa.struct(fields)
    return pa.list_(fields[0]) if kind == "array" else pa.map_(fields[0].type, fields[1])


def _primitive(declared: str) -> pa.DataType:
    decimal = _DECIMAL.match(declared)
    if decimal:
        return pa.decimal128(int(decimal.group(1)), int(decimal.group(2)))
    if declared.startswith("fixed"):
        return pa.binary()
    return _PRIMITIVES[declared.replace("-", "_").lower()]
