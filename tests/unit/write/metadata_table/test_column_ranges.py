"""Ranges never exclude a value that a file holds."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawstring.storage.memory import MemoryStorage
from drawstring.write.metadata_table.column_ranges import (
    LAST_TEXT,
    MAX_LENGTH,
    ColumnRange,
    can_have_range,
    ranges_of_base_file,
    ranges_of_batches,
)


def by_batches(column: pa.Array, name: str = "c") -> ColumnRange:
    batch = pa.record_batch({"c": column})
    return ranges_of_batches([batch, batch.slice(0, 0)], {name: column.type})[0]


def by_footer(column: pa.Array, *, exact: bool = True, **options) -> ColumnRange:
    storage = MemoryStorage(f"memory://{uuid.uuid4()}")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"c": column}), sink, **options)
    storage.write("f.parquet", sink.getvalue().to_pybytes())
    return ranges_of_base_file(storage, "f.parquet", {"c": column.type}, floats_are_exact=exact)[0]


COLUMNS = {
    "bool": (pa.array([True, None, False]), False, True),
    "int8": (pa.array([3, -4, None], pa.int8()), -4, 3),
    "int64": (pa.array([3, -(2**62)]), -(2**62), 3),
    "date": (pa.array([dt.date(1970, 1, 3), dt.date(1969, 12, 31)]), -1, 2),
    "timestamp": (pa.array([5, -5], pa.timestamp("us", tz="UTC")), -5, 5),
    "millis": (pa.array([5, 6], pa.timestamp("ms")), 5000, 6000),
    "decimal": (pa.array([Decimal("1.25"), Decimal("-3.00")], pa.decimal128(10, 2)), -300, 125),
    "wide decimal": (pa.array([Decimal(10) ** 30, Decimal(0)], pa.decimal128(38, 2)), 0, 10**32),
    "text": (pa.array(["b", "ä", None]), "b", "ä"),
    "binary": (pa.array([b"\xff", b"\x00"]), b"\x00", b"\xff"),
    "double": (pa.array([1.5, -2.5]), -2.5, 1.5),
}


@pytest.mark.parametrize("what", COLUMNS)
def test_batches_and_footers_tell_the_same(what):
    column, lower, upper = COLUMNS[what]
    for found in (by_batches(column), by_footer(column), by_footer(column, write_statistics=False)):
        assert (found.lower, found.upper) == (lower, upper)
        assert (found.value_count, found.null_count) == (len(column), column.null_count)


def test_nan_makes_the_upper_bound_infinite():
    for column in (pa.array([1.0, math.nan, None]), pa.array([1.0, math.nan], pa.float32())):
        for found in (
            by_batches(column),
            by_footer(column, write_statistics=False),
            by_footer(column, exact=False),
        ):
            assert (found.lower, found.upper) == (1.0, math.inf)
    assert by_batches(pa.array([math.nan])).lower == math.inf


def test_zeros_of_either_sign_are_covered():
    for column in (pa.array([0.0]), pa.array([-0.0])):
        for found in (by_batches(column), by_footer(column)):
            assert (math.copysign(1, found.lower), math.copysign(1, found.upper)) == (-1, 1)


def test_a_column_of_nulls_has_counts_and_no_bounds():
    for found in (
        by_batches(pa.array([None, None], pa.int32())),
        by_footer(pa.array([None, None], pa.int32())),
    ):
        assert (found.lower, found.upper, found.value_count, found.null_count) == (None, None, 2, 2)


def test_columns_that_a_file_lacks_are_null_and_fields_of_structs_are_found():
    batch = pa.record_batch({"s": pa.array([{"x": 3}, None, {"x": None}])})
    missing, nested = ranges_of_batches([batch], {"gone": pa.int32(), "s.x": pa.int64()})
    assert (missing.value_count, missing.null_count, missing.lower) == (3, 3, None)
    assert (nested.lower, nested.upper, nested.null_count) == (3, 3, 2)
    storage = MemoryStorage(f"memory://{uuid.uuid4()}")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_batches([batch]), sink)
    storage.write("f", sink.getvalue().to_pybytes())
    found = ranges_of_base_file(storage, "f", {"gone": pa.int32(), "s.x": pa.int64()})
    assert [(r.lower, r.upper, r.value_count, r.null_count) for r in found] == [
        (None, None, 3, 3),
        (3, 3, 3, 2),
    ]


@settings(deadline=None)
@given(
    st.lists(st.text(alphabet=st.sampled_from("az\ud7ff\U0010ffff"), max_size=4), min_size=1),
    st.integers(1, 3),
)
def test_long_texts_are_cut_to_bounds_that_still_hold(texts, times):
    column = pa.array([text * (MAX_LENGTH * times) for text in texts])
    for found in (by_batches(column), by_footer(column)):
        assert all(found.lower <= text <= found.upper for text in column.to_pylist())
        assert found.lower.encode() <= min(column.to_pylist()).encode()


@settings(deadline=None)
@given(st.lists(st.binary(max_size=3), min_size=1))
def test_long_binaries_are_cut_to_bounds_that_still_hold(values):
    column = pa.array([value * MAX_LENGTH for value in values])
    found = by_batches(column)
    assert all(found.lower <= value <= found.upper for value in column.to_pylist())


def test_promoted_columns_keep_their_range():
    integer = ColumnRange("c", pa.int32(), 1, 5, 2, 0)
    assert integer.merged(ColumnRange("c", pa.int64(), 2**40, 2**41, 1, 0)).lower == 1
    decimal = integer.merged(ColumnRange("c", pa.decimal128(12, 3), 2500, 2500, 1, 0))
    assert (decimal.lower, decimal.upper, decimal.value_count) == (1000, 5000, 3)
    narrow = ColumnRange("c", pa.decimal128(10, 2), 150, 150, 1, 0)
    assert narrow.promoted(pa.decimal128(12, 4)).lower == 15000
    text = integer.merged(ColumnRange("c", pa.string(), "7", "8", 1, 0))
    assert (text.lower, text.upper) == ("", LAST_TEXT)
    assert integer.merged(ColumnRange("c", pa.float64(), 2.5, 2.5, 1, 0)).lower == 1.0
    assert ColumnRange("c", pa.string(), "a", "b", 1, 0).promoted(pa.binary()).upper == b"b"
    assert integer.merged(ColumnRange("c", pa.int32(), None, None, 3, 3)).upper == 5


def test_nested_columns_and_times_of_day_have_no_range():
    assert not any(map(can_have_range, (pa.list_(pa.int32()), pa.struct([]), pa.null(), pa.time64("us"))))
    assert can_have_range(pa.string())


def test_ranges_of_files_before_and_after_a_promotion_to_text_merge_in_either_order():
    numbers = ColumnRange("c", pa.int32(), 1, 9, 2, 0)
    texts = ColumnRange("c", pa.string(), "a", "b", 2, 0)
    for merged in (numbers.merged(texts), texts.merged(numbers)):
        assert (merged.type, merged.lower, merged.value_count) == (pa.string(), "", 4)
        assert merged.upper >= "b"


def test_ranges_merge_to_the_promoted_type_in_either_order():
    numbers = ColumnRange("c", pa.int32(), 1, 9, 2, 0)
    floats = ColumnRange("c", pa.float32(), 2.5, 3.5, 2, 0)
    for merged in (numbers.merged(floats), floats.merged(numbers)):
        assert (merged.type, merged.lower, merged.upper) == (pa.float32(), 1.0, 9.0)
        assert isinstance(merged.lower, float)


@pytest.mark.parametrize("what", COLUMNS)
def test_a_range_of_no_values_leaves_the_type_to_the_other(what):
    column, _, _ = COLUMNS[what]
    found, nothing = by_batches(column), ColumnRange("c", pa.null(), None, None, 2, 2)
    for merged in (found.merged(nothing), nothing.merged(found)):
        assert (merged.type, merged.lower, merged.upper) == (found.type, found.lower, found.upper)


def test_texts_that_became_dates_or_decimals_have_the_widest_range():
    texts = ColumnRange("c", pa.string(), "1970-01-02", "1970-01-03", 2, 0)
    dates, decimals = texts.promoted(pa.date32()), texts.promoted(pa.decimal128(5, 2))
    assert dates.lower < -700_000
    assert dates.upper > 2_900_000
    assert (decimals.lower, decimals.upper) == (-99999, 99999)
