"""Push-downs through Spark: the plan, the rows, and the same rows with the push-down switched off."""

from __future__ import annotations

import datetime as dt
import shutil
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from tests import small_tables
from tests.integration.plans import USE_V2, plan_of, scan_metrics

SWITCH = "hoodie.datasource.read.pushdown."
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("ts", pa.int64()),
        ("p", pa.string()),
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("d", pa.date32()),
        ("m", pa.decimal128(9, 2)),
        ("t", pa.timestamp("us", tz="UTC")),
        ("st", pa.struct([("y", pa.int64())])),
    ]
)


def rows(k):
    """Ten rows; those of file 9 hold nothing but nulls, every seventh n is null."""
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
    for i in range(10 * k, 10 * k + 10):
        empty = k == 9
        yield {
            "id": i,
            "ts": 10,
            "p": "ab"[k % 2],
            "n": None if empty or i % 7 == 0 else i,
            "x": None if empty else i / 4 + 1,
            "s": None if empty else f"text {i:03d}",
            "d": None if empty else dt.date(2024, 1, 1) + dt.timedelta(i),
            "m": None if empty else Decimal(i).scaleb(-2),
            "t": None if empty else moment + dt.timedelta(hours=i),
            "st": {"y": None if empty else -i},
        }


def groups(with_logs=()):
    for k in range(10):
        table = pa.Table.from_pylist(list(rows(k)), schema=SCHEMA)
        changed = table.slice(3, 1).set_column(3, "n", pa.array([1000 + k], pa.int32()))
        yield small_tables.Group("ab"[k % 2], table, changed if k in with_logs else None)


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """The same rows copy-on-write, and merge-on-read with logs in some and in all file groups."""
    folder = tmp_path_factory.mktemp("pushdowns")
    return {
        "cow": small_tables.make(folder / "cow", list(groups())),
        "some": small_tables.make(folder / "some", list(groups({2, 5}))),
        "all": small_tables.make(folder / "all", list(groups(set(range(10))))),
    }


@pytest.fixture
def view(spark, tables):
    """A temporary view of a table, with some push-downs off."""

    def make(kind, *off):
        switches = {f"{SWITCH}{name}": "false" for name in off}
        frame = spark.read.format("hudi").options(**{USE_V2: "true", **switches}).load(tables[kind])
        frame.createOrReplaceTempView("t")

    return make


def answers(frame):
    return [tuple(row) for row in frame.collect()]


AGGREGATES = {
    "SELECT count(*), count(n), min(n), max(n), min(d), max(d), min(m), max(m), min(t), max(t) FROM t": {
        "cow"
    },
    "SELECT count(*) FROM t WHERE p = 'a'": {"cow"},
    "SELECT p, count(*), max(id) AS top FROM t GROUP BY p": {"cow"},
    "SELECT max(id) - min(id) + count(*) FROM t WHERE p = 'b'": {"cow"},
    "SELECT min(p), max(p), count(p) FROM t": {"cow"},
    "SELECT count(st.y), max(st.y) FROM t": {"cow"},
    "SELECT count(*) FROM t WHERE p = 'nowhere'": {"cow", "some", "all"},
    "SELECT p, count(*) FROM t WHERE p = 'nowhere' GROUP BY p": {"cow", "some", "all"},
    "SELECT max(x) FROM t": set(),
    "SELECT max(s) FROM t": set(),
    "SELECT count(*) FROM t WHERE n > 5": set(),
    "SELECT count(DISTINCT n) FROM t": set(),
    "SELECT sum(id) FROM t": set(),
    "SELECT s, count(*) FROM t GROUP BY s": set(),
}


@pytest.mark.parametrize("kind", ["cow", "some", "all"])
def test_aggregates_are_answered_by_metadata_or_not_at_all(spark, view, kind):
    for query, answered in AGGREGATES.items():
        view(kind)
        pushed = spark.sql(query)
        assert ("LocalTableScan" in plan_of(pushed)) == (kind in answered), query
        if kind == "some" and "cow" in answered and kind not in answered and "st.y" not in query:
            assert "answered by metadata but for" in plan_of(pushed), query
        found = answers(pushed)
        view(kind, "aggregates")
        plain = spark.sql(query)
        assert "BatchScan" in plan_of(plain)
        assert sorted(found, key=repr) == sorted(answers(plain), key=repr), query


def test_aggregates_are_answered_where_the_files_are_gone(spark, tables, tmp_path):
    path = shutil.copytree(tables["cow"], tmp_path / "gone")
    frame = spark.read.format("hudi").option(USE_V2, "true").load(str(path))
    for file in Path(path).rglob("*.parquet"):
        file.write_bytes(b"")
    assert frame.count() == 100
    assert sorted(answers(frame.groupBy("p").count())) == [("a", 50), ("b", 50)]


def test_a_limit_reads_as_few_files_as_hold_the_rows(spark, view):
    for kind, skipped in (("cow", 7), ("some", 7), ("all", 0)):
        view(kind)
        frame = spark.table("t").select("id").limit(25)
        found = [row.id for row in frame.collect()]
        assert len(set(found)) == len(found) == 25
        assert scan_metrics(frame)["filesSkippedByLimit"] == skipped
    view("cow", "limit")
    frame = spark.table("t").select("id").limit(25)
    assert len(frame.collect()) == 25
    assert scan_metrics(frame)["filesSkippedByLimit"] == 0


def test_a_limit_that_one_task_can_hold_is_applied_by_the_scan(spark, tables, view, settings):
    view("cow")
    frame = spark.sql("SELECT id, s FROM t LIMIT 25")
    assert "Limit" not in plan_of(frame).replace("PushedLimit: 25", "")
    assert frame.rdd.getNumPartitions() == 1
    first = [row.id for row in frame.collect()]
    everything = {row.id: row.s for row in spark.table("t").select("id", "s").collect()}
    assert {row.id: row.s for row in frame.collect()} == {key: everything[key] for key in first}
    assert _number(frame._jdf.queryExecution().optimizedPlan().stats().rowCount()) == 25
    with_files = spark.read.format("hudi").option(USE_V2, "true").load(tables["cow"]).select("id", "_file")
    assert [row.id for row in with_files.limit(25).collect()] == first
    assert answers(spark.sql("SELECT count(*), count(s) FROM (SELECT * FROM t LIMIT 25)"))[0][0] == 25
    assert len(answers(spark.sql("SELECT id FROM t LIMIT 1000"))) == 100
    assert len(answers(spark.sql("SELECT id FROM (SELECT id FROM t LIMIT 30) LIMIT 7 OFFSET 25"))) == 5
    assert answers(spark.sql("SELECT * FROM (SELECT id FROM t LIMIT 25) ORDER BY id DESC LIMIT 1")) == [
        (max(first),)
    ]
    settings("spark.sql.files.maxPartitionBytes", "1")
    many = spark.sql("SELECT id FROM t LIMIT 25")
    assert "CollectLimit" in plan_of(many)
    assert len(answers(many)) == 25


def test_what_a_join_finds_does_not_choose_the_rows_of_a_limit(spark, view):
    view("cow")
    first = {row.id for row in spark.sql("SELECT id FROM t LIMIT 25").collect()}
    spark.range(100).selectExpr("id AS k", "id % 5 AS label").createOrReplaceTempView("dim")
    joined = spark.sql("SELECT x.id FROM (SELECT id FROM t LIMIT 25) x JOIN dim ON x.id = k WHERE label = 3")
    assert {row.id for row in joined.collect()} == {key for key in first if key % 5 == 3}


def test_answers_of_metadata_take_no_job(spark, view):
    view("cow")
    spark.sparkContext.setJobGroup("answers", "answers of metadata")
    assert spark.table("t").count() == 100
    assert answers(spark.sql("SELECT max(id) - min(id) + 1 AS span, 'a' AS a FROM t")) == [(100, "a")]
    assert sorted(answers(spark.sql("SELECT p, count(*) FROM t GROUP BY p"))) == [("a", 50), ("b", 50)]
    assert spark.sparkContext.statusTracker().getJobIdsForGroup("answers") == []
    assert len(spark.table("t").where("n > 0").collect()) > 0
    assert spark.sparkContext.statusTracker().getJobIdsForGroup("answers") != []
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_a_limit_with_an_offset_and_a_partition_filter(spark, view):
    view("cow")
    frame = spark.sql("SELECT id FROM t WHERE p = 'a' LIMIT 5 OFFSET 10")
    assert len(frame.collect()) == 5
    metrics = scan_metrics(frame)
    assert (metrics["filesSkippedByPartition"], metrics["filesSkippedByLimit"]) == (5, 3)
    filtered = spark.sql("SELECT id FROM t WHERE n % 2 = 0 LIMIT 5")
    assert len(filtered.collect()) == 5
    assert scan_metrics(filtered)["filesSkippedByLimit"] == 0


ORDERS = {
    "id": 8,
    "id DESC": 8,
    "n ASC NULLS FIRST": 0,
    "n ASC NULLS LAST, id": 7,
    "n DESC NULLS LAST": 8,
    "d DESC": 8,
    "m": 0,
    "s DESC NULLS LAST": 8,
    "x DESC NULLS LAST": 1,
    "st.y": 0,
}


def test_a_top_n_is_that_of_a_plain_read(spark, view):
    for order, skipped in ORDERS.items():
        query = f"SELECT id, n, x, s FROM t ORDER BY {order}, id LIMIT 12"
        for kind in ("cow", "some", "all"):
            view(kind)
            pushed = spark.sql(query)
            found = answers(pushed)
            metrics = scan_metrics(pushed)
            view(kind, "topn", "limit")
            assert found == answers(spark.sql(query)), (kind, order)
            if kind == "cow":
                assert metrics["filesSkippedByTopN"] >= skipped, order


def test_the_keys_of_a_join_leave_files_out(spark, view):
    view("cow")
    spark.range(100).selectExpr("id AS k", "id % 50 AS label").createOrReplaceTempView("dim")
    query = "SELECT t.id FROM t JOIN dim ON t.id = dim.k WHERE dim.label = 13"
    frame = spark.sql(query)
    assert sorted(answers(frame)) == [(13,), (63,)]
    text = frame._jdf.queryExecution().executedPlan().toString()
    assert "dynamicpruning" in text.lower()
    view("cow", "runtime-filters")
    assert sorted(answers(spark.sql(query))) == [(13,), (63,)]


def test_statistics_of_the_selected_slices_reach_the_optimiser(spark, view, settings):
    settings("spark.sql.cbo.enabled", "true")
    view("cow")
    relation = spark.sql("SELECT id, n FROM t WHERE p = 'a'")._jdf.queryExecution().optimizedPlan()
    stats = relation.stats()
    assert _number(stats.rowCount()) == 50
    found = {entry._1().name(): entry._2() for entry in _entries(stats.attributeStats())}
    assert (found["id"].min().get(), found["id"].max().get()) == (0, 89)
    assert (_number(found["n"].nullCount()), _number(found["id"].distinctCount())) == (8, 50)


def test_columns_that_spark_does_not_estimate_have_no_statistics(spark, tmp_path, settings):
    """With some, Spark fails over a filter on a local time."""
    settings("spark.sql.cbo.enabled", "true")
    moments = [dt.datetime(2024, 1, 1) + dt.timedelta(hours=n) for n in range(4)]
    values = {"tn": pa.array(moments), "raw": pa.array([b"a", b"b", b"c", None])}
    own = {"id": pa.array(range(4), pa.int64()), "ts": pa.array([1] * 4, pa.int64()), "p": ["a"] * 4}
    path = small_tables.make(tmp_path / "t", [small_tables.Group("a", pa.table(own | values))])
    frame = spark.read.format("hudi").option(USE_V2, "true").load(path)
    for condition, kept in (("tn < TIMESTAMP_NTZ '2024-01-01 02:00:00'", 2), ("raw > X'61'", 2)):
        assert frame.where(condition).join(frame.select("id"), "id").count() == kept, condition


def test_answered_aggregates_are_not_taken_for_large(spark, view, settings):
    settings("spark.sql.adaptive.enabled", "false")
    for kind, most in (("cow", 2), ("some", 100)):
        view(kind)
        counted = spark.sql("SELECT p, count(*) AS c, max(id) AS m FROM t GROUP BY p")
        leaf = counted._jdf.queryExecution().optimizedPlan().collectLeaves().head().stats()
        assert 2 <= _number(leaf.rowCount()) <= most, kind
        assert 0 < int(str(leaf.sizeInBytes())) < 100 * most, kind
        joined = counted.alias("x").join(spark.table("t").alias("y"), ["p"]).where("y.id = x.m")
        assert "BuildLeft" in plan_of(joined), kind


def _number(option):
    return int(str(option.get()))


def _entries(scala_map):
    iterator = scala_map.iterator()
    while iterator.hasNext():
        yield iterator.next()


def test_slices_that_metadata_does_not_speak_for_are_read_alone(spark, tables, tmp_path):
    path = shutil.copytree(tables["some"], tmp_path / "some")
    frame = spark.read.format("hudi").option(USE_V2, "true").load(str(path))
    for file in Path(path).rglob("*.parquet"):
        if int(file.name[:8], 16) not in (2, 5):
            file.write_bytes(b"")
    assert answers(frame.selectExpr("count(*)")) == [(100,)]
    assert sorted(answers(frame.groupBy("p").count())) == [("a", 50), ("b", 50)]
    assert answers(frame.where("p = 'a'").selectExpr("count(*) + 1")) == [(51,)]


def test_files_with_nan_or_long_texts_are_read_and_the_others_are_not(spark, tmp_path):
    def group(k, values):
        count = len(values)
        rows = {
            "id": pa.array(range(10 * k, 10 * k + count), pa.int64()),
            "ts": pa.array([1] * count, pa.int64()),
            "p": ["a"] * count,
            "x": pa.array(values, pa.float64()),
        }
        return small_tables.Group("a", pa.table(rows))

    path = small_tables.make(
        tmp_path / "t", [group(0, [1.0, 2.0]), group(1, [3.0, float("nan")]), group(2, [None])]
    )
    reader = spark.read.format("hudi").option(USE_V2, "true")
    for query in ("max(x)", "min(x)", "count(x)", "max(id)"):
        pushed = reader.load(path).selectExpr(query)
        plain = reader.option(f"{SWITCH}aggregates", "false").load(path).selectExpr(query)
        assert repr(answers(pushed)) == repr(answers(plain)), query


def test_a_sample_is_that_of_spark(spark, view):
    for kind in ("cow", "some", "all"):
        for query in (
            "SELECT id, n FROM t TABLESAMPLE (30 PERCENT) REPEATABLE (7)",
            "SELECT count(*) FROM t TABLESAMPLE (30 PERCENT) REPEATABLE (7)",
            "SELECT id FROM t TABLESAMPLE (50 PERCENT) REPEATABLE (3) ORDER BY id DESC LIMIT 5",
            "SELECT max(id), count(*) FROM t TABLESAMPLE (50 PERCENT) REPEATABLE (3)",
            "SELECT id FROM t TABLESAMPLE (50 PERCENT) REPEATABLE (3) WHERE p = 'a' AND id > 25",
        ):
            view(kind)
            pushed = spark.sql(query)
            assert "Sample " not in plan_of(pushed)
            assert "PushedSample" in plan_of(pushed)
            found = answers(pushed)
            view(kind, "sample")
            plain = spark.sql(query)
            assert "Sample " in plan_of(plain)
            assert sorted(found) == sorted(answers(plain)), (kind, query)


def test_a_sample_is_the_same_whatever_else_is_pushed_down(spark, view, settings):
    spark.range(100).selectExpr("id AS k", "id % 5 AS label").createOrReplaceTempView("dim")
    sample = "(SELECT p, id FROM t TABLESAMPLE (50 PERCENT) REPEATABLE (7))"
    joined = f"SELECT id FROM {sample} JOIN dim ON id = k WHERE label = 3 AND k < 30"
    for bucketing, query in (("false", joined), ("true", f"SELECT id FROM {sample}")):
        settings("spark.sql.sources.v2.bucketing.enabled", bucketing)
        found = []
        for off in ((), ("sample",), ("runtime-filters",), ("sample", "partitioning")):
            view("some", *off)
            found.append(sorted(answers(spark.sql(query))))
        assert found[0]
        assert found == [found[0]] * len(found), query


UNKNOWN = {
    "(id = 40.5BD) IS NOT TRUE": 100,
    "NOT ((id = 40.5BD) IS NOT TRUE)": 0,
    "(id = 40.5BD OR id = 7) IS TRUE": 1,
}


def test_conditions_that_are_unknown_for_all_rows_are_left_to_spark(spark, tables):
    """Spark itself fails over what it makes of them, unless it is kept from telling the source."""
    for use_v2 in ("true", "false"):
        frame = spark.read.format("hudi").option(USE_V2, use_v2).load(tables["some"])
        for condition, kept in UNKNOWN.items():
            assert len(frame.where(condition).collect()) == kept, (use_v2, condition)
        assert answers(frame.selectExpr("max((id = 40.5BD) IS NOT TRUE)")) == [(True,)]
        assert len(frame.selectExpr("id", "NOT (id = 40.5BD) AS c").orderBy("c").limit(3).collect()) == 3


def test_the_ui_shows_what_a_scan_did(spark, view):
    view("some")
    frame = spark.sql("SELECT id, n FROM t WHERE p = 'a' AND id < 45")
    assert len(frame.collect()) == 25
    metrics = scan_metrics(frame)
    assert (metrics["slicesSelected"], metrics["filesSkippedByPartition"]) == (3, 5)
    assert metrics["filesSkippedByStatistics"] == 2
    assert metrics["mergedRecords"] == 1
    assert metrics["partitionSize"] > 0
    assert metrics["pinnedInstant"] >= 20260102000000000
    assert {"readTime", "planningTime", "filesSkippedByIndex"} <= metrics.keys()
