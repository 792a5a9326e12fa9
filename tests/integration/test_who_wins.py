"""Combining rows of one key through Spark decides as merging does, and among equals by the input's own order."""

from __future__ import annotations

import pytest

import drawstring
from drawstring.schema.meta_columns import PARTITION_PATH, RECORD_KEY
from drawstring.spark.write.jobs import latest_of_each_key
from drawstring.spark.write.writer import write_dataframe
from tests.ordering_values import ASCENDING, pairs

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("kind", sorted(ASCENDING))
def test_spark_keeps_the_row_that_merging_keeps(spark, kind):
    found = pairs(kind, null=True)
    rows = [("", key, a, "first") for key, a, _, _ in found] + [
        ("", key, b, "second") for key, _, b, _ in found
    ]
    schema = f"{PARTITION_PATH} string, {RECORD_KEY} string, o {kind}, v string"
    frame = spark.createDataFrame(rows, schema).coalesce(1)
    kept = latest_of_each_key(frame, ("o",)).select(RECORD_KEY, "v").collect()
    assert dict(map(tuple, kept)) == {key: winner for key, _, _, winner in found}


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.datasource.write.operation": "upsert", "hoodie.datasource.write.precombine.field": "ts"},
        {"hoodie.datasource.write.operation": "upsert"},
        {"hoodie.datasource.write.operation": "bulk_insert", "hoodie.combine.before.insert": "true"},
    ],
    ids=["event time", "commit time", "bulk insert"],
)
def test_of_equal_rows_the_last_in_the_input_wins_after_a_shuffle(spark, tmp_path, options):
    rows = spark.range(0, 4000, 1, 8).selectExpr("id % 500 as k", "1 as ts", "id as v")
    path = str(tmp_path / "t")
    settings = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "k", **options}
    write_dataframe(rows, path=path, mode="append", options=settings)
    table = drawstring.open_table(path).snapshot().scan().select("k", "v").to_arrow()
    assert dict(zip(*table.to_pydict().values(), strict=True)) == {k: 3500 + k for k in range(500)}
