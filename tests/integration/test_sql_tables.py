"""CREATE, DESCRIBE, SHOW, DROP and TRUNCATE of Hudi tables, beside tables of other providers."""

from __future__ import annotations

from pathlib import Path

import pytest

import drawstring
from drawstring.errors import IncompatibleSchema, InvalidInput, InvalidOption, UnsupportedTable
from drawstring.schema.meta_columns import META_COLUMNS

pytestmark = pytest.mark.spark

COLUMNS = "(id INT, day STRING, name STRING, ts BIGINT)"


def location(spark, name: str) -> Path:
    return Path(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")) / name


def create(
    spark, name: str, *, properties: str = "primaryKey = 'id', orderingFields = 'ts'", more: str = ""
) -> None:
    spark.sql(
        f"CREATE TABLE {name} {COLUMNS} USING hudi PARTITIONED BY (day) TBLPROPERTIES ({properties}) {more}"
    )


def test_created_table_is_a_hudi_table_with_meta_columns_first(spark, name, query):
    create(spark, name, properties="type = 'cow', primaryKey = 'id', preCombineField = 'ts'")
    assert query(f"SELECT * FROM {name}") == []
    assert spark.table(name).columns == [*META_COLUMNS, "id", "name", "ts", "day"]
    config = drawstring.open_table(str(location(spark, name))).config
    assert (config.name, config.database, config.version) == (name, "default", 9)
    assert config.record_key_fields == ("id",)
    assert config.ordering_fields == ("ts",)
    assert config.partition_fields == ("day",)
    assert config.hive_style


def test_options_clause_is_as_good_as_table_properties(spark, name):
    spark.sql(f"CREATE TABLE {name} {COLUMNS} USING hudi OPTIONS (primaryKey = 'id', orderingFields = 'ts')")
    config = drawstring.open_table(str(location(spark, name))).config
    assert (config.record_key_fields, config.ordering_fields) == (("id",), ("ts",))


def test_a_misspelt_table_property_is_warned_about(spark, name, caplog):
    create(spark, name, properties="primaryKeys = 'id', orderingFields = 'ts', team = 'blue'")
    assert [record.getMessage() for record in caplog.records if "no effect" in record.getMessage()] == [
        "The table property primaryKeys has no effect. Did you mean primaryKey?"
    ]


def test_create_if_not_exists_and_create_again(spark, name):
    create(spark, name)
    spark.sql(f"CREATE TABLE IF NOT EXISTS {name} (other INT) USING hudi")
    assert "other" not in spark.table(name).columns
    with pytest.raises(Exception, match="already exists"):
        spark.sql(f"CREATE TABLE {name} (other INT) USING hudi")


def test_describe_and_show(spark, name):
    create(spark, name)
    described = {row[0]: row[1] for row in spark.sql(f"DESCRIBE EXTENDED {name}").collect()}
    assert described["id"] == "int"
    assert described["Provider"] == "hudi"
    assert described["Location"].endswith(name)
    assert name in [row.tableName for row in spark.sql("SHOW TABLES").collect()]
    assert ("primaryKey", "id") in [tuple(row) for row in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()]
    assert "USING hudi" in spark.sql(f"SHOW CREATE TABLE {name}").first()[0]
    assert spark.catalog.tableExists(name)


def test_drop_removes_the_files_of_a_managed_table_only(spark, name, tmp_path):
    create(spark, name)
    spark.sql(f"DROP TABLE {name}")
    assert not location(spark, name).exists()
    assert not spark.catalog.tableExists(name)
    create(spark, name, more=f"LOCATION '{tmp_path / 'external'}'")
    spark.sql(f"DROP TABLE {name}")
    assert (tmp_path / "external" / ".hoodie").exists()


def test_drop_purge_removes_the_files_of_an_external_table(spark, name, tmp_path):
    create(spark, name, more=f"LOCATION '{tmp_path / 'external'}'")
    spark.sql(f"DROP TABLE {name} PURGE")
    assert not (tmp_path / "external").exists()
    assert not spark.catalog.tableExists(name)


def test_table_over_an_existing_location_takes_its_columns(spark, name, tmp_path, query):
    folder = str(tmp_path / "written")
    frame = spark.createDataFrame([(1, "a", "x")], "id INT, p STRING, value STRING")
    options = {"hoodie.table.name": "written", "hoodie.datasource.write.recordkey.field": "id"}
    options["hoodie.datasource.write.partitionpath.field"] = "p"
    frame.write.format("hudi").options(**options).save(folder)
    spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{folder}'")
    assert query(f"SELECT id, p, value FROM {name}") == [(1, "a", "x")]
    spark.sql(f"INSERT INTO {name} VALUES (2, 'b', 'y')")
    assert query(f"SELECT id, p, value FROM {name}") == [(1, "a", "x"), (2, "b", "y")]
    rows = spark.sql(f"SHOW PARTITIONS {name}").collect()
    assert [row.partition for row in rows] == ["p=a", "p=b"]


def test_statement_that_contradicts_the_existing_table_is_refused(spark, name, tmp_path):
    folder = str(tmp_path / "there")
    create(spark, name, more=f"LOCATION '{folder}'")
    spark.sql(f"DROP TABLE {name}")
    with pytest.raises(InvalidOption, match="TABLE_SETTINGS_DIFFER"):
        create(spark, name, properties="primaryKey = 'name'", more=f"LOCATION '{folder}'")
    with pytest.raises(IncompatibleSchema, match="declares column id as string"):
        spark.sql(f"CREATE TABLE {name} (id STRING) USING hudi LOCATION '{folder}'")
    assert not spark.catalog.tableExists(name)


@pytest.mark.parametrize(
    ("properties", "error", "message"),
    [
        ("primaryKey = 'nope'", InvalidInput, "'nope' is not among the table's columns: id, name, ts, day"),
        ("orderingFields = 'nope'", InvalidInput, "ordering column 'nope'"),
        ("type = 'cold'", InvalidOption, "expected 'cow'"),
        ("primaryKey = 'id', hoodie.datasource.write.recordkey.field = 'ts'", InvalidOption, "Keep one"),
    ],
)
def test_bad_statement_leaves_nothing_behind(spark, name, properties, error, message):
    with pytest.raises(error, match=message):
        create(spark, name, properties=properties)
    assert not spark.catalog.tableExists(name)
    assert not location(spark, name).exists()


def test_table_without_columns_and_without_a_table_to_take_over(spark, name, tmp_path):
    with pytest.raises(InvalidInput, match="names no columns"):
        spark.sql(f"CREATE TABLE {name} USING hudi LOCATION '{tmp_path / 'nothing'}'")
    assert not (tmp_path / "nothing").exists()


def test_partition_transforms_are_refused(spark, name):
    with pytest.raises(InvalidOption, match="partitioned by columns"):
        spark.sql(f"CREATE TABLE {name} {COLUMNS} USING hudi PARTITIONED BY (bucket(4, id))")


def test_alter_table_changes_properties_and_refuses_columns(spark, name):
    create(spark, name)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('note' = 'kept')")
    assert ("note", "kept") in [tuple(row) for row in spark.sql(f"SHOW TBLPROPERTIES {name}").collect()]
    with pytest.raises(UnsupportedTable, match=r"AddColumn is not supported.*first write that carries it"):
        spark.sql(f"ALTER TABLE {name} ADD COLUMNS (extra INT)")
    with pytest.raises(UnsupportedTable, match=r"DeleteColumn is not supported.*Apache Hudi"):
        spark.sql(f"ALTER TABLE {name} DROP COLUMN ts")


def test_a_partition_is_not_added_without_rows(spark, name):
    spark.sql(f"CREATE TABLE {name} (id INT, day STRING) USING hudi PARTITIONED BY (day)")
    with pytest.raises(UnsupportedTable, match=r"ADD_PARTITION_UNSUPPORTED.*first row"):
        spark.sql(f"ALTER TABLE {name} ADD PARTITION (day = 'mon')")


@pytest.mark.parametrize("source", ["hudi", "parquet"])
def test_a_hudi_table_is_not_made_like_another_one(spark, name, source):
    spark.sql(f"CREATE TABLE {name} (id INT) USING {source}")
    target = f"{name}_like"
    # From Spark 4.3 on the catalog is asked, and Spark itself says that it has no such statement.
    with pytest.raises(Exception, match=r"CREATE_TABLE_LIKE_UNSUPPORTED|does not support CREATE TABLE LIKE"):
        spark.sql(f"CREATE TABLE {target} LIKE {name} USING hudi")
    assert not spark.catalog.tableExists(target)


def test_other_providers_are_left_to_spark(spark, name):
    spark.sql(f"CREATE TABLE {name} (id INT, p STRING) USING parquet PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'x'), (2, 'y')")
    spark.sql(f"INSERT OVERWRITE {name} PARTITION (p = 'x') SELECT 3")
    assert sorted(map(tuple, spark.sql(f"SELECT * FROM {name}").collect())) == [(2, "y"), (3, "x")]
    assert [row[0] for row in spark.sql(f"SHOW PARTITIONS {name}").collect()] == ["p=x", "p=y"]
    spark.sql(f"TRUNCATE TABLE {name}")
    assert spark.table(name).count() == 0
    spark.sql(f"DROP TABLE {name}")
    spark.sql(f"CREATE TABLE {name} USING parquet AS SELECT 1 AS a")
    assert spark.table(name).collect()[0].a == 1


def test_a_float_equals_its_own_literal(spark, query, name):
    spark.sql(f"CREATE TABLE {name} (id INT, f FLOAT) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 0.1), (2, 0.1), (3, 0.7)")
    assert query(f"SELECT id FROM {name} WHERE f = CAST(0.1 AS FLOAT)") == [(1,), (2,)]
    assert query(f"SELECT id FROM {name} WHERE f <= CAST(0.1 AS FLOAT)") == [(1,), (2,)]
    assert query(f"SELECT id FROM {name} WHERE f IN (CAST(0.7 AS FLOAT))") == [(3,)]
