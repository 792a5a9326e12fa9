"""The tables that benchmarks measure are tables: what is measured is the right work."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import drawstring
from benchmarks import tables
from benchmarks.tables import Shape
from drawstring.model.file_names import bucket_of_file_id
from drawstring.write.bucket_index import BucketRule, bucket_numbers


def test_copy_on_write_table_has_its_rows(tmp_path):
    path = tables.copy_on_write(tmp_path, Shape(4, 100, 7, partitions=2))
    read = drawstring.open_table(str(path)).snapshot().scan().to_arrow()
    assert read.num_rows == 400
    assert [name for name in read.schema.names if not name.startswith("_hoodie")][:3] == ["id", "ts", "p"]


def test_an_evolved_table_shows_the_newer_schema(tmp_path):
    newer = tables.rows_of(Shape(1, 1, 7)).schema.append(pa.field("added", pa.string()))
    path = tables.copy_on_write(tmp_path, Shape(2, 10, 7), schema=newer)
    read = drawstring.open_table(str(path)).snapshot().scan().select("id", "added").to_arrow()
    assert read.column("added").null_count == 20


def test_updates_in_logs_win(tmp_path):
    path = tables.merge_on_read(tmp_path, Shape(2, 100, 10, partitions=2, updated=0.1))
    read = drawstring.open_table(str(path)).snapshot().scan().to_arrow()
    assert read.num_rows == 200
    assert pc.sum(pc.equal(read.column("ts"), 20)).as_py() == 20


def test_files_of_a_listed_table_come_from_its_metadata_table(tmp_path):
    path = tables.listed(tmp_path, Shape(50, 1, 10, partitions=5))
    plan = drawstring.open_table(str(path)).snapshot().scan().where("p = '3'").plan()
    assert len(plan.tasks) == 10


def test_a_bucketed_table_has_each_key_in_its_bucket(tmp_path):
    path = tables.bucketed(tmp_path, Shape(4, 50, 7))
    snapshot = drawstring.open_table(str(path)).snapshot()
    assert snapshot.scan().count() == 200
    for task in snapshot.scan().plan().tasks:
        rows = pq.read_table(path / task.slice.base_file.path, columns=["_hoodie_record_key"])
        numbers = bucket_numbers(rows.column(0).combine_chunks(), BucketRule(4, ("id",)))
        assert set(numbers.tolist()) == {bucket_of_file_id(task.slice.group.file_id)}
