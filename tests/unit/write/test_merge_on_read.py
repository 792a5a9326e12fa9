"""Merge-on-read tables written without Spark, read back by drawstring and by hudi-rs."""

from __future__ import annotations

import json
from base64 import b64decode
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap64

import drawstring
from drawstring.config.file_options import FileOptions
from drawstring.config.log_options import LogOptions
from drawstring.errors import CommitConflict, InvalidInput, InvalidOption
from drawstring.formats.log_blocks import BlockType, Header, scan_log_file
from drawstring.model.commit_metadata import CommitMetadata, WriteStat
from drawstring.model.file_group import BaseFile, FileGroupId, FileSlice, LogFile
from drawstring.model.instant import Action, Instant, State
from drawstring.storage import LocalStorage, MemoryStorage
from drawstring.write.assignment import Layout, Way, assign
from drawstring.write.conflicts import Candidate, check_groups
from drawstring.write.services.compacting import compact
from drawstring.write.transaction import Transaction
from drawstring.write.write_set import WriteSet
from tests.support.hand_table import HandTable
from tests.support.metadata_check import assert_metadata_table_equals_table
from tests.support.trips_table import OPTIONS as COPY_ON_WRITE_OPTIONS
from tests.support.trips_table import SCHEMA, rows, seen

OPTIONS = {**COPY_ON_WRITE_OPTIONS, "hoodie.table.type": "MERGE_ON_READ"}


@pytest.fixture
def table(tmp_path):
    return drawstring.create_table(tmp_path / "t", SCHEMA, options=OPTIONS)


def logs(table) -> list[Path]:
    found = Path(table.path).glob("**/.*.log.*")
    return sorted(log for log in found if ".hoodie" not in log.parts)


def blocks(table, log: Path):
    return list(scan_log_file(table.storage, str(log.relative_to(table.path))).blocks)


def test_dropping_partitions_of_a_planned_compaction_is_told_to_run_the_plan_first(table):
    table.write(rows((1, "oslo", 1, "a"), (2, "rome", 1, "a")))
    table.write(rows((1, "oslo", 2, "b")))
    table.compact(run=False)
    with pytest.raises(CommitConflict, match=r"run the plan first \(`drawstring compact") as caught:
        table.delete_partitions("oslo")
    assert caught.value.condition == "PENDING_PLAN"
    table.compact()
    table.delete_partitions("oslo")
    assert seen(table) == [(2, "rome", "a")]


def overwritten_beside_a_plan(tmp_path):
    """A table with a compaction plan that names a file group which has been overwritten since."""
    options = {**OPTIONS, "hoodie.metadata.enable": "false"}
    table = drawstring.create_table(tmp_path / "t", SCHEMA, options=options)
    table.write(rows((1, "oslo", 1, "a"), (2, "rome", 1, "a")), options=options)
    table.write(rows((1, "oslo", 2, "b"), (2, "rome", 2, "b")), options=options)
    table.compact(run=False, options=options)
    table.write(rows((3, "oslo", 1, "c")), operation="insert_overwrite", options=options)
    return table


def test_a_cleaner_keeps_what_a_plan_names_of_a_replaced_group(tmp_path):
    table = overwritten_beside_a_plan(tmp_path)
    newest = {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": "1"}
    assert "oslo" not in table.clean(options=newest).files
    assert table.compact().compactions[0].completion_time
    assert seen(table) == [(2, "rome", "b"), (3, "oslo", "c")]
    assert len(table.clean(options=newest).files["oslo"]) == 3


@pytest.mark.parametrize("operation", ["insert_overwrite", "insert_overwrite_table"])
def test_what_a_plan_makes_of_overwritten_groups_is_never_seen(table, operation):
    table.write(rows((1, "oslo", 1, "a"), (2, "oslo", 1, "a")))
    table.write(rows((1, "oslo", 2, "b")))
    planned = table.compact(run=False).compactions[0].instant
    before = table.timeline.completed_writes[-1].requested_time
    table.write(rows((2, "oslo", 1, "c")), operation=operation)
    overwritten = table.timeline.completed_writes[-1]
    table.write(rows((2, "oslo", 2, "d")))
    assert [one.instant for one in table.compact(schedule=False).compactions] == [planned]
    assert seen(table) == [(2, "oslo", "d")]
    found = table.snapshot(as_of=before).scan().select("id", "v").to_arrow().to_pydict()
    assert sorted(zip(found["id"], found["v"], strict=True)) == [(1, "b"), (2, "a")]
    since = table.incremental(begin=overwritten.completion_time).scan().to_arrow()
    assert since.column("v").to_pylist() == ["d"]
    assert_metadata_table_equals_table(table.storage)


def test_a_plan_runs_without_the_replaced_groups_whose_files_were_cleaned(tmp_path):
    table = overwritten_beside_a_plan(tmp_path)
    plan = table.compact(dry_run=True).compactions[0]
    (group,) = (one for one in plan.groups if one.partition_path == "oslo")
    for name in (group.base_file, *group.log_files):
        (Path(table.path) / "oslo" / name).unlink()
    done = table.compact().compactions[0]
    assert (done.instant, done.rows) == (plan.instant, 1)
    assert seen(table) == [(2, "rome", "b"), (3, "oslo", "c")]
    table.write(rows((2, "rome", 3, "d"), (3, "oslo", 3, "d")))
    assert seen(table) == [(2, "rome", "d"), (3, "oslo", "d")]


def test_all_operations(table):
    first = table.write(rows((1, "oslo", 1, "a"), (2, "oslo", 1, "b"), (3, "rome", 1, "c")))
    assert (first.operation, first.inserted, first.files_written, first.tries) == ("upsert", 3, 2, 1)
    assert not logs(table)
    changed = table.write(rows((1, "oslo", 2, "A"), (2, "oslo", 0, "late"), (4, "bern", 1, "d")))
    assert (changed.inserted, changed.updated, len(logs(table))) == (1, 2, 1)
    assert seen(table) == [(1, "oslo", "A"), (2, "oslo", "b"), (3, "rome", "c"), (4, "bern", "d")]
    assert table.write(rows((3, "rome", 9, "")).select(["id", "city"]), operation="delete").deleted == 1
    table.write(rows((1, "oslo", 3, "again")), operation="insert")
    table.write(rows((5, "kiel", 1, "e")), operation="bulk_insert")
    expected = [(1, "oslo", "A"), (1, "oslo", "again"), (2, "oslo", "b"), (4, "bern", "d"), (5, "kiel", "e")]
    assert seen(table) == expected
    assert table.write(rows((6, "oslo", 1, "f")), operation="insert_overwrite").groups_replaced == 2
    assert seen(table) == [(4, "bern", "d"), (5, "kiel", "e"), (6, "oslo", "f")]
    table.delete_partitions("k*")
    assert seen(table) == [(4, "bern", "d"), (6, "oslo", "f")]
    table.write(rows((7, "rome", 1, "g")), operation="insert_overwrite_table")
    assert seen(table) == [(7, "rome", "g")]
    actions = [instant.action.value for instant in table.state().timeline.completed_writes]
    assert actions == ["deltacommit"] * 5 + ["replacecommit"] * 3


def test_what_a_commit_says_of_a_log_file(table):
    table.write(rows((1, "oslo", 1, "a"), (2, "oslo", 1, "b")))
    result = table.write(rows((1, "oslo", 2, "A")))
    state = table.state()
    stat = state.metadata(state.timeline.by_requested_time[result.instant]).stats[0]
    (log,) = logs(table)
    assert log.name == f".{stat.file_id}_{result.instant}.log.1_0-0-0"
    assert stat.path == f"oslo/{log.name}"
    assert (stat.prev_commit, stat.log_files, stat.num_writes) == (result.instant, (log.name,), 1)
    assert (stat.num_updates, stat.num_inserts, stat.file_size) == (1, 0, log.stat().st_size)


def test_records_of_a_log_carry_the_meta_columns(table):
    table.write(rows((1, "oslo", 1, "a")))
    result = table.write(rows((1, "oslo", 2, "A")))
    row = table.snapshot().scan().to_arrow().to_pylist()[0]
    assert row["_hoodie_commit_time"] == result.instant
    assert row["_hoodie_commit_seqno"].startswith(f"{result.instant}_0_")
    assert (row["_hoodie_record_key"], row["_hoodie_partition_path"]) == ("1", "oslo")
    assert row["_hoodie_file_name"] == logs(table)[0].name.rpartition("_2")[0].lstrip(".")


@pytest.mark.parametrize("later", [True, False], ids=["newer", "older"])
def test_marked_row_deletes_by_its_ordering_value(tmp_path, later):
    schema = pa.schema([*SCHEMA, ("_hoodie_is_deleted", pa.bool_())])
    table = drawstring.create_table(tmp_path / "t", schema, options=OPTIONS)

    def row(ts, v, deleted):
        return pa.Table.from_pylist(
            [{"id": 1, "city": "oslo", "ts": ts, "v": v, "_hoodie_is_deleted": deleted}], schema=schema
        )

    table.write(row(5, "a", False))
    assert table.write(row(9 if later else 2, "", True)).deleted == 1
    (block,) = blocks(table, logs(table)[0])
    assert block.type is BlockType.DELETE
    assert seen(table) == ([] if later else [(1, "oslo", "a")])
    table.write(row(7, "b", False))
    assert seen(table) == ([] if later else [(1, "oslo", "b")])
    table.write(row(9, "c", False))
    assert seen(table) == [(1, "oslo", "c")]


def test_delete_operation_wins_over_every_ordering_value_and_a_later_row_is_alive_again(table):
    table.write(rows((1, "oslo", 100, "a")))
    table.write(rows((1, "oslo", 0, "")).select(["id", "city"]), operation="delete")
    assert seen(table) == []
    # An older row would bring the stored one back: Hudi's readers fold logs first, then meet the base file.
    table.write(rows((1, "oslo", 100, "b")))
    assert seen(table) == [(1, "oslo", "b")]


def test_commit_time_ordering_takes_what_was_written_last(tmp_path):
    options = {**OPTIONS, "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}
    table = drawstring.create_table(tmp_path / "t", SCHEMA, options=options)
    table.write(rows((1, "oslo", 9, "a")))
    table.write(rows((1, "oslo", 3, "b"), (1, "oslo", 1, "c")))
    assert seen(table) == [(1, "oslo", "c")]


def test_several_ordering_fields(tmp_path):
    schema = pa.schema([("id", pa.int64()), ("a", pa.int64()), ("b", pa.string()), ("v", pa.string())])
    options = {
        "hoodie.table.name": "t",
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.table.ordering.fields": "a,b",
    }
    table = drawstring.create_table(tmp_path / "t", schema, options=options)
    for row in ((1, 5, "m", "first"), (1, 5, "n", "second"), (1, 5, "a", "late"), (1, 4, "z", "later")):
        table.write(pa.Table.from_pylist([dict(zip(schema.names, row, strict=True))], schema=schema))
    # hudi-rs refuses several ordering fields.
    assert table.snapshot().scan().to_arrow().column("v").to_pylist() == ["second"]


def test_parquet_blocks(table):
    table.write(rows((1, "oslo", 1, "a"), (2, "oslo", 1, "b")))
    table.write(rows((1, "oslo", 2, "A")), options={"hoodie.logfile.data.block.format": "parquet"})
    (block,) = blocks(table, logs(table)[0])
    assert block.type is BlockType.PARQUET_DATA
    found = table.snapshot().scan().to_arrow().to_pylist()
    assert sorted((r["id"], r["v"]) for r in found) == [(1, "A"), (2, "b")]


def test_large_logs_continue_in_further_blocks_and_files(table):
    many = rows(*((i, "oslo", 1, "x" * 50) for i in range(1000)))
    table.write(many)
    changed = rows(*((i, "oslo", 2, f"{i}" * 9) for i in range(1000)))
    small = {"hoodie.logfile.data.block.max.size": "20000", "hoodie.logfile.max.size": "50000"}
    result = table.write(changed, options=small)
    assert result.updated == 1000
    found = sorted(logs(table), key=lambda log: int(log.name.split(".log.")[1].split("_")[0]))
    assert len(found) == result.files_written > 2
    assert [log.name.split(".log.")[1][0] for log in found][:3] == ["1", "2", "3"]
    assert {len(blocks(table, log)) for log in found[:-1]} == {2}
    assert seen(table, "id", "v") == sorted(((i, f"{i}" * 9) for i in range(1000)), key=repr)


def test_headers_are_those_of_hudi(table):
    table.write(rows((1, "oslo", 1, "a"), (2, "oslo", 1, "b")))
    result = table.write(rows((2, "oslo", 2, "B")))
    (block,) = blocks(table, logs(table)[0])
    assert block.headers[Header.INSTANT_TIME] == result.instant
    assert '"_hoodie_commit_time"' in block.headers[Header.SCHEMA]


FILES = FileOptions(
    max_file_size=1000, small_file_limit=500, record_size_estimate=10, logs=LogOptions(parquet_ratio=0.5)
)


def slice_of(file_id: str, size: int, *, log: int = 0) -> FileSlice:
    base = BaseFile(f"p/{file_id}_0-0-0_1.parquet", size, file_id, "1") if size else None
    found = (LogFile(f"p/.{file_id}_2.log.1_0-0-0", log, file_id, "2", 1),) if log else ()
    return FileSlice(FileGroupId("p", file_id), "1", base, found)


def ways(found) -> dict[str, Way]:
    return {bucket.group.file_id if bucket.slice else "new": bucket.way for bucket in found.buckets}


def test_new_keys_go_into_the_smallest_base_file_without_logs():
    slices = [slice_of("small", 300), slice_of("smaller", 200), slice_of("logged", 100, log=5)]
    updates = [found.group for found in slices]
    found = assign(
        updates, {"p": 200}, slices, files=FILES, record_size=None, layout=Layout.LOGS_FOR_KNOWN_KEYS
    )
    # Of several small ones, Hudi fills one at a time; its updates go along.
    expected = {"small": Way.APPEND, "smaller": Way.REWRITE, "logged": Way.APPEND, "new": Way.CREATE}
    assert ways(found) == expected


def test_where_the_index_knows_logs_everything_goes_into_logs():
    slices = [slice_of("full", 990, log=100), slice_of("logs", 0, log=100)]
    found = assign([], {"p": 200}, slices, files=FILES, record_size=None, layout=Layout.LOGS)
    assert ways(found) == {"logs": Way.APPEND, "new": Way.APPEND}


def test_positions_of_updated_and_deleted_rows(table):
    flagged = pa.schema([*SCHEMA, ("_hoodie_is_deleted", pa.bool_())])
    first = rows(*((i, "oslo", 1, "a") for i in range(10)))
    table.write(first)
    base = next(Path(table.path).glob("oslo/*.parquet"))
    changed = pa.Table.from_pylist(
        [
            {"id": i, "city": "oslo", "ts": 2, "v": f"v{i}", "_hoodie_is_deleted": i in (6, 2)}
            for i in (7, 6, 2, 4)
        ],
        schema=flagged,
    )
    table.write(changed)
    data, deletes = blocks(table, logs(table)[0])
    for block, expected in ((data, [4, 7]), (deletes, [2, 6])):
        found = BitMap64.deserialize(b64decode(block.headers[Header.RECORD_POSITIONS]))
        assert list(found) == expected
        instant = block.headers[Header.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS]
        assert base.name.endswith(f"_{instant}.parquet")
    assert [row[0] for row in seen(table)] == [0, 1, 3, 4, 5, 7, 8, 9]
    off = {"hoodie.write.record.positions": "false", "hoodie.write.set.null.for.missing.columns": "true"}
    table.write(rows((5, "oslo", 3, "b")), options=off)
    assert Header.RECORD_POSITIONS not in blocks(table, logs(table)[-1])[0].headers


MERGED = {
    "COPY_ON_WRITE": {"hoodie.table.type": "COPY_ON_WRITE"},
    # With every slice small, a write to a merge-on-read table rewrites it together with new keys.
    "MERGE_ON_READ": {"hoodie.table.type": "MERGE_ON_READ"},
}


@pytest.mark.parametrize("table_type", MERGED)
def test_rows_delete_by_a_marker(tmp_path, table_type):
    marker = {"hoodie.payload.delete.field": "v", "hoodie.payload.delete.marker": "gone"}
    options = {**OPTIONS, **MERGED[table_type], **marker}
    table = drawstring.create_table(tmp_path / "t", SCHEMA, options=options)
    table.write(rows((1, "oslo", 5, "a"), (2, "oslo", 5, "b"), (3, "oslo", 5, "gone")))
    assert seen(table) == [(1, "oslo", "a"), (2, "oslo", "b")]
    result = table.write(rows((1, "oslo", 6, "gone"), (2, "oslo", 4, "gone")))
    assert result.deleted == (2 if table_type == "MERGE_ON_READ" else 1)
    assert seen(table) == [(2, "oslo", "b")]
    table.write(rows((1, "oslo", 7, "back"), (4, "oslo", 1, "new")))
    assert seen(table) == [(1, "oslo", "back"), (2, "oslo", "b"), (4, "oslo", "new")]


@pytest.mark.parametrize("table_type", MERGED)
def test_columns_of_several_versions_are_merged_as_readers_do(tmp_path, table_type):
    schema = pa.schema([("id", pa.int64()), ("ts", pa.int64()), ("a", pa.string()), ("b", pa.string())])
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload",
        **MERGED[table_type],
    }
    table = drawstring.create_table(tmp_path / "t", schema, options=options)

    def write(*found):
        given = [dict(zip(schema.names, row, strict=True)) for row in found]
        return table.write(pa.Table.from_pylist(given, schema=schema))

    def read():
        return sorted(map(tuple, (r.values() for r in _plain(table, schema.names))))

    write((1, 1, "a1", "b1"), (2, 5, "a2", None), (2, 5, None, "b2"))
    assert read() == [(1, 1, "a1", "b1"), (2, 5, "a2", "b2")]
    write((1, 2, None, "B1"), (1, 3, "A1", None), (2, 4, "late", "late"))
    assert read() == [(1, 3, "A1", "B1"), (2, 5, "a2", "b2")]
    changed = write((1, 4, None, "again"), (3, 1, "a3", None))
    assert read() == [(1, 4, "A1", "again"), (2, 5, "a2", "b2"), (3, 1, "a3", None)]
    assert (changed.inserted, changed.deleted) == (1, 0)
    table.write(pa.table({"id": [1]}), operation="delete")
    assert read() == [(2, 5, "a2", "b2"), (3, 1, "a3", None)]


@pytest.mark.parametrize(
    ("made", "given", "condition"),
    [
        ({}, "OverwriteWithLatestAvroPayload", "CONFIG_CONFLICT"),
        ({}, "com.example.Mine", "PAYLOAD_NOT_SUPPORTED"),
        ({}, "DefaultHoodieRecordPayload", None),
        ({"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, "EventTimeAvroPayload", "CONFIG_CONFLICT"),
        ({"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}, "OverwriteWithLatestAvroPayload", None),
        ({"hoodie.datasource.write.precombine.field": ""}, "DefaultHoodieRecordPayload", None),
    ],
)
def test_a_payload_class_of_another_merge_rule_than_the_tables_is_refused(tmp_path, made, given, condition):
    table = drawstring.create_table(tmp_path / "t", SCHEMA, options={**OPTIONS, **made})
    table.write(rows((1, "oslo", 5, "a")))
    options = {"hoodie.datasource.write.payload.class": given}
    if condition is None:
        assert table.write(rows((1, "oslo", 6, "b")), options=options).updated == 1
        return
    with pytest.raises(InvalidOption) as caught:
        table.write(rows((1, "oslo", 6, "b")), options=options)
    assert caught.value.condition == condition
    assert seen(table) == [(1, "oslo", "a")]


def _plain(table, names):
    return table.snapshot().scan().select(*names).to_arrow().to_pylist()


def test_writers_that_append_to_one_group_conflict_and_the_later_one_is_tried_again(table, monkeypatch):
    table.write(rows((1, "oslo", 1, "a"), (2, "oslo", 1, "b")))
    commit = Transaction.commit

    def late(self, *args, **kwargs):
        monkeypatch.undo()
        table.write(rows((2, "oslo", 2, "theirs")))
        return commit(self, *args, **kwargs)

    monkeypatch.setattr(Transaction, "commit", late)
    assert table.write(rows((1, "oslo", 2, "ours"))).tries == 2
    assert seen(table) == [(1, "oslo", "ours"), (2, "oslo", "theirs")]


@pytest.mark.parametrize("finished", [True, False], ids=["finished beside the write", "pending"])
def test_a_log_is_appended_beside_a_compaction(table, monkeypatch, finished):
    table.write(rows((1, "oslo", 1, "a"), (2, "oslo", 1, "b")))
    table.write(rows((1, "oslo", 2, "A")))
    commit = Transaction.commit

    def late(self, *args, **kwargs):
        monkeypatch.undo()
        compact(table.storage, runs=finished)
        return commit(self, *args, **kwargs)

    monkeypatch.setattr(Transaction, "commit", late)
    assert table.write(rows((2, "oslo", 2, "B"))).tries == 1
    assert seen(table) == [(1, "oslo", "A"), (2, "oslo", "B")]
    if not finished:
        compact(table.storage)
        assert seen(table) == [(1, "oslo", "A"), (2, "oslo", "B")]


def test_a_key_that_a_compaction_dropped_while_a_log_brought_it_back_is_found_in_the_log(table):
    """Base files alone would not tell the next writer of the key, and it would insert it a second time."""
    table.write(rows((1, "oslo", 1, "a"), (2, "oslo", 1, "b")))
    table.write(rows((1, "oslo", 9, "")).select(["id", "city"]), operation="delete")
    compact(table.storage, runs=False)
    table.write(rows((1, "oslo", 5, "back")))
    compact(table.storage)
    assert seen(table) == [(1, "oslo", "back"), (2, "oslo", "b")]
    assert table.write(rows((1, "oslo", 6, "once"))).updated == 1
    assert seen(table) == [(1, "oslo", "once"), (2, "oslo", "b")]


def test_clustering_plans_conflict_with_what_is_appended():
    group = FileGroupId("p", "f-0")
    write_set = WriteSet(frozenset({group}), appended=frozenset({group}))
    compacted = CommitMetadata("COMPACT", (WriteStat("f-0", "p/f-0_0-0-0_2.parquet", "p"),))
    instant = Instant("2", Action.COMMIT, State.COMPLETED, "3", "2_3.commit")
    storage = MemoryStorage("memory://conflicts")
    check_groups([Candidate(instant, compacted)], write_set, storage, "1")
    with pytest.raises(CommitConflict):
        check_groups([Candidate(instant, replace(compacted, operation="CLUSTER"))], write_set, storage, "1")


def test_groups_of_logs_alone_are_looked_into(tmp_path):
    schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
    table = HandTable(LocalStorage(str(tmp_path / "t")), schema).create(table_type="MERGE_ON_READ")
    instant = table.next_time()
    group = WriteStat("f-0", "oslo/f-0", "oslo")
    table.commit(instant, [table.log_file(instant, group, [{"id": 1, "p": "oslo", "ts": 1, "v": "a"}])])
    opened = drawstring.open_table(tmp_path / "t")
    given = rows((1, "oslo", 2, "A"), (2, "oslo", 1, "b")).rename_columns(schema.names)
    changed = opened.write(given)
    assert (changed.updated, changed.inserted) == (1, 1)
    found = opened.snapshot().scan().to_arrow().to_pylist()
    assert sorted((r["id"], r["v"]) for r in found) == [(1, "A"), (2, "b")]


def test_a_log_is_not_appended_where_a_pending_write_has_begun_a_base_file(table):
    """Hudi's readers would take the log for one of the base file that is not committed, and pass it over."""
    table.write(rows((1, "oslo", 1, "a"), (2, "rome", 1, "b")))
    (file_id,) = {path.name.partition("_")[0] for path in Path(table.path).glob("oslo/*.parquet")}
    pending = "20200101000000000"
    timeline = Path(table.path) / ".hoodie" / "timeline"
    for state in ("requested", "inflight"):
        (timeline / f"{pending}.deltacommit.{state}").touch()
    marker = Path(table.path) / ".hoodie" / ".temp" / pending / "oslo"
    marker.mkdir(parents=True)
    (marker / f"{file_id}_0-1-1_{pending}.parquet.marker.MERGE").touch()
    once = {"hoodie.write.num.retries.on.conflict.failures": "0"}
    with pytest.raises(CommitConflict) as caught:
        table.write(rows((1, "oslo", 2, "A")), options=once)
    assert caught.value.fields["other"] == pending
    table.write(rows((2, "rome", 2, "B")), options=once)
    assert seen(table) == [(1, "oslo", "a"), (2, "rome", "B")]
    table.rollback(pending)
    table.write(rows((1, "oslo", 2, "A")), options=once)
    assert seen(table) == [(1, "oslo", "A"), (2, "rome", "B")]


def test_a_partial_update_assigns_some_columns(table):
    table.write(rows((1, "oslo", 1, "a"), (2, "oslo", 1, "b")))
    assigned = json.dumps({"type": "record", "name": "r", "fields": [{"name": "v", "type": "string"}]})
    options = {"hoodie.write.partial.update.schema": assigned}
    some = rows((1, "oslo", 2, "A"), (2, "oslo", 0, "late"))
    assert table.write(some, options=options).updated == 2
    (block,) = blocks(table, logs(table)[0])
    assert block.headers[Header.IS_PARTIAL] == "true"
    names = [f["name"] for f in json.loads(block.headers[Header.SCHEMA])["fields"]]
    assert names[5:] == ["ts", "v"]
    found = table.snapshot().scan().select("id", "city", "ts", "v").to_arrow().to_pylist()
    assert sorted(map(tuple, (row.values() for row in found))) == [(1, "oslo", 2, "A"), (2, "oslo", 1, "b")]
    with pytest.raises(InvalidInput, match="not in the table"):
        table.write(rows((9, "oslo", 2, "new")), options=options)
    with pytest.raises(InvalidOption, match="partial update"):
        table.write(rows((1, "oslo", 2, "new")), options=options, operation="insert")


def test_a_partial_update_that_hudi_could_not_read_is_refused(tmp_path):
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    table = drawstring.create_table(tmp_path / "t", schema, options=OPTIONS)
    whole = rows((1, "oslo", 1, "a")).append_column("_hoodie_is_deleted", pa.array([False]))
    table.write(whole)
    assigned = json.dumps({"type": "record", "name": "r", "fields": [{"name": "v", "type": "string"}]})
    with pytest.raises(InvalidOption, match="_hoodie_is_deleted") as caught:
        table.write(whole, options={"hoodie.write.partial.update.schema": assigned})
    assert caught.value.condition == "PARTIAL_UPDATE_NOT_POSSIBLE"
    assert seen(table) == [(1, "oslo", "a")]
