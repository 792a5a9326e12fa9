"""The union of two schemas that a table was given at once, where every file of both stays readable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from drawstring.errors import IncompatibleSchema
from drawstring.schema.avro_arrow import arrow_schema_from_avro
from drawstring.schema.avro_equality import AvroSchema, canonical, expand
from drawstring.schema.projection import plan_projection
from drawstring.write.evolution import wider_type

_PLAIN = frozenset({"boolean", "int", "long", "float", "double", "bytes", "string", "fixed"})


def union_schema(start: AvroSchema | None, now: AvroSchema, writer: AvroSchema) -> dict[str, Any]:
    """Return the schema with the columns of `now`, then those that only `writer` has; nested records alike.

    1. A column of one side alone must be nullable, because files of the other side lack it, and must not be one that
       the other side took away since `start`.
    2. A column of both has the wider type, by Hudi's promotions; it is nullable if it is on either side.
    3. Files of both sides can be read by the union.

    Raises `IncompatibleSchema` where there is none.
    """
    before = expand(start) if start else None
    merged = _record(before, expand(now), expand(writer), "")
    union: dict[str, Any] = _with_unique_names(merged)
    for side in (now, writer):
        plan_projection(arrow_schema_from_avro(expand(side)), arrow_schema_from_avro(union))
    return union


def _record(start: Any, now: Mapping[str, Any], writer: Mapping[str, Any], path: str) -> dict[str, Any]:
    base = _by_name(start) if isinstance(start, Mapping) and "fields" in start else {}
    left = _by_name(writer)
    fields = []
    for field in now["fields"]:
        name = field["name"].lower()
        other, at, before = left.pop(name, None), f"{path}{field['name']}", base.get(name)
        if other is None:
            _require_optional(field, at, taken_away=before is not None, by="the writer")
            fields.append(field)
        else:
            fields.append(_field(before, field, other, at))
    for name, field in left.items():
        _require_optional(field, f"{path}{field['name']}", taken_away=name in base, by="another commit")
        fields.append(field)
    return {**now, "fields": fields}


def _by_name(record: Mapping[str, Any]) -> dict[str, Any]:
    return {field["name"].lower(): field for field in record["fields"]}


def _require_optional(field: Mapping[str, Any], path: str, *, taken_away: bool, by: str) -> None:
    if taken_away:
        raise _incompatible(path, f"{by} dropped it")
    if not _is_nullable(field["type"]):
        raise _incompatible(path, "only one side has it, and it may not be null")


def _field(before: Any, now: Mapping[str, Any], writer: Mapping[str, Any], path: str) -> dict[str, Any]:
    nullable = _is_nullable(now["type"]) or _is_nullable(writer["type"])
    base = _value_type(before["type"]) if before else None
    merged = _type(base, _value_type(now["type"]), _value_type(writer["type"]), path)
    if merged == _value_type(now["type"]) and nullable == _is_nullable(now["type"]):
        return dict(now)
    # A default belongs to the type it was written for.
    kept = {key: value for key, value in now.items() if key != "default"}
    if not nullable:
        return {**kept, "type": merged}
    return {**kept, "type": ["null", merged], "default": None}


def _type(start: Any, now: Any, writer: Any, path: str) -> Any:
    if canonical(now) == canonical(writer):
        return now
    kind, other = _kind(now), _kind(writer)
    if kind == other == "record":
        return _record(start, now, writer, f"{path}.")
    for container, inner in (("array", "items"), ("map", "values")):
        if kind == other == container:
            base = start.get(inner) if isinstance(start, Mapping) else None
            return {**now, inner: _element(base, now[inner], writer[inner], f"{path}.{inner}")}
    wider = _wider(now, writer)
    if wider is None:
        raise _incompatible(path, f"it is {_text(now)} in the table and {_text(writer)} in the write")
    return wider


def _element(start: Any, now: Any, writer: Any, path: str) -> Any:
    base = _value_type(start) if start is not None else None
    merged = _type(base, _value_type(now), _value_type(writer), path)
    return ["null", merged] if _is_nullable(now) or _is_nullable(writer) else merged


def _wider(now: Any, writer: Any) -> Any:
    """The wider of two plain types, by the rule of every write; None when neither is."""
    if not _is_plain(now) or not _is_plain(writer):
        return None
    table, found = _arrow(now), _arrow(writer)
    if table == found:
        # The same for Arrow, but not in the table: milliseconds and microseconds, or text and enums.
        return None
    wider = wider_type(found, table)
    return None if wider is None else now if wider == table else writer


def _is_plain(avro: Any) -> bool:
    return _kind(avro) in _PLAIN and not isinstance(avro, list)


def _arrow(avro: Any) -> pa.DataType:
    record = {"type": "record", "name": "r", "fields": [{"name": "c", "type": avro}]}
    return arrow_schema_from_avro(record).field("c").type


def _is_nullable(avro: Any) -> bool:
    return isinstance(avro, list) and "null" in avro


def _value_type(avro: Any) -> Any:
    """The type of a column's values; a union of several types is none of its own."""
    if not isinstance(avro, list):
        return avro
    members = [member for member in avro if member != "null"]
    return members[0] if len(members) == 1 else members


def _kind(avro: Any) -> str:
    return str(avro.get("type")) if isinstance(avro, Mapping) else str(avro)


def _text(avro: Any) -> str:
    return _kind(avro) if not isinstance(avro, Mapping) else str(avro.get("logicalType") or avro.get("type"))


def _incompatible(path: str, why: str) -> IncompatibleSchema:
    return IncompatibleSchema(
        f"Column {path} cannot be reconciled: {why}.", condition="SCHEMAS_NOT_RECONCILABLE", column=path
    )


def _with_unique_names(record: dict[str, Any]) -> Any:
    """Name each type once: Avro knows a type by its name, and the two sides may have used one name for two types."""
    seen: dict[str, tuple[str, Any]] = {}

    def visit(avro: Any, path: str) -> Any:
        if isinstance(avro, list):
            return [visit(member, path) for member in avro]
        if not isinstance(avro, Mapping):
            return avro
        kind = avro["type"]
        if kind in ("array", "map"):
            inner = "items" if kind == "array" else "values"
            return {**avro, inner: visit(avro[inner], f"{path}_{inner}")}
        if kind == "recursion":
            return avro["name"]
        if kind not in ("record", "error", "enum", "fixed"):
            return avro
        return define(dict(avro), path)

    def define(avro: dict[str, Any], path: str) -> Any:
        full_name = ".".join(filter(None, (avro.get("namespace"), avro["name"])))
        known = seen.get(full_name)
        if known is not None and known[1] == canonical(avro):
            return full_name
        if known is not None:
            avro["name"] = f"{avro['name']}{path}"
            full_name += path
        seen[full_name] = (full_name, canonical(avro))
        if "fields" in avro:
            avro["fields"] = [{**f, "type": visit(f["type"], f"{path}_{f['name']}")} for f in avro["fields"]]
        return avro

    return visit(record, "")
