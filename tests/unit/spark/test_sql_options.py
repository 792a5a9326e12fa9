"""SQL's spellings and Hudi's rules for INSERT, as options."""

from __future__ import annotations

import pyarrow as pa
import pytest

from drawstring.errors import InvalidInput, InvalidOption
from drawstring.spark.write import sql_options
from drawstring.spark.write.sql_options import OPERATION, ORDERING, PARTITION_PATH, RECORD_KEY, TABLE_TYPE


def test_short_names_become_write_options():
    found = sql_options.hoodie_options(
        {"primaryKey": "id", "type": "mor", "orderingFields": "ts", "hoodie.x": "1", "owner": "me"}
    )
    assert found == {RECORD_KEY: "id", TABLE_TYPE: "MERGE_ON_READ", ORDERING: "ts", "hoodie.x": "1"}


def test_both_names_of_the_ordering_field_are_one_setting():
    assert sql_options.hoodie_options({"preCombineField": "ts", "orderingFields": "ts"}) == {ORDERING: "ts"}


def test_two_values_for_one_setting_are_refused():
    with pytest.raises(InvalidOption, match="Keep one"):
        sql_options.hoodie_options({"primaryKey": "id", RECORD_KEY: "other"})


def test_unknown_table_type_is_refused_with_what_is_allowed():
    with pytest.raises(InvalidOption, match="'cow'") as caught:
        sql_options.hoodie_options({"type": "cold"})
    assert caught.value.fields["allowed"] == ["cow", "mor"]


def test_tables_of_sql_are_hive_style_unless_told_otherwise():
    def options(properties):
        return sql_options.table_options(properties, table="t", database="d", partition_columns=["p", "q"])

    assert options({})[sql_options.HIVE_STYLE] == "true"
    assert options({})[PARTITION_PATH] == "p,q"
    assert options({sql_options.HIVE_STYLE: "false"})[sql_options.HIVE_STYLE] == "false"


@pytest.mark.parametrize("key", [RECORD_KEY, ORDERING, PARTITION_PATH])
def test_columns_that_the_table_lacks_are_refused(key):
    schema = pa.schema([("id", pa.int64()), ("p", pa.string())])
    sql_options.check_columns({key: "ID"}, schema)
    with pytest.raises(InvalidInput, match=r"'missing'.*id, p"):
        sql_options.check_columns({key: "id,missing"}, schema)


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ([{}], "insert"),
        ([{}, {"hoodie.spark.sql.insert.into.operation": "upsert"}], "upsert"),
        ([{OPERATION: "bulk_insert"}, {"hoodie.spark.sql.insert.into.operation": "upsert"}], "bulk_insert"),
        ([{"hoodie.sql.bulk.insert.enable": "true"}], "bulk_insert"),
        ([{"hoodie.sql.insert.mode": "upsert"}], "upsert"),
        ([{"hoodie.sql.insert.mode": "non-strict"}], "insert"),
    ],
)
def test_operation_of_insert_into(layers, expected):
    assert sql_options.insert_operation(*layers) == expected


def test_unknown_insert_operation_is_refused():
    with pytest.raises(InvalidOption, match="insert, bulk_insert, upsert"):
        sql_options.insert_operation({"hoodie.spark.sql.insert.into.operation": "merge"})


@pytest.mark.parametrize(
    ("kind", "settings", "partitioned", "whole"),
    [
        ("table", {}, True, True),
        ("dynamic", {}, True, False),
        ("dynamic", {}, False, True),
        ("table", {"hoodie.datasource.overwrite.mode": "dynamic"}, True, False),
        ("dynamic", {"hoodie.datasource.overwrite.mode": "static"}, True, True),
        ("table", {OPERATION: "insert_overwrite"}, True, False),
        ("dynamic", {OPERATION: "insert_overwrite_table"}, True, True),
    ],
)
def test_what_insert_overwrite_replaces(kind, settings, partitioned, whole):
    assert sql_options.overwrites_table(kind, settings, partitioned=partitioned) is whole
