"""Avro schemas for people: one line per column, and what changed from one schema to another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drawstring.schema.avro_equality import AvroSchema, expand


def lines(schema: AvroSchema) -> list[str]:
    """Return each column, nested ones by dotted path, with its type."""
    return [f"{path}: {text}" for path, text in _columns(expand(schema), "")]


def changes(before: AvroSchema, after: AvroSchema) -> list[str]:
    """Return what was added (+), dropped (-) and changed (~)."""
    old, new = dict(_columns(expand(before), "")), dict(_columns(expand(after), ""))
    dropped = [f"  - {path}: {text}" for path, text in old.items() if path not in new]
    added = [f"  + {path}: {text}" for path, text in new.items() if path not in old]
    changed = [
        f"  ~ {path}: {text} -> {new[path]}"
        for path, text in old.items()
        if path in new and text != new[path]
    ]
    return dropped + changed + added


def _columns(avro: Any, prefix: str) -> Iterator[tuple[str, str]]:
    for field in avro["fields"] if isinstance(avro, Mapping) and "fields" in avro else ():
        path = f"{prefix}{field['name']}"
        default = f" default {field['default']!r}" if field.get("default") is not None else ""
        yield path, f"{_type(field['type'])}{default}"
        yield from _columns(_inner(field["type"]), f"{path}.")


def _inner(avro: Any) -> Any:
    """The record that a column's type leads to, through unions, arrays and maps."""
    if isinstance(avro, list):
        return next((found for found in map(_inner, avro) if found is not None), None)
    if not isinstance(avro, Mapping):
        return None
    return avro if "fields" in avro else _inner(avro.get("items", avro.get("values")))


def _type(avro: Any) -> str:
    if isinstance(avro, list):
        members = [_type(member) for member in avro if member != "null"]
        return " | ".join(members) + ("" if "null" not in avro else " nullable")
    if not isinstance(avro, Mapping):
        return str(avro)
    kind, logical = avro["type"], avro.get("logicalType")
    if logical == "decimal":
        return f"decimal({avro.get('precision')}, {avro.get('scale', 0)})"
    if kind in ("array", "map"):
        return f"{kind} of {_type(avro['items' if kind == 'array' else 'values'])}"
    named = f" {avro['name']}" if kind in ("enum", "fixed") else ""
    return f"{logical or kind}{named}"
