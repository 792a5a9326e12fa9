"""Write options through Spark: every road into a table refuses what it cannot do, in any letter case."""

from __future__ import annotations

import pytest

from drawstring.errors import InvalidOption
from tests.integration.test_sql_tables import create

pytestmark = pytest.mark.spark

SYNC = "hoodie.datasource.hive_sync.enable"


def test_a_dataframe_write_refuses_by_name_and_writes_nothing(spark, tmp_path):
    path = str(tmp_path / "t")
    rows = spark.createDataFrame([(1,)], "id int")
    for key in (SYNC, SYNC.upper()):
        with pytest.raises(InvalidOption, match=SYNC):
            rows.write.format("hudi").options(**{"hoodie.table.name": "t", key: "true"}).save(path)
    assert list(tmp_path.iterdir()) == []
    # As in Hudi, a DataFrame's write takes no settings of the session, and keys in any letter case.
    spark.conf.set(SYNC, "true")
    try:
        rows.write.format("hudi").options(**{"HOODIE.Table.Name": "t", SYNC.upper(): "false"}).save(path)
    finally:
        spark.conf.unset(SYNC)
    assert spark.read.format("hudi").load(path).count() == 1


def test_sql_refuses_what_the_session_or_the_table_asks_for(spark, name):
    create(spark, name)
    spark.conf.set(SYNC, "true")
    try:
        with pytest.raises(InvalidOption, match=SYNC):
            spark.sql(f"INSERT INTO {name} VALUES (1, 'a', 1, 'mon')")
    finally:
        spark.conf.unset(SYNC)
    assert spark.table(name).count() == 0
    with pytest.raises(InvalidOption, match=r"hoodie\.metrics\.on"):
        spark.sql(f"CREATE TABLE {name}_2 (id INT) USING hudi TBLPROPERTIES ('hoodie.metrics.on' = 'true')")
