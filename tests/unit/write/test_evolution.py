from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.errors import IncompatibleSchema
from drawstring.write.evolution import incoming_schema, reconcile

TABLE = pa.schema([("id", pa.int32()), ("name", pa.string()), ("s", pa.struct([("x", pa.int32())]))])


def changed(**types) -> pa.Schema:
    return pa.schema([(field.name, types.get(field.name, field.type)) for field in TABLE])


def test_order_and_case_do_not_matter():
    incoming = pa.schema([("NAME", pa.string()), ("s", TABLE.field("s").type), ("Id", pa.int32())])
    assert reconcile(incoming, TABLE) == TABLE


def test_new_columns_go_to_the_end_also_in_structs():
    incoming = changed(s=pa.struct([("y", pa.int64()), ("x", pa.int32())])).append(pa.field("z", pa.date32()))
    merged = reconcile(incoming, TABLE)
    assert merged.names == ["id", "name", "s", "z"]
    assert [f.name for f in merged.field("s").type] == ["x", "y"]


@pytest.mark.parametrize(
    ("table", "incoming", "merged"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.int32(), pa.int64()),
        (pa.int64(), pa.float32(), pa.float32()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.int32(), pa.string(), pa.string()),
        (pa.string(), pa.float64(), pa.string()),
        (pa.string(), pa.binary(), pa.string()),
        (pa.binary(), pa.string(), pa.binary()),
        (pa.string(), pa.date32(), pa.string()),
        (pa.string(), pa.decimal128(10, 2), pa.string()),
        (pa.decimal128(10, 2), pa.decimal128(12, 2), pa.decimal128(12, 2)),
        (pa.decimal128(12, 4), pa.decimal128(10, 2), pa.decimal128(12, 4)),
        (pa.decimal128(10, 0), pa.int32(), pa.decimal128(10, 0)),
        (pa.decimal128(21, 2), pa.int64(), pa.decimal128(21, 2)),
    ],
)
def test_wider_type_wins(table, incoming, merged):
    assert reconcile(pa.schema([("a", incoming)]), pa.schema([("a", table)])).field("a").type == merged


@pytest.mark.parametrize(
    "incoming",
    [pa.bool_(), pa.date32(), pa.decimal128(10, 2), pa.list_(pa.int32()), pa.timestamp("us", "UTC")],
)
def test_other_type_is_refused_with_column_found_and_expected(incoming):
    with pytest.raises(IncompatibleSchema) as caught:
        reconcile(changed(id=incoming), TABLE)
    assert caught.value.fields == {"column": "id", "found": str(incoming), "expected": "int32"}


@pytest.mark.parametrize(
    ("table", "incoming"),
    [
        (pa.decimal128(12, 2), pa.decimal128(12, 4)),
        (pa.decimal128(10, 2), pa.int32()),
        (pa.decimal128(20, 2), pa.int64()),
        (pa.decimal128(38, 2), pa.float64()),
        (pa.decimal128(38, 2), pa.string()),
        (pa.date32(), pa.string()),
        (pa.int64(), pa.timestamp("us", "UTC")),
        (pa.int64(), pa.decimal128(10, 0)),
    ],
)
def test_type_that_might_not_hold_a_value_is_refused(table, incoming):
    with pytest.raises(IncompatibleSchema) as caught:
        reconcile(pa.schema([("a", incoming)]), pa.schema([("a", table)]))
    assert caught.value.condition == "COLUMN_TYPE_MISMATCH"


NESTED = pa.struct([("x", pa.int32()), ("y", pa.int32())])


@pytest.mark.parametrize(
    ("wrap", "path"),
    [
        (lambda inner: inner, "c.y"),
        (lambda inner: pa.list_(pa.field("element", inner)), "c.element.y"),
        (lambda inner: pa.map_(pa.string(), inner), "c.value.y"),
        (lambda inner: pa.struct([("s", inner)]), "c.s.y"),
    ],
)
def test_missing_nested_column_is_refused_unless_nulls_are_wanted(wrap, path):
    table = pa.schema([("c", wrap(NESTED))])
    incoming = pa.schema([("c", wrap(pa.struct([("x", pa.int64())])))])
    with pytest.raises(IncompatibleSchema) as caught:
        reconcile(incoming, table)
    assert caught.value.fields["column"] == path
    filled = reconcile(incoming, table, null_for_missing=True)
    assert filled == pa.schema([("c", wrap(pa.struct([("x", pa.int64()), ("y", pa.int32())])))])


def test_missing_column_that_may_not_be_null_may_be_from_then_on():
    table = pa.schema([pa.field("a", pa.int32()), pa.field("b", pa.int32(), nullable=False)])
    merged = reconcile(pa.schema([("a", pa.int32())]), table, null_for_missing=True)
    assert merged.field("b").nullable


def test_missing_column_is_refused_unless_nulls_are_wanted():
    incoming = TABLE.remove(1)
    with pytest.raises(IncompatibleSchema, match=r"lack the column name.*set.null.for.missing"):
        reconcile(incoming, TABLE)
    assert reconcile(incoming, TABLE, null_for_missing=True) == TABLE


@pytest.mark.parametrize(
    ("schema", "condition"),
    [
        (pa.schema([]), "EMPTY_SCHEMA"),
        (pa.schema([("_hoodie_record_key", pa.string())]), "EMPTY_SCHEMA"),
        (pa.schema([("a", pa.int32()), ("A", pa.int32())]), "DUPLICATE_COLUMN"),
        (pa.schema([("a", pa.null())]), "UNSUPPORTED_TYPE"),
        (pa.schema([("a", pa.map_(pa.int32(), pa.int32()))]), "UNSUPPORTED_MAP_KEY"),
    ],
)
def test_schema_that_no_table_can_have_is_refused(schema, condition):
    with pytest.raises(IncompatibleSchema) as caught:
        incoming_schema(schema)
    assert caught.value.condition == condition


def test_small_integers_are_stored_as_int():
    schema = incoming_schema(pa.schema([("a", pa.int8()), ("b", pa.list_(pa.int16()))]))
    assert schema.field("a").type == pa.int32()
    assert schema.field("b").type.value_type == pa.int32()
