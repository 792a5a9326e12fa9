"""Changes through Spark: the rows that Python reads, whatever is pushed down."""

from __future__ import annotations

import pytest

from drawstring import open_table
from tests.golden import harness
from tests.integration.test_streams import write

pytestmark = pytest.mark.spark


def changes(spark, path: str, **options: str):
    return spark.read.format("hudi").options(**{"read.changelog": "true", **options}).load(path)


def texts(rows) -> list[str]:
    return sorted(map(str, rows))


@pytest.mark.parametrize(
    "name", ["v9_mor_cdc", "v6_cow_overwrite", "v9_mor_commit_time", "v6_mor_compacted", "v9_cow_clustered"]
)
def test_changes_are_those_that_python_reads(spark, table_path, read_path, name):
    path = table_path(name)
    expected = harness.arrow_rows(open_table(path).changes("earliest").to_arrow())
    found = changes(spark, path)
    assert found.columns[-1] == "_rowkind"
    assert texts(harness.spark_rows(found.collect())) == texts(expected)


def test_filters_limits_and_counts_answer_as_the_rows_do(spark, tmp_path, read_path):
    path = str(tmp_path / "t")
    write(spark, path, [(i, "ab"[i % 2], "old") for i in range(10)])
    write(spark, path, [(1, "b", "new"), (2, "a", "new")], ts=2)
    found = changes(spark, path)
    plain = [row.asDict() for row in found.collect()]
    assert len(plain) == 14
    conditions = {
        "s = 'old'": lambda r: r["s"] == "old",
        "s = 'new'": lambda r: r["s"] == "new",
        "_rowkind = '-U'": lambda r: r["_rowkind"] == "-U",
        "p = 'a' AND _rowkind != '+I'": lambda r: r["p"] == "a" and r["_rowkind"] != "+I",
        "ts < 2 AND id = 1": lambda r: r["ts"] < 2 and r["id"] == 1,
    }
    for condition, keeps in conditions.items():
        assert found.where(condition).count() == sum(map(keeps, plain)), condition
    assert found.count() == 14
    assert len(found.limit(3).collect()) == 3
    kinds = {row["_rowkind"]: row["count"] for row in found.groupBy("_rowkind").count().collect()}
    assert kinds == {"+I": 10, "-U": 2, "+U": 2}
    least = found.selectExpr("min(s) AS least", "max(ts) AS most").first()
    assert (least["least"], least["most"]) == ("new", 2)
    assert [row["ts"] for row in found.orderBy("ts", "id").select("ts").limit(2).collect()] == [1, 1]


def test_changes_begin_after_an_instant(spark, tmp_path):
    path = str(tmp_path / "t")
    write(spark, path, [(1, "a", "x")])
    first = open_table(path).timeline.completed_writes[0].completion_time
    write(spark, path, [(1, "a", "y")], ts=2)
    found = changes(spark, path, **{"hoodie.datasource.read.begin.instanttime": first})
    assert sorted((r["_rowkind"], r["s"]) for r in found.collect()) == [("+U", "y"), ("-U", "x")]


def test_changes_cannot_be_streamed_yet(spark, table_path, tmp_path):
    stream = spark.readStream.format("hudi").option("read.changelog", "true").load(table_path("v9_cow_cdc"))
    query = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c")).start()
    with pytest.raises(Exception, match="STREAM_OF_CHANGES_NOT_SUPPORTED"):
        query.awaitTermination(60)
