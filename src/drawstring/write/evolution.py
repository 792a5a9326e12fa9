"""Incoming rows against the table's schema: what fits, what widens the table, what is refused."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from drawstring.errors import IncompatibleSchema
from drawstring.schema.avro_arrow import is_string_type
from drawstring.schema.meta_columns import META_COLUMNS, META_FIELDS, OPERATION
from drawstring.schema.projection import is_list
from drawstring.schema.table_schema import canonical_type

_NUMBERS = (pa.int32(), pa.int64(), pa.float32(), pa.float64())
MAX_DIGITS = 38
"""More digits than Spark has for decimals."""
_DIGITS = {pa.int32(): 10, pa.int64(): 19}


def incoming_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of incoming rows as a table would store it: no meta columns, all nullable.

    Raises `IncompatibleSchema` when no column is left, when two names (or a name and a meta column's) differ
    only in case, or when a type cannot be stored.
    """
    fields = [
        pa.field(field.name, _stored(field.type, field.name))
        for field in schema
        if field.name not in (*META_COLUMNS, OPERATION)
    ]
    if not fields:
        raise IncompatibleSchema(
            "There are no columns to store; a table needs at least one. Nothing was written.",
            condition="EMPTY_SCHEMA",
        )
    _refuse_duplicates([*META_FIELDS, pa.field(OPERATION, pa.string()), *fields])
    return pa.schema(fields)


def reconcile(incoming: pa.Schema, table: pa.Schema | None, *, null_for_missing: bool = False) -> pa.Schema:
    """Return the schema that the table has after rows of `incoming` are written to it.

    Columns are matched by name, ignoring case, at the top and in structs, lists and maps. Incoming columns may be new
    (they are added at the end), of a narrower type (their values are widened) or of a wider one (the table's column is
    widened). A column that they lack is refused unless `null_for_missing`, and then may be null from now on. Raises
    `IncompatibleSchema` for anything else.
    """
    if table is None:
        return incoming
    return pa.schema(_merge_fields(list(incoming), list(table), null_for_missing, ""))


def _merge_fields(
    incoming: list[pa.Field], table: list[pa.Field], null_for_missing: bool, path: str
) -> list[pa.Field]:
    by_name = {field.name.lower(): field for field in incoming}
    merged = []
    for field in table:
        found = by_name.pop(field.name.lower(), None)
        if found is None:
            _require_missing_allowed(f"{path}{field.name}", null_for_missing, incoming)
            merged.append(field.with_nullable(True))
        else:
            merged.append(_merge_field(found, field, null_for_missing, f"{path}{field.name}"))
    return [*merged, *by_name.values()]


def _merge_field(found: pa.Field, field: pa.Field, null_for_missing: bool, path: str) -> pa.Field:
    merged = _merge_types(found.type, field.type, null_for_missing, path)
    return pa.field(field.name, merged, nullable=field.nullable or found.nullable)


def _merge_types(found: pa.DataType, table: pa.DataType, null_for_missing: bool, path: str) -> pa.DataType:
    if found == table:
        return table
    if pa.types.is_struct(found) and pa.types.is_struct(table):
        return pa.struct(_merge_fields(list(found), list(table), null_for_missing, f"{path}."))
    if is_list(found) and is_list(table):
        inner = _merge_types(found.value_type, table.value_type, null_for_missing, f"{path}.element")
        return pa.list_(pa.field("element", inner))
    if pa.types.is_map(found) and pa.types.is_map(table):
        inner = _merge_types(found.item_type, table.item_type, null_for_missing, f"{path}.value")
        return pa.map_(table.key_type, inner)
    wider = wider_type(found, table)
    if wider is None:
        raise IncompatibleSchema(
            f"Column {path} is {found} in the rows but {table} in the table, and neither can be widened to the "
            "other. Cast the column before writing. Nothing was written.",
            condition="COLUMN_TYPE_MISMATCH",
            column=path,
            found=str(found),
            expected=str(table),
        )
    return wider


def wider_type(found: pa.DataType, table: pa.DataType) -> pa.DataType | None:
    """Return the type that holds the values of both, by the promotions that Hudi makes when it writes; None if none.

    It is always one of the two. Hudi also takes numbers and text into decimals and dates, where a value that does not
    fit fails the write or becomes null, and turns a long into a timestamp; those are refused here, except whole numbers
    into decimals that hold all of them.
    """
    if found in _NUMBERS and table in _NUMBERS:
        return max(found, table, key=_NUMBERS.index)
    if pa.types.is_decimal(table) and _fits(found, table):
        return table
    if pa.types.is_decimal(found) and pa.types.is_decimal(table) and _fits(table, found):
        return found
    if is_string_type(table) and (
        found in (*_NUMBERS, pa.binary(), pa.date32()) or pa.types.is_decimal(found)
    ):
        return table
    if is_string_type(found) and table in _NUMBERS:
        return found
    # Text and bytes hold each other: the type that the table has stays.
    return table if table == pa.binary() and is_string_type(found) else None


def _fits(number: pa.DataType, decimal: pa.DataType) -> bool:
    """Whether a decimal type holds every value of a whole number or of another decimal."""
    before_point = decimal.precision - decimal.scale
    if number in _DIGITS:
        return bool(before_point >= _DIGITS[number])
    is_narrower = pa.types.is_decimal(number) and number.scale <= decimal.scale
    return bool(is_narrower and number.precision - number.scale <= before_point)


def _require_missing_allowed(path: str, allowed: bool, incoming: Iterable[pa.Field]) -> None:
    if not allowed:
        raise IncompatibleSchema(
            f"The rows lack the column {path} of the table; they have "
            f"{', '.join(field.name for field in incoming)}. Add the column, or set "
            "hoodie.write.set.null.for.missing.columns=true to fill it with nulls. Nothing was written.",
            condition="COLUMN_MISSING",
            column=path,
        )


def _refuse_duplicates(fields: list[pa.Field]) -> None:
    seen: dict[str, str] = {}
    for field in fields:
        other = seen.get(field.name.lower())
        if other is not None:
            raise IncompatibleSchema(
                f"The rows have two columns {other!r} and {field.name!r} that Spark does not tell apart. "
                "Rename one. Nothing was written.",
                condition="DUPLICATE_COLUMN",
                column=field.name,
            )
        seen[field.name.lower()] = field.name


def _stored(arrow: pa.DataType, path: str) -> pa.DataType:
    if arrow == pa.null():
        raise _unsupported(path, "void", "a table cannot tell what it would hold")
    if pa.types.is_struct(arrow):
        if not arrow.num_fields:
            raise _unsupported(path, "struct without fields", "files hold fields only")
        _refuse_duplicates(list(arrow))
        return pa.struct([pa.field(f.name, _stored(f.type, f"{path}.{f.name}")) for f in arrow])
    if pa.types.is_map(arrow):
        return pa.map_(_stored_key(arrow.key_type, path), _stored(arrow.item_type, f"{path}.value"))
    if is_list(arrow):
        return pa.list_(pa.field("element", _stored(arrow.value_type, f"{path}.element")))
    if pa.types.is_decimal(arrow) and not (0 <= arrow.scale <= arrow.precision <= MAX_DIGITS):
        raise _unsupported(
            path, str(arrow), f"decimals have at most {MAX_DIGITS} digits, and a scale from 0 to their number"
        )
    return canonical_type(arrow)


def _unsupported(path: str, found: str, reason: str) -> IncompatibleSchema:
    return IncompatibleSchema(
        f"Column {path} has the type {found}: {reason}. Cast it. Nothing was written.",
        condition="UNSUPPORTED_TYPE",
        column=path,
        found=found,
    )


def _stored_key(arrow: pa.DataType, path: str) -> pa.DataType:
    if not is_string_type(arrow):
        raise IncompatibleSchema(
            f"Column {path} is a map with {arrow} keys; Hudi stores maps with string keys only. Cast the keys. "
            "Nothing was written.",
            condition="UNSUPPORTED_MAP_KEY",
            column=path,
            found=str(arrow),
        )
    return pa.string()
