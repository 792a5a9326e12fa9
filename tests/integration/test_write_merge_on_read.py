"""Merge-on-read tables through Spark: DataFrame, SQL and saveAsTable, read back by V2, V1 and an independent reader."""

from __future__ import annotations

from pathlib import Path

import hudi
import pyarrow as pa
import pytest

import drawstring
from drawstring.formats.log_blocks import Header, scan_log_file
from drawstring.spark.write import few_rows
from drawstring.spark.write import rows as spark_rows
from drawstring.spark.write.writer import write_dataframe

pytestmark = pytest.mark.spark

COLUMNS = "id int, city string, ts long, v string"
OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.datasource.write.precombine.field": "ts",
}
NAMES = ("id", "city", "v")


@pytest.fixture(params=["collected", "shuffled"])
def road(request, monkeypatch):
    """Rows that are few are collected and located by the driver; here also as if they were many."""
    if request.param == "shuffled":
        monkeypatch.setattr(few_rows, "FEW_BYTES", 0)
        monkeypatch.setattr(spark_rows, "COLLECTED_BYTES", -1)
    return request.param


def rows_of(spark, path: str) -> list[tuple]:
    """The rows as V2, V1, Arrow and hudi-rs read them, all the same."""
    ways = [
        [row.asDict() for row in spark.read.format("hudi").load(path).collect()],
        [
            row.asDict()
            for row in spark.read.format("hudi")
            .option("hoodie.datasource.read.use.dsv2", "false")
            .load(path)
            .collect()
        ],
        drawstring.open_table(path).snapshot().scan().to_arrow().to_pylist(),
        [
            row
            for batch in hudi.HudiTableBuilder.from_base_uri(path).build().read()
            for row in pa.record_batch(batch).to_pylist()
        ],
    ]
    found = [sorted((tuple(row[name] for name in NAMES) for row in rows), key=repr) for rows in ways]
    assert found[0] == found[1] == found[2] == found[3]
    return found[0]


def test_operations(spark, tmp_path, road):
    path = str(tmp_path / "trips")

    def write(rows, columns=COLUMNS, op="upsert"):
        frame = spark.createDataFrame(rows, columns)
        options = {**OPTIONS, "hoodie.datasource.write.operation": op}
        return write_dataframe(frame, path=path, mode="append", options=options)

    write([(1, "oslo", 1, "a"), (2, "oslo", 1, "b"), (3, "rome", 1, "c")])
    changed = write([(1, "oslo", 2, "A"), (2, "oslo", 0, "late"), (4, "bern", 1, "d")])
    assert (changed.inserted, changed.updated) == (1, 2)
    assert rows_of(spark, path) == [(1, "oslo", "A"), (2, "oslo", "b"), (3, "rome", "c"), (4, "bern", "d")]
    (log,) = Path(path).glob("*/.*.log.*")
    storage = drawstring.open_table(path).storage
    (block,) = scan_log_file(storage, str(log.relative_to(path))).blocks
    assert Header.RECORD_POSITIONS in block.headers
    assert write([(3, "rome")], "id int, city string", op="delete").deleted == 1
    write([(5, "oslo", 1, "e"), (1, "oslo", 3, "again")])
    write([(6, "rome", 1, "f")], op="bulk_insert")
    assert rows_of(spark, path) == [
        (1, "oslo", "again"),
        (2, "oslo", "b"),
        (4, "bern", "d"),
        (5, "oslo", "e"),
        (6, "rome", "f"),
    ]
    write([(7, "oslo", 1, "g")], op="insert_overwrite")
    assert rows_of(spark, path) == [(4, "bern", "d"), (6, "rome", "f"), (7, "oslo", "g")]


def test_sql_and_save_as_table(spark, name, tmp_path):
    spark.sql(
        f"CREATE TABLE {name} (id INT, city STRING, ts BIGINT, v STRING) USING hudi PARTITIONED BY (city) "
        "TBLPROPERTIES (type = 'mor', primaryKey = 'id', orderingFields = 'ts')"
    )
    place = Path(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:")) / name
    assert drawstring.open_table(str(place)).config.is_merge_on_read
    spark.sql(f"INSERT INTO {name} (id, ts, v, city) VALUES (1, 1, 'a', 'oslo'), (2, 1, 'b', 'oslo')")
    upserted = {"hoodie.datasource.write.operation": "upsert"}
    more = spark.createDataFrame([(1, "oslo", 2, "A"), (3, "rome", 1, "c")], COLUMNS)
    more.select("id", "ts", "v", "city").write.format("hudi").options(**upserted).mode("append").saveAsTable(
        name
    )
    assert sorted(map(tuple, spark.sql(f"SELECT id, city, v FROM {name}").collect())) == [
        (1, "oslo", "A"),
        (2, "oslo", "b"),
        (3, "rome", "c"),
    ]
    spark.sql(f"INSERT OVERWRITE {name} PARTITION (city = 'oslo') SELECT 9, 9L, 'z'")
    assert rows_of(spark, str(place)) == [(3, "rome", "c"), (9, "oslo", "z")]
    spark.sql(
        f"CREATE TABLE {name}_copy USING hudi LOCATION '{tmp_path / 'copy'}' TBLPROPERTIES (type = 'mor', "
        f"primaryKey = 'id') AS SELECT id, city, ts, v FROM {name}"
    )
    assert drawstring.open_table(str(tmp_path / "copy")).config.is_merge_on_read
    assert rows_of(spark, str(tmp_path / "copy")) == [(3, "rome", "c"), (9, "oslo", "z")]
    spark.sql(f"DROP TABLE {name}_copy")
