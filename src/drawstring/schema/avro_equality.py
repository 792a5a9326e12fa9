"""When two Avro schemas are the same schema of a table, by the rules of Hudi's comparator for schema evolution.

Compared are the names and order of fields, types, logical types, decimal precision and scale, defaults, the sort
attribute, enum symbols in order, size and name of fixed types, and union members as a set. Namespaces, documentation,
aliases, unknown properties and the names of records are not.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any

from drawstring.errors import CorruptTable, UnsupportedTable
from drawstring.schema.avro_arrow import MAX_DEPTH
from drawstring.schema.meta_columns import META_COLUMNS, OPERATION

AvroSchema = str | Mapping[str, Any]
"""An Avro schema as JSON text or parsed."""

_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_LOGICAL = frozenset(
    {
        ("int", "date"),
        ("int", "time-millis"),
        ("long", "time-micros"),
        ("string", "uuid"),
        *(
            ("long", f"{local}timestamp-{unit}")
            for local in ("", "local-")
            for unit in ("millis", "micros", "nanos")
        ),
    }
)


def parse_avro(schema: AvroSchema) -> Any:
    """Parse JSON text; the bare name of a type is a schema as well."""
    if not isinstance(schema, str) or schema in _PRIMITIVES:
        return schema
    try:
        return json.loads(schema)
    except ValueError:
        raise _invalid(schema) from None


def same_schema(left: AvroSchema, right: AvroSchema) -> bool:
    """Whether two schemas are the same for a table; meta columns do not count."""
    return canonical(left) == canonical(right)


def canonical(schema: AvroSchema) -> Hashable:
    """Return a value that is equal for equal schemas.

    Raises `CorruptTable` for what is no Avro schema, `UnsupportedTable` for one that nests too deep.
    """
    try:
        return _Canonical().type(expand(schema), 0)
    except (KeyError, TypeError, AttributeError) as error:
        raise _invalid(schema) from error


def expand(schema: AvroSchema) -> Any:
    """Return the schema with every reference to a named type replaced by its definition, and without meta columns.

    References within the type that they name, of recursive types, stay.
    """
    try:
        expanded = _Expansion().type(parse_avro(schema), "", 0)
    except (KeyError, TypeError, AttributeError) as error:
        raise _invalid(schema) from error
    if isinstance(expanded, dict) and expanded["type"] == "record":
        fields = [f for f in expanded["fields"] if f["name"] not in (*META_COLUMNS, OPERATION)]
        return {**expanded, "fields": fields}
    return expanded


def is_null_schema(schema: AvroSchema) -> bool:
    """Whether the schema is Avro's `null`: a write that brings no rows and so no schema."""
    parsed = parse_avro(schema)
    return parsed == "null" or (isinstance(parsed, Mapping) and parsed.get("type") == "null")


class _Expansion:
    def __init__(self) -> None:
        self._defined: dict[str, Any] = {}
        self._open: set[str] = set()

    def type(self, avro: Any, namespace: str, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise UnsupportedTable(
                f"The schema nests deeper than {MAX_DEPTH} levels. Flatten it.", condition="SCHEMA_TOO_DEEP"
            )
        if isinstance(avro, list):
            return [self.type(member, namespace, depth + 1) for member in avro]
        if isinstance(avro, str):
            return self._reference(avro, namespace)
        kind = avro["type"]
        if isinstance(kind, (dict, list)):
            return self.type(kind, namespace, depth + 1)
        if kind in ("record", "error", "enum", "fixed"):
            return self._named(avro, kind, namespace, depth)
        if kind in ("array", "map"):
            inner = "items" if kind == "array" else "values"
            return {**avro, inner: self.type(avro[inner], namespace, depth + 1)}
        if kind in _PRIMITIVES:
            return kind if len(avro) == 1 else dict(avro)
        return self._reference(kind, namespace)

    def _reference(self, name: str, namespace: str) -> Any:
        if name in _PRIMITIVES:
            return name
        for full_name in (_full_name(name, namespace), name):
            if full_name in self._open:
                return {"type": "recursion", "name": full_name}
            if full_name in self._defined:
                return self._defined[full_name]
        raise KeyError(name)

    def _named(self, avro: Mapping[str, Any], kind: str, namespace: str, depth: int) -> Any:
        full_name = _full_name(avro["name"], avro.get("namespace", namespace))
        inner, _, name = full_name.rpartition(".")
        found = {**avro, "name": name, "namespace": inner}
        if kind in ("record", "error"):
            self._open.add(full_name)
            fields = [{**f, "type": self.type(f["type"], inner, depth + 1)} for f in avro["fields"]]
            self._open.discard(full_name)
            found["fields"] = fields
        self._defined[full_name] = found
        return found


class _Canonical:
    """Turns an expanded schema into nested tuples of what is compared."""

    def __init__(self) -> None:
        self._open: list[str] = []

    def type(self, avro: Any, depth: int) -> Hashable:
        if isinstance(avro, str):
            return (avro,)
        if isinstance(avro, list):
            return ("union", frozenset(self.type(member, depth + 1) for member in avro))
        kind = avro["type"]
        if kind in ("record", "error"):
            return self._record(avro, kind, depth)
        if kind == "recursion":
            # By how far up the type lies that it names: records have no names here.
            return ("recursion", len(self._open) - self._open.index(avro["name"]))
        if kind == "enum":
            return ("enum", avro["name"], tuple(avro["symbols"]))
        if kind == "fixed":
            return ("fixed", avro["name"], avro["size"], *_decimal(avro))
        if kind in ("array", "map"):
            return (kind, self.type(avro["items" if kind == "array" else "values"], depth + 1))
        return (kind, *_logical(avro, kind))

    def _record(self, avro: Mapping[str, Any], kind: str, depth: int) -> Hashable:
        self._open.append(_full_name(avro["name"], avro.get("namespace", "")))
        fields = tuple(
            (
                field["name"],
                self.type(field["type"], depth + 1),
                _default(field),
                str(field.get("order", "ascending")).lower(),
            )
            for field in avro["fields"]
        )
        self._open.pop()
        return (kind, fields)


def _logical(avro: Mapping[str, Any], kind: str) -> tuple[Hashable, ...]:
    if kind == "bytes":
        return _decimal(avro)
    logical = avro.get("logicalType")
    # A logical type that Avro does not know, or not on this type, is one more unknown property.
    return (logical,) if (kind, logical) in _LOGICAL else ()


def _decimal(avro: Mapping[str, Any]) -> tuple[Hashable, ...]:
    if avro.get("logicalType") != "decimal" or not isinstance(avro.get("precision"), int):
        return ()
    return ("decimal", avro["precision"], avro.get("scale", 0))


def _default(field: Mapping[str, Any]) -> Hashable:
    return ("default", _value(field["default"], _first(field["type"]))) if "default" in field else ()


def _first(avro: Any) -> Any:
    """The type that a default has: of a union, its first member's."""
    return avro[0] if isinstance(avro, list) and avro else avro


def _value(value: Any, avro: Any) -> Hashable:
    """A default as its type reads it: 0 and 0.0 are one double."""
    kind = avro if isinstance(avro, str) else avro.get("type") if isinstance(avro, Mapping) else ""
    if kind in ("float", "double") and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    return json.dumps(value, sort_keys=True)


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _invalid(schema: Any) -> CorruptTable:
    return CorruptTable(
        f"Expected an Avro schema, found {str(schema)[:100]!r}.", condition="INVALID_AVRO_SCHEMA"
    )
