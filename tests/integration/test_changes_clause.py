"""Spark's CHANGES clause on Hudi tables, and the readers that go with it."""

from __future__ import annotations

import pyspark
import pytest

from drawstring import open_table
from tests.integration.test_streams import Query, write

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 2),
        reason="Spark has the CHANGES clause from 4.2 on",
    ),
]

FIRST = [("insert", 1, "x"), ("insert", 2, "x")]
SECOND = [("update_postimage", 1, "y"), ("update_preimage", 1, "x"), ("insert", 3, "y")]
THIRD = [("delete", 2, "x")]


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request, spark, name, tmp_path):
    """A table of three commits in the catalog: rows 1 and 2, then 1 again and 3, then 2 deleted."""
    path = str(tmp_path / "t")
    kind = {"hoodie.datasource.write.table.type": request.param}
    write(spark, path, [(1, "a", "x"), (2, "b", "x")], **kind)
    write(spark, path, [(1, "a", "y"), (3, "a", "y")], ts=2, **kind)
    write(spark, path, [(2, "b", "x")], ts=3, **{"hoodie.datasource.write.operation": "delete", **kind})
    spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")
    return name, path


def versions(path: str) -> list[str]:
    return sorted(i.completion_time or "" for i in open_table(path).timeline.completed_writes)


def shown(frame) -> list[tuple]:
    return sorted(map(tuple, frame.select("_change_type", "id", "s").collect()))


def asked(spark, name: str, clause: str) -> list[tuple]:
    return shown(spark.sql(f"SELECT * FROM {name} CHANGES {clause}"))


def test_bounds_are_commits_and_each_may_be_left_out(spark, table):
    name, path = table
    first, second, third = versions(path)
    assert asked(spark, name, f"FROM VERSION '{first}'") == sorted(FIRST + SECOND + THIRD)
    assert asked(spark, name, f"FROM VERSION '{first}' EXCLUSIVE") == sorted(SECOND + THIRD)
    assert asked(spark, name, f"FROM VERSION '{second}' TO VERSION '{second}'") == sorted(SECOND)
    assert asked(spark, name, f"FROM VERSION '{first}' TO VERSION '{third}' EXCLUSIVE") == sorted(
        FIRST + SECOND
    )
    assert asked(spark, name, f"FROM VERSION '{third}' EXCLUSIVE") == []


def test_bounds_may_be_moments(spark, table):
    name, path = table
    _, second, _ = versions(path)
    rows = spark.sql(f"SELECT * FROM {name} CHANGES FROM VERSION '{second}' TO VERSION '{second}'")
    moment = rows.selectExpr("CAST(_commit_timestamp AS STRING) AS t").first()["t"]
    assert asked(spark, name, f"FROM TIMESTAMP '{moment}' TO TIMESTAMP '{moment}'") == sorted(SECOND)
    assert asked(spark, name, f"FROM TIMESTAMP '{moment}' EXCLUSIVE") == sorted(THIRD)


def test_rows_name_the_commit_that_changed_them(spark, table):
    name, path = table
    found = spark.sql(f"SELECT * FROM {name} CHANGES FROM VERSION '{versions(path)[0]}'")
    assert found.columns[-3:] == ["_change_type", "_commit_version", "_commit_timestamp"]
    by_version = {row["_commit_version"]: row["_commit_timestamp"] for row in found.collect()}
    assert sorted(by_version) == versions(path)
    assert [moment.strftime("%Y%m%d%H%M%S%f")[:17] for _, moment in sorted(by_version.items())] == versions(
        path
    )
    last = versions(path)[-1]
    assert found.where(f"_commit_version = '{last}'").count() == 1
    assert found.where("_change_type = 'insert' AND s = 'x'").count() == 2
    assert found.groupBy("_commit_version").count().count() == 3


def test_net_changes_are_the_outcome_of_the_range(spark, table):
    name, path = table
    first = versions(path)[0]
    net = "WITH (deduplicationMode = 'netChanges')"
    assert asked(spark, name, f"FROM VERSION '{first}' {net}") == [("insert", 1, "y"), ("insert", 3, "y")]
    found = asked(spark, name, f"FROM VERSION '{first}' EXCLUSIVE {net}")
    assert found == sorted(SECOND + THIRD)


def test_the_reader_of_changes_returns_the_same(spark, table):
    name, path = table
    first, second, _ = versions(path)
    found = spark.read.option("startingVersion", first).option("endingVersion", second).changes(name)
    assert shown(found) == sorted(FIRST + SECOND)


@pytest.mark.parametrize("limit", [{}, {"maxFilesPerTrigger": "1"}], ids=["whole", "limited"])
def test_changes_are_streamed(spark, table, tmp_path, limit):
    name, path = table
    reader = spark.readStream.options(**limit).option("startingVersion", versions(path)[1])
    found = Query(spark, tmp_path, path)
    found.run(reader.changes(name).select("_change_type", "id", "s"))
    rows = [tuple(eval(row).values()) for row in found.rows]
    assert sorted(rows) == sorted(SECOND + THIRD)
    assert len(found.batches) == (2 if limit else 1)
    write(spark, path, [(9, "c", "z")], ts=4)
    found.run(reader.changes(name).select("_change_type", "id", "s"))
    assert sorted(tuple(eval(row).values()) for row in found.rows) == sorted(
        [*SECOND, *THIRD, ("insert", 9, "z")]
    )


def test_what_is_no_version_is_named(spark, table):
    with pytest.raises(Exception, match="INVALID_INSTANT"):
        asked(spark, table[0], "FROM VERSION 'yesterday'")
