"""Files with NaN that drawstring wrote lose no row to a reader that trusts their statistics, such as Spark's own."""

from __future__ import annotations

import glob

import pytest

from drawstring.spark.write.writer import write_dataframe

pytestmark = pytest.mark.spark

NAN, INF = float("nan"), float("inf")
VALUES = [NAN, INF, -INF, 0.0, -0.0, None, 1.0, -1.0, 1e300]
LITERALS = [f"double('{text}')" for text in ("NaN", "Infinity", "-Infinity", "0.0", "-0.0", "1e300")]


def predicates(column: str) -> list[str]:
    compared = [
        f"{column} {op} {value}" for op in ("=", "<=>", "<", "<=", ">", ">=", "<>") for value in LITERALS
    ]
    return [
        *compared,
        f"{column} IN (double('NaN'), 1.0D)",
        f"{column} NOT IN (double('NaN'), 1.0D)",
        f"NOT ({column} < 5.0D)",
        f"{column} BETWEEN 1.0D AND double('NaN')",
        f"{column} IS NULL",
    ]


def test_sparks_own_reader_finds_every_row(spark, tmp_path):
    rows = [(i, value, {"x": value}) for i, value in enumerate(VALUES)]
    frame = spark.createDataFrame(rows, "id int, d double, s struct<x: double>")
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    write_dataframe(frame.coalesce(1), path=str(tmp_path / "t"), mode="append", options=options)
    files = spark.read.parquet(*glob.glob(str(tmp_path / "t" / "*.parquet")))
    memory = {row.id: row for row in frame.selectExpr("id", *_flags()).collect()}
    wrong = []
    for number, predicate in enumerate(predicates("d") + predicates("s.x")):
        expected = {key for key, row in memory.items() if row[f"p{number}"]}
        if {row.id for row in files.where(predicate).select("id").collect()} != expected:
            wrong.append(predicate)
    assert wrong == []


def _flags() -> list[str]:
    # Evaluated as columns: nothing can be passed over.
    return [
        f"({predicate}) as p{number}" for number, predicate in enumerate(predicates("d") + predicates("s.x"))
    ]
