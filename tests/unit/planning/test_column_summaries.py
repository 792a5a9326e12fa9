"""What optimisers are told of columns: bounds, nulls, and how many values differ."""

from __future__ import annotations

import pyarrow as pa

import drawstring
from drawstring.planning.column_summaries import column_summaries
from drawstring.planning.scan_planner import ScanPlanner
from drawstring.planning.scan_request import ScanRequest
from tests import small_tables


def group(partition: str, first: int) -> small_tables.Group:
    numbers = list(range(first, first + 100))
    rows = {
        "id": pa.array(numbers, pa.int64()),
        "ts": pa.array([1] * 100, pa.int64()),
        "p": [partition] * 100,
        "city": [None if n % 10 == 0 else f"city {n % 7}" for n in numbers],
        "name": [f"name {n}" for n in numbers],
        "far": pa.array([n % 5 * 10**9 for n in numbers], pa.int64()),
        "x": [n % 3 / 2 for n in numbers],
        "nothing": pa.array([None] * 100, pa.string()),
    }
    return small_tables.Group(partition, pa.table(rows))


def test_texts_and_numbers_far_apart_are_counted_by_dictionaries(tmp_path):
    path = small_tables.make(tmp_path / "t", [group("a", 0), group("b", 100), group("b", 200)])
    planner = ScanPlanner(drawstring.open_table(path).snapshot().scan().source, ScanRequest())
    found = {each.name: each for each in column_summaries(planner, planner.plan().tasks)}
    distinct = {name: each.distinct for name, each in found.items()}
    assert distinct == distinct | {"id": 300, "ts": 1, "p": 2, "city": 7, "name": 300, "far": 5, "x": 3}
    assert (found["x"].lower, found["x"].upper) == (0.0, 1.0)
    assert (found["city"].nulls, found["name"].nulls) == (30, 0)
    assert found["nothing"].distinct is None
