"""A value that satisfies a condition lies within the ranges that the condition implies."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawstring.predicates.arrow_filter import filter_batch
from drawstring.predicates.parse import parse
from drawstring.predicates.ranges import GREATEST, LEAST, IntegerRange, integer_ranges

TYPES = {"n": pa.int64(), "m": pa.int32(), "s": pa.string()}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("n = 3", {"n": IntegerRange(3, 3)}),
        ("n <=> 3", {"n": IntegerRange(3, 3)}),
        ("n between 3 and 5", {"n": IntegerRange(3, 5)}),
        ("n > 3 and n < 5", {"n": IntegerRange(4, 4)}),
        ("n in (7, 2, null)", {"n": IntegerRange(2, 7)}),
        ("n >= 3 and (m = 1 or s = 'a')", {"n": IntegerRange(lower=3)}),
        ("n = 3 and m <= 9", {"n": IntegerRange(3, 3), "m": IntegerRange(upper=9)}),
        (f"n > {GREATEST}", {"n": IntegerRange(GREATEST + 1, GREATEST)}),
        ("n = 3 or n = 4", {}),
        ("n != 3", {}),
        ("n < 2.5", {}),
        ("n = null", {}),
        ("n is null", {}),
        ("not n = 3", {}),
        ("s = 'a'", {}),
        (f"n <= {GREATEST} and n >= {LEAST}", {}),
    ],
)
def test_ranges_come_from_conditions_that_must_all_hold(condition, expected):
    assert integer_ranges(parse(condition), TYPES) == expected


leaves = st.sampled_from(
    [f"n {op} {literal}" for op in ("=", "!=", "<", "<=", ">", ">=", "<=>") for literal in (-1, 0, 2)]
    + ["n in (0, 2)", "n in (1, null)", "n is null", "n between 0 and 1", "not n < 1"]
)


@given(st.lists(leaves, min_size=1, max_size=3), st.sampled_from(["and", "or"]))
def test_no_row_outside_of_a_range_satisfies_the_condition(parts, how):
    predicate = parse(f" {how} ".join(f"({part})" for part in parts))
    batch = pa.RecordBatch.from_pydict({"n": pa.array([None, *range(-4, 5)], pa.int64())})
    for name, wanted in integer_ranges(predicate, TYPES).items():
        for value in filter_batch(batch, predicate).column(name).to_pylist():
            assert value is not None
            assert wanted.lower <= value <= wanted.upper
