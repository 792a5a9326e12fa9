"""Metadata columns: shown where a query names them, for plain, merged and Arrow reads."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests import small_tables
from tests.integration.plans import USE_V2

COLUMNS = ("_file", "_pos", "_partition", "_bucket", "_file_group_id", "_instant")


def rows(k):
    ids = list(range(10 * k, 10 * k + 10))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "ts": pa.array([10] * 10, pa.int64()),
            "p": ["a"] * 10,
            "v": pa.array(ids),
        }
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Three groups of ten rows; logs change row 13 and add row 99."""
    added = pa.table(
        {"id": pa.array([99], pa.int64()), "ts": pa.array([10], pa.int64()), "p": ["a"], "v": pa.array([99])}
    )
    updates = pa.concat_tables([rows(1).slice(3, 1), added])
    groups = [small_tables.Group("a", rows(k), updates if k == 1 else None) for k in range(3)]
    return small_tables.make(tmp_path_factory.mktemp("hidden") / "t", groups)


def test_they_are_hidden_from_star(spark, path):
    frame = spark.read.format("hudi").option(USE_V2, "true").load(path)
    assert not set(COLUMNS) & set(frame.columns)


@pytest.mark.parametrize("condition", [None, "id > 12", "v IN (3, 13, 14, 99)"])
def test_each_row_tells_where_it_lies(spark, path, condition):
    frame = spark.read.format("hudi").option(USE_V2, "true").load(path)
    frame = frame if condition is None else frame.where(condition)
    found = frame.selectExpr("_pos", "id", *COLUMNS[:1], *COLUMNS[2:], "input_file_name() AS input").collect()
    assert len(found) == {None: 31, "id > 12": 18}.get(condition, 4)
    for row in found:
        k = 1 if row.id == 99 else row.id // 10
        assert row._pos == (None if row.id in (13, 99) else row.id % 10)
        assert (row._partition, row._bucket, row._instant) == ("p=a", k, "20260101000000000")
        assert row._file_group_id.startswith(f"{k:08x}-")
        assert Path(row._file).exists()
        assert Path(row._file).name.startswith(row._file_group_id)
        assert row.input.endswith(row._file.split("/")[-1])


def test_they_are_read_alone_counted_and_filtered_by(spark, path):
    frame = spark.read.format("hudi").option(USE_V2, "true").load(path)
    assert sorted((r._bucket, r["count"]) for r in frame.groupBy("_bucket").count().collect()) == [
        (0, 10),
        (1, 11),
        (2, 10),
    ]
    assert sorted(r._pos for r in frame.where("_pos >= 8").select("_pos").collect()) == [8, 8, 8, 9, 9, 9]
    assert {r.id for r in frame.where("_pos IS NULL").select("id").collect()} == {13, 99}


def test_worker_reads_show_them_without_positions(spark, path):
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "20260101120000000",
    }
    frame = spark.read.format("hudi").options(**{USE_V2: "true", **options}).load(path)
    found = frame.select("id", "_partition", "_pos", "_file_group_id").collect()
    assert {(row.id, row._partition, row._pos) for row in found} == {(13, "p=a", None), (99, "p=a", None)}


def test_a_column_of_the_table_comes_first(spark, tmp_path):
    table = rows(0).append_column("_file", pa.array(["mine"] * 10))
    path = small_tables.make(tmp_path / "t", [small_tables.Group("a", table)])
    frame = spark.read.format("hudi").option(USE_V2, "true").load(path)
    assert {(r._file, r._partition) for r in frame.select("_file", "_partition").collect()} == {
        ("mine", "p=a")
    }


@pytest.mark.parametrize("use_v2", ["true", "false"], ids=["v2", "v1"])
def test_a_column_by_the_name_of_sparks_own_positions_keeps_its_values(spark, tmp_path, use_v2):
    table = rows(0).append_column("_tmp_metadata_row_index", pa.array(range(500, 510), pa.int64()))
    path = small_tables.make(tmp_path / "t", [small_tables.Group("a", table)])
    frame = spark.read.format("hudi").option(USE_V2, use_v2).load(path)
    found = frame.where("_tmp_metadata_row_index > 503").select("id", "_tmp_metadata_row_index").collect()
    assert sorted(map(tuple, found)) == [(number, 500 + number) for number in range(4, 10)]
