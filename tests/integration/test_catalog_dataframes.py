"""DataFrames written to Hudi tables: by path in every save mode, by name, and read back both ways."""

from __future__ import annotations

import pytest

import drawstring
from drawstring.errors import InvalidInput, InvalidOption
from tests.integration.test_sql_tables import location

pytestmark = pytest.mark.spark

KEYED = {
    "hoodie.table.name": "people",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
}


@pytest.fixture
def people(spark):
    """Make a frame of people."""
    return lambda *rows: spark.createDataFrame(list(rows), "id INT, name STRING, ts INT")


@pytest.fixture
def read(spark):
    """Read a path through V2 and V1, and return the rows if both agree."""

    def rows(path) -> list[tuple]:
        answers = []
        for flag in ("true", "false"):
            frame = spark.read.format("hudi").option("hoodie.datasource.read.use.dsv2", flag).load(str(path))
            answers.append(sorted(tuple(row) for row in frame.select("id", "name").collect()))
        assert answers[0] == answers[1]
        return answers[0]

    return rows


def save(frame, path, mode: str, **options: str) -> None:
    frame.write.format("hudi").options(**{**KEYED, **options}).mode(mode).save(str(path))


def test_every_save_mode(people, read, tmp_path):
    path = tmp_path / "people"
    save(people((1, "a", 1), (2, "b", 1)), path, "errorifexists")
    with pytest.raises(InvalidInput):
        save(people((3, "c", 1)), path, "errorifexists")
    save(people((3, "c", 1)), path, "ignore")
    assert read(path) == [(1, "a"), (2, "b")]
    save(people((2, "newer", 2), (3, "c", 1)), path, "append")
    assert read(path) == [(1, "a"), (2, "newer"), (3, "c")]
    save(people((9, "z", 1)), path, "overwrite")
    assert read(path) == [(9, "z")]


def test_a_read_frame_can_be_written_back(spark, people, read, tmp_path):
    save(people((1, "a", 1)), tmp_path / "people", "append")
    back = (
        spark.read.format("hudi").load(str(tmp_path / "people")).selectExpr("*").withColumnRenamed("x", "y")
    )
    save(back, tmp_path / "copy", "append")
    assert read(tmp_path / "copy") == [(1, "a")]


def test_long_name_of_the_format_and_partition_by(people, tmp_path, read):
    people((1, "a", 1)).write.format("org.apache.hudi").options(**KEYED).partitionBy("name").save(
        str(tmp_path / "t")
    )
    assert drawstring.open_table(str(tmp_path / "t")).config.partition_fields == ("name",)
    assert read(tmp_path / "t") == [(1, "a")]


def test_bad_writes_leave_nothing_behind(people, tmp_path):
    with pytest.raises(InvalidOption, match="upsert"):
        save(people((1, "a", 1)), tmp_path / "t", "append", **{"hoodie.datasource.write.operation": "upsurt"})
    with pytest.raises(InvalidInput):
        save(
            people((1, "a", 1)),
            tmp_path / "t",
            "append",
            **{"hoodie.datasource.write.recordkey.field": "nope"},
        )
    assert not (tmp_path / "t" / ".hoodie").exists()


def test_save_as_table_new_append_and_overwrite(spark, people, name, query):
    def save_as(frame, mode: str) -> None:
        frame.write.format("hudi").options(**{**KEYED, "hoodie.table.name": name}).mode(mode).saveAsTable(
            name
        )

    save_as(people((1, "a", 1), (2, "b", 1)), "errorifexists")
    assert drawstring.open_table(str(location(spark, name))).config.record_key_fields == ("id",)
    save_as(people((3, "c", 1)), "append")
    assert query(f"SELECT id, name FROM {name}") == [(1, "a"), (2, "b"), (3, "c")]
    save_as(people((7, "g", 1)), "ignore")
    save_as(people((4, "d", 1)), "overwrite")
    assert query(f"SELECT id, name FROM {name}") == [(4, "d")]
    people((5, "e", 1)).writeTo(name).append()
    people((6, "f", 1)).write.insertInto(name)
    assert query(f"SELECT id, name FROM {name}") == [(4, "d"), (5, "e"), (6, "f")]


def test_independent_reader_reads_what_sql_wrote(spark, name):
    hudi = pytest.importorskip("hudi")
    spark.sql(
        f"CREATE TABLE {name} (id INT, name STRING, p STRING) USING hudi PARTITIONED BY (p) "
        "TBLPROPERTIES (primaryKey = 'id')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 'x'), (2, 'b', 'y')")
    spark.sql(f"INSERT OVERWRITE {name} PARTITION (p = 'x') SELECT 3, 'c'")
    import pyarrow as pa

    batches = hudi.HudiTableBuilder.from_base_uri(str(location(spark, name))).build().read()
    found = pa.Table.from_batches(batches).select(["id", "name", "p"]).to_pylist()
    assert sorted(tuple(row.values()) for row in found) == [(2, "b", "y"), (3, "c", "x")]


@pytest.mark.parametrize("option", ["hoodie.datasource.read.use.dsv2", "hoodie.datasource.read.use.v2"])
def test_read_path_is_chosen_by_read_then_session_then_table(spark, name, settings, option):
    def scan(**options: str) -> str:
        plan = spark.read.options(**options).table(name)._jdf.queryExecution().toString()
        return "V2" if "BatchScan" in plan else "V1"

    spark.sql(f"CREATE TABLE {name} (id INT) USING hudi TBLPROPERTIES ('{option}' = 'true')")
    try:
        spark.conf.unset("hoodie.datasource.read.use.dsv2")
        assert scan() == "V2"
        spark.conf.set(option, "false")
        assert scan() == "V1"
        assert scan(**{option: "true"}) == "V2"
        with pytest.raises(InvalidOption, match="expected one of true, false") as caught:
            scan(**{option: "maybe"})
        assert caught.value.condition == "INVALID_OPTION_VALUE"
        assert caught.value.fields == {"key": option, "value": "maybe", "allowed": ["true", "false"]}
    finally:
        spark.conf.unset(option)
        spark.conf.set("hoodie.datasource.read.use.dsv2", "true")
