"""The difference between two schemas, field by field: by column id where both have ids, else by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from drawstring.inspection.table_report import FieldChange
from drawstring.schema.internal_schema import InternalField, InternalSchema
from drawstring.schema.meta_columns import META_COLUMNS


@dataclass(frozen=True)
class Node:
    """A field of either kind of schema; `id` is None where the schema has no ids."""

    name: str
    type: str
    id: int | None = None
    children: tuple[Node, ...] = ()


def nodes(schema: pa.Schema | InternalSchema) -> tuple[Node, ...]:
    """The data columns of a schema."""
    fields = schema.fields if isinstance(schema, InternalSchema) else schema
    return tuple(_node(field) for field in fields if field.name not in META_COLUMNS)


def schema_changes(before: tuple[Node, ...], after: tuple[Node, ...]) -> tuple[FieldChange, ...]:
    """What changed from one schema to the next, nested fields by dotted path."""
    return tuple(_compare("", before, after))


def _node(field: pa.Field | InternalField) -> Node:
    if isinstance(field, InternalField):
        return Node(field.name, _type_name(field.type), field.id, tuple(map(_node, field.children)))
    return Node(field.name, _type_name(field.type), None, tuple(map(_node, _children(field.type))))


def _compare(prefix: str, before: tuple[Node, ...], after: tuple[Node, ...]) -> Iterator[FieldChange]:
    old, new = _keyed(before, after)
    for key, node in old.items():
        if key not in new:
            yield FieldChange("dropped", prefix + node.name, before=node.type)
    for key, node in new.items():
        if key not in old:
            yield FieldChange("added", prefix + node.name, after=node.type)
        else:
            yield from _compare_pair(prefix, old[key], node)


def _keyed(
    before: tuple[Node, ...], after: tuple[Node, ...]
) -> tuple[dict[object, Node], dict[object, Node]]:
    by_id = all(node.id is not None for node in (*before, *after))
    return _by_key(before, by_id=by_id), _by_key(after, by_id=by_id)


def _by_key(side: tuple[Node, ...], *, by_id: bool) -> dict[object, Node]:
    return {(node.id if by_id else node.name): node for node in side}


def _compare_pair(prefix: str, old: Node, new: Node) -> Iterator[FieldChange]:
    path = prefix + new.name
    if old.name != new.name:
        yield FieldChange("renamed", path, before=prefix + old.name, after=path)
    if old.children and new.children:
        yield from _compare(f"{path}.", old.children, new.children)
    elif old.type != new.type:
        yield FieldChange("changed", path, before=old.type, after=new.type)


def _type_name(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        inner = ", ".join(f"{field.name}: {_type_name(field.type)}" for field in kind)
        return f"struct<{inner}>"
    if pa.types.is_list(kind):
        return f"list<{_type_name(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{_type_name(kind.key_type)}, {_type_name(kind.item_type)}>"
    return "decimal" + str(kind).removeprefix("decimal128") if pa.types.is_decimal(kind) else str(kind)


def _children(kind: pa.DataType) -> Iterable[pa.Field]:
    if pa.types.is_map(kind):
        return (kind.key_field.with_name("key"), kind.item_field.with_name("value"))
    if pa.types.is_list(kind):
        return (kind.value_field.with_name("element"),)
    return tuple(kind) if pa.types.is_struct(kind) else ()
