"""INSERT INTO and INSERT OVERWRITE, CREATE TABLE AS SELECT, TRUNCATE and partition DDL."""

from __future__ import annotations

import pytest

import drawstring
from drawstring.errors import InvalidInput, InvalidOption, UnsupportedTable
from tests.integration.test_sql_tables import create, location

pytestmark = pytest.mark.spark

OPERATION = "hoodie.spark.sql.insert.into.operation"


@pytest.fixture
def days(spark, name):
    """A table with a row on each of two days."""
    create(spark, name)
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 1, 'mon'), (2, 'b', 1, 'tue')")
    return name


def test_insert_values_by_position_and_by_column_list(spark, days, query):
    spark.sql(f"INSERT INTO {days} (day, name, id) VALUES ('wed', 'c', 3)")
    spark.sql(f"INSERT INTO {days} PARTITION (day = 'wed') VALUES (4, 'd', 7)")
    spark.sql(f"INSERT INTO {days} PARTITION (day = 'thu') (name, id) SELECT 'e', 5")
    assert query(f"SELECT id, name, ts, day FROM {days}") == [
        (1, "a", 1, "mon"),
        (2, "b", 1, "tue"),
        (3, "c", None, "wed"),
        (4, "d", 7, "wed"),
        (5, "e", None, "thu"),
    ]
    assert query(f"SELECT count(*) FROM {days} WHERE day = 'wed'") == [(2,)]


def test_insert_from_tables_with_meta_columns_and_from_itself(spark, days, query):
    spark.sql(f"INSERT INTO {days} SELECT id + 10, name, ts, day FROM {days}")
    assert query(f"SELECT id FROM {days}") == [(1,), (11,), (12,), (2,)]
    spark.sql(f"INSERT OVERWRITE {days} SELECT * FROM {days} WHERE id < 10")
    assert query(f"SELECT id, day FROM {days}") == [(1, "mon"), (2, "tue")]


def test_insert_keeps_both_rows_of_a_key_unless_told_to_upsert(spark, days, query, settings):
    spark.sql(f"INSERT INTO {days} VALUES (1, 'again', 2, 'mon')")
    assert query(f"SELECT name FROM {days} WHERE id = 1") == [("a",), ("again",)]
    settings(OPERATION, "upsert")
    spark.sql(f"INSERT INTO {days} VALUES (2, 'new', 2, 'tue'), (2, 'old', 1, 'tue')")
    assert query(f"SELECT name FROM {days} WHERE id = 2") == [("new",)]


def test_rows_that_do_not_fit_are_refused_and_nothing_changes(spark, days, query, settings):
    timeline = drawstring.open_table(str(location(spark, days))).timeline.fingerprint
    for statement in (f"INSERT INTO {days} SELECT 1", f"INSERT INTO {days} VALUES ('one', 'a', 1, 'mon')"):
        with pytest.raises(Exception, match="Cannot"):
            spark.sql(statement)
    settings(OPERATION, "merge")
    with pytest.raises(InvalidOption, match="insert, bulk_insert, upsert"):
        spark.sql(f"INSERT INTO {days} VALUES (9, 'z', 1, 'mon')")
    assert drawstring.open_table(str(location(spark, days))).timeline.fingerprint == timeline


def test_null_record_key_is_refused(spark, days, query):
    with pytest.raises(InvalidInput):
        spark.sql(f"INSERT INTO {days} VALUES (NULL, 'z', 1, 'mon')")
    assert query(f"SELECT count(*) FROM {days}") == [(2,)]


def test_overwrite_replaces_the_whole_table_by_default(spark, days, query):
    spark.sql(f"INSERT OVERWRITE {days} VALUES (3, 'c', 1, 'wed')")
    assert query(f"SELECT id, day FROM {days}") == [(3, "wed")]
    assert [row[0] for row in spark.sql(f"SHOW PARTITIONS {days}").collect()] == ["day=wed"]


def test_overwrite_of_a_static_partition(spark, days, query):
    spark.sql(f"INSERT OVERWRITE {days} PARTITION (day = 'mon') SELECT 3, 'c', 1")
    assert query(f"SELECT id, day FROM {days}") == [(2, "tue"), (3, "mon")]
    spark.sql(f"INSERT OVERWRITE {days} PARTITION (day = 'mon') SELECT 1, 'x', 1 WHERE false")
    assert query(f"SELECT id, day FROM {days}") == [(2, "tue")]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.sql.sources.partitionOverwriteMode", "dynamic"),
        ("hoodie.datasource.overwrite.mode", "DYNAMIC"),
    ],
)
def test_dynamic_overwrite_replaces_the_partitions_written_to(spark, days, query, settings, key, value):
    settings(key, value)
    spark.sql(f"INSERT OVERWRITE {days} VALUES (3, 'c', 1, 'mon'), (4, 'd', 1, 'wed')")
    assert query(f"SELECT id, day FROM {days}") == [(2, "tue"), (3, "mon"), (4, "wed")]


def test_unpartitioned_table_is_overwritten_as_a_whole(spark, name, query, settings):
    settings("spark.sql.sources.partitionOverwriteMode", "dynamic")
    spark.sql(f"CREATE TABLE {name} (id INT, v STRING) USING hudi TBLPROPERTIES (primaryKey = 'id')")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    spark.sql(f"INSERT OVERWRITE {name} VALUES (3, 'c')")
    assert query(f"SELECT id, v FROM {name}") == [(3, "c")]


def test_truncate_empties_the_table_and_keeps_its_past(spark, days, query):
    before = drawstring.open_table(str(location(spark, days))).snapshot().latest_instant
    spark.sql(f"TRUNCATE TABLE {days}")
    assert query(f"SELECT * FROM {days}") == []
    assert query(f"SELECT id FROM {days} VERSION AS OF '{before.requested_time}'") == [(1,), (2,)]
    spark.sql(f"INSERT INTO {days} VALUES (5, 'e', 1, 'mon')")
    assert query(f"SELECT id FROM {days}") == [(5,)]


def test_drop_and_truncate_of_one_partition(spark, days, query):
    spark.sql(f"INSERT INTO {days} VALUES (3, 'c', 1, 'wed')")
    spark.sql(f"ALTER TABLE {days} DROP PARTITION (day = 'mon')")
    spark.sql(f"TRUNCATE TABLE {days} PARTITION (day = 'wed')")
    assert query(f"SELECT id, day FROM {days}") == [(2, "tue")]
    assert [row[0] for row in spark.sql(f"SHOW PARTITIONS {days}").collect()] == ["day=tue"]


def test_create_table_as_select(spark, name, query):
    spark.sql(
        f"CREATE TABLE {name} USING hudi PARTITIONED BY (day) TBLPROPERTIES (primaryKey = 'id') "
        "AS SELECT 1 AS id, 'mon' AS day, 'a' AS name UNION ALL SELECT 2, 'tue', 'b'"
    )
    assert query(f"SELECT id, name, day FROM {name}") == [(1, "a", "mon"), (2, "b", "tue")]
    config = drawstring.open_table(str(location(spark, name))).config
    assert (config.record_key_fields, config.partition_fields) == (("id",), ("day",))
    spark.sql(f"INSERT INTO {name} VALUES (3, 'c', 'mon')")
    assert query(f"SELECT count(*) FROM {name} WHERE day = 'mon'") == [(2,)]


def test_failed_create_table_as_select_leaves_nothing_behind(spark, name):
    with pytest.raises(InvalidInput):
        spark.sql(f"CREATE TABLE {name} USING hudi TBLPROPERTIES (primaryKey = 'nope') AS SELECT 1 AS id")
    assert not spark.catalog.tableExists(name)
    assert not location(spark, name).exists()


def test_replace_table_as_select(spark, days, query):
    spark.sql(
        f"CREATE OR REPLACE TABLE {days} USING hudi TBLPROPERTIES (primaryKey = 'k') AS SELECT 'x' AS k, 1.5 AS v"
    )
    assert query(f"SELECT k, CAST(v AS DOUBLE) FROM {days}") == [("x", 1.5)]


def test_table_without_a_key_takes_inserts(spark, name, query):
    spark.sql(f"CREATE TABLE {name} (v STRING) USING hudi")
    spark.sql(f"INSERT INTO {name} VALUES ('a'), ('a')")
    spark.sql(f"INSERT INTO {name} VALUES ('b')")
    assert query(f"SELECT v FROM {name}") == [("a",), ("a",), ("b",)]


def test_cached_results_are_dropped_by_a_write(spark, days):
    spark.sql(f"CACHE TABLE {days}")
    assert spark.table(days).count() == 2
    spark.sql(f"INSERT INTO {days} VALUES (3, 'c', 1, 'wed')")
    assert spark.table(days).count() == 3


@pytest.mark.parametrize(
    ("statement", "instead"),
    [
        ("DELETE FROM {} WHERE id = 1", "operation=delete"),
        ("UPDATE {} SET name = 'z' WHERE id = 1", "operation=upsert"),
        (
            "MERGE INTO {} t USING (SELECT 1 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE",
            r"operation=upsert.*operation=delete",
        ),
    ],
)
def test_row_level_statements_are_refused_by_name(spark, days, statement, instead):
    with pytest.raises(UnsupportedTable, match=f"{statement.split()[0]} .* is not supported.*{instead}"):
        spark.sql(statement.format(days))
