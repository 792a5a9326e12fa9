"""How the work of a scan is cut and packed into Spark's partitions."""

from __future__ import annotations

import functools

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import small_tables
from tests.integration.plans import USE_V2

ROWS = 4000


def rows(k):
    ids = range(ROWS * k, ROWS * k + ROWS)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "ts": pa.array([10] * ROWS, pa.int64()),
            "p": ["a"] * ROWS,
            "v": pa.array([i * 3 for i in ids], pa.int64()),
            "s": pa.array([f"{i * 2654435761 % 2**32:x}" * 6 for i in ids]),
        }
    )


def make(folder, count, logs=()):
    write = functools.partial(pq.write_table, row_group_size=500, use_dictionary=False, compression="none")
    changed = [0, 499, 500, 2222, ROWS - 1]
    groups = [
        small_tables.Group("a", rows(k), rows(k).take(changed) if k in logs else None) for k in range(count)
    ]
    return small_tables.make(folder / "t", groups, write=write)


@pytest.fixture
def small_partitions(settings):
    settings("spark.sql.files.maxPartitionBytes", "65536")
    settings("spark.sql.files.openCostInBytes", "4096")


def load(spark, path):
    return spark.read.format("hudi").option(USE_V2, "true").load(path)


@pytest.mark.parametrize("logs", [(), (0,)], ids=["plain", "merged"])
def test_a_large_slice_is_read_by_several_tasks(spark, small_partitions, tmp_path, logs):
    frame = load(spark, make(tmp_path, 1, logs))
    assert frame.rdd.getNumPartitions() >= 6
    found = sorted((row.id, row.v) for row in frame.select("id", "v", "s").collect())
    assert found == [(i, i * 3) for i in range(ROWS)]
    assert sum(len(part) > 0 for part in frame.rdd.glom().collect()) >= 4
    assert frame.where("id BETWEEN 400 AND 2300").count() == 1901
    updated = frame.where("ts = 20").select("id", "_pos").collect()
    assert sorted(row.id for row in updated) == ([0, 499, 500, 2222, ROWS - 1] if logs else [])
    positions = {row.id: row._pos for row in frame.select("id", "_pos").collect()}
    assert all(positions[i] == i for i in (1, 501, 2223, ROWS - 2))


def test_a_narrow_projection_is_packed_into_fewer_tasks(spark, small_partitions, tmp_path):
    frame = load(spark, make(tmp_path, 2))
    assert frame.select("id").rdd.getNumPartitions() < frame.rdd.getNumPartitions()
    assert frame.select("id").distinct().count() == 2 * ROWS


def test_the_cost_of_opening_files_spreads_small_ones(spark, settings, tmp_path):
    path = make(tmp_path, 6)
    settings("spark.sql.files.maxPartitionBytes", "8388608")
    settings("spark.sql.files.openCostInBytes", "0")
    assert load(spark, path).rdd.getNumPartitions() == 2
    settings("spark.sql.files.openCostInBytes", "8388608")
    assert load(spark, path).rdd.getNumPartitions() == 6
