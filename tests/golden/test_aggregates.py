"""What metadata says of counts and bounds of Hudi's own tables is what their rows say."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

import drawstring
from drawstring.planning.row_aggregates import aggregate_rows
from drawstring.planning.scan_request import COUNT, MAX, MIN, Aggregate, Aggregation
from drawstring.predicates.ast import Column
from tests.golden import harness


@pytest.mark.parametrize("name", harness.table_names())
def test_aggregates_and_top_n_are_those_of_the_rows(name, golden_path):
    snapshot = drawstring.open_table(
        golden_path(name), options=harness.expectation(name)["read_options"]
    ).snapshot()
    rows = snapshot.scan().to_arrow()
    columns = [f.name for f in snapshot.schema if not pa.types.is_nested(f.type) and "." not in f.name]
    asked = [(function, column) for column in columns for function in (COUNT, MIN, MAX)]
    answer = snapshot.scan().aggregate("count(*)", *(f"{function}({column})" for function, column in asked))
    wanted = Aggregation(
        (Aggregate(COUNT), *(Aggregate(function, Column((column,))) for function, column in asked))
    )
    expected = aggregate_rows(rows, wanted).get((), [0] + [0 if f == COUNT else None for f, _ in asked])
    assert [repr(value) for value in answer.to_pylist()[0].values()] == [repr(value) for value in expected]
    for column in columns:
        top = snapshot.scan().select(column).order_by(column, limit=3).to_arrow()[column].to_pylist()
        plain = snapshot.scan().select(column).order_by(column).to_arrow()[column].to_pylist()[:3]
        assert [_plain(value) for value in top] == [_plain(value) for value in plain], column


def _plain(value):
    return "NaN" if isinstance(value, float) and math.isnan(value) else value
