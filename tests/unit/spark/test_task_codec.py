"""Read tasks survive the way to a worker."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

from drawstring.model.file_group import BaseFile, FileGroupId, FileSlice, LogFile
from drawstring.model.read_task import ColumnMapping, KeySpec, MergeSpec, ReadTask
from drawstring.spark.read.task_codec import context_to_wire, task_from_wire, task_to_wire

SLICE = FileSlice(
    FileGroupId("p=1", "f"),
    "001",
    BaseFile("p=1/f_0_001.parquet", 10, "f", "001", "0"),
    (LogFile("p=1/.f_002.log.1_0", 5, "f", "002", 1, "0"),),
)


def round_trip(task: ReadTask) -> ReadTask:
    context, own = json.loads(json.dumps([context_to_wire(task), task_to_wire(task)]))
    return task_from_wire(context, own)


def test_a_task_with_every_field_set_comes_back_equal():
    task = ReadTask(
        SLICE,
        merge=MergeSpec("EVENT_TIME_ORDERING", ("ts",)),
        keys=KeySpec(False, ("id",), "COMPLEX"),
        valid_instants=frozenset({"001", "002"}),
        max_instant="002",
        keep_commit_times=frozenset({"002"}),
        partition_values={"d": dt.date(2026, 1, 2), "n": 1, "x": None, "e": Decimal("1.50"), "b": b"\x00"},
        mappings={"p=1/f_0_001.parquet": (ColumnMapping("a", "b", (ColumnMapping("c", None),)),)},
        file_schema_known_equal=True,
        row_count=3,
    )
    assert round_trip(task) == task


def test_a_task_with_defaults_comes_back_equal():
    assert round_trip(ReadTask(SLICE)) == ReadTask(SLICE)
