"""Logs merged with one another: no reader sees a difference, and the plan is one of Hudi's."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import drawstring
from drawstring.formats.log_blocks import BlockType, Header, scan_log_file
from drawstring.storage import LocalStorage
from drawstring.write.transaction import Transaction
from tests.support.metadata_check import assert_metadata_table_equals_table
from tests.support.trips_table import OPTIONS, SCHEMA, rows, seen

MERGED = {**OPTIONS, "hoodie.table.type": "MERGE_ON_READ"}
FEW = {"hoodie.log.compaction.blocks.threshold": "2"}
COMMIT_TIME = {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}


def blocks_of(table, instant: str) -> list:
    logs = sorted(Path(table.path).glob(f"oslo/.*_{instant}.log.*"))
    found = [scan_log_file(table.storage, str(log.relative_to(table.path))).blocks for log in logs]
    return [block for several in found for block in several]


def changed(path, more=None):
    """A table whose one group has logs of every kind: newer, late and deleted rows, and rows that came back."""
    table = drawstring.create_table(path, SCHEMA, options={**MERGED, **(more or {})})
    table.write(rows(*((key, "oslo", 10, f"first{key}") for key in range(7))))
    table.write(rows((0, "oslo", 20, "newer"), (1, "oslo", 5, "late"), (2, "oslo", 10, "same")))
    table.write(rows((3, "oslo", 0, ""), (4, "oslo", 0, "")).select(["id", "city"]), operation="delete")
    table.write(rows((0, "oslo", 15, "between"), (4, "oslo", 30, "back"), (5, "oslo", 11, "newer")))
    return table


@pytest.mark.parametrize("more", [{}, COMMIT_TIME], ids=["event time", "commit time"])
def test_no_reader_sees_a_difference(tmp_path, more):
    table = changed(tmp_path / "t", more)
    before, storage = seen(table, "id", "ts", "v", "_hoodie_commit_time"), LocalStorage(str(tmp_path / "t"))
    newest = table.snapshot().latest_instant.requested_time
    (planned,) = table.compact(logs_only=True, options=FEW, dry_run=True).compactions
    assert [len(group.log_files) for group in planned.groups] == [3]
    assert seen(table, "id", "ts", "v", "_hoodie_commit_time") == before
    (done,) = table.compact(logs_only=True, options=FEW).compactions
    assert seen(table, "id", "ts", "v", "_hoodie_commit_time") == before
    assert_metadata_table_equals_table(storage)
    found = blocks_of(table, done.instant)
    assert {block.type for block in found} == {BlockType.AVRO_DATA, BlockType.DELETE}
    assert {len(block.headers[Header.COMPACTED_BLOCK_TIMES].split(",")) for block in found} == {3}
    state = table.state()
    (instant,) = [i for i in state.timeline.completed_writes if i.requested_time == done.instant]
    assert (instant.action.value, state.metadata(instant).operation) == ("deltacommit", "LOG_COMPACT")
    since = state.timeline.by_requested_time[newest].completion_time
    assert not table.incremental(since).scan().to_arrow().num_rows
    # One block stands for all, so there is nothing more to do.
    assert not table.compact(
        logs_only=True, options={"hoodie.log.compaction.blocks.threshold": "3"}
    ).compactions


def test_writes_compactions_and_further_log_compactions_go_on_from_it(tmp_path):
    table = changed(tmp_path / "t")
    first = table.compact(logs_only=True, options=FEW).compactions[0]
    table.write(rows((1, "oslo", 40, "after"), (3, "oslo", 40, "again")))
    expected = seen(table)
    (second,) = table.compact(logs_only=True, options=FEW).compactions
    assert first.instant in blocks_of(table, second.instant)[0].headers[Header.COMPACTED_BLOCK_TIMES]
    assert seen(table) == expected
    assert table.compact().compactions
    assert seen(table) == expected
    assert {1: "after", 3: "again", 4: "back"}.items() <= {key: v for key, _, v in expected}.items()
    assert_metadata_table_equals_table(LocalStorage(str(tmp_path / "t")))


def test_it_runs_after_a_write_when_there_are_so_many_delta_commits(tmp_path):
    table = changed(tmp_path / "t")
    inline = {"hoodie.log.compaction.inline": "true", "hoodie.log.compaction.blocks.threshold": "3"}
    told = [
        [
            outcome.service
            for outcome in table.write(rows((0, "oslo", 50 + n, f"{n}")), options=inline).services
        ]
        for n in range(4)
    ]
    assert told == [["log compaction"], [], [], ["log compaction"]]
    assert (0, "oslo", "3") in seen(table)


def test_a_plan_waits_for_pending_writes_and_is_run_by_whoever_comes(tmp_path):
    table = changed(tmp_path / "t")
    pending = Transaction.begin(table.storage, operation="UPSERT")
    assert not table.compact(logs_only=True, options=FEW).compactions
    pending.abort()
    (planned,) = table.compact(logs_only=True, run=False, options=FEW).compactions
    # Compactions leave the group alone meanwhile, writers append.
    assert not table.compact().compactions
    table.write(rows((6, "oslo", 99, "beside")))
    expected = seen(table)
    (done,) = table.compact(logs_only=True, schedule=False).compactions
    assert done.instant == planned.instant
    assert seen(table) == expected
    assert (6, "oslo", "beside") in expected


def test_partial_updates_are_left_alone(tmp_path):
    table = changed(tmp_path / "t")
    assigned = json.dumps({"type": "record", "name": "r", "fields": [{"name": "v", "type": "string"}]})
    table.write(rows((1, "oslo", 60, "part")), options={"hoodie.write.partial.update.schema": assigned})
    assert not table.compact(logs_only=True, options=FEW).compactions


def test_deletes_keep_their_ordering_values(tmp_path):
    """A deleting row of Hudi's flag is older than what comes later, and newer than what came late."""
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    table = drawstring.create_table(tmp_path / "t", schema, options=MERGED)

    def write(deleted: bool, *found):
        given = rows(*found)
        table.write(given.append_column("_hoodie_is_deleted", pa.array([deleted] * len(given))))

    write(False, (1, "oslo", 10, "a"), (2, "oslo", 10, "b"), (3, "oslo", 10, "c"))
    write(True, (1, "oslo", 20, ""), (2, "oslo", 5, ""))
    write(False, (3, "oslo", 11, "C"))
    table.compact(logs_only=True, options=FEW)
    assert seen(table) == [(2, "oslo", "b"), (3, "oslo", "C")]
    write(False, (1, "oslo", 15, "older than the delete"), (3, "oslo", 12, "D"))
    assert seen(table) == [(2, "oslo", "b"), (3, "oslo", "D")]
    write(False, (1, "oslo", 25, "alive"))
    assert seen(table) == [(1, "oslo", "alive"), (2, "oslo", "b"), (3, "oslo", "D")]
