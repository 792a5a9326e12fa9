"""Bounds of many files at once rule out what facts of single files rule out."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from drawstring.predicates.ranges import IntegerRange
from drawstring.view.column_stats import _facts
from drawstring.view.integer_bounds import IntegerBounds
from drawstring.view.metadata_records import StatsColumns, StatsRecord

bounds = st.none() | st.integers(-3, 3) | st.sampled_from([True, "a", 2.0, b"x"])
records = st.builds(
    StatsRecord,
    file_name=st.sampled_from(["f", "g", "h"]),
    column_name=st.sampled_from(["c", "c", "c", "other"]),
    lower=bounds,
    upper=bounds,
    value_count=st.none() | st.integers(0, 2),
    null_count=st.none() | st.integers(0, 1),
    is_deleted=st.sampled_from([False, False, False, True]),
    type_ordinal=st.sampled_from([0, 3, 4, 7, 12, 16, 99]),
    type_info=st.none(),
)


def as_columns(found):
    """The records as the decoder returns them: plain arrays where all values are of one kind."""
    fields = []
    for values in zip(*found, strict=True):
        kinds = {type(value) for value in values}
        array = np.empty(len(values), object)
        array[:] = values
        fields.append(array.astype(np.int64) if kinds == {int} else array)
    return StatsColumns(*fields)


parts_of_files = st.lists(
    st.lists(records, min_size=1, max_size=3, unique_by=lambda record: record.file_name), max_size=3
)


@given(parts_of_files, st.integers(-4, 4), st.integers(-4, 4))
def test_files_outside_are_those_whose_newest_record_proves_it(parts, lower, upper):
    newest = {}
    for part in parts:
        for record in part:
            newest[record.file_name] = record
    expected = set()
    for name, record in newest.items():
        facts = None
        if record.column_name == "c" and not record.is_deleted:
            facts = _facts(record, pa.int64()) if _is_plain(record) else None
        if facts is not None and (facts.upper < lower or facts.lower > upper):
            expected.add(("p", name))
    found = IntegerBounds.of("c", [(["p"] * len(part), as_columns(part)) for part in parts])
    assert found.outside(IntegerRange(lower, upper)) == expected


def _is_plain(record):
    return type(record.lower) is int and type(record.upper) is int


def test_no_records_rule_nothing_out():
    assert IntegerBounds.of("c", []).outside(IntegerRange(0, 0)) == set()
