from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from drawstring.view.column_stats import MAX_TEXT, ColumnStats, _facts
from drawstring.view.metadata_keys import hash_text
from drawstring.view.metadata_records import StatsRecord


def record(low, high, *, ordinal=0, values=4, nulls=0, info=None):
    return StatsRecord("f.parquet", "c", low, high, values, nulls, False, ordinal, info)


@pytest.mark.parametrize(
    ("stored", "arrow", "lower", "upper"),
    [
        (record(1, 2, ordinal=3), pa.int32(), 1, 2),
        (record(1, 2, ordinal=3), pa.float64(), 1.0, 2.0),
        (record(1, 2), pa.int64(), 1, 2),
        (record("a", "b", ordinal=7), pa.string(), "a", "b"),
        (record(False, True, ordinal=2), pa.bool_(), False, True),
        (record(-1, 0, ordinal=12), pa.date32(), date(1969, 12, 31), date(1970, 1, 1)),
        (
            record(b"\xff", b"\x01\x00", ordinal=10, info="5,2"),
            pa.decimal128(5, 2),
            Decimal("-0.01"),
            Decimal("2.56"),
        ),
        (
            record(0, 1500, ordinal=15),
            pa.timestamp("us", tz="UTC"),
            datetime(1970, 1, 1, tzinfo=timezone.utc),
            datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=timezone.utc),
        ),
        (
            record(0, 1, ordinal=19),
            pa.timestamp("us"),
            datetime(1970, 1, 1),
            datetime(1970, 1, 1, 0, 0, 0, 1),
        ),
    ],
)
def test_bounds_take_the_type_of_the_column(stored, arrow, lower, upper):
    facts = _facts(stored, arrow)
    assert (facts.lower, facts.upper) == (lower, upper)


@pytest.mark.parametrize(
    ("stored", "arrow"),
    [
        (record(0.0, 0.0, ordinal=6), pa.float64()),
        (record(None, None, ordinal=7, nulls=4), pa.string()),
        (record(None, None, ordinal=1, values=0), pa.string()),
        (record("a", "b" * MAX_TEXT, ordinal=7), pa.string()),
        (record("a", "b", ordinal=7, nulls=1), pa.string()),
        (record(1, 2, ordinal=3), pa.string()),
        (record("1", "2", ordinal=7), pa.int32()),
        (record(b"a", b"b", ordinal=8), pa.binary()),
        (record(1, 2), pa.date32()),
        (record(1, 2, ordinal=16), pa.timestamp("us")),
        (record(1, 2, ordinal=99), pa.int32()),
    ],
)
def test_records_that_may_be_wrong_tell_nothing(stored, arrow):
    assert _facts(stored, arrow) is None


def test_nulls_are_excluded_only_when_none_was_counted_and_the_type_is_the_same():
    assert not _facts(record(1, 2, ordinal=3), pa.int32()).may_be_null
    assert _facts(record(1, 2, ordinal=3, nulls=1), pa.int32()).may_be_null
    assert _facts(record(1, 2, ordinal=3), pa.int64()).may_be_null


def test_hashes_have_a_fixed_width():
    assert len(hash_text("id")) == len(hash_text("")) == 12
    assert ColumnStats.of(None) is None
