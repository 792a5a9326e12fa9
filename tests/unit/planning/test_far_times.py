"""Times before the year 1 and after 9999, which files and Spark know and Python does not: nothing is proved by them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import drawstring
from drawstring.errors import InvalidInput
from drawstring.spark.read.filters import known_predicates

FAR_DAY, FAR_MOMENT = 4_000_000, 400_000_000_000_000_000


def rows(first: int, day: int, moment: int) -> pa.Table:
    moments = pa.array([moment, moment + 1], pa.int64())
    return pa.table(
        {
            "id": pa.array([first, first + 1], pa.int64()),
            "d": pa.array([day, day + 1], pa.int32()).cast(pa.date32()),
            "t": moments.cast(pa.timestamp("us", tz="UTC")),
            "tn": moments.cast(pa.timestamp("us")),
        }
    )


@pytest.fixture(params=["column statistics", "footers"])
def scan(request, tmp_path):
    path = str(tmp_path / "t")
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    drawstring.create_table(path, rows(0, 0, 0).schema, options=options)
    kept = {
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.metadata.index.column.stats.enable": str(request.param == "column statistics").lower(),
    }
    for batch in (rows(1, 10, 10), rows(3, FAR_DAY, FAR_MOMENT), rows(5, -1_000_000, -FAR_MOMENT)):
        drawstring.open_table(path).write(batch, operation="insert", options=kept)
    return drawstring.open_table(path).snapshot().scan()


@pytest.mark.parametrize("column", ["d", "t", "tn"])
def test_rows_with_far_times_are_found_and_sorted(scan, column):
    later = scan.where(f"{column} > '2020-01-01'").to_arrow()
    earlier = scan.where(f"{column} < '1960-01-01'").to_arrow()
    assert sorted(later["id"].to_pylist()) == [3, 4]
    assert sorted(earlier["id"].to_pylist()) == [5, 6]
    assert scan.where(f"{column} < '1970-02-01'").count() == 4
    assert scan.order_by(column, descending=True, limit=1).to_arrow()["id"].to_pylist() == [4]
    assert scan.aggregate(f"count({column})").column(0).to_pylist() == [6]


def test_an_aggregate_that_python_cannot_say_is_refused_by_name(scan):
    with pytest.raises(InvalidInput, match="year 1"):
        scan.aggregate("max(d)")


def test_conditions_on_far_times_are_left_to_spark():
    far = {"op": "<", "column": ["d"], "value": {"type": "date", "value": FAR_DAY}}
    near = {"op": "=", "column": ["d"], "value": {"type": "date", "value": 1}}
    assert len(known_predicates([far, near, {"op": "or", "parts": [near, far]}])) == 1
