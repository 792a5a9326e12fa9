"""Tables that Apache Hudi wrote: our keys and paths are theirs, and what we would spoil is refused."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import drawstring
from drawstring.errors import UnsupportedTable
from drawstring.schema.meta_columns import PARTITION_PATH, RECORD_KEY
from drawstring.spark.write.keys import key_column, path_column
from drawstring.spark.write.writer import write_dataframe
from drawstring.storage import LocalStorage
from drawstring.write.key_generator import key_generator
from tests.golden import harness

pytestmark = pytest.mark.spark

WITH_KEYS = [
    "v9_cow_complex_key",
    "v9_cow_no_metadata",
    "v9_cow_null_partition",
    "v9_cow_slashes",
    "v9_cow_two_level",
    "v9_cow_typed_partition_int",
    "v9_cow_typed_partition_ts",
    "v9_cow_types",
    "v6_cow_url_encoded_hive",
]


@pytest.mark.parametrize("name", WITH_KEYS)
def test_keys_and_paths_are_those_that_hudi_wrote(spark, tmp_path, name):
    path = str(harness.extract(name, tmp_path))
    table = drawstring.open_table(path)
    pq.write_table(table.snapshot().scan().to_arrow(), str(tmp_path / "rows.parquet"))
    rows = spark.read.parquet(str(tmp_path / "rows.parquet"))
    rule = key_generator(table.config)
    made = (key_column(rows, rule, "0").alias("key"), path_column(rows, rule).alias("path"))
    found = rows.select(RECORD_KEY, *made[:1], PARTITION_PATH, *made[1:]).collect()
    assert found
    assert [(row[1], row[3]) for row in found] == [(row[0], row[2]) for row in found]


def test_hudis_table_without_metadata_table_is_extended(spark, tmp_path):
    path = str(harness.extract("v9_cow_no_metadata", tmp_path))
    before = {row["id"]: row for row in drawstring.open_table(path).snapshot().scan().to_arrow().to_pylist()}
    first, newer = min(before), max(row["ts"] for row in before.values()) + 1
    rows = [(first, before[first]["p"], 1, "updated", newer), (9999, "a", 2, "added", newer)]
    frame = spark.createDataFrame(rows, "id int, p string, v long, s string, ts long")
    result = write_dataframe(frame, path=path, mode="append")
    assert (result.inserted, result.updated) == (1, 1)
    after = {row["id"]: row for row in drawstring.open_table(path).snapshot().scan().to_arrow().to_pylist()}
    assert (after[first]["s"], after[9999]["s"]) == ("updated", "added")
    kept = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "v", "s", "ts")
    untouched = set(before) - {first}
    assert all(after[i][name] == before[i][name] for i in untouched for name in kept)


# One of each kind that is refused; tests/golden/test_writes.py has all of them, and all that are written.
@pytest.mark.parametrize("name", ["v6_cow_add_columns", "v6_mor_event_time", "v9_mor_no_meta"])
def test_table_that_cannot_be_written_is_refused_untouched(spark, tmp_path, name):
    path = str(harness.extract(name, tmp_path))
    storage = LocalStorage(path)
    before = {(e.path, e.size) for e in storage.list(recursive=True)}
    frame = spark.createDataFrame([(1,)], "id int")
    with pytest.raises(UnsupportedTable):
        write_dataframe(frame, path=path, mode="append")
    assert {(e.path, e.size) for e in storage.list(recursive=True)} == before
