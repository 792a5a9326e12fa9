"""Reading through Spark: the paths, what is pushed down, and what stays pinned."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from drawstring.errors import CorruptTable, DrawstringError, InvalidOption, TableNotFound
from tests.integration.plans import USE_V2, plan_of, scan_metrics

pytestmark = pytest.mark.spark

TABLE = "v9_cow_two_level"
COLUMNS = ["id", "p", "v", "s", "ts", "y"]


def rows(frame) -> list[str]:
    return sorted(map(str, frame.select(*COLUMNS).collect()))


def test_the_format_path_reads_through_v2_when_asked(load):
    plan = plan_of(load(TABLE))
    assert "BatchScan" in plan
    assert "ColumnarToRow" in plan


def test_the_format_path_reads_through_v1_otherwise(load):
    plan = plan_of(load(TABLE, v2=False))
    assert "FileScan hudi" in plan
    assert "Batched: true" in plan


def test_the_session_setting_decides_where_the_read_says_nothing(spark, table_path):
    frame = lambda: spark.read.format("hudi").load(table_path(TABLE))  # noqa: E731
    before = spark.conf.get(USE_V2)
    try:
        spark.conf.set(USE_V2, "false")
        assert "FileScan" in plan_of(frame())
        spark.conf.set(USE_V2, "true")
        assert "BatchScan" in plan_of(frame())
    finally:
        spark.conf.set(USE_V2, before)


def test_the_short_spelling_of_the_setting_is_an_alias(spark, table_path):
    for flag, scan in (("true", "BatchScan"), ("false", "FileScan")):
        # The session says the opposite of one of them under the usual name, and counts for less.
        reader = spark.read.format("hudi").option("hoodie.datasource.read.use.v2", flag)
        assert scan in plan_of(reader.load(table_path(TABLE)))


def test_both_paths_and_both_names_of_the_format_read_the_same_rows(spark, load, table_path):
    expected = rows(load(TABLE))
    assert len(expected) == 13
    assert rows(load(TABLE, v2=False)) == expected
    assert rows(spark.read.format("org.apache.hudi").load(table_path(TABLE))) == expected


@pytest.mark.parametrize("v2", [True, False])
def test_only_the_columns_asked_for_are_read(load, v2):
    plan = plan_of(load(TABLE, v2=v2).select("id"))
    assert "ReadSchema: struct<id:int>" in plan


@pytest.mark.parametrize("v2", [True, False])
def test_nested_fields_are_pruned(load, v2):
    frame = load("v9_cow_types", v2=v2).select("st.x")
    assert "ReadSchema: struct<st:struct<x:int>>" in plan_of(frame)
    whole = load("v9_cow_types", v2=v2).select("st").collect()
    key = str
    assert sorted((r.x for r in frame.collect()), key=key) == sorted(
        (r.st.x if r.st else None for r in whole), key=key
    )


def test_partition_filters_are_absorbed_and_data_filters_pushed(load):
    frame = load(TABLE).filter("p = 'a' AND y = 2020 AND id > 3")
    plan = plan_of(frame)
    assert "p = 'a'" in plan.split("PartitionFilters: [")[1].split("]")[0]
    assert "id > 3" in plan.split("PushedFilters: [")[1].split("]")[0]
    assert "Filter (isnotnull(id" in plan
    assert rows(frame) == [
        r for r in rows(load(TABLE)) if "p='a'" in r and "y=2020" in r and int(r[7:].split(",")[0]) > 3
    ]


@pytest.mark.parametrize("v2", [True, False])
def test_files_of_other_partitions_are_not_touched(spark, table_path, tmp_path, v2):
    copy = tmp_path / "copy"
    shutil.copytree(table_path(TABLE), copy)
    for file in copy.rglob("*.parquet"):
        if "p=a" not in str(file) and ".hoodie" not in str(file):
            os.truncate(file, 0)
    frame = spark.read.format("hudi").option(USE_V2, str(v2).lower()).load(str(copy))
    assert frame.filter("p = 'a'").count() > 0


def test_metrics_tell_what_was_selected_and_skipped(load):
    frame = load(TABLE).filter("p = 'a'")
    frame.collect()
    metrics = scan_metrics(frame)
    assert metrics["filesSelected"] > 0
    assert metrics["bytesSelected"] > 0
    assert metrics["filesSkippedByPartition"] > 0
    assert "planningTime" in metrics


def test_statistics_follow_the_filter(load):
    def size(frame) -> int:
        return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))

    assert 0 < size(load(TABLE).filter("p = 'a'")) < size(load(TABLE))
    plan = load(TABLE)._jdf.queryExecution().optimizedPlan()
    assert "rowCount" in plan.stats().simpleString(), plan.toString()


def test_a_small_table_is_broadcast(load):
    left, right = load(TABLE), load(TABLE)
    assert "BroadcastHashJoin" in plan_of(left.join(right, "id"))


def test_equal_scans_share_their_exchange(spark, load):
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        left = load(TABLE).groupBy("id").count()
        joined = left.join(load(TABLE).groupBy("id").count(), "id")
        joined.collect()
        assert "ReusedExchange" in plan_of(joined)
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)


@pytest.mark.parametrize("v2", [True, False])
def test_a_loaded_table_stays_at_its_snapshot(spark, table_path, tmp_path, v2):
    copy = tmp_path / "copy"
    shutil.copytree(table_path(TABLE), copy)
    frame = spark.read.format("hudi").option(USE_V2, str(v2).lower()).load(str(copy))
    expected = rows(frame)
    timeline = copy / ".hoodie" / "timeline"
    newest = max(file for file in timeline.iterdir() if file.suffix == ".commit")
    newest.unlink()
    assert rows(frame) == expected
    assert rows(spark.read.format("hudi").load(str(copy))) != expected


@pytest.mark.parametrize("v2", [True, False])
def test_rows_come_out_alike_when_batches_are_turned_off(spark, load, v2):
    expected = rows(load(TABLE))
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    try:
        assert rows(load(TABLE, v2=v2)) == expected
    finally:
        spark.conf.unset("spark.sql.codegen.wholeStage")


def test_counting_reads_no_column(load):
    assert load(TABLE).count() == 13
    assert load(TABLE, v2=False).count() == 13


@pytest.mark.parametrize("v2", ["true", "false"])
def test_a_python_error_keeps_its_class_and_fields(spark, tmp_path, v2):
    with pytest.raises(TableNotFound) as caught:
        spark.read.format("hudi").option(USE_V2, v2).load(str(tmp_path))
    assert caught.value.condition == "TABLE_NOT_FOUND"
    assert str(tmp_path) in str(caught.value)


def test_a_read_without_path_is_refused(spark):
    with pytest.raises(InvalidOption, match="PATH_MISSING"):
        spark.read.format("hudi").load()


@pytest.mark.parametrize("v2", ["true", "false"])
def test_a_read_of_several_paths_says_what_to_do(spark, tmp_path, v2):
    with pytest.raises(InvalidOption, match=r"SEVERAL_PATHS.*unionByName"):
        spark.read.format("hudi").option(USE_V2, v2).load([str(tmp_path / "a"), str(tmp_path / "b")])


def test_an_unknown_option_value_is_refused(load):
    with pytest.raises(InvalidOption):
        load(TABLE, **{"hoodie.datasource.query.type": "sideways"})


@pytest.mark.parametrize("v2", [True, False])
def test_a_damaged_file_is_named(spark, table_path, tmp_path, v2):
    copy = tmp_path / "copy"
    shutil.copytree(table_path(TABLE), copy)
    for file in Path(copy).rglob("*.parquet"):
        if ".hoodie" not in str(file):
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    frame = spark.read.format("hudi").option(USE_V2, str(v2).lower()).load(str(copy))
    with pytest.raises(CorruptTable) as caught:
        frame.collect()
    assert ".parquet" in caught.value.fields["file"]


def test_a_session_without_planner_says_how_to_attach(spark, table_path):
    import drawstring

    bridge = spark._jvm.drawstring.bridge.Bridge
    bridge.detach()
    try:
        with pytest.raises(DrawstringError, match=r"drawstring\.attach"):
            spark.read.format("hudi").load(table_path(TABLE))
    finally:
        drawstring.attach(spark)


def test_every_error_class_crosses_the_bridge(spark):
    from drawstring.errors import _tree
    from drawstring.spark.errors import error_from_wire, error_to_wire

    for cls in _tree(DrawstringError):
        error = cls("what was found", condition="SOME_CONDITION", path="/x", count=3)
        back = error_from_wire(json.loads(json.dumps(error_to_wire(error))))
        assert (type(back), back.condition, back.fields) == (
            cls,
            "SOME_CONDITION",
            {"path": "/x", "count": 3},
        )
