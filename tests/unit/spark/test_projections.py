"""Which conversions of base files are left to Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.model.read_task import ColumnMapping
from drawstring.schema.projection import plan_projection
from drawstring.spark.read.projections import _only_selects, spark_can_apply

UTC = pa.timestamp("us", tz="UTC")


def can_apply(found: pa.DataType, wanted: pa.DataType) -> bool:
    file, table = pa.schema([("c", found)]), pa.schema([("c", wanted)])
    return spark_can_apply(plan_projection(file, table), file)


def wrapped(kind: pa.DataType) -> list[pa.DataType]:
    return [kind, pa.struct([("x", kind)]), pa.list_(kind), pa.map_(pa.string(), kind)]


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.int32(), pa.int64()),
        (pa.int32(), pa.float64()),
        (pa.int32(), pa.decimal128(12, 2)),
        (pa.int64(), pa.string()),
        (pa.int64(), UTC),
        (pa.float32(), pa.float64()),
        (pa.float32(), pa.string()),
        (pa.decimal128(5, 2), pa.decimal128(12, 4)),
        (pa.decimal128(5, 2), pa.string()),
        (pa.date32(), pa.string()),
        (pa.timestamp("ms", tz="UTC"), UTC),
        (pa.timestamp("us"), pa.string()),
        (pa.string(), pa.binary()),
        (pa.binary(), pa.string()),
        (pa.large_string(), pa.string()),
        (pa.binary(3), pa.binary()),
    ],
    ids=str,
)
def test_spark_casts_these_anywhere(found, wanted):
    assert all(can_apply(*pair) for pair in zip(wrapped(found), wrapped(wanted), strict=True))


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (pa.string(), pa.decimal128(10, 2)),
        (pa.string(), pa.date32()),
        (pa.float64(), pa.decimal128(10, 2)),
        (pa.timestamp("ns"), UTC),
        (pa.int16(), pa.int32()),
        (pa.null(), pa.int32()),
        (pa.binary(3), pa.string()),
    ],
    ids=str,
)
def test_workers_keep_these_wherever_they_are(found, wanted):
    assert not any(can_apply(*pair) for pair in zip(wrapped(found), wrapped(wanted), strict=True))


def test_names_that_differ_by_case_alone_are_not_for_spark():
    file, table = pa.schema([("a", pa.int32()), ("A", pa.int32())]), pa.schema([("a", pa.int64())])
    assert not spark_can_apply(plan_projection(file, table), file)


def test_two_columns_from_one_are_not_for_spark():
    file = pa.schema([("a", pa.int32())])
    table = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    mapping = [ColumnMapping("b", "a")]
    assert not spark_can_apply(plan_projection(file, table, mapping=mapping), file)


def test_reading_by_name_is_enough_where_columns_are_missing_or_left_out():
    file = pa.schema([("a", pa.int32()), ("old", pa.int32())])
    table = pa.schema([("new", pa.string()), ("a", pa.int32())])
    assert _only_selects(plan_projection(file, table), file)


def test_a_column_dropped_and_added_again_does_not_find_the_old_one():
    file = table = pa.schema([("a", pa.int32()), ("b", pa.string())])
    projection = plan_projection(file, table, mapping=[ColumnMapping("b", None)])
    assert projection.only_selects
    assert not _only_selects(projection, file)
    assert spark_can_apply(projection, file)
