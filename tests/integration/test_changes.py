"""Changes through Spark: the rows that Python reads, whatever is pushed down."""

from __future__ import annotations

import pytest

from drawstring import open_table
from tests.golden import harness
from tests.integration.test_streams import Query, write

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


CDC = {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.query.incremental.format": "cdc"}
CAPTURING = [f"v9_{kind}_cdc_{mode}" for kind in ("cow", "mor") for mode in ("keys", "before", "compacted")]


def plain(frame) -> list[str]:
    return texts(tuple(row) for row in frame.collect())


def python_data(path: str) -> list[str]:
    return texts(
        tuple(row.values()) for row in open_table(path).change_data("earliest").to_arrow().to_pylist()
    )


@pytest.mark.parametrize("name", ["v9_cow_cdc", "v9_mor_cdc", *CAPTURING])
def test_change_data_is_a_spark_read(spark, table_path, read_path, name):
    path = table_path(name)
    found = spark.read.format("hudi").options(**CDC).load(path)
    assert found.columns == ["op", "ts_ms", "before", "after"]
    assert plain(found) == python_data(path)
    rows = found.collect()
    assert found.where("op = 'd'").count() == sum(row["op"] == "d" for row in rows)
    assert texts(map(tuple, found.select("after", "op").collect())) == texts(
        (r["after"], r["op"]) for r in rows
    )
    assert found.count() == len(rows)


def test_change_data_of_a_table_that_captures_none_is_refused(spark, table_path):
    with pytest.raises(Exception, match="CDC_NOT_ENABLED"):
        spark.read.format("hudi").options(**CDC).load(table_path("v9_cow_types")).collect()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("v9_cow_cdc", CDC),
        ("v9_mor_cdc_before", CDC),
        ("v9_mor_cdc", {"read.changelog": "true"}),
        ("v6_cow_overwrite", {"read.changelog": "true"}),
    ],
)
@pytest.mark.parametrize("limit", [{}, {"maxFilesPerTrigger": "1"}])
def test_changes_are_streamed(spark, tmp_path, table_path, name, options, limit):
    path = table_path(name)
    found = Query(spark, tmp_path, path, **options, **limit)
    found.run()
    expected = spark.read.format("hudi").options(**options).load(path)
    assert found.rows == texts(harness.spark_rows(expected.collect()))
    assert (len(found.batches) > 2) == bool(limit)


def test_net_changes_are_the_outcome_of_a_range_and_of_each_batch(spark, tmp_path, read_path):
    path = str(tmp_path / "t")
    net = {"read.changelog": "true", "read.changelog.net": "true"}
    write(spark, path, [(i, "a", "old") for i in range(3)])
    begin = open_table(path).timeline.completed_writes[0].completion_time
    stream = Query(spark, tmp_path, path, **net).run()
    write(spark, path, [(1, "a", "newer"), (5, "a", "newer")], ts=2)
    write(spark, path, [(1, "a", "newest")], ts=3)
    write(spark, path, [(2, "a", "x"), (5, "a", "x")], **{"hoodie.datasource.write.operation": "delete"})
    found = changes(spark, path, **net, **{"hoodie.datasource.read.begin.instanttime": begin})
    kinds = sorted((r["_rowkind"], r["id"], r["s"]) for r in found.collect())
    assert kinds == [("+U", 1, "newest"), ("-D", 2, "old"), ("-U", 1, "old")]
    stream.run()
    assert [len(rows) for _, rows in sorted(stream.batches.items())] == [3, 3]


def test_the_snapshot_comes_first_as_insertions(spark, tmp_path):
    path = str(tmp_path / "t")
    write(spark, path, [(1, "a", "x"), (2, "b", "x")])
    write(spark, path, [(1, "a", "y")], ts=2)
    options = {"read.changelog": "true", "hoodie.datasource.streaming.startOffset": "snapshot"}
    found = Query(spark, tmp_path, path, **options).run()
    write(spark, path, [(1, "a", "z")], ts=3)
    found.run()
    kinds = [sorted(eval(row)["_rowkind"] for row in rows) for _, rows in sorted(found.batches.items())]
    assert kinds == [["+I", "+I"], ["+U", "-U"]]


def test_the_function_of_hudi_reads_changes_by_name_and_by_path(spark, name, table_path):
    spark.sql(f"CREATE TABLE {name} (id INT, s STRING) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    first = spark.sql(f"SELECT max(_hoodie_commit_time) FROM {name}").first()[0]
    write_again = spark.createDataFrame([(2, "c")], "id int, s string")
    location = spark.sql(f"DESCRIBE EXTENDED {name}").where("col_name = 'Location'").first()["data_type"]
    write_again.write.format("hudi").option("hoodie.table.name", name).mode("append").save(location)

    def asked(arguments: str, columns: str = "id, s") -> list[tuple]:
        return sorted(
            map(tuple, spark.sql(f"SELECT {columns} FROM hudi_table_changes({arguments})").collect())
        )

    assert asked(f"'{name}', 'latest_state', 'earliest'") == [(1, "a"), (2, "c")]
    assert asked(f"'{location}', 'latest_state', 'earliest', '{first}'") == []
    assert asked(f"'{name}', 'changelog', 'earliest'", "_rowkind, id, s") == [
        ("+I", 1, "a"),
        ("+I", 2, "b"),
        ("+U", 2, "c"),
        ("-U", 2, "b"),
    ]
    path = table_path("v9_cow_cdc")
    found = spark.sql(f"SELECT * FROM hudi_table_changes('{path}', 'cdc', 'earliest')")
    assert plain(found) == python_data(path)
    with pytest.raises(Exception, match="latest_state"):
        asked(f"'{name}', 'everything', 'earliest'")
    with pytest.raises(Exception, match="INVALID_ARGUMENTS"):
        asked(f"'{name}'")


def test_a_table_of_the_catalog_streams_its_changes_by_name(spark, tmp_path, name):
    spark.sql(f"CREATE TABLE {name} (id INT, s STRING) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a')")
    found = Query(spark, tmp_path, "")
    found.run(spark.readStream.table(name).select("id"))
    assert found.rows == ["{'id': 1}"]
