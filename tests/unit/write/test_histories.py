"""Seeded histories of every kind of table: rows equal a model, the metadata table equals the table, at every step."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

import drawstring
from drawstring.storage import LocalStorage
from tests.support.histories import COLUMNS, History, Shape, Step
from tests.support.metadata_check import assert_metadata_table_equals_table

SCHEMA = pa.schema(
    [("id", pa.string()), ("p", pa.string()), ("ts", pa.int64()), ("n", pa.int32()), ("v", pa.string())]
)
STEPS = int(os.environ.get("HISTORY_STEPS", "8"))
SEED = int(os.environ.get("HISTORY_SEED", "1"))
_RECORD_INDEX = {"hoodie.metadata.global.record.level.index.enable": "true"}
_PARQUET = {"hoodie.logfile.data.block.format": "parquet"}
_BLOOM = {"hoodie.metadata.index.bloom.filter.enable": "true"}
_LOGS = {"hoodie.log.compaction.inline": "true", "hoodie.log.compaction.blocks.threshold": "2"}
_OFTEN = {"hoodie.metadata.compact.max.delta.commits": "3"}
KINDS = [
    (Shape("COPY_ON_WRITE", True, "BLOOM"), _BLOOM),
    (Shape("COPY_ON_WRITE", False, "RECORD_INDEX"), _RECORD_INDEX | _OFTEN),
    (Shape("COPY_ON_WRITE", True, "BUCKET"), _RECORD_INDEX),
    (Shape("MERGE_ON_READ", True, "SIMPLE"), _PARQUET | _OFTEN),
    (Shape("MERGE_ON_READ", False, "GLOBAL_SIMPLE"), {"hoodie.write.record.positions": "false", **_LOGS}),
    (Shape("MERGE_ON_READ", True, "RECORD_INDEX"), _RECORD_INDEX | _BLOOM | _LOGS),
    (Shape("MERGE_ON_READ", False, "BUCKET"), _RECORD_INDEX | _OFTEN),
    (Shape("MERGE_ON_READ", True, "GLOBAL_BLOOM"), _BLOOM | _PARQUET),
]


def take(path, shape: Shape, step: Step, more: dict[str, str]) -> None:
    """Let drawstring write a step, without Spark, and run the services of it."""
    options = {**shape.options("drawstring", step.operation), **step.options, **more}
    gone = options.pop("hoodie.datasource.write.partitions.to.delete", "")
    operation = options.pop("hoodie.datasource.write.operation")
    table = drawstring.open_table(path)
    if gone:
        done = table.delete_partitions(gone, options=options)
    else:
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in step.rows]
        done = table.write(pa.Table.from_pylist(rows, schema=SCHEMA), operation=operation, options=options)
    assert not [outcome.error for outcome in done.services if outcome.error]
    if step.service == "clean":
        drawstring.open_table(path).clean(options={"hoodie.clean.commits.retained": "2"})
    elif step.service == "compact" and shape.table_type == "MERGE_ON_READ":
        drawstring.open_table(path).compact()


@pytest.mark.parametrize(("shape", "more"), KINDS, ids=[shape.name for shape, _ in KINDS])
def test_rows_and_metadata_table_are_right_after_every_step(tmp_path, shape, more):
    path, history = tmp_path / "t", History(shape, SEED, engines=("drawstring",))
    drawstring.create_table(path, SCHEMA, options={**shape.options("drawstring", "upsert"), **more})
    for _ in range(STEPS):
        take(path, shape, history.next(), more)
        found = drawstring.open_table(path).snapshot().scan().to_arrow().select(COLUMNS).to_pylist()
        assert sorted(tuple(row.values()) for row in found) == sorted(history.rows.values())
        assert_metadata_table_equals_table(LocalStorage(str(path)))


def test_logs_of_a_bucket_bring_new_keys_into_the_record_index(tmp_path):
    """A bucket has one log for updates and inserts: nothing in the commit tells that it holds new keys."""
    shape = Shape("MERGE_ON_READ", False, "BUCKET")
    options = {
        **shape.options("drawstring", "upsert"),
        **_RECORD_INDEX,
        "hoodie.bucket.index.num.buckets": "1",
    }
    path, storage = tmp_path / "t", LocalStorage(str(tmp_path / "t"))
    drawstring.create_table(path, SCHEMA, options=options)
    for number in range(3):
        step = Step("drawstring", "upsert", [(f"k{number}", "a", 1, number, "v"), ("k0", "a", 2, 0, "w")])
        take(path, shape, step, {**_RECORD_INDEX, "hoodie.bucket.index.num.buckets": "1"})
        assert_metadata_table_equals_table(storage, expect=("column_stats", "files", "record_index"))
        drawstring.open_table(path).compact()
