"""Writes through the transaction keep the metadata table: it equals the table after every operation."""

from __future__ import annotations

import pyarrow as pa
import pytest

import drawstring
from drawstring.config.service_options import ServiceOptions
from drawstring.config.write_options import OPERATION, WriteOptions
from drawstring.errors import CorruptTable, UnsupportedTable
from drawstring.storage import LocalStorage
from drawstring.storage.table_properties import PROPERTIES, updated_content
from drawstring.view.metadata_keys import partition_stats_key
from drawstring.view.metadata_records import decode_record
from drawstring.view.metadata_table import FOLDER, MetadataTable
from drawstring.write.in_process import ArrowRows
from drawstring.write.metadata_table import keeping
from drawstring.write.pipeline import write_rows
from drawstring.write.rollback import rollback_pending
from drawstring.write.services.cleaning import clean
from drawstring.write.services.compacting import compact
from drawstring.write.table_facts import load_state
from drawstring.write.transaction import Transaction
from tests.small_writes import OPTIONS, SCHEMA, files_of, hooked, rows_of, rows_of_hudi_rs, write
from tests.support.hand_table import HandTable
from tests.support.metadata_check import assert_metadata_table_equals_table

OFF = {"hoodie.metadata.enable": "false"}
ROWS = [("1", "oslo", 1, "a"), ("2", "oslo", 1, "b"), ("3", "rome", 1, "c")]
NEXT = [("1", "oslo", 2, "A"), ("4", "kiel", 2, "D")]
DEFAULT = ("column_stats", "files", "partition_stats")
ALL = (*DEFAULT, "record_index", "bloom_filters")
OPERATIONS = ("upsert", "insert", "bulk_insert", "delete", "insert_overwrite", "insert_overwrite_table")


def with_metadata_table(path, *extra, rows=ROWS):
    storage = LocalStorage(str(path))
    write(storage, rows, options=OFF)
    HandTable(storage, SCHEMA).initialise(*extra)
    return storage


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("extra", [(), ALL[3:]], ids=["default", "all"])
def test_the_metadata_table_equals_the_table_after_every_operation(tmp_path, operation, extra):
    storage = with_metadata_table(tmp_path / "t", *extra)
    write(storage, NEXT, operation)
    assert_metadata_table_equals_table(storage, expect=(*DEFAULT, *extra))
    write(storage, [("5", "oslo", 3, "e"), ("2", "oslo", 3, "B")])
    assert_metadata_table_equals_table(storage)
    assert rows_of(tmp_path / "t") == rows_of_hudi_rs(tmp_path / "t")


def test_deleted_partitions_leave_the_record_index(tmp_path):
    storage = with_metadata_table(tmp_path / "t", *ALL[3:])
    write(storage, [], "delete_partition", options={"hoodie.datasource.write.partitions.to.delete": "oslo"})
    assert_metadata_table_equals_table(storage)
    write(storage, ROWS[:1])
    assert_metadata_table_equals_table(storage)


def test_a_rolled_back_write_leaves_nothing_behind(tmp_path):
    storage = with_metadata_table(tmp_path / "t")
    transaction = Transaction.begin(storage, operation="UPSERT")
    rollback_pending(storage, transaction.requested_time)
    transaction.abort()
    assert_metadata_table_equals_table(storage)


def test_a_rollback_takes_the_metadata_tables_deltacommit_back(tmp_path):
    """Another engine may have died between the two commits."""
    storage = with_metadata_table(tmp_path / "t", "record_index")
    table = HandTable(storage, SCHEMA)
    instant = table.next_time()
    stat = table.base_file(instant, "oslo", [{"id": "9", "city": "oslo", "ts": 1, "v": "x"}])
    table.commit(instant, [stat])
    completed = load_state(storage).timeline.completed_writes[-1]
    storage.delete(f".hoodie/timeline/{completed.file_name}")
    storage.write(f".hoodie/.temp/{instant}/{stat.path}.marker.CREATE", b"")
    rollback_pending(storage, instant)
    assert not [e for e in storage.list(FOLDER, recursive=True) if f"_{instant}" in e.name]
    assert not storage.exists(stat.path)
    assert_metadata_table_equals_table(storage)


def test_large_files_of_the_metadata_table_are_not_held_in_slots(tmp_path, monkeypatch):
    monkeypatch.setattr(keeping, "STAGED_BYTES", 64)
    storage = with_metadata_table(tmp_path / "t", "record_index")
    write(storage, NEXT)
    assert_metadata_table_equals_table(storage)
    content = b"".join(storage.read(e.path) for e in storage.list(".hoodie/.slots"))
    assert f".staged/{FOLDER}/record_index".encode() in content


def test_a_metadata_table_that_lacks_a_write_is_refused_by_name(tmp_path):
    storage = with_metadata_table(tmp_path / "t")
    write(storage, NEXT)
    write(storage, NEXT)
    for entry in list(storage.list(f"{FOLDER}/.hoodie/timeline")):
        if entry.name.startswith(load_state(storage).timeline.completed_writes[-1].requested_time):
            storage.delete(entry.path)
    before = rows_of(tmp_path / "t")
    with pytest.raises(CorruptTable, match="metadata rebuild") as caught:
        write(storage, NEXT)
    assert caught.value.condition == "METADATA_TABLE_DAMAGED"
    assert rows_of(tmp_path / "t") == before


def test_a_metadata_table_without_files_is_refused_by_name(tmp_path):
    storage = with_metadata_table(tmp_path / "t")
    storage.delete(FOLDER, recursive=True)
    with pytest.raises(CorruptTable) as caught:
        write(storage, NEXT)
    assert caught.value.condition == "METADATA_TABLE_DAMAGED"


def test_an_index_that_is_not_kept_is_refused_where_nobody_may_take_it_out(tmp_path):
    storage = with_metadata_table(tmp_path / "t")
    config = load_state(storage).config
    named = {**config.properties, "hoodie.table.metadata.partitions": "files,secondary_index_v"}
    storage.write(PROPERTIES, updated_content(named))
    with pytest.raises(UnsupportedTable) as caught:
        Transaction.begin(storage, operation="UPSERT")
    assert caught.value.condition == "METADATA_PARTITION_NOT_SUPPORTED"
    assert not load_state(storage).timeline.pending


def during(path, act):
    """A storage that lets `act` happen when the first data file of a write is opened."""
    storage, done = hooked(str(path)), []

    def before(_number, operation, _path):
        if operation == "open_output" and not done:
            done.append(True)
            act()

    storage.before = before
    return storage


def test_an_index_that_is_made_while_a_write_runs_is_kept_by_it(tmp_path):
    plain = LocalStorage(str(tmp_path / "t"))
    write(plain, ROWS, options=OFF)
    storage = during(tmp_path / "t", lambda: HandTable(plain, SCHEMA).initialise())
    assert write(storage, NEXT, options=OFF).tries == 1
    assert_metadata_table_equals_table(plain, expect=DEFAULT)


def test_a_commit_that_says_the_schema_once_more_is_in_the_metadata_table(tmp_path):
    """Another write, requested later with the older schema, completes first."""
    plain = with_metadata_table(tmp_path / "t")
    storage = during(tmp_path / "t", lambda: write(plain, [("8", "oslo", 1, "x")], "insert"))
    wider = pa.table({"id": ["7"], "city": ["rome"], "ts": [1], "v": ["x"], "w": [1]})
    named = {**OPTIONS, OPERATION.key: "insert"}
    write_rows(ArrowRows(wider), storage, mode="append", options=WriteOptions.of(named))
    assert_metadata_table_equals_table(plain)
    assert len(load_state(plain).timeline.completed_writes) == 4
    assert drawstring.open_table(str(tmp_path / "t")).snapshot().schema.names[-1] == "w"


MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}


def new_mor_table(path):
    drawstring.create_table(str(path), SCHEMA, options={**OPTIONS, **MOR})
    storage = LocalStorage(str(path))
    HandTable(storage, SCHEMA).initialise("record_index", "bloom_filters")
    return storage


def test_log_files_deletes_in_them_and_compactions_are_kept(tmp_path):
    storage = new_mor_table(tmp_path / "t")
    for rows, operation in [
        (ROWS, "insert"),
        (NEXT, "upsert"),
        ([("2", "oslo", 3, "gone"), ("3", "rome", 0, "stale delete")], "delete"),
        ([("2", "oslo", 4, "again")], "upsert"),
    ]:
        write(storage, rows, operation, options=MOR)
        assert_metadata_table_equals_table(storage, expect=ALL)
    assert any(".log." in name for name in files_of(tmp_path / "t") if not name.startswith(".hoodie"))
    before = rows_of(tmp_path / "t")
    compact(storage, ServiceOptions.of({}))
    assert_metadata_table_equals_table(storage, expect=ALL)
    assert rows_of(tmp_path / "t") == before


def test_cleaned_files_leave_the_metadata_table(tmp_path):
    storage = with_metadata_table(tmp_path / "t", *ALL[3:])
    for number in range(5):
        write(storage, [("1", "oslo", 2 + number, "x")], options={"hoodie.clean.automatic": "false"})
    cleaned = clean(storage, ServiceOptions.of({"hoodie.clean.commits.retained": 2}))
    assert cleaned.files
    assert_metadata_table_equals_table(storage, expect=ALL)


def test_a_file_that_a_killed_writer_left_without_a_name_is_no_file_group(tmp_path):
    storage = with_metadata_table(tmp_path / "t")
    for name in ("files", "column_stats"):
        (tmp_path / "t" / FOLDER / name / f".{'0' * 32}.tmp").touch()
    write(storage, NEXT)
    assert_metadata_table_equals_table(storage)


def test_ranges_of_partitions_cover_a_write_that_was_requested_earlier_and_completed_later(tmp_path):
    plain = with_metadata_table(tmp_path / "t")
    between = during(tmp_path / "t", lambda: write(plain, [("8", "oslo", 5, "b")], "bulk_insert"))
    write(between, [("9", "oslo", 9, "zz")], "bulk_insert")
    assert_metadata_table_equals_table(plain)
    scan = drawstring.open_table(str(tmp_path / "t")).snapshot().scan()
    assert scan.where("v = 'zz'").to_arrow().num_rows == 1


def test_ranges_of_partitions_stand_for_themselves_only_after_those_of_another_type(tmp_path):
    """Apache Hudi merges the others, whichever was requested first; bounds of a promoted column it cannot."""
    path = str(tmp_path / "t")
    narrow = pa.schema([("id", pa.string()), ("p", pa.string()), ("v", pa.int32())])
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
    }
    table = drawstring.create_table(path, narrow, options=options)
    wide = narrow.set(2, pa.field("v", pa.int64()))
    for number, schema in enumerate((narrow, narrow, wide, wide)):
        table.write(
            pa.Table.from_pylist([{"id": str(number), "p": "a", "v": number}], schema),
            operation="bulk_insert",
        )
    state = load_state(table.storage)
    metadata = MetadataTable(state.storage, state.config, state.timeline)
    key = partition_stats_key("v", "a").encode()
    found = [
        decode_record(value, schema)["ColumnStatsMetadata"]
        for entries, schema in metadata.entries("partition_stats", lambda file: file.lookup([key]))
        for _, value in entries
    ]
    assert [one["isTightBound"] for one in found] == [False, False, True, True]
    # Counts of the first two are added up by whoever merges them; the others count all there is, at least.
    assert [one["valueCount"] for one in found[:2]] == [1, 1]
    assert [(one["minValue"]["value"], one["maxValue"]["value"]) for one in found] == [
        (0, 0),
        (0, 1),
        (0, 2),
        (0, 3),
    ]
    assert_metadata_table_equals_table(table.storage)
