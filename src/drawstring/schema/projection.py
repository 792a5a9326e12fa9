"""From the schema of a file to the schema that was asked for, planned once per file schema.

A projection matches columns by name (or by a mapping, for schema-on-read), fills what the file lacks with
nulls, leaves out what is not wanted, reorders, and widens types: at the top level and inside structs, lists
and maps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from drawstring.errors import IncompatibleSchema
from drawstring.model.read_task import ColumnMapping
from drawstring.schema.conversions import conversion_kind, convert
from drawstring.schema.type_text import type_text

IDENTITY, NULL, STRUCT, LIST, MAP = "identity", "null", "struct", "list", "map"


@dataclass(frozen=True)
class Conversion:
    """How one requested column, field, element, key or value comes out of the file.

    - `source` is the file-side name, None when the file lacks it (`kind` is then `null`).
    - `children` has one entry per field of a struct, one for a list's element, two for a map (key, value);
      also when `kind` is `identity`, since nested types may still differ in nullability or element names.
    """

    name: str
    wanted: pa.DataType
    kind: str
    source: str | None = None
    found: pa.DataType | None = None
    children: tuple[Conversion, ...] = ()

    @property
    def is_identity(self) -> bool:
        """Whether values pass as they are."""
        return self.kind == IDENTITY

    def describe(self) -> dict[str, Any]:
        """Return the conversion as JSON-able values; types are Spark DDL."""
        described: dict[str, Any] = {"name": self.name, "type": type_text(self.wanted), "kind": self.kind}
        if self.source is not None and self.found is not None:
            described |= {"source": self.source, "source_type": type_text(self.found)}
        if self.children and not self.is_identity:
            described["children"] = [child.describe() for child in self.children]
        return described


@dataclass(frozen=True)
class Projection:
    """A planned way from batches of a file's schema to batches of the requested schema."""

    requested_schema: pa.Schema
    columns: tuple[Conversion, ...]

    @cached_property
    def file_columns(self) -> list[str]:
        """Top-level names of the columns to read from the file, each once, in requested order."""
        return list(dict.fromkeys(column.source for column in self.columns if column.source is not None))

    @cached_property
    def is_identity(self) -> bool:
        """Whether reading the requested columns by name is all there is to do."""
        return all(column.is_identity and column.source == column.name for column in self.columns)

    @cached_property
    def only_selects(self) -> bool:
        """Like `is_identity`, but the file may lack columns, which are then null."""
        return all(
            (column.is_identity and column.source == column.name) or column.kind == NULL
            for column in self.columns
        )

    @cached_property
    def missing_columns(self) -> tuple[str, ...]:
        """Requested columns that the file lacks."""
        return tuple(column.name for column in self.columns if column.kind == NULL)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Convert a batch that holds at least `file_columns`, in any order."""
        arrays = [_apply_column(batch, column) for column in self.columns]
        if not arrays:
            return batch.select([])
        return pa.RecordBatch.from_arrays(arrays, schema=self.requested_schema)

    def apply_table(self, table: pa.Table) -> pa.Table:
        """Convert a table."""
        return pa.Table.from_batches(map(self.apply, table.to_batches()), schema=self.requested_schema)

    def describe(self) -> list[dict[str, Any]]:
        """Return the projection as JSON-able values, one per requested column."""
        return [column.describe() for column in self.columns]


def plan_projection(
    file_schema: pa.Schema, requested_schema: pa.Schema, *, mapping: Sequence[ColumnMapping] | None = None
) -> Projection:
    """Plan the way from `file_schema` to `requested_schema`.

    Columns are matched by `mapping` where it names them, else by name: exactly, or ignoring case when that is
    unambiguous. Raises `IncompatibleSchema` for a type change that Hudi does not allow.
    """
    columns = _plan_fields(list(file_schema), list(requested_schema), mapping or (), "")
    return Projection(requested_schema, tuple(columns))


def _plan_fields(
    found: list[pa.Field], wanted: Iterable[pa.Field], mapping: Sequence[ColumnMapping], path: str
) -> Iterator[Conversion]:
    by_name = {field.name: field for field in found}
    mapped = {column.name: column for column in mapping}
    for field in wanted:
        column = mapped.get(field.name)
        source = _find(by_name, field.name) if column is None else _find_mapped(by_name, column)
        if source is None:
            yield Conversion(field.name, field.type, NULL)
        else:
            children = column.children if column else ()
            yield _plan(
                field.name, source, field.type, children, f"{path}.{field.name}" if path else field.name
            )


def _find(by_name: dict[str, pa.Field], name: str) -> pa.Field | None:
    if name in by_name:
        return by_name[name]
    folded = name.lower()
    alike = [field for other, field in by_name.items() if other.lower() == folded]
    return alike[0] if len(alike) == 1 else None


def _find_mapped(by_name: dict[str, pa.Field], column: ColumnMapping) -> pa.Field | None:
    return None if column.source is None else _find(by_name, column.source)


def _plan(
    name: str, source: pa.Field, wanted: pa.DataType, mapping: Sequence[ColumnMapping], path: str
) -> Conversion:
    found = source.type
    if pa.types.is_dictionary(found):
        found = found.value_type
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        children, kind = tuple(_plan_fields(list(found), list(wanted), mapping, path)), STRUCT
    elif pa.types.is_map(found) and pa.types.is_map(wanted):
        children, kind = tuple(_plan_entries(found, wanted, mapping, path)), MAP
    elif is_list(found) and is_list(wanted):
        children, kind = (_plan_element(found, wanted, mapping, path),), LIST
    else:
        return _plan_value(name, source, wanted, path)
    if _is_unchanged(source.type, wanted, children):
        kind = IDENTITY
    return Conversion(name, wanted, kind, source.name, source.type, children)


def _plan_value(name: str, source: pa.Field, wanted: pa.DataType, path: str) -> Conversion:
    found = source.type.value_type if pa.types.is_dictionary(source.type) else source.type
    kind = (
        IDENTITY if source.type == wanted else "cast" if found == wanted else conversion_kind(found, wanted)
    )
    if kind is None:
        raise _type_change(path, found, wanted)
    return Conversion(name, wanted, kind, source.name, source.type)


def _type_change(path: str, found: pa.DataType, wanted: pa.DataType) -> IncompatibleSchema:
    return IncompatibleSchema(
        f"Column {path} is {found} in a file but {wanted} is expected, and Hudi allows no such change of "
        "type. Read the column with its own type, or rewrite the file.",
        condition="TYPE_CHANGE_NOT_ALLOWED",
        column=path,
        found=str(found),
        expected=str(wanted),
    )


def _plan_element(found: Any, wanted: Any, mapping: Sequence[ColumnMapping], path: str) -> Conversion:
    inner = _mapping_of(mapping, "element")
    return _plan("element", found.value_field, wanted.value_type, inner, f"{path}.element")


def _plan_entries(
    found: Any, wanted: Any, mapping: Sequence[ColumnMapping], path: str
) -> Iterator[Conversion]:
    yield _plan("key", found.key_field, wanted.key_type, _mapping_of(mapping, "key"), f"{path}.key")
    yield _plan("value", found.item_field, wanted.item_type, _mapping_of(mapping, "value"), f"{path}.value")


def _mapping_of(mapping: Sequence[ColumnMapping], name: str) -> Sequence[ColumnMapping]:
    return next((column.children for column in mapping if column.name == name), ())


def _is_unchanged(found: pa.DataType, wanted: pa.DataType, children: tuple[Conversion, ...]) -> bool:
    if not all(child.is_identity for child in children) or found.id != wanted.id:
        return False
    if not pa.types.is_struct(found):
        return True
    return [field.name for field in found] == [field.name for field in wanted]


def is_list(arrow: pa.DataType) -> bool:
    """Whether this is one of Arrow's list types (maps are not)."""
    types = pa.types
    return bool(types.is_list(arrow) or types.is_large_list(arrow) or types.is_fixed_size_list(arrow))


def _apply_column(batch: pa.RecordBatch, column: Conversion) -> pa.Array:
    if column.source is None:
        return pa.nulls(batch.num_rows, column.wanted)
    return _apply(batch.column(column.source), column)


def _apply(array: pa.Array, plan: Conversion) -> pa.Array:
    if array.type == plan.wanted and plan.is_identity:
        return array
    if plan.kind == NULL:
        return pa.nulls(len(array), plan.wanted)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_struct(plan.wanted):
        return _apply_struct(array, plan)
    if pa.types.is_nested(plan.wanted):
        return _apply_repeated(array, plan)
    return _apply_value(array, plan)


def _apply_value(array: pa.Array, plan: Conversion) -> pa.Array:
    """Convert by the plan, or as it needs where a decoder gives another type than the schema promised."""
    if array.type == plan.wanted:
        return array
    kind = plan.kind if array.type == plan.found else conversion_kind(array.type, plan.wanted)
    if kind is None:
        raise _type_change(plan.name, array.type, plan.wanted)
    return convert(array, plan.wanted, kind)


def _apply_struct(array: pa.StructArray, plan: Conversion) -> pa.Array:
    names = [field.name for field in array.type]
    children = [
        pa.nulls(len(array), child.wanted)
        if child.source is None
        else _apply(array.field(names.index(child.source)), child)
        for child in plan.children
    ]
    return pa.Array.from_buffers(plan.wanted, len(array), [_validity(array)], children=children)


def _apply_repeated(array: Any, plan: Conversion) -> pa.Array:
    if pa.types.is_fixed_size_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    offsets = array.offsets
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    offsets = pc.cast(pc.subtract(offsets, pa.scalar(first, offsets.type)), pa.int32())
    parts = [array.keys, array.items] if pa.types.is_map(array.type) else [array.values]
    parts = [
        _apply(part.slice(first, last - first), child)
        for part, child in zip(parts, plan.children, strict=True)
    ]
    if pa.types.is_map(plan.wanted):
        entry = pa.struct([plan.wanted.key_field, plan.wanted.item_field])
        parts = [pa.Array.from_buffers(entry, last - first, [None], children=parts)]
    buffers = [_validity(array), offsets.buffers()[1]]
    return pa.Array.from_buffers(plan.wanted, len(array), buffers, children=parts)


def _validity(array: pa.Array) -> pa.Buffer | None:
    """Return the validity bitmap of an array, starting at bit 0 even when the array is a slice."""
    if array.null_count == 0:
        return None
    bits = pc.invert(array.is_null())
    if bits.offset:
        bits = pa.concat_arrays([bits, pa.array([], pa.bool_())])
    return bits.buffers()[1]
