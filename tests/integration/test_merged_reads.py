"""Merged slices of some size through Spark: many row groups, changing dictionaries, rows only counted."""

from __future__ import annotations

import os
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Row

import drawstring
from benchmarks import tables
from benchmarks.tables import Shape
from tests.integration.plans import USE_V2

pytestmark = pytest.mark.spark

ROWS, FILES = 6000, 6
UTC = timezone.utc
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


@pytest.mark.parametrize("use_v2", ["true", "false"], ids=["v2", "v1"])
def test_appended_rows_have_the_values_of_every_type(spark, tmp_path, use_v2):
    folder = tmp_path / "typed"
    folder.mkdir()
    shape = Shape(1, 400, 3, updated=0.5)
    written = _typed_rows(shape)
    tables.merge_on_read(folder, shape, data=written)
    frame = spark.read.format("hudi").option(USE_V2, use_v2).load(str(folder))
    found = [row.asDict() for row in frame.orderBy("id").collect()]
    assert sum(row["ts"] == 20 for row in found) == 200
    for name in TYPED:
        expected = [_as_spark(value) for value in written[name].to_pylist()]
        assert [repr(_as_spark(row[name])) for row in found] == list(map(repr, expected)), name


TYPED = {
    "flag": ([True, False], pa.bool_()),
    "small": ([-(2**31), 2**31 - 1, 0], pa.int32()),
    "large": ([-(2**63), 2**63 - 1, 0], pa.int64()),
    "single": ([1.5, -0.0, float("nan"), float("inf")], pa.float32()),
    "double": ([1e300, -0.0, float("nan"), float("-inf")], pa.float64()),
    "text": (["", "ä€😀", "plain", "x" * 300], pa.string()),
    "bytes": ([b"", b"\x00\xff", b"abc"], pa.binary()),
    "day": ([date(1582, 10, 4), date(1969, 12, 31), date(9999, 12, 31)], pa.date32()),
    "at": (
        [datetime(1500, 1, 1, 1, 2, 3, 4, UTC), datetime(2026, 1, 1, tzinfo=UTC)],
        pa.timestamp("us", "UTC"),
    ),
    "wall": ([datetime(1500, 1, 1, 1, 2, 3, 4), datetime(2026, 1, 1)], pa.timestamp("us")),
    "d9": ([Decimal("-9999999.99"), Decimal("0.01")], pa.decimal128(9, 2)),
    "d18": ([Decimal("-9999999999999999.99"), Decimal("0.01")], pa.decimal128(18, 2)),
    "d38": ([Decimal("-" + "9" * 36 + ".99"), Decimal("0.01")], pa.decimal128(38, 2)),
    "list": ([[], [1, None, 3]], pa.list_(pa.int64())),
    "struct": (
        [{"a": None, "b": "x"}, {"a": 1, "b": ""}],
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
    ),
}
"""Values of each type; every third row is null."""


def _typed_rows(shape: Shape) -> pa.Table:
    rows = tables.rows_of(shape)
    for name, (values, arrow) in TYPED.items():
        column = [values[(n // 3) % len(values)] if n % 3 else None for n in range(shape.rows_per_file)]
        rows = rows.append_column(name, pa.array(column, arrow))
    return rows


def _as_spark(value):
    if isinstance(value, dict):
        return Row(**value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return bytes(value) if isinstance(value, bytearray) else value


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


def test_the_warm_up_of_a_session_reads_its_row(spark, frame):
    frame.count()  # leaves a worker idle
    bridge = spark.sparkContext._jvm.drawstring.bridge
    assert bridge.WarmUp.run(bridge.WorkerSettings.current()) == 1
