"""Record keys and partition paths as Spark columns agree with those of Arrow columns, and with Hudi's."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import drawstring
from drawstring.errors import DrawstringError
from drawstring.schema.time_partitions import TimePartition
from drawstring.spark.types import arrow_schema
from drawstring.spark.write.jobs import as_drawstring_error
from drawstring.spark.write.keys import key_column, path_column
from drawstring.spark.write.writer import write_dataframe
from drawstring.write.key_generator import KeyGenerator, partition_paths, record_keys
from tests.time_partition_cases import CASES

pytestmark = pytest.mark.spark

TYPED = """
    SELECT * FROM VALUES
      (1, true, 1Y, 9L, 1.5F, 1.5D, 1.50BD, CAST('1E-10' AS DECIMAL(30,10)), X'00FF41', 'a b', NULL),
      (2, false, -1Y, -9L, CAST('NaN' AS FLOAT), -0.0D, -0.05BD, CAST('0' AS DECIMAL(30,10)), X'', '', 'x%y'),
      (3, NULL, NULL, NULL, CAST('1E-5' AS FLOAT), 1E10D, NULL, CAST('-123E-7' AS DECIMAL(30,10)), NULL, NULL, 'é/'),
      (4, true, 1Y, 7L, 3.4E38F, 123456789.123D, 0.00BD, CAST('-12.34E-8' AS DECIMAL(30,10)), X'80', 'q', 'a=b')
      AS t(n, b, i8, l, f, d, c, c2, x, s, s2)
"""


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_spark_and_arrow_write_values_of_every_type_alike(spark, ansi):
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        frame = spark.sql(TYPED).selectExpr(
            "*",
            "date'2024-03-05' as dt",
            "timestamp'1969-12-31 23:59:59.999999' as ts",
            "timestamp_ntz'1900-01-01 00:00:00.000001' as ntz",
        )
        names = tuple(frame.columns)
        rule = KeyGenerator(names, names, True, True, True)
        rows = frame.select(
            "*", key_column(frame, rule, "").alias("key"), path_column(frame, rule).alias("path")
        )
        found = rows.orderBy("n").toArrow() if hasattr(rows, "toArrow") else _arrow(rows.orderBy("n"))
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    batch = found.select(list(names)).combine_chunks().to_batches()[0]
    assert found.column("key").to_pylist() == record_keys(batch, rule).to_pylist()
    assert found.column("path").to_pylist() == partition_paths(batch, rule).to_pylist()


def _arrow(frame) -> pa.Table:
    return pa.Table.from_pylist(
        [row.asDict(recursive=True) for row in frame.collect()], schema=arrow_schema(frame.schema.json())
    )


KINDS = (
    *("unix_d", "unix_dec", "unix_s", "ms_zone", "ms_hiveurl", "us_l", "ts_us", "date_days", "scalar_hours"),
    *("ds_iso2", "ds_in_out", "ds_bad", "mixed_l", "ntz"),
)
"""The rest differs in nothing that Spark sees."""


@pytest.mark.parametrize("case", [c for c in CASES if c.name in KINDS], ids=lambda case: case.name)
def test_times_become_the_paths_that_hudi_makes(spark, case, monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    rows = list(enumerate(case.values))
    frame = spark.createDataFrame(rows, "n int, t string").selectExpr("n", f"cast(t as {case.kind}) as t")

    def paths() -> list[str]:
        time = TimePartition.of(case.settings)
        rule = KeyGenerator(("n",), ("t",), False, case.hive_style, case.url_encode, frozenset({"t"}), time)
        return [row[0] for row in frame.orderBy("n").select(path_column(frame, rule)).collect()]

    if case.paths is not None:
        assert paths() == case.paths
        return
    with pytest.raises(Exception) as caught:  # noqa: PT011 (Spark's, or drawstring's when it is known at once)
        paths()
    assert isinstance(as_drawstring_error(caught.value), DrawstringError)


TIME = {
    "hoodie.table.name": "events",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    "hoodie.keygen.timebased.timezone": "UTC",
}


@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {
                "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
                "hoodie.datasource.write.partitionpath.field": "t",
            },
            {1: "2023/11/14", 2: "1970/01/01"},
        ),
        (
            {"hoodie.datasource.write.partitionpath.field": "p:simple,t:timestamp"},
            {1: "a/2023/11/14", 2: "b/1970/01/01"},
        ),
    ],
    ids=["timestamp", "custom"],
)
def test_tables_of_times_are_written_and_written_again(spark, tmp_path, options, expected, operation):
    path = str(tmp_path / "events")
    rows = spark.createDataFrame(
        [(1, 1700000000123, "a", "x"), (2, None, "b", "x")], "id int, t long, p string, v string"
    )
    settings = {**TIME, **options, "hoodie.datasource.write.operation": operation}
    write_dataframe(rows, path=path, mode="append", options=settings)
    write_dataframe(
        rows.withColumn("v", F.lit("y")),
        path=path,
        mode="append",
        options={"hoodie.datasource.write.operation": "upsert"},
    )
    found = (
        drawstring.open_table(path).snapshot().scan().select("id", "_hoodie_partition_path", "v").to_arrow()
    )
    assert {row["id"]: row["_hoodie_partition_path"] for row in found.to_pylist()} == expected
    assert found.column("v").to_pylist() == ["y", "y"]
    assert len(found) == 2
