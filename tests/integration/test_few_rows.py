"""Rows that are few reach the driver by one job; few or not, whoever locates them, the same rows are written."""

from __future__ import annotations

import pytest

from drawstring.spark.write import few_rows, rows

pytestmark = pytest.mark.spark

OPTIONS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.datasource.write.precombine.field": "n",
    "hoodie.metadata.enable": "false",
}
# Another evaluation of the rows would yield other keys and other partitions.
UNREPEATABLE = (
    "uuid() as id",
    "cast(rand() * 8 as int) as p",
    "id as n",
    "cast(id / 7 as decimal(20,4)) as d",
    "timestamp_micros(id) as t",
    "named_struct('a', array(cast(id as string)), 'b', map('k', id)) as s",
)


def write(frame, path) -> None:
    frame.write.format("hudi").options(**OPTIONS).mode("append").save(str(path))


def jobs_of(spark) -> int:
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def check(spark, path, count: int) -> None:
    """Every row is there once, with its values, and in the partition that its key was made for."""
    found = spark.read.format("hudi").load(str(path))
    assert found.count() == count == found.select("id").distinct().count()
    assert sorted(row.n for row in found.select("n").collect()) == list(range(count))
    values = "s.a[0] = cast(n as string) and s.b['k'] = n and t = timestamp_micros(n)"
    values += " and d = cast(n / 7 as decimal(20,4)) and _hoodie_partition_path = cast(p as string)"
    assert found.filter(values).count() == count


def test_rows_of_a_scan_take_one_job(spark, tmp_path):
    frame = spark.range(0, 50, 1, 4).selectExpr("id", "'x' as p", "id as n")
    write(frame, tmp_path / "t")
    before = jobs_of(spark)
    write(frame, tmp_path / "t")
    assert jobs_of(spark) == before + 1
    assert spark.read.format("hudi").load(str(tmp_path / "t")).count() == 50


@pytest.mark.parametrize(
    ("few_bytes", "located_by", "shuffled"),
    [
        (few_rows.FEW_BYTES, "driver", False),
        (few_rows.FEW_BYTES, "spark", False),
        (2000, "driver", False),
        (2000, "spark", True),
    ],
)
def test_rows_are_evaluated_once(spark, tmp_path, monkeypatch, few_bytes, located_by, shuffled):
    monkeypatch.setattr(few_rows, "FEW_BYTES", few_bytes)
    if located_by == "spark":
        monkeypatch.setattr(rows, "COLLECTED_BYTES", -1)
    frame = spark.range(0, 60, 1, 3).selectExpr(*UNREPEATABLE)
    write(frame.repartition(2) if shuffled else frame, tmp_path / "t")
    check(spark, tmp_path / "t", 60)


def test_what_starts_at_once(spark):
    plain = spark.range(10).selectExpr("id", "id % 3 as k").where("id > 2")
    assert few_rows.starts_at_once(plain)
    assert few_rows.starts_at_once(plain.union(plain))
    assert not few_rows.starts_at_once(plain.groupBy("k").count())
    assert not few_rows.starts_at_once(plain.orderBy("id"))
    assert not few_rows.starts_at_once(plain.mapInPandas(lambda frames: frames, plain.schema))
