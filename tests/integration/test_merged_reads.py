"""Merged slices of some size through Spark: many row groups, changing dictionaries, rows only counted."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import drawstring
from benchmarks import tables
from benchmarks.tables import Shape
from tests.integration.plans import USE_V2

pytestmark = pytest.mark.spark

ROWS, FILES = 6000, 6
READ_OPTIMISED = {"hoodie.datasource.query.type": "read_optimized"}


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> str:
    """A merge-on-read table; base files have row groups of 700 rows, each with a dictionary of its own."""
    folder = tmp_path_factory.mktemp("merged") / "t"
    folder.mkdir()
    tables.merge_on_read(folder, Shape(FILES, ROWS, 8, partitions=2, updated=0.1))
    for file in folder.glob("p=*/*.parquet"):
        _rewritten(file)
    return str(folder)


def _rewritten(file) -> None:
    table = pq.read_table(file, partitioning=None)
    texts = pa.array([f"text {n // 700} {n % 7}" for n in range(table.num_rows)])
    table = table.set_column(table.column_names.index("c3"), "c3", texts)
    os.unlink(file)
    pq.write_table(table, file, row_group_size=700, compression="snappy")


@pytest.fixture(scope="module")
def expected(path) -> pa.Table:
    """Every row, read without Spark."""
    return drawstring.open_table(path).snapshot().scan().to_arrow()


@pytest.fixture(params=["true", "false"], ids=["v2", "v1"])
def frame(request, spark, path):
    return spark.read.format("hudi").option(USE_V2, request.param).load(path)


def sorted_rows(rows) -> list[tuple]:
    return sorted((tuple(row) for row in rows), key=repr)


def arrow_rows(table: pa.Table) -> list[tuple]:
    return sorted_rows(row.values() for row in table.to_pylist())


def test_every_value_is_what_the_plain_read_gives(frame, expected):
    assert expected.num_rows == ROWS * FILES
    assert sorted_rows(frame.collect()) == arrow_rows(expected)


def test_counting_gives_as_many_rows_as_reading(frame, expected, spark, path):
    assert frame.count() == expected.num_rows
    optimised = spark.read.format("hudi").options(**READ_OPTIMISED).load(path)
    assert optimised.count() == ROWS * FILES


def test_counting_counts_rows_that_logs_delete_and_add(load):
    for name in (
        "v9_mor_commit_time",
        "v9_mor_log_only",
        "v8_mor_pending_compaction",
        "v9_mor_delete_marker",
    ):
        for v2 in (True, False):
            frame = load(name, v2=v2)
            assert frame.count() == len(frame.collect())


@pytest.mark.parametrize(
    "condition",
    [
        "id >= 5900",
        "id < 3",
        "c4 > 990000000",
        "c3 = 'text 3 2'",
        "ts = 20",
        "ts = 10 AND id BETWEEN 700 AND 800",
    ],
)
def test_filters_that_pass_row_groups_over_hide_the_right_rows(frame, expected, condition):
    filtered = frame.where(condition).select("id", "ts", "c3", "c4")
    wanted = frame.select("id", "ts", "c3", "c4").collect()
    everything = frame.sparkSession.createDataFrame(wanted, filtered.schema)
    assert sorted_rows(filtered.collect()) == sorted_rows(everything.where(condition).collect())
    assert filtered.count() > 0


def test_a_limit_takes_rows_of_the_first_slices_only(frame):
    assert len(frame.limit(5).collect()) == 5


def test_work_is_spread_evenly_over_the_slots(spark, path):
    frame = spark.read.format("hudi").option(USE_V2, "true").load(path)
    partitions = frame.rdd.getNumPartitions()
    assert partitions % spark.sparkContext.defaultParallelism == 0
    sizes = frame.rdd.mapPartitions(lambda rows: [sum(1 for _ in rows)]).collect()
    assert sizes == [ROWS * FILES // partitions] * partitions
