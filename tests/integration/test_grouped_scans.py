"""Rows that lie together by bucket or partition are joined and aggregated without a shuffle."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.write.bucket_index import BucketRule, bucket_numbers
from tests import small_tables
from tests.integration.plans import USE_V2, plan_of

BUCKETS = 4
INDEX = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": str(BUCKETS),
}


def bucketed(folder, ids, *, logs=(), partitions=("a",), text=False):
    """A table whose file groups are buckets by id."""
    groups = []
    for partition in partitions:
        keys = pa.array([str(i) for i in ids if hash_partition(i, partitions) == partition])
        numbers = bucket_numbers(keys, BucketRule(BUCKETS, ("id",)))
        for bucket in range(BUCKETS):
            mine = [int(k.as_py()) for k, n in zip(keys, numbers, strict=True) if n == bucket]
            if mine:
                rows = rows_of(mine, partition, text)
                groups.append(
                    small_tables.Group(partition, rows, rows.slice(0, 1) if bucket in logs else None, bucket)
                )
    return small_tables.make(folder, groups)


def hash_partition(number, partitions):
    return partitions[number % len(partitions)]


def rows_of(ids, partition, text):
    key = pa.array([str(i) for i in ids]) if text else pa.array(ids, pa.int64())
    columns = {"id": key, "ts": pa.array([10] * len(ids), pa.int64()), "p": [partition] * len(ids)}
    return pa.table({**columns, "v": pa.array([i % 7 for i in ids], pa.int32())})


@pytest.fixture
def joins(settings):
    """Let Spark make use of grouped scans, and of nothing else."""
    settings("spark.sql.sources.v2.bucketing.enabled", "true")
    settings("spark.sql.sources.v2.bucketing.pushPartValues.enabled", "true")
    settings("spark.sql.autoBroadcastJoinThreshold", "-1")
    settings("spark.sql.adaptive.enabled", "false")


def load(spark, path, **options):
    return spark.read.format("hudi").options(**{USE_V2: "true", **options}).load(path)


def shuffles(frame):
    return plan_of(frame).count("Exchange hashpartitioning")


@pytest.mark.parametrize("text", [False, True], ids=["numbers", "texts"])
@pytest.mark.parametrize("logs", [(), (0, 2), (0, 1, 2, 3)], ids=["none", "some", "all"])
def test_bucketed_tables_are_joined_without_a_shuffle(spark, joins, tmp_path, logs, text):
    left = bucketed(tmp_path / "l", range(60), logs=logs, text=text)
    right = bucketed(tmp_path / "r", range(30, 90), text=text)
    counts = {}
    rows = {}
    for switch in ("true", "false"):
        options = {**INDEX, "hoodie.datasource.read.pushdown.partitioning": switch}
        a, b = load(spark, left, **options).alias("a"), load(spark, right, **options).alias("b")
        joined = a.join(b, "id").selectExpr("id", "a.v AS v", "b.v AS w")
        counts[switch] = shuffles(joined)
        rows[switch] = sorted(tuple(row) for row in joined.collect())
    assert counts == {"true": 0, "false": 2}
    assert rows["true"] == rows["false"]
    assert len(rows["true"]) == 30


def test_aggregates_by_key_and_by_partition_need_no_shuffle(spark, joins, tmp_path):
    path = bucketed(tmp_path / "t", range(80), partitions=("a", "b"), logs=(1,))
    by_key = load(spark, path, **INDEX).groupBy("id").agg({"v": "sum"})
    assert shuffles(by_key) == 0
    assert len(by_key.collect()) == 80
    by_partition = load(spark, path).groupBy("p").agg({"v": "sum"})
    assert shuffles(by_partition) == 0
    expected = [("a", sum(i % 7 for i in range(0, 80, 2))), ("b", sum(i % 7 for i in range(1, 80, 2)))]
    assert sorted(map(tuple, by_partition.collect())) == expected


def test_tables_partitioned_alike_are_joined_without_a_shuffle(spark, joins, settings, tmp_path):
    left = bucketed(tmp_path / "l", range(20), partitions=("a", "b", "c"), logs=(0,))
    right = bucketed(tmp_path / "r", range(10), partitions=("b", "c", "d"))
    joined = (
        load(spark, left)
        .alias("l")
        .join(load(spark, right).alias("r"), "p")
        .selectExpr("p", "l.id", "r.id AS other")
    )
    assert shuffles(joined) == 0
    # Rows of one partition are equal in the join key, so that they need not be sorted by it.
    assert plan_of(joined).count("Sort [") == 0
    found = sorted(map(tuple, joined.collect()))
    off = {"hoodie.datasource.read.pushdown.partitioning": "false"}
    plain = (
        load(spark, left, **off)
        .alias("l")
        .join(load(spark, right, **off).alias("r"), "p")
        .selectExpr("p", "l.id", "r.id AS other")
    )
    assert shuffles(plain) == 2
    assert plan_of(plain).count("Sort [") == 2
    assert found == sorted(map(tuple, plain.collect()))


def test_without_the_session_asking_scans_are_packed_as_ever(spark, tmp_path):
    path = bucketed(tmp_path / "t", range(80), partitions=tuple("abcdefgh"))
    assert load(spark, path).select("id", "p").rdd.getNumPartitions() <= 4


@pytest.mark.parametrize("buckets", ["2", "8", "3", "5", "many"])
def test_a_number_of_buckets_that_files_contradict_is_not_believed(spark, joins, tmp_path, buckets):
    left, right = bucketed(tmp_path / "l", range(60)), bucketed(tmp_path / "r", range(30, 90))
    options = {**INDEX, "hoodie.bucket.index.num.buckets": buckets}
    joined = (
        load(spark, left, **options)
        .alias("a")
        .join(load(spark, right, **INDEX).alias("b"), "id")
        .select("id")
    )
    assert len(joined.collect()) == 30
    assert shuffles(load(spark, left, **options).groupBy("id").agg({"v": "sum"})) == 1


def test_tables_of_the_catalog_keep_their_buckets_together(spark, joins, name, tmp_path):
    path = bucketed(tmp_path / "t", range(60))
    options = ", ".join(f"'{key}' = '{value}'" for key, value in INDEX.items())
    spark.sql(f"CREATE TABLE {name} USING hudi OPTIONS ({options}) LOCATION '{path}'")
    frame = spark.sql(f"SELECT id, sum(v) FROM {name} GROUP BY id")
    assert shuffles(frame) == 0
    assert len(frame.collect()) == 60


def test_filters_that_come_while_a_join_runs_leave_groups_as_they_are(spark, joins, settings, tmp_path):
    settings("spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly", "false")
    left = bucketed(tmp_path / "l", range(60), logs=(1,))
    right = bucketed(tmp_path / "r", range(30, 90))
    joined = (
        load(spark, left, **INDEX)
        .alias("a")
        .join(load(spark, right, **INDEX).where("ts = 10 AND id = 37"), "id")
    )
    assert shuffles(joined) == 0
    assert [row.id for row in joined.select("id").collect()] == [37]
