"""Rows that are few, brought to the driver by one job that has no shuffle."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from drawstring.spark.types import arrow_schema
from drawstring.spark.write.jobs import collect_arrow

FEW_BYTES = 64 << 20
"""Rows of so many bytes are collected without being counted before; of twice as many, where they are spread evenly."""


def starts_at_once(df: DataFrame) -> bool:
    """Whether nothing but scans, projections and filters make the rows, so that the first ones cost next to nothing."""
    return bool(_few_rows(df.sparkSession).startAtOnce(df._jdf))


def collect_few(df: DataFrame) -> pa.Table | None:
    """Return all rows; None where they are many, which each task finds out after its first ones."""
    spark = df.sparkSession
    found = _few_rows(spark)(df._jdf, FEW_BYTES)
    rows = collect_arrow(DataFrame(found.rows(), spark))
    return rows if found.areAll() else None


def as_dataframe(like: DataFrame, rows: pa.Table) -> DataFrame:
    """Return rows that were collected as a DataFrame of the same schema."""
    spark = like.sparkSession
    utilities = _jvm(spark).org.apache.spark.sql.api.python.PythonSQLUtils
    with tempfile.TemporaryDirectory() as folder:
        stream = Path(folder) / "rows.arrow"
        plain = rows.cast(arrow_schema(like.schema.json()))
        with pa.ipc.new_stream(str(stream), plain.schema) as writer:
            writer.write_table(plain)
        batches = utilities.readArrowStreamFromFile(str(stream))
    return DataFrame(utilities.toDataFrame(batches, like.schema.json(), spark._jsparkSession), spark)


def _few_rows(spark: SparkSession) -> Any:
    return _jvm(spark).org.apache.spark.sql.hudi.catalog.FewRows


def _jvm(spark: SparkSession) -> Any:
    return spark._jvm
