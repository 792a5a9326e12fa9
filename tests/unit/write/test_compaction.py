"""Compaction: which slices it takes, and that no reader sees a difference."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi import HudiTableBuilder

import drawstring
from drawstring.model.commit_metadata import WriteStat
from drawstring.model.file_group import BaseFile, FileGroupId, FileSlice, LogFile
from drawstring.schema.meta_columns import prepend_meta_columns
from drawstring.write.compaction import CompactionLimits, CompactionOrder, select_slices
from tests.unit.write.test_hand_tables import EXPECTED, SCHEMA, built, row

MB = 1 << 20


def piece(file_id: str, *log_sizes: int, base: int = 0) -> FileSlice:
    logs = tuple(
        LogFile(f".{file_id}_{n}.log.1_0-0-0", size, file_id, str(n), 1) for n, size in enumerate(log_sizes)
    )
    file = BaseFile(f"{file_id}_0-0-0_1.parquet", base, file_id, "1") if base else None
    return FileSlice(FileGroupId("p", file_id), "1", file, logs)


A, B, C, D = piece("a", 5), piece("b", 2, 2, 2), piece("c", base=9), piece("d", 3, base=9)


def test_slices_with_the_largest_logs_come_first():
    assert select_slices([A, B, C, D], CompactionLimits()) == [B, A, D]
    assert select_slices([A, B, C, D], CompactionLimits(min_log_bytes=5)) == [B, A]
    assert select_slices([A, B, D], CompactionLimits(), busy={B.group}) == [A, D]


def test_other_orders_and_limits():
    numbers = CompactionLimits(CompactionOrder.LOG_NUMBER, min_log_files=2)
    assert select_slices([A, B, C, D], numbers) == [B]
    large = [piece("x", MB, base=10 * MB), piece("y", MB, base=MB), piece("z", MB, base=MB)]
    assert select_slices(large, CompactionLimits(CompactionOrder.BOUNDED, target_io_mb=22)) == large[:2]
    assert select_slices(large, CompactionLimits(CompactionOrder.UNBOUNDED, target_io_mb=1)) == large


def rows_of(path, **options):
    found = drawstring.open_table(str(path), **options).snapshot().scan().to_arrow().to_pylist()
    return sorted(found, key=lambda one: one["id"])


@pytest.mark.parametrize("as_parquet", [False, True])
def test_a_compacted_table_reads_as_before_and_goes_on(tmp_path, as_parquet):
    table = built(tmp_path, as_parquet=as_parquet)
    before = rows_of(tmp_path)
    table.compact()
    tasks = list(drawstring.open_table(str(tmp_path)).snapshot().scan().plan().tasks)
    assert [(len(task.slice.log_files), task.needs_merge) for task in tasks] == [(0, False)]
    after = rows_of(tmp_path)
    assert {one["id"]: one["s"] for one in after} == EXPECTED
    changed = {"_hoodie_file_name"}
    assert [{k: v for k, v in one.items() if k not in changed} for one in after] == [
        {k: v for k, v in one.items() if k not in changed} for one in before
    ]
    theirs = pa.Table.from_batches(HudiTableBuilder.from_base_uri(str(tmp_path)).build().read()).to_pylist()
    assert {one["id"]: one["s"] for one in theirs} == EXPECTED
    instant, base = table.next_time(), tasks[0].slice.base_file
    stat = WriteStat(base.file_id, base.path, "a", file_size=base.size)
    table.commit(instant, [table.log_file(instant, stat, [row(5, 7, s="later")])])
    assert {one["id"]: one["s"] for one in rows_of(tmp_path)} == {**EXPECTED, 5: "later"}


def test_the_schema_of_the_file_is_the_tables(tmp_path):
    table = built(tmp_path, as_parquet=False)
    table.compact()
    (task,) = drawstring.open_table(str(tmp_path)).snapshot().scan().plan().tasks
    with table.storage.open(task.slice.base_file.path) as file:
        assert pq.read_schema(file).names == prepend_meta_columns(SCHEMA).names
